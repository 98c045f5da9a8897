"""At rest nothing is written: statements about the merge for all statuses and all noise of five per cent."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kvplan_operator.status.merge import merge
from kvplan_operator.status.quantise import quantise, settle

numbers = st.integers(0, 10**12)
names = st.sampled_from(["chat", "code", "search"])
words = st.sampled_from(
    ["it saves 12.5 of 300", "it saves 13 of 300", "waits until 2030-01-01T00:00:00Z", "step 1 of 3"]
)


def entries(field: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    entry = st.fixed_dictionaries({"name": names, field: numbers})
    return st.lists(entry, max_size=3, unique_by=lambda made: made["name"])


conditions = st.lists(
    st.fixed_dictionaries({
        "type": st.sampled_from(["Ready", "Stalled", "MetricsFresh"]),
        "status": st.sampled_from(["True", "False", "Unknown"]),
        "reason": st.sampled_from(["AsPlanned", "Dwelling"]),
        "message": words,
        "lastTransitionTime": st.sampled_from(["2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"]),
    }),
    max_size=3, unique_by=lambda made: made["type"],
)  # fmt: skip
quantiles = st.lists(
    st.fixed_dictionaries({"probabilityMilli": st.sampled_from([250, 500, 1000]), "tokens": numbers}),
    max_size=3, unique_by=lambda made: made["probabilityMilli"],
)  # fmt: skip
statuses = st.fixed_dictionaries(
    {"observedGeneration": st.integers(0, 3)},
    optional={
        "conditions": conditions,
        "samples": numbers,
        "reservationTokens": numbers,
        "quantiles": quantiles,
        "observed": st.fixed_dictionaries({"classes": entries("overflowMilli")}),
        "lastSolve": st.fixed_dictionaries({"durationMilliseconds": numbers, "status": st.just("Optimal")}),
    },
)


@given(statuses, statuses)
def test_merging_twice_changes_nothing(stored: dict[str, Any], fresh: dict[str, Any]) -> None:
    once = merge(stored, fresh)
    assert merge(once, fresh) == once


@given(statuses)
def test_a_status_as_it_stands_is_not_written(fresh: dict[str, Any]) -> None:
    written = merge({}, fresh)
    assert merge(written, written) == written
    assert merge(written, fresh) == written


@given(st.integers(0, 10**9), st.floats(0.95, 1.05), st.floats(0.95, 1.05))
def test_a_load_measured_twice_within_five_per_cent_is_one_number(load: int, first: float, then: float) -> None:
    stored = quantise(round(load * first))
    assert settle(stored, round(load * then)) == stored
