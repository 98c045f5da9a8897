"""How the routers share the budgets: equal parts, moved only after the old owner let go (05-router §4).

Inputs: who holds what, who should, what each router acknowledged. Outputs: the next shares. Invariant, over any
interleaving of publications, reads, restarts and late reports: what routers use of one budget at any moment adds up
to at most 1000 thousandths. A router may use any share published after the generation it reported, so each share
carries an upper bound ``held``; a share grows only into what all bounds together leave free. Pure.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

FULL_SHARE = 1000
"""Thousandths of one budget."""


@dataclass(frozen=True)
class Holding:
    """One router's part of one budget, thousandths.

    Attributes:
        share: what the newest index grants.
        held: the most that the router may still use; at least ``share``.
        since: generation from which on it uses at most ``share``.
    """

    share: int = 0
    held: int = 0
    since: int = 0


Holdings = Mapping[str, Holding]
"""By router identity."""


def settled(holdings: Holdings, present: Collection[str], let_go: Callable[[str, Holding], bool]) -> dict[str, Holding]:
    """The holdings without processes that are gone, and without bounds that their owners gave up.

    Args:
        holdings: as published.
        present: routers whose process may run.
        let_go: whether a router acknowledged its share and keeps to it.
    """
    return {
        name: replace(part, held=part.share) if part.held > part.share and let_go(name, part) else part
        for name, part in holdings.items()
        if name in present
    }


def moved(holdings: Holdings, targets: Mapping[str, int], generation: int) -> dict[str, Holding]:
    """One step towards the targets: everyone shrinks now, and grows as far as the bounds leave room.

    Args:
        holdings: settled ones.
        targets: wanted shares.
        generation: of the index that will carry the result.
    """
    step = {name: _shrunk(holdings.get(name, Holding()), targets.get(name, 0), generation) for name in
            sorted({*holdings, *targets})}  # fmt: skip
    free = FULL_SHARE - sum(part.held for part in step.values())
    for name, part in step.items():
        share = min(targets.get(name, 0), part.held + max(0, free))
        if share > part.share:
            free -= max(0, share - part.held)
            step[name] = replace(part, share=share, held=max(part.held, share))
    return step


def _shrunk(part: Holding, target: int, generation: int) -> Holding:
    if target >= part.share:
        return part
    return Holding(target, part.held, generation)


def equal_shares(routers: Collection[str]) -> dict[str, int]:
    """The same share for everyone, rounded down."""
    return dict.fromkeys(routers, FULL_SHARE // len(routers)) if routers else {}


def owners(slot: str, routers: Collection[str], budget_tokens: int, largest_reservation_tokens: int) -> list[str]:
    """Who shares the budget of one slot: everyone, or as many as leave each the largest reservation.

    The choice depends on names alone (highest random weight), so that a router more or less moves few slots.

    Args:
        slot: its name.
        routers: identities.
        budget_tokens: Q, KV tokens.
        largest_reservation_tokens: largest R̃ there, KV tokens.
    """
    many = len(routers)
    while many > 1 and limit_tokens(budget_tokens, FULL_SHARE // many) < largest_reservation_tokens:
        many -= 1
    if many == len(routers):
        return sorted(routers)
    return sorted(sorted(routers, key=lambda name: _weight(slot, name))[:many])


def limit_tokens(budget_tokens: int, share_milli: int) -> int:
    """KV tokens that a share of a budget is."""
    return budget_tokens * share_milli // FULL_SHARE


def _weight(slot: str, router: str) -> bytes:
    return hashlib.blake2b(f"{slot}\n{router}".encode(), digest_size=8).digest()
