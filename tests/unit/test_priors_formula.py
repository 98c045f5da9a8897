"""The formula prior against figures worked out by hand, and against the shipped estimates."""

from dataclasses import replace

import pytest

from kvplan_operator.api.fleet_engine import Model
from kvplan_operator.api.fleet_enums import WeightDtype
from kvplan_operator.model.priors.fit import curve_error
from kvplan_operator.model.priors.formula import (
    Assumptions,
    Communication,
    Group,
    communication_seconds,
    default_max_sequences,
    formula_curve,
    formula_speeds,
    free_bytes,
    kv_capacity_tokens,
    token_compute_seconds,
)
from kvplan_operator.model.priors.gpus import find_gpu
from kvplan_operator.model.priors.models import resolve_model
from kvplan_operator.model.priors.profile import Profile, bundled_snapshot

PLAIN = Assumptions(
    memory_utilisation=0.9, reserve_bytes=5e9, compute_efficiency=0.5, bandwidth_efficiency=0.8,
    all_reduce_seconds=1e-5, dispatch_seconds_per_layer=0.0, context_tokens=0.0,
)  # fmt: skip


def group(tensor_parallel: int = 1, pipeline_parallel: int = 1, model: str = "Qwen/Qwen3-32B") -> Group:
    return Group(resolve_model(Model(name=model)), find_gpu("NVIDIA-H200"), tensor_parallel, pipeline_parallel)


def test_capacity_is_what_weights_and_buffers_leave_divided_by_the_bytes_of_a_token() -> None:
    left = (141 * 2**30 * 0.9 - 5e9) * 2 - 65_524_246_528
    assert free_bytes(group(2), PLAIN) == pytest.approx(left)
    assert kv_capacity_tokens(group(2), PLAIN) == int(left / (2 * 64 * 8 * 128 * 2))


def test_stages_share_weights_and_cache_like_ranks_do() -> None:
    assert kv_capacity_tokens(group(2, 2), PLAIN) == kv_capacity_tokens(group(4), PLAIN)


def test_weights_that_do_not_fit_leave_no_capacity() -> None:
    assert kv_capacity_tokens(group(1, model="meta-llama/Llama-3.3-70B-Instruct"), PLAIN) <= 0


def test_a_prompt_token_costs_two_operations_per_active_parameter_and_stages_do_not_speed_it() -> None:
    seconds = 2 * 32_762_123_264 / (2 * 989e12 * 0.5)
    assert token_compute_seconds(group(2), PLAIN) == pytest.approx(seconds)
    assert token_compute_seconds(group(2, 4), PLAIN) == pytest.approx(seconds)


def test_a_lone_sequence_decodes_at_the_speed_of_reading_the_weights() -> None:
    speeds = formula_speeds(group(), PLAIN, 1)
    assert speeds.decode_seconds_per_token == pytest.approx(65_524_246_528 / (4.8e12 * 0.8))
    piped = formula_speeds(group(1, 2), PLAIN, 1)
    assert piped.decode_seconds_per_token == pytest.approx(speeds.decode_seconds_per_token), "B has no p"


def test_running_sequences_add_their_cache_and_their_prompts() -> None:
    loaded = replace(PLAIN, context_tokens=1000.0)
    cache = 8 * 1000 * 2 * 64 * 8 * 128 * 2 / (4.8e12 * 0.8)
    alone = formula_speeds(group(), loaded, 8).decode_seconds_per_token
    assert alone == pytest.approx(65_524_246_528 / (4.8e12 * 0.8) + cache)
    prefill = [formula_speeds(group(), loaded, n).prefill_seconds_per_token for n in (1, 8)]
    assert prefill[1] == pytest.approx(8 * prefill[0])


def test_a_mixture_reads_the_experts_that_its_sequences_wake_and_at_most_all() -> None:
    mixture = group(model="Qwen/Qwen3-30B-A3B")
    one, many = (formula_speeds(mixture, PLAIN, n).decode_seconds_per_token for n in (1, 64))
    assert one == pytest.approx(2 * 3_353_032_704 / (4.8e12 * 0.8))
    assert many == pytest.approx(2 * 30_532_122_624 / (4.8e12 * 0.8))


def test_communication_is_per_step_in_the_physical_form_and_per_request_in_the_printed_one() -> None:
    assert communication_seconds(group(4), PLAIN) == pytest.approx((2 * 64 * 3 / 4 * 1e-5, 0.0))
    assert communication_seconds(group(1), PLAIN) == (0.0, 0.0)
    printed = replace(PLAIN, communication=Communication.PRINTED)
    assert communication_seconds(group(4), printed) == pytest.approx((0.0, 64 * 4 * 1e-5))


def test_eight_bit_weights_use_the_faster_units_where_the_gpu_has_them() -> None:
    eight = Model(name="Qwen/Qwen3-32B", weight_dtype=WeightDtype.FP8)
    h200 = replace(group(), model=resolve_model(eight))
    a100 = replace(h200, gpu=find_gpu("NVIDIA-A100-SXM4-80GB"))
    assert token_compute_seconds(h200, PLAIN) == pytest.approx(token_compute_seconds(group(), PLAIN) / 2)
    assert token_compute_seconds(a100, PLAIN) == pytest.approx(2 * 32_762_123_264 / (312e12 * 0.5))


@pytest.mark.parametrize(
    ("capacity", "reservation", "headroom", "expected"),
    [
        (120_000, 1000, 0.2, 100),
        (119_999, 1000, 0.2, 99),
        (10_000_000, 1000, 0.2, 256),
        (500, 1000, 0.2, 1),
        (120_000, 0, 0.2, 256),
    ],
)
def test_default_max_sequences_is_what_memory_holds_within_one_and_the_engine_limit(
    capacity: int, reservation: float, headroom: float, expected: int
) -> None:
    assert default_max_sequences(capacity, reservation, headroom) == expected


def _formula_group(profile: Profile) -> Group:
    model = resolve_model(Model(preset=profile.key.model))
    return Group(model, find_gpu("", profile.key.system), profile.key.tensor_parallel)


def test_the_formula_capacity_is_near_the_estimate_and_not_above_it() -> None:
    for profile in bundled_snapshot().profiles.values():
        ratio = kv_capacity_tokens(_formula_group(profile), Assumptions()) / profile.kv_capacity_tokens
        assert 0.75 < ratio < 1.0, profile.key


def test_the_formula_is_within_a_third_on_average_except_over_pcie() -> None:
    errors = {
        profile.key: curve_error(
            profile, formula_curve(_formula_group(profile), Assumptions()), 1, 256
        ).mean
        for profile in bundled_snapshot().profiles.values()
    }  # fmt: skip
    nvlink = [error for key, error in errors.items() if key.system != "l40s"]
    assert max(nvlink) < 0.36
    assert sum(nvlink) / len(nvlink) < 0.17
