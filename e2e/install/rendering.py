"""The installation as kustomize and helm render it, and their output made comparable.

Inputs: the manifests, the chart, values. Outputs: objects. It asks no cluster.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from e2e.harness.assets import binary
from e2e.harness.paths import REPOSITORY

CHART = REPOSITORY / "charts" / "kvplan"
RELEASE = "kvplan"
NAMESPACE = "kvplan-system"
HASH_SECRET = b"a secret of thirty-two bytes ok!"
Object = dict[str, Any]
Objects = dict[tuple[str, str, str], Object]
_CONTENT_HASH = re.compile(r"-[0-9a-z]{10}$")
_GENERATED = ("ConfigMap", "Secret")


def manifests(directory: Path) -> Path:
    """A copy of the manifests with a hash secret, as a person makes one before installing a router."""
    copy = directory / "manifests"
    shutil.copytree(REPOSITORY / "manifests", copy)
    (copy / "router" / "hash-secret").write_bytes(HASH_SECRET)
    return copy


def kustomize(folder: Path) -> list[Object]:
    """What ``kubectl kustomize`` prints."""
    return documents(_run(str(binary("kubectl")), "kustomize", str(folder)))


def helm_template(values: Object, *options: str, chart: Path = CHART) -> list[Object]:
    """What ``helm template`` prints, the CRDs aside.

    Raises:
        subprocess.CalledProcessError: helm refuses; its words are in ``stderr``.
    """
    command = [str(binary("helm")), "template", RELEASE, str(chart), f"--namespace={NAMESPACE}", "--values=-"]
    return documents(_run(*command, *options, stdin=yaml.safe_dump(values)))


def documents(text: str) -> list[Object]:
    """Every object of a text."""
    return [found for found in yaml.safe_load_all(text) if found]


def by_name(objects: Iterable[Object]) -> Objects:
    """Objects by kind, namespace and name; kustomize's content hashes are no part of a name."""
    found: Objects = {}
    for item in objects:
        metadata = item["metadata"]
        name = _CONTENT_HASH.sub("", metadata["name"]) if item["kind"] in _GENERATED else metadata["name"]
        key = (item["kind"], metadata.get("namespace", ""), name)
        if key in found:
            raise ValueError(f"{key} is rendered twice")
        found[key] = item
    return found


def _run(*command: str, stdin: str | None = None) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, input=stdin).stdout
