"""``kvplan`` against a real API server: what each command does there, and what it says when it cannot."""

import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from e2e.harness.assets import binary
from e2e.harness.cluster import Cluster
from e2e.harness.paths import CRDS
from e2e.operator.command_line import PROGRAM, Kvplan, Stage, engine_made_by_kvplan, vllm_deployment
from e2e.operator.operator_process import FLEET

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def played(cluster: Cluster) -> Iterator[Stage]:
    """One fleet with two plans for all tests of this file."""
    name = f"kvplan-cli-{uuid.uuid4().hex[:6]}"
    cluster.kubectl("create", "namespace", name)
    yield Stage(cluster, name)
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def stage(played: Stage) -> Stage:
    """The fleet as every test finds it: one plan in force, one that waits."""
    played.reset()
    return played


class TestPlanDiffExplain:
    def test_a_plan_is_made_from_live_objects_and_compared_with_the_one_in_force(self, stage: Stage) -> None:
        done = stage.kvplan("plan", FLEET)
        assert done.code == 0
        assert done.stdout.startswith(f"{stage.large[1]}: ")
        assert f"{stage.large[1]} and {stage.large[1]} decide the same" in done.stdout

    def test_the_plan_in_force_and_the_one_that_waits_are_compared(self, stage: Stage) -> None:
        done = stage.kvplan("diff")
        assert done.code == 1
        assert f"From {stage.large[1]} to {stage.small[1]}" in done.stdout
        old, new = stage.groups(stage.large), stage.groups(stage.small)
        start, stay = (new - old).total(), (old & new).total()
        fewer = stage.kinds(stage.large) - stage.kinds(stage.small)
        assert f"{start} pods start, {fewer.total()} stop for good, {stay} go on undisturbed." in done.stdout
        assert stage.kvplan("diff", FLEET, "--old=current", "--new=current").code == 0

    def test_the_candidate_is_explained_from_objects_alone(self, stage: Stage) -> None:
        done = stage.kvplan("explain", "--output=json")
        assert done.code == 0
        document = json.loads(done.stdout)
        assert document["plan"] == stage.small[1]
        assert [row["name"] for row in document["classes"]] == ["chat", "code", "summarise"]
        named = json.loads(stage.kvplan("explain", FLEET, f"--plan={stage.large[0][:12]}", "--output=json").stdout)
        assert named["plan"] == stage.large[1]

    def test_a_fleet_that_is_not_there_and_a_plan_that_is_not_there_are_named(self, stage: Stage) -> None:
        assert f"has no ServingFleet 'nobody': there are {FLEET}" in stage.kvplan("plan", "nobody").error()
        assert "no RoutingPlan of the fleet has this name" in stage.kvplan("explain", "--plan=chat-1").error()
        assert "no RoutingPlan of the fleet has this name" in stage.kvplan("diff", "--new=chat-1").error()

    def test_options_of_files_and_of_clusters_do_not_mix(self, stage: Stage, tmp_path: Path) -> None:
        file = tmp_path / "plan.yaml"
        assert stage.kvplan("export", stage.large[1], f"--out={file}").code == 0
        assert "--namespace: files are read" in stage.kvplan("diff", str(file), str(file)).error()
        assert "--namespace: files are read" in stage.kvplan("plan", "-f", str(file)).error()

    def test_what_nobody_measured_is_asked_for(self, stage: Stage) -> None:
        rate = {"spec": {"arrivals": {"requestsPerSecondMilli": None}}}
        patch = ["patch", "rclass", "code", stage.place, "--type=merge", "--patch"]
        stage.cluster.kubectl(*patch, json.dumps(rate))
        try:
            assert "spec.arrivals.requestsPerSecondMilli" in stage.kvplan("plan").error()
            unreachable = stage.kvplan("plan", "--prometheus=http://127.0.0.1:1")
            assert "--prometheus: http://127.0.0.1:1 gives no answer" in unreachable.error()
        finally:
            rate["spec"]["arrivals"] = {"requestsPerSecondMilli": 8000}  # type: ignore[dict-item]
            stage.cluster.kubectl(*patch, json.dumps(rate))


