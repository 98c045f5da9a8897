"""Pure parts of a look: what is unsupported, figures, conditions that turned, projections, codec."""

import json
from typing import Any

import numpy as np
import pytest

from kvplan_operator.act.engine_sets import SetKind
from kvplan_operator.act.observed_groups import ObservedSet
from kvplan_operator.model.facts import ClassFacts
from kvplan_operator.model.inventory import ExcludedGpus, ExclusionReason, Inventory
from kvplan_operator.model.priors.resolve import Measurement
from kvplan_operator.model.snapshot import ClusterView, Measured, Snapshot
from kvplan_operator.reconcile.figures import gpu_figures, group_figures
from kvplan_operator.reconcile.projections import holds_devices, project_node, without_managed_fields
from kvplan_operator.reconcile.solver_wire import decode_inputs, encode_inputs
from kvplan_operator.reconcile.unsupported import unsupported
from kvplan_operator.reconcile.writing import Turn, turns
from kvplan_solver.instance import GroupPlacement, NodeInput
from tests.planning import configuration, fleet, inputs, plan, request_class

Object = dict[str, Any]


def template(*args: str, container: str = "vllm") -> Object:
    """A PodTemplate whose container has these arguments."""
    spec = {"containers": [{"name": container, "command": ["vllm", "serve"], "args": list(args)}]}
    return {"kind": "PodTemplate", "metadata": {"name": "engines"}, "template": {"spec": spec}}


def snapshot(view: ClusterView, **spec: Any) -> Snapshot:
    return Snapshot(0.0, fleet(**spec), "1", (request_class("chat"),), (), view, Measured())


@pytest.mark.parametrize(
    "flag", ["--enable-lora", "--enable_lora", "--lora-modules", "--kv-transfer-config", '--kv-transfer-config={"a":1}']
)
def test_a_template_with_what_is_not_planned_for_is_refused_with_its_name_and_a_remedy(flag: str) -> None:
    words = unsupported(snapshot(ClusterView(template=template("model", flag, "x"))))
    assert "PodTemplate engines" in words
    assert flag.partition("=")[0].replace("_", "-") in words
    assert "not planned for" in words


def test_an_adopted_deployment_with_adapters_is_refused() -> None:
    spec = {"template": template("--enable-lora")["template"]}
    deployment = {"kind": "Deployment", "metadata": {"name": "mine"}, "spec": spec}
    view = ClusterView(deployments=(deployment,))
    adopting = snapshot(view, configurations=[configuration("tp1", 1, deployment="mine")])
    assert "Deployment mine" in unsupported(adopting)
    assert unsupported(snapshot(view)) == ""


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(template("model", "--max-num-seqs", "8"), id="ordinary flags"),
        pytest.param(template("--enable-lora", container="sidecar"), id="another container"),
        pytest.param({"kind": "PodTemplate", "metadata": {"name": "empty"}}, id="nothing at all"),
        pytest.param(None, id="no template"),
    ],
)
def test_anything_else_is_supported(item: Object | None) -> None:
    assert unsupported(snapshot(ClusterView(template=item))) == ""


def test_gpus_of_nodes_that_are_not_selected_are_none_of_the_fleets() -> None:
    excluded = (
        ExcludedGpus("a", 8, ExclusionReason.NOT_SELECTED),
        ExcludedGpus("b", 2, ExclusionReason.FOREIGN_PODS),
        ExcludedGpus("c", 8, ExclusionReason.CORDONED),
    )
    found = gpu_figures(Inventory((NodeInput("b", 6),), excluded), ())
    assert (found.allocatable, found.used) == (16, 0)
    assert [(e.node, e.reason, e.gpus) for e in found.excluded] == [("b", "ForeignPods", 2), ("c", "Cordoned", 8)]


def test_groups_that_are_planned_and_do_not_exist_are_counted_too() -> None:
    planned = plan(inputs()).plan
    counts = {status.configuration: (status.planned, status.running) for status in group_figures((), planned)}
    assert counts == {group.configuration: (group.replicas, 0) for group in planned.spec.groups if group.replicas}
    assert group_figures((), None) == ()


def test_what_an_autoscaler_scales_is_planned_to_be_as_many_as_it_says() -> None:
    planned = plan(inputs()).plan
    name = planned.spec.groups[0].configuration
    adopted = {"metadata": {"name": "chat"}, "spec": {"replicas": 1}}
    sets = (ObservedSet(SetKind.DEPLOYMENT, adopted, name, True, (), 1),)
    scaler = {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "chat"}}}

    def wanted(*autoscalers: Object) -> int:
        found = group_figures(sets, planned, autoscalers)
        return next(status.planned for status in found if status.configuration == name)

    assert (wanted(), wanted(scaler)) == (planned.spec.groups[0].replicas, 1)


