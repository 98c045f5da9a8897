"""What Flux's controllers need in a cluster, read from the very modules that they are built from.

Inputs: a recipe. Outputs: CRDs and RBAC as manifests, with the roles bound to users instead of the service accounts
that the modules leave open. As in Flux's own installation the kustomize-controller may do everything: it applies what
a repository holds.
"""

import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from e2e.harness.errors import BuildFailed
from e2e.harness.kubectl import Manifest
from e2e.harness.recipes import GO_ENVIRONMENT, Recipe
from e2e.harness.toolchain import go_command

_RBAC = "rbac.authorization.k8s.io"


def crds(recipe: Recipe) -> list[Manifest]:
    """Return the CRDs of a controller."""
    return list(_documents(sorted((_sources(recipe) / "config/crd/bases").glob("*.yaml"))))


def rbac(recipe: Recipe, user: str) -> list[Manifest]:
    """Return a controller's own role, under a name of its own, and bindings of the user to it and to more.

    Args:
        recipe: of the controller.
        user: that the controller proves to be.
    """
    (role,) = _documents([_sources(recipe) / "config/rbac/role.yaml"])
    role["metadata"]["name"] = user.replace(":", "-")
    grants = [role["metadata"]["name"], *_further_roles(recipe)]
    return [role, *(_binding(grant, user) for grant in grants)]


def _further_roles(recipe: Recipe) -> Iterator[str]:
    """The cluster's own roles that a module binds its controller to."""
    for file in _sources(recipe).glob("config/rbac/cluster_role_binding.yaml"):
        for binding in _documents([file]):
            yield binding["roleRef"]["name"]


def _binding(role: str, user: str) -> Manifest:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{user.replace(':', '-')}-{role}"},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": user}],
    }


def _sources(recipe: Recipe) -> Path:
    """The module's directory, downloaded if only its binary was kept."""
    argv = [str(go_command()), "-C", str(recipe.module), "mod", "download", "-json", recipe.version_of]
    done = subprocess.run(argv, env={**os.environ, **GO_ENVIRONMENT}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildFailed(f"{recipe.version_of} {recipe.version} was not to be had: {done.stderr or done.stdout}")
    return Path(json.loads(done.stdout)["Dir"])


def _documents(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        yield from (document for document in yaml.safe_load_all(file.read_text()) if document)
