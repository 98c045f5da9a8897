"""The books of one slot in this process: requests in flight and tokens reserved. Pure state.

Kept across table swaps under the slot's name. Invariant: a reservation is made only where it fits, so
``reserved + leftover`` passes ``limit`` only when the limit itself was lowered or an engine was found busy at
start. Source: 05-router §3–4; R̃ and Q are ``kvplan_solver.budget``'s.
"""


class SlotAccount:
    """What this process has on one slot.

    Attributes:
        slot: its name.
        in_flight: requests this process sent there and has not seen end.
        elsewhere: requests that other router processes report in flight there; load, never budget.
        reserved: KV tokens R̃ of this process's requests.
        leftover: KV tokens counted for requests that the engine runs and no router process remembers.
        limit: KV tokens this process may reserve: its share of Q.
        waiting: requests that wait for this slot; while there are some, newcomers may not pass them.
    """

    __slots__ = ("elsewhere", "in_flight", "leftover", "limit", "reserved", "slot", "waiting")

    def __init__(self, slot: str) -> None:
        self.slot = slot
        self.in_flight = self.elsewhere = self.reserved = self.leftover = self.limit = self.waiting = 0

    def fits(self, tokens: int) -> bool:
        """Whether a reservation stays within this process's share."""
        return self.reserved + self.leftover + tokens <= self.limit

    def has_room(self, tokens: int) -> bool:
        """Whether a newcomer may reserve: it fits and passes nobody."""
        return not self.waiting and self.reserved + self.leftover + tokens <= self.limit

    def never_fits(self, tokens: int) -> bool:
        """Whether waiting for that much is in vain. Without any budget it is not: a share may be on its way."""
        return 0 < self.limit < tokens

    @property
    def within_limit(self) -> bool:
        """Whether everything counted here fits the share."""
        return self.reserved + self.leftover <= self.limit

    @property
    def idle(self) -> bool:
        """Whether nothing is left to remember."""
        return not (self.in_flight or self.reserved or self.waiting)
