"""Who wrote what in a namespace, from the API server's audit log.

Inputs: the log, a position in it, a namespace. Output: one value per write, in order. Attempts that the API server
carried out on nothing (`dryRun`) are no writes: Flux finds drift by them. Leases are left out: holding one is writing.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, order=True)
class Write:
    """One write.

    Attributes:
        manager: field manager, or the client's program where the request names none.
        verb: as in RBAC.
        resource: plural, with the subresource after a slash.
        name: of the object; empty where the API server made it up.
        code: of the answer.
    """

    manager: str
    verb: str
    resource: str
    name: str
    code: int


def writes(log: Path, start: int, namespace: str) -> Iterator[Write]:
    """Yield the writes to a namespace that were answered after a byte of the log."""
    with log.open("rb") as lines:
        lines.seek(start)
        for entry in map(json.loads, lines):
            target = entry.get("objectRef", {})
            wanted = target.get("namespace") == namespace and target["resource"] != "leases"
            query = parse_qs(urlsplit(entry["requestURI"]).query)
            if wanted and entry["verb"] in _WRITES and "dryRun" not in query:
                yield _write(entry, target, query)


def _write(entry: Mapping[str, Any], target: Mapping[str, Any], query: Mapping[str, list[str]]) -> Write:
    program = entry.get("userAgent", "").partition("/")[0]
    manager = query.get("fieldManager", [program])[0]
    resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
    return Write(manager, entry["verb"], resource, target.get("name", ""), entry["responseStatus"]["code"])
