"""An engine's limit on active sequences stays as it runs where another would change little: a change is a restart.

Inputs: flags as the plan alone would have them, those the groups run with. Output: flags to write. The limit follows
the mix of classes, so nearly every solve gives another number. The one that runs is kept if all of this holds:

1. every other flag is the same, or the groups restart anyway;
2. it lies within ``BAND`` of the new one;
3. it is not above the new one: the reservations of what it lets in fit the budget Q_k, and it is not above S_k,
   which the certificate counts on;
4. it is not below what the plan expects in flight, so that the engine admits what the plan routes to it.

So a limit that must fall falls at once, and one that may rise does so once that is worth something: noise moves it down
a few times at most and never back. M_k and S_k are other flags, and never kept. Pure.
"""

from collections.abc import Mapping

BAND = 0.2
"""Relative distance, of the new limit, within which the one that runs is kept."""


def with_running_limit(
    wanted: Mapping[str, str], running: Mapping[str, str], limit: str, in_flight: float
) -> Mapping[str, str]:
    """The flags to write.

    Args:
        wanted: flags of the plan by name.
        running: flags that the configuration's groups run with; empty where none run.
        limit: name of the flag that bounds active sequences.
        in_flight: requests that the plan expects to run at once on one group.
    """
    if _without(limit, wanted) != _without(limit, running) or limit not in running:
        return wanted
    new, old = int(wanted[limit]), int(running[limit])
    kept = max(in_flight, new * (1 - BAND)) <= old <= new
    return {**wanted, limit: running[limit]} if kept else wanted


def _without(name: str, flags: Mapping[str, str]) -> Mapping[str, str]:
    return {other: value for other, value in flags.items() if other != name}
