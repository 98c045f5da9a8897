"""Every command end to end on a tiny fleet, in process: what it prints, writes, and returns."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from kvplan_cli.app import app
from kvplan_solver.cacheroute.keys import key_hash
from kvplan_solver.cacheroute.table import read_index, read_table
from kvplan_solver.certificate import Certificate, Check, Violation
from kvplan_solver.errors import EnumerationTooLarge

TINY = str(Path(__file__).resolve().parents[1] / "data" / "tiny_fleet")
KEYS = "class,key,requestsPerSecond,errorPerSecond,reusableTokens\n"


def run(*arguments: object) -> Result:
    result: Any = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "plan.yaml"
    assert run("plan", "-f", TINY, "--out", path).exit_code == 0
    return path


def changed(plan_file: Path, directory: Path, change: Callable[[Any], None]) -> Path:
    """A copy of the plan with its spec changed, named as before."""
    document = yaml.safe_load(plan_file.read_text(encoding="utf-8"))
    change(document["spec"])
    path = directory / "changed.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def edited(directory: Path, name: str, old: str, new: str) -> Path:
    """The tiny fleet with one text replaced, in a directory."""
    for path in Path(TINY).glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        (directory / path.name).write_text(text.replace(old, new) if path.name == name else text, encoding="utf-8")
    return directory


def test_help_and_version_are_there() -> None:
    version = run("--version")
    assert (version.exit_code, version.stdout) == (0, "kvplan 0.1.0\n")
    shown = run("--help")
    assert shown.exit_code == 0
    for name in ("plan", "explain", "diff", "verify", "table", "fit", "show", "demo-plan"):
        assert name in shown.stdout


def test_plan_prints_what_people_ask_for() -> None:
    shown = run("plan", "-f", TINY)
    assert shown.exit_code == 0
    for words in ("proven gap", "node-a", "chat", "8,000 ms", "Override", "Cost per second"):
        assert words in shown.stdout


def test_plan_as_yaml_and_json_is_the_plan_file(plan_file: Path) -> None:
    text = plan_file.read_text(encoding="utf-8")
    assert run("plan", "-f", TINY, "-o", "yaml").stdout == text
    assert json.loads(run("plan", "-f", TINY, "-o", "json").stdout) == yaml.safe_load(text)


def test_what_if_shows_both_plans_and_the_difference() -> None:
    shown = run("plan", "-f", TINY, "--what-if", "rate.chat=x2", "--what-if", "gpus=+2", "-o", "json")
    document = json.loads(shown.stdout)
    rows = {row["name"]: row for row in document["figures"]}
    assert document["changes"] == ["rate.chat=x2", "gpus=+2"]
    assert (rows["chat, requests per second"]["today"], rows["chat, requests per second"]["whatIf"]) == (2.0, 4.0)
    assert document["today"]["metadata"]["name"] != document["whatIf"]["metadata"]["name"]
    table = run("plan", "-f", TINY, "--what-if", "rate.chat=x2")
    assert "What if rate.chat=x2" in table.stdout
    assert "+2" in table.stdout


def test_against_an_equal_plan_says_so(plan_file: Path) -> None:
    assert "decide the same" in run("plan", "-f", TINY, "--against", plan_file).stdout


def test_explain_gives_a_reason_for_every_class(plan_file: Path) -> None:
    made = run("explain", "-f", TINY)
    given = run("explain", "-f", TINY, plan_file)
    assert made.exit_code == given.exit_code == 0
    for shown in (made.stdout, given.stdout):
        assert "step function of the radius" in shown
        assert "spec.arrivals.requestsPerSecondMilli" in shown
    document = json.loads(run("explain", "-f", TINY, "-o", "json").stdout)
    assert [c["name"] for c in document["classes"]] == ["chat", "code"]


def test_diff_is_0_for_equal_and_1_for_different_plans(plan_file: Path, tmp_path: Path) -> None:
    assert run("diff", plan_file, plan_file).exit_code == 0

    def admit_less(spec: Any) -> None:
        spec["classes"][0]["routes"][0]["shareMilli"] = spec["classes"][0]["admitMilli"] = 900

    other = changed(plan_file, tmp_path, admit_less)
    shown = run("diff", plan_file, other)
    assert shown.exit_code == 1
    assert "chat: 90 % is admitted instead of 100 %" in shown.stdout
    assert "no pod restarts" in shown.stdout
    assert json.loads(run("diff", plan_file, other, "-o", "json").stdout)["equal"] is False


@pytest.mark.slow
def test_verify_accepts_the_plan_and_compares_it_with_the_reference(tmp_path: Path) -> None:
    tp2 = next(line for line in (Path(TINY) / "fleet.yaml").read_text().splitlines() if "name: tp2" in line)
    smallest, path = edited(tmp_path, "fleet.yaml", tp2, ""), tmp_path / "plan.txt"
    nodes = smallest / "nodes.yaml"
    nodes.write_text(nodes.read_text(encoding="utf-8").replace('gpu: "2"', 'gpu: "1"'), encoding="utf-8")
    assert run("plan", "-f", smallest, "--out", path).exit_code == 0
    assert "holds: " in run("verify", "-f", smallest, path).stdout
    found = json.loads(run("verify", "-f", smallest, path, "--reference", "-o", "json").stdout)
    assert found["reference"]["lower"] <= found["costPerSecond"] * (1 + 1e-6)
    assert found["costPerSecond"] <= found["reference"]["upper"] * 1.01


def test_verify_names_the_violated_constraint(plan_file: Path, tmp_path: Path) -> None:
    def more_groups(spec: Any) -> None:
        group = spec["groups"][0]
        group["replicas"], group["placements"] = 3, [{"stages": ["node-a"]}] * 3

    shown = run("verify", "-f", TINY, changed(plan_file, tmp_path, more_groups))
    assert shown.exit_code == 1
    assert "NodeFit: node-a: 3 GPUs placed, 2 free" in shown.stdout
    assert "Digest:" in shown.stdout


def test_verify_says_where_the_reference_is_too_large(plan_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: object) -> None:
        raise EnumerationTooLarge("9,999 pairs of partition and caching")

    monkeypatch.setattr("kvplan_solver.reference.bracket", refuses)
    shown = run("verify", "-f", TINY, plan_file, "--reference")
    assert shown.exit_code == 2
    assert "too large to enumerate. 9,999 pairs" in shown.stdout
    assert "holds" in shown.stdout


def test_a_floor_on_gpus_that_nobody_can_meet_is_a_negative_answer(tmp_path: Path) -> None:
    edited(tmp_path, "fleet.yaml", "{selector: {}, ", "{selector: {}, minGpus: 9, ")
    shown = run("plan", "-f", tmp_path)
    assert shown.exit_code == 1
    assert "there is no plan" in shown.stderr
    assert "minGpus" in shown.stderr


def test_a_plan_that_its_certificate_rejects_is_never_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def rejected(*_: object, **__: object) -> Certificate:
        return Certificate((Violation(Check.MEMORY, "tp1", "too much"),))

    monkeypatch.setattr("kvplan_operator.plan.planner.certify", rejected)
    shown = run("plan", "-f", TINY, "--out", tmp_path / "plan.yaml")
    assert shown.exit_code == 1
    assert "Memory: tp1: too much" in shown.stdout
    assert not (tmp_path / "plan.yaml").exists()


def test_the_same_input_gives_the_same_table_that_a_router_can_read(plan_file: Path, tmp_path: Path) -> None:
    keys, secret = tmp_path / "keys.csv", tmp_path / "secret"
    keys.write_text(KEYS + "".join(f"chat,k{n},{1 / (n + 2):.4f},0.001,64\n" for n in range(20)), encoding="utf-8")
    secret.write_bytes(b"0123456789abcdef")
    texts = []
    for out in ("one", "two"):
        shown = run("table", "-f", TINY, "--plan", plan_file, "--keys", keys, "--secret-file", secret,
                    "--out", tmp_path / out)  # fmt: skip
        assert shown.exit_code == 0
        assert "20 keys have a home" in shown.stdout
        texts.append((tmp_path / out / "tiny-table.yaml").read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    index = read_index(yaml.safe_load(texts[0])["data"]["index.json"])
    home = read_table(index, {}).lookup(
        key_hash(b"0123456789abcdef", "chat", "header:x-gateway-inference-fairness-id", "k0")
    )
    assert home is not None
    assert set(home.destinations) <= {slot["slot"] for slot in index.document["slots"]}


def test_bad_key_rates_are_counted_and_the_rest_is_planned(plan_file: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text(
        KEYS + "chat,a,0.5,,64\nchat,b,nan,,64\nchat,c,-1,,64\nchat,d,x,,64\nchat,e,0,,64\n", encoding="utf-8"
    )
    figures = json.loads(run("table", "-f", TINY, "--plan", plan_file, "--keys", keys, "-o", "json").stdout)
    assert figures["figures"]["invalid rates"] == 2
    assert figures["figures"]["idle"] == 1
    assert figures["figures"]["keys admitted"] == 1
    assert "1 rows could not be read (line 5)" in figures["notes"][0]


def test_no_valid_rate_at_all_writes_no_table(plan_file: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text(KEYS + "chat,a,nan,,64\n", encoding="utf-8")
    shown = run("table", "-f", TINY, "--plan", plan_file, "--keys", keys, "--out", tmp_path / "table")
    assert shown.exit_code == 1
    assert "RatesUnavailable" in shown.stdout
    assert not (tmp_path / "table").exists()


def test_a_replan_moves_few_keys(plan_file: Path, tmp_path: Path) -> None:
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    for path, factor in ((old, 1.0), (new, 1.1)):
        rows = (f"chat,k{n},{factor ** (n % 2) * (1 / (n + 2)):.4f},0.001,64\n" for n in range(40))
        path.write_text(KEYS + "".join(rows), encoding="utf-8")
    shown = run("table", "-f", TINY, "--plan", plan_file, "--keys", new, "--before", old, "-o", "json")
    figures = json.loads(shown.stdout)["figures"]
    assert figures["pairs moved"] <= 8


def test_show_tells_the_two_facts_for_a_fleet_or_for_the_sample(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KVPLAN_DATA", str(tmp_path))
    assert "some of each" in run("show", "sticking", "-f", TINY).stdout
    generated = run("show", "epsilon")
    assert "generated" in generated.stderr
    assert "summarise" in generated.stdout
    orders = json.loads(run("show", "epsilon", "-f", TINY, "-o", "json").stdout)["classes"][0]["orders"]
    assert len({row["wasserstein1"] for row in orders}) == 3
    assert len({row["wassersteinInf"] for row in orders}) > 5


def test_show_headroom_counts_who_a_ledger_at_the_mean_would_refuse() -> None:
    rows = json.loads(run("show", "headroom", "-o", "json").stdout)["refusals"]
    assert all(row["refusedGivenOut"] < row["refusedKeptFree"] for row in rows)
