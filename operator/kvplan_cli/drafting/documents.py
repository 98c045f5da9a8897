"""A ServingFleet and a RequestClass for one model, drafted from its servers and its traffic.

Inputs: ``Server`` values of one model, ``Traffic``. Output: YAML text whose comments say what to fill in. What is not
known gets a round placeholder that is named there. Nothing is applied: the policy is DryRun. Pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kvplan_cli.drafting.servers import Server
from kvplan_cli.drafting.traffic import WINDOW_SECONDS, Traffic
from kvplan_cli.files import yaml_documents
from kvplan_operator.api.labels import API_VERSION, FLEET_LABEL, GPU_PRODUCT_LABEL
from kvplan_operator.model.fit_manifests import DEFAULT_SLO_MILLISECONDS, object_name
from kvplan_operator.model.priors.model_presets import find_preset

LONGEST_FLEET = 52
PLACEHOLDER = Traffic(1_000, 1_000, 4_000, ((500, 150), (900, 500), (1_000, 1_000)))
"""Stands where nothing was measured; every use of it is named in a comment."""
_SHOWN_TOLERATION = ("key", "operator", "value", "effect")

Document = dict[str, object]


@dataclass(frozen=True)
class Draft:
    """One fleet with its class, and what a person has to look at in each.

    Attributes:
        fleet: the ServingFleet.
        request_class: its one RequestClass.
        fleet_notes: what to fill in or check in the fleet.
        class_notes: the same of the class.
    """

    fleet: Document
    request_class: Document
    fleet_notes: tuple[str, ...]
    class_notes: tuple[str, ...]

    @property
    def text(self) -> str:
        """Both as YAML, each below its notes."""
        parts = ((self.fleet_notes, self.fleet), (self.class_notes, self.request_class))
        return "---\n".join(f"{_comment(notes)}{yaml_documents([document])}" for notes, document in parts)


def drafts(servers: Sequence[Server], traffic: dict[str, Traffic], namespace: str) -> tuple[Draft, ...]:
    """One draft per model, by name.

    Args:
        servers: of the namespace.
        traffic: by model; a model without an entry was not measured.
        namespace: of all objects.
    """
    models = sorted({server.model for server in servers})
    own = {model: [server for server in servers if server.model == model] for model in models}
    return tuple(_draft(model, own[model], traffic.get(model, Traffic()), namespace) for model in models)


def fleet_name(model: str) -> str:
    """A fleet's name after its model: ``Qwen/Qwen3-32B`` gives ``qwen3-32b``."""
    return object_name(model.rstrip("/").rpartition("/")[2])[:LONGEST_FLEET].rstrip("-")


def _draft(model: str, servers: Sequence[Server], traffic: Traffic, namespace: str) -> Draft:
    name = fleet_name(model)
    request_class, assumed = _class(name, traffic, namespace)
    notes = (*_measured_notes(traffic), *assumed)
    return Draft(_fleet(name, model, servers, namespace), request_class, tuple(_fleet_notes(model, servers)), notes)


def _fleet(name: str, model: str, servers: Sequence[Server], namespace: str) -> Document:
    first, known = servers[0], find_preset(model)
    lengths = {server.number("max-model-len") for server in servers} - {None}
    spec: Document = {
        "model": {"name": model}
        | ({"preset": known.facts.name} if known else {})
        | ({"maxModelLen": min(n for n in lengths if n)} if lengths else {}),
        "nodes": {"selector": {"matchLabels": _node_labels(servers)}, "gpuResource": first.gpu_resource}
        | ({"tolerations": _tolerations(servers)} if any(s.tolerations for s in servers) else {}),
        "configurations": list(_configurations(servers)),
        "engine": {"container": first.container} | ({"version": first.version} if first.version else {}),
        "planPolicy": {"mode": "DryRun"},
    }
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": API_VERSION, "kind": "ServingFleet", "metadata": metadata, "spec": spec}


def _node_labels(servers: Sequence[Server]) -> dict[str, str]:
    """Labels that every server asks for; else the GPU product that all are on; else none, which selects all nodes."""
    shared = set(servers[0].node_selector.items())
    for server in servers[1:]:
        shared &= set(server.node_selector.items())
    if shared:
        return dict(sorted(shared))
    products = {product for server in servers for product in server.products}
    return {GPU_PRODUCT_LABEL: products.pop()} if len(products) == 1 else {}


