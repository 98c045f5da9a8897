"""Requests to the API server as values: one function per verb.

Inputs: a ``Resource`` and plain objects. Output: a ``Request``. Every write has a content type, a field manager and
strict field validation: a field that the API server does not know is an error there, not dropped. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from kvplan_operator.kube.resources import Resource

Document = Mapping[str, Any]

JSON: Final = "application/json"
MERGE: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"

CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 20.0


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        what: for people, in errors: ``apply Deployment chat/a``.
        method: of HTTP.
        path: on the API server.
        query: parameters; None leaves one out.
        document: body; None for none.
        content_type: of the body.
        uid: identity that the request insists on.
        answer_seconds: until the answer must be complete.
        silence_seconds: the longest pause within the answer.
    """

    what: str
    method: str
    path: str
    query: Mapping[str, str | None] = field(default_factory=dict)
    document: Document | None = None
    content_type: str = JSON
    uid: str | None = None
    answer_seconds: float = ANSWER_SECONDS
    silence_seconds: float = ANSWER_SECONDS

    @property
    def writes(self) -> bool:
        """Whether it may change something."""
        return self.method != "GET"

    @property
    def target(self) -> str:
        """Path and query."""
        chosen = {name: value for name, value in self.query.items() if value is not None}
        return f"{self.path}?{urlencode(chosen)}" if chosen else self.path


def reading(resource: Resource, namespace: str | None, name: str) -> Request:
    """Read one object."""
    return Request(_title("get", resource, namespace, name), "GET", resource.path(namespace, name))


def listing(resource: Resource, namespace: str | None, labels: str | None, fields: str | None) -> Request:
    """List a collection; ``limit`` and ``continue`` come with each page."""
    query = {"labelSelector": labels, "fieldSelector": fields}
    return Request(_title("list", resource, namespace), "GET", resource.path(namespace), query)


def watching(
    resource: Resource,
    namespace: str | None,
    version: str,
    labels: str | None,
    fields: str | None,
    seconds: float,
    silence_seconds: float,
) -> Request:
    """Follow a collection from a version on, for some seconds; the client waits a little longer than the server."""
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": version,
        "labelSelector": labels,
        "fieldSelector": fields,
        "timeoutSeconds": str(max(1, round(seconds))),
    }
    return Request(
        _title("watch", resource, namespace),
        "GET",
        resource.path(namespace),
        query,
        answer_seconds=seconds + silence_seconds,
        silence_seconds=silence_seconds,
    )


def creating(resource: Resource, document: Document, manager: str, dry_run: bool) -> Request:
    """Create an object."""
    namespace, name = _place(document)
    what = _title("create", resource, namespace, name)
    return Request(what, "POST", resource.path(namespace), _writing(manager, dry_run), document)


def replacing(resource: Resource, document: Document, manager: str, dry_run: bool) -> Request:
    """Write a whole object."""
    namespace, name = _place(document)
    what, path = _title("replace", resource, namespace, name), resource.path(namespace, name)
    return Request(what, "PUT", path, _writing(manager, dry_run), document, uid=_uid(document))


def applying(
    resource: Resource, document: Document, manager: str, force: bool, subresource: str | None, dry_run: bool
) -> Request:
    """Apply what a manager wants, on the server's side."""
    query = _writing(manager, dry_run) | {"force": "true" if force else None}
    return _patching("apply", resource, document, APPLY, query, subresource)


def merging(resource: Resource, document: Document, manager: str, subresource: str | None, dry_run: bool) -> Request:
    """Merge a document into an object."""
    return _patching("patch", resource, document, MERGE, _writing(manager, dry_run), subresource)


def deleting(
    resource: Resource,
    namespace: str | None,
    name: str,
    uid: str | None,
    version: str | None,
    propagation: str | None,
) -> Request:
    """Delete an object, if it is the one and at the version that are given."""
    preconditions = _given({"uid": uid, "resourceVersion": version})
    options = _given({"preconditions": preconditions or None, "propagationPolicy": propagation})
    what, path = _title("delete", resource, namespace, name), resource.path(namespace, name)
    return Request(what, "DELETE", path, document=options, uid=uid)


def _patching(
    verb: str,
    resource: Resource,
    document: Document,
    content_type: str,
    query: Mapping[str, str | None],
    subresource: str | None,
) -> Request:
    namespace, name = _place(document)
    what, path = _title(verb, resource, namespace, name), resource.path(namespace, name, subresource)
    return Request(what, "PATCH", path, query, document, content_type, _uid(document))


def _writing(manager: str, dry_run: bool) -> dict[str, str | None]:
    return {"fieldManager": manager, "fieldValidation": "Strict", "dryRun": "All" if dry_run else None}


def _given(options: Document) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _place(document: Document) -> tuple[str | None, str]:
    metadata = document.get("metadata") or {}
    return metadata.get("namespace"), metadata.get("name", "")


def _uid(document: Document) -> str | None:
    uid: str | None = document["metadata"].get("uid")
    return uid


def _title(verb: str, resource: Resource, namespace: str | None, name: str | None = None) -> str:
    place = "/".join(part for part in (namespace, name) if part)
    return f"{verb} {resource.kind} {place}".rstrip()
