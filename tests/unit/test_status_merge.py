"""What is written over a stored status, and what is not worth a write."""

from typing import Any

import pytest

from kvplan_operator.status.merge import merge, says_the_same
from kvplan_operator.status.quantise import quantise, settle

EARLY, LATE = "2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("value", "coarse"), [(0, 0), (999, 999), (1_234, 1_230), (99_951, 100_000), (-4_567, -4_570), (1_235, 1_240)]
)
def test_numbers_have_three_significant_digits(value: int, coarse: int) -> None:
    assert quantise(value) == coarse
    assert quantise(coarse) == coarse


SETTLED = {
    "a number within a tenth stays": (1_000, 1_100, 1_000),
    "one beyond moves, in three digits": (1_000, 1_123, 1_120),
    "a small number may be a unit off": (5, 6, 5),
    "two units off it moves": (5, 7, 7),
    "to zero it moves at once": (1, 0, 0),
    "from zero a unit is noise": (0, 1, 0),
    "from zero two are traffic": (0, 2, 2),
    "below zero the same holds": (-1_000, -1_050, -1_000),
}


@pytest.mark.parametrize("sentence", SETTLED)
def test_settle(sentence: str) -> None:
    stored, fresh, expected = SETTLED[sentence]
    assert settle(stored, fresh) == expected


def condition(status: str = "True", reason: str = "AsPlanned", message: str = "m", at: str = EARLY) -> dict[str, Any]:
    return {"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def status(**parts: Any) -> dict[str, Any]:
    return {"observedGeneration": 1, "conditions": [condition()]} | parts


MERGED: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "a measured number that hardly moved is not written": (
        {"samples": 1_000}, {"samples": 1_050}, {"samples": 1_000}),
    "an exact number is written at once": (
        {"reservationTokens": 1_000}, {"reservationTokens": 1_016}, {"reservationTokens": 1_016}),
    "a first number is written coarsely": ({}, {"samples": 12_345}, {"samples": 12_300}),
    "what is no longer said goes": ({"samples": 1_000}, {}, {}),
    "entries of a list are compared by name": (
        {"classes": [{"name": "a", "overflowMilli": 100}, {"name": "b", "overflowMilli": 200}]},
        {"classes": [{"name": "b", "overflowMilli": 209}, {"name": "a", "overflowMilli": 150}]},
        {"classes": [{"name": "b", "overflowMilli": 200}, {"name": "a", "overflowMilli": 150}]}),
    "counts of groups are exact": (
        {"groups": [{"configuration": "tp1", "ready": 20}]}, {"groups": [{"configuration": "tp1", "ready": 19}]},
        {"groups": [{"configuration": "tp1", "ready": 19}]}),
    "a curve stays while no point moved": (
        {"quantiles": [{"probabilityMilli": 500, "tokens": 100}, {"probabilityMilli": 1000, "tokens": 400}]},
        {"quantiles": [{"probabilityMilli": 500, "tokens": 105}, {"probabilityMilli": 1000, "tokens": 390}]},
        {"quantiles": [{"probabilityMilli": 500, "tokens": 100}, {"probabilityMilli": 1000, "tokens": 400}]}),
    "a curve is replaced as a whole": (
        {"quantiles": [{"probabilityMilli": 500, "tokens": 100}, {"probabilityMilli": 1000, "tokens": 400}]},
        {"quantiles": [{"probabilityMilli": 500, "tokens": 105}, {"probabilityMilli": 1000, "tokens": 800}]},
        {"quantiles": [{"probabilityMilli": 500, "tokens": 105}, {"probabilityMilli": 1000, "tokens": 800}]}),
    "the last solve is no reason for a write": (
        {"lastSolve": {"durationMilliseconds": 100}}, {"lastSolve": {"durationMilliseconds": 900}},
        {"lastSolve": {"durationMilliseconds": 100}}),
    "the last solve goes along with another": (
        {"lastSolve": {"durationMilliseconds": 100}, "reservationTokens": 16},
        {"lastSolve": {"durationMilliseconds": 900}, "reservationTokens": 32},
        {"lastSolve": {"durationMilliseconds": 900}, "reservationTokens": 32}),
    "a condition that holds on keeps its time": (
        {"conditions": [condition()]}, {"conditions": [condition(at=LATE)]}, {"conditions": [condition()]}),
    "a condition that turns takes the new time": (
        {"conditions": [condition()]}, {"conditions": [condition("False", at=LATE)]},
        {"conditions": [condition("False", at=LATE)]}),
    "another reason is written, at the old time": (
        {"conditions": [condition()]}, {"conditions": [condition(reason="RollingOut", at=LATE)]},
        {"conditions": [condition(reason="RollingOut")]}),
    "a message whose numbers hardly moved stays": (
        {"conditions": [condition(message="it saves 10.1 a second of 302")]},
        {"conditions": [condition(message="it saves 10.4 a second of 311", at=LATE)]},
        {"conditions": [condition(message="it saves 10.1 a second of 302")]}),
    "a new generation is written": ({"observedGeneration": 1}, {"observedGeneration": 2}, {"observedGeneration": 2}),
}  # fmt: skip


@pytest.mark.parametrize("sentence", MERGED)
def test_merge(sentence: str) -> None:
    stored, fresh, expected = MERGED[sentence]
    merged = merge(status(**stored), status(**fresh))
    assert merged == status(**expected)
    assert merge(merged, status(**fresh)) == merged


SAYINGS = {
    "the same words": ("a", "a", True),
    "numbers a little apart": ("4.05 of 10", "4.2 of 10", True),
    "numbers far apart": ("4 of 10", "5 of 10", False),
    "other words": ("4 of 10", "4 out of 10", False),
    "digits inside a name are words": ("tp1 on node-7", "tp2 on node-7", False),
    "times are words": ("until 2030-03-17T17:46:41Z", "until 2030-03-17T17:46:42Z", False),
    "digests are words": ("digest 1a2b3c", "digest 1a2b3d", False),
    "exponents are part of a number": ("cost 7.2e+05", "cost 7.3e+05", True),
    "exponents count": ("cost 7.2e+05", "cost 7.2e+04", False),
}


@pytest.mark.parametrize("sentence", SAYINGS)
def test_messages(sentence: str) -> None:
    stored, fresh, same = SAYINGS[sentence]
    assert says_the_same(stored, fresh) is same
