"""Times as objects carry them (RFC 3339, UTC) and as decisions compare them (seconds since the epoch). Pure."""

from datetime import UTC, datetime


def timestamp(instant: float) -> str:
    """Seconds since the epoch as ``2026-01-31T12:00:00Z``; fractions are cut."""
    return datetime.fromtimestamp(int(instant), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def instant(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 time.

    Raises:
        ValueError: the text is no such time.
    """
    return datetime.fromisoformat(text).astimezone(UTC).timestamp()


def instant_or_zero(text: str) -> float:
    """The same; 0 where the text is no such time."""
    try:
        return instant(text)
    except ValueError:
        return 0.0
