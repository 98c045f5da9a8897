"""Scenarios of simulated nodes as data: what goes wrong with pods and nodes, and how a test picks it.

Inputs: `scenarios/*.yaml` and the templates of their stages. Outputs: annotations for pods, nodes to create, patches of
a node that begin and end a scenario, and stage files for kwok. A pod scenario is picked per pod, by an annotation, or
for all pods of a node, when the stage files are written. Nothing here talks to a cluster but `begin` and `end`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template
from typing import Any

import yaml

from e2e.harness.kubectl import Kubectl
from e2e.harness.simulated_nodes import SimulatedNode

ANNOTATION = "bed.kvplan.dev/scenario"
_DIRECTORY = Path(__file__).with_name("scenarios")
_TEMPLATES = _DIRECTORY / "templates"


class _Stage(Template):
    """kwok's own templates use dollar signs and braces."""

    delimiter = "%"


@dataclass(frozen=True)
class Scenario:
    """One scenario.

    Attributes:
        name: of its file.
        about: what happens, for people.
        parameters: annotations of a pod, with their usual values.
        node: fields of a `SimulatedNode` that is created with it.
        patches: of a Node, under `begin` and `end`.
        stages: templates with their values.
    """

    name: str
    about: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    node: Mapping[str, Any] = field(default_factory=dict)
    patches: Mapping[str, Any] = field(default_factory=dict)
    stages: Sequence[Mapping[str, str]] = ()

    def annotations(self, **durations: str) -> dict[str, str]:
        """Return the annotations of a pod to which this happens.

        Args:
            durations: other values than the usual ones; `crash_after="3s"` is `bed.kvplan.dev/crash-after`.

        Raises:
            ValueError: when the scenario has no such parameter.
        """
        given = {f"bed.kvplan.dev/{name.replace('_', '-')}": value for name, value in durations.items()}
        unknown = sorted(set(given) - set(self.parameters))
        if unknown:
            known = ", ".join(sorted(self.parameters)) or "none"
            raise ValueError(f"scenario {self.name} has no {', '.join(unknown)}: its parameters are {known}")
        return {ANNOTATION: self.name, **self.parameters, **given}

    def on(self, node: SimulatedNode) -> SimulatedNode:
        """Return the node as it is created with this scenario."""
        labels = {**node.labels, **self.node.get("labels", {})}
        return replace(node, **{**self.node, "labels": labels})

    def begin(self, kubectl: Kubectl, node: str) -> None:
        """Let it happen to a node."""
        self._patch(kubectl, node, "begin")

    def end(self, kubectl: Kubectl, node: str) -> None:
        """Let it be over."""
        self._patch(kubectl, node, "end")

    def _patch(self, kubectl: Kubectl, node: str, which: str) -> None:
        if which not in self.patches:
            raise ValueError(f"scenario {self.name} does not begin or end on a node: {self.about}")
        kubectl("patch", "node", node, "--type=merge", "--patch", json.dumps(self.patches[which]))

    def rendered(self, nodes: Sequence[str] = ()) -> list[str]:
        """Return its stages for kwok: for the pods that name the scenario, or for all pods of the nodes."""
        by_annotation = {"key": f'.metadata.annotations["{ANNOTATION}"]', "operator": "In", "values": [self.name]}
        by_node = {"key": ".spec.nodeName", "operator": "In", "values": list(nodes)}
        values = {
            "chosen": json.dumps(by_node if nodes else by_annotation),
            "scenario": f"{self.name}-on-nodes" if nodes else self.name,
        }
        return [_render({**values, **stage}) for stage in self.stages]


def load(name: str) -> Scenario:
    """Return the scenario of this name.

    Raises:
        ValueError: when there is none.
    """
    file = _DIRECTORY / f"{name}.yaml"
    if not file.exists():
        raise ValueError(f"no scenario {name}: choose from {', '.join(names())}")
    content = yaml.safe_load(file.read_text())
    return Scenario(
        name=name,
        about=content["about"],
        parameters=content.get("annotations", {}),
        node=content.get("node", {}),
        patches={which: content[which] for which in ("begin", "end") if which in content},
        stages=content.get("stages", ()),
    )


def names() -> list[str]:
    """Return the names of all scenarios."""
    return sorted(file.stem for file in _DIRECTORY.glob("*.yaml"))


def stage_files(directory: Path, on_nodes: Mapping[str, Sequence[str]] | None = None) -> list[Path]:
    """Write the stages of all scenarios, for `Cluster(stages=...)`, and return the files.

    Args:
        directory: where to.
        on_nodes: names of nodes by the scenario that happens to every pod on them.
    """
    written = [_written(directory, load(name), ()) for name in names()]
    written += [_written(directory, load(name), nodes) for name, nodes in (on_nodes or {}).items()]
    return [file for files in written for file in files]


def _written(directory: Path, scenario: Scenario, nodes: Sequence[str]) -> list[Path]:
    files = []
    for number, content in enumerate(scenario.rendered(nodes)):
        file = directory / f"{scenario.name}-{'nodes' if nodes else 'pods'}-{number}.yaml"
        file.write_text(content)
        files.append(file)
    return files


def _render(values: Mapping[str, str]) -> str:
    return _Stage((_TEMPLATES / f"{values['template']}.yaml").read_text()).substitute(values)
