"""The endpoints that generate nothing: health, version, load, models, metrics."""

import time

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from kvplan_engine.server.desk import Desk, Phase
from kvplan_engine.settings import Settings

VERSION = "0.32.0+standin"
"""The version that is mimicked; the suffix says that nobody should take it for the real one."""
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Plain:
    """Answers the endpoints that generate nothing."""

    def __init__(self, settings: Settings, desk: Desk, registry: CollectorRegistry) -> None:
        self._settings = settings
        self._desk = desk
        self._registry = registry
        self._created = int(time.time())

    async def health(self, _: web.Request) -> web.Response:
        """200 while the engine lives, also when it is full or draining; 503 when it is dead."""
        return web.Response(status=503 if self._desk.phase is Phase.DEAD else 200)

    async def version(self, _: web.Request) -> web.Response:
        """The version."""
        return web.json_response({"version": VERSION})

    async def load(self, _: web.Request) -> web.Response:
        """Calls being served; 0 without ``--enable-server-load-tracking``."""
        tracked = self._settings.flags.enable_server_load_tracking
        return web.json_response({"server_load": self._desk.open_calls if tracked else 0})

    async def models(self, _: web.Request) -> web.Response:
        """The names the model is served under."""
        return web.json_response({"object": "list", "data": [self._model(n) for n in self._settings.model_names]})

    async def metrics(self, _: web.Request) -> web.Response:
        """Metrics, in Prometheus' text format."""
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": METRICS_TYPE})

    def _model(self, name: str) -> dict[str, object]:
        return {
            "id": name,
            "object": "model",
            "created": self._created,
            "owned_by": "vllm",
            "root": self._settings.flags.model,
            "parent": None,
            "max_model_len": self._settings.cache.max_model_len,
            "permission": [],
        }
