"""kubectl's search for a kubeconfig and a namespace, in files and directories of the test."""

import os
from pathlib import Path

import pytest
import yaml

from kvplan_cli.cluster.kubeconfig import Access, access_of
from kvplan_cli.cluster.place import Place, check_no_place
from kvplan_cli.errors import CommandError


def written(directory: Path, name: str, current: str | None = "a", **contexts: str | None) -> Path:
    """A kubeconfig with contexts and their namespaces."""
    entries = [{"name": c, "context": {"cluster": "c"} | ({"namespace": n} if n else {})} for c, n in contexts.items()]
    file = directory / name
    file.write_text(yaml.safe_dump({"current-context": current, "contexts": entries}), encoding="utf-8")
    return file


def test_the_option_beats_the_variable_and_the_variable_the_home_directory(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    home = written(tmp_path / ".kube", "config", a="home")
    first, second = written(tmp_path, "first", a="first"), written(tmp_path, "second", a="second")
    environment = {"KUBECONFIG": str(first), "HOME": str(tmp_path)}
    assert access_of(Place(kubeconfig=str(second)), environment) == Access(second, None, "second")
    assert access_of(Place(), environment) == Access(first, None, "first")
    assert access_of(Place(), {"HOME": str(tmp_path)}) == Access(home, None, "home")


def test_several_files_are_merged_and_the_first_that_states_something_wins(tmp_path: Path) -> None:
    first, second = written(tmp_path, "1", None, a="one"), written(tmp_path, "2", "b", a="two", b="three")
    listed = os.pathsep.join(map(str, (tmp_path / "absent", first, second)))
    found = access_of(Place(), {"KUBECONFIG": listed})
    assert found == Access(Path(os.pathsep.join(map(str, (first, second)))), None, "three")
    assert access_of(Place(context="a"), {"KUBECONFIG": listed}).namespace == "one"


def test_a_namespace_that_nobody_states_is_default_and_one_that_is_asked_for_wins(tmp_path: Path) -> None:
    file = str(written(tmp_path, "c", a=None))
    assert access_of(Place(kubeconfig=file)).namespace == "default"
    assert access_of(Place("mine", kubeconfig=file)).namespace == "mine"


def test_in_a_pod_the_service_account_stands_in(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    (tmp_path / "namespace").write_text("fleet\n")
    nothing = {"HOME": str(tmp_path)}
    assert access_of(Place(), nothing, tmp_path) == Access(None, None, "fleet")
    with pytest.raises(CommandError, match="only the pod's service account"):
        access_of(Place(context="a"), nothing, tmp_path)


REFUSED = {
    "no file at all": (None, {}, "there is no kubeconfig"),
    "a list of absent files": (None, {"KUBECONFIG": "/absent"}, "/absent does not exist"),
    "no YAML": (":\n  - {", {}, "it is no kubeconfig (no YAML)"),
    "no mapping": ("- a", {}, "it is no kubeconfig (no mapping)"),
    "no current context": ("{}", {}, "it has no current context: choose one with --context; there are none"),
    "a current context that is not there": ("current-context: a", {}, "there is no context 'a'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_named_with_its_remedy(case: str, tmp_path: Path) -> None:
    text, environment, message = REFUSED[case]
    place = Place()
    if text is not None:
        (tmp_path / "config").write_text(text)
        place = Place(kubeconfig=str(tmp_path / "config"))
    with pytest.raises(CommandError) as refused:
        access_of(place, {"HOME": str(tmp_path), **environment}, tmp_path)
    assert message in str(refused.value)


def test_options_about_a_cluster_are_refused_where_files_are_read() -> None:
    check_no_place(Place())
    with pytest.raises(CommandError, match="--context"):
        check_no_place(Place(context="a"))
    with pytest.raises(CommandError, match="--prometheus"):
        check_no_place(Place(), "http://p")
