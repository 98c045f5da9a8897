"""One index and its table as the hot path needs them. Swapped by one reference, never changed.

What must outlive a swap (accounts, meters, thinning credit) is only referred to. Must not: decide anything.
Built by :mod:`compilation`; contract docs/contracts/index.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from kvplan_router.core.classes import Answer, Match
from kvplan_router.core.destination import Destination
from kvplan_router.core.keys import KeyRule
from kvplan_router.core.measure import ClassMeter
from kvplan_router.core.thinning import Thinning
from kvplan_router.core.urn import Urn
from kvplan_router.core.values import Request
from kvplan_solver.cacheroute.table import Table


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClassView:
    """One class as the hot path needs it.

    Attributes:
        name: of the RequestClass.
        key_rules: in order.
        routes: an urn of urns: configurations by shareMilli, in each its destinations by weight.
        members: every destination it may use, each once.
        tokens_on: R̃ by configuration.
        largest_tokens: R̃ where a configuration is no route of the class.
        share_on: shareMilli by configuration.
        anywhere: whether it may use any destination, whatever its routes.
        deadline_seconds: longest wait.
        queue_length: most requests of the class that wait.
        overflows: whether a request without room at its key's home may go elsewhere.
        admit_milli: share of its requests that the plan admits.
        planned: False for a class newer than the plan: it is counted, and nothing overrides its routing.
        thinning: spreads that share evenly.
        prefix_tokens: reusable tokens of a request, as planned; 0: not known.
        meter: its counters.
    """

    name: str
    key_rules: tuple[KeyRule, ...]
    routes: Urn[Urn[Destination]]
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
    meter: ClassMeter

    def tokens(self, destination: Destination) -> int:
        """R̃ of one request there."""
        return self.tokens_on.get(destination.configuration, self.largest_tokens)

    def may_use(self, destination: Destination) -> bool:
        """Whether the plan routes the class there."""
        return self.anywhere or self.share_on.get(destination.configuration, 0) > 0

    def draw(self, rng: Random) -> Destination:
        """A destination by route shares and weights; there must be one."""
        return self.routes.draw(rng).draw(rng)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class View:
    """What is in force.

    Attributes:
        order: (epoch, generation).
        plans: False in observe mode: nothing overrides routing.
        table: look-up of keys.
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
            answer = match.answer(request)
            if answer is Answer.YES:
                return class_view
            if answer is Answer.BODY:
                return None
        return self.unmatched
