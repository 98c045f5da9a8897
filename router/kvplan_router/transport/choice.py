"""Which transport serves: the fast one where it is installed, the other one always.

In: settings, a decider. Out: a transport that has not started. Imports only what it uses: the two bring libraries of
their own.
"""

import time
from importlib.util import find_spec
from random import Random

from kvplan_router.settings import BadSetting, RouterSettings
from kvplan_router.transport.exchange_state import ExchangeRules
from kvplan_router.transport.interface import Decider, Transport

EXTENSION = "kvplan_router_native"
_MILLI = 1000


def exchange_rules(settings: RouterSettings, rng: Random) -> ExchangeRules:
    """The rules that both transports follow."""
    sampled = settings.sample_milli / _MILLI
    return ExchangeRules(settings.in_flight, settings.body_bytes_max, lambda: rng.random() < sampled)


def open_transport(settings: RouterSettings, decider: Decider, rng: Random) -> Transport:
    """A transport that has not started.

    Raises:
        BadSetting: the native one is asked for and not installed.
        OSError: certificate or key cannot be read, or do not belong together.
    """
    rules = exchange_rules(settings, rng)
    return _native(settings, decider, rules) if uses_native(settings.transport) else _aio(settings, decider, rules)


def uses_native(transport: str) -> bool:
    """Whether a setting of ``--transport`` means the extension.

    Raises:
        BadSetting: it does, and the extension is not installed.
    """
    installed = find_spec(EXTENSION) is not None
    if transport == "native" and not installed:
        raise BadSetting("transport", transport, "install kvplan-router-native, or use auto or aio")
    return transport != "aio" and installed


def _native(settings: RouterSettings, decider: Decider, rules: ExchangeRules) -> Transport:
    from kvplan_router.transport.native import NativeListener, NativeTransport  # noqa: PLC0415 - may not be there

    secure = not settings.insecure
    listener = NativeListener(
        settings.listen, settings.certificate if secure else None, settings.key if secure else None
    )
    return NativeTransport(decider, listener, rules, time.monotonic)


def _aio(settings: RouterSettings, decider: Decider, rules: ExchangeRules) -> Transport:
    from kvplan_router.transport.aio import AioTransport, Listener  # noqa: PLC0415 - heavy
    from kvplan_router.transport.tls import ReloadingCertificate  # noqa: PLC0415

    credentials = None
    if not settings.insecure and settings.certificate and settings.key:
        credentials = ReloadingCertificate(settings.certificate, settings.key).credentials()
    return AioTransport(decider, Listener(settings.listen, credentials), rules, time.monotonic)
