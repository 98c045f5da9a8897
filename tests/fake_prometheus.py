"""A Prometheus, or something that passes for one, that answers as a test says."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answering = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Seen:
    """What reached the server."""

    url: str = ""
    queries: list[str] = field(default_factory=list)
    parameters: list[dict[str, list[str]]] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)


@contextmanager
def serving(answer: Answering) -> Iterator[Seen]:
    """A server on a loopback port that answers every GET so; ends with the block."""
    seen = Seen()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parameters = parse_qs(urlsplit(self.path).query)
            seen.parameters.append(parameters)
            seen.queries.extend(parameters.get("query", []))
            seen.authorizations.append(self.headers.get("Authorization"))
            answer(self)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        seen.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield seen
        finally:
            server.shutdown()
            thread.join()


def body(content: bytes, status: int = 200, **headers: str) -> Answering:
    """Answer with these bytes."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def silent_until(done: threading.Event) -> Answering:
    """Say nothing until the test is done, then close."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        done.wait(10)
        handler.close_connection = True

    return answer


def vector(rows: Sequence[tuple[dict[str, str], str]], evaluated: float = 1000.0, **more: Any) -> Answering:
    """Answer with a vector of (labels, value)."""
    result = [{"metric": labels, "value": [evaluated, value]} for labels, value in rows]
    document = {"status": "success", "data": {"resultType": "vector", "result": result}, **more}
    return body(json.dumps(document).encode(), Content_Type="application/json")
