"""Whether cold changes may start now: the weekly window of ``spec.rollout.window``.

Input: a ``GateInput``. Output: a ``Refusal`` with the next opening, or None. Days and times are local to the
window's zone, changes of summer time included; a window may reach past midnight. Pure: the zone data of the system
or of the tzdata package is read, nothing else.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.fleet_enums import Weekday
from kvplan_operator.api.fleet_operation import Window
from kvplan_operator.gate.gate_input import GateInput
from kvplan_operator.gate.verdict import Refusal
from kvplan_operator.model.instants import timestamp

_DAYS = tuple(Weekday)


def window_open(plan: GateInput) -> Refusal | None:
    """A cold change starts only while the window is open."""
    window = plan.fleet.spec.rollout.window
    if window is None or not plan.cold:
        return None
    try:
        zone = ZoneInfo(window.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a directory such as Europe is an OSError
        message = f"rollout.window.timeZone is {window.time_zone!r}: use a name of the tz database, such as Etc/UTC"
        return Refusal(ConditionType.PLAN_ACCEPTED, ConditionReason.OUTSIDE_WINDOW, message, stalled=True)
    openings = list(_openings(window, zone, plan.now))
    if any(start <= plan.now < start + window.duration_seconds for start in openings):
        return None
    following = min(start for start in openings if start > plan.now)
    message = f"cold changes wait for rollout.window, which opens at {timestamp(following)}"
    return Refusal(ConditionType.PLAN_ACCEPTED, ConditionReason.OUTSIDE_WINDOW, message)


def _openings(window: Window, zone: ZoneInfo, now: float) -> Iterator[float]:
    """When it opens from yesterday until a week and a day from now, seconds since the epoch."""
    hour, minute = map(int, window.start.split(":"))
    today = datetime.fromtimestamp(now, UTC).astimezone(zone)
    for day in range(-2, 9):
        date = today.date() + timedelta(days=day)
        if not window.days or _DAYS[date.weekday()] in window.days:
            yield datetime(date.year, date.month, date.day, hour, minute, tzinfo=zone).timestamp()
