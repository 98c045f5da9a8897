"""A routing table as ConfigMaps in a directory, one file each, written completely or not at all.

Inputs: an encoded table. Output: ``<fleet>-table.yaml`` (the index) and one file per shard. The index is the
last to be put in place, as routers read it first; a shard's name is the digest of its bytes.
"""

import base64
from pathlib import Path

from kvplan_cli.errors import CommandError, reason_of
from kvplan_cli.files import write_all, yaml_documents
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import FLEET_LABEL
from kvplan_solver.cacheroute.table import EncodedTable

INDEX_KEY = "index.json"
SHARD_KEY = "shard.bin"
Document = dict[str, object]


def table_documents(fleet: ServingFleet, encoded: EncodedTable) -> dict[str, Document]:
    """ConfigMaps by name, shards first."""
    documents: dict[str, Document] = {
        shard.name: _config_map(fleet, shard.name, "binaryData", SHARD_KEY, base64.b64encode(shard.data).decode())
        for shard in encoded.shards
    }
    index = f"{fleet.metadata.name}-table"
    return documents | {index: _config_map(fleet, index, "data", INDEX_KEY, encoded.index)}


def write_table(directory: Path, fleet: ServingFleet, encoded: EncodedTable) -> list[Path]:
    """Write every ConfigMap as ``<name>.yaml``.

    Raises:
        CommandError: the directory cannot be written.
    """
    documents = table_documents(fleet, encoded)
    try:
        return write_all(directory, {f"{name}.yaml": yaml_documents([d]) for name, d in documents.items()})
    except OSError as error:
        raise CommandError(
            "--out", f"{directory} cannot be written ({reason_of(error)})", "give another directory"
        ) from error


def _config_map(fleet: ServingFleet, name: str, section: str, key: str, text: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": fleet.metadata.namespace,
            "labels": {FLEET_LABEL: fleet.metadata.name},
        },
        section: {key: text},
    }