class TestApprove:
    def test_the_candidate_is_accepted_by_a_field_manager_of_its_own(self, stage: Stage) -> None:
        dry = stage.kvplan("approve", "--dry-run")
        assert dry.code == 0
        assert stage.accepted() is None
        done = stage.kvplan("approve")
        assert done.code == 0
        assert done.stdout == f"ServingFleet {FLEET} accepts {stage.small[1]}, digest {stage.small[0]}\n"
        assert stage.accepted() == stage.small[0]
        owners = stage.get("fleet", FLEET, "--show-managed-fields")["metadata"]["managedFields"]
        mine = next(entry for entry in owners if entry["manager"] == "kvplan-approve")
        assert mine["operation"] == "Apply"
        assert mine["fieldsV1"]["f:spec"] == {"f:acceptedPlan": {"f:digest": {}}}

    def test_waiting_ends_when_the_plan_is_in_force(self, stage: Stage) -> None:
        waiting = stage.kvplan.start("approve", stage.small[0][:12], "--wait")
        path = f"--for=jsonpath={{.spec.acceptedPlan.digest}}={stage.small[0]}"
        stage.cluster.kubectl("wait", f"fleet/{FLEET}", path, stage.place, "--timeout=60s")
        moving = "True/RollingOut/step 1 of 2"
        stage.say_fleet(stage.large, Ready="False/RollingOut", Reconciling=moving, Stalled="False")
        stage.say_fleet(stage.small, Ready="True", Reconciling="False", Stalled="False")
        _, told = waiting.communicate(timeout=60)
        assert waiting.returncode == 0
        assert told.splitlines()[-1] == "ready: AsPlanned, as planned"

    def test_waiting_ends_with_1_when_only_a_person_can_go_on(self, stage: Stage) -> None:
        waiting = stage.kvplan.start("approve", "--wait")
        path = f"--for=jsonpath={{.spec.acceptedPlan.digest}}={stage.small[0]}"
        stage.cluster.kubectl("wait", f"fleet/{FLEET}", path, stage.place, "--timeout=60s")
        stalled = "True/NoCapacityNeutralPath/no order of steps keeps the floor"
        stage.say_fleet(stage.large, Ready="False", Reconciling="False", Stalled=stalled)
        _, told = waiting.communicate(timeout=60)
        assert waiting.returncode == 1
        assert told.splitlines()[-1] == "stalled: NoCapacityNeutralPath, no order of steps keeps the floor"

    def test_waiting_without_an_operator_ends_with_its_time(self, stage: Stage) -> None:
        done = stage.kvplan("approve", "--wait", "--timeout=1")
        assert done.code == 1
        assert "not in force after 1 s" in done.stderr

    def test_git_keeps_the_field_unless_forced_and_is_named(self, stage: Stage) -> None:
        stage.own_acceptance("argocd-controller", stage.large[0])
        error = stage.kvplan("approve").error()
        assert "field manager argocd-controller owns spec.acceptedPlan.digest" in error
        assert stage.accepted() == stage.large[0]
        forced = stage.kvplan("approve", "--force")
        assert forced.code == 0
        assert stage.accepted() == stage.small[0]
        assert "argocd-controller owns spec.acceptedPlan.digest; where that is git, its next sync wins" in forced.stderr

    def test_unknown_misnamed_and_broken_plans_are_refused(self, stage: Stage) -> None:
        assert "create it, or use one of" in stage.kvplan("approve", "0" * 64).error()
        stage.say_plan(stage.small, Proposed="False/CertificateRejected/NodeFit a: 9 GPUs placed, 8 free")
        assert "the operator refuses it: NodeFit a" in stage.kvplan("approve").error()
        stage.patch_fleet({"nodes": {"maxGpus": 8}})
        try:
            error = stage.kvplan("approve", stage.large[1]).error()
            used = stage.gpus(stage.large)
            assert f"it does not fit the fleet today: GpuBudget fleet: {used} GPUs used, 8 allowed" in error
        finally:
            stage.patch_fleet({"nodes": {"maxGpus": None}})
        assert stage.accepted() is None

    def test_what_the_policy_makes_of_it_is_said(self, stage: Stage) -> None:
        stage.patch_fleet({"planPolicy": {"mode": "DryRun"}, "suspend": True})
        told = stage.kvplan("approve").stderr
        assert "planPolicy.mode is DryRun" in told
        assert "the fleet is suspended" in told


