import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kvplan_operator.kube.backoff import Backoff
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.errors import (
    AlreadyExists,
    Conflict,
    Expired,
    FieldConflict,
    Gone,
    KubeError,
    LeadershipLost,
    NotFound,
    NotServed,
    Refused,
    Terminating,
    Throttled,
    Unavailable,
    refusal,
)
from kvplan_operator.kube.fence import Fence
from kvplan_operator.kube.resources import CONFIG_MAPS, DEPLOYMENTS, NODES, SERVING_FLEETS
from tests.kube_api import Answer, Api, Hangs, Stream, kubeconfig, served, status

UID = "11111111-0000-0000-0000-000000000000"
SHARD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "a", "name": "shard"}}
AT_ONCE = {"Retry_After": "0"}

CASES: dict[str, tuple[int, dict[str, Any], type[KubeError]]] = {
    "a missing object": (404, {"reason": "NotFound"}, NotFound),
    "a kind that is not served": (404, {"message": "404 page not found\n"}, NotServed),
    "a taken name": (409, {"reason": "AlreadyExists"}, AlreadyExists),
    "a name that is still going away": (
        409,
        {"reason": "AlreadyExists", "message": 'object is being deleted: configmaps "a" already exists'},
        Terminating,
    ),
    "a faster writer": (409, {"reason": "Conflict"}, Conflict),
    "fields of another manager": (
        409,
        {"reason": "Conflict", "details": {"causes": [{"field": ".spec"}]}},
        FieldConflict,
    ),
    "another uid in a replace": (409, {"reason": "Conflict", "message": f"UID in precondition: {UID}"}, Gone),
    "another uid in a patch": (422, {"details": {"causes": [{"field": "metadata.uid"}] * 2}}, Gone),
    "another invalid field": (422, {"details": {"causes": [{"field": "metadata.name"}]}}, Refused),
    "a forgotten version": (410, {"reason": "Expired"}, Expired),
    "a namespace that ends": (403, {"details": {"causes": [{"reason": "NamespaceTerminating"}]}}, Terminating),
    "a missing right": (403, {"reason": "Forbidden"}, Refused),
    "an unknown user": (401, {"reason": "Unauthorized"}, Refused),
    "a bad request": (400, {"reason": "BadRequest"}, Refused),
    "a large request": (413, {"message": "too large"}, Refused),
    "too many requests": (429, {"reason": "TooManyRequests"}, Throttled),
    "a version from the future": (504, {"reason": "Timeout"}, Unavailable),
    "a fault of the server": (500, {"details": None}, Unavailable),
}


@pytest.mark.parametrize("case", CASES)
def test_each_refusal_says_what_can_be_done(case: str) -> None:
    code, body, kind = CASES[case]
    error = refusal("apply ConfigMap a/b", code, body, uid=UID)
    assert (type(error), error.code, error.reason) == (kind, code, body.get("reason", ""))
    assert str(error).startswith("apply ConfigMap a/b: ")


def test_a_conflict_that_names_the_uid_is_no_other_object_to_those_who_named_none() -> None:
    assert type(refusal("delete", 409, {"reason": "Conflict", "message": UID})) is Conflict


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), (None, 1.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 1.0)])
def test_throttled_says_when_to_come_back(header: str | None, seconds: float) -> None:
    error = refusal("list", 429, {}, retry_after=header)
    assert isinstance(error, Throttled)
    assert error.retry_after_seconds == seconds


def test_paths_are_those_of_the_api_server() -> None:
    assert NODES.path() == "/api/v1/nodes"
    assert SERVING_FLEETS.path("a", "b", "status") == "/apis/kvplan.dev/v1alpha1/namespaces/a/servingfleets/b/status"
    assert DEPLOYMENTS.path("a") == "/apis/apps/v1/namespaces/a/deployments"
    assert CONFIG_MAPS.path("a", "b/../c") == "/api/v1/namespaces/a/configmaps/b%2F..%2Fc"


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_be_another_path_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="names no object"):
        CONFIG_MAPS.path("a", name)


def test_a_namespace_for_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match="nodes has no namespaces"):
        NODES.path("a")


