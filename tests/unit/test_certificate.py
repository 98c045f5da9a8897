"""The certificate rejects every mutated result and names the constraint that the mutation breaks."""

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest

from kvplan_solver.certificate import Check, certify
from kvplan_solver.certified.method import solve_certified
from kvplan_solver.instance import GroupPlacement, Instance, NodeInput
from kvplan_solver.result import CostParts, Options, Result, Status
from tests.builders import a_class, a_configuration

CHAT, CODE = 0, 1
ONE, TWO, PIPE, SMALL = 0, 1, 2, 3


def _instance() -> Instance:
    return Instance(
        (
            a_class("chat", arrival_rate=20.0, shared_prefix_tokens=96, latency_slo_seconds=1.0, radius=20.0),
            a_class("code", arrival_rate=6.0, latency_slo_seconds=3.0),
        ),
        (
            a_configuration("one", gpu_product="A"),
            a_configuration("two", tensor_parallel=2, decode_seconds_per_token=0.006, gpu_product="A"),
            a_configuration("pipe", tensor_parallel=1, pipeline_parallel=2, gpu_product="A"),
            a_configuration("small", kv_capacity_tokens=600, gpu_product="A"),
        ),
        (NodeInput("n0", 4, "A"), NodeInput("n1", 4, "A"), NodeInput("n2", 8, "B")),
        max_gpus=8,
    )


@pytest.fixture(scope="module")
def solved() -> tuple[Instance, Result]:
    instance = _instance()
    result = solve_certified(instance, Options())
    assert certify(instance, result).holds
    return instance, result


def _set(result: Result, **changes: object) -> Result:
    return dataclasses.replace(result, **changes)  # type: ignore[arg-type]


def _routing(result: Result, i: int, k: int, share: float) -> Result:
    routing = result.routing.copy()
    routing[i, k] = share
    return _set(result, routing=routing)


def _costs(result: Result, **changes: float) -> Result:
    return _set(result, costs=dataclasses.replace(result.costs, **changes))


def _placed(result: Result, *placements: GroupPlacement) -> Result:
    return _set(result, placements=placements)


def _groups(result: Result, k: int, count: float) -> Result:
    groups: list[float] = list(result.groups)
    groups[k] = count
    return _set(result, groups=tuple(groups))


def _reservation(result: Result, i: int, tokens: float) -> Result:
    values: list[float] = list(result.reservation_tokens)
    values[i] = tokens
    return _set(result, reservation_tokens=tuple(values))


def _cached(result: Result, i: int, k: int) -> Result:
    cached = result.cached.copy()
    cached[i, k] = True
    return _set(result, cached=cached)


def _crowded(result: Result) -> Result:
    """All groups of one node on the other."""
    return _placed(result, *(dataclasses.replace(p, stages=("n0",) * len(p.stages)) for p in result.placements))


def _moved(result: Result, node: str) -> Result:
    first, *rest = result.placements
    return _placed(result, dataclasses.replace(first, stages=(node,) * len(first.stages)), *rest)


def _one_group_only(result: Result) -> Result:
    """Everything on one group of 'one', the rest switched off."""
    routing = np.zeros_like(result.routing)
    routing[:, ONE] = 1.0
    cached = np.zeros_like(result.cached)
    return _set(
        result, groups=(1, 0, 0, 0), placements=(GroupPlacement("one", ("n0",)),), routing=routing, cached=cached
    )


def _small_group(result: Result) -> Result:
    routing = np.zeros_like(result.routing)
    routing[CHAT, SMALL] = 0.01
    placements = (GroupPlacement("small", ("n0",)),)
    return _set(result, groups=(0, 0, 0, 1), placements=placements, routing=routing)


def _spread_pipe(result: Result) -> Result:
    placements = (*result.placements, GroupPlacement("pipe", ("n0", "n1")))
    return _set(_groups(result, PIPE, 1), placements=placements)


