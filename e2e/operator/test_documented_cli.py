"""docs/cli.md: every command as printed, on a real API server, prints what stands there.

``KVPLAN_WRITE_DOCS=1`` writes the outputs anew instead.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.harness.cluster import Cluster
from e2e.operator.command_line import Stage, engine_made_by_kvplan, vllm_deployment
from e2e.operator.documented_commands import DOCUMENT, NAMESPACE, blocks, masked, rewritten, run

pytestmark = pytest.mark.e2e


@pytest.fixture
def stage(cluster: Cluster) -> Iterator[Stage]:
    """The sample fleet with two plans, in the namespace that the document speaks of."""
    cluster.kubectl("create", "namespace", NAMESPACE)
    yield Stage(cluster, NAMESPACE)
    cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def play(stage: Stage, name: str) -> None:
    """Bring about a state that the document names; it starts from the plan in force and the one that waits."""
    stage.reset()
    if name == "git":
        stage.own_acceptance("argocd-controller", stage.large[0])
    elif name == "replaced":
        stage.say_plan(stage.large, Proposed="True", Accepted="True", Applied="False", Superseded="True")
        stage.say_fleet(current=stage.small)
    elif name == "gone":
        left = [engine_made_by_kvplan(kind, "gone") for kind in ("Deployment", "ConfigMap")]
        stage.cluster.kubectl.apply(*left, options=[stage.place])
    elif name == "engines":
        pool = {"nodeSelector": {"kvplan.dev/pool": "serving"}}
        serve = ("vllm", "serve", "Qwen/Qwen3-32B", "--max-model-len=40960")
        engines = [
            vllm_deployment("chat-tp2", *serve, "--tensor-parallel-size=2", "--max-num-seqs=128", gpus=2, **pool),
            vllm_deployment("chat-tp4", *serve, "--tensor-parallel-size=4", gpus=4, **pool),
        ]
        stage.cluster.kubectl.apply(*engines, options=[stage.place])
        stage.cluster.kubectl("wait", "deployments", "--all", "--for=condition=Available", stage.place)


def test_the_document_prints_what_the_commands_print(stage: Stage, tmp_path: Path) -> None:
    outputs: list[str] = []
    differing: list[str] = []
    for block in blocks():
        play(stage, block.stage)
        for command, stated in block.commands:
            outputs.append(run(stage, command, tmp_path))
            differing += [command] if masked(outputs[-1]) != masked(stated) else []
        stage.cluster.kubectl("delete", "deployments,configmaps", "--all", stage.place)
    if os.environ.get("KVPLAN_WRITE_DOCS"):
        DOCUMENT.write_text(rewritten(outputs), encoding="utf-8")
    else:
        assert differing == []
