"""Startup, readiness and liveness probes with the timings of their spec.

Inputs: a probe's spec, an attempt. Outputs: the verdicts: each time that enough attempts in a row agreed. All numbers
in seconds or counts of attempts.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from e2e.agent.api import Object


@dataclass(frozen=True)
class Probe:
    """The timings of a probe; the API server has filled in the defaults."""

    initial_delay_seconds: float
    period_seconds: float
    timeout_seconds: float
    success_threshold: int
    failure_threshold: int

    @classmethod
    def of(cls, spec: Object) -> "Probe":
        """Read the timings of a spec."""
        return cls(
            spec.get("initialDelaySeconds", 0),
            spec.get("periodSeconds", 10),
            spec.get("timeoutSeconds", 1),
            spec.get("successThreshold", 1),
            spec.get("failureThreshold", 3),
        )


async def verdicts(probe: Probe, attempt: Callable[[float], Awaitable[bool]]) -> AsyncIterator[bool]:
    """Yield True when the success threshold is reached and False when the failure threshold is, again and again.

    Args:
        probe: its timings.
        attempt: tries once within the seconds it is given.
    """
    await asyncio.sleep(probe.initial_delay_seconds)
    last, in_a_row = None, 0
    while True:
        success = await attempt(probe.timeout_seconds)
        in_a_row = in_a_row + 1 if success == last else 1
        last = success
        if in_a_row >= (probe.success_threshold if success else probe.failure_threshold):
            yield success
        await asyncio.sleep(probe.period_seconds)
