"""Many small fleets on nodes of their own: what an operator of a large cluster looks after.

Inputs: numbers of fleets and of groups per fleet. Output: nodes and documents. Each fleet has a pool of one node, so
that what it may plan does not depend on the others, and the policy Auto, so that nobody has to accept every plan.
"""

import copy
from collections.abc import Iterator
from typing import Any

import yaml

from e2e.harness.simulated_nodes import SimulatedNode
from e2e.operator.operator_process import FLEET, SAMPLE

POOL = "kvplan.dev/pool"
Document = dict[str, Any]


def nodes(fleets: int, groups: int) -> Iterator[SimulatedNode]:
    """One node per fleet with one GPU per group."""
    return (SimulatedNode(f"pool-{n:03}", gpus=groups, labels={POOL: f"pool-{n:03}"}) for n in range(fleets))


def documents(fleet: int, groups: int, namespace: str) -> Iterator[Document]:
    """One fleet with its template and its class; every group of its pool is used."""
    sample = list(yaml.safe_load_all(SAMPLE.read_text()))
    pool = f"pool-{fleet:03}"
    for item in map(copy.deepcopy, sample):
        if item["kind"] == "RequestClass" and item["metadata"]["name"] != "chat":
            continue
        if item["kind"] == "ServingFleet":
            item["spec"]["nodes"]["selector"] = {"matchLabels": {POOL: pool}}
            item["spec"]["nodes"]["minGpus"] = groups
            item["spec"]["configurations"] = [{"name": "tp1", "tensorParallel": 1}]
            item["spec"]["planPolicy"] = {"mode": "Auto"}
            item["spec"]["engine"]["templateRef"]["name"] = pool
        if item["kind"] == "RequestClass":
            item["metadata"]["labels"] = {"kvplan.dev/fleet": pool}
        name = pool if item["kind"] != "RequestClass" else f"{pool}-{FLEET}"
        yield {**item, "metadata": {**item["metadata"], "name": name, "namespace": namespace}}
