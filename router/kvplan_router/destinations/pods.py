"""Readiness of the engines' pods, as the cluster says.

In: an API client. Out: the uids of pods that are Ready and not going away. A slot names its pod by uid, so that a pod
of the same name that replaced it is never taken for it.
"""

from collections.abc import AsyncIterator

from kubernetes.aio.client import CoreV1Api

from kvplan_router.source.follow import Listed, Object, follow


async def ready_pods(api: CoreV1Api, namespace: str) -> AsyncIterator[frozenset[str]]:
    """The uids of the ready pods of a namespace, and again whenever they change."""
    ready: set[str] = set()
    async for news in follow(api.list_namespaced_pod_without_preload_content, namespace=namespace):
        before = frozenset(ready)
        if isinstance(news, Listed):
            ready = {uid(pod) for pod in news.objects if is_ready(pod)}
            yield frozenset(ready)
            continue
        (ready.discard if news.deleted or not is_ready(news.object) else ready.add)(uid(news.object))
        if ready != before:
            yield frozenset(ready)


def uid(pod: Object) -> str:
    """The pod's identity."""
    return str(pod["metadata"]["uid"])


def is_ready(pod: Object) -> bool:
    """Whether the pod takes new requests."""
    conditions = pod.get("status", {}).get("conditions", [])
    going = "deletionTimestamp" in pod["metadata"]
    return not going and any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
