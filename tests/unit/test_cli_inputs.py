"""Reading manifests: files, directories, stdin, kubectl's Lists; problems told by file and document."""

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvplan_cli.errors import CommandError
from kvplan_cli.inputs import read_manifests, read_plan, the_fleet
from kvplan_cli.yaml_reader import read_yaml
from kvplan_operator.errors import ManifestError

SAMPLES = Path(__file__).resolve().parents[2] / "manifests" / "samples"
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: %s}\n"


def written(directory: Path, **texts: str) -> str:
    for name, text in texts.items():
        (directory / f"{name}.yaml").write_text(text, encoding="utf-8")
    return str(directory)


def test_files_and_directories_give_the_same_objects() -> None:
    of_files = read_manifests([str(SAMPLES / name) for name in ("classes.yaml", "fleet.yaml", "nodes.yaml")])
    of_directory = read_manifests([str(SAMPLES)])
    assert of_files == of_directory
    assert [c.metadata.name for c in of_directory.classes] == ["chat", "code", "summarise"]
    assert len(of_directory.nodes) == 6


def test_folders_below_a_directory_are_left_alone(tmp_path: Path) -> None:
    written(tmp_path, a=NODE % "a")
    (tmp_path / "below").mkdir()
    written(tmp_path / "below", b=NODE % "b")
    assert [node["metadata"]["name"] for node in read_manifests([str(tmp_path)]).nodes] == ["a"]


def test_a_kubectl_list_is_opened(tmp_path: Path) -> None:
    items = '{"apiVersion": "v1", "kind": "List", "items": [%s, %s]}'
    one = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "%s"}}'
    path = tmp_path / "nodes.json"
    path.write_text(items % (one % "a", one % "b"), encoding="utf-8")
    assert [node["metadata"]["name"] for node in read_manifests([str(path)]).nodes] == ["a", "b"]


def test_stdin_is_read_for_a_hyphen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO((NODE % "a").encode())))
    assert len(read_manifests(["-"]).nodes) == 1


def test_a_problem_names_the_file_and_the_document_in_it(tmp_path: Path) -> None:
    bad = "apiVersion: kvplan.dev/v1alpha1\nkind: RequestClass\nmetadata: {name: chat}\nspec: {slo: 3}\n"
    written(tmp_path, a=NODE % "a", b=f"{NODE % 'b'}---\n{bad}")
    with pytest.raises(ManifestError) as caught:
        read_manifests([str(tmp_path)])
    assert all(problem.subject.startswith(f"{tmp_path}/b.yaml, document 2") for problem in caught.value.problems)


def test_a_repeated_object_names_both_places(tmp_path: Path) -> None:
    written(tmp_path, a=NODE % "same", b=NODE % "same")
    with pytest.raises(ManifestError, match=r"b\.yaml, document 1 .*a\.yaml, document 1"):
        read_manifests([str(tmp_path)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [1, 2", r"this is no YAML \(line \d", id="an open bracket is told by line"),
        pytest.param("a: 1\na: 2", "the key 'a' occurs twice", id="a repeated key would win silently"),
        pytest.param("\0", "this is no YAML", id="a control character is no text"),
        pytest.param("&a [*a]", "its aliases", id="a circular alias has no end"),
        pytest.param("[" * 3000, "nested too deeply|this is no YAML", id="nesting has a limit"),
        pytest.param(
            "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
            + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 10)}]\n" for n in range(7)),
            "its aliases",
            id="aliases may not blow up",
        ),
    ],
)
def test_bad_yaml_is_one_clear_error(text: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        read_yaml(text, "x.yaml")


def test_dates_stay_text_and_merge_keys_work() -> None:
    [document] = read_yaml("base: &b {x: 1}\nown: {<<: *b, t: 2026-01-02T03:04:05Z}", "x.yaml")
    assert document["own"] == {"x": 1, "t": "2026-01-02T03:04:05Z"}


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "nothing to read"),
        (["/no/such/file.yaml"], "cannot be read"),
    ],
)
def test_a_path_that_holds_nothing_is_named(paths: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        read_manifests(paths)


def test_empty_files_and_empty_directories_are_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"no \.yaml"):
        read_manifests([str(tmp_path)])
    written(tmp_path, empty="# nothing\n")
    with pytest.raises(CommandError, match="holds no object"):
        read_manifests([str(tmp_path)])


def test_the_fleet_is_the_only_one_or_the_named_one(tmp_path: Path) -> None:
    text = (SAMPLES / "fleet.yaml").read_text(encoding="utf-8")
    both = read_manifests([written(tmp_path, a=text, b=text.replace("name: assistants", "name: other", 1))])
    with pytest.raises(CommandError, match=r"2 ServingFleets .assistants, other.: choose one with --fleet"):
        the_fleet(both)
    assert the_fleet(both, "other").metadata.name == "other"
    with pytest.raises(CommandError, match="no ServingFleet 'third'"):
        the_fleet(both, "third")
    with pytest.raises(CommandError, match="no ServingFleet among"):
        the_fleet(read_manifests([str(SAMPLES / "nodes.yaml")]))


def test_a_plan_file_holds_exactly_one_plan() -> None:
    with pytest.raises(CommandError, match="holds 0 RoutingPlans"):
        read_plan(str(SAMPLES / "nodes.yaml"))
