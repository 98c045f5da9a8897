"""From a request to its key: the first key rule that finds a value, hashed. Standard library and solver keys.

In: a class's key rules, the fleet's secret, a request. Out: the 64-bit key of docs/contracts/key-hash.md, equal to
``kvplan_solver.cacheroute.keys.key_hash`` (property-tested). Secret, class and rule are hashed once per
table, so a request pays for its value alone. Must not: keep or show a value. Source: 05-router §5.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from kvplan_router.core.body import prefix_value, text_field
from kvplan_router.core.values import Request
from kvplan_solver.cacheroute.keys import fingerprint

Hasher = Callable[[str | bytes], int]


class NoKey(Enum):
    """Why there is no key yet."""

    NEED_BODY = "body"


NEED_BODY: Final = NoKey.NEED_BODY


def key_hasher(secret: bytes, class_name: str, rule: str) -> Hasher:
    """The key hash with everything but the value already taken in.

    Raises:
        InvalidInput: the secret is too short or too long.
    """
    fingerprint(secret)  # refuses a secret that the contract does not allow
    begun = hashlib.blake2b(key=secret, digest_size=8, person=b"kvplan-key-v1")
    for part in (class_name, rule):
        begun.update(_counted(part.encode("utf-8", "surrogatepass")))

    def hashed(value: str | bytes) -> int:
        data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
        digest = begun.copy()
        digest.update(len(data).to_bytes(4, "big") + data)  # as _counted, without its call
        return int.from_bytes(digest.digest(), "big")

    return hashed


def _counted(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


Find = Callable[[Mapping[str, Any]], str | bytes]


class KeyRule(NamedTuple):
    """One compiled rule.

    Attributes:
        header: whose value it takes, in lower case.
        find: the value in a body's document instead; None where the rule reads the header.
        hasher: of that value.
    """

    header: str
    find: Find | None
    hasher: Hasher


def compile_rules(rules: Iterable[Mapping[str, Any]], class_name: str, secret: bytes) -> tuple[KeyRule, ...]:
    """The rules of a class, in order; a rule without the field its kind needs finds nothing and is left out."""
    compiled = (_compile(rule, class_name, secret) for rule in rules)
    return tuple(rule for rule in compiled if rule is not None)


def key_of(rules: tuple[KeyRule, ...], request: Request) -> int | NoKey | None:
    """The request's key; None where no rule finds a value, ``NEED_BODY`` where only the body can tell."""
    value: str | bytes | None
    for header, find, hasher in rules:
        if find is None:
            value = request.headers.get(header)
        elif request.body is None:
            return NEED_BODY
        else:
            value = find(request.document)
        if value:
            return hasher(value)
    return None


def _compile(rule: Mapping[str, Any], class_name: str, secret: bytes) -> KeyRule | None:
    kind, name, limit = rule["kind"], rule.get("name", ""), rule.get("bytes", 0)
    if kind == "prefix":
        return KeyRule("", _prefix(limit), key_hasher(secret, class_name, f"prefix:{limit}")) if limit else None
    if not name:
        return None
    if kind == "field":
        return KeyRule("", _field(name), key_hasher(secret, class_name, f"field:{name}"))
    header = name.lower()
    return KeyRule(header, None, key_hasher(secret, class_name, f"header:{header}"))


def _field(name: str) -> Find:
    return lambda document: text_field(document, name)


def _prefix(limit: int) -> Find:
    return lambda document: prefix_value(document, limit)
