"""The sample without real traces: stated, seeded and complete; with them, see test_trace_real_data."""

from pathlib import Path

import numpy as np
import pytest

from kvplan_cli.sample_generated import GENERATED, generated_trace
from kvplan_cli.sample_workload import data_directory, sample_workload
from kvplan_operator.model.fit_manifests import ManifestOptions, fit_manifests, keys_csv


def test_without_traces_the_sample_is_generated_and_says_from_what(tmp_path: Path) -> None:
    sample = sample_workload(data=tmp_path)
    assert not sample.real
    assert [workload.name for workload in sample.workloads] == ["chat", "code", "summarise"]
    assert sample.remarks[0][1].startswith("generated, because the data directory lacks azure2023_conv.csv.gz")
    assert any("lognormal(μ=6.7, σ=0.98)" in remark for _, remark in sample.remarks)


def test_the_generated_sample_follows_its_stated_figures(tmp_path: Path) -> None:
    workloads = {workload.name: workload for workload in sample_workload(data=tmp_path).workloads}
    for made in GENERATED:
        fitted = workloads[made.name]
        assert fitted.requests_per_second == pytest.approx(made.requests_per_second, rel=0.3)
        assert fitted.arrival_scv == pytest.approx(made.arrival_scv, rel=0.5)
        assert np.median(fitted.output_lengths.samples) == pytest.approx(np.exp(made.output.mu), rel=0.05)
    assert workloads["chat"].prefix is not None
    assert workloads["chat"].prefix.tokens == 128


def test_the_seed_alone_decides_the_generated_sample(tmp_path: Path) -> None:
    same, again, other = (sample_workload(seed, tmp_path).workloads for seed in (1, 1, 2))
    assert keys_csv(same) == keys_csv(again) != keys_csv(other)
    assert fit_manifests(same, ManifestOptions()) == fit_manifests(again, ManifestOptions())


def test_generated_prompts_are_as_long_as_their_blocks() -> None:
    made = generated_trace(GENERATED[0], 0)
    assert made.blocks is not None
    assert made.prompt_tokens is not None
    assert (made.blocks.lengths * made.blocks.block_tokens <= made.prompt_tokens).all()


def test_the_data_directory_is_the_stated_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KVPLAN_DATA", str(tmp_path))
    assert data_directory() == tmp_path
    monkeypatch.delenv("KVPLAN_DATA")
    assert data_directory().parts[-2:] == ("shared", "data")
