"""What a role grants, and what its holder used: rules of RBAC held against the API server's audit log.

Inputs: roles as manifests, the audit log. Outputs: sets of grants. Pure but for reading the log.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from e2e.install.rendering import Object

_FOR_EVERYBODY = "authorization.k8s.io"  # asking what one may do needs no rule
_FORBIDDEN = 403


@dataclass(frozen=True, order=True)
class Grant:
    """One verb on one kind of object.

    Attributes:
        group: of the API; empty for the core.
        resource: plural, with the subresource after a slash.
        verb: as in RBAC.
    """

    group: str
    resource: str
    verb: str


def granted(objects: Iterable[Object]) -> set[Grant]:
    """Every grant of the roles among some objects."""
    rules = (rule for item in objects if item["kind"] in ("Role", "ClusterRole") for rule in item["rules"])
    return {
        Grant(group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(log: Path, account: str) -> set[Grant]:
    """What a service account (``namespace:name``) was allowed and did."""
    return {_grant(entry) for entry in _requests(log, account) if not _refused(entry)}


def refused(log: Path, account: str) -> set[Grant]:
    """What a service account tried and may not."""
    return {_grant(entry) for entry in _requests(log, account) if _refused(entry)}


def _requests(log: Path, account: str) -> Iterator[Object]:
    user = f"system:serviceaccount:{account}"
    with log.open("rb") as lines:
        for entry in map(json.loads, lines):
            target = entry.get("objectRef", {})
            if (
                entry["user"]["username"] == user
                and target.get("resource")
                and target.get("apiGroup") != _FOR_EVERYBODY
            ):
                yield entry


def _grant(entry: Object) -> Grant:
    target = entry["objectRef"]
    resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
    return Grant(target.get("apiGroup", ""), resource, entry["verb"])


def _refused(entry: Object) -> bool:
    return int(entry["responseStatus"]["code"]) == _FORBIDDEN
