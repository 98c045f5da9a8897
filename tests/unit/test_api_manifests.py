"""What people get wrong in manifests, and the line they are told."""

import copy
from typing import Any

import pytest

from kvplan_operator.api.manifests import load_manifests, parse_object
from kvplan_operator.errors import ManifestError

Document = dict[str, Any]

API = "kvplan.dev/v1alpha1"
REMOVED = object()


def fleet(**spec: Any) -> Document:
    base = {
        "model": {"name": "m"},
        "nodes": {"selector": {}},
        "configurations": [{"name": "tp1", "tensorParallel": 1}],
    }
    kept = {name: value for name, value in {**base, **spec}.items() if value is not REMOVED}
    return {"apiVersion": API, "kind": "ServingFleet", "metadata": {"name": "chat"}, "spec": kept}


def request_class(**spec: Any) -> Document:
    base = {"slo": {"latencyMilliseconds": 1000}, "tokens": {"maxOutput": 100}}
    return {"apiVersion": API, "kind": "RequestClass", "metadata": {"name": "c"}, "spec": {**base, **spec}}


def plan(**spec: Any) -> Document:
    base = {
        "fleetName": "chat",
        "inputsDigest": "0" * 64,
        "method": "Certified",
        "groups": [{"configuration": "tp1", "replicas": 1, "kvCapacityTokens": 100, "budgetTokens": 80,
                    "maxSequences": 4}],
        "classes": [class_plan()],
    }  # fmt: skip
    return {
        "apiVersion": API,
        "kind": "RoutingPlan",
        "metadata": {"name": "chat-0"},
        "spec": {**base, **spec},
    }


def class_plan(**fields: Any) -> Document:
    route = {"configuration": "tp1", "shareMilli": 900, "reservationTokens": 32}
    base = {"name": "c", "reservationTokens": 32, "fractileMilli": 909, "routes": [route], "admitMilli": 900,
            "maxPromptTokens": 10, "maxOutputTokens": 10}  # fmt: skip
    return {**base, **fields}


