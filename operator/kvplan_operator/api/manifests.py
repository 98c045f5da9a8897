"""From plain documents to typed objects, with every problem named at once.

Purpose: one reader for files, clusters and tests. Inputs: documents as YAML or JSON gives them, Lists
included. Outputs: ``Manifests``. Core objects the planner reads stay plain mappings; objects of other kinds
are kept aside, since a folder for ``kubectl apply`` may hold any. Must not read files: the command does.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import ValidationError

from kvplan_operator.api.base import ApiModel
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.kinds import KINDS
from kvplan_operator.api.labels import API_VERSION, GROUP
from kvplan_operator.api.problems import ABSENT, null_problems, plain, problems_of, shown
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.errors import ManifestError, Problem

Document = dict[str, Any]

TYPED = {kind.name: kind.model for kind in KINDS}
"""Kinds of our group by name."""


@dataclass(frozen=True)
class Manifests:
    """Everything that was read, in the order it was read.

    Attributes:
        fleets: ServingFleets.
        classes: RequestClasses.
        plans: RoutingPlans.
        nodes: v1 Nodes.
        pods: v1 Pods.
        config_maps: v1 ConfigMaps.
        deployments: apps/v1 Deployments.
        others: objects of any other kind.
    """

    fleets: tuple[ServingFleet, ...] = ()
    classes: tuple[RequestClass, ...] = ()
    plans: tuple[RoutingPlan, ...] = ()
    nodes: tuple[Document, ...] = ()
    pods: tuple[Document, ...] = ()
    config_maps: tuple[Document, ...] = ()
    deployments: tuple[Document, ...] = ()
    others: tuple[Document, ...] = ()


@dataclass
class _Reader:
    """Collects objects by kind, and problems, while documents go by."""

    objects: dict[str, list[Any]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    seen: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def read(self, place: str, document: object) -> None:
        """Take one document, Lists with all they hold."""
        if document is None:
            return
        problem = _shape_problem(place, document)
        if problem:
            self.problems.append(problem)
            return
        known = cast(Document, document)
        if known["kind"].endswith("List") and isinstance(known.get("items"), list):
            for position, item in enumerate(known["items"], start=1):
                self.read(f"{place}, item {position}", item)
        else:
            self._read_object(place, known)

    def _read_object(self, place: str, document: Document) -> None:
        subject = _subject(place, document)
        problems = [*self._repeated(subject, document), *_group_problems(subject, document)]
        if not problems and _is_ours(document):
            parsed, problems = _parse(subject, document)
            document = cast(Document, parsed)
        self.problems += problems
        if not problems:
            self.objects.setdefault(_section(document), []).append(document)

    def _repeated(self, subject: str, document: Document) -> Iterator[Problem]:
        identity = _identity(document)
        if identity[2] and identity in self.seen:
            yield Problem(
                subject, "metadata.name", shown(identity[2]),
                f"use a name of its own, or drop this copy of {self.seen[identity]}",
            )  # fmt: skip
        self.seen.setdefault(identity, subject)


def load_manifests(documents: Iterable[object]) -> Manifests:
    """Sort and parse documents; empty ones (None) are skipped.

    Args:
        documents: what a YAML or JSON reader returned, one value per document.

    Raises:
        ManifestError: with one problem per wrong field, each naming document, object, field, value, remedy.
    """
    reader = _Reader()
    for position, document in enumerate(documents, start=1):
        reader.read(f"document {position}", document)
    if reader.problems:
        raise ManifestError(reader.problems)
    return Manifests(**{section: tuple(objects) for section, objects in reader.objects.items()})


def parse_object(document: Document, place: str = "object") -> ServingFleet | RequestClass | RoutingPlan:
    """One object of our group.

    Raises:
        ManifestError: it is of another group, version or kind, or a field is wrong.
    """
    subject = _subject(place, document)
    problems = list(_group_problems(subject, document, ours_only=True))
    if not problems:
        parsed, problems = _parse(subject, document)
    if problems:
        raise ManifestError(problems)
    return cast(ServingFleet | RequestClass | RoutingPlan, parsed)


def _parse(subject: str, document: Document) -> tuple[ApiModel | None, list[Problem]]:
    model = TYPED[document["kind"]]
    nulls = null_problems(subject, model, document)
    if nulls:
        return None, nulls
    try:
        return model.model_validate(document), []
    except ValidationError as error:
        return None, problems_of(subject, model, document, error)


_KIND_NAMES = ", ".join(TYPED)
_HEAD_REMEDIES = {
    "apiVersion": f"write it as in any Kubernetes object; that of {_KIND_NAMES} is {API_VERSION}",
    "kind": f"write it as in any Kubernetes object; with {API_VERSION} use one of {_KIND_NAMES}",
}


def _shape_problem(place: str, document: object) -> Problem | None:
    if not isinstance(document, dict):
        return Problem(place, "the document", shown(document), "write a mapping with apiVersion, kind, metadata")
    for name in ("apiVersion", "kind"):
        value = document.get(name, ABSENT)
        if not isinstance(value, str) or not value:
            return Problem(place, name, shown(value), _HEAD_REMEDIES[name])
    return None


def _group_problems(subject: str, document: Document, *, ours_only: bool = False) -> Iterator[Problem]:
    """Objects of our group must be of a version and kind that exist."""
    if not (ours_only or str(document.get("apiVersion")).startswith(f"{GROUP}/")):
        return
    if document.get("apiVersion") != API_VERSION:
        yield Problem(subject, "apiVersion", shown(document.get("apiVersion", ABSENT)), f"use {API_VERSION}")
    elif document.get("kind") not in TYPED:
        yield Problem(subject, "kind", shown(document.get("kind", ABSENT)), f"use one of {_KIND_NAMES}")


def _is_ours(document: Document) -> bool:
    return bool(document["apiVersion"] == API_VERSION)


_SECTIONS = {
    ("v1", "Node"): "nodes",
    ("v1", "Pod"): "pods",
    ("v1", "ConfigMap"): "config_maps",
    ("apps/v1", "Deployment"): "deployments",
}


def _section(value: object) -> str:
    if isinstance(value, ServingFleet):
        return "fleets"
    if isinstance(value, RequestClass):
        return "classes"
    if isinstance(value, RoutingPlan):
        return "plans"
    document = cast(Document, value)
    return _SECTIONS.get((document["apiVersion"], document["kind"]), "others")


def _metadata(document: Document) -> Document:
    metadata = document.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _identity(document: Document) -> tuple[str, str, str]:
    metadata = _metadata(document)
    group = document["apiVersion"].rpartition("/")[0]
    return (
        f"{group}/{document['kind']}",
        str(metadata.get("namespace", "default")),
        str(metadata.get("name", "")),
    )


def _subject(place: str, document: Document) -> str:
    words = (document.get("kind", "object"), _metadata(document).get("name"))
    return f"{place} ({' '.join(plain(word) for word in words if word)})"