def said(type_: str, status: str, reason: str, message: str = "why") -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message}


@pytest.mark.parametrize(
    ("stored", "fresh", "told"),
    [
        pytest.param(said("Ready", "False", "Solving"), said("Ready", "True", "AsPlanned"),
                     [Turn("AsPlanned", "Ready", "why", False)], id="it came true"),
        pytest.param(said("Ready", "True", "AsPlanned"), said("Ready", "False", "RollingOut"),
                     [Turn("RollingOut", "Ready", "why", True)], id="it came to be false"),
        pytest.param(said("Ready", "True", "AsPlanned"), said("Ready", "True", "AsPlanned", "in other words"), [],
                     id="other words"),
        pytest.param(said("Stalled", "False", "NothingWrong"), said("Stalled", "True", "UnknownDigest"),
                     [Turn("UnknownDigest", "Stalled", "why", True)], id="a bad one came true"),
        pytest.param(said("Stalled", "True", "UnknownDigest"), said("Stalled", "False", "NothingWrong", ""),
                     [Turn("NothingWrong", "Stalled", "NothingWrong", False)], id="a bad one is over"),
        pytest.param(None, said("Stalled", "False", "NothingWrong"), [], id="nothing wrong from the start"),
        pytest.param(said("TableFresh", "True", "x"), said("TableFresh", "False", "y"), [], id="one nobody is told of"),
    ],
)  # fmt: skip
def test_events_tell_of_conditions_that_turned(stored: Object | None, fresh: Object, told: list[Turn]) -> None:
    before = {"conditions": [stored] if stored else []}
    assert list(turns(before, {"conditions": [fresh]})) == told


def test_a_heartbeat_of_a_node_is_no_change() -> None:
    def node(beat: str) -> Object:
        conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": beat}]
        status = {"allocatable": {"nvidia.com/gpu": "8"}, "conditions": conditions, "images": [beat]}
        return {"metadata": {"name": "a", "resourceVersion": beat, "labels": {"x": "y"}}, "spec": {}, "status": status}

    assert project_node(node("1")) == project_node(node("2"))
    assert project_node({"metadata": {"name": "bare"}})["status"] == {"allocatable": {}, "conditions": []}


@pytest.mark.parametrize(
    ("spec", "holds"),
    [
        ({"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}, True),
        ({"initContainers": [{"resources": {"requests": {"amd.com/gpu": "1"}}}]}, True),
        ({"resources": {"requests": {"nvidia.com/gpu": "1"}}}, True),
        ({"containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}, False),
        ({}, False),
    ],
)
def test_pods_that_hold_devices_are_told_by_the_names_they_ask_for(spec: Object, holds: bool) -> None:
    assert holds_devices({"metadata": {"name": "a"}, "spec": spec}) is holds


def test_managed_fields_are_not_kept_and_nothing_else_goes() -> None:
    item: Object = {"metadata": {"name": "a", "managedFields": [1, 2]}, "spec": {"x": 1}}
    assert without_managed_fields(item) == {"metadata": {"name": "a"}, "spec": {"x": 1}}
    assert "managedFields" in item["metadata"]


def test_inputs_come_back_from_json_to_the_last_bit() -> None:
    lengths = np.random.default_rng(3).lognormal(4, 1, 500)
    facts = {
        "chat": ClassFacts(1 / 3, 0.1 + 0.2, lengths, 123.456, 1_000, 2_000, 64, 17.25),
        "code": ClassFacts(requests_per_second=np.float64(0.7)),
    }
    stock = Inventory(
        (NodeInput("a", 4, "NVIDIA-H200"), NodeInput("b", 4)),
        (ExcludedGpus("c", 8, ExclusionReason.CORDONED, "cordoned"),),
        (GroupPlacement("tp2", ("a",)),),
    )
    before = inputs(inventory=stock, facts=facts, measured={"tp1": Measurement(kv_capacity_tokens=7)}, remarks=("x",))
    after = decode_inputs(json.loads(json.dumps(encode_inputs(before))))
    assert (after.fleet, after.classes, after.inventory) == (before.fleet, before.classes, before.inventory)
    assert (after.measured, after.remarks) == (before.measured, before.remarks)
    assert after.facts["code"].output_lengths is None
    found = after.facts["chat"].output_lengths
    assert found is not None
    assert found.tolist() == lengths.tolist()
    assert plan(after).plan == plan(before).plan
