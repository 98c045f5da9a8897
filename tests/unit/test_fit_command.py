"""`kvplan fit` end to end on small files: report, files, and refusals that leave nothing behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner, Result

from kvplan_cli.commands.fit import fit
from kvplan_cli.errors import CommandError
from kvplan_cli.files import write_all
from kvplan_cli.traces import TraceError
from kvplan_operator.api.request_class import RequestClass
from kvplan_solver.errors import InvalidInput

CHAT = "t_s,prompt_tokens,output_tokens,h\n" + "".join(
    f"{n},{100 + n % 7},{10 + n % 13},0 {n % 3}\n" for n in range(200)
)


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    path = tmp_path / "chat.csv"
    path.write_text(CHAT)
    return path


def run(*arguments: str | Path) -> Result:
    app = typer.Typer()
    app.command()(fit)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_report_is_the_same_in_json_and_yaml(chat: Path) -> None:
    as_json = run("--trace", f"chat={chat}", "-o", "json")
    as_yaml = run("--trace", f"chat={chat}", "-o", "yaml")
    assert as_json.exit_code == as_yaml.exit_code == 0
    report = json.loads(as_json.stdout)
    assert report == yaml.safe_load(as_yaml.stdout)
    assert report["classes"][0]["requestsPerSecond"] == 1.0
    assert report["classes"][0]["keys"] == 3


def test_the_table_names_classes_and_notes_without_colour_when_piped(chat: Path) -> None:
    chat.write_text(CHAT + "x,1,1,\n")
    shown = run("--trace", f"chat={chat}").stdout
    assert "chat: 1 bad row (1 × t_s: not a number), first: line 202" in " ".join(shown.split())
    assert "\x1b" not in shown


def test_out_writes_manifests_keys_and_report(chat: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "out"
    result = run("--trace", f"chat={chat}", "--slo", "chat=900", "--fleet", "prod", "--out", folder)
    assert result.exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["keys.csv", "report", "requestclasses.yaml"]
    lengths, request_class = yaml.safe_load_all((folder / "requestclasses.yaml").read_text())
    assert RequestClass.model_validate(request_class).spec.slo.latency_milliseconds == 900
    assert lengths["data"]["output-tokens"].startswith("10\n")
    assert (folder / "keys.csv").read_text().count("\n") == 4
    assert json.loads((folder / "report" / "fit.json").read_text())["classes"][0]["class"] == "chat"


def test_the_same_input_gives_the_same_bytes_in_every_process(chat: Path, tmp_path: Path) -> None:
    program = "import typer; from kvplan_cli.commands.fit import fit; typer.run(fit)"
    for hash_seed in ("1", "2"):
        arguments = ["--trace", f"chat={chat}", "--out", str(tmp_path / hash_seed)]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        subprocess.run([sys.executable, "-c", program, *arguments], env=environment, check=True, capture_output=True)
    for name in ("report/fit.json", "keys.csv", "requestclasses.yaml"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_columns_may_differ_per_class(chat: Path, tmp_path: Path) -> None:
    other = tmp_path / "code.csv"
    other.write_text("when,n\n0,5\n1000,6\n2000,7\n")
    result = run(
        "--trace", f"chat={chat}", "--trace", f"code={other}",
        "--columns", "code:arrival=when,arrivalUnit=ms,output=n", "-o", "json",
    )  # fmt: skip
    classes = {row["class"]: row for row in json.loads(result.stdout)["classes"]}
    assert classes["code"]["requestsPerSecond"] == 1.0
    assert classes["chat"]["promptTokens"]["mean"] == pytest.approx(103, abs=0.1)


def test_one_file_may_hold_all_classes(tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    path.write_text("t_s,output_tokens,kind\n0,1,a\n1,2,b\n2,3,a\n3,3,b\n")
    result = run("--trace", path, "--columns", "class=kind", "-o", "json")
    assert [row["class"] for row in json.loads(result.stdout)["classes"]] == ["a", "b"]


def test_a_columns_file_speaks_for_all_traces(chat: Path, tmp_path: Path) -> None:
    spec = tmp_path / "columns.yaml"
    spec.write_text("blocks:\narrival: t_s\narrivalUnit: ms\n")
    result = run("--trace", f"chat={chat}", "--columns-file", spec, "-o", "json")
    row = json.loads(result.stdout)["classes"][0]
    assert (row["requestsPerSecond"], row["keys"]) == (1000.0, None)


def test_published_distributions_are_fitted_beside_traces(chat: Path, tmp_path: Path) -> None:
    table, histogram = tmp_path / "q.json", tmp_path / "h.csv"
    table.write_text('{"p50": 8, "max": 90}')
    histogram.write_text("upper,count\n100,7\n")
    result = run(
        "--trace", f"chat={chat}", "--quantiles", f"code={table}", "--histogram", f"summarise={histogram}",
        "--rate", "code=2.5", "-o", "json",
    )  # fmt: skip
    classes = {row["class"]: row for row in json.loads(result.stdout)["classes"]}
    assert (classes["code"]["requestsPerSecond"], classes["code"]["outputTokens"]["max"]) == (2.5, 90)
    assert classes["summarise"]["outputTokens"]["max"] == 100


REFUSED = {
    "nothing to read": ([], "nothing to read"),
    "a trace without a class": (["--trace", "{chat}"], "no class given"),
    "a trace without a file": (["--trace", "chat="], "'chat=' is not CLASS=FILE"),
    "quantiles without a class": (["--quantiles", "q.json"], "'q.json' is not CLASS=FILE"),
    "a class twice": (["--trace", "chat={chat}", "--trace", "chat={chat}"], "class 'chat' is given twice"),
    "a rate that is no number": (
        ["--trace", "chat={chat}", "--rate", "chat=x"],
        "'chat=x' is not CLASS=NUMBER",
    ),
    "a rate without a class": (["--trace", "chat={chat}", "--rate", "5"], "'5' is not CLASS=NUMBER"),
    "a rate of NaN": (["--trace", "chat={chat}", "--rate", "chat=nan"], "requests_per_second is nan"),
    "a rate for no class": (["--trace", "chat={chat}", "--rate", "cat=5"], "no class 'cat' was read"),
    "columns for no class": (["--trace", "chat={chat}", "--columns", "cat:key=h"], "no class 'cat' was read"),
    "an slo for no class": (["--trace", "chat={chat}", "--slo", "cat=5"], "slo: class is 'cat'"),
    "no windows": (["--trace", "chat={chat}", "--windows", "0"], "windows is 0"),
    "a negative seed": (["--trace", "chat={chat}", "--seed", "-1"], "seed is -1"),
}


@pytest.mark.parametrize("case", REFUSED, ids=list(REFUSED))
def test_what_cannot_be_fitted_is_refused_and_nothing_is_written(case: str, chat: Path, tmp_path: Path) -> None:
    arguments, problem = REFUSED[case]
    result = run(*(text.format(chat=chat) for text in arguments), "--out", tmp_path / "out")
    assert isinstance(result.exception, TraceError | InvalidInput)
    assert problem in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_an_output_path_that_is_a_file_is_refused(chat: Path, tmp_path: Path) -> None:
    result = run("--trace", f"chat={chat}", "--out", chat)
    assert isinstance(result.exception, CommandError)
    assert "cannot be written" in str(result.exception)
    assert chat.read_text() == CHAT


def test_a_failed_write_leaves_the_old_files_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_all(tmp_path, {"a.txt": "new", "b.txt": "\ud800"})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.txt": "old"}
