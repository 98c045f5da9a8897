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
        digest.update(_counted(data))
        return int.from_bytes(digest.digest(), "big")

    return hashed


def _counted(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


class KeyRule(NamedTuple):
    """One compiled rule."""

    find: Callable[[Request], str | bytes | None]
    reads_body: bool
    hasher: Hasher


def compile_rules(rules: Iterable[Mapping[str, Any]], class_name: str, secret: bytes) -> tuple[KeyRule, ...]:
    """The rules of a class, in order; a rule without the field its kind needs finds nothing and is left out."""
    compiled = (_compile(rule, class_name, secret) for rule in rules)
    return tuple(rule for rule in compiled if rule is not None)


def key_of(rules: tuple[KeyRule, ...], request: Request) -> int | NoKey | None:
    """The request's key; None where no rule finds a value, ``NEED_BODY`` where only the body can tell."""
    for find, reads_body, hasher in rules:
        if reads_body and request.body is None:
            return NEED_BODY
        value = find(request)
        if value:
            return hasher(value)
    return None


def _compile(rule: Mapping[str, Any], class_name: str, secret: bytes) -> KeyRule | None:
    kind, name, limit = rule["kind"], rule.get("name", ""), rule.get("bytes", 0)
    if kind == "prefix":
        return _rule(_prefix(limit), f"prefix:{limit}", class_name, secret, reads_body=True) if limit else None
    if not name:
        return None
    if kind == "field":
        return _rule(_field(name), f"field:{name}", class_name, secret, reads_body=True)
    return _rule(_header(name.lower()), f"header:{name.lower()}", class_name, secret, reads_body=False)


def _rule(
    find: Callable[[Request], str | bytes | None], text: str, class_name: str, secret: bytes, *, reads_body: bool
) -> KeyRule:
    return KeyRule(find, reads_body, key_hasher(secret, class_name, text))


def _header(name: str) -> Callable[[Request], str | None]:
    return lambda request: request.headers.get(name)


def _field(name: str) -> Callable[[Request], str]:
    return lambda request: text_field(request.document, name)


def _prefix(limit: int) -> Callable[[Request], bytes]:
    return lambda request: prefix_value(request.document, limit)
