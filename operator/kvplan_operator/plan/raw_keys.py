"""Key rates given as text, hashed as routers hash them. For files only: routers count keys by hash already.

Inputs: rows with the key's text, the fleet's hash secret. Outputs: ``KeyRate`` values. Key values go no further
than this. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kvplan_operator.model.problem import Problem
from kvplan_operator.plan.class_routing import key_rules, rule_text
from kvplan_operator.plan.table_input import KeyRate, unknown_class
from kvplan_solver.cacheroute.keys import key_hash


@dataclass(frozen=True)
class KeyRow:
    """One measured key.

    Attributes:
        class_name: RequestClass it belongs to.
        key: the value that the key rule finds, before hashing.
        requests_per_second: λ_b.
        error_per_second: bound of its measurement error.
        reusable_tokens: prefix that requests of the key share, tokens; None where unknown.
    """

    class_name: str
    key: str
    requests_per_second: float
    error_per_second: float = 0.0
    reusable_tokens: float | None = None


def hashed(rows: Sequence[KeyRow], problem: Problem, secret: bytes) -> tuple[KeyRate, ...]:
    """The rows by hash, under the first key rule of their class.

    Raises:
        InvalidInput: a class that the problem does not have, or a secret shorter than 16 or longer than 64 bytes.
    """
    rules = {c.metadata.name: rule_text(key_rules(c, problem.fleet)[0]) for c in problem.classes}
    for row in rows:
        if row.class_name not in rules:
            raise unknown_class(row.key, row.class_name, list(rules))
    return tuple(
        KeyRate(
            row.class_name,
            key_hash(secret, row.class_name, rules[row.class_name], row.key),
            row.requests_per_second,
            row.error_per_second,
            row.reusable_tokens,
        )
        for row in rows
    )
