"""Run the bed's own kubectl against one cluster.

Inputs: a kubeconfig. Outputs: what kubectl printed. A refusal is an error that carries kubectl's own words.
"""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.harness.assets import binary
from e2e.harness.errors import KubectlFailed

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Kubectl:
    """kubectl for one user of one cluster.

    Attributes:
        kubeconfig: whose and where.
        home: directory for kubectl's discovery cache, so that two clusters never share one.
    """

    kubeconfig: Path
    home: Path

    def __call__(self, *arguments: str, stdin: str | None = None, seconds: float = 120.0) -> str:
        """Run `kubectl ARGUMENTS` and return its standard output.

        Args:
            arguments: as on the command line.
            stdin: text for `-f -`.
            seconds: after which kubectl is killed.

        Raises:
            KubectlFailed: when kubectl ends with an error.
            subprocess.TimeoutExpired: when it does not end.
        """
        options = [f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.home / 'kubectl-cache'}"]
        done = subprocess.run(
            [str(binary("kubectl")), *options, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if done.returncode != 0:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}", done.returncode, done.stderr)
        return done.stdout

    def apply(self, *manifests: Manifest, options: Sequence[str] = ()) -> str:
        """Apply manifests given as dictionaries."""
        return self("apply", *options, "-f", "-", stdin="\n---\n".join(json.dumps(each) for each in manifests))

    def create(self, *manifests: Manifest) -> str:
        """Create objects given as dictionaries, their status included where the API takes one."""
        return self("create", "-f", "-", stdin="\n---\n".join(json.dumps(each) for each in manifests))

    def get(self, *arguments: str) -> Manifest:
        """Return `kubectl get ARGUMENTS` as a dictionary: one object, or a list with `items`."""
        answer: Manifest = json.loads(self("get", *arguments, "--output=json"))
        return answer

    def as_user(self, kubeconfig: Path) -> "Kubectl":
        """Return a kubectl for another user of the same cluster."""
        return Kubectl(kubeconfig, self.home)
