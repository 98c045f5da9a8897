"""Real Flux on a cluster: source- and kustomize-controller as processes, and a git server that they read.

Inputs: a cluster whose control plane is ours. Outputs: repositories, and `Sync`s that keep a namespace as a repository
says. Everything listens on 127.0.0.1 and ends with the cluster. As in Flux's installation both controllers may reach
all namespaces; they write as users of their own, so that the audit log tells them apart.
"""

from pathlib import Path

from e2e.gitops import git_server
from e2e.gitops.flux_manifests import crds, rbac
from e2e.gitops.repository import Repository
from e2e.gitops.sync import NAMESPACE, Sync
from e2e.harness.build import ensure
from e2e.harness.cluster import Cluster
from e2e.harness.commands import HOST
from e2e.harness.process import Command, Process
from e2e.harness.readiness import answers
from e2e.harness.recipes import KUSTOMIZE_CONTROLLER, SOURCE_CONTROLLER, Recipe

_CONTROLLERS = (SOURCE_CONTROLLER, KUSTOMIZE_CONTROLLER)


class Flux:
    """The running parts.

    Attributes:
        cluster: that they work on.
        git: URL below which the repositories are.
        processes: of both controllers.
    """

    def __init__(self, cluster: Cluster) -> None:
        """Install and start everything; return when both controllers are ready.

        Args:
            cluster: with a control plane of its own.
        """
        self.cluster = cluster
        self._install()
        self.git = self._start_git()
        self.processes = [self._start(recipe) for recipe in _CONTROLLERS]

    def repository(self, name: str) -> Repository:
        """Return a new, empty repository."""
        return Repository(self._repositories, name)

    def follow(self, repository: Repository, namespace: str, interval: str = "1h", **more: object) -> Sync:
        """Keep a namespace as a repository says, from now on.

        Args:
            repository: with at least one commit.
            namespace: that everything in it goes to.
            interval: between two looks that nobody asks for.
            more: fields of the Kustomization's spec, over the usual ones.
        """
        sync = Sync(self.cluster, repository, namespace)
        sync.create(f"{self.git}/{repository.name}", interval, more)
        return sync

    def _install(self) -> None:
        kubectl = self.cluster.kubectl
        kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for recipe in _CONTROLLERS:
            definitions = crds(recipe)
            # Client-side apply would copy each CRD into an annotation, which is too small for some.
            kubectl.apply(*definitions, *rbac(recipe, _user(recipe)), options=["--server-side"])
            names = [f"crd/{definition['metadata']['name']}" for definition in definitions]
            kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)

    def _start_git(self) -> str:
        self._repositories = self.cluster.directory / "git"
        self._repositories.mkdir()
        Repository(self._repositories, "empty")
        port = self.cluster.ports.take()
        url = f"http://{HOST}:{port}"
        self.cluster.run(git_server.command(self._repositories, port), lambda: answers(f"{url}/empty.git/HEAD"))
        return url

    def _start(self, recipe: Recipe) -> Process:
        health = f"{HOST}:{self.cluster.ports.take()}"
        argv = [
            str(ensure(recipe) / recipe.name),
            f"--health-addr={health}",
            f"--metrics-addr={HOST}:{self.cluster.ports.take()}",
            "--events-addr=",
            *(self._storage() if recipe is SOURCE_CONTROLLER else ()),
        ]
        environment = {
            "KUBECONFIG": str(self.cluster.plane.identity(_user(recipe))),
            "RUNTIME_NAMESPACE": NAMESPACE,
            "HOME": str(self.cluster.directory),
        }
        return self.cluster.run(Command(recipe.name, argv, environment), lambda: answers(f"http://{health}/readyz"))

    def _storage(self) -> list[str]:
        """Where fetched revisions are kept and how the other controller gets them."""
        directory = Path(self.cluster.directory / "flux-artifacts")
        directory.mkdir()
        address = f"{HOST}:{self.cluster.ports.take()}"
        return [f"--storage-path={directory}", f"--storage-addr={address}", f"--storage-adv-addr={address}"]


def _user(recipe: Recipe) -> str:
    return f"flux:{recipe.name}"
