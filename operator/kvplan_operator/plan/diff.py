"""What changes between two plans, as rows with a sentence each: groups by node, flags, and what requests see.

Inputs: two RoutingPlans of one fleet, the older one possibly absent. Output: a frozen ``PlanDiff``. Rows are
*cold* when pods must start or stop, *hot* when routers alone change. Counts what has to restart. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from kvplan_operator.api.routing_plan import ClassPlan, Group, RoutingPlan
from kvplan_solver.errors import InvalidInput

T = TypeVar("T")
Stages = tuple[str, ...]
_ANY_NODE: Stages = ("any node",)


class Change(StrEnum):
    """What kind of change a row is."""

    GROUP_ADDED = "GroupAdded"
    GROUP_REMOVED = "GroupRemoved"
    GROUP_MOVED = "GroupMoved"
    FLAG = "Flag"
    RESERVATION = "Reservation"
    SHARE = "Share"
    CACHING = "Caching"
    ADMISSION = "Admission"
    CLASS_ADDED = "ClassAdded"
    CLASS_REMOVED = "ClassRemoved"

    @property
    def cold(self) -> bool:
        """Whether pods must start or stop for it."""
        return self in (Change.GROUP_ADDED, Change.GROUP_REMOVED, Change.GROUP_MOVED, Change.FLAG)


@dataclass(frozen=True)
class DiffRow:
    """One difference.

    Attributes:
        change: its kind.
        subject: the configuration, or the class and the configuration.
        old: before, empty where there was nothing.
        new: after, empty where nothing is left.
        sentence: the same for people.
        pods: pods that start anew or stop because of it.
    """

    change: Change
    subject: str
    old: str
    new: str
    sentence: str
    pods: int = 0

    @property
    def cold(self) -> bool:
        """Whether pods must start or stop for it."""
        return self.change.cold


@dataclass(frozen=True)
class PlanDiff:
    """All differences, cold ones first.

    Attributes:
        old: name of the older plan, empty when there is none.
        new: name of the newer plan.
        rows: the differences.
        started: pods that start: added and moved groups, and groups that get other flags.
        stopped: pods that stop for good.
        kept: pods that go on undisturbed.
    """

    old: str
    new: str
    rows: tuple[DiffRow, ...]
    started: int
    stopped: int
    kept: int

    @property
    def restarted(self) -> int:
        """Pods that load a model because of the change."""
        return self.started

    @property
    def empty(self) -> bool:
        """Whether the two decide the same."""
        return not self.rows

    @property
    def hot_only(self) -> bool:
        """Whether routers alone change."""
        return bool(self.rows) and not any(row.cold for row in self.rows)


def diff_plans(old: RoutingPlan | None, new: RoutingPlan) -> PlanDiff:
    """The differences from one plan to another.

    Raises:
        InvalidInput: the plans are of different fleets.
    """
    if old is not None and old.spec.fleet_name != new.spec.fleet_name:
        subject = f"RoutingPlan {old.metadata.name}"
        remedy = f"compare plans of one fleet, here {new.spec.fleet_name}"
        raise InvalidInput(subject, "spec.fleetName", old.spec.fleet_name, remedy)
    groups = [_Groups(before, after) for before, after in _paired(_groups(old), _groups(new))]
    cold = [row for pair in groups for row in pair.rows()]
    hot = [row for before, after in _paired(_classes(old), _classes(new)) for row in _class_rows(before, after)]
    return PlanDiff(
        old=old.metadata.name if old else "",
        new=new.metadata.name,
        rows=(*cold, *hot),
        started=sum(pair.started for pair in groups),
        stopped=sum(pair.stopped for pair in groups),
        kept=sum(pair.kept for pair in groups),
    )


def _groups(plan: RoutingPlan | None) -> dict[str, Group]:
    return {g.configuration: g for g in plan.spec.groups if g.replicas} if plan else {}


def _classes(plan: RoutingPlan | None) -> dict[str, ClassPlan]:
    return {c.name: c for c in plan.spec.classes} if plan else {}


def _paired(old: Mapping[str, T], new: Mapping[str, T]) -> Iterator[tuple[T | None, T | None]]:
    for name in sorted({*old, *new}):
        yield old.get(name), new.get(name)


class _Groups:
    """The groups of one configuration before and after."""

    def __init__(self, old: Group | None, new: Group | None) -> None:
        self.old, self.new = old, new
        self.name = (old or new).configuration  # type: ignore[union-attr]
        before, after = _places(old), _places(new)
        stay, gone, come = before & after, before - after, after - before
        self.staying = sorted(stay.elements())
        leaving, coming = sorted(gone.elements()), sorted(come.elements())
        moves = min(len(leaving), len(coming))
        self.moved = list(zip(leaving[:moves], coming[:moves], strict=True))
        self.removed, self.added = leaving[moves:], coming[moves:]
        self.flags = list(_flag_changes(old, new)) if old and new else []

    @property
    def started(self) -> int:
        """Pods that start."""
        anew = [*self.added, *(after for _, after in self.moved), *(self.staying if self.flags else ())]
        return sum(_pods(stages) for stages in anew)

    @property
    def stopped(self) -> int:
        """Pods that stop and are not replaced."""
        return sum(_pods(stages) for stages in self.removed)

    @property
    def kept(self) -> int:
        """Pods that go on."""
        return 0 if self.flags else sum(_pods(stages) for stages in self.staying)

    def rows(self) -> Iterator[DiffRow]:
        """Removed, moved, added, then flags."""
        for places, count in _counted(self.removed):
            text = f"{self.name}: {_number(count)} less on {places}"
            yield DiffRow(Change.GROUP_REMOVED, self.name, places, "", text, count)
        for origin, target in self.moved:
            text = f"{self.name}: a group moves from {_text(origin)} to {_text(target)}"
            yield DiffRow(Change.GROUP_MOVED, self.name, _text(origin), _text(target), text, _pods(target))
        for places, count in _counted(self.added):
            text = f"{self.name}: {_number(count)} more on {places}"
            yield DiffRow(Change.GROUP_ADDED, self.name, "", places, text, count)
        staying = sum(_pods(stages) for stages in self.staying)
        for flag, before, after in self.flags:
            text = f"{self.name}: --{flag} changes from {before or 'unset'} to {after or 'unset'}"
            yield DiffRow(Change.FLAG, f"{self.name} --{flag}", before, after, text, staying)


def _places(group: Group | None) -> Counter[Stages]:
    if group is None:
        return Counter()
    named = Counter(placement.stages for placement in group.placements)
    return named or Counter({_ANY_NODE: group.replicas})


def _counted(places: Iterable[Stages]) -> list[tuple[str, int]]:
    return sorted(Counter(_text(stages) for stages in places).items())


def _text(stages: Stages) -> str:
    return "+".join(dict.fromkeys(stages))


def _pods(stages: Stages) -> int:
    """One pod per node of a group."""
    return len(set(stages))


def _number(count: int) -> str:
    return "one group" if count == 1 else f"{count} groups"


def _flag_changes(old: Group, new: Group) -> Iterator[tuple[str, str, str]]:
    before = {flag.name: flag.value or "set" for flag in old.engine_flags}
    after = {flag.name: flag.value or "set" for flag in new.engine_flags}
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield name, before.get(name, ""), after.get(name, "")


def _class_rows(old: ClassPlan | None, new: ClassPlan | None) -> Iterator[DiffRow]:
    if old is None and new is not None:
        text = f"{new.name}: is planned, {_share(new.admit_milli)} admitted at {new.reservation_tokens} tokens"
        yield DiffRow(Change.CLASS_ADDED, new.name, "", str(new.admit_milli), text)
    elif old is not None and new is None:
        yield DiffRow(Change.CLASS_REMOVED, old.name, str(old.admit_milli), "", f"{old.name}: is no longer planned")
    elif old is not None and new is not None:
        yield from _changed_class(old, new)


def _changed_class(old: ClassPlan, new: ClassPlan) -> Iterator[DiffRow]:
    if old.reservation_tokens != new.reservation_tokens:
        before, after = old.reservation_tokens, new.reservation_tokens
        text = f"{new.name}: reserves {after} instead of {before} tokens a request"
        yield DiffRow(Change.RESERVATION, new.name, str(before), str(after), text)
    if old.reserved_prompt_tokens != new.reserved_prompt_tokens:
        was, now = (str(c.reserved_prompt_tokens or "no") for c in (old, new))
        text = f"{new.name}: {now} tokens of a reservation are for the prompt instead of {was}"
        yield DiffRow(Change.RESERVATION, new.name, was, now, text)
    if old.admit_milli != new.admit_milli:
        text = f"{new.name}: {_share(new.admit_milli)} is admitted instead of {_share(old.admit_milli)}"
        yield DiffRow(Change.ADMISSION, new.name, str(old.admit_milli), str(new.admit_milli), text)
    yield from _share_rows(old, new)
    yield from _caching_rows(old, new)


def _share_rows(old: ClassPlan, new: ClassPlan) -> Iterator[DiffRow]:
    before = {route.configuration: route.share_milli for route in old.routes}
    after = {route.configuration: route.share_milli for route in new.routes}
    for name in sorted({*before, *after}):
        was, becomes = before.get(name, 0), after.get(name, 0)
        if was != becomes:
            text = f"{new.name}: {_share(becomes)} goes to {name} instead of {_share(was)}"
            yield DiffRow(Change.SHARE, f"{new.name} on {name}", str(was), str(becomes), text)


def _caching_rows(old: ClassPlan, new: ClassPlan) -> Iterator[DiffRow]:
    before, after = set(old.prefix_cached_on), set(new.prefix_cached_on)
    for name in sorted(before ^ after):
        starts = name in after
        text = f"{new.name}: {name} {'keeps' if starts else 'no longer keeps'} its shared prefix"
        words = ("", "cached") if starts else ("cached", "")
        yield DiffRow(Change.CACHING, f"{new.name} on {name}", *words, text)


def _share(milli: int) -> str:
    return f"{milli / 10:g} %"
