"""A first fleet drafted from vLLM Deployments and their Prometheus, and what a fleet that is gone left behind."""

from typing import Any

import pytest
import yaml

from kvplan_cli.cluster.containers import flag_values, is_pod_of
from kvplan_cli.cluster.leftovers import leftovers
from kvplan_cli.drafting.documents import drafts, fleet_name
from kvplan_cli.drafting.servers import Server, servers
from kvplan_cli.drafting.traffic import FINISHED, OUTPUTS, PROMPT_SUM, PROMPTS, Traffic, traffic_of, traffic_queries
from kvplan_operator.api.manifests import load_manifests
from kvplan_operator.model.inventory import inventory_from_objects
from kvplan_operator.model.problem import build_problem
from kvplan_operator.model.series import Answer, Reply, Series, Unanswered
from tests.planning import node

Object = dict[str, Any]


def deployment(name: str, *words: str, image: str = "vllm/vllm-openai:v0.32.0", **rest: Any) -> Object:
    """A Deployment; ``args`` instead of ``command``, ``pod``, ``labels``, ``resources`` and ``strategy`` replace."""
    resources = rest.get("resources", {"limits": {"nvidia.com/gpu": "2"}})
    container = {"name": "vllm", "image": image, "resources": resources}
    container |= {"args": list(rest["args"])} if "args" in rest else {"command": list(words)}
    spec = {"containers": [container], **rest.get("pod", {})}
    strategy = rest.get("strategy", {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}})
    metadata = {"name": name, "namespace": "team", "labels": rest.get("labels", {})}
    return {"kind": "Deployment", "metadata": metadata, "spec": {"template": {"spec": spec}, "strategy": strategy}}


def pod(of: str, on: str) -> Object:
    owner = {"kind": "ReplicaSet", "name": f"{of}-5d9c"}
    metadata = {"name": f"{of}-5d9c-x", "labels": {"pod-template-hash": "5d9c"}, "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": {"nodeName": on}}


SERVE = ("vllm", "serve", "Qwen/Qwen3-32B")


def found(item: Object) -> Server:
    [server], _ = servers([item], [pod("chat", "a")], [node("a")])
    return server


MODELS: dict[str, Object] = {
    "after vllm serve": deployment("chat", *SERVE, "--port=1"),
    "as --model of the module": deployment("chat", "python3", "-m", "vllm.entrypoints.openai.api_server", "--model",
                                           "Qwen/Qwen3-32B"),
    "as --model= in args": deployment("chat", args=["--model=Qwen/Qwen3-32B"]),
    "as the first word of args": deployment("chat", args=["Qwen/Qwen3-32B", "--port", "1"]),
}  # fmt: skip


@pytest.mark.parametrize("case", MODELS)
def test_the_model_is_found(case: str) -> None:
    assert found(MODELS[case]).model == "Qwen/Qwen3-32B"


def test_sizes_version_gpus_and_nodes_are_read_off() -> None:
    words = (*SERVE, "-tp", "4", "--pipeline_parallel_size=2", "--max-num-seqs", "64", "--enable-prefix-caching")
    chat = found(deployment("chat", *words))
    assert (chat.tensor_parallel, chat.pipeline_parallel, chat.version) == (4, 2, "0.32.0")
    assert (chat.number("max-num-seqs"), chat.number("max-model-len")) == (64, None)
    assert (chat.gpu_resource, chat.products, chat.one_by_one) == ("nvidia.com/gpu", ("NVIDIA-H200",), True)
    assert not found(deployment("chat", *SERVE, strategy={})).one_by_one


def test_flags_are_read_as_vllm_does() -> None:
    words = ("--a", "1", "--b=2", "--c", "--a", "3", "-n", "2", "--d_e", "x", "--last")
    assert flag_values(words) == {"a": "3", "b": "2", "c": "", "nnodes": "2", "d-e": "x", "last": ""}


