"""What is built from which Go module, and how: the recipe table of the control plane.

Inputs: the committed go.mod and go.sum under `e2e/controlplane/`. Outputs: recipes and their content keys. It
runs nothing. The key covers the module files and every flag, so that a changed recipe never finds an old binary.
"""

import hashlib
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from e2e.harness.paths import MODULES, cache

GO_FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false", "-p=2")
GO_ENVIRONMENT = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": ""}


@dataclass(frozen=True)
class Recipe:
    """One Go module of tools and the binaries that are built from it."""

    name: str
    version_of: str
    packages: dict[str, str]
    version_variables: dict[str, str]
    tags: tuple[str, ...] = ()

    @property
    def module(self) -> Path:
        """The directory with this component's go.mod and go.sum."""
        return MODULES / self.name

    @property
    def version(self) -> str:
        """The version of the component that go.mod requires, such as `v1.37.2`."""
        required = re.search(rf"^\s*(?:require )?{re.escape(self.version_of)} (v\S+)", self._go_mod(), re.MULTILINE)
        if required is None:
            raise ValueError(f"{self.module / 'go.mod'} does not require {self.version_of}: run go get -tool there")
        return required.group(1)

    @property
    def flags(self) -> list[str]:
        """The flags of `go build` for this component."""
        tags = [f"-tags={','.join(self.tags)}"] if self.tags else []
        return [*GO_FLAGS, *tags]

    @property
    def linker_flags(self) -> str:
        """Strip symbols and stamp the version, which `go build` leaves empty outside the component's repository."""
        major, minor, *_ = self.version.removeprefix("v").split(".")
        values = {"version": self.version, "major": major, "minor": minor}
        stamps = (f"-X {name}={value.format(**values)}" for name, value in self.version_variables.items())
        return " ".join(["-s", "-w", *stamps])

    @property
    def key(self) -> str:
        """The first 16 hex digits of a SHA-256 over module files, flags and platform."""
        flags = [*self.flags, *(f"{name}={value}" for name, value in GO_ENVIRONMENT.items()), self.linker_flags]
        parts = [self._go_mod(), (self.module / "go.sum").read_text(), *flags, platform.machine()]
        return hashlib.sha256("\0".join([*parts, *self.packages.values()]).encode()).hexdigest()[:16]

    @property
    def directory(self) -> Path:
        """The content-keyed directory that holds the built binaries."""
        return cache() / self.name / self.key / "bin"

    def _go_mod(self) -> str:
        return (self.module / "go.mod").read_text()


def _kubernetes_stamps() -> dict[str, str]:
    values = {"gitVersion": "{version}", "gitMajor": "{major}", "gitMinor": "{minor}", "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return {f"{package}.{variable}": value for package in packages for variable, value in values.items()}


_KUBERNETES_BINARIES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")

KUBERNETES = Recipe(
    name="kubernetes",
    version_of="k8s.io/kubernetes",
    packages={binary: f"k8s.io/kubernetes/cmd/{binary}" for binary in _KUBERNETES_BINARIES},
    version_variables=_kubernetes_stamps(),
)
ETCD = Recipe(
    name="etcd",
    version_of="go.etcd.io/etcd/server/v3",
    packages={"etcd": "go.etcd.io/etcd/server/v3"},
    version_variables={},
)
KWOK = Recipe(
    name="kwok",
    version_of="sigs.k8s.io/kwok",
    packages={"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
    version_variables={},
)
PROMETHEUS = Recipe(
    name="prometheus",
    version_of="github.com/prometheus/prometheus",
    packages={"prometheus": "github.com/prometheus/prometheus/cmd/prometheus"},
    version_variables={"github.com/prometheus/common/version.Version": "{version}"},
    # The other discoveries bring the client libraries of two dozen clouds: a sixth of all packages.
    tags=("remove_all_sd", "enable_kubernetes_sd"),
)

SOURCE_CONTROLLER = Recipe(
    name="source-controller",
    version_of="github.com/fluxcd/source-controller",
    packages={"source-controller": "github.com/fluxcd/source-controller"},
    version_variables={},
)
KUSTOMIZE_CONTROLLER = Recipe(
    name="kustomize-controller",
    version_of="github.com/fluxcd/kustomize-controller",
    packages={"kustomize-controller": "github.com/fluxcd/kustomize-controller"},
    version_variables={},
)
HELM = Recipe(
    name="helm",
    version_of="helm.sh/helm/v4",
    packages={"helm": "helm.sh/helm/v4/cmd/helm"},
    version_variables={"helm.sh/helm/v4/internal/version.version": "{version}"},
)
ENDPOINT_PICKER = Recipe(
    name="endpoint-picker",
    version_of="sigs.k8s.io/gateway-api-inference-extension",
    packages={"epp": "sigs.k8s.io/gateway-api-inference-extension/cmd/epp"},
    version_variables={},
)

CONTROL_PLANE = (ETCD, KWOK, KUBERNETES)
GITOPS = (SOURCE_CONTROLLER, KUSTOMIZE_CONTROLLER, HELM)
"""What the slow tier installs with: minutes of building that the other tests do not need."""
ALL = (*CONTROL_PLANE, PROMETHEUS, *GITOPS, ENDPOINT_PICKER)


def recipe_for(binary: str) -> Recipe:
    """Return the recipe that builds this binary.

    Raises:
        ValueError: when no recipe does.
    """
    for recipe in ALL:
        if binary in recipe.packages:
            return recipe
    raise ValueError(f"no recipe builds {binary!r}: one of {sorted(b for r in ALL for b in r.packages)}")