class TestHistoryAndRollback:
    def test_the_history_tells_what_became_of_each_plan_and_who_accepted_it(self, stage: Stage) -> None:
        stage.say_plan(stage.large, Proposed="True", Accepted="True/DigestAccepted", Applied="False", Superseded="True")
        stage.say_plan(stage.small, Proposed="True", Applied="True")
        stage.say_fleet(current=stage.small)
        stage.own_acceptance("flux", stage.small[0])
        document = yaml.safe_load(stage.kvplan("history", "--output=yaml").stdout)
        found = {row["name"]: (row["state"], row["acceptedBy"]) for row in document["plans"]}
        assert found == {stage.small[1]: ("in force", "flux"), stage.large[1]: ("superseded", "people")}
        assert all(row["costPerSecond"] > 0 for row in document["plans"])
        table = stage.kvplan("history", FLEET).stdout
        assert table.index(stage.small[1]) < table.index(stage.large[1])

    def test_a_rollback_shows_the_difference_and_accepts_the_plan_before(self, stage: Stage) -> None:
        stage.say_plan(stage.large, Proposed="True", Accepted="True", Applied="False", Superseded="True")
        stage.say_fleet(current=stage.small)
        unasked = stage.kvplan("rollback")
        assert "there is no terminal to answer on: give --yes" in unasked.error()
        assert f"From {stage.small[1]} to {stage.large[1]}" in unasked.stdout
        assert stage.accepted() is None
        done = stage.kvplan("rollback", "--yes")
        assert (done.code, stage.accepted()) == (0, stage.large[0])

    def test_there_must_be_a_plan_to_go_back_to(self, stage: Stage) -> None:
        assert "no earlier plan was in force" in stage.kvplan("rollback", "--yes").error()
        assert "it is in force: name an older plan" in stage.kvplan("rollback", stage.large[1], "--yes").error()
        assert "no ServingFleet" in stage.kvplan("history", "nobody").error()


class TestExport:
    def test_what_is_exported_is_clean_and_applying_it_leaves_nothing_to_do(self, stage: Stage, tmp_path: Path) -> None:
        file = tmp_path / "plan.yaml"
        assert stage.kvplan("export", f"--out={file}").code == 0
        document = yaml.safe_load(file.read_text())
        assert document["metadata"] | {"annotations": None} == {
            "name": stage.small[1],
            "namespace": stage.namespace,
            "labels": {"kvplan.dev/fleet": FLEET, "kvplan.dev/origin": "user"},
            "annotations": None,
        }
        assert set(document) == {"apiVersion", "kind", "metadata", "spec"}
        stage.cluster.kubectl("apply", "-f", str(file))
        assert stage.cluster.kubectl("diff", "-f", str(file)) == ""
        assert stage.kvplan("export", stage.small[1]).stdout == file.read_text()

    def test_there_must_be_a_plan_and_a_place_to_write_it(self, stage: Stage, tmp_path: Path) -> None:
        assert "no RoutingPlan of the fleet" in stage.kvplan("export", "chat-0123456789").error()
        assert f"--out: {tmp_path} is a directory" in stage.kvplan("export", f"--out={tmp_path}").error()


class TestCleanup:
    def test_engines_of_a_fleet_that_is_gone_go_and_nothing_else(self, stage: Stage) -> None:
        left = [engine_made_by_kvplan(kind, "gone") for kind in ("Deployment", "ConfigMap")]
        kept = [engine_made_by_kvplan("Deployment", fleet, name) for fleet, name in ((FLEET, "ours"), ("gone", "mine"))]
        kept[1]["metadata"]["labels"].pop("kvplan.dev/set")
        stage.cluster.kubectl.apply(*left, *kept, options=[stage.place])
        try:
            listed = stage.kvplan("cleanup", "--engines", "--dry-run")
            assert listed.code == 0
            names = [line.split()[0] for line in listed.stdout.splitlines() if "/gone" in line or "/mine" in line]
            assert names == ["deployments.apps/gone-tp1", "configmaps/gone-engine"]
            done = stage.kvplan("cleanup", "--engines", "--yes")
            assert done.stdout.endswith("deployments.apps/gone-tp1 deleted\nconfigmaps/gone-engine deleted\n")
            assert {item["metadata"]["name"] for item in stage.get("deployments")["items"]} == {"ours", "mine"}
            assert "Nothing is left behind" in stage.kvplan("cleanup", "--engines").stdout
        finally:
            stage.cluster.kubectl("delete", "deployments,configmaps", "--all", stage.place)

    def test_it_is_said_what_to_remove_and_nobody_is_taken_for_a_yes(self, stage: Stage) -> None:
        assert "give --engines" in stage.kvplan("cleanup").error()
        stage.cluster.kubectl.apply(engine_made_by_kvplan("ConfigMap", "gone", "gone-flags"), options=[stage.place])
        try:
            assert "give --yes" in stage.kvplan("cleanup", "--engines").error()
            assert stage.get("configmap", "gone-flags")["metadata"]["name"] == "gone-flags"
        finally:
            stage.cluster.kubectl("delete", "configmaps", "--all", stage.place)


