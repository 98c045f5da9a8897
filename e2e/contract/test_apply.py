"""Server-side apply: who owns which field, who is refused, and when nothing is written."""

import pytest

from e2e.contract.client import Client, Object
from e2e.contract.objects import config_map, config_maps, fleet, fleets, partial

pytestmark = pytest.mark.e2e

CONDITION = {"status": "True", "lastTransitionTime": "2026-01-31T08:00:00Z", "reason": "AsPlanned", "message": ""}


def status(name: str, *types: str, generation: int = 1) -> Object:
    conditions = [{"type": type_, **CONDITION} for type_ in types]
    return partial(fleet(name), status={"observedGeneration": generation, "conditions": conditions})


def managers(document: Object) -> dict[str, str]:
    """Managers and how they write."""
    return {entry["manager"]: entry["operation"] for entry in document["metadata"]["managedFields"]}


@pytest.mark.smoke
async def test_a_field_of_another_manager_is_refused_and_its_owner_is_named(
    client: Client, place: str, name: str
) -> None:
    path = f"{fleets(place)}/{name}"
    made = await client.apply(path, fleet(name, suspend=False), manager="git")
    assert managers(made.body) == {"git": "Apply"}
    refused = await client.apply(path, partial(fleet(name), spec={"suspend": True}))
    assert (refused.code, refused.reason) == (409, "Conflict")
    assert refused.causes == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "git"', "field": ".spec.suspend"}
    ]


async def test_the_same_value_is_shared_and_force_takes_a_field_away(client: Client, place: str, name: str) -> None:
    path = f"{fleets(place)}/{name}"
    await client.apply(path, fleet(name, suspend=False), manager="git")
    assert (await client.apply(path, partial(fleet(name), spec={"suspend": False}))).code == 200
    taken = await client.apply(path, partial(fleet(name), spec={"suspend": True}), force="true")
    assert (taken.code, taken.body["spec"]["suspend"]) == (200, True)
    refused = await client.apply(path, fleet(name, suspend=False), manager="git")
    assert refused.causes[0]["message"] == 'conflict with "kvplan"'


async def test_a_field_that_its_only_owner_leaves_out_goes(client: Client, place: str, name: str) -> None:
    path = f"{config_maps(place)}/{name}"
    await client.apply(path, config_map(name, ours="1"))
    await client.apply(path, config_map(name, theirs="2"), manager="other")
    assert (await client.apply(path, config_map(name))).body["data"] == {"theirs": "2"}


@pytest.mark.parametrize("subresource", ["", "/status"], ids=["object", "status"])
async def test_applying_the_same_again_writes_nothing(client: Client, place: str, name: str, subresource: str) -> None:
    name += subresource.replace("/", "-")
    path = f"{fleets(place)}/{name}"
    await client.apply(path, fleet(name))
    body = status(name, "Ready") if subresource else fleet(name)
    first = (await client.apply(path + subresource, body)).body
    again = (await client.apply(path + subresource, body)).body
    assert again == first


async def test_conditions_of_two_managers_stand_side_by_side(client: Client, place: str, name: str) -> None:
    path = f"{fleets(place)}/{name}"
    await client.create(fleets(place), fleet(name))
    await client.apply(f"{path}/status", status(name, "Ready"))
    both = await client.apply(f"{path}/status", status(name, "Stalled"), manager="other")
    assert [each["type"] for each in both.body["status"]["conditions"]] == ["Ready", "Stalled"]
    mine_gone = await client.apply(f"{path}/status", status(name))
    assert [each["type"] for each in mine_gone.body["status"]["conditions"]] == ["Stalled"]


async def test_an_applied_status_leaves_spec_and_generation_alone(client: Client, place: str, name: str) -> None:
    made = (await client.create(fleets(place), fleet(name))).body
    body = {**status(name, "Ready"), "spec": {"suspend": True}}
    written = (await client.apply(f"{fleets(place)}/{name}/status", body)).body
    assert (written["spec"], written["metadata"]["generation"]) == (made["spec"], 1)
    assert written["status"]["observedGeneration"] == 1


async def test_container_arguments_are_one_field_and_replicas_another(client: Client, place: str, name: str) -> None:
    path = f"/apis/apps/v1/namespaces/{place}/deployments/{name}"
    container = {"name": "vllm", "image": "vllm:1", "args": ["serve", "m"]}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    await client.apply(path, deployment, manager="git")
    flags = {"template": {"spec": {"containers": [{"name": "vllm", "args": ["serve", "m", "--max-num-seqs=8"]}]}}}
    refused = await client.apply(path, partial(deployment, spec={"replicas": 1, **flags}))
    assert sorted(cause["field"] for cause in refused.causes) == [
        ".spec.replicas",
        '.spec.template.spec.containers[name="vllm"].args',
    ]
    taken = await client.apply(path, partial(deployment, spec=flags), force="true")
    (served,) = taken.body["spec"]["template"]["spec"]["containers"]
    assert (served["args"][-1], served["image"], taken.body["spec"]["replicas"]) == ("--max-num-seqs=8", "vllm:1", 0)


async def test_applying_without_a_manager_is_refused(client: Client, place: str, name: str) -> None:
    refused = await client.apply(f"{fleets(place)}/{name}", fleet(name), manager="")
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert "fieldManager: Required value" in refused.message
