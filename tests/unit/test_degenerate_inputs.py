"""Every row of 02-solver §6: extreme but legal inputs give a certified plan, illegal ones name the field."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from kvplan_solver.certificate import certify
from kvplan_solver.certified.method import solve_certified
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import Ambiguity, ClassInput, ConfigurationInput, Instance, clip_samples
from kvplan_solver.result import Options
from tests.builders import a_class, a_configuration, nodes

TWO = (a_configuration("tp1"), a_configuration("tp2", tensor_parallel=2, decode_seconds_per_token=0.006))


def _one(c: ClassInput, **changes: object) -> Instance:
    return Instance((c,), TWO, nodes(4, 4), **changes)  # type: ignore[arg-type]


def _narrow() -> Instance:
    narrow = a_configuration(kv_capacity_tokens=770, max_sequences=1)
    return Instance((a_class(),), (narrow,), nodes(8), headroom_milli=900)


def _twins() -> Instance:
    configurations = (TWO[0], dataclasses.replace(TWO[0], name="twin"))
    return Instance((a_class("a"), a_class("b")), configurations, nodes(4))


def _instant() -> ConfigurationInput:
    return a_configuration(prefill_seconds_per_token=0.0, decode_seconds_per_token=0.0)


LEGAL: list[tuple[str, Instance]] = [
    ("no arrivals", _one(a_class(arrival_rate=0.0))),
    ("one sample", _one(a_class(lengths=[100]))),
    ("all samples equal", _one(a_class(lengths=[100] * 20, radius=5.0))),
    ("all samples at 0", _one(a_class(lengths=[0, 0, 0], radius=1.0))),
    ("all samples at Lmax", _one(a_class(lengths=[512, 512], radius=1.0))),
    ("no ambiguity", _one(a_class(radius=0.0))),
    ("huge ambiguity", _one(a_class(radius=1e9))),
    ("huge ambiguity, every sample moves", _one(a_class(radius=1e9), ambiguity=Ambiguity.WASSERSTEIN_INF)),
    ("huge scale", _one(a_class(radius=1e9), ambiguity=Ambiguity.SCALE)),
    ("preemption costs nothing", _one(a_class(preemption_cost=0.0))),
    ("waste costs nothing", _one(a_class(waste_cost=0.0, preemption_cost=10.0))),
    ("preemption costs everything", _one(a_class(preemption_cost=1e6, rejection_weight=1e9))),
    ("the whole prompt is shared", _one(a_class(shared_prefix_tokens=100))),
    ("an objective of 0 seconds", _one(a_class(latency_slo_seconds=0.0))),
    ("no GPUs", Instance((a_class(),), TWO, nodes(0, 0))),
    ("no nodes", Instance((a_class(),), TWO, ())),
    ("one GPU", Instance((a_class(),), TWO, nodes(1))),
    ("prompts longer than every group", _one(a_class(input_tokens_p95=30_000, input_tokens_max=30_000))),
    ("the best reservation exceeds every budget, the prompt does not", _narrow()),
    ("demand far beyond capacity", _one(a_class(arrival_rate=1e6))),
    ("one class and one configuration", Instance((a_class(),), (a_configuration(),), nodes(2))),
    ("identical classes and configurations", _twins()),
    ("no headroom", _one(a_class(), headroom_milli=0)),
    ("service takes no time", Instance((a_class(),), (_instant(),), nodes(1))),
    ("blocks of one token", _one(a_class(), block_tokens=1)),
    ("blocks larger than a request", _one(a_class(), block_tokens=2048)),
    ("rejection costs nothing", _one(a_class(rejection_weight=0.0))),
    ("latency costs nothing", _one(a_class(latency_weight=0.0, latency_slo_seconds=0.0))),
]  # fmt: skip


@pytest.mark.parametrize(("why", "instance"), LEGAL, ids=[why for why, _ in LEGAL])
def test_an_extreme_but_legal_input_gives_a_certified_plan(why: str, instance: Instance) -> None:
    result = solve_certified(instance, Options())
    certificate = certify(instance, result, gap_target=Options().gap_target)
    assert certificate.holds, (why, certificate.violations)
    assert result.gap <= 0.02, why


@pytest.mark.parametrize(
    ("field", "build"),
    [
        ("arrival_rate", lambda: a_class(arrival_rate=-1.0)),
        ("arrival_rate", lambda: a_class(arrival_rate=float("nan"))),
        ("input_tokens_mean", lambda: a_class(input_tokens_mean=float("inf"))),
        ("max_output_tokens", lambda: a_class(max_output_tokens=0)),
        ("shared_prefix_tokens", lambda: a_class(shared_prefix_tokens=101)),
        ("input_tokens_p95", lambda: a_class(input_tokens_p95=300)),
        ("latency_slo_seconds", lambda: a_class(latency_slo_seconds=-0.1)),
        ("waste_cost", lambda: a_class(waste_cost=0.0, preemption_cost=0.0)),
        ("radius", lambda: a_class(radius=float("nan"))),
        ("output_lengths", lambda: a_class(lengths=[])),
        ("output_lengths", lambda: a_class(lengths=[1.0, float("nan")])),
        ("output_lengths", lambda: a_class(lengths=[-1.0, 2.0])),
        ("output_lengths", lambda: a_class(lengths=[513.0])),
        ("name", lambda: a_class("")),
        ("tensor_parallel", lambda: a_configuration(tensor_parallel=0)),
        ("kv_capacity_tokens", lambda: a_configuration(kv_capacity_tokens=-5)),
        ("service_seconds[chat]", lambda: a_configuration(service_seconds={"chat": -1.0})),
        ("free_gpus", lambda: nodes(-1)),
        ("max_utilisation", lambda: _one(a_class(), max_utilisation=1.0)),
        ("headroom_milli", lambda: _one(a_class(), headroom_milli=-1)),
        ("block_tokens", lambda: _one(a_class(), block_tokens=0)),
        ("name", lambda: Instance((a_class(), a_class()), TWO, nodes(1))),
        ("classes", lambda: Instance((), TWO, nodes(1))),
        ("configurations", lambda: Instance((a_class(),), (), nodes(1))),
    ],
)
def test_an_illegal_input_is_refused_with_the_fields_name(field: str, build: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput) as caught:
        build()
    assert caught.value.field == field
    assert caught.value.remedy


def test_samples_out_of_range_are_clipped_and_counted() -> None:
    clipped, count = clip_samples([700.0, 5.0, -3.0, 512.0], 512)
    assert clipped.tolist() == [0.0, 5.0, 512.0, 512.0]
    assert count == 2


def test_a_nan_sample_cannot_be_clipped() -> None:
    with pytest.raises(InvalidInput, match="NaN"):
        clip_samples(np.array([1.0, np.nan]), 512)
