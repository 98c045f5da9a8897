"""Objects for the tests: the smallest and the complete one of each kind, copies with another name, what pydantic says.

Inputs: the tables' bases and the complete documents that the unit tests take apart. Outputs: plain documents.
"""

import copy
from typing import Any

import yaml

from e2e.crds.cases import bases
from e2e.harness.paths import REPOSITORY
from kvplan_operator.api.manifests import parse_object
from kvplan_operator.errors import ManifestError

Document = dict[str, Any]

_COMPLETE = REPOSITORY / "tests" / "golden" / "api"
COMPLETE: dict[str, Document] = {
    document["kind"]: document
    for document in (yaml.safe_load(file.read_text(encoding="utf-8")) for file in sorted(_COMPLETE.glob("*.yaml")))
}
"""By kind: an object with every field that does not exclude another, status included."""
SMALLEST: dict[str, Document] = {document["kind"]: document for document in bases()}
"""By kind: an object with the required fields alone."""


def spec_only(document: Document) -> Document:
    """A copy without status and namespace, as people write it."""
    written = {name: copy.deepcopy(value) for name, value in document.items() if name != "status"}
    written["metadata"].pop("namespace", None)
    return written


def named(document: Document, name: str) -> Document:
    """A copy under another name; a plan keeps the prefix that names its fleet."""
    renamed = spec_only(document)
    prefix = f"{document['spec']['fleetName']}-" if document["kind"] == "RoutingPlan" else ""
    renamed["metadata"]["name"] = prefix + name
    return renamed


def refusal(document: Document) -> str | None:
    """What the command says of a document; None when it takes it."""
    try:
        parse_object(document)
    except ManifestError as error:
        return str(error)
    return None


def without_empty(value: Any) -> Any:
    """A copy without empty lists and maps, which pydantic fills in and the API server does not."""
    if isinstance(value, list):
        return [without_empty(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {name: without_empty(inner) for name, inner in value.items()}
    return {name: inner for name, inner in kept.items() if inner not in ([], {})}
