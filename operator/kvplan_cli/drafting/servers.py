"""vLLM servers among the Deployments of a namespace, read off their containers.

Inputs: Deployments, Pods and Nodes as plain objects. Outputs: frozen ``Server`` values, and a sentence for each
Deployment that seems to run vLLM but cannot be read. Guesses nothing: a command hidden in a shell is told. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from kvplan_cli.cluster.containers import command_line, flag_values, is_pod_of
from kvplan_operator.act.arguments import check_command
from kvplan_operator.act.refusals import RolloutRefused
from kvplan_operator.api.labels import GPU_PRODUCT_LABEL, SET_LABEL
from kvplan_operator.model.pods import Object, labels_of, name_of, node_of, part, parts
from kvplan_operator.plan.engine_capabilities import version_of_image

_GPU = "gpu"


class _Unreadable(Exception):
    """Why a container that seems to run vLLM cannot be read; the message is for people."""


@dataclass(frozen=True)
class Server:
    """One Deployment that runs vLLM.

    Attributes:
        deployment: its name.
        container: that runs vLLM.
        model: as the command names it.
        tensor_parallel: GPUs of a stage.
        pipeline_parallel: stages.
        flags: value by name, without leading hyphens.
        version: of vLLM as the image's tag states it; None where it does not.
        gpu_resource: name under which it asks for GPUs.
        products: GPU products of the nodes its pods are on, ascending.
        node_selector: of its pods.
        tolerations: of its pods.
        one_by_one: whether its strategy replaces one pod after the other, with none beside it.
    """

    deployment: str
    container: str
    model: str
    tensor_parallel: int
    pipeline_parallel: int
    flags: Mapping[str, str]
    version: str | None
    gpu_resource: str
    products: tuple[str, ...]
    node_selector: Mapping[str, str]
    tolerations: tuple[Object, ...]
    one_by_one: bool

    def number(self, flag: str) -> int | None:
        """The whole number that a flag is set to; None where it is not, or to something else."""
        text = self.flags.get(flag, "")
        return int(text) if text.isdecimal() else None


def servers(
    deployments: Iterable[Object], pods: Sequence[Object], nodes: Sequence[Object]
) -> tuple[tuple[Server, ...], tuple[str, ...]]:
    """Servers by name, and what could not be read. Deployments that kvplan created are passed over."""
    found: list[Server] = []
    remarks: list[str] = []
    products = {name_of(node): labels_of(node).get(GPU_PRODUCT_LABEL, "") for node in nodes}
    for deployment in sorted(deployments, key=name_of):
        container = None if SET_LABEL in labels_of(deployment) else _engine(deployment)
        if container is None:
            continue
        on = {products.get(node_of(pod), "") for pod in pods if is_pod_of(pod, name_of(deployment))}
        try:
            found.append(_server(deployment, container, tuple(sorted(on - {""}))))
        except _Unreadable as error:
            remarks.append(f"Deployment {name_of(deployment)} is left out: {error}")
    return tuple(found), tuple(remarks)


def _engine(deployment: Object) -> Object | None:
    """The first container that seems to run vLLM."""
    template = part(part(deployment, "spec"), "template")
    containers = parts(part(template, "spec"), "containers")
    return next((container for container in containers if _seems_vllm(container)), None)


def _seems_vllm(container: Object) -> bool:
    image = PurePosixPath(str(container.get("image", "")).partition("@")[0]).name
    return "vllm" in image or any("vllm" in word for word in command_line(container).words)


def _server(deployment: Object, container: Object, products: tuple[str, ...]) -> Server:
    line = command_line(container)
    try:
        check_command(line, f"container {container.get('name')}")
    except RolloutRefused as error:
        raise _Unreadable(str(error)) from None
    spec = part(part(part(deployment, "spec"), "template"), "spec")
    flags = flag_values(line.words)
    strategy = part(part(deployment, "spec"), "strategy")
    rolling = part(strategy, "rollingUpdate")
    return Server(
        deployment=name_of(deployment),
        container=str(container.get("name")),
        model=_model(line.words, flags),
        tensor_parallel=_size(flags, "tensor-parallel-size"),
        pipeline_parallel=_size(flags, "pipeline-parallel-size"),
        flags=flags,
        version=version_of_image(str(container.get("image", ""))),
        gpu_resource=_gpu_resource(container),
        products=products,
        node_selector=dict(part(spec, "nodeSelector")),
        tolerations=tuple(parts(spec, "tolerations")),
        one_by_one=(rolling.get("maxSurge"), rolling.get("maxUnavailable")) == (0, 1),
    )


def _model(words: Sequence[str], flags: Mapping[str, str]) -> str:
    """``--model``, or what follows ``serve``, or the first word of arguments for an image that serves by itself."""
    if flags.get("model"):
        return flags["model"]
    named = next(_after_serve(words), "")
    if not named or named.startswith("-"):
        raise _Unreadable("its command names no model: add the model after `vllm serve`")
    return named


def _after_serve(words: Sequence[str]) -> Iterator[str]:
    if "serve" in words:
        yield from words[list(words).index("serve") + 1 :]
    elif words and not words[0].startswith("-"):
        yield words[0]


def _size(flags: Mapping[str, str], name: str) -> int:
    text = flags.get(name, "1")
    if not text.isdecimal() or int(text) < 1:
        raise _Unreadable(f"--{name} is {text!r}: write a whole number")
    return int(text)


def _gpu_resource(container: Object) -> str:
    resources = part(container, "resources")
    asked = [*part(resources, "limits"), *part(resources, "requests")]
    for name in asked:
        if _GPU in name and "/" in name:
            return str(name)
    raise _Unreadable("its container asks for no GPU: kvplan plans GPUs")