def _tolerations(servers: Sequence[Server]) -> list[dict[str, object]]:
    found = [
        {name: entry[name] for name in _SHOWN_TOLERATION if name in entry}
        for server in servers
        for entry in server.tolerations
    ]
    return [entry for position, entry in enumerate(found) if entry not in found[:position]]


def _configurations(servers: Sequence[Server]) -> Iterator[Document]:
    taken: dict[str, int] = {}
    for server in servers:
        shape = f"tp{server.tensor_parallel}" + (
            f"pp{server.pipeline_parallel}" if server.pipeline_parallel > 1 else ""
        )
        taken[shape] = taken.get(shape, 0) + 1
        sequences = server.number("max-num-seqs")
        yield {
            "name": shape if taken[shape] == 1 else f"{shape}-{taken[shape]}",
            "tensorParallel": server.tensor_parallel,
            "pipelineParallel": server.pipeline_parallel,
            **({"gpuProduct": server.products[0]} if len(server.products) == 1 else {}),
            "deployment": server.deployment,
            **({"maxSequences": sequences} if sequences else {}),
        }


def _class(fleet: str, traffic: Traffic, namespace: str) -> tuple[Document, tuple[str, ...]]:
    """The class, and a note for each number that was not measured."""
    rate = traffic.requests_per_second_milli or PLACEHOLDER.requests_per_second_milli
    prompt = traffic.prompt_mean or PLACEHOLDER.prompt_mean
    p95 = traffic.prompt_p95 or (None if traffic.prompt_mean else PLACEHOLDER.prompt_p95)
    quantiles = traffic.output_quantiles or PLACEHOLDER.output_quantiles
    longest = quantiles[-1][1]
    spec: Document = {
        "slo": {"latencyMilliseconds": DEFAULT_SLO_MILLISECONDS},
        "tokens": {"input": prompt} | ({"inputP95": max(p95, prompt or 0)} if p95 else {}) | {"maxOutput": longest},
        "arrivals": {"requestsPerSecondMilli": rate},
        "outputLengths": {"quantiles": [{"probabilityMilli": level, "tokens": n} for level, n in quantiles]},
    }
    metadata = {"name": f"{fleet}-all", "namespace": namespace, "labels": {FLEET_LABEL: fleet}}
    document: Document = {"apiVersion": API_VERSION, "kind": "RequestClass", "metadata": metadata, "spec": spec}
    return document, tuple(_class_notes(traffic))


def _class_notes(traffic: Traffic) -> Iterator[str]:
    yield f"FILL IN spec.slo.latencyMilliseconds: {DEFAULT_SLO_MILLISECONDS} is a placeholder for what you promise"
    if traffic.requests_per_second_milli is None:
        yield "FILL IN spec.arrivals.requestsPerSecondMilli: 1000 (one request a second) is a placeholder"
    if traffic.prompt_mean is None:
        yield "FILL IN spec.tokens.input and inputP95: mean and P95 prompt in tokens; 1000 and 4000 are placeholders"
    if not traffic.output_quantiles:
        yield "FILL IN spec.outputLengths.quantiles and spec.tokens.maxOutput: placeholders (kvplan fit reads traces)"
    yield "all requests are one class: split it by spec.match (headers, models) where promises or lengths differ"


def _measured_notes(traffic: Traffic) -> Iterator[str]:
    if traffic != Traffic():
        yield (
            f"measured from the engines over the last {WINDOW_SECONDS // 60} minutes; once routers run, remove "
            "arrivals and outputLengths, and they are measured anew all the time"
        )


def _fleet_notes(model: str, servers: Sequence[Server]) -> Iterator[str]:
    yield "a plan is only proposed (planPolicy.mode is DryRun); the Deployments below are not touched"
    if find_preset(model) is None:
        yield (
            f"FILL IN spec.model: the shipped data do not know {model}; state weightsBytes, layers, kvHeads and "
            "headDim, or measured numbers in each configuration"
        )
    if not _node_labels(servers):
        yield "FILL IN spec.nodes.selector: as it is it selects every node"
    for server in servers:
        if not server.one_by_one:
            yield (
                f"before a plan is applied, set maxSurge 0 and maxUnavailable 1 in the strategy of Deployment "
                f"{server.deployment}: a new pod would wait for GPUs that the old one holds"
            )
    for other in servers[1:]:
        if other.container != servers[0].container:
            yield f"Deployment {other.deployment} calls its container {other.container}: one name per fleet is possible"


def _comment(notes: Sequence[str]) -> str:
    return "".join(f"# {note}\n" for note in notes)
