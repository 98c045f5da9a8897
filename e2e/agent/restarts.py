"""When a container that ended is started again.

Pure. The kubelet restarts at once after the first end, then after 10, 20, 40 … 300 seconds; ten minutes of life make it
forget. Seconds throughout.
"""

FIRST_SECONDS = 10.0
LONGEST_SECONDS = 300.0
FORGIVEN_AFTER_SECONDS = 600.0


def starts_again(restart_policy: str, exit_code: int) -> bool:
    """Return whether the restart policy starts a container again that ended with this code."""
    return restart_policy == "Always" or (restart_policy == "OnFailure" and exit_code != 0)


def pause(ends: int) -> float:
    """Return the seconds to wait after the n-th end in a row, counted from 1."""
    return 0.0 if ends < 2 else min(FIRST_SECONDS * 2.0 ** (ends - 2), LONGEST_SECONDS)