class TestInit:
    def test_a_fleet_is_drafted_from_what_runs_and_can_be_planned(
        self, cluster: Cluster, namespace: str, tmp_path: Path
    ) -> None:
        kvplan, file = Kvplan(cluster, namespace), tmp_path / "draft.yaml"
        serve = ("vllm", "serve", "Qwen/Qwen3-32B", "--max-model-len=40960")
        pool = {"nodeSelector": {"kvplan.dev/pool": "serving"}}
        engines = [
            vllm_deployment("chat-tp2", *serve, "--tensor-parallel-size", "2", "--max-num-seqs=128", gpus=2, **pool),
            vllm_deployment("chat-tp4", *serve, "-tp", "4", gpus=4, **pool),
            vllm_deployment("hidden", "sh", "-c", "vllm serve Qwen/Qwen3-8B"),
        ]
        cluster.kubectl.apply(*engines, options=[f"--namespace={namespace}"])
        cluster.kubectl("wait", "deployment/chat-tp4", "--for=condition=Available", f"--namespace={namespace}")
        done = kvplan("init", f"--out={file}")
        assert done.code == 0
        assert "Deployment hidden is left out: container vllm" in done.stderr
        fleet, request_class = yaml.safe_load_all(file.read_text())
        assert fleet["metadata"]["name"] == "qwen3-32b"
        assert fleet["spec"]["nodes"]["selector"] == {"matchLabels": {"kvplan.dev/pool": "serving"}}
        assert fleet["spec"]["configurations"] == [
            {"name": "tp2", "tensorParallel": 2, "pipelineParallel": 1, "gpuProduct": "NVIDIA-H200",
             "deployment": "chat-tp2", "maxSequences": 128},
            {"name": "tp4", "tensorParallel": 4, "pipelineParallel": 1, "gpuProduct": "NVIDIA-H200",
             "deployment": "chat-tp4"},
        ]  # fmt: skip
        assert fleet["spec"]["planPolicy"] == {"mode": "DryRun"}
        assert request_class["metadata"]["labels"] == {"kvplan.dev/fleet": "qwen3-32b"}
        assert "# FILL IN spec.arrivals.requestsPerSecondMilli" in file.read_text()
        cluster.kubectl("apply", "-f", str(file))
        assert kvplan("plan").stdout.startswith("qwen3-32b-")

    def test_without_engines_or_with_a_prometheus_that_is_none_nothing_is_written(
        self, cluster: Cluster, namespace: str
    ) -> None:
        kvplan = Kvplan(cluster, namespace)
        assert "no Deployment that runs vLLM can be read" in kvplan("init").error()
        cluster.kubectl.apply(vllm_deployment("chat", "vllm", "serve", "m/m"), options=[f"--namespace={namespace}"])
        refused = kvplan("init", "--prometheus=nonsense")
        assert "give an http:// or https:// address" in refused.error()
        assert refused.stdout == ""