MUTATIONS: list[tuple[str, Callable[[Result], Result], Check]] = [
    ("a group count is missing", lambda r: _set(r, groups=r.groups[:-1]), Check.SHAPE),
    ("a reservation is missing", lambda r: _set(r, reservation_tokens=r.reservation_tokens[:1]), Check.SHAPE),
    ("the routing has a class too few", lambda r: _set(r, routing=r.routing[:1]), Check.SHAPE),
    ("the caching matrix is transposed", lambda r: _set(r, cached=r.cached.T), Check.SHAPE),
    ("a delay is missing", lambda r: _set(r, slo_excess_seconds=()), Check.SHAPE),
    ("a share is NaN", lambda r: _routing(r, CHAT, ONE, math.nan), Check.SHAPE),
    ("a delay is infinite", lambda r: _set(r, slo_excess_seconds=(math.inf, 0.0)), Check.SHAPE),
    ("a cost is NaN", lambda r: _costs(r, gpu=math.nan), Check.SHAPE),
    ("a count is negative", lambda r: _groups(r, SMALL, -1), Check.GROUPS),
    ("a count is half a group", lambda r: _groups(r, SMALL, 0.5), Check.GROUPS),
    ("more GPUs than the budget", lambda r: _groups(r, ONE, 20), Check.GPU_BUDGET),
    ("a group more than placements", lambda r: _groups(r, SMALL, r.groups[SMALL] + 1), Check.PLACEMENT_COUNT),
    ("a placement is dropped", lambda r: _placed(r, *r.placements[1:]), Check.PLACEMENT_COUNT),
    ("a placement is doubled", lambda r: _placed(r, *r.placements, r.placements[0]), Check.PLACEMENT_COUNT),
    (
        "a placement of an unknown configuration",
        lambda r: _placed(r, *r.placements, GroupPlacement("huge", ("n0",))),
        Check.PLACEMENT_COUNT,
    ),
    (
        "a stage too many",
        lambda r: _placed(r, dataclasses.replace(r.placements[0], stages=("n0", "n0")), *r.placements[1:]),
        Check.PLACEMENT_COUNT,
    ),
    ("a group on a node that is not there", lambda r: _moved(r, "n9"), Check.PLACEMENT_NODE),
    ("a group on the wrong product", lambda r: _moved(r, "n2"), Check.PLACEMENT_NODE),
    ("a group across nodes that may not be", _spread_pipe, Check.PLACEMENT_STAGE),
    ("all groups on one node", _crowded, Check.NODE_FIT),
    ("a negative share", lambda r: _routing(r, CHAT, SMALL, -0.1), Check.ROUTING_RANGE),
    ("a share above one", lambda r: _routing(r, CHAT, ONE, 1.5), Check.ROUTING_RANGE),
    ("shares above one in all", lambda r: _routing(r, CHAT, SMALL, 0.5), Check.ROUTING_SUM),
    (
        "a share to a configuration without groups",
        lambda r: _routing(r, CHAT, SMALL, 0.1),
        Check.ROUTING_TO_NOTHING,
    ),
    ("a class whose longest request is too long", _small_group, Check.MAX_LENGTH),
    ("a reservation of half a block", lambda r: _reservation(r, CHAT, 328), Check.RESERVATION_BLOCK),
    ("a reservation below the prompt", lambda r: _reservation(r, CHAT, 112), Check.RESERVATION_RANGE),
    ("a reservation beyond the longest answer", lambda r: _reservation(r, CHAT, 1600), Check.RESERVATION_RANGE),
    ("a cached prefix that does not exist", lambda r: _cached(r, CODE, ONE), Check.CACHING),
    ("a prefix cached on no group", lambda r: _cached(r, CHAT, SMALL), Check.CACHING),
    ("a request larger than the budget", _small_group, Check.FIT),
    ("everything on one group fills its memory", _one_group_only, Check.MEMORY),
    ("everything on one group overloads it", _one_group_only, Check.UTILISATION),
    ("a delay stated too small", lambda r: _set(r, slo_excess_seconds=(-1.0, 0.0)), Check.SLO_EXCESS),
    ("a delay stated too large", lambda r: _set(r, slo_excess_seconds=(9.0, 0.0)), Check.SLO_EXCESS),
    ("reservation cost understated", lambda r: _costs(r, reservation=r.costs.reservation * 0.9), Check.COSTS),
    ("GPU cost invented", lambda r: _costs(r, gpu=3.0), Check.COSTS),
    ("latency cost invented", lambda r: _costs(r, latency=r.costs.latency + 1), Check.COSTS),
    ("rejection cost invented", lambda r: _costs(r, rejection=1.0), Check.COSTS),
    ("another reservation at the old price", lambda r: _reservation(r, CODE, 640), Check.COSTS),
    ("a bound above the objective", lambda r: _set(r, lower_bound=r.objective * 1.01), Check.LOWER_BOUND),
    ("a bound that is NaN", lambda r: _set(r, lower_bound=math.nan), Check.LOWER_BOUND),
    (
        "a bound above the cost of doing nothing",
        lambda r: _set(r, costs=CostParts(0, 0, 0, 1e9), lower_bound=1e8),
        Check.LOWER_BOUND,
    ),
    (
        "Optimal without a bound",
        lambda r: _set(r, status=Status.OPTIMAL, lower_bound=-math.inf),
        Check.STATUS,
    ),
    (
        "Optimal with a gap beyond the target",
        lambda r: _set(r, status=Status.OPTIMAL, lower_bound=r.objective * 0.5),
        Check.STATUS,
    ),
]


