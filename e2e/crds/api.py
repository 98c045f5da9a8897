"""Speak HTTP to the API server: one connection kept open, plain documents, and the answer as it came.

Inputs: a kubeconfig. Outputs: status, body and warnings of each request. kubectl would take
a process per document; here hundreds of documents take seconds. Must not retry or hide what the server says.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import urllib3
from kubernetes.client import Configuration
from kubernetes.config import load_kube_config

Document = dict[str, Any]

GROUP_PATH = "/apis/kvplan.dev/v1alpha1"
PLURALS = {"ServingFleet": "servingfleets", "RequestClass": "requestclasses", "RoutingPlan": "routingplans"}
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
UNPROCESSABLE = 422
_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class Answer:
    """What the API server said.

    Attributes:
        status: of HTTP.
        body: the object, or the Status that says why there is none.
        warnings: texts of the Warning headers, as kubectl prints them.
    """

    status: int
    body: Document
    warnings: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        """Whether the request was taken."""
        return 200 <= self.status < 300

    @property
    def message(self) -> str:
        """The words of a refusal, in one line."""
        return str(self.body.get("message", ""))

    @property
    def problems(self) -> tuple[str, ...]:
        """The words of a refusal as kubectl prints them: one line per wrong field, or the message."""
        if self.accepted:
            return ()
        causes = self.body.get("details", {}).get("causes", []) if self.status == UNPROCESSABLE else []
        return tuple(f"{cause['field']}: {cause['message']}" for cause in causes) or (self.message,)


class Api:
    """One user's connection to the API server."""

    def __init__(self, kubeconfig: Path) -> None:
        access = Configuration()
        load_kube_config(str(kubeconfig), client_configuration=access)  # type: ignore[no-untyped-call]
        token = access.auth_settings().get("BearerToken")
        self._server = access.host
        self._identity = {"Authorization": str(token["value"])} if token else {}
        self._pool = urllib3.PoolManager(
            ca_certs=access.ssl_ca_cert,
            cert_file=access.cert_file,
            key_file=access.key_file,
            timeout=_TIMEOUT_SECONDS,
            retries=False,
        )

    def __enter__(self) -> Self:
        """Use the connection for a block; it opens with the first request."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self._pool.clear()

    def create(self, document: Document, namespace: str, **options: str) -> Answer:
        """POST an object of ours; options are query parameters such as `dryRun="All"`."""
        return self.send("POST", collection(document["kind"], namespace), document, options)

    def replace(self, document: Document, namespace: str, subresource: str = "", **options: str) -> Answer:
        """PUT an object of ours or its subresource."""
        return self.send("PUT", path_of(document, namespace) + subresource, document, options)

    def patch(
        self, document: Document, namespace: str, subresource: str = "", content: str = MERGE_PATCH, **options: str
    ) -> Answer:
        """PATCH an object of ours or its subresource with a part of it."""
        return self.send("PATCH", path_of(document, namespace) + subresource, document, options, content)

    def get(self, document: Document, namespace: str) -> Document:
        """GET the object that a document names."""
        return self.send("GET", path_of(document, namespace)).body

    def send(
        self,
        method: str,
        path: str,
        document: Document | None = None,
        query: Mapping[str, str] | None = None,
        content: str = "application/json",
    ) -> Answer:
        """Send one request and return the answer, whatever it is."""
        url = f"{self._server}{path}?{urlencode(query or {})}"
        body = None if document is None else json.dumps(document).encode()
        headers = {"Content-Type": content, "Accept": "application/json", **self._identity}
        response = self._pool.request(method, url, body=body, headers=headers)
        warnings = tuple(response.headers.getlist("Warning"))
        in_json = response.headers.get("Content-Type", "").startswith("application/json")
        return Answer(response.status, response.json() if in_json else {"message": response.data.decode()}, warnings)


def collection(kind: str, namespace: str) -> str:
    """The path of all objects of a kind in a namespace."""
    return f"{GROUP_PATH}/namespaces/{namespace}/{PLURALS[kind]}"


def path_of(document: Document, namespace: str) -> str:
    """The path of the object that a document names."""
    return f"{collection(document['kind'], namespace)}/{document['metadata']['name']}"
