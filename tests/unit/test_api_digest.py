"""Canonical JSON, and the digests that name plans and inputs."""

from pathlib import Path

import pytest
import yaml

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.fleet_enums import PolicyMode
from kvplan_operator.api.fleet_operation import AcceptedPlan, PlanPolicy
from kvplan_operator.api.manifests import parse_object
from kvplan_operator.api.request_class import RequestClass, RequestClassSpec
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.errors import DigestError
from kvplan_operator.plan.digest import canonical_json, check_plan_name, inputs_digest, plan_digest, plan_name

EXAMPLES = Path(__file__).parents[1] / "golden" / "api"


def example(name: str) -> object:
    return parse_object(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")))


@pytest.fixture
def plan() -> RoutingPlan:
    found = example("routing_plan")
    assert isinstance(found, RoutingPlan)
    return found


@pytest.fixture
def fleet() -> ServingFleet:
    found = example("fleet")
    assert isinstance(found, ServingFleet)
    return found


@pytest.fixture
def chat() -> RequestClass:
    found = example("request_class")
    assert isinstance(found, RequestClass)
    return found


def test_canonical_json_sorts_keys_and_leaves_no_blanks() -> None:
    assert canonical_json({"b": [1, True], "a": "ü"}) == '{"a":"ü","b":[1,true]}'.encode()


def test_a_float_has_no_canonical_spelling() -> None:
    with pytest.raises(DigestError, match=r"\$\.a\[1\]\.b is 1\.0: use an integer"):
        canonical_json({"a": [0, {"b": 1.0}]})


def test_the_digest_of_a_plan_is_what_it_was(plan: RoutingPlan) -> None:
    assert plan_digest(plan.spec) == "aa95ef57820e598018f76f305115959f98469ec037d8485ad852ff67e5e57fdd"
    assert plan_name(plan.spec) == "complete-aa95ef5782"


def test_a_plan_that_leaves_out_an_optional_field_keeps_the_digest_it_had_before_there_was_that_field(
    plan: RoutingPlan,
) -> None:
    silent = tuple(c.model_copy(update={"reserved_prompt_tokens": None}) for c in plan.spec.classes)
    assert (
        plan_digest(plan.spec.model_copy(update={"classes": silent}))
        == "1084181b54e4bd0e33882af083f04b054a6066471a4c3bd787fcdd9f2b08ddb6"
    )


def test_status_and_metadata_do_not_change_the_digest(plan: RoutingPlan) -> None:
    bare = RoutingPlan(metadata=plan.metadata, spec=plan.spec)
    assert check_plan_name(bare) == plan_digest(plan.spec)


def test_any_change_of_the_decision_changes_the_digest(plan: RoutingPlan) -> None:
    other = plan.spec.model_copy(update={"inputs_digest": "0" * 64})
    assert plan_digest(other) != plan_digest(plan.spec)


def test_a_plan_under_a_wrong_name_is_refused_with_the_right_one(plan: RoutingPlan) -> None:
    metadata = plan.metadata.model_copy(update={"name": "complete-0000000000"})
    with pytest.raises(DigestError, match="name it complete-aa95ef5782"):
        check_plan_name(RoutingPlan(metadata=metadata, spec=plan.spec))


def test_accepting_a_plan_does_not_change_the_inputs(fleet: ServingFleet, chat: RequestClass) -> None:
    accepted = fleet.spec.model_copy(
        update={
            "accepted_plan": AcceptedPlan(digest="1" * 64),
            "plan_policy": PlanPolicy(mode=PolicyMode.AUTO),
            "suspend": False,
        }
    )
    assert inputs_digest(accepted, {"chat": chat.spec}) == inputs_digest(fleet.spec, {"chat": chat.spec})


def test_a_field_that_matters_for_planning_changes_the_inputs(fleet: ServingFleet, chat: RequestClass) -> None:
    before = inputs_digest(fleet.spec, {"chat": chat.spec})
    slower = chat.spec.model_copy(update={"priority": 11})
    assert inputs_digest(fleet.spec, {"chat": slower}) != before
    assert inputs_digest(fleet.spec, {"other": chat.spec}) != before


def test_what_only_routers_act_on_does_not_change_the_inputs(fleet: ServingFleet, chat: RequestClass) -> None:
    wire = chat.spec.to_wire()
    planning = RequestClassSpec.model_validate({n: v for n, v in wire.items() if n not in {"keys", "queue", "shed"}})
    assert planning != chat.spec
    assert inputs_digest(fleet.spec, {"chat": planning}) == inputs_digest(fleet.spec, {"chat": chat.spec})


def test_the_order_of_classes_does_not_change_the_inputs(fleet: ServingFleet, chat: RequestClass) -> None:
    one = {"a": chat.spec, "b": chat.spec}
    other = {"b": chat.spec, "a": chat.spec}
    assert inputs_digest(fleet.spec, one) == inputs_digest(fleet.spec, other)
