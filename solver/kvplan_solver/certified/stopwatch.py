"""The injected clock: phase times for the report and the wall-clock safety stop. Without a clock it is silent."""

from collections.abc import Callable

_LEAST_SECONDS = 0.01


class Stopwatch:
    """Reads the clock it was given, if any.

    Attributes:
        seconds: wall time by phase.
        struck: whether the deadline was seen to have passed.
    """

    def __init__(self, clock: Callable[[], float] | None, deadline_seconds: float | None) -> None:
        self._clock, self._deadline = clock, deadline_seconds
        self._began = clock() if clock else 0.0
        self.seconds: dict[str, float] = {}
        self.struck = False

    @property
    def elapsed(self) -> float | None:
        """Seconds since the start; None without a clock."""
        return self._clock() - self._began if self._clock else None

    @property
    def left(self) -> float | None:
        """Seconds until the deadline, at least a hundredth; None without a clock or a deadline."""
        elapsed = self.elapsed
        return None if elapsed is None or self._deadline is None else max(_LEAST_SECONDS, self._deadline - elapsed)

    def lap(self, phase: str) -> None:
        """End a phase."""
        elapsed = self.elapsed
        if elapsed is not None:
            self.seconds[phase] = elapsed - sum(self.seconds.values())

    def out_of_time(self) -> bool:
        """Whether the deadline has passed; remembered once true."""
        elapsed = self.elapsed
        if elapsed is not None and self._deadline is not None and elapsed >= self._deadline:
            self.struck = True
        return self.struck
