"""One server: engine, desk, metrics and endpoints put together."""

from dataclasses import dataclass

from aiohttp import web

from kvplan_engine.core.scheduler import Scheduler
from kvplan_engine.engine import Engine
from kvplan_engine.metrics.engine_metrics import EngineMetrics
from kvplan_engine.server.desk import Desk
from kvplan_engine.server.generate import Generator
from kvplan_engine.server.middleware import counting, errors_as_json, keys_checked
from kvplan_engine.server.plain import Plain
from kvplan_engine.settings import Settings


@dataclass(frozen=True)
class Server:
    """The parts of a server that its life needs.

    Attributes:
        settings: what it was built from.
        engine: to run.
        desk: to open and close.
        app: to serve.
    """

    settings: Settings
    engine: Engine
    desk: Desk
    app: web.Application


def build_server(settings: Settings) -> Server:
    """A server that is not listening yet; needs a running event loop."""
    scheduler = Scheduler(settings.limits)
    metrics = EngineMetrics(settings, scheduler)
    engine = Engine(scheduler, settings.speed, metrics)
    desk = Desk(settings, engine, metrics)
    app = web.Application(
        middlewares=[counting(metrics.registry), errors_as_json, keys_checked(settings.flags.api_key)],
        client_max_size=settings.flags.stand_in_max_body_bytes,
    )
    _add_routes(app, Plain(settings, desk, metrics.registry), Generator(settings, desk))
    return Server(settings, engine, desk, app)


def _add_routes(app: web.Application, plain: Plain, generator: Generator) -> None:
    app.add_routes(
        [
            web.get("/health", plain.health),
            web.get("/ping", plain.health),
            web.post("/ping", plain.health),
            web.get("/version", plain.version),
            web.get("/load", plain.load),
            web.get("/metrics", plain.metrics),
            web.get("/v1/models", plain.models),
            web.post("/v1/completions", generator.completions),
            web.post("/v1/chat/completions", generator.chat),
        ]
    )
