"""Compiles one index and its table into a :class:`View`, off the hot path.

In: a checked index, its table, the slots that are ready, what lasts, the secret. Out: the view. Must not: change
anything that is in force; accounts, meters and credits are opened where new and otherwise only referred to.
Contract: docs/contracts/index.md.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from kvplan_router.core.classes import Match
from kvplan_router.core.destination import Destination, destinations_of
from kvplan_router.core.keys import compile_rules
from kvplan_router.core.measure import UNMATCHED, ClassMeter
from kvplan_router.core.prompt_sizes import PromptSizes
from kvplan_router.core.settings import CoreSettings
from kvplan_router.core.slot_account import SlotAccount
from kvplan_router.core.thinning import Thinning
from kvplan_router.core.urn import Urn, draw_within
from kvplan_router.core.view import ClassView, View
from kvplan_solver.cacheroute.table import Index, Table

MILLI = 1000
BLOCK_TOKENS = 16
"""Of one KV block, where the index does not say."""


@dataclass(frozen=True, slots=True)
class Lasting:
    """What outlives a swap, by name; each opens on first use."""

    account: Callable[[str], SlotAccount]
    meter: Callable[[str], ClassMeter]
    thinning: Callable[[str], Thinning]
    sizes: Callable[[str], PromptSizes]


def compile_view(
    index: Index,
    table: Table,
    ready: frozenset[str] | None,
    lasting: Lasting,
    settings: CoreSettings,
    secret: bytes,
) -> View:
    """Compile one index.

    Args:
        index: checked.
        table: read from it.
        ready: slots whose pods take requests; None: all that serve.
        lasting: what outlives this view.
        settings: of the core.
        secret: of the key hash.

    Raises:
        InvalidInput: the secret is too short or too long.
    """
    document = index.document
    known = destinations_of(document["slots"], lasting.account)
    serving = {d.slot: d for d in known if d.serves and (ready is None or d.slot in ready)}
    compiler = _Compiler(document, serving, lasting, settings, secret)
    classes = tuple((Match(c["match"], settings.model_header), compiler.of(c)) for c in document["classes"])
    return View(
        order=index.order,
        plans=document["mode"] == "plan",
        table=table,
        homes={},
        serving=serving,
        by_address={d.address: d for d in known if d.address},
        classes=classes,
        by_name={c.name: c for _, c in reversed(classes)},
        unmatched=compiler.unmatched(),
        rejects_unmatched=document["unmatched"] == "Reject",
        routers=_shares(document["routers"]),
        owners={slot["slot"]: _shares(slot["routers"]) for slot in document["slots"] if "routers" in slot},
        budgets={slot["slot"]: slot["budgetTokens"] for slot in document["slots"] if slot["state"] != "gone"},
        largest={slot["slot"]: compiler.largest_on(slot["configuration"]) for slot in document["slots"]},
        grids=document["grids"],
    )


class _Compiler:
    """Compiles the classes of one index; equal entries of one class share what lasts."""

    def __init__(
        self,
        document: Mapping[str, Any],
        serving: Mapping[str, Destination],
        lasting: Lasting,
        settings: CoreSettings,
        secret: bytes,
    ) -> None:
        self._document, self._lasting, self._settings, self._secret = document, lasting, settings, secret
        self._plans = document["mode"] == "plan"
        self._serving = tuple(serving.values())
        by_configuration: dict[str, list[Destination]] = {}
        for destination in self._serving:
            by_configuration.setdefault(destination.configuration, []).append(destination)
        self._urns = {name: Urn((d, d.weight) for d in group) for name, group in by_configuration.items()}
        self._groups: dict[frozenset[str], tuple[Destination, ...]] = {}
        self._largest: dict[str, int] = {}
        for route in (route for c in document["classes"] for route in c["routes"]):
            name, tokens = route["configuration"], route["reservationTokens"]
            self._largest[name] = max(tokens, self._largest.get(name, 0))

    def largest_on(self, configuration: str) -> int:
        """Largest R̃ that any class reserves there; where none is routed, the largest of all."""
        return self._largest.get(configuration, max(self._largest.values(), default=0))

    def of(self, entry: Mapping[str, Any]) -> ClassView:
        """One class."""
        routes = [route for route in entry["routes"] if route["configuration"] in self._urns]
        queue, longest_wait = entry["queue"], self._settings.longest_wait_seconds
        return ClassView(
            name=entry["name"],
            key_rules=compile_rules(entry["keyRules"], entry["name"], self._secret),
            draw=self._draw(routes),
            members=self._members(routes),
            tokens_on={route["configuration"]: route["reservationTokens"] for route in entry["routes"]},
            largest_tokens=max((route["reservationTokens"] for route in entry["routes"]), default=0),
            share_on={route["configuration"]: route["shareMilli"] for route in entry["routes"]},
            anywhere=not self._settings.route_weights,
            deadline_seconds=min(queue["deadlineMilliseconds"] / MILLI, longest_wait),
            queue_length=queue["maxLength"] if longest_wait > 0 else 0,
            overflows=entry["shed"] == "other",
            admit_milli=entry["admitMilli"],
            planned=self._plans and (bool(entry["routes"]) or entry["admitMilli"] == 0),
            thinning=self._lasting.thinning(entry["name"]),
            prefix_tokens=entry["cachedPrefixTokens"],
            prompt_tokens=entry.get("reservedPromptTokens", 0),
            block_tokens=self._document.get("blockTokens", BLOCK_TOKENS),
            sizes=self._lasting.sizes(entry["name"]),
            meter=self._lasting.meter(entry["name"]),
        )

    def unmatched(self) -> ClassView:
        """The cold tail of requests without a class: anywhere by weight, with the largest reservation there."""
        configurations = dict.fromkeys(d.configuration for d in self._serving)
        tokens = {name: self.largest_on(name) for name in configurations}
        return ClassView(
            name=UNMATCHED,
            key_rules=(),
            draw=Urn((d, d.weight) for d in self._serving).draw,
            members=self._serving,
            tokens_on=tokens,
            largest_tokens=max(tokens.values(), default=0),
            share_on={},
            anywhere=True,
            deadline_seconds=0.0,
            queue_length=0,
            overflows=True,
            admit_milli=MILLI,
            planned=self._plans,
            thinning=self._lasting.thinning(UNMATCHED),
            prefix_tokens=0,
            prompt_tokens=0,
            block_tokens=BLOCK_TOKENS,
            sizes=self._lasting.sizes(UNMATCHED),
            meter=self._lasting.meter(UNMATCHED),
        )

    def _draw(self, routes: list[Mapping[str, Any]]) -> Callable[[Random], Destination]:
        if self._settings.route_weights:
            return draw_within(Urn((self._urns[route["configuration"]], route["shareMilli"]) for route in routes))
        return Urn((d, 1) for d in self._serving).draw

    def _members(self, routes: list[Mapping[str, Any]]) -> tuple[Destination, ...]:
        """Classes with the same configurations share one tuple: there may be hundreds of classes and slots."""
        if not self._settings.route_weights:
            return self._serving
        allowed = frozenset(route["configuration"] for route in routes if route["shareMilli"])
        if allowed not in self._groups:
            self._groups[allowed] = tuple(d for d in self._serving if d.configuration in allowed)
        return self._groups[allowed]


def _shares(routers: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    return {router["identity"]: router["shareMilli"] for router in routers}
