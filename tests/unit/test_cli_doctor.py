"""The doctor's checks, each from what was seen alone."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from kvplan_cli.doctor.attempts import attempt
from kvplan_cli.doctor.findings import Finding, Level, Unknown, findings_view, healthy
from kvplan_cli.doctor.fleets import FleetFacts, fleet_checks
from kvplan_cli.doctor.installation import api_server, crds, leaders, operators, permissions
from kvplan_cli.doctor.rights import account_of
from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.crdgen import crd_document
from kvplan_operator.api.kinds import KINDS
from kvplan_operator.kube.errors import Refused
from kvplan_operator.route.published import Published
from kvplan_solver.cacheroute.keys import fingerprint, weak_secret
from kvplan_solver.cacheroute.router_state import RouterMode, RouterReport
from tests.fleet_views import UID, fleet_view
from tests.routing_plans import NOW, condition, group, plan_of

Object = dict[str, Any]
FORBIDDEN = Unknown("cannot list")


def levels(found: Iterable[Finding]) -> list[tuple[str, str]]:
    return [(finding.level.value, finding.what) for finding in found]


def installed(number: int = 0, **changes: Any) -> Object:
    document = crd_document(KINDS[number])
    conditions = [{"type": "Established", "status": changes.pop("established", "True")}]
    document["spec"]["versions"][0] |= changes
    return document | {"status": {"conditions": conditions}}


@pytest.mark.parametrize(("minor", "level"), [("28+", "fail"), ("29", "ok"), ("37", "ok"), ("", "fail")])
def test_the_api_server_must_know_the_rules_of_the_crds(minor: str, level: str) -> None:
    found = api_server({"major": "1", "minor": minor, "gitVersion": f"v1.{minor}.0"})
    assert found.level.value == level


def test_crds_must_be_there_served_and_of_this_version() -> None:
    names = [kind.crd_name for kind in KINDS]
    found = list(crds({names[0]: installed(0), names[1]: installed(1, schema={"openAPIV3Schema": {"type": "object"}})}))
    assert [finding.level for finding in found] == [Level.OK, Level.FAIL, Level.FAIL]
    assert "that of this kvplan" in found[1].what
    assert (found[2].what, found[2].remedy) == ("it is missing", "kubectl apply -f crds/")
    [starting] = list(crds({names[0]: installed(0, established="False")}))[:1]
    assert starting.what == "the API server does not serve it"
    assert levels(crds(FORBIDDEN)) == [("warn", "not looked at: cannot list")]


def operator_deployment(wanted: int, ready: int) -> Object:
    metadata = {"namespace": "system", "name": "kvplan-operator"}
    template = {"spec": {"serviceAccountName": "kvplan-operator"}}
    return {
        "metadata": metadata,
        "spec": {"replicas": wanted, "template": template},
        "status": {"readyReplicas": ready} if ready else {},
    }


def test_the_operators_pods_must_be_ready() -> None:
    found = list(operators([operator_deployment(2, 2), operator_deployment(2, 1), operator_deployment(2, 0)]))
    assert [finding.level for finding in found] == [Level.OK, Level.WARN, Level.FAIL]
    assert levels(operators([])) == [("warn", "no Deployment of an operator")]
    assert levels(operators(FORBIDDEN)) == [("warn", "not looked at: cannot list")]
    assert account_of(operator_deployment(1, 1)) == "system:serviceaccount:system:kvplan-operator"


def lease(holder: str, renewed: str | None) -> Object:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15} | ({"renewTime": renewed} if renewed else {})
    return {"metadata": {"namespace": "system", "name": "kvplan-operator"}, "spec": spec}


def test_an_operator_must_hold_its_lease() -> None:
    fresh, old = "2030-03-17T17:46:30.000000Z", "2030-03-17T17:00:00.000000Z"
    assert levels(leaders([lease("a", fresh)], NOW)) == [("ok", "a leads")]
    assert levels(leaders([lease("a", old)], NOW)) == [("fail", "no operator leads: last renewed 46m ago by a")]
    assert levels(leaders([lease("", None)], NOW)) == [("fail", "no operator leads: never renewed")]
    assert [level for level, _ in levels(leaders([lease("a", fresh), lease("b", old)], NOW))] == ["ok", "warn"]
    assert levels(leaders([], NOW)) == [("fail", "no operator ever led")]
    assert levels(leaders(FORBIDDEN, NOW)) == [("warn", "not looked at: cannot list")]


def test_each_missing_permission_is_a_failure() -> None:
    assert levels(permissions([], "a")) == [("ok", "it may do all that the operator does")]
    lacking = "permission to get, patch pods in the whole cluster is missing"
    assert levels(permissions([lacking], "a")) == [("fail", lacking)]
    assert levels(permissions(FORBIDDEN, "a")) == [("warn", "not looked at: cannot list")]


def checks(check: str, **facts: Any) -> list[tuple[str, str]]:
    """Findings of one check for the fleet ``demo``."""
    seen = FleetFacts(**({"view": fleet_view()} | facts))
    return [(f.level.value, f.what) for f in fleet_checks(seen) if f.check == check]


READY = condition(ConditionType.READY)
NOT_READY = condition(ConditionType.READY, ConditionStatus.FALSE, ConditionReason.ROLLING_OUT)
STALLED = condition(ConditionType.STALLED, reason=ConditionReason.NO_NODES)
STALE = condition(ConditionType.METRICS_FRESH, ConditionStatus.FALSE, ConditionReason.METRICS_STALE)


def test_a_fleet_is_ready_or_its_condition_says_why_not() -> None:
    assert checks("fleet") == [("fail", "no operator has looked at it")]
    assert checks("fleet", view=fleet_view(conditions=(READY,))) == [("ok", "ready, AsPlanned")]
    assert checks("fleet", view=fleet_view(conditions=(NOT_READY,))) == [("warn", "not ready, RollingOut")]
    assert checks("fleet", view=fleet_view(conditions=(NOT_READY, STALLED))) == [("fail", "stalled, NoNodes")]


def test_measurements_are_what_prometheus_and_the_condition_say() -> None:
    assert checks("Prometheus") == []
    assert checks("Prometheus", prometheus="p answers") == [("ok", "p answers")]
    assert checks("Prometheus", prometheus=Unknown("gone")) == [("warn", "no answer: gone")]
    assert checks("measurements", view=fleet_view(conditions=(STALE,))) == [("warn", "MetricsStale")]


def engine(name: str = "chat", image: str = "vllm/vllm-openai:v0.32.0", *args: str, container: str = "vllm") -> Object:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": container, "image": image, "args": list(args)}]},
    }
    return {"kind": "Deployment", "metadata": {"name": name, "namespace": "default"}, "spec": {"template": template}}


OLD_IMAGE, NAMELESS = "vllm/vllm-openai:v0.20.0", "registry/ours:latest"
FLAG = "--max-num-active-seqs=8"
ENGINES: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "all flags are known": (
        {"engines": (engine("chat", OLD_IMAGE, "--port=1"),)}, ("ok", "vLLM 0.20.0 knows all its flags"),
    ),
    "a flag is unknown to the image": (
        {"engines": (engine("chat", OLD_IMAGE, FLAG),)}, ("fail", "vLLM 0.20.0 does not know --max-num-active-seqs"),
    ),
    "what a pod says beats the tag": (
        {"engines": (engine("chat", OLD_IMAGE, FLAG),), "versions": {"chat": "0.32.1"}},
        ("ok", "vLLM 0.32.1 knows all its flags"),
    ),
    "a pod that does not answer leaves the tag": (
        {"engines": (engine("chat", OLD_IMAGE, FLAG),), "versions": {"chat": FORBIDDEN}},
        ("fail", "vLLM 0.20.0 does not know --max-num-active-seqs"),
    ),
    "nobody states a version": ({"engines": (engine("chat", NAMELESS),)}, ("warn", "its vLLM version is unknown")),
    "the container has another name": (
        {"engines": (engine("chat", container="server"),)}, ("fail", "it has no container 'vllm'"),
    ),
    "the fleet states another version": (
        {"engines": (engine(),), "view": fleet_view(engine={"version": "0.20.0"})},
        ("warn", "it runs vLLM 0.32.0, the fleet states 0.20.0"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ENGINES)
def test_an_engine_where(case: str) -> None:
    facts, expected = ENGINES[case]
    assert checks("engine", **facts) == [expected]


def test_a_plan_that_asks_for_unknown_flags_is_told_before_it_is_applied() -> None:
    flagged = plan_of((group(engineFlags=[{"name": "max-num-active-seqs", "value": "8"}]),))
    seen = fleet_view(flagged, candidate=flagged)
    assert ("warn", "vLLM 0.20.0 does not know its --max-num-active-seqs") in checks(
        "engine", view=seen, engines=(engine("chat", OLD_IMAGE),)
    )


def published(secret: bytes = weak_secret(UID), **rest: Any) -> Published:
    document = {"hash": {"fingerprint": fingerprint(secret)}, "slots": [], "shards": []}
    known: dict[str, Any] = {"generation": 7, "document": document}
    return Published("i", "1", 100, **(known | rest))


def report(generation: int, **errors: int) -> RouterReport:
    return RouterReport("r", RouterMode.PLAN, 100, generation, table_errors=errors)


def test_routers_are_held_against_the_published_table() -> None:
    routers = {"a": report(7), "b": report(6), "c": report(7, checksum=2), "d": FORBIDDEN}
    assert checks("router", index=published(), routers=routers) == [
        ("ok", "generation 7, mode plan"),
        ("warn", "it has generation 6, 7 is published"),
        ("warn", "it refused tables (2 checksum)"),
        ("warn", "not looked at: cannot list"),
    ]
    assert checks("router") == [("warn", "no live router")]
    assert checks("router", view=fleet_view(routing={"mode": "Off"})) == []


def test_the_table_is_published_absent_altered_or_hidden() -> None:
    assert checks("table", index=published()) == [("ok", "generation 7 is published")]
    assert checks("table") == [("warn", "none is published")]
    assert checks("table", index=published(document=None, fault="checksum")) == [("fail", "it was altered: checksum")]
    assert checks("table", index=FORBIDDEN) == [("warn", "not looked at: cannot list")]


def test_a_weak_key_secret_is_seen_by_its_fingerprint() -> None:
    assert checks("key secret", index=published())[0][0] == "warn"
    assert checks("key secret", index=published(b"a secret of its own")) == [("ok", "keys are hashed with a secret")]
    assert checks("key secret") == []


def budget(allowed: int, **selector: Any) -> Object:
    status = {"expectedPods": 1, "disruptionsAllowed": allowed}
    return {"metadata": {"name": "b"}, "spec": {"selector": selector}, "status": status}


def test_budgets_and_autoscalers_in_the_way_are_named() -> None:
    engines = (engine(),)
    blocking, allowing = budget(0, matchLabels={"app": "chat"}), budget(1, matchLabels={"app": "chat"})
    foreign, strange = budget(0, matchLabels={"app": "web"}), budget(0, matchLabels={"app": 7})
    assert checks("budget", engines=engines, budgets=(blocking, allowing, foreign, strange)) == [
        ("warn", "it allows no eviction now, of pods of chat")
    ]
    scaled = {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "chat"}}}
    [(level, what)] = checks("autoscaler", engines=engines, autoscalers=(scaled,))
    assert level == "warn"
    assert "owns the replicas of Deployment chat" in what
    assert checks("obstacles", engines=engines, budgets=(foreign,)) == [("ok", "no budget or autoscaler is in the way")]
    assert checks("budget", budgets=FORBIDDEN) == checks("autoscaler", autoscalers=FORBIDDEN)


def test_a_failure_makes_the_whole_unhealthy_and_warnings_do_not() -> None:
    fine, poor = Finding(Level.WARN, "c", "a", "w"), Finding(Level.FAIL, "c", "a", "w", "r")
    assert healthy([fine])
    assert not healthy([fine, poor])
    document: Any = findings_view([fine, poor]).document
    assert (document["healthy"], document["counts"]) == (False, {"ok": 0, "warn": 1, "fail": 1})
    assert document["findings"][1] == {"level": "fail", "check": "c", "about": "a", "what": "w", "remedy": "r"}


def test_what_is_refused_becomes_unknown_in_one_line() -> None:
    async def refused() -> int:
        raise Refused("no\n  way")

    async def allowed() -> int:
        return 1

    assert asyncio.run(attempt(refused())) == Unknown("no way")
    assert asyncio.run(attempt(allowed())) == 1
