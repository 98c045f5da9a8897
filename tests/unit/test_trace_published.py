"""Quantile tables and histograms: what is published is used, nothing is extrapolated."""

import gzip
import json
from pathlib import Path

import pytest

from kvplan_cli.traces import TraceError
from kvplan_cli.traces.histograms import read_histogram
from kvplan_cli.traces.quantile_tables import read_quantiles


def written(path: Path, content: str) -> str:
    path.write_text(content)
    return str(path)


def test_a_quantile_csv_gives_outputs_and_prompts(tmp_path: Path) -> None:
    file = written(
        tmp_path / "q.csv",
        "client,out_mean,out_q0,out_q0.5,out_q1,in_mean,in_q0,in_q0.5,in_q1\n0,22,0,10,100,60,0,50,200\n",
    )
    found = read_quantiles(file)
    assert (found.output_mean, found.output_maximum) == (22, 100)
    assert found.prompt is not None
    assert (found.prompt.mean, found.prompt.maximum) == (60, 200)
    assert found.output.samples.min() >= 0
    assert found.output.samples.max() <= 100
    assert float((found.output.samples <= 10).mean()) == pytest.approx(0.5, abs=0.01)


def test_the_rows_of_a_quantile_csv_are_mixed_with_equal_weights_and_this_is_said(tmp_path: Path) -> None:
    file = written(tmp_path / "q.csv", "out_q0,out_q1\n0,0\n100,100\n")
    found = read_quantiles(file)
    assert "2 rows mixed with equal weights" in found.output.note
    assert sorted(set(found.output.samples.tolist())) == [0, 100]
    assert found.output_mean == 50


def test_percentiles_from_json_take_the_named_entry(tmp_path: Path) -> None:
    path = tmp_path / "p.json.gz"
    entry = {"output": {"mean": 23, "p50": 8, "p999": 400, "max": 5000}, "prompt": {"p50": 9, "max": 90}}
    path.write_bytes(gzip.compress(json.dumps({"note": "…", "code": entry}).encode()))
    found = read_quantiles(f"{path}#code")
    assert (found.output_mean, found.output_maximum) == (23, 5000)
    assert float((found.output.samples <= 400).mean()) == pytest.approx(0.999)
    assert found.prompt is not None
    assert found.prompt.maximum == 90


def test_percentiles_may_stand_at_the_top_of_a_json_file(tmp_path: Path) -> None:
    found = read_quantiles(written(tmp_path / "p.json", '{"min": 4, "p50": 8, "max": 10}'))
    assert found.output.samples.min() == 4
    assert found.output_mean == pytest.approx(7.5, abs=0.02)


WRONG_QUANTILES = {
    "no maximum": ("p.json", '{"mean": 23, "p50": 8}', "", "no maximum among mean, p50"),
    "no such entry": ("p.json", '{"code": {"max": 3}}', "#chat", "no object 'chat'"),
    "a list": ("p.json", "[1]", "", "no object ''"),
    "no JSON": ("p.json", "{", "", "no JSON"),
    "a quantile as text": ("p.json", '{"p50": "8", "max": 9}', "", "p50 is '8'"),
    "quantiles that are no object": ("p.json", '{"output": 5}', "", "quantiles are 5"),
    "falling quantiles": ("p.json", '{"p50": 8, "max": 3}', "", "values is [8.0, 3.0]"),
    "negative tokens": ("q.csv", "out_q0,out_q1\n-4,8\n", "", "values is [-4.0, 8.0]"),
    "no quantile columns": ("q.csv", "a,b\n1,2\n", "", "no columns out_q0"),
    "a cell without a number": ("q.csv", "out_q0,out_q1\n1,x\n", "", "line 2: out_q1 is 'x'"),
    "a row too short": ("q.csv", "out_q0,out_q1\n1\n", "", "line 2: wrong number of fields"),
    "no rows": ("q.csv", "out_q0,out_q1\n", "", "no rows below the header"),
    "no maximum column": ("q.csv", "out_q0,out_q0.9\n1,2\n", "", "levels is 0.9"),
}


@pytest.mark.parametrize("case", WRONG_QUANTILES, ids=list(WRONG_QUANTILES))
def test_an_unusable_quantile_table_is_one_clear_error(case: str, tmp_path: Path) -> None:
    name, content, entry, problem = WRONG_QUANTILES[case]
    file = written(tmp_path / name, content)
    with pytest.raises(TraceError) as caught:
        read_quantiles(file + entry)
    assert problem in str(caught.value)
    assert name in str(caught.value)


def test_cumulative_and_plain_histograms_give_the_same_samples(tmp_path: Path) -> None:
    cumulative = Path(written(tmp_path / "c.csv", "le,count\n10,4\n20,4\n40,8\n+Inf,8\n"))
    plain = Path(written(tmp_path / "p.csv", "upper,count\n10,4\n20,0\n40,4\n"))
    first, second = read_histogram(cumulative), read_histogram(plain)
    assert first.output.samples.tolist() == second.output.samples.tolist()
    assert first.output_maximum == 40
    assert float((first.output.samples <= 10).mean()) == 0.5
    assert not ((first.output.samples > 10) & (first.output.samples < 20)).any()
    assert "3 buckets" in first.output.note


def test_the_resolution_of_a_histogram_is_stated_as_its_error(tmp_path: Path) -> None:
    coarse = read_histogram(Path(written(tmp_path / "c.csv", "upper,count\n1000,10\n")))
    fine = read_histogram(Path(written(tmp_path / "f.csv", "upper,count\n500,5\n1000,5\n")))
    assert 500 <= coarse.output.error_tokens < 502
    assert 250 <= fine.output.error_tokens < 252


WRONG_HISTOGRAMS = {
    "requests beyond the last edge": ("le,count\n10,4\n+Inf,6\n", "2 requests lie beyond the last edge"),
    "counts that fall": ("le,count\n10,4\n20,3\n", "the count falls at bucket 2"),
    "no count column": ("le,requests\n10,4\n", "no histogram columns"),
    "both kinds of edges": ("le,upper,count\n10,10,4\n", "no histogram columns"),
    "no requests": ("upper,count\n10,0\n", "counts is 0"),
    "edges that fall": ("upper,count\n20,1\n10,1\n", "values is [20.0, 10.0]"),
    "a negative count": ("upper,count\n10,-1\n", "counts is [-1.0]"),
}


@pytest.mark.parametrize("case", WRONG_HISTOGRAMS, ids=list(WRONG_HISTOGRAMS))
def test_an_unusable_histogram_is_one_clear_error(case: str, tmp_path: Path) -> None:
    content, problem = WRONG_HISTOGRAMS[case]
    path = Path(written(tmp_path / "h.csv", content))
    with pytest.raises(TraceError) as caught:
        read_histogram(path)
    assert problem in str(caught.value)
