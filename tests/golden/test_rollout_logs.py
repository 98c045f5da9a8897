"""Rollouts as prose: what the operator did and waited for, step by step; the files are read in review.

Regenerate with ``KVPLAN_REGENERATE=1``.
"""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from kvplan_operator.act.world import RolloutRules
from kvplan_operator.api.routing_plan import RoutingPlan
from tests.rollouts import pod_template, rollout_fleet, rollout_plan
from tests.simulated_cluster import SimulatedCluster

FOLDER = Path(__file__).parent / "rollout"
LOOKS = 400


def follow(cluster: SimulatedCluster, plan: RoutingPlan, rules: RolloutRules) -> list[str]:
    """A line for every new thing that the operator says; the cluster moves a little between two looks."""
    lines: list[str] = []
    for _ in range(LOOKS):
        step = cluster.look(plan, rules)
        said = [str(command) for command in step.commands]
        if step.refusal is not None:
            said.append(f"{step.refusal.reason}: {step.refusal.message}")
        said += [f"  wait for {step.waiting_for}"] if step.waiting_for else []
        new = [f"{step.step}/{step.steps} {line}" for line in said]
        lines += [line for line in new if line not in lines]
        cluster.execute(step.commands)
        if step.complete:
            return [*lines, f"{step.step}/{step.steps} complete"]
        for _ in range(3):
            cluster.happen()
    return [*lines, "…"]


def started(plan: RoutingPlan, sizes: list[int], rules: RolloutRules) -> SimulatedCluster:
    """A cluster in which the plan is in force."""
    cluster = SimulatedCluster(rollout_fleet(1, 2, 4), sizes, random.Random(7))
    follow(cluster, plan, rules)
    cluster.settle()
    cluster.look(plan, rules)
    cluster.settle()
    cluster.before = plan
    return cluster


RULES = RolloutRules(min_available_milli=400, drain_timeout_seconds=600, deadline_seconds=7_200)
SPLIT = {"tp2": ["n0", "n0", "n1", "n1"]}


def repartition() -> list[str]:
    """Two nodes of four GPUs, all in use: four groups of two become one of four and two of two."""
    cluster = started(rollout_plan(SPLIT), [4, 4], RULES)
    return follow(cluster, rollout_plan({"tp4": ["n0"], "tp2": ["n1", "n1"]}), RULES)


def another_image() -> list[str]:
    """The same partition with another image: every group goes and comes, one at a time, on its own node."""
    plan = rollout_plan({"tp4": ["n0", "n1"]})
    cluster = started(plan, [4, 4], RULES)
    cluster.template = pod_template(image="vllm/vllm-openai:v0.33.0")
    return follow(cluster, plan, RULES)


def edited_template() -> list[str]:
    """A person changes the pod template of a created Deployment: the plan's comes back, one drained group at a time."""
    plan = rollout_plan({"tp2": ["n0", "n0", "n1", "n1"]})
    cluster = started(plan, [4, 4], RULES)
    cluster.edit(min(cluster.sets))
    return follow(cluster, plan, RULES)


def silent_router() -> list[str]:
    """A router stops answering: the drain waits until its timeout, and then for the engine's word, which nobody has."""
    cluster = started(rollout_plan(SPLIT), [4, 4], RULES)
    cluster.silent.add("router-1")
    return follow(cluster, rollout_plan({"tp4": ["n0"], "tp2": ["n1", "n1"]}), RULES)


STORIES: dict[str, Callable[[], list[str]]] = {
    "repartition": repartition,
    "another-image": another_image,
    "edited-template": edited_template,
    "silent-router": silent_router,
}


@pytest.mark.parametrize("name", STORIES)
def test_the_rollout_goes_as_it_went(name: str) -> None:
    story = STORIES[name]
    text = "\n".join([f"# {story.__doc__}", *story()]) + "\n"
    file = FOLDER / f"{name}.txt"
    if os.environ.get("KVPLAN_REGENERATE"):
        FOLDER.mkdir(exist_ok=True)
        file.write_text(text)
    assert text == file.read_text()
