"""Every open ext_proc stream is one coroutine: it reads, asks :class:`Exchange`, and writes.

In: a decider that wakes those who wait, the rules. Out: a gRPC servicer. The one place where a request is finished is
the end of its stream, for whatever reason.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import grpc.aio
from envoy.service.ext_proc.v3 import external_processor_pb2 as ext_proc
from envoy.service.ext_proc.v3 import external_processor_pb2_grpc as ext_proc_grpc

from kvplan_router.transport import wire
from kvplan_router.transport.exchange_state import Exchange, ExchangeRules
from kvplan_router.transport.messages import Continue, Echo, End, Hold, Refuse, Reply, Route
from kvplan_router.transport.waiting import WaitingRoom

_WRITERS: dict[type[Any], Callable[[Any], ext_proc.ProcessingResponse]] = {
    Route: wire.route,
    Continue: wire.go_on,
    Echo: wire.echo,
    Refuse: wire.refuse,
}

_ANSWER_SECONDS = 0.25
"""What the answer itself may take after the deadline of a wait, before the gateway goes on without it."""


class Streams(ext_proc_grpc.ExternalProcessorServicer):  # type: ignore[misc]  # generated, untyped
    """All open streams of one server."""

    def __init__(self, waiting: WaitingRoom, rules: ExchangeRules, clock: Callable[[], float]) -> None:
        self._waiting, self._rules, self._clock = waiting, rules, clock
        self._open: dict[asyncio.Task[Any], Exchange] = {}
        self._letting_go = False

    async def Process(
        self, _requests: AsyncIterator[ext_proc.ProcessingRequest], context: grpc.aio.ServicerContext[Any, Any]
    ) -> None:
        """Serve one request of a client."""
        exchange = Exchange(self._waiting, self._clock, self._rules)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        self._open[task] = exchange
        try:
            await self._converse(exchange, context)
        except asyncio.CancelledError:
            if not (self._letting_go and exchange.may_end):
                raise
        finally:
            del self._open[task]
            exchange.close()

    def let_go(self) -> None:
        """Close with OK every stream that is only held to count it, now and from here on: the answers go on."""
        self._letting_go = True
        for task, exchange in self._open.items():
            if exchange.may_end:
                task.cancel()

    async def _converse(self, exchange: Exchange, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        while (request := await context.read()) is not grpc.aio.EOF:
            message = wire.read_message(request)
            if message is None:
                continue
            if not await self._say(exchange, exchange.receive(message), context):
                return
            if self._letting_go and exchange.may_end:
                return

    async def _say(
        self, exchange: Exchange, replies: Sequence[Reply], context: grpc.aio.ServicerContext[Any, Any]
    ) -> bool:
        """Write the replies; returns whether the stream goes on."""
        for reply in replies:
            match reply:
                case Hold():
                    seconds = reply.wait.deadline - self._clock() + _ANSWER_SECONDS
                    await context.write(wire.more_time(seconds))
                    decision = await self._waiting.until_released(reply.wait)
                    if not await self._say(exchange, exchange.resume(decision), context):
                        return False
                case End():
                    return False
                case _:
                    await context.write(_WRITERS[type(reply)](reply))
        return True
