"""The vocabulary of conditions, and the one setter."""

import pytest

from kvplan_operator.api.common import Condition, ConditionStatus
from kvplan_operator.api.conditions import (
    CLASS_CONDITIONS,
    FLEET_CONDITIONS,
    PLAN_CONDITIONS,
    ConditionReason,
    ConditionType,
    Explained,
    with_condition,
)

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def ready(status: ConditionStatus, now: str, before: tuple[Condition, ...] = ()) -> tuple[Condition, ...]:
    return with_condition(before, ConditionType.READY, status, ConditionReason.AS_PLANNED, "m", generation=2, now=now)


@pytest.mark.parametrize("words", [ConditionType, ConditionReason])
def test_every_word_is_camel_case_and_explained_in_one_sentence(words: type[Explained]) -> None:
    for word in words:
        assert word.isalnum()
        assert word[0].isupper()
        assert word.sentence[0].isupper() or word.sentence.startswith(("spec.", "replan."))
        assert word.sentence.endswith(".")


def test_every_type_belongs_to_a_kind_and_every_kind_follows_kstatus() -> None:
    assert {*FLEET_CONDITIONS, *CLASS_CONDITIONS, *PLAN_CONDITIONS} == set(ConditionType)
    for kind in (FLEET_CONDITIONS, CLASS_CONDITIONS, PLAN_CONDITIONS):
        assert kind[:3] == (ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED)


def test_the_time_moves_only_when_the_status_changes() -> None:
    first = ready(ConditionStatus.TRUE, EARLY)
    same = ready(ConditionStatus.TRUE, LATE, first)
    changed = ready(ConditionStatus.FALSE, LATE, same)
    assert [c[0].last_transition_time for c in (first, same, changed)] == [EARLY, EARLY, LATE]


def test_conditions_stay_ordered_by_type_and_unique() -> None:
    before = ready(ConditionStatus.TRUE, EARLY)
    both = with_condition(
        before, ConditionType.CONTENDED, ConditionStatus.FALSE, ConditionReason.AS_PLANNED, "",
        generation=2, now=LATE,
    )  # fmt: skip
    assert [condition.type for condition in ready(ConditionStatus.FALSE, LATE, both)] == [
        "Contended",
        "Ready",
    ]


def test_a_long_message_is_cut_to_what_the_schema_allows() -> None:
    conditions = with_condition(
        (), ConditionType.STALLED, ConditionStatus.TRUE, ConditionReason.SOLVER_FAILED, "x" * 5000,
        generation=1, now=EARLY,
    )  # fmt: skip
    assert len(conditions[0].message) == 1024
