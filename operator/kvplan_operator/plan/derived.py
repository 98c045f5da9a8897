"""What a RoutingPlan says beside its decision, compared with what the planner writes for that decision.

Inputs: a plan, its problem, its decision as a Result. Output: every field that differs. A group with a budget
of no tokens, an engine with another length or a Deployment of somebody else keep every constraint of the model
and yet cannot run; only equality of all that follows from the decision rules them out. Pure.

Not compared: ``inputsDigest`` and ``method`` say where a plan came from; ``placements`` may be left out and are
the certificate's business; ``status`` is recomputed, never believed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.problem import Problem
from kvplan_operator.plan.document import plan_spec
from kvplan_operator.plan.forecast import forecast
from kvplan_solver.instance import Instance
from kvplan_solver.result import Result

Fields = Mapping[str, JsonValue]
"""Value by path, such as ``spec.groups[tp1].budgetTokens``."""

_NOT_DERIVED = ("inputsDigest", "method", "placements")
_LEFT_OUT = ("reservedPromptTokens",)
"""Fields that a plan may leave out; where it says one, it follows."""
_NAMES = {"groups": "configuration", "classes": "name", "routes": "configuration", "engineFlags": "name"}
"""Lists whose order says nothing, with the field that names an entry."""


@dataclass(frozen=True)
class Difference:
    """One field that does not follow from the decision.

    Attributes:
        field: path in wire names.
        value: what the plan says; None where it says nothing.
        expected: what follows; None where the field does not belong there.
    """

    field: str
    value: JsonValue
    expected: JsonValue

    @property
    def message(self) -> str:
        """Field, value, expected value and remedy."""
        if self.expected is None:
            return f"{self.field} is {self.value!r}: leave it out, the decision and the fleet give none"
        found = "is absent" if self.value is None else f"is {self.value!r}"
        return f"{self.field} {found}: write {self.expected!r}, which the decision and the fleet give"


def differences(
    plan: RoutingPlan, problem: Problem, result: Result, instances: Sequence[Instance]
) -> tuple[Difference, ...]:
    """Fields of a plan that are not what its decision implies.

    Flags that the plan may state because engines run with them (``running_flags``) do follow.

    Args:
        plan: made by anyone.
        problem: of its fleet.
        result: its decision.
        instances: the batches that its speeds may be read at, the one to report first; the sequences an engine
            may have active depend on it a little.
    """
    idle = tuple(
        Difference(f"spec.groups[{group.configuration}]", "without replicas", None)
        for group in plan.spec.groups
        if not group.replicas
    )
    running = tuple(group for group in plan.spec.groups if group.replicas)
    stated = _fields(plan.spec.model_copy(update={"groups": running}).to_wire())
    try:
        implied = [_fields(plan_spec(problem, on, result, forecast(on, result), plan).to_wire()) for on in instances]
    except ValueError:
        return (*idle, *_block(plan, problem), _UNWRITABLE)
    return (*idle, *_differing(stated, implied))


_UNWRITABLE = Difference("spec", "a decision that no plan can hold", None)


def _block(plan: RoutingPlan, problem: Problem) -> Iterator[Difference]:
    wanted = problem.instance.block_tokens
    if plan.spec.block_tokens != wanted:
        yield Difference("spec.blockTokens", plan.spec.block_tokens, wanted)


def _differing(stated: Fields, implied: Sequence[Fields]) -> Iterator[Difference]:
    for path in sorted({*stated, *implied[0]}):
        value = stated.get(path)
        if value is None and path.endswith(_LEFT_OUT):
            continue
        if all(value != fields.get(path) for fields in implied):
            yield Difference(path, value, implied[0].get(path))


def _fields(spec: JsonValue) -> dict[str, JsonValue]:
    return dict(_walk(spec, "spec", ""))


def _walk(value: JsonValue, path: str, name: str) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(value, dict):
        for inner, part in value.items():
            if inner not in _NOT_DERIVED:
                yield from _walk(part, f"{path}.{inner}", inner)
    elif isinstance(value, list) and name in _NAMES:
        for entry in value:
            yield from _entry(entry, path, _NAMES[name])
    else:
        yield path, ", ".join(sorted(map(str, value))) if isinstance(value, list) else value


def _entry(entry: JsonValue, path: str, key: str) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(entry, dict):
        rest: JsonValue = {name: part for name, part in entry.items() if name != key}
        yield from _walk(rest, f"{path}[{entry[key]}]", "")
