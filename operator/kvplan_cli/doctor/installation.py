"""Checks of the installation: API server, CRDs, the operator that runs, and what it may do.

Inputs: what ``looking`` gathered. Outputs: findings. Pure; the clock is given.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kvplan_cli.cluster.history import age
from kvplan_cli.doctor.findings import Finding, Level, Unknown, not_seen
from kvplan_operator.api.crdgen import crd_document
from kvplan_operator.api.kinds import KINDS, Kind
from kvplan_operator.model.instants import instant
from kvplan_operator.model.pods import Object, name_of, part, parts

OLDEST: Final = (1, 29)
"""Kubernetes release since which the CRDs' CEL rules are stable."""
_INSTALL: Final = "install it: kubectl apply -k manifests/overlays/cluster-wide"
_APPLY_CRDS: Final = "kubectl apply -f crds/"
_DIGITS: Final = 10


def api_server(version: Mapping[str, Any]) -> Finding:
    """Whether the API server is new enough."""
    shown = str(version.get("gitVersion", "unknown"))
    numbers = tuple(int("".join(filter(str.isdigit, str(version.get(part, "0")))) or 0) for part in ("major", "minor"))
    if numbers >= OLDEST:
        return Finding(Level.OK, "API server", "cluster", shown)
    wanted = ".".join(map(str, OLDEST))
    return Finding(Level.FAIL, "API server", "cluster", f"{shown} is too old", f"use Kubernetes {wanted} or newer")


def crds(found: Mapping[str, Object | None] | Unknown) -> Iterator[Finding]:
    """Whether each kind is installed, and as this version of kvplan has it."""
    if isinstance(found, Unknown):
        yield not_seen("CRD", "cluster", found)
        return
    for kind in KINDS:
        yield _crd(kind, found.get(kind.crd_name))


def schema_digest(crd: Object) -> str:
    """SHA-256 of what the versions of a CRD accept; descriptions count, they are part of ``kubectl explain``."""
    accepted = [[v.get("name"), part(v, "schema")] for v in parts(part(crd, "spec"), "versions")]
    return hashlib.sha256(json.dumps(accepted, sort_keys=True).encode()).hexdigest()


def operators(deployments: Sequence[Object] | Unknown) -> Iterator[Finding]:
    """Whether the operator's pods are Ready."""
    if isinstance(deployments, Unknown):
        yield not_seen("operator", "cluster", deployments)
        return
    if not deployments:
        yield Finding(Level.WARN, "operator", "cluster", "no Deployment of an operator", _INSTALL)
    for deployment in deployments:
        wanted, ready = part(deployment, "spec").get("replicas", 1), part(deployment, "status").get("readyReplicas", 0)
        level = Level.OK if ready >= wanted else Level.WARN if ready else Level.FAIL
        remedy = "" if level is Level.OK else "see kubectl describe and the logs of its pods"
        yield Finding(level, "operator", place_of(deployment), f"{ready} of {wanted} pods are Ready", remedy)


def leaders(leases: Sequence[Object] | Unknown, now: float) -> Iterator[Finding]:
    """Whether an operator holds its Lease.

    Args:
        leases: of the operator's name, in any namespace.
        now: seconds since the epoch.
    """
    if isinstance(leases, Unknown):
        yield not_seen("leader", "cluster", leases)
        return
    if not leases:
        yield Finding(Level.FAIL, "leader", "cluster", "no operator ever led", _INSTALL)
    found = [_leader(lease, now) for lease in leases]
    led = any(finding.level is Level.OK for finding in found)
    for finding in found:
        # Where one leads, another Lease is left over, or belongs to an operator for other namespaces.
        yield replace(finding, level=Level.WARN) if led and finding.level is Level.FAIL else finding


def permissions(missing: Sequence[str] | Unknown, account: str) -> Iterator[Finding]:
    """Whether the operator's service account may do what the operator does."""
    if isinstance(missing, Unknown):
        yield not_seen("permissions", account, missing, "ask for permission to create SubjectAccessReviews")
        return
    if not missing:
        yield Finding(Level.OK, "permissions", account, "it may do all that the operator does")
    for sentence in missing:
        yield Finding(Level.FAIL, "permissions", account, sentence, "bind the roles of manifests/ to it")


def place_of(item: Object) -> str:
    """``namespace/name``."""
    return f"{part(item, 'metadata').get('namespace')}/{name_of(item)}"


def _crd(kind: Kind, crd: Object | None) -> Finding:
    if crd is None:
        return Finding(Level.FAIL, "CRD", kind.crd_name, "it is missing", _APPLY_CRDS)
    conditions = {c.get("type"): c.get("status") for c in parts(part(crd, "status"), "conditions")}
    if conditions.get("Established") != "True":
        return Finding(Level.FAIL, "CRD", kind.crd_name, "the API server does not serve it", "see kubectl describe crd")
    wanted, installed = schema_digest(crd_document(kind)), schema_digest(crd)
    if wanted != installed:
        what = f"its schema is {installed[:_DIGITS]}, that of this kvplan {wanted[:_DIGITS]}"
        return Finding(Level.FAIL, "CRD", kind.crd_name, what, f"{_APPLY_CRDS}, or use the kvplan of that version")
    return Finding(Level.OK, "CRD", kind.crd_name, f"schema {installed[:_DIGITS]}")


def _leader(lease: Object, now: float) -> Finding:
    spec = part(lease, "spec")
    holder, renewed = str(spec.get("holderIdentity") or ""), spec.get("renewTime")
    silent = now - instant(str(renewed)) if renewed else float("inf")
    if holder and silent <= float(spec.get("leaseDurationSeconds", 0)):
        return Finding(Level.OK, "leader", place_of(lease), f"{holder} leads")
    since = f"last renewed {age(silent)} ago by {holder or 'nobody'}" if renewed else "never renewed"
    remedy = "see the operator's pods and logs; delete the Lease if no operator is meant to run there"
    return Finding(Level.FAIL, "leader", place_of(lease), f"no operator leads: {since}", remedy)
