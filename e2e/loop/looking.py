"""What the loop's tests and views ask of the running parts: the fleet's status, its table, routers and engines.

Inputs: a world. Outputs: dictionaries as the API server and the parts themselves have them.
"""

import base64
import json
import re
import urllib.request
from typing import Any

from e2e.loop.asking import KEY_HEADER
from e2e.loop.manifests import FLEET
from e2e.loop.world import World
from kvplan_solver.cacheroute.keys import key_hash

ROUTERS = "--selector=app.kubernetes.io/name=kvplan-router"
ENGINES = f"--selector=kvplan.dev/fleet={FLEET},kvplan.dev/configuration"
ADMIN_PORT = 9090
_FINISHED = re.compile(r"^vllm:request_success_total\{.*\} (\S+)$", re.MULTILINE)


def condition(world: World, type_: str) -> tuple[str, str, str]:
    """Status, reason and message of a condition of the fleet; empty texts while it has none."""
    found = world.get("fleet", FLEET).get("status", {}).get("conditions", ())
    return next(((c["status"], c["reason"], c.get("message", "")) for c in found if c["type"] == type_), ("", "", ""))


def in_force(world: World) -> Any:
    """The plan in force; None before the first."""
    current = world.get("fleet", FLEET).get("status", {}).get("currentPlan")
    return None if current is None else world.get("rplan", current["name"])


def index(world: World) -> Any:
    """The table's index."""
    return json.loads(world.get("configmap", f"{FLEET}-table")["data"]["index.json"])


def routers(world: World) -> list[Any]:
    """What each router says of itself."""
    return [json.loads(_get(_address(pod), ADMIN_PORT, "/state")) for pod in world.get("pods", ROUTERS)["items"]]


def router_pages(world: World) -> list[str]:
    """The metrics page of each router."""
    return [_get(_address(pod), ADMIN_PORT, "/metrics") for pod in world.get("pods", ROUTERS)["items"]]


def engine_pages(world: World) -> dict[str, str]:
    """The metrics page of each engine, by its address."""
    addresses = [_address(pod) for pod in world.get("pods", ENGINES)["items"]]
    return {one: _get(one, 8000, "/metrics") for one in addresses}


def finished(world: World) -> dict[str, float]:
    """Requests that each engine has finished, by its address."""
    return {one: sum(map(float, _FINISHED.findall(page))) for one, page in engine_pages(world).items()}


def homes(world: World, request_class: str, key: str) -> list[str]:
    """Slots that the table names for a key; empty where it is not planned."""
    secret = base64.b64decode(world.get("secret", "kvplan-hash-secret")["data"]["hash-secret"])
    hashed = f"{key_hash(secret, request_class, f'header:{KEY_HEADER}', key):016x}"
    inline = index(world)["inline"]
    number = inline["keys"].get(hashed)
    return [] if number is None else list(inline["homes"][number]["destinations"])


def _address(pod: Any) -> str:
    return str(pod["status"]["podIP"])


def _get(address: str, port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://{address}:{port}{path}", timeout=5) as response:
        text: str = response.read().decode()
        return text
