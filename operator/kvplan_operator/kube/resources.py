"""The kinds that kvplan reads or writes, and the paths the API server serves them under.

Inputs: group, version, plural and kind. Outputs: URL paths. Must not do I/O; a name never changes the shape of a path.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from kvplan_operator.api.labels import GROUP, VERSION


@dataclass(frozen=True)
class Resource:
    """One kind as the API server serves it.

    Attributes:
        group: API group, empty for the core.
        version: of the group.
        plural: as in URLs and RBAC rules.
        kind: as in objects.
        namespaced: whether its objects live in namespaces.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """``apiVersion`` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def title(self) -> str:
        """What people and RBAC rules call it: ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The path of an object or of a collection; without a namespace, that of all namespaces.

        Raises:
            ValueError: a name that would be another path, or a namespace for a kind that has none.
        """
        if namespace is not None and not self.namespaced:
            raise ValueError(f"{self.title} has no namespaces, but {namespace!r} was given")
        place = [] if namespace is None else ["namespaces", _segment(namespace)]
        chosen = [_segment(part) for part in (name, subresource) if part is not None]
        root = ["apis", self.group] if self.group else ["api"]
        return "/" + "/".join([*root, self.version, *place, self.plural, *chosen])


def _segment(text: str) -> str:
    if text in {"", ".", ".."}:
        raise ValueError(f"{text!r} names no object")
    return quote(text, safe="")


SERVING_FLEETS: Final = Resource(GROUP, VERSION, "servingfleets", "ServingFleet")
REQUEST_CLASSES: Final = Resource(GROUP, VERSION, "requestclasses", "RequestClass")
ROUTING_PLANS: Final = Resource(GROUP, VERSION, "routingplans", "RoutingPlan")

NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
PODS: Final = Resource("", "v1", "pods", "Pod")
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
POD_TEMPLATES: Final = Resource("", "v1", "podtemplates", "PodTemplate")
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
REPLICA_SETS: Final = Resource("apps", "v1", "replicasets", "ReplicaSet")
HORIZONTAL_POD_AUTOSCALERS: Final = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")
EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event")
LEADER_WORKER_SETS: Final = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet")
CUSTOM_RESOURCE_DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
SELF_SUBJECT_ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
