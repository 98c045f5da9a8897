"""From a snapshot to planning inputs: the spec beats measurements, and measurements make a plannable problem."""

from typing import Any

import numpy as np
import pytest

from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.api.request_class_status import RequestClassStatus
from kvplan_operator.model.fleet_queries import Ask
from kvplan_operator.model.freshness import metrics_verdict
from kvplan_operator.model.observed import planning_inputs
from kvplan_operator.model.priors.resolve import Measurement
from kvplan_operator.model.remembered import remembered_lengths
from kvplan_operator.model.series import Answer, Unanswered
from kvplan_operator.model.snapshot import ClusterView, Measured
from kvplan_solver.errors import InvalidInput
from tests.measuring import good, look, measured_class_of, snapshot
from tests.planning import configuration, fleet, node, own_pod, request_class

CLUSTER = ClusterView(nodes=(node("a", 4),), pods=(own_pod("engine-0", gpus=1),))
BARE = {"name": "tp1", "tensorParallel": 1, "maxSequences": 16}
UNSTATED = fleet(configurations=[BARE, configuration("tp2", 2)])


def test_what_was_measured_makes_a_problem() -> None:
    problem = planning_inputs(snapshot(cluster=CLUSTER)).problem()
    (chat,) = problem.instance.classes
    assert (chat.arrival_rate, chat.input_tokens_mean, chat.input_tokens_p95) == (2.0, 500.0, 973)
    assert chat.input_tokens_max == 2048
    assert chat.output_lengths.size == 1000
    assert [group.configuration for group in problem.inventory.running] == ["tp1"]
    assert problem.inventory.gpus == 4


def test_the_spec_beats_measurements_of_a_class() -> None:
    chat = request_class("chat")
    problem = planning_inputs(snapshot(cluster=CLUSTER, classes=(chat,))).problem()
    assert problem.instance.classes[0].arrival_rate == 4.0
    assert problem.instance.classes[0].input_tokens_mean == 500
    assert problem.instance.classes[0].output_lengths.max() <= 400


def test_without_a_router_the_rates_of_the_spec_are_planned_with() -> None:
    given = snapshot(Measured(), cluster=CLUSTER, classes=(request_class("chat"),))
    assert planning_inputs(given).problem().instance.classes[0].arrival_rate == 4.0


def test_the_spec_beats_measurements_of_a_configuration() -> None:
    assert planning_inputs(snapshot(cluster=CLUSTER)).measured == {"tp1": Measurement()}
    measured = planning_inputs(snapshot(look(of=UNSTATED), fleet=UNSTATED, cluster=CLUSTER)).measured
    assert measured == {"tp1": Measurement(512, 0.0001, 0.02, 4.0)}


PARTLY: dict[str, tuple[dict[str, int], Measurement]] = {
    "capacity": ({"kvCapacityTokens": 600}, Measurement(None, 0.0001, 0.02, 4.0)),
    "prefill": ({"prefillTokensPerSecond": 5_000}, Measurement(512, None, 0.02, 4.0)),
    "decode": ({"decodeMicrosecondsPerToken": 9_000}, Measurement(512, 0.0001, None, 4.0)),
}


@pytest.mark.parametrize(("stated", "left"), PARTLY.values(), ids=PARTLY.keys())
def test_what_the_spec_leaves_open_is_measured(stated: dict[str, int], left: Measurement) -> None:
    one = fleet(configurations=[BARE | stated])
    assert planning_inputs(snapshot(look(of=one), fleet=one)).measured == {"tp1": left}


def test_a_stated_capacity_that_the_engines_contradict_is_remarked_on() -> None:
    (remark,) = planning_inputs(snapshot(cluster=CLUSTER)).remarks
    assert remark.startswith(
        "configuration tp1: its engines report 512 KV tokens, the spec's kvCapacityTokens of 64000"
    )


def test_a_stated_capacity_near_the_engines_is_not() -> None:
    one = fleet(configurations=[BARE | {"kvCapacityTokens": 520}])
    assert planning_inputs(snapshot(look(of=one), fleet=one)).remarks == ()


