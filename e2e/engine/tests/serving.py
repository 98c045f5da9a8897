"""A stand-in on a loopback port inside the test's own event loop, and a client that reads its answers."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

from aiohttp import ClientSession
from prometheus_client.parser import text_string_to_metric_families

from kvplan_engine.arguments.parser import parse
from kvplan_engine.server.app import build_server
from kvplan_engine.server.life import listen
from kvplan_engine.settings import settings_of

FAST = ("--stand-in-time-scale", "0.001")
SMALL = ("--num-gpu-blocks-override", "32", "--block-size", "32", "--max-model-len", "512", "--max-num-seqs", "8")
"""The engine of the measurements: 31 usable blocks of 32 tokens, 8 sequences."""
TRIES = 400


class Client:
    """Asks one server."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def complete(self, status: int = 200, headers: dict[str, str] | None = None, **body: Any) -> Any:
        """The JSON answer to a completion."""
        return await self.post("/v1/completions", json.dumps(body).encode(), status, headers)

    async def post(self, path: str, body: bytes, status: int, headers: dict[str, str] | None = None) -> Any:
        async with self.session.post(path, data=BytesIO(body), headers=headers) as answer:
            assert answer.status == status, await answer.text()
            return await answer.json()

    async def events(self, path: str, **body: Any) -> list[Any]:
        """The events of a stream; the last must be [DONE]."""
        async with self.session.post(path, json={"stream": True, **body}) as answer:
            assert answer.status == 200, await answer.text()
            assert answer.content_type == "text/event-stream"
            lines = (await answer.text()).split("\n\n")
        assert lines[-2:] == ["data: [DONE]", ""]
        return [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]

    async def metrics(self) -> dict[str, float]:
        """Samples by name and by ``name{label="value"}`` for every further label."""
        async with self.session.get("/metrics") as answer:
            families = text_string_to_metric_families(await answer.text())
        return {_key(s.name, s.labels): s.value for family in families for s in family.samples}

    async def until(self, **expected: float) -> None:
        """Wait until these gauges or counters (without ``vllm:``) have these values."""
        wanted = {f"vllm:{name}": value for name, value in expected.items()}
        seen: dict[str, float] = {}
        for _ in range(TRIES):
            seen = await self.metrics()
            if all(seen[name] == value for name, value in wanted.items()):
                return
        raise AssertionError(f"wanted {wanted}, last saw { {name: seen[name] for name in wanted} }")


def _key(name: str, labels: dict[str, str]) -> str:
    rest = {label: value for label, value in labels.items() if label not in {"model_name", "engine"}}
    inner = ",".join(f'{label}="{value}"' for label, value in sorted(rest.items()))
    return f"{name}{{{inner}}}" if inner else name


@asynccontextmanager
async def engine(*flags: str) -> AsyncIterator[Client]:
    """A running stand-in started with ``flags``."""
    server = build_server(settings_of(parse(["serve", "tiny", "--port", "0", *flags], {})))
    loop = asyncio.create_task(server.engine.run())
    runner = await listen(server)
    host, port = runner.addresses[0][:2]
    async with ClientSession(f"http://{host}:{port}") as session:
        yield Client(session)
    loop.cancel()
    await runner.cleanup()
    if loop.done() and not loop.cancelled():
        loop.result()  # an engine that failed fails the test
