"""Kinds of patches on our objects, and what the library does with them when nobody says which kind it is."""

import pytest
from kubernetes.aio.client import ApiException, CustomObjectsApi

from e2e.contract.client import JSON_PATCH, MERGE, STRATEGIC, Client
from e2e.contract.objects import fleet, fleets

pytestmark = pytest.mark.e2e

SUSPEND = [{"op": "replace", "path": "/spec/suspend", "value": True}]


async def test_a_json_patch_is_a_list_of_steps(client: Client, place: str, name: str) -> None:
    await client.create(fleets(place), fleet(name))
    patched = await client.patch(f"{fleets(place)}/{name}", SUSPEND, JSON_PATCH)
    assert (patched.code, patched.body["spec"]["suspend"]) == (200, True)


async def test_a_merge_patch_removes_by_null_and_replaces_lists(client: Client, place: str, name: str) -> None:
    await client.create(fleets(place), fleet(name, suspend=True, engine={"version": "0.32.0"}))
    change = {"spec": {"engine": {"version": None}, "configurations": [{"name": "tp2", "tensorParallel": 2}]}}
    spec = (await client.patch(f"{fleets(place)}/{name}", change, MERGE)).body["spec"]
    assert "version" not in spec["engine"]
    assert [each["name"] for each in spec["configurations"]] == ["tp2"]
    assert spec["suspend"] is True


async def test_a_strategic_patch_is_for_built_in_kinds_alone(client: Client, place: str, name: str) -> None:
    await client.create(fleets(place), fleet(name))
    refused = await client.patch(f"{fleets(place)}/{name}", {"spec": {"suspend": True}}, STRATEGIC)
    assert (refused.code, refused.reason) == (415, "UnsupportedMediaType")


async def test_the_library_sends_a_list_as_a_merge_patch_unless_told_otherwise(
    client: Client, place: str, name: str
) -> None:
    await client.create(fleets(place), fleet(name))
    library, where = CustomObjectsApi(client.library), ("kvplan.dev", "v1alpha1", place, "servingfleets", name)
    with pytest.raises(ApiException, match="400"):
        await library.patch_namespaced_custom_object(*where, body=SUSPEND)
    await library.patch_namespaced_custom_object(*where, body=SUSPEND, _content_type=JSON_PATCH)
    assert (await client.get(f"{fleets(place)}/{name}")).body["spec"]["suspend"] is True


async def test_the_library_warns_of_a_body_above_a_megabyte(client: Client, place: str, name: str) -> None:
    library, where = CustomObjectsApi(client.library), ("kvplan.dev", "v1alpha1", place, "servingfleets", name)
    large = {"metadata": {"annotations": {"a": "x" * 2**20}}}
    with pytest.warns(ResourceWarning, match="Sending a large body"), pytest.raises(ApiException, match="404"):
        await library.patch_namespaced_custom_object(*where, body=large)
