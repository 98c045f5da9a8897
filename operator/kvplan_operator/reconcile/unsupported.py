"""What kvplan does not plan for, found in the fleet's own objects: LoRA adapters and disaggregated prefill.

Input: a ``Snapshot``. Output: a sentence that names object, field, value and remedy; empty where all is supported.
Only what stands in objects can be seen: adapters loaded through an engine's API are not. Several models in one fleet
cannot be written down at all. Pure.
"""

from collections.abc import Iterator

from kvplan_operator.model.pods import Object, name_of, part, parts
from kvplan_operator.model.snapshot import Snapshot

_FLAGS = {
    "--enable-lora": "LoRA adapters are not planned for: serve adapters from engines outside the fleet",
    "--lora-modules": "LoRA adapters are not planned for: serve adapters from engines outside the fleet",
    "--kv-transfer-config": "disaggregated prefill is not planned for: run engines that prefill and decode",
}


def unsupported(snapshot: Snapshot) -> str:
    """The first thing that is not supported."""
    return next(_flags(snapshot), "")


def _flags(snapshot: Snapshot) -> Iterator[str]:
    """Switches in the containers of the template and of adopted Deployments."""
    adopted = {k.deployment for k in snapshot.fleet.spec.configurations if k.deployment}
    deployments = [item for item in snapshot.cluster.deployments if name_of(item) in adopted]
    for item in (*deployments, *((snapshot.cluster.template,) if snapshot.cluster.template else ())):
        for word in _words(item, snapshot.fleet.spec.engine.container):
            flag = word.partition("=")[0].replace("_", "-")
            if flag in _FLAGS:
                yield f"{item.get('kind', 'object')} {name_of(item)}: its container has {flag}: {_FLAGS[flag]}"


def _words(item: Object, container: str) -> Iterator[str]:
    template = part(item, "template") or part(part(item, "spec"), "template")
    for found in parts(part(template, "spec"), "containers"):
        if found.get("name") == container:
            yield from map(str, (*(found.get("command") or ()), *(found.get("args") or ())))