def node(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


WRONG: dict[str, tuple[Document, str]] = {
    "a misspelt field is matched with the one that was meant": (
        fleet(configuratons=[]),
        "document 1 (ServingFleet chat): spec.configuratons is []: rename it to configurations",
    ),
    "an unknown field is answered with the known ones": (
        fleet(solver={"x": 1}),
        "spec.solver.x is 1: remove it; known fields here are method, timeLimitSeconds, gapTargetMilli",
    ),
    "null is no value": (
        fleet(nodes={"selector": {}, "maxGpus": None}),
        "spec.nodes.maxGpus is null: remove the field: a field that is left out has its default",
    ),
    "null inside a list is no value": (
        fleet(configurations=[None]),
        "spec.configurations[0] is null: remove the entry, or give it a value",
    ),
    "a number in quotes is no number": (
        fleet(configurations=[{"name": "tp1", "tensorParallel": "2"}]),
        'spec.configurations[0].tensorParallel is "2": use an integer from 1 to 64 (GPUs of one stage',
    ),
    "true is no integer": (
        fleet(configurations=[{"name": "tp1", "tensorParallel": True}]),
        "spec.configurations[0].tensorParallel is true: use an integer from 1 to 64",
    ),
    "a fraction is no integer": (
        fleet(objective={"headroomMilli": 0.2}),
        "spec.objective.headroomMilli is 0.2: use an integer from 0 to 1000000000",
    ),
    "yes is no truth value": (fleet(suspend="yes"), 'spec.suspend is "yes": use true or false'),
    "a version that YAML read as a number": (
        fleet(engine={"version": 0.32}),
        "spec.engine.version is 0.32: use a string of 1 to 64 characters that matches",
    ),
    "a word that is not among the choices": (
        fleet(planPolicy={"mode": "auto"}),
        'spec.planPolicy.mode is "auto": use one of DryRun, Approve, Auto',
    ),
    "a required field that is missing": (
        fleet(nodes=REMOVED),
        "spec.nodes is absent: add a mapping with selector (The nodes whose GPUs the fleet may use)",
    ),
    "no candidate configuration": (
        fleet(configurations=[]),
        "spec.configurations is []: use a list of 1 to 32 entries",
    ),
    "a list where a mapping belongs": (fleet(model=[]), "spec.model is []: use a mapping"),
    "two configurations of one name": (
        fleet(configurations=[{"name": "a", "tensorParallel": 1}, {"name": "a", "tensorParallel": 2}]),
        "spec.configurations is [",
    ),
    "a model without name and preset": (
        fleet(model={"layers": 3}),
        "spec.model.name is absent: give model.name, model.preset or both",
    ),
    "more GPUs at least than at most": (
        fleet(nodes={"selector": {}, "minGpus": 3, "maxGpus": 2}),
        "spec.nodes.minGpus is 3: use a minGpus of at most maxGpus",
    ),
    "two radii": (
        fleet(uncertainty={"radius": {"tokens": 1, "auto": True}}),
        'spec.uncertainty.radius is {"tokens": 1, "auto": true}: give exactly one of relativeMilli, tokens',
    ),
    "a radius that is switched off": (
        fleet(uncertainty={"radius": {"auto": False}}),
        'spec.uncertainty.radius is {"auto": false}: give exactly one of relativeMilli, tokens and',
    ),
    "a radius in tokens for a factor": (
        fleet(uncertainty={"ambiguity": "Scale", "radius": {"tokens": 5}}),
        'spec.uncertainty.radius is {"tokens": 5}: with ambiguity Scale give radius.relativeMilli',
    ),
    "two sources of measurements": (
        fleet(prometheus={"profile": "a", "url": "http://b"}),
        'spec.prometheus is {"profile": "a", "url": "http://b"}: give either profile or url',
    ),
    "an address with credentials": (
        fleet(prometheus={"url": "http://user:secret@host"}),
        "spec.prometheus.url is ",
    ),
    "a digest in capitals": (fleet(acceptedPlan={"digest": "A" * 64}), "spec.acceptedPlan.digest is "),
    "a header listed twice": (
        fleet(routing={"routers": {"urls": ["http://a", "http://a"]}}),
        "spec.routing.routers.urls is [\"http://a\", \"http://a\"]: http://a occurs twice",
    ),
    "In without values": (
        fleet(nodes={"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
        "spec.nodes.selector.matchExpressions[0].values is absent: give values with In and NotIn",
    ),
    "a shared prefix longer than the prompt": (
        request_class(tokens={"maxOutput": 9, "input": 5, "sharedPrefix": 6}),
        "document 1 (RequestClass c): spec.tokens.sharedPrefix is 6: a shared prefix is part of every prompt",
    ),
    "a 95th percentile above the maximum": (
        request_class(tokens={"maxOutput": 9, "inputP95": 6, "inputMax": 5}),
        "spec.tokens.inputP95 is 6: use an inputP95 of at most inputMax",
    ),
    "a mean above the maximum": (
        request_class(tokens={"maxOutput": 9, "input": 6, "inputMax": 5}),
        "spec.tokens.input is 6: use an input of at most inputMax",
    ),
    "lengths that fall": (
        request_class(outputLengths={"quantiles": [{"probabilityMilli": 0, "tokens": 9},
                                                   {"probabilityMilli": 500, "tokens": 3}]}),
        "lengths must not fall while probabilities rise",
    ),
    "quantiles above the cap": (
        request_class(outputLengths={"quantiles": [{"probabilityMilli": 0, "tokens": 101}]}),
        "spec.outputLengths is ",
    ),
    "two sources of lengths": (
        request_class(outputLengths={"prometheus": {}, "configMapRef": {"name": "a", "key": "b"}}),
        "give at most one of prometheus, configMapRef and quantiles",
    ),
    "a header matched in two ways": (
        request_class(match={"headers": [{"name": "a", "exact": "b", "prefix": "c"}]}),
        "spec.match.headers[0] is ",
    ),
    "shares that do not add up": (
        plan(classes=[class_plan(admitMilli=1000)]),
        "spec.classes[0].admitMilli is 1000: the shares of routes must add up to admitMilli",
    ),
    "a prefix kept where nothing goes": (
        plan(classes=[class_plan(prefixCachedOn=["tp8"])]),
        'spec.classes[0].prefixCachedOn is ["tp8"]: list only configurations that the class is routed to',
    ),
    "a route that takes more than the class reserves": (
        plan(classes=[class_plan(reservationTokens=16)]),
        "a route reserves at most the class's reservationTokens",
    ),
    "a reservation that is no multiple of the block": (
        plan(classes=[class_plan(reservationTokens=33)]),
        "reservations must be multiples of blockTokens",
    ),
    "a route to a configuration without groups": (
        plan(groups=[]),
        "route only to configurations that groups lists",
    ),
    "fewer placements than replicas": (
        plan(groups=[{"configuration": "tp1", "replicas": 2, "kvCapacityTokens": 100, "budgetTokens": 80,
                      "maxSequences": 4, "placements": [{"stages": ["n1"]}]}]),
        "give one placement per replica, or none",
    ),
    "a budget above the capacity": (
        plan(groups=[{"configuration": "tp1", "replicas": 1, "kvCapacityTokens": 100, "budgetTokens": 101,
                      "maxSequences": 4}]),
        "spec.groups[0].budgetTokens is 101: use a budgetTokens of at most kvCapacityTokens",
    ),
    "a plan named after another fleet": (
        plan(fleetName="code"),
        "name a plan <fleet>-<first 10 hex digits of its digest>",
    ),
    "a version that does not exist": (
        {**fleet(), "apiVersion": "kvplan.dev/v2"},
        'apiVersion is "kvplan.dev/v2": use kvplan.dev/v1alpha1',
    ),
    "a kind that does not exist": (
        {**fleet(), "kind": "ServingFlet"},
        'kind is "ServingFlet": use one of ServingFleet, RequestClass, RoutingPlan',
    ),
    "a name that leaves no room for plans": (
        {**fleet(), "metadata": {"name": "a" * 53}},
        f'metadata.name is "{"a" * 53}": use a name of at most 52 characters without dots',
    ),
    "a fleet whose plans could not name it": (
        {**fleet(), "metadata": {"name": "chat.v2"}},
        'metadata.name is "chat.v2": use a name of at most 52 characters without dots',
    ),
    "a class that no plan could name": (
        {**request_class(), "metadata": {"name": "chat.v2"}},
        'metadata.name is "chat.v2": use a name of at most 63 characters without dots',
    ),
    "a key that no label can have": (
        fleet(nodes={"selector": {"matchLabels": {"my pool": "a"}}}),
        'spec.nodes.selector.matchLabels is {"my pool": "a"}: use label keys such as kvplan.dev/pool',
    ),
    "a label name that would change a query": (
        request_class(outputLengths={"prometheus": {"matchLabels": {'a"}': "b"}}}),
        'spec.outputLengths.prometheus.matchLabels is {"a\\"}": "b"}: use label names such as model_name',
    ),
    "a Deployment name that no Deployment can have": (
        fleet(configurations=[{"name": "tp1", "tensorParallel": 1, "deployment": "chat..tp1"}]),
        'spec.configurations[0].deployment is "chat..tp1": use a string',
    ),
    "an address with a blank that looks like none": (
        fleet(prometheus={"url": "http://a/\u00a0"}),
        "spec.prometheus.url is ",
    ),
    "blocks of no tokens": (plan(blockTokens=0), "spec.blockTokens is 0: use an integer from 1 to 1024"),
    "no name at all": ({**fleet(), "metadata": {}}, "metadata.name is absent: add "),
}  # fmt: skip


@pytest.mark.parametrize(("document", "line"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_document_is_answered_with_field_value_and_remedy(document: Document, line: str) -> None:
    with pytest.raises(ManifestError) as refusal:
        load_manifests([document])
    assert len(refusal.value.problems) == 1, str(refusal.value)
    assert line in str(refusal.value)


def test_the_same_documents_without_the_mistake_are_accepted() -> None:
    manifests = load_manifests([fleet(), request_class(), plan()])
    assert [len(manifests.fleets), len(manifests.classes), len(manifests.plans)] == [1, 1, 1]


NO_OBJECT: dict[str, tuple[object, str]] = {
    "a number": (3, "document 1: the document is 3: write a mapping"),
    "a list": ([1], "document 1: the document is [1]: write a mapping"),
    "no kind": ({"apiVersion": "v1"}, "document 1: kind is absent"),
    "a kind that is no word": ({"apiVersion": "v1", "kind": 1}, "document 1: kind is 1"),
    "no apiVersion": ({"kind": "Node"}, "document 1: apiVersion is absent"),
}


@pytest.mark.parametrize(("document", "line"), NO_OBJECT.values(), ids=NO_OBJECT.keys())
def test_what_is_no_object_is_refused_by_its_place(document: object, line: str) -> None:
    with pytest.raises(ManifestError, match="document 1") as refusal:
        load_manifests([document])
    assert line in str(refusal.value)


def test_every_problem_of_every_document_is_told_at_once() -> None:
    with pytest.raises(ManifestError) as refusal:
        load_manifests([fleet(suspend=1, solver={"gapTargetMilli": -1}), None, request_class(priority="high")])
    places = [(problem.subject, problem.field) for problem in refusal.value.problems]
    assert places == [
        ("document 1 (ServingFleet chat)", "spec.solver.gapTargetMilli"),
        ("document 1 (ServingFleet chat)", "spec.suspend"),
        ("document 3 (RequestClass c)", "spec.priority"),
    ]


def test_a_long_value_is_shortened_in_the_message() -> None:
    with pytest.raises(ManifestError) as refusal:
        load_manifests([fleet(solver="x" * 1000)])
    assert len(refusal.value.problems[0].value) == 80


def test_the_same_object_twice_is_refused_and_both_places_are_named() -> None:
    with pytest.raises(ManifestError, match=r"document 2 .* drop this copy of document 1 .ServingFleet chat."):
        load_manifests([fleet(), fleet()])


def test_the_same_name_in_two_namespaces_is_two_objects() -> None:
    other = copy.deepcopy(fleet())
    other["metadata"]["namespace"] = "elsewhere"
    assert [f.metadata.namespace for f in load_manifests([fleet(), other]).fleets] == ["default", "elsewhere"]


def test_lists_are_opened_and_core_objects_pass_as_they_are() -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    listed = {"apiVersion": "v1", "kind": "List", "items": [node("a"), node("b"), pod, deployment]}
    manifests = load_manifests([listed, config_map, service])
    assert manifests.nodes == (node("a"), node("b"))
    assert (manifests.pods, manifests.config_maps) == ((pod,), (config_map,))
    assert (manifests.deployments, manifests.others) == ((deployment,), (service,))


def test_an_item_of_a_list_is_named_by_its_position() -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [node("a"), fleet(suspend=0)]}
    with pytest.raises(ManifestError, match=r"document 1, item 2 \(ServingFleet chat\): spec.suspend is 0"):
        load_manifests([listed])


def test_one_object_of_another_group_is_no_object_of_ours() -> None:
    with pytest.raises(ManifestError, match=r'apiVersion is "v1": use kvplan\.dev/v1alpha1'):
        parse_object(node("a"))