def remembering(points: list[tuple[int, int]], samples: int = 40) -> RequestClass:
    """A class whose status holds these (probabilityMilli, tokens)."""
    quantiles = [{"probabilityMilli": level, "tokens": tokens} for level, tokens in points]
    status = RequestClassStatus.model_validate({"quantiles": quantiles, "samples": samples})
    return measured_class_of().model_copy(update={"status": status})


REMEMBERING = remembering([(500, 100), (1000, 300)])
REFERENCE: dict[str, Any] = {"outputLengths": {"configMapRef": {"name": "lengths", "key": "samples"}}}


def config_map(content: str) -> dict[str, Any]:
    return {"metadata": {"name": "lengths", "namespace": "default"}, "data": {"samples": content}}


def test_lengths_of_a_config_map_come_before_measured_ones() -> None:
    cluster = ClusterView(nodes=CLUSTER.nodes, config_maps={"lengths": config_map("10\n20\n30\n")})
    given = snapshot(cluster=cluster, classes=(measured_class_of(**REFERENCE),))
    facts = planning_inputs(given).facts["chat"]
    assert np.array_equal(facts.output_lengths, [10, 20, 30])  # type: ignore[arg-type]
    assert facts.requests_per_second == 2.0


def test_a_config_map_that_is_not_there_is_not_replaced_by_other_lengths() -> None:
    given = snapshot(cluster=CLUSTER, classes=(measured_class_of(**REFERENCE),))
    with pytest.raises(InvalidInput, match="give the ConfigMap lengths"):
        planning_inputs(given).problem()


def test_an_idle_class_is_planned_with_the_lengths_its_status_remembers() -> None:
    idle = look(good(OUTPUT_TOKENS=Answer()))
    assert (
        planning_inputs(snapshot(idle, cluster=CLUSTER, classes=(REMEMBERING,))).facts["chat"].output_lengths
        is not None
    )
    measured = planning_inputs(snapshot(cluster=CLUSTER, classes=(REMEMBERING,))).facts["chat"].output_lengths
    assert measured is not None
    assert measured.max() > 300


@pytest.mark.parametrize(("samples", "reason"), [(30, "AsPlanned"), (29, "TooFewSamples")])
def test_remembered_lengths_are_as_good_as_the_samples_behind_them(samples: int, reason: str) -> None:
    idle = look(good(OUTPUT_TOKENS=Answer()))
    given = snapshot(idle, classes=(remembering([(500, 100), (1000, 300)], samples),))
    assert metrics_verdict(given)[1] == reason


REMEMBERED: dict[str, tuple[list[tuple[int, int]], bool]] = {
    "a whole distribution": ([(500, 100), (1000, 300)], True),
    "nothing": ([], False),
    "no maximum": ([(500, 100)], False),
    "lengths that fall": ([(500, 100), (1000, 50)], False),
}


@pytest.mark.parametrize(("points", "known"), REMEMBERED.values(), ids=REMEMBERED.keys())
def test_only_a_whole_distribution_is_remembered(points: list[tuple[int, int]], known: bool) -> None:
    assert (remembered_lengths(remembering(points)) is not None) == known


def test_stale_measurements_are_still_the_best_ones_known() -> None:
    stale = look(dict.fromkeys(Ask, Unanswered("down")), before=look())
    assert planning_inputs(snapshot(stale, cluster=CLUSTER)).problem().instance.classes[0].arrival_rate == 2.0


def test_a_class_nobody_measured_is_refused_with_the_remedy() -> None:
    with pytest.raises(InvalidInput, match="RequestClass chat"):
        planning_inputs(snapshot(Measured(), cluster=CLUSTER)).problem()


def test_classes_of_other_fleets_are_left_out() -> None:
    other = measured_class_of("other").model_copy(
        update={"metadata": measured_class_of("other").metadata.model_copy(update={"labels": {}})}
    )
    given = planning_inputs(snapshot(cluster=CLUSTER, classes=(measured_class_of(), other)))
    assert [c.metadata.name for c in given.classes] == ["chat"]
