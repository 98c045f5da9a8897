"""The same GPUs without kvplan: engines with stock flags, and clients that take them in turn.

Inputs: the sample's PodTemplate. Outputs: a Deployment. What a GPU would decide by itself has to be said here: how many
KV tokens fit, as the sample's fleet states it for the same groups; everything else is vLLM's default.
"""

from typing import Any

from e2e.loop import manifests

NAME = "stock"
SELECTOR = f"app={NAME}"
PORT = 8000
_BLOCK_TOKENS = 16


def deployment(configuration: str, groups: int) -> Any:
    """Groups of one configuration of the sample's fleet, as many as its GPUs hold."""
    fleet, template = manifests.sample("fleet")
    stated = next(c for c in fleet["spec"]["configurations"] if c["name"] == configuration)
    pod = template["template"]
    container = pod["spec"]["containers"][0]
    blocks = stated["kvCapacityTokens"] // _BLOCK_TOKENS + 1
    container["args"] += [
        f"--tensor-parallel-size={stated['tensorParallel']}",
        f"--max-model-len={fleet['spec']['model']['maxModelLen']}",
        f"--num-gpu-blocks-override={blocks}",
    ]
    container["resources"] = {"limits": {"nvidia.com/gpu": str(stated["tensorParallel"])}}
    pod["metadata"]["labels"] = {"app": NAME}
    spec = {"replicas": groups, "selector": {"matchLabels": {"app": NAME}}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": NAME}, "spec": spec}
