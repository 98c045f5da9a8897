from kvplan_operator.kube.pods import project_pod


def test_a_pod_keeps_what_it_holds_and_whose_it_is_and_nothing_else() -> None:
    pod = {
        "metadata": {
            "name": "p",
            "namespace": "a",
            "uid": "u",
            "resourceVersion": "5",
            "labels": {"app": "x"},
            "annotations": {"kvplan.dev/slot": "tp2-0", "last-applied": "…"},
            "managedFields": [{}],
            "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": "o", "blockOwnerDeletion": True}],
        },
        "spec": {
            "nodeName": "n",
            "volumes": [{}],
            "containers": [{"name": "c", "image": "i", "env": [{}], "resources": {"limits": {"nvidia.com/gpu": "2"}}}],
            "initContainers": [{"name": "s", "restartPolicy": "Always"}],
            "terminationGracePeriodSeconds": 0,
        },
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": "False", "lastProbeTime": "…"}],
            "containerStatuses": [
                {
                    "name": "c",
                    "ready": False,
                    "restartCount": 0,
                    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                    "lastState": {},
                    "imageID": "…",
                }
            ],
        },
    }
    assert project_pod(pod) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "a",
            "uid": "u",
            "labels": {"app": "x"},
            "annotations": {"kvplan.dev/slot": "tp2-0"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": "o"}],
        },
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "2"}}}],
            "initContainers": [{"name": "s", "restartPolicy": "Always"}],
            "terminationGracePeriodSeconds": 0,
        },
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": "False"}],
            "containerStatuses": [
                {"name": "c", "ready": False, "restartCount": 0, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
            ],
        },
    }
