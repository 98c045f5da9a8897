"""When two planning inputs make the same problem, and what a look therefore does not do again."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kvplan_operator.logs import FleetLog
from kvplan_operator.model.facts import ClassFacts
from kvplan_operator.model.priors.resolve import Measurement
from kvplan_operator.model.snapshot import ClassMeasured, ClusterView, Fact, Quality
from kvplan_operator.plan.same_inputs import same_inputs
from kvplan_operator.plan.settled import settled_inputs
from kvplan_operator.reconcile.ground import ground_of
from kvplan_operator.reconcile.memory import Memory
from tests.planning import fleet, inputs, inventory, node, own_pod, pod, request_class
from tests.routing import snapshot

LENGTHS = np.array([1.0, 2.0, 3.0])
FACTS = {"chat": ClassFacts(requests_per_second=4.0, output_lengths=LENGTHS), "code": ClassFacts()}
BEFORE = inputs(facts=FACTS, measured={"tp1": Measurement(kv_capacity_tokens=1_000)})
FAST = {"latencyMilliseconds": 1}


def chat(**changes: Any) -> dict[str, ClassFacts]:
    """The facts with others of the first class."""
    return FACTS | {"chat": replace(FACTS["chat"], **changes)}


def other(**metadata: Any) -> Any:
    """The classes, the first with other metadata."""
    made = request_class("chat")
    return made.model_copy(update={"metadata": made.metadata.model_copy(update=metadata)}), request_class("code")


SAME: dict[str, dict[str, Any]] = {
    "nothing changed": {},
    "the same lengths were read again": {"facts": chat(output_lengths=LENGTHS.copy())},
    "labels are another's business": {"classes": other(labels={"team": "a"})},
}  # fmt: skip
ANOTHER: dict[str, dict[str, Any]] = {
    "another spec of the fleet": {"fleet": fleet(objective={"headroomMilli": 250})},
    "another spec of a class": {"classes": (request_class("chat", slo=FAST), request_class("code"))},
    "an annotation of a class": {"classes": other(annotations={"kvplan.dev/x": "1"})},
    "a class less": {"classes": (request_class("chat"),)},
    "other GPUs": {"inventory": inventory(4, 3)},
    "another rate": {"facts": chat(requests_per_second=5.0)},
    "other lengths": {"facts": chat(output_lengths=LENGTHS * 2)},
    "lengths that are known no more": {"facts": chat(output_lengths=None)},
    "facts of a class less": {"facts": {"chat": FACTS["chat"]}},
    "another capacity": {"measured": {"tp1": Measurement(kv_capacity_tokens=2_000)}},
    "a remark": {"remarks": ("unused",)},
}  # fmt: skip


@pytest.mark.parametrize("sentence", SAME)
def test_it_is_the_same_problem_when(sentence: str) -> None:
    assert same_inputs(BEFORE, replace(BEFORE, **SAME[sentence]))


@pytest.mark.parametrize("sentence", ANOTHER)
def test_it_is_another_problem_with(sentence: str) -> None:
    assert not same_inputs(BEFORE, replace(BEFORE, **ANOTHER[sentence]))
    assert not same_inputs(replace(BEFORE, **ANOTHER[sentence]), BEFORE)


def looked(memory: Memory, cluster: ClusterView) -> Any:
    """The ground of one look at a fleet that stays as it is."""
    return ground_of(replace(LOOK, cluster=cluster), memory)


LOOK = snapshot()
NODES = (node("a", 4),)
PODS = (own_pod("mine", gpus=1),)


def test_a_look_at_the_same_objects_reads_nothing_again() -> None:
    memory = Memory(FleetLog("default/demo"))
    first = looked(memory, ClusterView(nodes=NODES, pods=PODS))
    again = looked(memory, ClusterView(nodes=NODES, pods=PODS))
    assert again.inventory is first.inventory
    assert again.problem is first.problem is not None


CHANGES: dict[str, ClusterView] = {
    "a foreign pod came": ClusterView(nodes=NODES, pods=(*PODS, pod("foreign", gpus=2))),
    "a node changed": ClusterView(nodes=(node("a", 2),), pods=PODS),
    "a node went": ClusterView(pods=PODS),
}


@pytest.mark.parametrize("sentence", CHANGES)
def test_the_gpus_are_read_again_when(sentence: str) -> None:
    memory = Memory(FleetLog("default/demo"))
    first = looked(memory, ClusterView(nodes=NODES, pods=PODS))
    then = looked(memory, CHANGES[sentence])
    assert (first.inventory.gpus, then.inventory.gpus) == (4, 0 if sentence == "a node went" else 2)
    assert then.problem is not first.problem


def test_a_class_that_nothing_is_heard_of_keeps_what_was_known_of_it() -> None:
    known = {name: ClassFacts(requests_per_second=2.0, prompt_mean=300.0) for name in ("chat", "code")}
    heard = Fact(ClassMeasured(ClassFacts(requests_per_second=9.0), samples=10), Quality.VALUE, "test", LOOK.now)
    at = replace(LOOK, cluster=ClusterView(nodes=NODES), measured=replace(LOOK.measured, classes={"chat": heard}))
    found = settled_inputs(at, known).facts
    heard_of = {name: (facts.requests_per_second, facts.prompt_mean) for name, facts in found.items()}
    assert heard_of == {"chat": (9.0, None), "code": (2.0, 300.0)}
