"""Manifests that let a gateway ask the router: Envoy Gateway, Istio, and the Inference Extension's InferencePool.

In: names of the fleet's parts. Out: Kubernetes documents. Pure. In-flight mode ``early-close`` everywhere: a gateway's
own configuration seldom lets a stream wait for trailers. Source: 05-router §2 and §3.
"""

from dataclasses import dataclass

from kvplan_router.envoy.filters import Document, ExtProcOptions, ext_proc_filter, override_host_policy

GRPC_PORT = 9002
HEALTH_PORT = 9003
ADMIN_PORT = 9090


@dataclass(frozen=True)
class GatewayOptions:
    """What the documents name.

    Attributes:
        namespace: of fleet, router and route.
        fleet: name of the ServingFleet; the router's Service is ``<fleet>-router``.
        route: name of the HTTPRoute that leads to the fleet.
        gateway: name of the Gateway.
        engine_port: TCP port of the engines.
    """

    namespace: str = "default"
    fleet: str = "assistants"
    route: str = "assistants"
    gateway: str = "gateway"
    engine_port: int = 8000

    @property
    def router(self) -> str:
        """Name of the router's Service."""
        return f"{self.fleet}-router"

    @property
    def host(self) -> str:
        """The engines' Service, as Istio names it."""
        return f"{self.fleet}.{self.namespace}.svc.cluster.local"

    def metadata(self, name: str) -> Document:
        """Name and namespace of a document."""
        return {"name": name, "namespace": self.namespace}


def router_service(options: GatewayOptions) -> Document:
    """The router's Service; gateways balance over its pods, which all answer alike."""
    ports = [
        {"name": "grpc", "port": GRPC_PORT, "appProtocol": "kubernetes.io/h2c"},
        {"name": "grpc-health", "port": HEALTH_PORT, "appProtocol": "kubernetes.io/h2c"},
        {"name": "metrics", "port": ADMIN_PORT},
    ]
    selector = {"app.kubernetes.io/name": "kvplan-router", "kvplan.dev/fleet": options.fleet}
    spec = {"selector": selector, "clusterIP": "None", "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": options.metadata(options.router), "spec": spec}


def envoy_gateway(options: GatewayOptions) -> list[Document]:
    """Envoy Gateway: an extension policy that asks, and a patch of the cluster that obeys."""
    target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": options.route}
    asks = {
        "backendRefs": [{"name": options.router, "port": GRPC_PORT}],
        "failOpen": True,
        "messageTimeout": "250ms",
        "processingMode": {"request": {}},
        "metadata": {
            "accessibleNamespaces": ["envoy.lb", "envoy.lb.subset_hint"],
            "writableNamespaces": ["envoy.lb"],
        },
    }
    policy = _gateway_document("EnvoyExtensionPolicy", options, {"targetRefs": [target], "extProc": [asks]})
    patch = {
        "type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
        "name": f"httproute/{options.namespace}/{options.route}/rule/0",
        "operation": {"op": "add", "path": "/load_balancing_policy", "value": override_host_policy()},
    }
    gateway = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": options.gateway}
    obeys = {"targetRef": gateway, "type": "JSONPatch", "jsonPatches": [patch]}
    return [router_service(options), policy, _gateway_document("EnvoyPatchPolicy", options, obeys)]


def istio(options: GatewayOptions) -> list[Document]:
    """Istio: one EnvoyFilter puts the question before the router filter and the obedience into the cluster."""
    cluster = f"outbound|{GRPC_PORT}||{options.router}.{options.namespace}.svc.cluster.local"
    asks = {
        "applyTo": "HTTP_FILTER",
        "match": {
            "context": "GATEWAY",
            "listener": {
                "filterChain": {
                    "filter": {
                        "name": "envoy.filters.network.http_connection_manager",
                        "subFilter": {"name": "envoy.filters.http.router"},
                    }
                }
            },
        },
        "patch": {
            "operation": "INSERT_BEFORE",
            "value": ext_proc_filter(ExtProcOptions(cluster, waits_for_trailers=False)),
        },
    }
    obeys = {
        "applyTo": "CLUSTER",
        "match": {"context": "GATEWAY", "cluster": {"service": options.host, "portNumber": options.engine_port}},
        "patch": {"operation": "MERGE", "value": {"load_balancing_policy": override_host_policy()}},
    }
    workloads = {"labels": {"gateway.networking.k8s.io/gateway-name": options.gateway}}
    return [
        router_service(options),
        {
            "apiVersion": "networking.istio.io/v1alpha3",
            "kind": "EnvoyFilter",
            "metadata": options.metadata(options.router),
            "spec": {"workloadSelector": workloads, "configPatches": [asks, obeys]},
        },
    ]


def inference_pool(options: GatewayOptions) -> list[Document]:
    """Any gateway that implements the Inference Extension: a pool whose endpoint picker is the router."""
    spec = {
        "selector": {"matchLabels": {"kvplan.dev/fleet": options.fleet}},
        "targetPorts": [{"number": options.engine_port}],
        "endpointPickerRef": {
            "group": "",
            "kind": "Service",
            "name": options.router,
            "port": {"number": GRPC_PORT},
            "failureMode": "FailOpen",
        },
    }
    pool = {
        "apiVersion": "inference.networking.k8s.io/v1",
        "kind": "InferencePool",
        "metadata": options.metadata(options.fleet),
        "spec": spec,
    }
    return [router_service(options), pool]


def _gateway_document(kind: str, options: GatewayOptions, spec: Document) -> Document:
    return {
        "apiVersion": "gateway.envoyproxy.io/v1alpha1",
        "kind": kind,
        "metadata": options.metadata(options.router),
        "spec": spec,
    }
