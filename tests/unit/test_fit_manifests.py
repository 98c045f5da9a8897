"""The documents of a fit are what the API accepts and what the planner reads."""

import csv
import io

import numpy as np
import pytest

from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.fit_manifests import (
    DEFAULT_SLO_MILLISECONDS,
    LENGTHS_KEY,
    ManifestOptions,
    fit_manifests,
    keys_csv,
    object_name,
)
from kvplan_operator.model.fit_report import fit_report
from kvplan_operator.model.fitted_limits import next_step
from kvplan_operator.model.fitting import FitOptions, fit_trace
from kvplan_operator.model.trace import PrefixBlocks, RequestTrace
from kvplan_operator.model.workload import ClassWorkload
from kvplan_solver.errors import InvalidInput


def workload(name: str = "chat", **options: float) -> ClassWorkload:
    count = 40
    blocks = PrefixBlocks(np.arange(count + 1) * 2, np.array([[0, n % 4] for n in range(count)]).reshape(-1), 16)
    made = RequestTrace(
        name,
        np.arange(1.0, count + 1),
        arrival_seconds=np.arange(count) / 4,
        prompt_tokens=np.full(count, 50.5),
        blocks=blocks,
    )
    return fit_trace(made, FitOptions(windows=2, **options))  # type: ignore[arg-type]


def test_a_class_becomes_a_config_map_and_a_request_class_that_refers_to_it() -> None:
    lengths, request_class = fit_manifests([workload()], ManifestOptions("prod", "serving", {"chat": 2_000}))
    parsed = RequestClass.model_validate(request_class)
    reference = parsed.spec.output_lengths.config_map_ref
    assert reference is not None
    assert (reference.name, reference.key) == (lengths["metadata"]["name"], LENGTHS_KEY)  # type: ignore[index]
    text = lengths["data"][LENGTHS_KEY]  # type: ignore[index]
    assert [int(line) for line in text.splitlines()] == list(range(1, 41))
    assert parsed.metadata.namespace == "serving"
    assert parsed.metadata.labels == {"kvplan.dev/fleet": "prod"}
    assert parsed.spec.slo.latency_milliseconds == 2_000
    assert parsed.spec.arrivals.requests_per_second_milli == 4_000
    assert parsed.spec.arrivals.interarrival_scv_milli == 0
    assert parsed.spec.tokens.to_wire() == {
        "input": 50, "inputP95": 51, "inputMax": 128, "sharedPrefix": 16, "maxOutput": 96,
    }  # fmt: skip


def test_what_was_not_measured_is_left_out() -> None:
    fitted = fit_trace(RequestTrace("chat", np.array([3.0])), FitOptions())
    _, request_class = fit_manifests([fitted], ManifestOptions())
    spec = RequestClass.model_validate(request_class).spec
    assert spec.arrivals.to_wire() == {}
    assert spec.tokens.to_wire() == {"maxOutput": 16}
    assert spec.slo.latency_milliseconds == DEFAULT_SLO_MILLISECONDS


def test_a_rate_below_a_thousandth_is_not_written_as_no_traffic() -> None:
    _, request_class = fit_manifests([workload(requests_per_second=1e-6)], ManifestOptions())
    assert RequestClass.model_validate(request_class).spec.arrivals.requests_per_second_milli == 1


def test_the_order_of_classes_does_not_change_the_documents() -> None:
    both = [workload("chat"), workload("code")]
    assert fit_manifests(both, ManifestOptions()) == fit_manifests(both[::-1], ManifestOptions())
    assert keys_csv(both) == keys_csv(both[::-1])
    assert fit_report(both).rows == fit_report(both[::-1]).rows


def test_key_rates_are_written_by_class_and_descending_rate() -> None:
    rows = list(csv.DictReader(io.StringIO(keys_csv([workload("code"), workload("chat")]))))
    assert [row["class"] for row in rows] == ["chat"] * 4 + ["code"] * 4
    assert {row["requestsPerSecond"] for row in rows} == {"1"}
    assert rows[0] == {
        "class": "chat", "key": "0-0", "requestsPerSecond": "1", "errorPerSecond": "0.316228",
        "reusableTokens": "32",
    }  # fmt: skip


def test_keys_without_blocks_have_unknown_and_not_0_reusable_tokens() -> None:
    made = RequestTrace("chat", np.ones(3), arrival_seconds=np.arange(3.0), keys=np.zeros(3, int), key_names=('a,"b"',))
    rows = list(csv.DictReader(io.StringIO(keys_csv([fit_trace(made, FitOptions())]))))
    assert (rows[0]["key"], rows[0]["reusableTokens"]) == ('a,"b"', "")


NAMES = {"GPT-4 chat": "gpt-4-chat", "code": "code", "__A__": "a", "x" * 80: "x" * 63, "é b": "b"}


@pytest.mark.parametrize("name", NAMES)
def test_class_names_become_object_names(name: str) -> None:
    assert object_name(name) == NAMES[name]


def test_names_that_cannot_be_told_apart_or_are_empty_are_refused() -> None:
    with pytest.raises(InvalidInput, match="two classes have this object name"):
        fit_manifests([workload("a b"), workload("A-B")], ManifestOptions())
    with pytest.raises(InvalidInput, match="at least one letter or digit"):
        object_name("--")


def test_an_slo_for_no_class_is_refused() -> None:
    with pytest.raises(InvalidInput, match="slo: class is 'code'"):
        fit_manifests([workload("chat")], ManifestOptions(slo_milliseconds={"code": 5}))


def test_what_the_api_refuses_is_refused_with_the_class_named() -> None:
    with pytest.raises(InvalidInput, match="class chat: RequestClass is"):
        fit_manifests([workload("chat")], ManifestOptions(slo_milliseconds={"chat": 0}))


def test_the_report_has_every_figure_of_a_class() -> None:
    row = fit_report([workload()], [("chat", "read")]).rows[0]
    assert row["outputTokens"] == {"mean": 20.5, "p50": 20, "p90": 36, "p95": 38, "p99": 40, "max": 40}
    assert row["promptTokens"] == {"mean": 50.5, "p95": 51, "max": 51}
    assert (row["requestsPerSecond"], row["windowSeconds"], row["windowRates"]) == (4.0, 10.0, [4.0, 4.0])
    assert (row["sharedPrefixTokens"], row["keys"]) == (16, 4)


def test_observed_maxima_get_headroom_and_the_manifest_and_report_say_so() -> None:
    _, request_class = fit_manifests([workload()], ManifestOptions())
    said = RequestClass.model_validate(request_class).metadata.annotations["kvplan.dev/fitted-limits"]
    assert "maxOutput 96 (longest seen 40, or twice its P99, rounded up)" in said
    assert "inputMax 128 (longest seen 51" in said
    assert ("chat", said) in fit_report([workload()]).notes


def test_a_stated_limit_is_kept() -> None:
    _, request_class = fit_manifests([workload(max_output_tokens=45)], ManifestOptions())
    assert RequestClass.model_validate(request_class).spec.tokens.max_output == 45


STEPS = {1: 16, 16: 16, 17: 24, 24: 24, 25: 32, 33: 48, 49: 64, 2_000: 2_048, 2_049: 3_072}


@pytest.mark.parametrize(("tokens", "step"), STEPS.items())
def test_limits_go_up_to_the_next_step(tokens: int, step: int) -> None:
    assert next_step(tokens) == step
