"""Slots under any coming and going of pods: unique, stable, the lowest free number, and no memory but the index."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan_operator.route.engine_pods import EnginePod
from kvplan_operator.route.slots import PlannedGroups, PublishedSlot, SlotState, next_slots, slots_from_wire

CONFIGURATIONS = ("tp1", "tp2")
PLANNED = {"tp1": PlannedGroups(2, 1_000), "tp2": PlannedGroups(1, 2_000)}

STEPS = st.lists(
    st.tuples(st.sampled_from(("come", "go", "end", "ready")), st.sampled_from(CONFIGURATIONS), st.integers(0, 3)),
    max_size=40,
)


def pod(number: int, configuration: str) -> EnginePod:
    return EnginePod(
        f"uid-{number}", f"pod-{number}", configuration, f"10.0.0.{number}:8000", True, created=f"{number:04}"
    )


def changed(pods: list[EnginePod], action: str, configuration: str, which: int, step: int) -> list[EnginePod]:
    """The pods after one event: one comes, is told to go, is gone, or changes its readiness."""
    if action == "come":
        return [*pods, pod(step, configuration)]
    if not pods:
        return pods
    chosen = pods[which % len(pods)]
    others = [p for p in pods if p is not chosen]
    if action == "end":
        return others
    fields = {"terminating": True} if action == "go" else {"ready": not chosen.ready}
    return sorted([*others, EnginePod(**(vars(chosen) | fields))], key=lambda p: p.order)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_slots_are_unique_stable_and_lowest_free(steps: list[tuple[str, str, int]]) -> None:
    slots: tuple[PublishedSlot, ...] = ()
    pods: list[EnginePod] = []
    for step, (action, configuration, which) in enumerate(steps):
        pods = changed(pods, action, configuration, which, step)
        # What a new leader reads is all that is carried from one round to the next.
        before = slots_from_wire([slot.to_wire() for slot in slots])
        slots = next_slots(before, pods, PLANNED)
        check_unique(slots, pods)
        check_stable(before, slots, pods)
        check_lowest(before, slots)
        assert next_slots(slots, pods, PLANNED) == slots


def check_unique(slots: tuple[PublishedSlot, ...], pods: list[EnginePod]) -> None:
    assert len({slot.name for slot in slots}) == len(slots)
    holders = [slot.pod_uid for slot in slots if slot.pod_uid]
    assert len(set(holders)) == len(holders)
    staying = {p.uid: p for p in pods if not p.terminating}
    assert set(staying) <= set(holders)
    serving = {slot.pod_uid for slot in slots if slot.state is SlotState.SERVING}
    assert serving == {uid for uid, p in staying.items() if p.ready}


def check_stable(before: tuple[PublishedSlot, ...], slots: tuple[PublishedSlot, ...], pods: list[EnginePod]) -> None:
    """Who stays keeps its slot."""
    now = {slot.pod_uid: slot.name for slot in slots if slot.pod_uid}
    staying = {p.uid for p in pods if not p.terminating}
    assert all(now[slot.pod_uid] == slot.name for slot in before if slot.pod_uid in staying)


def check_lowest(before: tuple[PublishedSlot, ...], slots: tuple[PublishedSlot, ...]) -> None:
    """No newcomer stands above a free number."""
    known = {slot.pod_uid for slot in before}
    for slot in slots:
        if slot.pod_uid and slot.pod_uid not in known:
            held = {other.number for other in slots if other.configuration == slot.configuration and other.pod_uid}
            assert set(range(slot.number)) <= held
