"""The shipped snapshot: recorded figures, provenance, size, and that its command regenerates it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kvplan_cli import priors_report, priors_snapshot
from kvplan_operator.model.priors.profile import bundled_snapshot, parse_snapshot
from kvplan_solver.errors import InvalidInput

RECORDED = {1: (353, 27.7), 2: (232, 15.4), 4: (175, 9.6), 8: (142, 6.9)}


def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(priors_snapshot.bundled_path().read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize(("tensor_parallel", "figures"), RECORDED.items())
def test_qwen3_32b_on_h200_has_the_recorded_latencies(tensor_parallel: int, figures: tuple[int, float]) -> None:
    profile = bundled_snapshot().find("Qwen/Qwen3-32B", "h200_sxm", tensor_parallel)
    assert profile is not None
    point = [pair == (2000, 500) for pair in zip(profile.input_tokens, profile.output_tokens, strict=True)]
    row, column = point.index(True), profile.batch.tolist().index(16)
    assert 1000 * profile.first_token_seconds[row, column] == pytest.approx(figures[0], abs=0.5)
    assert 1000 * profile.token_seconds[row, column] == pytest.approx(figures[1], abs=0.051)


def test_the_snapshot_says_where_it_is_from_and_how_to_make_it_again() -> None:
    provenance = document()["provenance"]
    assert provenance["library"] == "aiconfigurator-core 0.12.0"
    assert provenance["command"] == "python -m kvplan_cli.priors_snapshot"
    assert "microseconds" in provenance["units"]


def test_the_snapshot_is_small_and_its_numbers_are_possible() -> None:
    assert priors_snapshot.bundled_path().stat().st_size < 300_000
    profiles = bundled_snapshot().profiles
    assert len(profiles) == len(document()["profiles"]) >= 100
    for profile in profiles.values():
        shape = (profile.input_tokens.size, profile.batch.size)
        assert profile.first_token_seconds.shape == profile.token_seconds.shape == shape
        for latency in (profile.first_token_seconds, profile.token_seconds):
            assert np.all(latency > 0)
            assert np.all(latency[:, -1] > latency[:, 0]), "the largest batch is slower than one sequence"
        assert profile.kv_capacity_tokens > 0


def test_a_snapshot_of_another_format_is_refused() -> None:
    with pytest.raises(InvalidInput, match="snapshot: format is 99"):
        parse_snapshot({**document(), "format": 99})


@pytest.mark.parametrize(
    ("model", "system", "tensor_parallel"),
    [("Qwen/Qwen3-32B", "h200_sxm", 2), ("Qwen/Qwen3-30B-A3B", "h100_sxm", 4)],
)
def test_the_library_gives_the_shipped_numbers_again(model: str, system: str, tensor_parallel: int) -> None:
    pytest.importorskip("aiconfigurator_core")
    from kvplan_cli.priors_document import profile_entry
    from kvplan_cli.priors_estimator import Target

    entry = profile_entry(Target(model, system, tensor_parallel))
    assert entry in document()["profiles"]


def test_the_file_is_written_with_one_profile_a_line_and_reads_back_the_same() -> None:
    pytest.importorskip("aiconfigurator_core")
    from kvplan_cli.priors_document import render

    text = render(document())
    assert json.loads(text) == document()
    assert text == priors_snapshot.bundled_path().read_text(encoding="utf-8")
    assert sum(line.startswith('{"model"') for line in text.splitlines()) == len(document()["profiles"])


def test_without_the_extra_the_command_says_what_to_install_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(priors_snapshot, "find_spec", lambda _: None)
    assert priors_snapshot.main(["--output", str(tmp_path / "out.json")]) == 2
    assert "kvplan[priors]" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_report_prints_one_row_per_model_and_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert priors_report.main(["capacity"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    pairs = {(key.model, key.system) for key in bundled_snapshot().profiles}
    assert len(rows) == 1 + len(pairs)


def test_the_report_refuses_an_unknown_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert priors_report.main(["nothing"]) == 2
    assert "unknown table 'nothing'" in capsys.readouterr().err
