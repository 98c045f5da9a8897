"""Around every endpoint: responses counted, errors written as vLLM writes them, API keys checked."""

import hmac
import logging
from collections.abc import Sequence
from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import CollectorRegistry, Counter

from kvplan_engine.protocol.errors import EngineGone, Refused, Unauthorized, error_body

_LOG = logging.getLogger(__name__)


def counting(registry: CollectorRegistry) -> Middleware:
    """Counts responses, when they end, by endpoint, method and class of status."""
    responses = Counter("http_requests", "Responses.", ("handler", "method", "status"), registry=registry)

    @web.middleware
    async def count(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await handler(request)
        resource = request.match_info.route.resource
        path = resource.canonical if resource is not None else "none"
        responses.labels(path, request.method, f"{response.status // 100}xx").inc()
        return response

    return count


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Write whatever goes wrong as an OpenAI error; a bug here is logged and answered with 500."""
    try:
        return await handler(request)
    except Refused as refused:
        return web.json_response(refused.body(), status=refused.status)
    except web.HTTPException as why:
        return web.json_response(error_body(why.reason, HTTPStatus(why.status).phrase, why.status), status=why.status)
    except ConnectionError:
        raise  # the client is gone: there is nobody to tell
    except Exception:
        _LOG.exception("%s %s failed", request.method, request.path)
        gone = EngineGone("Internal error of the stand-in.")
        return web.json_response(gone.body(), status=gone.status)


def keys_checked(keys: Sequence[str]) -> Middleware:
    """Asks for one of ``keys`` under /v1, if there are any."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if keys and request.path.startswith("/v1") and not _has_key(request, keys):
            raise Unauthorized("Unauthorized")
        return await handler(request)

    return check


def _has_key(request: web.Request, keys: Sequence[str]) -> bool:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    matches = [hmac.compare_digest(given.encode("utf-8", "surrogateescape"), key.encode()) for key in keys]
    return scheme.lower() == "bearer" and any(matches)