@pytest.mark.parametrize(("why", "mutate", "check"), MUTATIONS, ids=[m[0] for m in MUTATIONS])
def test_a_mutated_result_is_rejected_by_the_right_check(
    solved: tuple[Instance, Result], why: str, mutate: Callable[[Result], Result], check: Check
) -> None:
    instance, result = solved
    certificate = certify(instance, mutate(result), gap_target=0.001)
    assert not certificate.holds, why
    assert check in {violation.check for violation in certificate.violations}, certificate.violations


def test_there_are_enough_mutations_and_every_check_has_one() -> None:
    assert len(MUTATIONS) >= 30
    assert {check for _, _, check in MUTATIONS} == set(Check)


def test_a_floor_on_gpus_is_checked(solved: tuple[Instance, Result]) -> None:
    instance, result = solved
    used = sum(z * k.gpus for z, k in zip(result.groups, instance.configurations, strict=True))
    raised = dataclasses.replace(instance, min_gpus=8)
    violated = {v.check for v in certify(raised, result).violations}
    assert (Check.GPU_BUDGET in violated) is (used < 8)


def test_rates_that_were_measured_anew_may_use_a_little_of_the_headroom_and_no_more(
    solved: tuple[Instance, Result],
) -> None:
    instance, result = solved
    used = next(k for k, groups in enumerate(result.groups) if groups)
    (needed,) = (v for v in certify(_with_capacity(instance, used, 1), result).violations if v.check is Check.MEMORY)
    tight = _with_capacity(instance, used, round(float(needed.message.split()[0]) / 1.03))
    broken = [
        Check.MEMORY in {v.check for v in certify(tight, result, drift=drift).violations} for drift in (0.0, 0.01, 0.05)
    ]
    assert broken == [True, True, False]
    bare = dataclasses.replace(tight, headroom_milli=0)
    assert certify(bare, result, drift=0.05).violations == certify(bare, result).violations


def _with_capacity(instance: Instance, k: int, tokens: int) -> Instance:
    configurations = list(instance.configurations)
    configurations[k] = dataclasses.replace(configurations[k], kv_capacity_tokens=tokens)
    return dataclasses.replace(instance, configurations=tuple(configurations))