def test_pauses_grow_to_a_bound_and_are_drawn_from_zero() -> None:
    backoff = Backoff(first_seconds=0.5, most_seconds=3.0)
    assert [backoff.seconds(failures, lambda: 1.0) for failures in (1, 2, 3, 4, 5000)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert 0.0 <= backoff.seconds(3, random.Random(1).random) < 2.0


Scenario = Callable[[Client, Api], Awaitable[None]]


def play(directory: Path, scenario: Scenario, *answers: Answer | Stream | Hangs) -> None:
    """Run a scenario against an API server that gives these answers."""

    async def run() -> None:
        async with served(directory, *answers) as (client, api):
            await scenario(client, api)

    asyncio.run(run())


def test_every_write_has_a_content_type_a_manager_and_strict_validation(tmp_path: Path) -> None:
    async def scenario(client: Client, api: Api) -> None:
        await client.create(CONFIG_MAPS, SHARD)
        await client.apply(CONFIG_MAPS, SHARD, force=True, dry_run=True, subresource="status")
        await client.merge_patch(CONFIG_MAPS, SHARD, manager="kvplan-approve")
        await client.replace(CONFIG_MAPS, SHARD)
        await client.delete(CONFIG_MAPS, "a", "shard", uid=UID, resource_version="5", propagation="Foreground")
        strict = {"fieldManager": "kvplan", "fieldValidation": "Strict"}
        place = "/api/v1/namespaces/a/configmaps"
        options = {"preconditions": {"uid": UID, "resourceVersion": "5"}, "propagationPolicy": "Foreground"}
        assert [(each.method, each.path, each.content_type, each.query, each.body) for each in api.asked] == [
            ("POST", place, "application/json", strict, SHARD),
            (
                "PATCH",
                f"{place}/shard/status",
                "application/apply-patch+yaml",
                strict | {"force": "true", "dryRun": "All"},
                SHARD,
            ),
            (
                "PATCH",
                f"{place}/shard",
                "application/merge-patch+json",
                strict | {"fieldManager": "kvplan-approve"},
                SHARD,
            ),
            ("PUT", f"{place}/shard", "application/json", strict, SHARD),
            ("DELETE", f"{place}/shard", "application/json", {}, options),
        ]

    play(tmp_path, scenario, Answer())


def test_a_read_is_tried_again_after_a_fault_and_a_write_is_not(tmp_path: Path) -> None:
    async def scenario(client: Client, api: Api) -> None:
        assert await client.get(CONFIG_MAPS, "a", "shard") == SHARD
        with pytest.raises(Unavailable):
            await client.create(CONFIG_MAPS, SHARD)
        assert [each.method for each in api.asked] == ["GET", "GET", "POST"]

    play(tmp_path, scenario, status(500), Answer(SHARD), status(500))


def test_a_throttled_write_is_tried_again_a_few_times(tmp_path: Path) -> None:
    async def scenario(client: Client, api: Api) -> None:
        with pytest.raises(Throttled):
            await client.create(CONFIG_MAPS, SHARD)
        assert len(api.asked) == 4

    play(tmp_path, scenario, status(429, **AT_ONCE))


def test_deleting_what_is_not_there_is_no_error_but_an_unknown_kind_is(tmp_path: Path) -> None:
    async def scenario(client: Client, api: Api) -> None:
        await client.delete(CONFIG_MAPS, "a", "shard")
        with pytest.raises(NotServed):
            await client.delete(CONFIG_MAPS, "a", "shard")

    play(tmp_path, scenario, status(404, "NotFound"), Answer("404 page not found\n", 404))


def test_an_answer_that_is_no_json_is_a_fault_of_the_server(tmp_path: Path) -> None:
    async def scenario(client: Client, api: Api) -> None:
        with pytest.raises(Unavailable, match="get ConfigMap a/shard: the answer is no JSON"):
            await client.get(CONFIG_MAPS, "a", "shard")

    play(tmp_path, scenario, Answer("<html>"))


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    async def scenario(client: Client, api: Api) -> None:
        with pytest.raises(Refused, match="redirected"):
            await client.get(CONFIG_MAPS, "a", "shard")
        assert len(api.asked) == 1

    play(tmp_path, scenario, Answer("", 307, {"Location": "/elsewhere"}))


def test_no_environment_variable_makes_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    async def scenario(client: Client, api: Api) -> None:
        assert await client.get(CONFIG_MAPS, "a", "shard") == SHARD

    play(tmp_path, scenario, Answer(SHARD))


def test_a_number_that_is_no_json_is_never_sent(tmp_path: Path) -> None:
    async def scenario(client: Client, api: Api) -> None:
        with pytest.raises(ValueError, match="not JSON compliant"):
            await client.create(CONFIG_MAPS, {**SHARD, "data": float("nan")})
        assert api.asked == []

    play(tmp_path, scenario, Answer())


def page(*names: str, following: str = "") -> Answer:
    items = [{"metadata": {"namespace": "a", "name": name}} for name in names]
    return Answer({"items": items, "metadata": {"resourceVersion": "7", "continue": following}})


def test_a_list_that_expires_between_two_pages_is_read_in_one(tmp_path: Path) -> None:
    async def scenario(client: Client, api: Api) -> None:
        listing = await client.list(CONFIG_MAPS, limit=1, project=lambda item: (item["kind"], item["metadata"]["name"]))
        assert (listing.items, listing.resource_version) == ((("ConfigMap", "y"), ("ConfigMap", "z")), "7")
        asked = [(each.query.get("limit"), each.query.get("continue")) for each in api.asked]
        assert asked == [("1", None), ("1", "more"), (None, None)]

    play(tmp_path, scenario, page("x", following="more"), status(410, "Expired"), page("y", "z"))


def event(type_: str, version: str, **more: Any) -> dict[str, Any]:
    metadata = {"namespace": "a", "name": "shard", "resourceVersion": version}
    return {"type": type_, "object": {"metadata": metadata, **more}}


async def types_of(client: Client, silence_seconds: float = 30.0) -> list[str]:
    async with client.watch(CONFIG_MAPS, "a", resource_version="5", silence_seconds=silence_seconds) as events:
        return [each.type async for each in events]


def test_a_watch_ends_when_the_server_ends_it(tmp_path: Path) -> None:
    async def scenario(client: Client, api: Api) -> None:
        assert await types_of(client) == ["ADDED", "BOOKMARK"]
        assert api.asked[0].query == {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": "5",
            "timeoutSeconds": "300",
        }

    play(tmp_path, scenario, Stream([event("ADDED", "6"), event("BOOKMARK", "9")]))


WATCHES_THAT_FAIL: dict[str, tuple[Answer | Stream, type[KubeError]]] = {
    "an expired version is HTTP 200 and an event": (
        Stream([{"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}}]),
        Expired,
    ),
    "an expired version as HTTP 410": (status(410, "Expired"), Expired),
    "a connection that falls silent": (Stream([event("ADDED", "6")], silent=True), Unavailable),
    "an event that is cut off": (Stream([b'{"type": "ADD']), Unavailable),
    "a right that is missing": (status(403, "Forbidden"), Refused),
    "a line longer than any object": (Stream([b"x" * 9 * 2**20]), Unavailable),
}


@pytest.mark.parametrize("case", WATCHES_THAT_FAIL)
def test_a_watch_that_fails_says_why(case: str, tmp_path: Path) -> None:
    answer, kind = WATCHES_THAT_FAIL[case]

    async def scenario(client: Client, api: Api) -> None:
        with pytest.raises(kind):
            await types_of(client, silence_seconds=0.1)

    play(tmp_path, scenario, answer)


class Moments:
    """A clock that tells these times, one per look, and the last for ever."""

    def __init__(self, *seconds: float) -> None:
        self.left = list(seconds)

    def __call__(self) -> float:
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


def test_a_process_stopped_between_the_check_and_the_connection_sends_nothing(tmp_path: Path) -> None:
    async def scenario(client: Client, api: Api) -> None:
        fence = Fence(Moments(0.0, 60.0))
        fence.begin(term=1, until=10.0)
        with pytest.raises(LeadershipLost, match="term 1 of this process is over"):
            await client.fenced(fence).create(CONFIG_MAPS, SHARD)
        assert api.asked == []

    play(tmp_path, scenario, Answer())


def test_a_fence_that_holds_lets_writes_through(tmp_path: Path) -> None:
    async def scenario(client: Client, api: Api) -> None:
        fence = Fence(lambda: 0.0)
        fence.begin(term=1, until=10.0)
        await client.fenced(fence).create(CONFIG_MAPS, SHARD)
        assert len(api.asked) == 1

    play(tmp_path, scenario, Answer())


def test_a_fence_that_ran_out_stays_out_even_if_the_clock_went_back() -> None:
    fence = Fence(Moments(20.0, 0.0))
    fence.begin(term=1, until=10.0)
    with pytest.raises(LeadershipLost):
        fence.check()
    with pytest.raises(LeadershipLost):
        fence.extend(until=100.0)
    assert (fence.holds, fence.remaining_seconds) == (False, 0.0)


def test_missing_credentials_are_refused_with_their_source(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"no access to the API server by .*absent"):
        asyncio.run(Client.connect(tmp_path / "absent"))
    with pytest.raises(Refused, match=r"no access to the API server by .*kubeconfig: .*Expected object with name y"):
        asyncio.run(Client.connect(kubeconfig(tmp_path, "http://127.0.0.1"), context="y"))
    with pytest.raises(Refused, match="no access to the API server by the service account in"):
        asyncio.run(Client.connect(account=tmp_path))
