"""Where a call becomes a request in the engine, or is refused; and whether the server still takes calls."""

import asyncio
import enum
from collections.abc import Iterator
from contextlib import contextmanager

from kvplan_engine.core.answer_length import AnswerLength
from kvplan_engine.core.request import Request
from kvplan_engine.engine import Answer, Engine
from kvplan_engine.metrics.engine_metrics import EngineMetrics
from kvplan_engine.protocol.call import Call
from kvplan_engine.protocol.errors import EngineGone, QueueFull
from kvplan_engine.protocol.identity import completion_id, reservation_of
from kvplan_engine.settings import Settings


class Phase(enum.Enum):
    """Life of the engine behind the server."""

    SERVING = "serving"
    DRAINING = "draining"
    DEAD = "dead"


class Desk:
    """Takes calls for one engine.

    Attributes:
        phase: where the engine is in its life.
        open_calls: calls being served.
        idle: set while there are none.
    """

    def __init__(self, settings: Settings, engine: Engine, metrics: EngineMetrics) -> None:
        flags = settings.flags
        self.phase = Phase.SERVING
        self.open_calls = 0
        self.idle = asyncio.Event()
        self.idle.set()
        self._engine = engine
        self._metrics = metrics
        self._lengths = AnswerLength(flags.stand_in_answer_tokens, flags.stand_in_answer_sigma)
        self._reservations = settings.limits.reservations
        self._caps = {
            "max_num_queued_reqs": flags.max_num_queued_reqs,
            "max_num_queued_tokens": flags.max_num_queued_tokens,
        }

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Count a call as being served."""
        self.open_calls += 1
        self.idle.clear()
        try:
            yield
        finally:
            self.open_calls -= 1
            if not self.open_calls:
                self.idle.set()

    def accept(self, call: Call, request_id: str) -> Answer:
        """Queue a call.

        Raises:
            EngineGone: the engine is draining or dead.
            QueueFull: a queue limit would be exceeded.
        """
        if self.phase is Phase.DRAINING:
            raise EngineGone("cannot schedule new futures after shutdown")
        if self.phase is Phase.DEAD:
            raise EngineGone("EngineCore encountered an issue. See stack trace (above) for the root cause.")
        self._check("max_num_queued_reqs", self._engine.in_flight + 1)
        self._check("max_num_queued_tokens", self._engine.backlog_tokens + len(call.prompt))
        return self._engine.submit(self._request(call, request_id))

    def leave(self, answer: Answer) -> None:
        """A client is served, or gone; what it left behind is given up."""
        self._engine.abort(answer)

    def _check(self, reason: str, value: int) -> None:
        cap = self._caps[reason]
        if cap is not None and value > cap:
            self._metrics.rejected(reason)
            raise QueueFull(reason, cap)

    def _request(self, call: Call, request_id: str) -> Request:
        seed = request_id if call.seed is None else str(call.seed)
        output_tokens, reason = self._lengths.plan(seed, call.max_tokens, ignore_eos=call.ignore_eos)
        return Request(
            request_id=completion_id(call, request_id),
            prompt=call.prompt,
            output_tokens=output_tokens,
            finish_reason=reason,
            max_tokens=call.max_tokens,
            priority=call.priority,
            cache_salt=call.cache_salt,
            reservation_tokens=reservation_of(request_id) if self._reservations else None,
        )
