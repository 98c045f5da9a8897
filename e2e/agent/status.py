"""What a pod's status says, from the states of its containers.

Inputs: the pod and its containers' statuses. Outputs: the part of the status that a kubelet owns. Pure, the time of the
call is an argument; conditions that others own (PodScheduled, DisruptionTarget, readiness gates) are not in it.
"""

from collections.abc import Sequence

from e2e.agent.api import Object


def pod_status(pod: Object, init: Sequence[Object], containers: Sequence[Object], *, ended: bool, now: str) -> Object:
    """Return the status to patch.

    Args:
        pod: its spec and what its status says so far.
        init: statuses of the init containers, in order.
        containers: statuses of the containers, in order.
        ended: whether no container will be started again.
        now: the time, RFC 3339.
    """
    initialised = all(_exit_code(each) == 0 for each in init)
    found = phase(pod["spec"].get("restartPolicy", "Always"), init, containers, ended=ended)
    return {
        "phase": found,
        "conditions": _since(_conditions(pod, containers, initialised, found), pod, now),
        "initContainerStatuses": list(init),
        "containerStatuses": list(containers),
    }


def contradicts(pod: Object, published: Object) -> bool:
    """Return whether the pod says another Ready than was published, as after its node was taken for lost."""
    ours, theirs = by_type(published.get("conditions", [])), by_type(_of(pod))
    return "Ready" in ours and "Ready" in theirs and ours["Ready"]["status"] != theirs["Ready"]["status"]


def phase(restart_policy: str, init: Sequence[Object], containers: Sequence[Object], *, ended: bool) -> str:
    """Return the pod's phase by the kubelet's rules."""
    codes = [_exit_code(each) for each in containers]
    if ended and None not in codes:
        return "Failed" if any(codes) else "Succeeded"
    if ended and any(_exit_code(each) for each in init):
        return "Failed"
    if any(_never_started(each) for each in containers):
        return "Pending"
    if None in codes or restart_policy == "Always":
        return "Running"
    if not any(codes):
        return "Succeeded"
    return "Failed" if restart_policy == "Never" else "Running"


def _exit_code(status: Object) -> int | None:
    terminated = status["state"].get("terminated")
    return terminated["exitCode"] if terminated else None


def _never_started(status: Object) -> bool:
    return "waiting" in status["state"] and not status.get("lastState")


def _conditions(pod: Object, containers: Sequence[Object], initialised: bool, found: str) -> list[Object]:
    unready = [each["name"] for each in containers if not each["ready"]]
    reason = "PodCompleted" if found == "Succeeded" else "ContainersNotReady"
    message = f"containers with unready status: [{' '.join(unready)}]"
    closed = [gate["conditionType"] for gate in pod["spec"].get("readinessGates", []) if not _holds(pod, gate)]
    not_open = f"corresponding condition of pod readiness gate {closed} is not True"
    return [
        _condition("PodReadyToStartContainers", found in ("Pending", "Running")),
        _condition("Initialized", initialised, "ContainersNotInitialized", "init containers have not completed"),
        _condition("ContainersReady", not unready, reason, message),
        _condition(
            "Ready", not unready and not closed, *((reason, message) if unready else ("GatesNotReady", not_open))
        ),
    ]


def _holds(pod: Object, gate: Object) -> bool:
    found = by_type(_of(pod)).get(gate["conditionType"], {})
    return bool(found.get("status") == "True")


def _condition(kind: str, holds: bool, reason: str = "", message: str = "") -> Object:
    if holds:
        return {"type": kind, "status": "True", "reason": None, "message": None}
    return {"type": kind, "status": "False", "reason": reason or None, "message": message or None}


def _since(conditions: list[Object], pod: Object, now: str) -> list[Object]:
    before = by_type(_of(pod))
    for condition in conditions:
        old = before.get(condition["type"], {})
        unchanged = old.get("status") == condition["status"]
        condition["lastTransitionTime"] = old["lastTransitionTime"] if unchanged else now
    return conditions


def by_type(conditions: Sequence[Object]) -> dict[str, Object]:
    """Return conditions by their type."""
    return {each["type"]: each for each in conditions}


def _of(pod: Object) -> list[Object]:
    conditions: list[Object] = pod.get("status", {}).get("conditions", [])
    return conditions
