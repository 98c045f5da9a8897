"""What writes leave on engine sets: restarts, and fields that somebody set back; and templates changed by hand."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kvplan_operator.act.commands import Command, DeleteSet, KeepNotes, PatchAdopted, ScaleSet
from kvplan_operator.act.edited import second_name
from kvplan_operator.act.rollout import plan_rollout
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.labels import RESTARTED_ANNOTATION as RESTARTED
from kvplan_operator.api.labels import SET_BACK_ANNOTATION as SET_BACK
from kvplan_operator.api.labels import WRITTEN_REPLICAS_ANNOTATION as WRITTEN_REPLICAS
from kvplan_operator.api.labels import WRITTEN_TEMPLATE_ANNOTATION as WRITTEN_TEMPLATE
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.gate.history import all_instants, instants
from tests.rollout_scenes import JOINED, SPLIT, adopting, started
from tests.rollouts import RULES
from tests.simulated_cluster import SimulatedCluster

EARLIER = "1970-01-01T00:10:00Z"
"""400 s before the looks at adopted Deployments."""
NOW = "1970-01-01T00:16:40Z"


def follow(cluster: SimulatedCluster, plan: RoutingPlan) -> list[Command]:
    """All commands until the plan is in force."""
    given: list[Command] = []
    for _ in range(60):
        step = cluster.look(plan, RULES)
        given += step.commands
        cluster.execute(step.commands)
        if step.complete:
            return given
        cluster.settle()
    raise AssertionError(step)


def counts(given: list[Command], annotation: str) -> list[int]:
    """How many times each change of replicas notes, one number per command."""
    scales = [command for command in given if isinstance(command, ScaleSet)]
    return [len(list(instants(command.notes.get(annotation, "")))) for command in scales]


def test_each_group_that_served_and_is_stopped_is_noted_in_the_same_write() -> None:
    cluster = started()
    given = follow(cluster, JOINED)
    assert counts(given, RESTARTED) == [1, 2]
    assert counts(given, SET_BACK) == [0, 0]


def test_restarts_outlive_the_sets_they_were_noted_on() -> None:
    cluster = started()
    given = follow(cluster, JOINED)
    kept = next(n for n, command in enumerate(given) if isinstance(command, KeepNotes))
    deleted = next(n for n, command in enumerate(given) if isinstance(command, DeleteSet))
    assert kept < deleted
    assert len(all_instants(cluster.sets.values(), RESTARTED)) == 2


def test_notes_are_moved_once_however_often_the_operator_dies_before_it_deletes() -> None:
    cluster = started()
    for _ in range(60):
        step = cluster.look(JOINED, RULES)
        if any(isinstance(command, KeepNotes) for command in step.commands):
            break
        cluster.execute(step.commands)
        cluster.settle()
    cluster.execute(step.commands, crash_after=1)
    again = cluster.look(JOINED, RULES).commands
    assert [type(command) for command in again] == [DeleteSet]
    assert len(all_instants(cluster.sets.values(), RESTARTED)) == 2


def test_a_group_that_does_not_run_is_no_restart_when_it_goes() -> None:
    cluster = started()
    for found in cluster.pods.values():
        if found["spec"]["nodeName"] == "n1":
            found["status"]["conditions"][0]["status"] = "False"
    assert counts(list(cluster.look(JOINED, RULES).commands), RESTARTED) == [0]


# Adopted Deployments


def patch_of(annotations: dict[str, str]) -> dict[str, str]:
    """Annotations that go out with other flags for an adopted Deployment with three pods that serve."""
    snapshot, plan = adopting(3, 3, annotations)
    (command,) = plan_rollout(snapshot, plan, None, RULES).commands
    assert isinstance(command, PatchAdopted)
    found: dict[str, str] = command.target.manifest["metadata"]["annotations"]
    return found


def scale_of(annotations: dict[str, str]) -> Mapping[str, str]:
    """Annotations that go out when an adopted Deployment of three grows to four."""
    snapshot, plan = adopting(4, 3, annotations)
    (command,) = plan_rollout(snapshot, plan, None, replace(RULES, min_available_milli=900)).commands
    assert isinstance(command, ScaleSet)
    return command.notes


def test_other_flags_restart_every_group_that_serves() -> None:
    assert patch_of({})[RESTARTED] == ",".join([NOW] * 3)


def test_flags_that_were_never_written_are_nobodys_to_set_back() -> None:
    assert SET_BACK not in patch_of({})
    assert SET_BACK not in patch_of({WRITTEN_TEMPLATE: "of another plan"})


def test_flags_that_are_no_longer_as_written_were_set_back() -> None:
    written = patch_of({})[WRITTEN_TEMPLATE]
    assert patch_of({WRITTEN_TEMPLATE: written})[SET_BACK] == NOW
    assert patch_of({WRITTEN_TEMPLATE: written, SET_BACK: EARLIER})[SET_BACK] == f"{EARLIER},{NOW}"


def test_server_side_apply_names_again_what_it_would_take_away() -> None:
    found = patch_of({RESTARTED: EARLIER, SET_BACK: EARLIER})
    assert found[RESTARTED] == ",".join([EARLIER, *[NOW] * 3])
    assert found[SET_BACK] == EARLIER


SCALED: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "replicas that were never written": ({}, {WRITTEN_REPLICAS: "4"}),
    "replicas as they were written": ({WRITTEN_REPLICAS: "3"}, {WRITTEN_REPLICAS: "4"}),
    "replicas that somebody changed": ({WRITTEN_REPLICAS: "4"}, {WRITTEN_REPLICAS: "4", SET_BACK: NOW}),
    "replicas that somebody changes again and again": (
        {WRITTEN_REPLICAS: "4", SET_BACK: EARLIER},
        {WRITTEN_REPLICAS: "4", SET_BACK: f"{EARLIER},{NOW}"},
    ),
}


@pytest.mark.parametrize(("annotations", "notes"), SCALED.values(), ids=SCALED.keys())
def test_a_change_of(annotations: dict[str, str], notes: dict[str, str]) -> None:
    assert scale_of(annotations) == notes


# Templates changed by hand


def first_of(cluster: SimulatedCluster) -> str:
    return min(cluster.sets)


def test_a_set_with_another_template_is_replaced_group_by_group_under_its_second_name() -> None:
    cluster = started()
    name = first_of(cluster)
    wanted = cluster.rendered()[name]["template"]["spec"]
    cluster.edit(name)
    step = cluster.look(SPLIT, RULES)
    assert step.notes == (f"Deployment {name}: somebody changed its pod template: its groups are made again",)
    given = follow(cluster, SPLIT)
    assert counts(given, RESTARTED) == [1, 2, 0]
    assert name not in cluster.sets
    assert cluster.rendered()[second_name(name)]["template"]["spec"] == wanted
    assert cluster.undrained == []
    assert len(all_instants(cluster.sets.values(), SET_BACK)) == 1


def test_the_first_name_comes_back_with_the_next_change_and_every_change_is_counted() -> None:
    cluster = started()
    name = first_of(cluster)
    for expected, edited in ((1, name), (2, second_name(name)), (3, name)):
        cluster.edit(edited)
        follow(cluster, SPLIT)
        assert edited not in cluster.sets
        assert len(all_instants(cluster.sets.values(), SET_BACK)) == expected


def test_two_changed_templates_under_both_names_stop_the_rollout() -> None:
    cluster = started()
    name = first_of(cluster)
    cluster.edit(name)
    while second_name(name) not in cluster.sets:
        cluster.execute(cluster.look(SPLIT, RULES).commands)
        cluster.settle()
    cluster.edit(second_name(name))
    refusal = cluster.look(SPLIT, RULES).refusal
    assert refusal is not None
    assert (refusal.condition, refusal.reason) == (ConditionType.CONTENDED, ConditionReason.FOREIGN_WRITER)
    assert refusal.stalled
    del cluster.sets[name]
    assert cluster.look(SPLIT, RULES).refusal is None


def test_what_was_stopped_comes_back_without_stopping_more() -> None:
    cluster = started()
    begins: list[bool] = []
    for _ in range(60):
        step = cluster.look(JOINED, RULES)
        begins += [step.stops_groups] * bool(step.commands)
        cluster.execute(step.commands)
        if step.complete:
            break
        cluster.settle()
    assert begins == [True, False, True, False, False, False]
