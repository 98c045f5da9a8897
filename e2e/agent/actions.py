"""Do what a probe or a lifecycle hook says: call, connect, run, or wait.

Inputs: the handler of the spec and what its container is. Outputs: whether it succeeded. A GET that is answered 2xx or
3xx is a success; certificates are not checked, as the kubelet does not.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from e2e.agent.api import Object
from e2e.agent.child import Child
from e2e.agent.errors import CannotRun
from e2e.agent.rewriting import Rewrite

_USER_AGENT = "kube-probe/1.37"
_KINDS = ("httpGet", "tcpSocket", "exec", "sleep")


@dataclass(frozen=True)
class Target:
    """The running container that actions are about.

    Attributes:
        address: of its pod.
        ports: number of each named port.
        environment: of its processes.
        directory: their working directory.
        log: where their output goes.
        rewrite: from mount paths to real ones.
        session: for HTTP.
    """

    address: str
    ports: Mapping[str, int]
    environment: Mapping[str, str]
    directory: Path
    log: Path
    rewrite: Rewrite
    session: aiohttp.ClientSession


async def perform(handler: Object, target: Target, seconds: float) -> bool:
    """Do it and return whether it succeeded within the time.

    Raises:
        CannotRun: when the handler is of a kind that process nodes do not have.
    """
    kind = next((kind for kind in _KINDS if kind in handler), None)
    if kind is None:
        raise CannotRun("CreateContainerConfigError", f"handler {', '.join(handler)} is not supported on process nodes")
    try:
        async with asyncio.timeout(seconds):
            return await _do(kind, handler[kind], target)
    except (TimeoutError, OSError, aiohttp.ClientError, CannotRun):
        return False


async def _do(kind: str, spec: Object, target: Target) -> bool:
    if kind == "httpGet":
        return await _get(spec, target)
    if kind == "tcpSocket":
        return await _connect(spec, target)
    if kind == "exec":
        return await _run([target.rewrite(word) for word in spec["command"]], target)
    await asyncio.sleep(spec["seconds"])
    return True


async def _get(spec: Object, target: Target) -> bool:
    scheme, host = spec.get("scheme", "HTTP").lower(), spec.get("host") or target.address
    url = f"{scheme}://{host}:{_port(spec['port'], target)}/{spec.get('path', '/').lstrip('/')}"
    headers = {"User-Agent": _USER_AGENT, **{each["name"]: each["value"] for each in spec.get("httpHeaders", [])}}
    async with target.session.get(url, headers=headers, allow_redirects=False, ssl=False) as response:
        return 200 <= response.status < 400


async def _connect(spec: Object, target: Target) -> bool:
    host = spec.get("host") or target.address
    _, writer = await asyncio.open_connection(host, _port(spec["port"], target))
    writer.close()
    return True


async def _run(words: Sequence[str], target: Target) -> bool:
    child = await Child.start(words, target.environment, target.directory, target.log)
    try:
        return await child.wait() == 0
    finally:
        child.kill()


def _port(port: int | str, target: Target) -> int:
    return port if isinstance(port, int) else target.ports[port]
