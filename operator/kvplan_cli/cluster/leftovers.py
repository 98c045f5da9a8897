"""Engines that kvplan made for fleets that are gone. Deleting a fleet leaves them serving; this finds them.

Inputs: Deployments, LeaderWorkerSets, ConfigMaps labelled with a fleet, and the fleets that exist. Output: those that
kvplan made and whose fleet does not exist, engines before the files they read. Adopted Deployments and whatever people
labelled themselves are never among them. Pure.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kvplan_operator.act.config_file import COMPONENT, COMPONENT_LABEL
from kvplan_operator.api.labels import FLEET_LABEL, SET_LABEL
from kvplan_operator.kube.resources import CONFIG_MAPS, DEPLOYMENTS, LEADER_WORKER_SETS, Resource
from kvplan_operator.model.pods import Object, is_terminating, labels_of, name_of, part

KINDS = (DEPLOYMENTS, LEADER_WORKER_SETS, CONFIG_MAPS)
"""Kinds that kvplan makes for engines, in the order in which they go."""


@dataclass(frozen=True)
class Leftover:
    """One object.

    Attributes:
        kind: of it.
        namespace: of it.
        name: of it.
        uid: of it; another object under the name is left alone.
        fleet: that is gone.
        replicas: groups that it runs; 0 for files.
    """

    kind: Resource
    namespace: str
    name: str
    uid: str
    fleet: str
    replicas: int = 0

    @property
    def title(self) -> str:
        """As kubectl names it."""
        return f"{self.kind.title}/{self.name}"


def leftovers(items: Iterable[Object], fleets: Collection[tuple[str, str]]) -> tuple[Leftover, ...]:
    """What is left of fleets that are gone.

    Args:
        items: objects with the fleet label.
        fleets: (namespace, name) of every fleet there is, those being deleted included.
    """
    found = [_leftover(item) for item in items if _made_by_kvplan(item) and not is_terminating(item)]
    gone = (one for one in found if (one.namespace, one.fleet) not in fleets)
    return tuple(sorted(gone, key=lambda one: (one.namespace, one.fleet, KINDS.index(one.kind), one.name)))


def _leftover(item: Object) -> Leftover:
    kind = next(kind for kind in KINDS if kind.kind == item["kind"])
    metadata, replicas = part(item, "metadata"), part(item, "spec").get("replicas", 0)
    return Leftover(
        kind=kind,
        namespace=str(metadata.get("namespace")),
        name=name_of(item),
        uid=str(metadata.get("uid")),
        fleet=labels_of(item)[FLEET_LABEL],
        replicas=replicas,
    )


def _made_by_kvplan(item: Object) -> bool:
    labels = labels_of(item)
    if FLEET_LABEL not in labels:
        return False
    return SET_LABEL in labels if item["kind"] != CONFIG_MAPS.kind else labels.get(COMPONENT_LABEL) == COMPONENT
