"""What one step of the engine computes. Pure."""

from dataclasses import dataclass, field

from kvplan_engine.core.request import Request


@dataclass
class Step:
    """What one step computes.

    Attributes:
        budget: tokens it could compute on top.
        work: tokens to compute, by request.
        admitted: requests admitted in it, the resumed ones too.
        preempted: requests that lost their blocks in it.
    """

    budget: int
    work: dict[Request, int] = field(default_factory=dict)
    admitted: list[Request] = field(default_factory=list)
    preempted: list[Request] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """Tokens it computes."""
        return sum(self.work.values())

    def assign(self, request: Request, tokens: int) -> None:
        """Compute ``tokens`` of a request."""
        self.work[request] = tokens
        self.budget -= tokens

    def withdraw(self, request: Request) -> None:
        """Compute nothing of a request after all."""
        self.budget += self.work.pop(request, 0)
