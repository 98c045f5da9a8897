"""A decider that answers as told: what transports are tested with instead of the router's core."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kvplan_router.core.values import Decision, Released, Request, Ticket, Usage


@dataclass
class Script:
    """A decider that answers as told and writes down what it was asked."""

    answers: list[Decision]
    asked: list[Request] = field(default_factory=list)
    finished: list[tuple[Ticket, Usage | None]] = field(default_factory=list)
    ended: list[float | None] = field(default_factory=list)
    served_by: list[tuple[Ticket, str]] = field(default_factory=list)
    abandoned: list[tuple[object, float]] = field(default_factory=list)
    to_release: list[Released] = field(default_factory=list)
    looked: list[float] = field(default_factory=list)

    def decide(self, request: Request) -> Decision:
        self.asked.append(request)
        return self.answers.pop(0)

    def served(self, ticket: Ticket, address: str) -> None:
        self.served_by.append((ticket, address))

    def finish(self, ticket: Ticket, usage: Usage | None = None, now: float | None = None) -> bool:
        self.finished.append((ticket, usage))
        self.ended.append(now)
        return True

    def abandon(self, ticket: object, now: float) -> bool:
        self.abandoned.append((ticket, now))
        return True

    def release(self, now: float) -> Iterable[Released]:
        self.looked.append(now)
        released, self.to_release = self.to_release, []
        return released
