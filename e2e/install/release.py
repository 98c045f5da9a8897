"""A real helm that installs, upgrades and removes the chart on a cluster of the bed.

Inputs: a cluster, values. Outputs: what helm did to the cluster. One operator, on a process node.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from e2e.harness.assets import binary
from e2e.harness.cluster import Cluster
from e2e.install.installation import operator_values
from e2e.install.rendering import CHART, NAMESPACE, RELEASE


class HelmFailed(Exception):
    """helm ended with an error; the message has its words."""


@dataclass(frozen=True)
class Release:
    """The release `kvplan` of one cluster.

    Attributes:
        cluster: it is installed on.
        chart: it is installed from.
    """

    cluster: Cluster
    chart: Path = CHART

    def upgrade(self, operator: dict[str, Any] | None = None, *, wait: bool = True, **values: Any) -> None:
        """Install, or upgrade what is installed.

        Args:
            operator: values of the operator besides those of the bed.
            wait: until the pods are ready.
            values: further values.
        """
        given = {"operator": operator_values() | (operator or {}), **values}
        waiting = ["--wait", "--timeout=240s"] if wait else []
        self._helm("upgrade", "--install", RELEASE, str(self.chart), "--values=-", *waiting, values=given)

    def uninstall(self) -> None:
        """Remove it and wait until its pods are gone."""
        self._helm("uninstall", RELEASE, "--wait", "--timeout=240s")

    def _helm(self, *arguments: str, values: Any = None) -> None:
        command = [
            str(binary("helm")),
            *arguments,
            f"--kubeconfig={self.cluster.kubeconfig}",
            f"--namespace={NAMESPACE}",
        ]
        environment = {"HOME": str(self.cluster.directory), "PATH": "/usr/bin:/bin"}
        given = yaml.safe_dump(values) if values is not None else ""
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, input=given)
        if done.returncode:
            raise HelmFailed(f"helm {arguments[0]}: exit status {done.returncode}: {done.stderr.strip()}")
