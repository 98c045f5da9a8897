"""What Prometheus replied to one look at a fleet, and how to speak of what it did not. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from kvplan_operator.model.fleet_queries import RATE_WINDOW_SECONDS
from kvplan_operator.model.histograms import Histogram, histogram_of
from kvplan_operator.model.series import Answer, Reply, Unanswered

_NOTHING = Answer()


@dataclass(frozen=True)
class Replies:
    """Replies by query.

    Attributes:
        replies: by ``Ask`` or ``lengths_key``; a query that was not asked is absent.
        source: who replied, for people: ``prometheus default``.
        now: when it was asked, seconds since the epoch.
        rate_window_seconds: window of its rates.
    """

    replies: Mapping[str, Reply]
    source: str
    now: float
    rate_window_seconds: int = RATE_WINDOW_SECONDS

    def answer(self, ask: str) -> Answer:
        """The answer; empty where there is none."""
        reply = self.replies.get(ask, _NOTHING)
        return reply if isinstance(reply, Answer) else _NOTHING

    def histogram(self, ask: str, class_name: str | None = None) -> Histogram | None:
        """The histogram of a class, or of all buckets; None where there is none."""
        answer = self.answer(ask)
        return histogram_of(answer.finite if class_name is None else answer.of_class(class_name))

    def trouble(self, *asks: str) -> str:
        """Why the first unanswered of these queries has no answer; empty where all have one."""
        failed = (reply.reason for ask in asks if isinstance(reply := self.replies.get(ask), Unanswered))
        return next(failed, "")

    def doubts(self, *asks: str) -> str:
        """What these answers lack, in the server's words, and what was not answered; empty where all is there."""
        words = [word for ask in asks for word in self.answer(ask).warnings]
        return "; ".join(dict.fromkeys([*words, *filter(None, [self.trouble(*asks)])]))
