"""End an Envoy's work without breaking an answer: ``python -m kvplan_router.envoy.drain`` as a preStop hook.

In: the address of Envoy's admin server. Out: nothing is in flight in it, or the time is over; then a file is written
that the hook of Envoy's own container waits for. Standard library only. Must not end any process. Source: 05-router §7.

Envoy ends at once on SIGTERM, and with it every stream it carries. So both containers of the pod wait here first: new
clients are turned away after a moment (others still find this pod until its address has left the Service), and open
answers run to their end.
"""

import argparse
import contextlib
import http.client
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ACTIVE = "http.gateway.downstream_rq_active"
"""Envoy's own count of requests that have no full answer yet; ``gateway`` is the listener's name in the bootstrap."""
_LOOK_SECONDS = 0.25
_ANSWER_SECONDS = 2.0


@dataclass(frozen=True)
class Drain:
    """What to wait for, and how long.

    Attributes:
        admin: ``host:port`` of Envoy's admin server.
        lame_duck_seconds: for which new requests still come, because not everybody knows yet.
        limit_seconds: after which open answers are given up.
    """

    admin: str
    lame_duck_seconds: float
    limit_seconds: float

    def run(self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep) -> bool:
        """Wait until nothing is in flight; returns whether that is so."""
        began = clock()
        self._turn_away()
        sleep(min(self.lame_duck_seconds, self.limit_seconds))
        while self.busy():
            if clock() - began >= self.limit_seconds:
                return False
            sleep(_LOOK_SECONDS)
        return True

    def busy(self) -> bool:
        """Whether an answer is open. An Envoy that has ended has none; one that does not say may have some."""
        try:
            count = self._ask("GET", f"/stats?filter=^{ACTIVE}$").rpartition(":")[2].strip()
        except ConnectionRefusedError:
            return False
        except (OSError, http.client.HTTPException):
            return True
        return count not in ("", "0")

    def _turn_away(self) -> None:
        """Answers end their connections from now on, so that clients go elsewhere."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            self._ask("POST", "/healthcheck/fail")

    def _ask(self, method: str, path: str) -> str:
        connection = http.client.HTTPConnection(self.admin, timeout=_ANSWER_SECONDS)
        try:
            connection.request(method, path)
            return connection.getresponse().read().decode(errors="replace")
        finally:
            connection.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Drain as the options say; returns 0, or 1 when answers were given up."""
    parser = argparse.ArgumentParser(
        prog="kvplan_router.envoy.drain", description="End an Envoy's work without breaking an answer."
    )
    parser.add_argument("--admin", default="127.0.0.1:9901", help="host:port of Envoy's admin server")
    parser.add_argument("--lame-duck-seconds", type=float, default=5.0, help="how long new requests still come")
    parser.add_argument("--limit-seconds", type=float, default=300.0, help="after which open answers are given up")
    parser.add_argument("--done-file", type=Path, required=True, help="written at the end")
    given = parser.parse_args(arguments)
    drained = Drain(given.admin, given.lame_duck_seconds, given.limit_seconds).run()
    given.done_file.touch()
    return 0 if drained else 1


if __name__ == "__main__":
    sys.exit(main())