class TestDoctor:
    def test_what_is_wrong_is_told_with_its_remedy_and_ends_with_1(self, stage: Stage) -> None:
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "all"}}
        budget["spec"] = {"selector": {"matchLabels": {"a": "chat-old"}}, "maxUnavailable": 0}
        engine = engine_made_by_kvplan("Deployment", FLEET, "chat-old")
        engine["spec"]["template"]["spec"]["containers"][0] |= {
            "image": "vllm/vllm-openai:v0.20.0",
            "command": ["vllm", "serve", "m", "--max-num-active-seqs=8"],
        }
        scaler = {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "keda"},
            "spec": {
                "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat-old"},
            },
        }
        stage.cluster.kubectl.apply(budget, engine, scaler, options=[stage.place])
        stage.say_fleet(stage.large, Ready="False", Stalled="True/NoNodes/correct spec.nodes.selector")
        try:
            done = stage.kvplan("doctor", "--output=json")
        finally:
            stage.cluster.kubectl("delete", "pdb/all", "deployment/chat-old", "hpa/keda", stage.place)
        assert done.code == 1
        document = json.loads(done.stdout)
        found = {(row["level"], row["check"], row["about"].rpartition("/")[2]) for row in document["findings"]}
        assert document["healthy"] is False
        assert {
            ("ok", "API server", "cluster"),
            ("ok", "CRD", "servingfleets.kvplan.dev"),
            ("fail", "fleet", FLEET),
            ("fail", "engine", "Deployment chat-old"),
            ("warn", "router", FLEET),
            ("warn", "autoscaler", "HorizontalPodAutoscaler keda"),
        } <= found
        unknown = next(row for row in document["findings"] if row["check"] == "engine" and row["level"] == "fail")
        assert unknown["what"] == "vLLM 0.20.0 does not know --max-num-active-seqs"

    def test_a_crd_of_another_version_is_named(self, stage: Stage) -> None:
        name = "routingplans.kvplan.dev"
        path = "/spec/versions/0/schema/openAPIV3Schema/description"
        patch = [{"op": "add", "path": path, "value": "another version"}]
        stage.cluster.kubectl("patch", "crd", name, "--type=json", "--patch", json.dumps(patch))
        try:
            done = stage.kvplan("doctor")
        finally:
            stage.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRDS))
        assert done.code == 1
        assert f"fail CRD, {name}: its schema is " in done.stdout
        assert "kubectl apply -f crds/" in done.stdout


class TestReaching:
    def test_no_kubeconfig_an_unreachable_server_and_a_wrong_context_are_one_line_each(
        self, stage: Stage, tmp_path: Path
    ) -> None:
        kvplan = stage.kvplan
        assert "there is no kubeconfig" in kvplan.anywhere("history", KUBECONFIG="", HOME=str(tmp_path)).error()
        absent = kvplan("history", f"--kubeconfig={tmp_path / 'absent'}")
        assert "it cannot be read (No such file or directory)" in absent.error()
        assert "there is no context 'moon'" in kvplan("history", "--context=moon").error()
        config = yaml.safe_load(stage.cluster.kubeconfig.read_text())
        config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
        file = tmp_path / "unreachable"
        file.write_text(yaml.safe_dump(config))
        assert "check that the kubeconfig names the right server" in kvplan("doctor", f"--kubeconfig={file}").error()

    def test_the_namespace_is_that_of_the_context(self, stage: Stage, tmp_path: Path) -> None:
        config = yaml.safe_load(stage.cluster.kubeconfig.read_text())
        config["contexts"][0]["context"]["namespace"] = stage.namespace
        file = tmp_path / "config"
        file.write_text(yaml.safe_dump(config))
        listed = f"{tmp_path / 'absent'}:{file}"
        document = json.loads(stage.kvplan.anywhere("history", "-o", "json", KUBECONFIG=listed).stdout)
        assert document["namespace"] == stage.namespace

    def test_what_is_forbidden_is_said_with_the_permission_that_lacks(self, stage: Stage, tmp_path: Path) -> None:
        token = stage.cluster.kubectl("create", "token", "default", stage.place).strip()
        config = yaml.safe_load(stage.cluster.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        file = tmp_path / "nobody"
        file.write_text(yaml.safe_dump(config))
        error = stage.kvplan("approve", f"--kubeconfig={file}").error()
        assert "cannot list resource" in error
        assert "ask for that permission" in error

    def test_kubectl_finds_the_command_as_its_plugin(self, stage: Stage) -> None:
        path = f"{PROGRAM.parent}:{os.environ['PATH']}"
        command = [str(binary("kubectl")), "kvplan", "history", stage.place]
        environment = stage.kvplan.environment | {"PATH": path}
        shown = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
        assert stage.large[1] in shown.stdout
