"""What the cluster must have before the operator can work: its CRDs, and permissions. What is missing is named.

Inputs: a client, the namespaces looked after. Output: a sentence for each thing that is missing. ``wait_until_ready``
looks again until all is there or patience ends: a crash loop would say less. Must not write anything.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass

from kvplan_operator.errors import OperatorError
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.clocks import boot_clock
from kvplan_operator.kube.errors import KubeError, NotServed, Refused
from kvplan_operator.kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    LEASES,
    NODES,
    POD_TEMPLATES,
    PODS,
    REQUEST_CLASSES,
    ROUTING_PLANS,
    SELF_SUBJECT_ACCESS_REVIEWS,
    SERVING_FLEETS,
    Resource,
)
from kvplan_operator.logs import LOGGER
from kvplan_operator.settings import StartSettings

_LOG = logging.getLogger(f"{LOGGER}.startup")
_NOBODY = "kvplan-looks-whether-this-kind-is-served"


class ClusterNotReady(OperatorError):
    """CRDs or permissions are missing, and patience ended; one line per thing."""


@dataclass(frozen=True)
class Need:
    """Verbs on one kind.

    Attributes:
        resource: the kind.
        verbs: needed.
        subresource: such as ``status``; empty for the object itself.
        everywhere: whether it is needed in all namespaces, whatever is looked after.
    """

    resource: Resource
    verbs: tuple[str, ...]
    subresource: str = ""
    everywhere: bool = False


ROLES_REMEDY = "bind the roles of manifests/ to this service account"


@dataclass(frozen=True)
class Question:
    """One thing that is allowed or not.

    Attributes:
        need: what it is about.
        verb: of it.
        namespace: empty for the whole cluster.
    """

    need: Need
    verb: str
    namespace: str

    @property
    def attributes(self) -> dict[str, str]:
        """As the ``resourceAttributes`` of a review."""
        stated = {
            "group": self.need.resource.group,
            "resource": self.need.resource.plural,
            "subresource": self.need.subresource,
            "verb": self.verb,
            "namespace": self.namespace,
        }
        return {name: value for name, value in stated.items() if value}

    @property
    def subject(self) -> str:
        """What the verb is about, and where."""
        title = self.need.resource.title
        what = f"{title}/{self.need.subresource}" if self.need.subresource else title
        return f"{what} in namespace {self.namespace}" if self.namespace else f"{what} in the whole cluster"

    @property
    def sentence(self) -> str:
        """What to say where it is not allowed."""
        return f"permission to {self.verb} {self.subject} is missing: {ROLES_REMEDY}"


_READ = ("list", "watch")
NEEDS = (
    Need(SERVING_FLEETS, ("get", *_READ)),
    Need(SERVING_FLEETS, ("patch",), "status"),
    Need(REQUEST_CLASSES, ("get", *_READ)),
    Need(REQUEST_CLASSES, ("patch",), "status"),
    Need(ROUTING_PLANS, ("get", *_READ, "create", "delete")),
    Need(ROUTING_PLANS, ("patch",), "status"),
    Need(NODES, _READ, everywhere=True),
    Need(PODS, _READ, everywhere=True),
    Need(PODS, ("get", "patch")),
    Need(DEPLOYMENTS, ("get", *_READ, "create", "patch", "delete")),
    Need(CONFIG_MAPS, ("get", *_READ, "create", "patch", "delete")),
    Need(POD_TEMPLATES, _READ),
    Need(HORIZONTAL_POD_AUTOSCALERS, _READ),
    Need(EVENTS, ("create", "patch")),
)
"""What the operator does in the namespaces that it looks after; the Lease is asked for in its own."""
WORKER_SET_NEED = Need(LEADER_WORKER_SETS, ("get", *_READ, "create", "patch", "delete"))
LEASE_NEED = Need(LEASES, ("get", *_READ, "create", "update"))


async def wait_until_ready(
    client: Client, namespaces: tuple[str, ...], lease_namespace: str, settings: StartSettings
) -> None:
    """Return once nothing is missing; what is missing is logged whenever that changes.

    Raises:
        ClusterNotReady: something is still missing when patience ends.
    """
    began = boot_clock()
    said: tuple[str, ...] = ()
    while missing := await _look(client, namespaces, lease_namespace):
        if boot_clock() - began >= settings.patience_seconds:
            raise ClusterNotReady("\n".join(missing))
        if missing != said:
            for sentence in missing:
                _LOG.error("%s", sentence)
        said = missing
        await asyncio.sleep(settings.retry_seconds)


async def served(client: Client, resource: Resource, namespace: str) -> bool:
    """Whether the API server knows a kind, as far as we may ask; asked by reading an object that does not exist."""
    try:
        await client.find(resource, namespace, _NOBODY)
    except NotServed:
        return False
    except Refused:
        return True  # who may not read a kind is not told whether it exists; the permission is named instead
    return True


async def missing_permissions(client: Client, needs: Iterable[Need], namespaces: tuple[str, ...]) -> tuple[str, ...]:
    """A sentence for each verb that is not allowed."""
    asked = questions(needs, namespaces)
    allowed = await asyncio.gather(*(_allowed(client, question) for question in asked))
    return tuple(question.sentence for question, yes in zip(asked, allowed, strict=True) if not yes)


def questions(needs: Iterable[Need], namespaces: tuple[str, ...]) -> tuple[Question, ...]:
    """Each verb in each place where it is needed; no namespaces means the whole cluster."""
    places: tuple[str, ...] = namespaces or ("",)
    return tuple(
        Question(need, verb, place)
        for need in needs
        for verb in need.verbs
        for place in (("",) if need.everywhere or not need.resource.namespaced else places)
    )


async def _look(client: Client, namespaces: tuple[str, ...], lease_namespace: str) -> tuple[str, ...]:
    place = namespaces[0] if namespaces else "default"
    try:
        kinds = (SERVING_FLEETS, REQUEST_CLASSES, ROUTING_PLANS)
        known = await asyncio.gather(*(served(client, kind, place) for kind in kinds))
        crds = tuple(
            f"CRD {kind.title} is missing: apply the CRDs of this version"
            for kind, there in zip(kinds, known, strict=True)
            if not there
        )
        needs = (*NEEDS, WORKER_SET_NEED) if await served(client, LEADER_WORKER_SETS, place) else NEEDS
        verbs = await missing_permissions(client, needs, namespaces)
        lease = await missing_permissions(client, (LEASE_NEED,), (lease_namespace,))
    except KubeError as error:
        return (str(error),)
    return (*crds, *verbs, *lease)


async def _allowed(client: Client, question: Question) -> bool:
    kind = SELF_SUBJECT_ACCESS_REVIEWS
    document = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {},
        "spec": {"resourceAttributes": question.attributes},
    }
    answer = await client.create(kind, document)
    return bool(answer["status"].get("allowed"))
