"""Fields that nobody knows, nulls and whole numbers with a point: where the API server is laxer than the command."""

import copy
import re
from typing import Any

import pytest

from e2e.crds.api import Api
from e2e.crds.documents import COMPLETE, SMALLEST, refusal, spec_only
from e2e.harness.cluster import Cluster
from e2e.harness.errors import KubectlFailed

pytestmark = pytest.mark.e2e

MISSPELT: dict[str, Any] = {**SMALLEST["ServingFleet"], "spec": {**SMALLEST["ServingFleet"]["spec"], "suspended": True}}
UNKNOWN = 'unknown field "spec.suspended"'


def test_strict_validation_refuses_an_unknown_field_by_name(api: Api) -> None:
    answer = api.create(MISSPELT, "default", dryRun="All", fieldValidation="Strict")
    start = 'ServingFleet in version "v1alpha1" cannot be handled as a ServingFleet: strict decoding error: '
    assert (answer.status, answer.message) == (400, start + UNKNOWN)


@pytest.mark.parametrize("options", [{}, {"fieldValidation": "Warn"}], ids=["by default", "when asked to warn"])
def test_else_an_unknown_field_is_dropped_with_a_warning(api: Api, options: dict[str, str]) -> None:
    answer = api.create(MISSPELT, "default", dryRun="All", **options)
    assert (answer.status, answer.warnings) == (201, (f'299 - "{UNKNOWN.replace(chr(34), chr(92) + chr(34))}"',))
    assert "suspended" not in answer.body["spec"]


def test_ignored_an_unknown_field_is_dropped_in_silence(api: Api) -> None:
    answer = api.create(MISSPELT, "default", dryRun="All", fieldValidation="Ignore")
    assert (answer.status, answer.warnings) == (201, ())
    assert "suspended" not in answer.body["spec"]


def test_kubectl_refuses_unknown_fields_unless_told_otherwise(cluster: Cluster) -> None:
    options = ["--dry-run=server", "--namespace=default"]
    with pytest.raises(KubectlFailed, match=re.escape(UNKNOWN)):
        cluster.kubectl.apply(MISSPELT, options=options)
    assert "created (server dry run)" in cluster.kubectl.apply(MISSPELT, options=[*options, "--validate=warn"])


def test_kubectl_names_the_version_that_does_not_exist(cluster: Cluster) -> None:
    with pytest.raises(KubectlFailed, match=r'no matches for kind "ServingFleet" in version "kvplan.dev/v2"'):
        cluster.kubectl.apply({**MISSPELT, "apiVersion": "kvplan.dev/v2"})


NULLS: dict[str, tuple[str, str]] = {
    "ServingFleet": ("suspend", "prometheus"),
    "RequestClass": ("tenant", "costs"),
    "RoutingPlan": ("blockTokens", "blockTokens"),
}


@pytest.mark.parametrize(("kind", "fields"), NULLS.items(), ids=NULLS.keys())
def test_null_in_an_optional_field_means_absent_to_the_api_server_alone(
    api: Api, kind: str, fields: tuple[str, str]
) -> None:
    document, bare = copy.deepcopy(SMALLEST[kind]), SMALLEST[kind]
    document["spec"] |= dict.fromkeys(fields)
    answer = api.create(document, "default", dryRun="All", fieldValidation="Strict")
    assert answer.body["spec"] == api.create(bare, "default", dryRun="All").body["spec"]
    assert "remove the field" in str(refusal(document))


def test_a_whole_number_with_a_point_is_served_without_it(api: Api) -> None:
    document = spec_only(COMPLETE["ServingFleet"])
    document["spec"]["objective"]["latencyWeight"] = 7.0
    answer = api.create(document, "default", dryRun="All", fieldValidation="Strict")
    served = answer.body["spec"]["objective"]["latencyWeight"]
    assert (answer.status, served, type(served)) == (201, 7, int)
    assert "spec.objective.latencyWeight is 7.0: use an integer" in str(refusal(document))
