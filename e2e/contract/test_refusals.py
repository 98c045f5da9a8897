"""Refusals that the client tells apart: unknown fields, a namespace that ends, missing rights, an unknown user."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from e2e.contract.client import MERGE, Client, Object, Reply
from e2e.contract.objects import config_map, config_maps, fleet, fleets
from e2e.harness.cluster import Cluster

pytestmark = pytest.mark.e2e

HOLD = "kvplan.dev/contract"
NAMESPACES = "/api/v1/namespaces"


async def test_strict_refuses_an_unknown_field(client: Client, place: str, name: str) -> None:
    refused = await client.create(fleets(place), fleet(name, suspended=True), fieldValidation="Strict")
    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert 'unknown field "spec.suspended"' in refused.message


async def test_warn_drops_an_unknown_field_and_says_so(client: Client, place: str, name: str) -> None:
    warned = await client.create(fleets(place), fleet(name, suspended=True), fieldValidation="Warn")
    assert (warned.code, warned.headers["Warning"]) == (201, r'299 - "unknown field \"spec.suspended\""')
    assert "suspended" not in warned.body["spec"]


@asynccontextmanager
async def ending_namespace(client: Client, name: str) -> AsyncIterator[str]:
    """A namespace that is deleted but held by a finalizer of an object in it."""
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    held = config_map(name)
    held["metadata"]["finalizers"] = [HOLD]
    await client.create(config_maps(name), held)
    ended = await client.delete(f"{NAMESPACES}/{name}")
    assert ended.body["status"]["phase"] == "Terminating"
    try:
        yield name
    finally:
        await client.patch(f"{config_maps(name)}/{name}", {"metadata": {"finalizers": None}}, MERGE)


async def first_refusal(client: Client, namespace: str, name: str) -> Reply:
    """Create until it is refused: admission learns of the end through a watch of its own."""
    number = 0
    while (reply := await client.create(config_maps(namespace), config_map(f"{name}-{number}"))).code == 201:
        number += 1
    return reply


async def test_in_a_namespace_that_ends_nothing_can_be_made(client: Client, name: str) -> None:
    async with ending_namespace(client, name) as namespace:
        refused = await first_refusal(client, namespace, name)
    assert (refused.code, refused.reason) == (403, "Forbidden")
    assert refused.causes == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {name} is being terminated",
            "field": "metadata.namespace",
        }
    ]


async def test_in_a_namespace_that_does_not_exist_it_is_not_found(client: Client, name: str) -> None:
    refused = await client.create(fleets(name), fleet(name))
    assert (refused.code, refused.reason) == (404, "NotFound")
    assert refused.body["details"] == {"name": name, "kind": "namespaces"}


@pytest.mark.usefixtures("own_control_plane")
async def test_a_missing_right_is_named(cluster: Cluster, place: str) -> None:
    nobody = await Client.connect(cluster.plane.identity("nobody"))
    refused = await nobody.get(fleets(place))
    await nobody.close()
    assert (refused.code, refused.reason, refused.causes) == (403, "Forbidden", [])
    wanted = f'User "nobody" cannot list resource "servingfleets" in API group "kvplan.dev" in the namespace "{place}"'
    assert wanted in refused.message


async def test_a_token_is_sent_and_says_who_asks(client: Client, cluster: Cluster, place: str) -> None:
    reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    account = f"/api/v1/namespaces/{place}/serviceaccounts/default/token"
    token = (await client.create(account, asked)).body["status"]["token"]
    told = await ask_as(cluster, token, reviews, review)
    assert told.body["status"]["userInfo"]["username"] == f"system:serviceaccount:{place}:default"
    refused = await ask_as(cluster, "no-such-token", reviews, review)
    assert (refused.code, refused.reason) == (401, "Unauthorized")


async def ask_as(cluster: Cluster, token: str, path: str, body: Object) -> Reply:
    """Create an object as whoever the token stands for."""
    bearer = await Client.connect(cluster.kubeconfig, token)
    reply = await bearer.create(path, body)
    await bearer.close()
    return reply
