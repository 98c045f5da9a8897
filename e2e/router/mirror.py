"""An upstream that tells what reached it: an engine's face on a mirror.

In: any request. Out: JSON with the address that answered, the length and SHA-256 of the body, and the request's id; or
as many server-sent events as ``x-mirror-events`` asks for, ``x-mirror-pause`` seconds apart. ``/load`` and ``/metrics``
count the open requests, so that a router's count can be compared with the truth.

    python -m e2e.router.mirror --port 8000
"""

import argparse
import asyncio
import hashlib
import json
from dataclasses import dataclass, field

from aiohttp import web

_BODY_BYTES_MAX = 64 * 1024 * 1024


@dataclass
class Mirror:
    """One upstream.

    Attributes:
        address: it answers as.
        open: requests that have not ended.
        seen: requests that have come, by path.
    """

    address: str
    open: int = 0
    seen: dict[str, int] = field(default_factory=dict)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Reflect one request."""
        self.open += 1
        self.seen[request.path] = self.seen.get(request.path, 0) + 1
        try:
            body = await request.read()
            events = int(request.headers.get("x-mirror-events", "0"))
            status = int(request.headers.get("x-mirror-status", "200"))
            return await self._stream(request, events) if events else self._reflect(request, body, status)
        finally:
            self.open -= 1

    def _reflect(self, request: web.Request, body: bytes, status: int) -> web.Response:
        told = {
            "address": self.address,
            "bytes": len(body),
            "sha256": hashlib.sha256(body).hexdigest(),
            "id": request.headers.get("x-request-id", ""),
            "usage": {"prompt_tokens": len(body), "completion_tokens": 7},
        }
        return web.json_response(told, status=status)

    async def _stream(self, request: web.Request, events: int) -> web.StreamResponse:
        pause = float(request.headers.get("x-mirror-pause", "0"))
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for number in range(events):
            await response.write(f"data: {json.dumps({'address': self.address, 'event': number})}\n\n".encode())
            await asyncio.sleep(pause)
        await response.write(b"data: [DONE]\n\n")
        return response

    async def load(self, _: web.Request) -> web.Response:
        """Open requests, as vLLM tells them."""
        return web.json_response({"server_load": self.open})

    async def metrics(self, _: web.Request) -> web.Response:
        """Open requests, as vLLM's gauges tell them."""
        labels = '{engine="0",model_name="tiny"}'
        lines = [f"vllm:num_requests_running{labels} {float(self.open)}", f"vllm:num_requests_waiting{labels} 0.0"]
        return web.Response(text="\n".join(lines) + "\n")

    async def health(self, _: web.Request) -> web.Response:
        """Always well."""
        return web.Response()


def application(mirror: Mirror) -> web.Application:
    """The server's routes."""
    routes = web.Application(client_max_size=_BODY_BYTES_MAX, handler_args={"handler_cancellation": True})
    routes.router.add_get("/load", mirror.load)
    routes.router.add_get("/metrics", mirror.metrics)
    routes.router.add_get("/health", mirror.health)
    routes.router.add_route("*", "/{path:.*}", mirror.answer)
    return routes


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="mirror")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    given = parser.parse_args()
    mirror = Mirror(f"{given.host}:{given.port}")
    web.run_app(application(mirror), host=given.host, port=given.port, access_log=None, print=lambda *_: None)


if __name__ == "__main__":
    main()
