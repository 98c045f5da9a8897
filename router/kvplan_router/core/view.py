"""One index and its table as the hot path needs them. Swapped by one reference; only what it remembers grows.

What must outlive a swap (accounts, meters, thinning credit) is only referred to. Must not: decide anything.
Built by :mod:`compilation`; contract docs/contracts/index.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

from kvplan_router.core.classes import Match
from kvplan_router.core.destination import Destination
from kvplan_router.core.keys import KeyRule
from kvplan_router.core.measure import ClassMeter
from kvplan_router.core.prompt_sizes import PromptSizes
from kvplan_router.core.thinning import Thinning
from kvplan_router.core.values import Request
from kvplan_solver.cacheroute.table import Home, Table


class ServingHome(NamedTuple):
    """What serves of a key's home.

    Attributes:
        members: its destinations.
        backup: the planned one.
        order: members and backup.
    """

    members: tuple[Destination, ...]
    backup: Destination | None
    order: tuple[Destination, ...]


def serving_home(home: Home, serving: Mapping[str, Destination]) -> ServingHome:
    """What serves of a home; there may be nothing."""
    members = tuple([serving[slot] for slot in home.destinations if slot in serving])
    backup = None if home.backup is None else serving.get(home.backup)
    return ServingHome(members, backup, members if backup is None else (*members, backup))


class Need(NamedTuple):
    """What a request needs of a planned reservation, tokens in whole blocks.

    Attributes:
        spared: of R̃, because its prompt is shorter than planned for.
        least: what it takes in any case, its own prompt: while routes of two plans mix, an R̃ may be of the other one.
    """

    spared: int
    least: int


WHOLE: Final = Need(0, 0)
"""All of R̃."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClassView:
    """One class as the hot path needs it.

    Attributes:
        name: of the RequestClass.
        key_rules: in order.
        draw: a destination by route shares and weights; there must be one.
        members: every destination it may use, each once.
        tokens_on: R̃ by configuration.
        largest_tokens: R̃ where a configuration is no route of the class.
        share_on: shareMilli by configuration.
        anywhere: whether it may use any destination, whatever its routes.
        deadline_seconds: longest wait.
        queue_length: most requests of the class that wait.
        overflows: whether a request without room at its key's home may go elsewhere.
        admit_milli: share of its requests that the plan admits.
        planned: False in observe mode, and for a class newer than the plan: it is counted, and nothing overrides its
            routing.
        thinning: spreads that share evenly.
        prefix_tokens: reusable tokens of a request, as planned; 0: not known.
        prompt_tokens: prompt that R̃ has room for; 0: not told.
        block_tokens: of one KV block.
        sizes: how long prompts are by their bytes.
        meter: its counters.
    """

    name: str
    key_rules: tuple[KeyRule, ...]
    draw: Callable[[Random], Destination]
    members: tuple[Destination, ...]
    tokens_on: Mapping[str, int]
    largest_tokens: int
    share_on: Mapping[str, int]
    anywhere: bool
    deadline_seconds: float
    queue_length: int
    overflows: bool
    admit_milli: int
    planned: bool
    thinning: Thinning
    prefix_tokens: int
    prompt_tokens: int
    block_tokens: int
    sizes: PromptSizes
    meter: ClassMeter

    def tokens(self, destination: Destination, need: Need) -> int:
        """What a request takes there: R̃, less what it spares, and never less than its own prompt."""
        planned = self.tokens_on.get(destination.configuration, self.largest_tokens)
        spared, least = need
        left = planned - spared
        if left >= least:
            return left
        return least if least < planned else planned

    def need(self, size: int) -> Need:
        """What a request of so many bytes needs of R̃."""
        prompt = self.sizes.tokens(size) if self.prompt_tokens and size else None
        if prompt is None:
            return WHOLE
        # The cached prefix is no part of R̃, so what lies beyond it is all that a prompt takes and can spare.
        prefix, block = self.prefix_tokens, self.block_tokens
        own = prompt - prefix if prompt > prefix else 0
        spare = self.prompt_tokens - prefix - own
        return Need(spare // block * block, -(-own // block) * block or block) if spare > 0 else WHOLE

    def may_use(self, destination: Destination) -> bool:
        """Whether the plan routes the class there."""
        return self.anywhere or self.share_on.get(destination.configuration, 0) > 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class View:
    """What is in force.

    Attributes:
        order: (epoch, generation).
        plans: False in observe mode: nothing overrides routing.
        table: look-up of keys.
        homes: what serves of the homes that were asked for.
        serving: destinations that may take new requests, by slot.
        by_address: every destination with an address, draining ones too, by ``ip:port``.
        classes: in match order.
        by_name: the first entry of each class.
        unmatched: for requests that match none.
        rejects_unmatched: whether those are refused.
        routers: shareMilli by identity.
        owners: the same for slots whose owners the index names itself.
        budgets: Q by slot.
        largest: largest R̃ by slot.
        grids: bounds of the length histograms.
    """

    order: tuple[int, int]
    plans: bool
    table: Table
    homes: dict[Home, ServingHome]
    serving: Mapping[str, Destination]
    by_address: Mapping[str, Destination]
    classes: tuple[tuple[Match, ClassView], ...]
    by_name: Mapping[str, ClassView]
    unmatched: ClassView
    rejects_unmatched: bool
    routers: Mapping[str, int]
    owners: Mapping[str, Mapping[str, int]]
    budgets: Mapping[str, int]
    largest: Mapping[str, int]
    grids: Mapping[str, Sequence[int]]

    def class_of(self, request: Request) -> ClassView | None:
        """The first class whose match holds; None where only the body can tell."""
        for match, class_view in self.classes:
            holds = match.holds(request)
            if holds:
                return class_view
            if holds is None:
                return None
        return self.unmatched

    def home(self, key: int) -> ServingHome | None:
        """What serves of a key's home; None for the cold tail."""
        home = self.table.lookup(key)
        if home is None:
            return None
        found = self.homes.get(home)
        if found is None:
            found = self.homes[home] = serving_home(home, self.serving)
        return found
