"""Two writers of one object: who is refused, and with which words."""

from collections.abc import Awaitable, Callable

import pytest

from e2e.contract.client import JSON_PATCH, MERGE, Client, Object, Reply
from e2e.contract.objects import fleet, fleets, partial

pytestmark = pytest.mark.e2e

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
NO_UID = "00000000-0000-0000-0000-000000000000"
Write = Callable[[Client, str, Object], Awaitable[Reply]]


def versioned(document: Object) -> Object:
    """A change of labels that carries the resource version of the document."""
    version = document["metadata"]["resourceVersion"]
    return {
        "metadata": {"name": document["metadata"]["name"], "resourceVersion": version, "labels": {"writer": "late"}}
    }


WRITES: dict[str, Write] = {
    "replaced": lambda client, path, old: client.replace(path, old),
    "replaced in its status": lambda client, path, old: client.replace(f"{path}/status", old),
    "merged": lambda client, path, old: client.patch(path, versioned(old), MERGE),
    "applied": lambda client, path, old: client.apply(path, {**partial(old), **versioned(old)}),
    "applied by force": lambda client, path, old: client.apply(path, {**partial(old), **versioned(old)}, force="true"),
    "applied in its status": lambda client, path, old: client.apply(
        f"{path}/status", {**partial(old), **versioned(old), "status": {"observedGeneration": 1}}
    ),
    "deleted": lambda client, path, old: client.delete(
        path, {"preconditions": {"resourceVersion": old["metadata"]["resourceVersion"]}}
    ),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=[how.replace(" ", "-") for how in WRITES])
async def test_a_late_write_that_names_its_version_is_refused(
    client: Client, place: str, name: str, write: Write
) -> None:
    path = f"{fleets(place)}/{name}"
    old = (await client.create(fleets(place), fleet(name))).body
    early = (await client.patch(path, {"spec": {"suspend": True}}, MERGE)).body
    refused = await write(client, path, old)
    assert (refused.code, refused.reason, refused.causes) == (409, "Conflict", [])
    assert MODIFIED in refused.message or "does not match the ResourceVersion in record" in refused.message
    assert (await client.get(path)).body == early


async def test_a_late_write_without_a_version_goes_through(client: Client, place: str, name: str) -> None:
    await client.create(fleets(place), fleet(name))
    path = f"{fleets(place)}/{name}"
    await client.patch(path, {"spec": {"suspend": True}}, MERGE)
    assert (await client.patch(path, {"spec": {"suspend": False}}, MERGE)).code == 200
    assert (await client.apply(path, partial(fleet(name), spec={"suspend": True}), force="true")).code == 200


async def test_a_json_patch_can_test_the_version_itself(client: Client, place: str, name: str) -> None:
    await client.create(fleets(place), fleet(name))
    steps: list[Object] = [
        {"op": "test", "path": "/spec/suspend", "value": True},
        {"op": "remove", "path": "/spec/suspend"},
    ]
    refused = await client.patch(f"{fleets(place)}/{name}", steps, JSON_PATCH)
    assert (refused.code, refused.reason) == (422, "Invalid")


async def test_a_write_to_an_object_made_anew_is_refused_by_its_uid(client: Client, place: str, name: str) -> None:
    path = f"{fleets(place)}/{name}"
    made = (await client.create(fleets(place), fleet(name))).body
    stale = {**made, "metadata": {**made["metadata"], "uid": NO_UID}}
    for refused in (await client.replace(path, stale), await client.delete(path, {"preconditions": {"uid": NO_UID}})):
        assert (refused.code, refused.reason) == (409, "Conflict")
        assert NO_UID in refused.message


async def test_patched_it_is_refused_as_a_change_of_the_uid(client: Client, place: str, name: str) -> None:
    path = f"{fleets(place)}/{name}"
    await client.create(fleets(place), fleet(name))
    stale = {**partial(fleet(name)), "metadata": {"name": name, "uid": NO_UID}}
    for refused in (await client.apply(path, stale), await client.patch(path, stale, MERGE)):
        assert (refused.code, refused.reason) == (422, "Invalid")
        assert {cause["field"] for cause in refused.causes} == {"metadata.uid"}


async def test_a_name_that_is_taken_is_a_conflict_of_another_reason(client: Client, place: str, name: str) -> None:
    await client.create(fleets(place), fleet(name))
    refused = await client.create(fleets(place), fleet(name))
    assert (refused.code, refused.reason) == (409, "AlreadyExists")


async def test_replacing_what_is_gone_is_not_found_and_applying_makes_it(client: Client, place: str, name: str) -> None:
    path = f"{fleets(place)}/{name}"
    refused = await client.patch(path, {"spec": {"suspend": True}}, MERGE)
    assert (refused.code, refused.reason) == (404, "NotFound")
    assert (await client.apply(path, fleet(name))).code == 201


@pytest.mark.smoke
async def test_of_two_who_take_a_lease_one_is_refused(client: Client, place: str, name: str) -> None:
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{place}/leases"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}
    free = (await client.create(leases, {**lease, "spec": {"leaseDurationSeconds": 15}})).body
    first = await client.replace(f"{leases}/{name}", {**free, "spec": {"holderIdentity": "a", "leaseTransitions": 1}})
    second = await client.replace(f"{leases}/{name}", {**free, "spec": {"holderIdentity": "b", "leaseTransitions": 1}})
    assert (first.code, second.code, second.reason) == (200, 409, "Conflict")
    assert (await client.get(f"{leases}/{name}")).body["spec"]["holderIdentity"] == "a"
