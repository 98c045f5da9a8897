"""The table of right and wrong objects, against the API server and against the command."""

from collections.abc import Sequence

import pytest
import yaml

from e2e.crds.api import Api
from e2e.crds.cases import Case, valid_cases, wrong_cases
from e2e.crds.documents import refusal, without_empty
from e2e.harness.cluster import Cluster
from e2e.harness.errors import KubectlFailed
from kvplan_operator.api.manifests import parse_object

pytestmark = pytest.mark.e2e

VALID, WRONG = valid_cases(), wrong_cases()
STRICT = {"dryRun": "All", "fieldValidation": "Strict"}


@pytest.mark.smoke
@pytest.mark.parametrize("case", VALID, ids=str)
def test_what_is_right_is_accepted_and_served_with_the_defaults_of_the_types(api: Api, case: Case) -> None:
    answer = api.create(case.document, "default", **STRICT)
    assert (answer.status, answer.problems, answer.warnings) == (201, (), ())
    typed = parse_object(case.document)
    assert without_empty(answer.body["spec"]) == without_empty(typed.to_wire()["spec"])
    assert parse_object(answer.body).spec == typed.spec


@pytest.mark.smoke
@pytest.mark.parametrize("case", WRONG, ids=str)
def test_what_is_wrong_is_refused_in_these_words(api: Api, case: Case) -> None:
    answer = api.create(case.document, "default", **STRICT)
    assert not answer.accepted
    assert sorted(answer.problems) == sorted(case.says)


@pytest.mark.parametrize("case", WRONG, ids=str)
def test_the_command_refuses_what_the_api_server_refuses(case: Case) -> None:
    assert refusal(case.document)


def test_no_two_cases_are_the_same_object() -> None:
    documents = [yaml.safe_dump(case.document) for case in [*VALID, *WRONG]]
    assert len(set(documents)) == len(documents) >= 150


@pytest.mark.parametrize("kind", ["ServingFleet", "RequestClass", "RoutingPlan"])
def test_kubectl_prints_the_words_of_the_table_one_line_per_object(cluster: Cluster, kind: str) -> None:
    cases = [case for case in WRONG if case.document["kind"] == kind]
    with pytest.raises(KubectlFailed) as failure:
        cluster.kubectl.apply(*(case.document for case in cases), options=["--dry-run=server", "--namespace=default"])
    for case, line in zip(cases, failure.value.stderr.splitlines(), strict=True):
        prefix, _, words = line.partition(f"{subject(case)} ")
        assert prefix.startswith("Error from server"), case.what
        assert parts([words.removeprefix("is invalid: ").removeprefix("[").removesuffix("]")]) == parts(case.says)


def test_kubectl_lists_the_problems_of_a_single_object(cluster: Cluster) -> None:
    (case,) = (case for case in WRONG if case.what == "a broken rule beside a broken bound")
    with pytest.raises(KubectlFailed) as failure:
        cluster.kubectl.apply(case.document, options=["--dry-run=server", "--namespace=default"])
    first, *lines = failure.value.stderr.splitlines()
    assert first == 'The ServingFleet "chat" is invalid: '
    assert sorted(lines) == sorted(f"* {problem}" for problem in case.says)


def subject(case: Case) -> str:
    """What kubectl writes before the words: the object, or for unknown fields where it was sent."""
    kind, name = case.document["kind"], case.document["metadata"]["name"]
    return (
        'error when creating "STDIN":'
        if case.says[0].startswith(f"{kind} in version")
        else f'{kind}.kvplan.dev "{name}"'
    )


def parts(says: Sequence[str]) -> list[str]:
    """The words without the order of the problems, which the API server does not fix."""
    return sorted(", ".join(says).split(", "))
