"""Find the binaries of the bed: those the caller brings first, else those built here.

Inputs: `KUBEBUILDER_ASSETS`, a directory with kube-apiserver, etcd and kubectl as envtest lays them. Outputs: paths.
What that directory lacks is built. Nothing is taken from PATH: an installed kubectl may be of any version.
"""

import os
from pathlib import Path

from e2e.harness.build import ensure
from e2e.harness.recipes import recipe_for

ASSETS_VARIABLE = "KUBEBUILDER_ASSETS"


def binary(name: str) -> Path:
    """Return the path of a binary, building its component on first use.

    Raises:
        ValueError: when no component has it.
        BuildFailed: when it does not build.
    """
    brought = Path(os.environ.get(ASSETS_VARIABLE, "")) / name
    if os.environ.get(ASSETS_VARIABLE) and os.access(brought, os.X_OK):
        return brought
    return ensure(recipe_for(name), name) / name
