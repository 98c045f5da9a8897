"""kopf's part: it follows our own kinds and says that something changed. Handlers return nothing and write nothing.

Of the handlers for objects only ``on.event`` and ``index`` are used: every other one leaves finalizers and annotations
on people's objects (04 §1).
"""

from collections.abc import Iterator, Mapping
from itertools import chain, repeat
from typing import Any

import kopf

from kvplan_operator.api.labels import GROUP, VERSION
from kvplan_operator.errors import SettingsError
from kvplan_operator.kube.access import Access, authorization
from kvplan_operator.kube.reflector import Key
from kvplan_operator.logs import configure_logs
from kvplan_operator.reconcile.projections import without_managed_fields
from kvplan_operator.reconcile.shell import Shell, kubeconfig_of
from kvplan_operator.reconcile.startup import ClusterNotReady
from kvplan_operator.reconcile.world import OurObjects
from kvplan_operator.settings import read_settings

_WATCH_SECONDS = 300
_CONNECT_SECONDS = 20.0
_REQUEST_SECONDS = 30.0


class _Endless:
    """Pauses between the tries of a request, in seconds: kopf gives a watch up for good after the last one."""

    def __iter__(self) -> Iterator[float]:
        return chain((0.5, 1.0, 2.0), repeat(3.0))


class _Indexed(Mapping[Key, Any]):
    """An index of kopf with one object per key."""

    def __init__(self, index: Any) -> None:
        self._index = index

    def __getitem__(self, key: Key) -> Any:
        return next(iter(self._index[key]))

    def __iter__(self) -> Iterator[Key]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def get(self, key: Key, default: Any = None) -> Any:
        return self[key] if key in self._index else default


@kopf.on.startup()
async def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **kwargs: Any) -> None:
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
    indexed = [_Indexed(kwargs[name]) for name in ("fleet_index", "class_index", "plan_index")]
    fleets, classes, plans = indexed
    try:
        await shell.start(OurObjects(lambda: fleets, lambda: classes, lambda: plans))
    except ClusterNotReady as error:
        memo["exit_code"] = CLUSTER_NOT_READY
        raise kopf.PermanentError(str(error)) from None
    memo["shell"] = shell


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
    """As our own client does: kopf's own reading of a kubeconfig knows neither token files nor exec plugins."""
    kubeconfig = memo["kubeconfig"]
    if kubeconfig is None:
        return kopf.login_with_service_account(**kwargs)
    found = await Access(kubeconfig).load()
    token = (await authorization(found)).get("Authorization", "").removeprefix("Bearer ")
    return kopf.ConnectionInfo(
        server=found.host,
        ca_path=found.ssl_ca_cert,
        insecure=not found.verify_ssl,
        certificate_path=found.cert_file,
        private_key_path=found.key_file,
        token=token or None,
    )


@kopf.index(GROUP, VERSION, "servingfleets")
def fleet_index(namespace: str | None, name: str | None, body: kopf.Body, **_: Any) -> dict[Key, Any]:
    """ServingFleets."""
    return {_key(namespace, name): without_managed_fields(dict(body))}


@kopf.index(GROUP, VERSION, "requestclasses")
def class_index(namespace: str | None, name: str | None, body: kopf.Body, **_: Any) -> dict[Key, Any]:
    """RequestClasses."""
    return {_key(namespace, name): without_managed_fields(dict(body))}


@kopf.index(GROUP, VERSION, "routingplans")
def plan_index(namespace: str | None, name: str | None, body: kopf.Body, **_: Any) -> dict[Key, Any]:
    """RoutingPlans."""
    return {_key(namespace, name): without_managed_fields(dict(body))}


@kopf.on.event(GROUP, VERSION, "servingfleets")
async def fleet_event(memo: kopf.Memo, namespace: str | None, name: str | None, event: kopf.RawEvent, **_: Any) -> None:
    """A fleet was listed, changed or deleted."""
    memo["shell"].fleet_changed(_key(namespace, name), gone=_gone(event))


@kopf.on.event(GROUP, VERSION, "requestclasses")
async def class_event(memo: kopf.Memo, namespace: str | None, name: str | None, event: kopf.RawEvent, **_: Any) -> None:
    """A class was listed, changed or deleted."""
    memo["shell"].class_changed(_key(namespace, name), gone=_gone(event))


@kopf.on.event(GROUP, VERSION, "routingplans")
async def plan_event(
    memo: kopf.Memo, namespace: str | None, name: str | None, spec: kopf.Spec, event: kopf.RawEvent, **_: Any
) -> None:
    """A plan was listed, changed or deleted."""
    memo["shell"].plan_changed(_key(namespace, name), spec.get("fleetName"), gone=_gone(event))


def _key(namespace: str | None, name: str | None) -> Key:
    return namespace or "", name or ""


def _gone(event: kopf.RawEvent) -> bool:
    return event["type"] == "DELETED"
