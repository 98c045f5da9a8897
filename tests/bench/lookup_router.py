"""A router whose decision is one look-up in a dictionary: what a transport costs by itself.

python -m tests.bench.lookup_router --transport native --listen 127.0.0.1:9002 10.0.0.1:8000 …
"""

import argparse
import asyncio
from collections.abc import Iterable

import uvloop

from kvplan_router.core.slot_account import SlotAccount
from kvplan_router.core.values import Decision, Outcome, Pick, Released, Request, Ticket, Usage
from kvplan_router.transport.aio import AioTransport, Listener
from kvplan_router.transport.exchange_state import ExchangeRules
from kvplan_router.transport.interface import Transport
from kvplan_router.transport.native import NativeListener, NativeTransport
from tests.bench.wrk import KEY_HEADER, KEYS


class LookUp:
    """The least that a decider can do."""

    def __init__(self, addresses: list[str]) -> None:
        ticket = Ticket(SlotAccount("a-0"), 1, "chat", 0.0)
        self._picks = {
            f"key-{key}": Pick((addresses[key % len(addresses)],), {}, Outcome.PLANNED, ticket) for key in range(KEYS)
        }

    def decide(self, request: Request) -> Decision:
        return self._picks[request.headers[KEY_HEADER]]

    def served(self, ticket: Ticket, address: str) -> None:
        pass

    def finish(self, ticket: Ticket, usage: Usage | None = None, now: float | None = None) -> bool:  # noqa: ARG002
        return True

    def abandon(self, ticket: object, now: float) -> bool:  # noqa: ARG002
        return False

    def release(self, now: float) -> Iterable[Released]:  # noqa: ARG002
        return ()


def transport(kind: str, listen: str, addresses: list[str]) -> Transport:
    decider, rules = LookUp(addresses), ExchangeRules()
    if kind == "native":
        return NativeTransport(decider, NativeListener(listen), rules)
    return AioTransport(decider, Listener(listen), rules)


async def serve(opened: Transport) -> None:
    await opened.start()
    await opened.set_serving(True)
    await asyncio.Event().wait()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="lookup_router")
    parser.add_argument("--transport", required=True)
    parser.add_argument("--listen", required=True)
    parser.add_argument("addresses", nargs="+")
    given = parser.parse_args()
    uvloop.run(serve(transport(given.transport, given.listen, given.addresses)))


if __name__ == "__main__":
    main()
