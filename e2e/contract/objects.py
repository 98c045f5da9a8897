"""Objects of the contract suite and the paths they live under.

Inputs: names. Outputs: plain dictionaries, the smallest that the API server takes.
"""

from e2e.contract.client import Object
from e2e.crds.documents import SMALLEST, named

OURS = "/apis/kvplan.dev/v1alpha1"


def fleets(place: str) -> str:
    """The path of all ServingFleets of a namespace."""
    return f"{OURS}/namespaces/{place}/servingfleets"


def plans(place: str) -> str:
    """The path of all RoutingPlans of a namespace."""
    return f"{OURS}/namespaces/{place}/routingplans"


def config_maps(place: str) -> str:
    """The path of all ConfigMaps of a namespace."""
    return f"/api/v1/namespaces/{place}/configmaps"


def fleet(name: str, **spec: object) -> Object:
    """The smallest fleet, with other values in some fields of its spec."""
    document = named(SMALLEST["ServingFleet"], name)
    document["spec"] |= spec
    return document


def plan(name: str) -> Object:
    """The smallest plan; its name gets the prefix `chat-`."""
    return named(SMALLEST["RoutingPlan"], name)


def config_map(name: str, **data: str) -> Object:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def owned_by(owner: Object, dependent: Object, uid: str | None = None) -> Object:
    """The dependent with the owner in its metadata.

    Args:
        owner: as the API server returned it.
        dependent: in the same namespace.
        uid: another identity than the owner's.
    """
    reference = {name: owner[name] for name in ("apiVersion", "kind")}
    reference |= {"name": owner["metadata"]["name"], "uid": uid or owner["metadata"]["uid"], "controller": True}
    return {**dependent, "metadata": {**dependent["metadata"], "ownerReferences": [reference]}}


def partial(document: Object, **parts: object) -> Object:
    """What names an object, and some of its parts: the body of an apply."""
    named_only = {name: document[name] for name in ("apiVersion", "kind")}
    return {**named_only, "metadata": {"name": document["metadata"]["name"]}, **parts}
