"""Fields of a plan that must follow from its decision: each one edited alone is named with what belongs there."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from kvplan_cli.verification import verified
from kvplan_operator.api.labels import ORIGIN_LABEL, ORIGIN_USER
from kvplan_operator.api.manifests import load_manifests
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.plan.derived import differences
from kvplan_operator.plan.digest import plan_name
from kvplan_operator.plan.planner import Planned, assess_plan
from tests.planning import demo, fleet, inputs, plan, sample

Spec = dict[str, Any]
Edit = Callable[[Spec], None]


def renamed(document: dict[str, Any]) -> RoutingPlan:
    """The plan of a document, named after its content as whoever edits it would."""
    document["metadata"]["name"] = plan_name(RoutingPlan.model_validate(document).spec)
    return RoutingPlan.model_validate(document)


def edited(edit: Edit, of: Planned | None = None) -> RoutingPlan:
    document: Any = (of or demo()).plan.to_wire()
    edit(document["spec"])
    return renamed(document)


def group(**fields: Any) -> Edit:
    return lambda spec: spec["groups"][0].update(fields)


def chat(**fields: Any) -> Edit:
    return lambda spec: spec["classes"][0].update(fields)


def flag(name: str, value: str) -> Edit:
    def edit(spec: Spec) -> None:
        others = [f for f in spec["groups"][0]["engineFlags"] if f["name"] != name]
        spec["groups"][0]["engineFlags"] = [*others, {"name": name, "value": value}]

    return edit


def route_of(tokens: int) -> Edit:
    return lambda spec: spec["classes"][0]["routes"][0].update(reservationTokens=tokens)


GROUP, CHAT = f"spec.groups[{demo().plan.spec.groups[0].configuration}]", "spec.classes[chat]"
K = demo().plan.spec.groups[0]
EDITS: dict[str, tuple[Edit, str, object]] = {
    "no budget": (group(budgetTokens=0), f"{GROUP}.budgetTokens", K.budget_tokens),
    "a budget below one reservation": (group(budgetTokens=16), f"{GROUP}.budgetTokens", K.budget_tokens),
    "a budget above what is left": (
        group(budgetTokens=K.budget_tokens + 1), f"{GROUP}.budgetTokens", K.budget_tokens,
    ),
    "a capacity of one token": (
        group(kvCapacityTokens=1, budgetTokens=0), f"{GROUP}.kvCapacityTokens", K.kv_capacity_tokens,
    ),
    "a capacity above the group's": (
        group(kvCapacityTokens=K.kv_capacity_tokens + 16), f"{GROUP}.kvCapacityTokens", K.kv_capacity_tokens,
    ),
    "one sequence": (group(maxSequences=1), f"{GROUP}.maxSequences", 16),
    "more sequences than the fleet allows": (group(maxSequences=17), f"{GROUP}.maxSequences", 16),
    "somebody else's Deployment": (group(deployment="someone-elses"), f"{GROUP}.deployment", None),
    "no flags": (group(engineFlags=[]), f"{GROUP}.engineFlags[max-model-len].value", "2500"),
    "one sequence by flag": (flag("max-num-seqs", "1"), f"{GROUP}.engineFlags[max-num-seqs].value", "16"),
    "a short length by flag": (flag("max-model-len", "16"), f"{GROUP}.engineFlags[max-model-len].value", "2500"),
    "more GPUs by flag": (
        flag("tensor-parallel-size", "8"),
        f"{GROUP}.engineFlags[tensor-parallel-size].value",
        str(next(k.tensor_parallel for k in fleet().spec.configurations if k.name == K.configuration)),
    ),
    "other blocks by flag": (flag("block-size", "128"), f"{GROUP}.engineFlags[block-size].value", "16"),
    "a flag nobody planned": (flag("enforce-eager", "true"), f"{GROUP}.engineFlags[enforce-eager].value", None),
    "blocks of one token": (lambda spec: spec.update(blockTokens=1), "spec.blockTokens", 16),
    "another fractile": (chat(fractileMilli=1), f"{CHAT}.fractileMilli", demo().plan.spec.classes[0].fractile_milli),
    "a longer cached prefix": (chat(cachedPrefixTokens=100_000), f"{CHAT}.cachedPrefixTokens", 64),
    "more prompt in a reservation": (chat(reservedPromptTokens=1_100), f"{CHAT}.reservedPromptTokens", 1_000),
    "prompts of one token": (chat(maxPromptTokens=1), f"{CHAT}.maxPromptTokens", 2000),
    "outputs too short": (chat(maxOutputTokens=499), f"{CHAT}.maxOutputTokens", 500),
    "outputs too long": (chat(maxOutputTokens=1_000_000), f"{CHAT}.maxOutputTokens", 500),
    "a route that reserves less": (
        route_of(16),
        f"{CHAT}.routes[{K.configuration}].reservationTokens",
        demo().plan.spec.classes[0].routes[0].reservation_tokens,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "field", "expected"), EDITS.values(), ids=EDITS.keys())
def test_a_field_that_does_not_follow_is_named(edit: Edit, field: str, expected: object) -> None:
    user_plan = edited(edit)
    found = {d.field: d for d in assess_plan(user_plan, demo().problem).differences}
    assert found[field].expected == expected
    assert field in found[field].message
    verdict = verified(user_plan, demo().problem)
    assert not verdict.holds
    assert found[field].message in {broken.message for broken in verdict.violations}


def test_a_plan_need_not_say_what_of_a_reservation_is_prompt() -> None:
    silent = edited(lambda spec: spec["classes"][0].pop("reservedPromptTokens"))
    assert verified(silent, demo().problem).holds


def test_every_derived_field_of_the_api_has_a_row() -> None:
    """A field that is added to the plan is a decision, named here, or derived, with a row above."""
    decided = {"configuration", "replicas", "placements", "name", "reservationTokens", "routes", "prefixCachedOn",
               "admitMilli", "fleetName", "inputsDigest", "method", "groups", "classes", "shareMilli"}  # fmt: skip
    spec: Any = demo().plan.spec.to_wire()
    written = {*spec, *spec["groups"][0], *spec["classes"][0], "deployment"}
    rowed = {part.partition("[")[0] for _, field, _ in EDITS.values() for part in field.split(".")}
    assert written - decided == rowed & (written - decided)


def test_the_message_says_what_to_write() -> None:
    (found,) = assess_plan(edited(group(budgetTokens=0)), demo().problem).differences
    expected = f"{GROUP}.budgetTokens is 0: write {K.budget_tokens}, which the decision and the fleet give"
    assert found.message == expected


def test_a_group_without_replicas_is_left_out() -> None:
    def idle(spec: Spec) -> None:
        spec["groups"].append(spec["groups"][0] | {"configuration": "tp9", "replicas": 0, "placements": []})

    other = next(k.name for k in fleet().spec.configurations if k.name != K.configuration)

    def edit(spec: Spec) -> None:
        idle(spec)
        spec["groups"][-1]["configuration"] = other

    (found,) = assess_plan(edited(edit), demo().problem).differences
    assert (found.field, found.expected) == (f"spec.groups[{other}]", None)


def test_a_decision_that_no_plan_can_hold_is_named_as_such() -> None:
    def odd(spec: Spec) -> None:
        spec["blockTokens"] = 1
        for class_plan in spec["classes"]:
            class_plan["reservationTokens"] += 1

    found = assess_plan(edited(odd), demo().problem)
    assert {"spec", "spec.blockTokens"} <= {d.field for d in found.differences}
    assert not found.certificate.holds


def test_a_plan_of_an_adopted_deployment_must_name_it() -> None:
    configurations = [k.to_wire() | {"deployment": f"engine-{k.name}"} for k in fleet().spec.configurations]
    adopted = plan(inputs(fleet=fleet(configurations=configurations)))
    name = adopted.plan.spec.groups[0].configuration
    foreign = edited(lambda spec: spec["groups"][0].pop("deployment"), adopted)
    assert assess_plan(adopted.plan, adopted.problem).differences == ()
    (found,) = assess_plan(foreign, adopted.problem).differences
    assert (found.value, found.expected) == (None, f"engine-{name}")
    assert "is absent: write 'engine-" in found.message


def as_made(document: dict[str, Any]) -> None:
    """Left as the planner wrote it."""


def as_the_api_server_returns_it(document: dict[str, Any]) -> None:
    document["metadata"] |= {"uid": "8f1c", "resourceVersion": "7", "generation": 1}
    document["metadata"]["managedFields"] = [{"manager": "kvplan", "operation": "Apply"}]
    document["status"]["observedGeneration"] = 1


def by_a_person(document: dict[str, Any]) -> None:
    document["metadata"]["labels"][ORIGIN_LABEL] = ORIGIN_USER
    document["metadata"]["annotations"] = {}
    document.pop("status")


def in_another_order(document: dict[str, Any]) -> None:
    spec = document["spec"]
    for part in (spec["groups"], spec["classes"], *(g["engineFlags"] for g in spec["groups"])):
        part.reverse()


def with_wrong_status(document: dict[str, Any]) -> None:
    document["status"]["objective"]["costs"]["totalMilli"] = 1
    document["status"]["objective"]["lowerBoundMilli"] = 10**12


CHANGES = (as_made, as_the_api_server_returns_it, by_a_person, in_another_order, with_wrong_status)


@pytest.mark.parametrize("made", [demo, sample], ids=["demo", "sample"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.replace("_", " "))
def test_a_plan_of_the_planner_verifies(change: Edit, made: Callable[[], Planned]) -> None:
    planned = made()
    document: Any = json.loads(json.dumps(planned.plan.to_wire()))
    change(document)
    (read,) = load_manifests([document]).plans
    verdict = verified(renamed(read.to_wire()), planned.problem)
    assert (verdict.violations, verdict.notes) == ((), ())
    assert verdict.planned.result.objective == pytest.approx(planned.result.objective, rel=1e-6)


def test_flags_may_be_those_of_any_batch_that_the_speeds_may_be_read_at() -> None:
    planned = sample()
    wrong = (planned.problem.instance, planned.instance)
    assert differences(planned.plan, planned.problem, planned.result, wrong) == ()
