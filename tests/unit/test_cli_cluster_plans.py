"""Choosing, showing and accepting plans of a cluster: what is decided, from objects alone."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvplan_cli.cluster.approval import accept, acceptance, owners_of_acceptance, what_follows
from kvplan_cli.cluster.checking import check_said, check_today
from kvplan_cli.cluster.choosing import chosen_plan
from kvplan_cli.cluster.following import End, end_of, follow, state_of
from kvplan_cli.cluster.history import State, age, entries, history_view
from kvplan_cli.cluster.reading import FleetView, read_fleet
from kvplan_cli.cluster.refusals import as_command_error
from kvplan_cli.cluster.session import Session
from kvplan_cli.commands.explain import plan_as_it_stands
from kvplan_cli.commands.export import clean
from kvplan_cli.errors import CommandError
from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.kube.errors import Conflict, NotServed, Refused, Throttled, Unavailable
from tests.fleet_views import fleet_view
from tests.kube_api import Answer, Api, Stream, served, status
from tests.planning import demo, fleet, inputs
from tests.routing_plans import NOW, condition, digest_of, group, marked, plan_of

OLD, NEW = plan_of((group("tp1", ("a",)),)), plan_of((group("tp1", ("a", "b")),))
MISNAMED = OLD.model_copy(update={"metadata": OLD.metadata.model_copy(update={"name": "demo-0123456789"})})


CHOICES: dict[str, tuple[str, RoutingPlan]] = {
    "the plan that waits": ("candidate", NEW),
    "the plan in force": ("current", OLD),
    "a name": (NEW.metadata.name, NEW),
    "a whole digest": (digest_of(OLD), OLD),
    "ten digits of a digest": (digest_of(OLD)[:10], OLD),
}


@pytest.mark.parametrize("case", CHOICES)
def test_a_plan_is_chosen_by(case: str) -> None:
    word, expected = CHOICES[case]
    assert chosen_plan(fleet_view(OLD, NEW, current=OLD, candidate=NEW).shelf, word) is expected


REFUSALS = {
    "a role that nobody has": ("candidate", "no plan waits for a decision"),
    "an earlier plan where there is none": ("previous", "no earlier plan was in force"),
    "too few digits": (digest_of(OLD)[:9], f"use one of: {OLD.metadata.name}"),
    "a name that is not that of the content": ("demo-0123456789", f"create it under the name {OLD.metadata.name}"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_no_plan_is_chosen_by(case: str) -> None:
    word, message = REFUSALS[case]
    with pytest.raises(CommandError) as refused:
        chosen_plan(fleet_view(OLD, MISNAMED, current=OLD).shelf, word)
    assert message in str(refused.value)


def test_without_a_word_the_plan_that_waits_is_explained_else_the_one_in_force() -> None:
    both = fleet_view(OLD, NEW, current=OLD, candidate=NEW)
    assert plan_as_it_stands(both, "").metadata.name == NEW.metadata.name
    assert plan_as_it_stands(fleet_view(OLD, current=OLD), "").metadata.name == OLD.metadata.name
    with pytest.raises(CommandError, match="no plan is proposed or in force"):
        plan_as_it_stands(fleet_view(OLD), "")


def test_what_is_applied_is_the_one_field_for_one_version_of_one_fleet() -> None:
    raw = fleet_view(OLD).raw
    assert acceptance(raw, "d") == {
        "apiVersion": "kvplan.dev/v1alpha1",
        "kind": "ServingFleet",
        "metadata": {"name": "demo", "namespace": "default", "uid": "u", "resourceVersion": "7"},
        "spec": {"acceptedPlan": {"digest": "d"}},
    }


def test_owners_are_those_of_the_very_field() -> None:
    assert owners_of_acceptance(fleet_view(owners=("flux", "argocd")).raw) == ("argocd", "flux")
    assert owners_of_acceptance({"metadata": {}}) == ()


def test_what_follows_an_acceptance_is_said() -> None:
    dry = fleet_view(OLD, current=OLD, owners=("flux", "kvplan-approve"), planPolicy={"mode": "DryRun"}, suspend=True)
    said = list(what_follows(dry, OLD))
    assert [words.split(":")[0] for words in said] == [
        "planPolicy.mode is DryRun",
        "the fleet is suspended",
        f"{OLD.metadata.name} is in force already",
        "field manager flux owns spec.acceptedPlan.digest; where that is git, its next sync wins",
    ]
    assert list(what_follows(fleet_view(OLD, NEW, planPolicy={"mode": "Auto"}), OLD)) == []


def test_what_the_operator_refused_and_what_does_not_fit_today_is_not_accepted() -> None:
    planned = demo()
    check_said(planned.plan)
    check_today(planned.plan, planned.problem)
    words = condition(ConditionType.PROPOSED, ConditionStatus.FALSE, ConditionReason.CERTIFICATE_REJECTED)
    with pytest.raises(CommandError, match="the operator refuses it"):
        check_said(marked(OLD, words))
    with pytest.raises(CommandError, match="does not fit the fleet today: GpuBudget fleet: 2 GPUs used, 1 allowed"):
        check_today(planned.plan, inputs(fleet=fleet(nodes={"selector": {}, "maxGpus": 1})).problem())
    with pytest.raises(CommandError, match="RoutingPlan demo"):
        check_today(OLD, planned.problem)


def superseded(plan: RoutingPlan) -> RoutingPlan:
    accepted = condition(ConditionType.ACCEPTED, reason=ConditionReason.DIGEST_ACCEPTED)
    return marked(plan, condition(ConditionType.SUPERSEDED, reason=ConditionReason.REPLACED), accepted)


FAILED = marked(NEW, condition(ConditionType.FAILED, reason=ConditionReason.ROLLED_BACK))
REJECTED = marked(NEW, condition(ConditionType.PROPOSED, ConditionStatus.FALSE, ConditionReason.CERTIFICATE_REJECTED))
STATES: dict[str, tuple[FleetView, dict[str, tuple[State, str]]]] = {
    "in force by approval, the one before superseded": (
        fleet_view(superseded(OLD), NEW, current=NEW, accepted=NEW, owners=("kvplan-approve",)),
        {OLD.metadata.name: (State.SUPERSEDED, "people"), NEW.metadata.name: (State.IN_FORCE, "kvplan approve")},
    ),
    "accepted by git and not in force yet": (
        fleet_view(OLD, NEW, current=OLD, accepted=NEW, owners=("flux",)),
        {OLD.metadata.name: (State.IN_FORCE, ""), NEW.metadata.name: (State.ACCEPTED, "flux")},
    ),
    "one that waits, one that is nothing": (
        fleet_view(OLD, NEW, candidate=NEW),
        {OLD.metadata.name: (State.PROPOSED, ""), NEW.metadata.name: (State.CANDIDATE, "")},
    ),
    "failed": (fleet_view(FAILED), {NEW.metadata.name: (State.FAILED, "")}),
    "refused": (fleet_view(REJECTED), {NEW.metadata.name: (State.REFUSED, "")}),
    "misnamed": (fleet_view(MISNAMED), {MISNAMED.metadata.name: (State.MISNAMED, "")}),
}


@pytest.mark.parametrize("case", STATES)
def test_the_history_tells_of_plans(case: str) -> None:
    seen, expected = STATES[case]
    assert {entry.name: (entry.state, entry.accepted_by) for entry in entries(seen)} == expected


def test_the_youngest_plan_comes_first_and_ages_are_short() -> None:
    new = plan_of((group("tp1", ("a", "b")),), creationTimestamp="2030-03-17T17:45:00Z")
    old = plan_of((group("tp1", ("a",)),), creationTimestamp="2030-03-16T17:46:40Z")
    document: Any = history_view(fleet_view(old, new), NOW).document
    assert [row["name"] for row in document["plans"]] == [new.metadata.name, old.metadata.name]
    assert document["plans"][1]["created"] == "2030-03-16T17:46:40Z"
    assert [age(s) for s in (-1, 0, 99, 120, 7_199, 7_200, 90_000, 200_000)] == [
        "0s", "0s", "99s", "2m", "119m", "2h", "25h", "2d",
    ]  # fmt: skip


def test_of_plans_made_within_one_second_the_one_in_force_comes_first() -> None:
    made = [plan_of((group("tp1", nodes),), creationTimestamp="2030-03-17T17:45:00Z") for nodes in (("a",), ("a", "b"))]
    for current in made:
        first, _ = entries(fleet_view(*made, current=current))
        assert first.name == current.metadata.name


def test_an_exported_plan_holds_the_decision_alone() -> None:
    plan = marked(demo().plan, condition(ConditionType.APPLIED))
    document: Any = clean(plan)
    assert set(document) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(document["metadata"]) <= {"name", "namespace", "labels", "annotations"}
    assert document["metadata"]["labels"] == {"kvplan.dev/fleet": "demo", "kvplan.dev/origin": "user"}
    assert digest_of(RoutingPlan.model_validate(document)) == digest_of(plan)


def fleet_said(observed: int = 2, digest: str = "d", **conditions: str) -> dict[str, Any]:
    """A fleet of generation 2 as the API server sends it; conditions as status and reason."""
    told = [
        {"type": t, "status": c.split()[0], "reason": c.split()[-1], "message": "words"} for t, c in conditions.items()
    ]
    reported = {"observedGeneration": observed, "currentPlan": {"digest": digest}, "conditions": told}
    metadata = {"namespace": "a", "name": "demo", "uid": "u", "generation": 2, "resourceVersion": "5"}
    return {"metadata": metadata, "status": reported}


ENDS: dict[str, tuple[dict[str, Any], End | None]] = {
    "the plan is in force": (fleet_said(Ready="True AsPlanned"), End(True, "ready: AsPlanned, words")),
    "the operator has not looked yet": (fleet_said(1, Ready="True AsPlanned"), None),
    "a rollout moves": (fleet_said(Ready="False RollingOut", Reconciling="True RollingOut"), None),
    "only a person can go on": (
        fleet_said(Ready="False X", Stalled="True NoCapacityNeutralPath"),
        End(False, "stalled: NoCapacityNeutralPath, words"),
    ),
    "ready without the plan": (
        fleet_said(digest="other", Ready="True ProposedOnly"),
        End(False, "ready, but not in force: ProposedOnly, words"),
    ),
}


@pytest.mark.parametrize("case", ENDS)
def test_following_ends_when(case: str) -> None:
    seen, expected = ENDS[case]
    assert end_of(seen, 2, "d") == expected


def test_what_goes_on_is_told_in_a_line() -> None:
    assert state_of({"metadata": {"generation": 1}}).startswith("no status yet")
    assert state_of(fleet_said(1, Ready="True A")) == "the operator has not looked at it yet"
    assert state_of(fleet_said(Ready="False A", Reconciling="True B")) == "reconciling: B, words"
    assert state_of(fleet_said(Ready="False A")) == "not ready: A, words"


def talk(directory: Path, job: Callable[[Session], Any], *answers: Answer | Stream) -> tuple[Any, Api]:
    """What a job returns on a server that says these things, and what the server was asked."""

    async def conversation() -> tuple[Any, Api]:
        async with served(directory, *answers) as (client, api):
            return await job(Session(client, "default", client._transport)), api

    return asyncio.run(conversation())


def listed(*items: dict[str, Any]) -> Answer:
    return Answer({"items": list(items), "metadata": {"resourceVersion": "9"}})


def wire(item: Any, **metadata: Any) -> dict[str, Any]:
    document: dict[str, Any] = item.to_wire()
    document["metadata"] |= metadata
    return document


def test_a_fleet_that_only_got_a_new_version_is_accepted_without_asking_again(tmp_path: Path) -> None:
    seen, fresh = fleet_view(OLD), wire(fleet(), resourceVersion="8", uid="u")
    answers = (status(409, "Conflict", "changed"), listed(fresh), listed(), listed(), Answer({"kind": "ServingFleet"}))
    _, api = talk(tmp_path, lambda s: accept(s, seen, OLD, force=False, dry_run=False), *answers)
    sent = [asked.body["metadata"]["resourceVersion"] for asked in api.asked if asked.method == "PATCH"]
    assert sent == ["7", "8"]
    assert {asked.query["fieldManager"] for asked in api.asked if asked.method == "PATCH"} == {"kvplan-approve"}


def test_a_fleet_that_somebody_changed_meanwhile_is_not_accepted(tmp_path: Path) -> None:
    changed = wire(fleet(suspend=True), resourceVersion="8", uid="u")
    answers = (status(409, "Conflict", "changed"), listed(changed), listed(), listed())
    with pytest.raises(CommandError, match="somebody changed it meanwhile"):
        talk(tmp_path, lambda s: accept(s, fleet_view(OLD), OLD, force=False, dry_run=False), *answers)


def test_another_managers_field_is_refused_with_where_to_write_it(tmp_path: Path) -> None:
    refusal = status(409, "Conflict", "conflict", {"field": ".spec.acceptedPlan.digest"})
    git = fleet_view(OLD, NEW, accepted=OLD, owners=("argocd-controller",))
    with pytest.raises(CommandError, match=f"write {digest_of(NEW)} where argocd-controller takes it from"):
        talk(tmp_path, lambda s: accept(s, git, NEW, force=False, dry_run=False), refusal)


def test_following_goes_on_after_a_watch_that_breaks_and_tells_each_state_once(tmp_path: Path) -> None:
    moving = fleet_said(Ready="False RollingOut", Reconciling="True RollingOut")
    event = {"type": "MODIFIED", "object": moving}
    forgotten = {"type": "ERROR", "object": {"code": 410, "reason": "Expired"}}
    said: list[str] = []
    answers = (Answer(moving), Stream([event, event]), Answer(moving), Stream([forgotten]),
               Answer(fleet_said(Ready="True AsPlanned")))  # fmt: skip
    end, _ = talk(tmp_path, lambda s: follow(s, fleet_said(), "d", said.append, 10.0), *answers)
    assert end == End(True, "ready: AsPlanned, words")
    assert said == ["reconciling: RollingOut, words"]


def test_following_ends_when_the_fleet_goes(tmp_path: Path) -> None:
    event = {"type": "DELETED", "object": fleet_said()}
    with pytest.raises(CommandError, match="it was deleted meanwhile"):
        talk(
            tmp_path,
            lambda s: follow(s, fleet_said(), "d", lambda _: None, 10.0),
            Answer(fleet_said()),
            Stream([event]),
        )


def test_a_plan_that_cannot_be_read_hides_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    foreign = wire(NEW, creationTimestamp="2030-03-17T17:46:40Z")
    foreign["spec"]["newField"] = 1
    answers = (listed(wire(fleet())), listed(), listed(wire(OLD), foreign))
    found, _ = talk(tmp_path, read_fleet, *answers)
    assert [plan.metadata.name for plan in found.plans] == [OLD.metadata.name]
    assert f"RoutingPlan {NEW.metadata.name}): spec.newField" in capsys.readouterr().err


KUBE_ERRORS = {
    "a kind that is not served": (NotServed("x"), "install the CRDs"),
    "no answer": (Unavailable("x"), "names the right server"),
    "no permission": (Refused("x", code=403), "ask for that permission"),
    "no credentials": (Refused("x", code=401), "log in again"),
    "too many requests": (Throttled("x", retry_after_seconds=1), "try again"),
    "a faster writer": (Conflict("x"), "try again"),
    "anything else": (Refused("a\nb", code=422), "see what the server says"),
}


@pytest.mark.parametrize("case", KUBE_ERRORS)
def test_a_refusal_ends_with_its_remedy(case: str) -> None:
    error, remedy = KUBE_ERRORS[case]
    message = str(as_command_error(error))
    assert remedy in message
    assert "\n" not in message
