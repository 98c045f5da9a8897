"""CustomResourceDefinitions from the API types, as documents and as the text of their files.

Purpose: ``crds/*.yaml`` say exactly what the Python types accept. Inputs: ``KINDS``. Outputs: documents and
text, the same bytes every time. Must not write files: ``python -m kvplan_cli.crds`` does.
"""

from typing import Any

import yaml

from kvplan_operator.api.kinds import KINDS, Column, Kind
from kvplan_operator.api.labels import CATEGORY, GROUP, VERSION
from kvplan_operator.api.schema import Schema, structural_schema

HEADER = "# Generated from operator/kvplan_operator/api by `make crds`; change the types, not this file.\n"

API_VERSION_TEXT = "Version of this object's schema."
KIND_TEXT = "Kind of this object."
NAME: Schema = {"description": "Name, unique in the namespace.", "type": "string", "maxLength": 253}
"""Stated so that rules can blame ``metadata.name``; what a name may be is the API server's to say."""


def crd_files() -> dict[str, str]:
    """File name to text, for every kind."""
    return {f"{GROUP}_{kind.plural}.yaml": crd_text(kind) for kind in KINDS}


def crd_text(kind: Kind) -> str:
    """The YAML text of one CustomResourceDefinition."""
    return HEADER + yaml.dump(crd_document(kind), Dumper=_PlainDumper, sort_keys=False, width=110, allow_unicode=True)


def crd_document(kind: Kind) -> dict[str, Any]:
    """One CustomResourceDefinition, apiextensions.k8s.io/v1."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd_name},
        "spec": {
            "group": GROUP,
            "names": _names(kind),
            "scope": "Namespaced",
            "versions": [_version(kind)],
        },
    }


def object_schema(kind: Kind) -> Schema:
    """The schema of a whole object; metadata is left to the API server."""
    schema = structural_schema(kind.model)
    properties = schema["properties"]
    properties["apiVersion"] = {"description": API_VERSION_TEXT, "type": "string"}
    properties["kind"] = {"description": KIND_TEXT, "type": "string"}
    properties["metadata"] = {"type": "object", "properties": {"name": NAME}}
    # An object without status counts as Current to kstatus, so every object starts with one that says −1.
    properties["status"]["default"] = {"observedGeneration": -1}
    schema["required"] = ["spec"]
    return schema


def _names(kind: Kind) -> dict[str, Any]:
    return {
        "categories": [CATEGORY],
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": kind.plural,
        "shortNames": [kind.short_name],
        "singular": kind.name.lower(),
    }


def _version(kind: Kind) -> dict[str, Any]:
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
        "schema": {"openAPIV3Schema": object_schema(kind)},
    }


def _column(column: Column) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": column.name,
        "type": column.type,
        "description": column.description,
        "jsonPath": column.path,
    }
    return entry | ({"priority": 1} if column.wide else {})


class _PlainDumper(yaml.SafeDumper):
    """Writes shared parts in full: an anchor would be noise in a file that people review."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class fixes the signature
        return True
