"""Raw values to numbers, whole columns at a time; what fails is looked at one by one and named.

Inputs: a column of text, numbers, dates or None. Output: floats with NaN where there is none, and the
reason per bad place. Nothing is repaired: ``12 tokens``, ``1_000``, ``true`` and ``NaN`` are no numbers.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import numpy as np

from kvplan_cli.traces.errors import BadValueError
from kvplan_operator.model.trace import Floats

Reasons = dict[int, tuple[str, str]]
"""Place in the column → (kind of problem, the value shown)."""
MAX_TOKENS = 1e8
"""Longer prompts or outputs than this are damage, not data."""
MAX_SECONDS = 1e11
"""The year 5138 in seconds since 1970: later times are given in a smaller unit than stated."""
_SHOWN = 24


def token_counts(values: Sequence[object]) -> tuple[Floats, Reasons]:
    """Whole token counts from 0 to ``MAX_TOKENS``."""
    numbers, reasons = _numbers(values, _number)
    _refuse(reasons, numbers < 0, "negative tokens", values)
    _refuse(reasons, numbers > MAX_TOKENS, f"more than {MAX_TOKENS:.0e} tokens", values)
    with np.errstate(invalid="ignore"):
        _refuse(reasons, np.isfinite(numbers) & (numbers != np.floor(numbers)), "not a whole number", values)
    return numbers, reasons


def arrival_times(values: Sequence[object], seconds_per_unit: float | None) -> tuple[Floats, Reasons]:
    """Seconds; ``None`` as unit means ISO 8601 dates, taken as UTC where they name no zone."""
    if seconds_per_unit is None:
        return _numbers(values, _iso_seconds)
    numbers, reasons = _numbers(values, _number)
    seconds = numbers * seconds_per_unit
    _refuse(reasons, seconds < 0, "negative arrival time", values)
    _refuse(reasons, seconds > MAX_SECONDS, "arrival time too large for its unit", values)
    return seconds, reasons


def _refuse(reasons: Reasons, where: np.ndarray, kind: str, values: Sequence[object]) -> None:
    for place in np.flatnonzero(where).tolist():
        reasons.setdefault(place, (kind, _shown(values[place])))


def _numbers(values: Sequence[object], convert: Callable[[object], float]) -> tuple[Floats, Reasons]:
    fast = _fast(values) if convert is _number else None
    if fast is not None and np.isfinite(fast).all():
        return fast, {}
    numbers, reasons = np.full(len(values), np.nan), Reasons()
    for place, value in enumerate(values):
        try:
            numbers[place] = convert(value)
        except BadValueError as error:
            reasons[place] = (str(error), "" if value is None else _shown(value))
    return numbers, reasons


def _fast(values: Sequence[object]) -> Floats | None:
    """The column in one conversion, or None when it is not plainly all numbers."""
    kinds = set(map(type, values))
    if kinds == {str} and "_" in "".join(map(str, values)):
        return None
    if not (kinds == {str} or kinds <= {int, float}):
        return None
    try:
        return np.array(values, dtype=np.float64)
    except (ValueError, OverflowError):
        return None


def _number(value: object) -> float:
    if value is None or value == "":
        raise BadValueError("empty")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadValueError("not a number")
    if isinstance(value, str) and "_" in value:
        raise BadValueError("not a number")
    return _finite(value)


def _finite(value: str | float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = np.inf
    except ValueError:
        raise BadValueError("not a number") from None
    if not np.isfinite(number):
        raise BadValueError("NaN" if np.isnan(number) else "infinite or too large")
    return number


def _iso_seconds(value: object) -> float:
    if value is None or value == "":
        raise BadValueError("empty")
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).strip())
    except ValueError:
        raise BadValueError("not an ISO 8601 date and time") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
