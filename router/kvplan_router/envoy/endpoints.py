"""The endpoints file that the Envoy beside the router watches.

In: engines. Out: the text of an EDS response, and a file that changes in one step. Source: 05-router §2b: a host that
Envoy does not know is silently replaced by another.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from kvplan_router.envoy.options import ENGINES

_TYPE = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"


class Status(StrEnum):
    """What Envoy may do with an engine."""

    HEALTHY = "HEALTHY"
    DRAINING = "DRAINING"
    """It finishes what it has; nobody's fallback picks it."""
    UNHEALTHY = "UNHEALTHY"


@dataclass(frozen=True, order=True)
class Endpoint:
    """One engine as Envoy sees it.

    Attributes:
        host: an IP address.
        port: TCP port.
        status: what Envoy may do with it.
    """

    host: str
    port: int
    status: Status = Status.HEALTHY


def endpoints_text(endpoints: Iterable[Endpoint]) -> str:
    """The EDS response; equal endpoints give equal bytes."""
    listed = [_lb_endpoint(endpoint) for endpoint in sorted(set(endpoints))]
    resource = {"@type": _TYPE, "cluster_name": ENGINES, "endpoints": [{"lb_endpoints": listed}]}
    version = hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:16]
    return json.dumps({"version_info": version, "resources": [resource]}, indent=1)


def _lb_endpoint(endpoint: Endpoint) -> dict[str, Any]:
    socket = {"address": endpoint.host, "port_value": endpoint.port}
    return {"endpoint": {"address": {"socket_address": socket}}, "health_status": endpoint.status.value}


@dataclass
class EndpointsFile:
    """The file, written only when its content changes.

    Attributes:
        path: in a directory that Envoy sees too.
    """

    path: Path
    _written: str = ""

    def write(self, endpoints: Iterable[Endpoint]) -> bool:
        """Replace the file; returns whether anything changed.

        Raises:
            OSError: the directory cannot be written.
        """
        text = endpoints_text(endpoints)
        if text == self._written:
            return False
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        beside.write_text(text, encoding="ascii")
        beside.replace(self.path)  # Envoy reads the file when another is moved over it, and never half of one
        self._written = text
        return True
