"""Which plan of a fleet a word means: a digest or the beginning of one, a name, or a role.

Inputs: a ``Shelf``, the word. Output: the plan's digest. Pure.
"""

import re
from collections.abc import Mapping
from typing import Final

from kvplan_cli.errors import CommandError
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.plan.digest import NAME_DIGITS, plan_name
from kvplan_operator.plan.rollback import last_good
from kvplan_operator.plan.standing import Shelf

CANDIDATE, CURRENT, PREVIOUS = "candidate", "current", "previous"
_BEGINNING: Final = re.compile(f"[0-9a-f]{{{NAME_DIGITS},64}}")
_ABSENT: Mapping[str, tuple[str, str]] = {
    CANDIDATE: ("no plan waits for a decision", "name one; kvplan history lists them"),
    CURRENT: ("no plan is in force", "accept one with kvplan approve"),
    PREVIOUS: ("no earlier plan was in force and served well", "name one; kvplan history lists them"),
}


def chosen_plan(shelf: Shelf, word: str) -> RoutingPlan:
    """The plan that is meant.

    Args:
        shelf: the fleet's plans.
        word: ``candidate``, ``current``, ``previous``, a plan's name, or ten or more digits of its digest.

    Raises:
        CommandError: there is none, or its name is not that of its content.
    """
    return shelf.plans[_digest(shelf, word)]


def _digest(shelf: Shelf, word: str) -> str:
    if word in _ABSENT:
        role = {CANDIDATE: shelf.candidate, CURRENT: shelf.current, PREVIOUS: last_good(shelf)}[word]
        if role is None:
            raise CommandError(f"plan {word}", *_ABSENT[word])
        return role
    found = [digest for digest, plan in shelf.plans.items() if _means(word, digest, plan)]
    if len(found) == 1:
        return found[0]
    _refuse_misnamed(shelf, word)
    known = ", ".join(sorted(plan.metadata.name for plan in shelf.plans.values())) or "none"
    problem = (
        f"{len(found)} RoutingPlans begin with it" if found else "no RoutingPlan of the fleet has this name or digest"
    )
    raise CommandError(f"plan {word}", problem, f"create it, or use one of: {known}")


def _means(word: str, digest: str, plan: RoutingPlan) -> bool:
    return word == plan.metadata.name or (_BEGINNING.fullmatch(word) is not None and digest.startswith(word))


def _refuse_misnamed(shelf: Shelf, word: str) -> None:
    for plan in shelf.misnamed:
        if plan.metadata.name == word:
            expected = plan_name(plan.spec)
            raise CommandError(
                f"RoutingPlan {word}", "its name is not that of its content", f"create it under the name {expected}"
            )
