"""kopf's part: the life of the process, and a word when an object of ours changed. Handlers write nothing.

Of the handlers for objects only ``on.event`` is used: every other one leaves finalizers and annotations on people's
objects (04 §1). What exists is read from watches of our own (``our_kinds``): kopf tells of no deletion that fell into
a gap of its watch, and its indexes keep such an object.
"""

from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import kopf

from kvplan_operator.api.labels import GROUP, VERSION
from kvplan_operator.errors import SettingsError
from kvplan_operator.kube.access import Access, authorization
from kvplan_operator.logs import configure_logs
from kvplan_operator.reconcile.health import CannotListen
from kvplan_operator.reconcile.shell import Shell, kubeconfig_of
from kvplan_operator.reconcile.startup import ClusterNotReady
from kvplan_operator.settings import read_settings

_WATCH_SECONDS = 300
_CONNECT_SECONDS = 20.0
_REQUEST_SECONDS = 30.0


class _Endless:
    """Pauses between the tries of a request, in seconds: kopf gives a watch up for good after the last one."""

    def __iter__(self) -> Iterator[float]:
        return chain((0.5, 1.0, 2.0), repeat(3.0))


@kopf.on.startup()
async def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    """Configure kopf, then start the operator; what stops it is told by name and by exit code."""
    try:
        wanted = memo["settings"] if "settings" in memo else read_settings()
    except SettingsError as error:
        memo["exit_code"] = SETTINGS_REFUSED
        raise kopf.PermanentError(str(error)) from None
    configure_logs(wanted.log_level)
    configure_kopf(settings)
    memo["kubeconfig"] = kubeconfig_of(wanted)
    shell = Shell(wanted)
    try:
        await shell.start()
    except ClusterNotReady as error:
        memo["exit_code"] = CLUSTER_NOT_READY
        raise kopf.PermanentError(str(error)) from None
    except (CannotListen, OSError) as error:  # kopf would try again for ever
        memo["exit_code"] = FAILED
        raise kopf.PermanentError(str(error)) from None
    memo["shell"] = shell


FAILED = 1
"""Exit code: what this process needs of its machine is not to be had, or kopf failed."""
SETTINGS_REFUSED = 2
"""Exit code: settings that cannot be used."""
CLUSTER_NOT_READY = 3
"""Exit code: CRDs or permissions were missing until patience ended."""


def configure_kopf(settings: kopf.OperatorSettings) -> None:
    """No peering, no events of its own, no scan for new kinds, bounded requests."""
    settings.peering.standalone = True
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.server_timeout = _WATCH_SECONDS
    settings.watching.client_timeout = _WATCH_SECONDS + _REQUEST_SECONDS
    settings.watching.connect_timeout = _CONNECT_SECONDS
    settings.networking.request_timeout = _REQUEST_SECONDS
    settings.networking.error_backoffs = _Endless()


@kopf.on.cleanup()
async def stop(memo: kopf.Memo, **_: Any) -> None:
    """Stop the operator."""
    shell = memo.get("shell")
    if shell is not None:
        await shell.stop()


@kopf.on.login()
async def log_in(memo: kopf.Memo, **kwargs: Any) -> kopf.ConnectionInfo | None:
    """As our own client does."""
    kubeconfig = memo["kubeconfig"]
    return await connection_of(kubeconfig) if kubeconfig else kopf.login_with_service_account(**kwargs)


async def connection_of(kubeconfig: Path) -> kopf.ConnectionInfo:
    """A kubeconfig as our own client reads it: kopf's reading knows neither token files nor exec plugins."""
    found = await Access(kubeconfig).load()
    token = (await authorization(found)).get("Authorization", "").removeprefix("Bearer ").strip()
    return kopf.ConnectionInfo(
        server=found.host,
        ca_path=found.ssl_ca_cert,
        insecure=not found.verify_ssl,
        certificate_path=found.cert_file,
        private_key_path=found.key_file,
        token=token or None,
    )


@kopf.on.event(GROUP, VERSION, "servingfleets")
async def fleet_event(memo: kopf.Memo, namespace: str | None, name: str | None, **_: Any) -> None:
    """A fleet was listed, changed or deleted."""
    memo["shell"].wake(namespace, name)


@kopf.on.event(GROUP, VERSION, "requestclasses")
async def class_event(memo: kopf.Memo, namespace: str | None, **_: Any) -> None:
    """A class was listed, changed or deleted."""
    memo["shell"].wake(namespace, None)


@kopf.on.event(GROUP, VERSION, "routingplans")
async def plan_event(memo: kopf.Memo, namespace: str | None, spec: kopf.Spec, **_: Any) -> None:
    """A plan was listed, changed or deleted."""
    memo["shell"].wake(namespace, spec.get("fleetName"))
