"""Tables written by hand: what the operator would publish, in a few lines.

In: slots, classes, keys. Out: the text of an index, and its shards. Key values are hashed here as a router does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kvplan_solver.cacheroute.keys import HASH_NAME, fingerprint, key_hash
from kvplan_solver.cacheroute.table import EncodedTable, Home, TableKeys, encode_table

SECRET = b"a secret of the tests, no other"
KEY_HEADER = "x-tenant-id"
GRID = [16, 64, 256, 1024, 4096, 16384]


@dataclass(frozen=True)
class ClassPolicy:
    """One class of the index.

    Attributes:
        name: of the class.
        match: as in the index; empty matches everything.
        key_rules: as in the index.
        reservation_tokens: R̃ on every configuration.
        prompt_tokens: prompt that it has room for; 0: not told.
        queue: longest queue, and its deadline in milliseconds.
        shed: other or 429.
        configurations: it may use, with equal shares.
    """

    name: str = "chat"
    match: Mapping[str, Any] = field(default_factory=dict)
    key_rules: Sequence[Mapping[str, Any]] = ({"kind": "header", "name": KEY_HEADER},)
    reservation_tokens: int = 100
    prompt_tokens: int = 0
    queue: tuple[int, int] = (0, 0)
    shed: str = "other"
    configurations: Sequence[str] = ("tp1",)


@dataclass(frozen=True)
class WrittenTable:
    """A table to publish.

    Attributes:
        addresses: of slots ``tp1-0``, ``tp1-1``, …
        draining: numbers of slots that take nothing new.
        budget_tokens: Q of every slot.
        classes: in match order.
        homes: where a key lives: numbers of slots by key value, by the first rule of the first class.
        backups: the planned backup of those with one slot, by key value; none where it is not named.
        routers: shareMilli by identity.
        generation: of the epoch.
        inline_keys_max: more keys than this go into shards.
        secret: of the key hash.
    """

    addresses: Sequence[str]
    draining: frozenset[int] = frozenset()
    budget_tokens: int = 1_000_000
    classes: Sequence[ClassPolicy] = (ClassPolicy(),)
    homes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    backups: Mapping[str, int] = field(default_factory=dict)
    routers: Mapping[str, int] = field(default_factory=dict)
    mode: str = "plan"
    epoch: int = 1
    generation: int = 1
    inline_keys_max: int = 4_000
    secret: bytes = SECRET

    def next(self, **changes: Any) -> "WrittenTable":
        """The table of the next generation."""
        return replace(self, generation=self.generation + 1, **changes)

    def encoded(self) -> EncodedTable:
        """Index and shards."""
        return encode_table("fleet", self._head(), self._keys(), self.inline_keys_max)

    def text(self) -> str:
        """The index, with every key in it."""
        return self.encoded().index

    def _head(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "generation": self.generation,
            "mode": self.mode,
            "hash": {"name": HASH_NAME, "fingerprint": fingerprint(self.secret)},
            "classes": [_class(policy) for policy in self.classes],
            "unmatched": "ColdTail",
            "grids": {"promptTokens": GRID, "outputTokens": GRID},
            "routers": [{"identity": name, "shareMilli": share} for name, share in self.routers.items()],
            "slots": [self._slot(number, address) for number, address in enumerate(self.addresses)],
        }

    def _slot(self, number: int, address: str) -> dict[str, Any]:
        state = "draining" if number in self.draining else "serving"
        return {
            "slot": f"tp1-{number}", "configuration": "tp1", "budgetTokens": self.budget_tokens, "weightMilli": 1000,
            "address": address, "state": state,
        }  # fmt: skip

    def _keys(self) -> TableKeys:
        first = self.classes[0]
        rule = f"{first.key_rules[0]['kind']}:{first.key_rules[0]['name']}" if self.homes else ""
        hashes = [key_hash(self.secret, first.name, rule, value) for value in self.homes]
        homes = [self._home(value, numbers) for value, numbers in self.homes.items()]
        distinct = tuple(dict.fromkeys(homes))
        return TableKeys(distinct, hashes, [1.0] * len(hashes), [distinct.index(home) for home in homes])

    def _home(self, value: str, numbers: Sequence[int]) -> Home:
        backup = f"tp1-{self.backups[value]}" if value in self.backups else None
        return Home(tuple(sorted(f"tp1-{n}" for n in numbers)), backup)


def _class(policy: ClassPolicy) -> dict[str, Any]:
    share = 1000 // len(policy.configurations)
    routes = [
        {"configuration": name, "shareMilli": share, "reservationTokens": policy.reservation_tokens}
        for name in policy.configurations
    ]
    return {
        "name": policy.name, "match": dict(policy.match), "keyRules": [dict(rule) for rule in policy.key_rules],
        "routes": routes, "admitMilli": 1000, "maxPromptTokens": 8192, "maxOutputTokens": 1024,
        "reservedPromptTokens": policy.prompt_tokens, "cachedPrefixTokens": 0,
        "queue": {"maxLength": policy.queue[0], "deadlineMilliseconds": policy.queue[1]},
        "shed": policy.shed,
    }  # fmt: skip
