"""Measurements move when they moved, and not because they are measured again."""

from typing import Any

import numpy as np
import pytest

from kvplan_operator.api.common import Quantile
from kvplan_operator.model.facts import ClassFacts
from kvplan_operator.model.priors.resolve import Measurement
from kvplan_operator.plan.settled import LEVELS, facts_in_status, moved, settled
from tests.planning import inputs, request_class

MOVES = {
    "five per cent below and five above are one load": (0.95, 1.05, False),
    "a tenth of the larger number is no move": (0.9, 1.0, False),
    "more is": (0.89, 1.0, True),
    "from nothing to something": (0.0, 1e-9, True),
    "from something to nothing": (1e-9, 0.0, True),
    "nothing is nothing": (0.0, 0.0, False),
}


@pytest.mark.parametrize("sentence", MOVES)
def test_moved(sentence: str) -> None:
    before, after, expected = MOVES[sentence]
    assert moved(before, after) is expected
    assert moved(after, before) is expected


def after(before: ClassFacts, fresh: ClassFacts) -> ClassFacts:
    return settled(inputs(facts={"chat": fresh}), {"chat": before}).facts["chat"]


def test_each_number_moves_on_its_own() -> None:
    before = ClassFacts(requests_per_second=4.0, prompt_mean=500.0, prompt_p95=1_000)
    found = after(before, ClassFacts(requests_per_second=4.2, prompt_mean=700.0, prompt_p95=980))
    assert (found.requests_per_second, found.prompt_mean, found.prompt_p95) == (4.0, 700.0, 1_000)


def test_what_was_unknown_or_no_longer_is_known_follows_the_fresh_look() -> None:
    found = after(ClassFacts(prompt_mean=500.0), ClassFacts(requests_per_second=4.0))
    assert (found.requests_per_second, found.prompt_mean) == (4.0, None)


def lengths(scale: float = 1.0) -> Any:
    return np.sort(np.random.default_rng(1).lognormal(5, 0.7, 400)) * scale


def test_lengths_stay_as_a_whole_until_a_quantile_moves() -> None:
    before, near, far = lengths(), lengths(1.05), lengths()
    far[380:] *= 1.5
    assert after(ClassFacts(output_lengths=before), ClassFacts(output_lengths=near)).output_lengths is before
    assert after(ClassFacts(output_lengths=before), ClassFacts(output_lengths=far)).output_lengths is far


def test_lengths_of_a_token_or_two_do_not_flutter() -> None:
    before, near = np.array([1.0, 2.0, 2.0]), np.array([2.0, 2.0, 3.0])
    assert after(ClassFacts(output_lengths=before), ClassFacts(output_lengths=near)).output_lengths is before


def test_speeds_of_configurations_settle_too() -> None:
    fresh = inputs(measured={"tp1": Measurement(decode_seconds_per_token=0.021, kv_capacity_tokens=64_000)})
    found = settled(fresh, {}, {"tp1": Measurement(decode_seconds_per_token=0.02, kv_capacity_tokens=32_000)})
    assert found.measured["tp1"] == Measurement(decode_seconds_per_token=0.02, kv_capacity_tokens=64_000)


def test_after_a_start_the_status_of_a_class_is_what_to_settle_on() -> None:
    samples = lengths()
    points = tuple(
        Quantile(probability_milli=round(1000 * level), tokens=round(np.quantile(samples, level))) for level in LEVELS
    )
    plain = request_class("chat")
    remembered = {"requests_per_second_milli": 4_000, "quantiles": points}
    stored = plain.model_copy(update={"status": plain.status.model_copy(update=remembered)})
    before = facts_in_status((stored, request_class("code")))
    assert before["chat"].requests_per_second == 4.0
    assert before["code"].requests_per_second is None
    found = after(before["chat"], ClassFacts(requests_per_second=4.1, output_lengths=samples))
    assert found.output_lengths is before["chat"].output_lengths
