"""The right to write, held by the leader for a bounded time.

Inputs: until when it holds, by a clock that no one sets and that runs while the machine sleeps. Outputs: nothing, or
``LeadershipLost``. Once found expired it never holds again, whatever the clock does later. Does no I/O.
"""

from kvplan_operator.kube.clocks import Clock, boot_clock
from kvplan_operator.kube.errors import LeadershipLost


class Fence:
    """Checked right before every write of a leader.

    Attributes:
        term: number of this leadership, ``leaseTransitions`` of the Lease; 0 before it began.
    """

    def __init__(self, clock: Clock = boot_clock) -> None:
        self._clock = clock
        self._until = float("-inf")
        self._lost = False
        self.term = 0

    @property
    def holds(self) -> bool:
        """Whether this process may write now."""
        return not self._lost and self._clock() < self._until

    @property
    def remaining_seconds(self) -> float:
        """How long it still holds without another renewal; 0 when it does not."""
        return max(0.0, self._until - self._clock()) if not self._lost else 0.0

    def check(self) -> None:
        """Pass while this process may write.

        Raises:
            LeadershipLost: from the first time that it may not, for ever.
        """
        if not self.holds:
            self.drop()
            raise LeadershipLost(f"term {self.term} of this process is over: nothing is written any more")

    def begin(self, term: int, until: float) -> None:
        """Start a term that holds until a moment of the clock."""
        self.term, self._until = term, until

    def extend(self, until: float) -> None:
        """Prolong the term; one that ran out stays over.

        Raises:
            LeadershipLost: when it ran out before.
        """
        self.check()
        self._until = max(self._until, until)

    def drop(self) -> None:
        """Give the right up, for ever."""
        self._lost = True
