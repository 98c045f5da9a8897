"""Whether two planning inputs make the same problem, told without writing either of them down.

Inputs: two ``PlanningInputs`` of one fleet. Output: a truth. What no plan depends on is passed over: statuses,
versions, labels. What did not change is usually the very same object, so that nearly all comparisons end at once. Pure.
"""

from dataclasses import fields
from typing import Any

import numpy as np

from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.facts import ClassFacts
from kvplan_operator.model.problem import PlanningInputs


def same_inputs(a: PlanningInputs, b: PlanningInputs) -> bool:
    """Whether two inputs of one fleet make the same problem."""
    return (
        a.fleet.spec == b.fleet.spec
        and list(map(_planned, a.classes)) == list(map(_planned, b.classes))
        and a.inventory == b.inventory
        and a.measured == b.measured
        and a.remarks == b.remarks
        and a.facts.keys() == b.facts.keys()
        and all(_same_facts(facts, b.facts[name]) for name, facts in a.facts.items())
    )


def _planned(request_class: RequestClass) -> tuple[Any, ...]:
    """What of a class a plan depends on."""
    return request_class.metadata.name, request_class.metadata.annotations, request_class.spec


def _same_facts(a: ClassFacts, b: ClassFacts) -> bool:
    return all(_same(getattr(a, f.name), getattr(b, f.name)) for f in fields(ClassFacts))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a is b or np.array_equal(a, b)
    return bool(type(a) is type(b) and a == b)