LEFT_OUT: dict[str, tuple[Object, str]] = {
    "a shell": (deployment("chat", "sh", "-c", "vllm serve m"), "a shell hides the engine's flags"),
    "another program": (deployment("chat", "start-vllm"), "kvplan can read `vllm serve`"),
    "no model": (deployment("chat", "vllm", "serve", "--port=1"), "its command names no model"),
    "no GPU": (deployment("chat", *SERVE, resources={}), "asks for no GPU"),
    "a size that is none": (deployment("chat", *SERVE, "-tp=two"), "--tensor-parallel-size is 'two'"),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_what_cannot_be_read_is_left_out_and_told(case: str) -> None:
    item, message = LEFT_OUT[case]
    assert servers([item], [], [])[0] == ()
    [remark] = servers([item], [], [])[1]
    assert remark.startswith("Deployment chat is left out: ")
    assert message in remark


def test_other_programs_and_engines_of_kvplan_are_passed_over() -> None:
    ours = deployment("ours", *SERVE, labels={"kvplan.dev/set": "ours"})
    assert servers([deployment("web", "nginx", image="nginx:1"), ours], [], []) == ((), ())


def test_pods_belong_to_a_deployment_by_their_replica_set() -> None:
    assert is_pod_of(pod("chat", "a"), "chat")
    assert not is_pod_of(pod("chat-large", "a"), "chat")


def series(value: float, **labels: str) -> Series:
    return Series(labels, value, 0.0)


def buckets(**counts: float) -> Answer:
    return Answer(
        tuple(series(count, le=edge.removeprefix("le").replace("Inf", "+Inf")) for edge, count in counts.items())
    )


MEASURED: dict[str, Reply] = {
    FINISHED: Answer((series(7_200.0),)),
    PROMPT_SUM: Answer((series(500_000.0),)),
    PROMPTS: buckets(le500=500, le1000=950, le2000=1000, leInf=1000),
    OUTPUTS: buckets(le100=500, le200=900, le400=1000, leInf=1000),
}


def test_rates_and_lengths_are_those_of_the_engines() -> None:
    traffic = traffic_of(MEASURED, "p", 0.0)
    assert (traffic.requests_per_second_milli, traffic.prompt_mean, traffic.prompt_p95) == (2_000, 500, 1_000)
    assert dict(traffic.output_quantiles)[500] == 100
    assert traffic.output_quantiles[-1] == (1_000, 400)


NOTHING: dict[str, dict[str, Reply]] = {
    "no answer": {ask: Unanswered("down") for ask in MEASURED},
    "empty answers": {ask: Answer() for ask in MEASURED},
    "zeros": {
        FINISHED: Answer((series(0.0),)), PROMPT_SUM: Answer((series(0.0),)),
        PROMPTS: buckets(le5=0, leInf=0), OUTPUTS: buckets(leInf=0),
    },
    "no number": {FINISHED: Answer((series(float("nan")),)), PROMPT_SUM: Answer((series(float("inf")),))},
}  # fmt: skip


@pytest.mark.parametrize("case", NOTHING)
def test_what_is_not_measured_is_unknown_and_not_zero(case: str) -> None:
    assert traffic_of(NOTHING[case], "p", 0.0) == Traffic()


def test_lengths_beyond_the_last_bucket_have_no_number() -> None:
    beyond = MEASURED | {OUTPUTS: buckets(le100=600, leInf=1000), PROMPTS: buckets(le100=5, leInf=1000)}
    traffic = traffic_of(beyond, "p", 0.0)
    assert traffic.prompt_p95 is None
    assert max(tokens for _, tokens in traffic.output_quantiles) <= 100


def test_queries_are_about_the_servers_of_the_namespace_alone() -> None:
    queries = traffic_queries("team", [found(deployment("chat", *SERVE))])
    assert set(queries) == set(MEASURED)
    assert all('namespace="team"' in text and 'pod=~"(chat-).*"' in text for text in queries.values())


def test_a_draft_is_valid_and_can_be_planned_measured_or_not() -> None:
    pool = {"nodeSelector": {"pool": "serving", "disk": "fast"}, "tolerations": [{"operator": "Exists"}]}
    both = [
        deployment("chat", *SERVE, "--max-num-seqs=64", pod=pool),
        deployment("chat-2", *SERVE, "--max-model-len=8192", pod={"nodeSelector": {"pool": "serving"}}),
    ]
    read, _ = servers(both, [pod("chat", "a"), pod("chat-2", "a")], [node("a")])
    for traffic in ({}, {"Qwen/Qwen3-32B": traffic_of(MEASURED, "p", 0.0)}):
        [draft] = drafts(read, traffic, "team")
        manifests = load_manifests(yaml.safe_load_all(draft.text))
        [fleet], [request_class] = manifests.fleets, manifests.classes
        assert [(k.name, k.deployment) for k in fleet.spec.configurations] == [("tp1", "chat"), ("tp1-2", "chat-2")]
        assert fleet.spec.nodes.selector.match_labels == {"pool": "serving"}
        problem = build_problem(fleet, [request_class], inventory_from_objects([node("a")], [], fleet), {})
        assert problem.instance.classes[0].arrival_rate == (2.0 if traffic else 1.0)
        assert ("FILL IN spec.arrivals" in draft.text) == (not traffic)


def test_what_a_person_has_to_look_at_is_said_above_the_document() -> None:
    unknown = deployment("chat", "vllm", "serve", "/models/ours", strategy={})
    other = deployment("large", "vllm", "serve", "/models/ours")
    other["spec"]["template"]["spec"]["containers"][0]["name"] = "server"
    [draft] = drafts(servers([unknown, other], [], [])[0], {}, "team")
    told = " ".join(draft.fleet_notes)
    for words in ("FILL IN spec.model", "FILL IN spec.nodes.selector", "set maxSurge 0", "calls its container server"):
        assert words in told


def test_fleets_are_named_after_their_models() -> None:
    assert [fleet_name(m) for m in ("Qwen/Qwen3-32B", "/models/Our_Model/", "x" * 80)] == [
        "qwen3-32b", "our-model", "x" * 52,
    ]  # fmt: skip


def engine(kind: str, name: str, *, fleet: str = "gone", **rest: Any) -> Object:
    """An object as kvplan made it; ``labels`` and ``metadata`` replace."""
    made = {"kvplan.dev/fleet": fleet, "kvplan.dev/set": name, "app.kubernetes.io/component": "engine-config"}
    metadata = {"namespace": "team", "name": name, "uid": name, "labels": rest.get("labels", made)}
    return {"kind": kind, "metadata": metadata | rest.get("metadata", {}), "spec": {"replicas": 2}}


def test_what_is_left_of_fleets_that_are_gone_is_found_engines_first() -> None:
    items = [
        engine("ConfigMap", "flags"),
        engine("Deployment", "tp1"),
        engine("LeaderWorkerSet", "tp8"),
        engine("Deployment", "serving", fleet="chat"),
        engine("Deployment", "elsewhere", fleet="chat", metadata={"namespace": "other"}),
    ]
    found = leftovers(items, {("team", "chat")})
    assert [one.title for one in found] == [
        "deployments.apps/elsewhere",
        "deployments.apps/tp1",
        "leaderworkersets.leaderworkerset.x-k8s.io/tp8",
        "configmaps/flags",
    ]


KEPT: dict[str, Object] = {
    "a fleet that exists": engine("Deployment", "tp1", fleet="chat"),
    "an adopted Deployment": engine("Deployment", "mine", labels={"kvplan.dev/fleet": "gone"}),
    "lengths that people wrote": engine("ConfigMap", "lengths", labels={"kvplan.dev/fleet": "gone"}),
    "what goes already": engine("Deployment", "tp1", metadata={"deletionTimestamp": "2030-01-01T00:00:00Z"}),
    "an object without a fleet": engine("Deployment", "tp1", labels={"kvplan.dev/set": "tp1"}),
}


@pytest.mark.parametrize("case", KEPT)
def test_it_is_never(case: str) -> None:
    assert leftovers([KEPT[case]], {("team", "chat")}) == ()
