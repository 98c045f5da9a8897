"""A router that watches the cluster: its table, its fleet's uid, its engines' pods.

In: settings, perhaps a secret. Out: nothing; it returns when SIGTERM has been served. Needs get, list and watch on
ConfigMaps, and on pods for ``--readiness pods``, in the fleet's namespace.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration, CoreV1Api

from kvplan_router.destinations.pods import ready_pods
from kvplan_router.process import serve
from kvplan_router.settings import CLUSTER, BadSetting, RouterSettings
from kvplan_router.source.cluster import ClusterSource
from kvplan_router.source.files import FileSource
from kvplan_solver.cacheroute.keys import weak_secret

log = logging.getLogger(__name__)


async def serve_in_cluster(settings: RouterSettings, secret: bytes | None) -> None:
    """Run a router until SIGTERM.

    Args:
        settings: of the process.
        secret: of the key hash; None waits for the index and takes a weak one of its fleet's uid.

    Raises:
        BadSetting: no cluster can be reached with these settings.
    """
    async with _connected(settings.kubeconfig) as api:
        source = ClusterSource(api, settings.namespace, settings.fleet)
        known = secret or await _weak_secret(source)
        table = source if settings.table == CLUSTER else FileSource(settings.table_path)
        pods = partial(ready_pods, api, settings.namespace) if settings.readiness == "pods" else None
        await serve(settings, known, table, pods)


@asynccontextmanager
async def _connected(kubeconfig: Path | None) -> AsyncIterator[CoreV1Api]:
    configuration = Configuration()
    try:
        if kubeconfig is not None:
            await config.load_kube_config(str(kubeconfig), client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except config.ConfigException as error:
        raise BadSetting("kubeconfig", str(kubeconfig or ""), f"give a cluster's, or run in one ({error})") from error
    async with ApiClient(configuration) as client:
        yield CoreV1Api(client)


async def _weak_secret(source: ClusterSource) -> bytes:
    log.warning("WeakKeySecret: no --secret-file, keys are hashed under the fleet's uid")
    return weak_secret(await source.fleet_uid())
