"""The time as Kubernetes writes it."""

import datetime as dt


def now() -> str:
    """Return the time with seconds, as in a pod's status."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def now_exactly() -> str:
    """Return the time with microseconds, as in a Lease."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
