"""Our own Envoy's configuration: one listener, one ext_proc filter, engines by endpoints file.

In: :class:`EnvoyOptions`. Out: a document for ``envoy -c``. Pure. Source: 05-router §2b, §3 and §7.
"""

from kvplan_router.envoy.filters import API, Document, ExtProcOptions, ext_proc_filter, override_host_policy
from kvplan_router.envoy.options import ENGINES, ROUTERS, Address, EnvoyOptions
from kvplan_router.transport.names import EXT_PROC_SERVICE

_UNLIMITED = 1_000_000
_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_AT_ONCE = {"update_merge_window": "0s"}
"""Envoy keeps a change of health from its workers for up to a second, to merge changes; requests go unplanned then."""


def bootstrap(options: EnvoyOptions) -> Document:
    """The whole configuration."""
    admin = {"admin": {"address": _socket(options.admin)}} if options.admin else {}
    return {
        "node": {"id": "kvplan-gateway", "cluster": "kvplan-gateway"},
        **admin,
        "static_resources": {
            "listeners": [_listener(options)],
            "clusters": [_engines(options), _routers(options)],
        },
    }


def _listener(options: EnvoyOptions) -> Document:
    manager = {
        "@type": API + "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "gateway",
        "stream_idle_timeout": "0s",  # a long answer may pause for longer than the default of five minutes
        "route_config": {"name": "gateway", "virtual_hosts": [_virtual_host()]},
        "http_filters": [
            ext_proc_filter(_asked(options)),
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": API + "extensions.filters.http.router.v3.Router"},
            },
        ],
    }
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]
    return {"name": "gateway", "address": _socket(options.listen), "filter_chains": [{"filters": filters}]}


def _asked(options: EnvoyOptions) -> ExtProcOptions:
    return ExtProcOptions(
        cluster=ROUTERS,
        message_timeout_milliseconds=options.message_timeout_milliseconds,
        max_message_timeout_milliseconds=options.max_message_timeout_milliseconds,
        waits_for_trailers=True,
        follow_retries=options.follow_retries,
        sample_responses=options.sample_responses,
    )


def _virtual_host() -> Document:
    action = {
        "cluster": ENGINES,
        "timeout": "0s",  # an answer takes as long as it takes
        "retry_policy": {
            "retry_on": "connect-failure,refused-stream,retriable-status-codes",
            "retriable_status_codes": [503],
            "num_retries": 3,
        },
    }
    return {"name": "gateway", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": action}]}


def _engines(options: EnvoyOptions) -> Document:
    return {
        "name": ENGINES,
        "connect_timeout": "1s",
        "circuit_breakers": _open_breakers(),
        "load_balancing_policy": override_host_policy(),
        "common_lb_config": _AT_ONCE,
        "typed_extension_protocol_options": {_HTTP_OPTIONS: _engine_protocol()},
        **_discovery(options),
    }


def _engine_protocol() -> Document:
    """An idle connection is given up before vLLM closes it (after 5 s): a request on its way then would be lost."""
    return {
        "@type": API + "extensions.upstreams.http.v3.HttpProtocolOptions",
        "common_http_protocol_options": {"idle_timeout": "3s"},
        "explicit_http_config": {"http_protocol_options": {}},
    }


def _discovery(options: EnvoyOptions) -> Document:
    if options.engines_dns is not None:
        return {"type": "STRICT_DNS", "load_assignment": _assignment(ENGINES, (options.engines_dns,))}
    source = {"resource_api_version": "V3", "path_config_source": {"path": options.endpoints_file}}
    return {"type": "EDS", "eds_cluster_config": {"service_name": ENGINES, "eds_config": source}}


def _routers(options: EnvoyOptions) -> Document:
    http2 = {
        # Envoy resets every ext_proc stream it is done with; many at once must not look like an attack.
        "max_outbound_frames": _UNLIMITED,
        "max_outbound_control_frames": _UNLIMITED,
        "initial_connection_window_size": 16 * 1024 * 1024,
        "max_concurrent_streams": _UNLIMITED,
    }
    protocol = {
        "@type": API + "extensions.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": http2},
    }
    check = {
        "timeout": "1s",
        "interval": "1s",
        "no_traffic_interval": "1s",
        "unhealthy_threshold": 1,
        "healthy_threshold": 1,
        "grpc_health_check": {"service_name": EXT_PROC_SERVICE},
    }
    return {
        "name": ROUTERS,
        "type": "STRICT_DNS",
        "connect_timeout": "1s",
        "circuit_breakers": _open_breakers(),
        "typed_extension_protocol_options": {_HTTP_OPTIONS: protocol},
        "health_checks": [check],
        # With no healthy router the filter fails open at once; panic mode would ask the dead one first.
        "common_lb_config": {**_AT_ONCE, "healthy_panic_threshold": {"value": 0}},
        "load_assignment": _assignment(ROUTERS, options.routers),
        **_tls(options),
    }


def _tls(options: EnvoyOptions) -> Document:
    if options.router_certificate_authority is None:
        return {}
    validation = {"trusted_ca": {"filename": options.router_certificate_authority}}
    typed = {
        "@type": API + "extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "common_tls_context": {"validation_context": validation, "alpn_protocols": ["h2"]},
    }
    return {"transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": typed}}


def _open_breakers() -> Document:
    """Every open answer is a request of both clusters; the default of 1,024 would cap them."""
    limits = ("max_connections", "max_pending_requests", "max_requests", "max_retries")
    return {"thresholds": [dict.fromkeys(limits, _UNLIMITED)]}


def _assignment(cluster: str, addresses: tuple[Address, ...]) -> Document:
    endpoints = [{"endpoint": {"address": _socket(address)}} for address in addresses]
    return {"cluster_name": cluster, "endpoints": [{"lb_endpoints": endpoints}]}


def _socket(address: Address) -> Document:
    return {"socket_address": {"address": address.host, "port_value": address.port}}
