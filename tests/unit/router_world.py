"""Builders of what a router core sees: indexes, tables, requests, routers."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from kvplan_router.core.decide import Router
from kvplan_router.core.settings import CoreSettings
from kvplan_router.core.values import Pick, Request
from kvplan_solver.cacheroute.keys import HASH_NAME, fingerprint, key_hash
from kvplan_solver.cacheroute.table import Home, Index, Table, TableKeys, encode_table, read_index, read_table

SECRET = b"a secret of a test, long enough"
TENANT_HEADER = "x-tenant-id"


def slot(name: str, **fields: Any) -> dict[str, Any]:
    """A serving slot with an address of its own and room for ten requests of 100 tokens."""
    configuration, _, number = name.rpartition("-")
    return {
        "slot": name, "configuration": configuration, "budgetTokens": 1_000, "weightMilli": 1_000, "state": "serving",
        "address": f"10.{len(configuration)}.0.{number}:8000",
    } | fields  # fmt: skip


def routes(**shares: int) -> list[dict[str, Any]]:
    """Routes with a reservation of 100 tokens each."""
    return [{"configuration": c, "shareMilli": s, "reservationTokens": 100} for c, s in shares.items()]


def request_class(name: str = "chat", **fields: Any) -> dict[str, Any]:
    """A class that takes everything, keyed by tenant, routed to configuration ``a``, without a queue."""
    return {
        "name": name, "match": {}, "keyRules": [{"kind": "header", "name": TENANT_HEADER}],
        "routes": routes(a=1000), "admitMilli": 1000, "maxPromptTokens": 800, "maxOutputTokens": 200,
        "cachedPrefixTokens": 50, "queue": {"maxLength": 0, "deadlineMilliseconds": 2_000}, "shed": "429",
    } | fields  # fmt: skip


def document(**fields: Any) -> dict[str, Any]:
    """The head of an index in plan mode: one class, three slots of one configuration."""
    return {
        "epoch": 1_760_000_000, "generation": 1, "mode": "plan", "unmatched": "ColdTail", "routers": [],
        "hash": {"name": HASH_NAME, "fingerprint": fingerprint(SECRET)}, "classes": [request_class()],
        "grids": {"promptTokens": [16, 256, 4096], "outputTokens": [16, 256]},
        "slots": [slot("a-0"), slot("a-1"), slot("a-2")],
    } | fields  # fmt: skip


def key(tenant: str, class_name: str = "chat") -> int:
    """The key of a tenant's requests."""
    return key_hash(SECRET, class_name, f"header:{TENANT_HEADER}", tenant)


def table(head: Mapping[str, Any], homes: Mapping[str, Home] | None = None) -> tuple[Index, Table]:
    """An index and its table; homes by tenant, of class ``chat``."""
    homes = homes or {}
    keys = TableKeys(tuple(homes.values()), [key(t) for t in homes], [1.0] * len(homes), list(range(len(homes))))
    encoded = encode_table("fleet", dict(head), keys)
    index = read_index(encoded.index)
    return index, read_table(index, {shard.name: shard.data for shard in encoded.shards})


def home(*slots: str, backup: str | None = None) -> Home:
    """Where a key lives."""
    return Home(tuple(sorted(slots)), backup)


def router(
    head: Mapping[str, Any] | None = None, homes: Mapping[str, Home] | None = None, *, seed: int = 1, **settings: Any
) -> Router:
    """A router with a table in force."""
    made = Router(SECRET, CoreSettings(**settings), Random(seed))
    made.install(*table(head or document(), homes))
    return made


def request(
    tenant: str | None = None,
    session: str | None = None,
    *,
    body: bytes | None = None,
    now: float = 0.0,
    subset: str | Sequence[str] | None = None,
    **headers: str,
) -> Request:
    """A request; header names with underscores for dashes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    named |= {TENANT_HEADER: tenant} if tenant else {}
    named |= {"x-session-id": session} if session else {}
    return Request(named, now, body, subset)


def picked(decision: object) -> Pick:
    """The decision, which must be a pick."""
    assert isinstance(decision, Pick), decision
    return decision


def slot_of(decision: object) -> str:
    """The slot that a pick reserved on."""
    return picked(decision).ticket.account.slot
