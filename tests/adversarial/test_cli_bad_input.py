"""What a hostile or unlucky user does: one clear message, exit code 2, no traceback, nothing half-written."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kvplan_cli.app import app

TINY = Path(__file__).resolve().parents[1] / "data" / "tiny_fleet"
KVPLAN = [sys.executable, "-c", "from kvplan_cli.main import run; run()"]
Edit = Callable[[dict[str, str]], None]


def replaced(name: str, old: str, new: str) -> Edit:
    def edit(texts: dict[str, str]) -> None:
        assert old in texts[name]
        texts[name] = texts[name].replace(old, new)

    return edit


def added(name: str, text: str) -> Edit:
    return lambda texts: texts.update({name: text})


def without(name: str) -> Edit:
    def edit(texts: dict[str, str]) -> None:
        del texts[name]

    return edit


BAD: dict[str, tuple[Edit, tuple[str, ...]]] = {
    "garbage is no YAML": (added("x.yaml", "{[}"), ("x.yaml", "no YAML", "line 1")),
    "a list is no object": (added("x.yaml", "- 1\n- 2\n"), ("x.yaml, document 1", "write a mapping")),
    "a text is no object": (added("x.yaml", "hello"), ("x.yaml, document 1", "write a mapping")),
    "an empty file holds nothing": (added("x.yaml", ""), ("x.yaml", "holds no object")),
    "no fleet": (without("fleet.yaml"), ("no ServingFleet", "-f")),
    "no node": (without("nodes.yaml"), ("no Node", "kubectl get nodes")),
    "no class": (without("classes.yaml"), ("ServingFleet tiny: spec.classes selects no RequestClass: label",)),
    "two fleets": (
        lambda texts: texts.update({"g.yaml": texts["fleet.yaml"].replace("name: tiny", "name: other")}),
        ("2 ServingFleets", "--fleet"),
    ),
    "the same fleet twice": (
        lambda texts: texts.update({"g.yaml": texts["fleet.yaml"]}),
        ("g.yaml", "metadata.name", "fleet.yaml"),
    ),
    "a kind that does not exist": (
        replaced("fleet.yaml", "kind: ServingFleet", "kind: ServeFleet"),
        ("fleet.yaml, document 1", "kind", "ServeFleet", "use one of"),
    ),
    "a version that does not exist": (
        replaced("fleet.yaml", "kvplan.dev/v1alpha1", "kvplan.dev/v2"),
        ("apiVersion", "kvplan.dev/v2", "use kvplan.dev/v1alpha1"),
    ),
    "an unknown field": (
        replaced("classes.yaml", "maxOutput: 500", "maxOutput: 500, maxOutputs: 5"),
        ("RequestClass code", "spec.tokens.maxOutputs", "rename it to maxOutput"),
    ),
    "negative parallelism": (
        replaced("fleet.yaml", "tensorParallel: 1", "tensorParallel: -1"),
        ("ServingFleet tiny", "spec.configurations[0].tensorParallel", "-1", "use an integer"),
    ),
    "negative GPUs on a node": (
        replaced("nodes.yaml", 'nvidia.com/gpu: "2"', 'nvidia.com/gpu: "-2"'),
        ("Node node-a", "nvidia.com/gpu", "-2"),
    ),
    "GPUs that are no number": (
        replaced("nodes.yaml", 'nvidia.com/gpu: "2"', 'nvidia.com/gpu: "two"'),
        ("Node node-a", "nvidia.com/gpu", "two"),
    ),
    "a rate that is not a number": (
        replaced("classes.yaml", "requestsPerSecondMilli: 2000", "requestsPerSecondMilli: .nan"),
        ("RequestClass chat", "spec.arrivals.requestsPerSecondMilli", "use an integer"),
    ),
    "an infinite rate": (
        replaced("classes.yaml", "requestsPerSecondMilli: 2000", "requestsPerSecondMilli: .inf"),
        ("RequestClass chat", "spec.arrivals.requestsPerSecondMilli", "use an integer"),
    ),
    "a rate that nobody knows": (
        replaced("classes.yaml", "arrivals: {requestsPerSecondMilli: 2000}", "arrivals: {}"),
        ("RequestClass chat: spec.arrivals.requestsPerSecondMilli is absent: no traffic", "set it or give a trace"),
    ),
    "a node without GPUs": (
        replaced("nodes.yaml", 'nvidia.com/gpu: "2"', 'nvidia.com/gpu: "0"'),
        ("ServingFleet tiny: spec.nodes has no usable GPU: ", "node-a"),
    ),
    "a null value": (
        replaced("classes.yaml", "inputMax: 3000", "inputMax: null"),
        ("spec.tokens.inputMax is null", "remove the field"),
    ),
    "null for a required number": (
        replaced("classes.yaml", "maxOutput: 500", "maxOutput: null"),
        ("spec.tokens.maxOutput is null", "it is required: use an integer from 1"),
    ),
    "null for a required part": (
        replaced("classes.yaml", "slo: {latencyMilliseconds: 3000}", "slo: null"),
        ("spec.slo is null", "it is required: use a mapping with latencyMilliseconds"),
    ),
    "null for all that is wanted": (
        lambda texts: texts.update({"fleet.yaml": texts["fleet.yaml"].partition("spec:")[0] + "spec: null\n"}),
        ("ServingFleet tiny", "spec is null", "it is required: use a mapping with model, nodes, configurations"),
    ),
    "no kind": (
        replaced("fleet.yaml", "kind: ServingFleet", "kind:"),
        ("fleet.yaml, document 1", "kind is null", "use one of ServingFleet, RequestClass, RoutingPlan"),
    ),
    "a class name that is no label": (
        replaced("classes.yaml", "name: chat", f"name: {'c' * 64}"),
        ("metadata.name is", "at most 63 characters"),
    ),
    "a fleet name that no plan could carry": (
        replaced("fleet.yaml", "name: tiny", f"name: {'f' * 60}"),
        ("metadata.name is", "at most 52 characters"),
    ),
    "a node name that no node can have": (
        replaced("nodes.yaml", "name: node-a", 'name: "Node A"'),
        ("Node: metadata.name is 'Node A'", "DNS subdomain"),
    ),
    "conditions that are no list": (
        replaced("nodes.yaml", 'conditions: [{type: Ready, status: "True"}]', "conditions: Ready"),
        ("Node node-a: status.conditions is 'Ready'", "write a list"),
    ),
    "allocatable that is no mapping": (
        replaced("nodes.yaml", 'allocatable: {nvidia.com/gpu: "2"}', 'allocatable: ["2"]'),
        ("Node node-a: status.allocatable is ['2']", "write a mapping"),
    ),
}


def folder(directory: Path, edit: Edit) -> Path:
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(TINY.glob("*.yaml"))}
    edit(texts)
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")
    return directory


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def assert_refused(result: Any, *words: str) -> None:
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert isinstance(result.exception, SystemExit)
    for word in words:
        assert word in result.stderr, result.stderr
    assert len(result.stderr) < 2000


@pytest.mark.parametrize("name", BAD)
def test_bad_manifests_are_refused_with_object_field_value_and_remedy(name: str, tmp_path: Path) -> None:
    edit, words = BAD[name]
    out = tmp_path / "out.yaml.txt"
    assert_refused(run("plan", "-f", folder(tmp_path, edit), "--out", out, "--plot", tmp_path / "plots"), *words)
    assert not out.exists()
    assert not (tmp_path / "plots").exists()


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff\xfe")
    assert_refused(run("plan", "-f", path), "x.yaml", "not UTF-8 text")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", "-f", "/no/such"), ("/no/such", "cannot be read")),
        (("plan", "-f", TINY, "--what-if", "gpus=lots"), ("what-if", "gpus=lots", "use one of")),
        (("plan", "-f", TINY, "--what-if", "rate.chta=x2"), ("rate.chta=x2", "chat")),
        (("plan", "-f", TINY, "--trace", "chat"), ("--trace", "CLASS=FILE")),
        (("plan", "-f", TINY, "--trace", "other=/no/such.csv"), ("/no/such.csv",)),
        (("plan", "-f", TINY, "--time-limit", "-1"), ("--time-limit",)),
        (("plan", "-f", TINY, "--method", "Magic"), ("--method", "Literal")),
        (("plan", "-f", TINY, "-o", "xml"), ("--output", "table")),
        (("plan", "-f", TINY, "--against", TINY / "nodes.yaml"), ("nodes.yaml", "0 RoutingPlans")),
        (("verify", "-f", TINY, "/no/plan.yaml"), ("/no/plan.yaml", "cannot be read")),
        (("diff", TINY / "fleet.yaml", TINY / "fleet.yaml"), ("fleet.yaml", "0 RoutingPlans")),
        (("table", "-f", TINY, "--keys", "/no/keys.csv"), ("/no/keys.csv", "cannot be read")),
        (("table", "-f", TINY, "--keys", TINY / "fleet.yaml"), ("fleet.yaml", "no column class")),
        (("show", "epsilon", "-f", TINY / "nodes.yaml"), ("no ServingFleet",)),
        (("demo-plan", "--samples", "/no/samples"), ("/no/samples", "--samples")),
        (("plna",), ("plna",)),
    ],
)  # fmt: skip
def test_bad_options_are_refused_by_name(arguments: tuple[object, ...], words: tuple[str, ...]) -> None:
    assert_refused(run(*arguments), *words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("class,key,requestsPerSecond\n", ("no row",)),
        ("class,key,requestsPerSecond\nchat,a,x\n", ("none of its 1 rows",)),
        ("class,key,requestsPerSecond\nchat,a,1\nchat,a,2\n", ("line 3 repeats the key of line 2",)),
        ("class,key,requestsPerSecond\nother,a,1\n", ("key a", "other", "chat")),
    ],
)
def test_bad_key_rates_are_refused(text: str, words: tuple[str, ...], tmp_path: Path) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text(text, encoding="utf-8")
    assert_refused(run("table", "-f", TINY, "--keys", keys, "--out", tmp_path / "out"), *words)
    assert not (tmp_path / "out").exists()


def test_a_short_secret_is_refused_without_being_shown(tmp_path: Path) -> None:
    keys, secret = tmp_path / "keys.csv", tmp_path / "secret"
    keys.write_text("class,key,requestsPerSecond\nchat,a,1\n", encoding="utf-8")
    secret.write_bytes(b"hunter2")
    result = run("table", "-f", TINY, "--keys", keys, "--secret-file", secret)
    assert_refused(result, "hash secret", "16 to 64 bytes")
    assert "hunter2" not in result.output


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way", encoding="utf-8")
    assert_refused(run("plan", "-f", TINY, "--out", blocked / "plan.yaml"), "--out", "cannot be written")
    assert_refused(run("plan", "-f", TINY, "--plot", blocked), "--plot", "cannot be written")
    assert blocked.read_text(encoding="utf-8") == "in the way"


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (OSError(28, "No space left on device"), 2)])
def test_an_interrupted_write_leaves_the_old_file(
    error: BaseException, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "plan.yaml"
    out.write_text("old", encoding="utf-8")

    def interrupted(_: int) -> None:
        raise error

    monkeypatch.setattr(os, "fsync", interrupted)
    result = run("plan", "-f", TINY, "--out", out)
    assert result.exit_code == code
    assert "Traceback" not in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["plan.yaml"]
    assert out.read_text(encoding="utf-8") == "old"


def test_without_matplotlib_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("kvplan_cli.plots.style.find_spec", lambda _: None)
    result = run("plan", "-f", TINY, "--plot", tmp_path)
    assert_refused(result, "matplotlib", "pip install 'kvplan[plots]'")
    assert not result.stdout


def test_without_cvxpy_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    assert run("plan", "-f", TINY, "--out", plan).exit_code == 0
    for name in [
        name for name in sys.modules if name.startswith(("kvplan_solver.reference", "kvplan_solver.backends.cvx"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    result = run("verify", "-f", TINY, plan, "--reference")
    assert_refused(result, "cvxpy", "pip install 'kvplan[reference]'")


def test_the_program_itself_prints_no_traceback_and_no_colour_in_a_pipe() -> None:
    environment = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "TTY_COMPATIBLE")}
    good = subprocess.run([*KVPLAN, "plan", "-f", TINY], capture_output=True, text=True, env=environment, check=False)
    bad = subprocess.run([*KVPLAN, "plan", "-f", "/no"], capture_output=True, text=True, env=environment, check=False)
    assert (good.returncode, bad.returncode) == (0, 2)
    assert "\x1b" not in good.stdout + good.stderr + bad.stderr
    assert bad.stderr == "kvplan: /no: it cannot be read (No such file or directory): check the path\n"


def test_the_plan_file_does_not_depend_on_the_hash_seed() -> None:
    texts = {
        subprocess.run(
            [*KVPLAN, "plan", "-f", TINY, "-o", "yaml"], capture_output=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(texts) == 1


def test_ctrl_c_ends_quietly_with_130(tmp_path: Path) -> None:
    pipe = tmp_path / "slow.yaml"
    os.mkfifo(pipe)
    process = subprocess.Popen([*KVPLAN, "plan", "-f", pipe], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with pipe.open("w"):  # opens once the program reads, so it is inside the command from here on
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
    assert (process.returncode, out, error) == (130, "", "")


def test_a_reader_that_has_enough_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*KVPLAN, "plan", "-f", TINY], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_failure_of_the_file_system_is_told_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", forbidden)
    assert_refused(run("plan", "-f", TINY), str(TINY), "Permission denied")
