"""Names of the Endpoint Picker Protocol, as gateways and the router spell them. Standard library only."""

DESTINATION = "x-gateway-destination-endpoint"
"""Header, and key in the metadata of :data:`LB_NAMESPACE`: ``ip:port[,ip:port…]``, best first."""
SERVED = "x-gateway-destination-endpoint-served"
"""Who really served, in the response's metadata or headers."""
SUBSET = "x-gateway-destination-endpoint-subset"
"""The endpoints a gateway allows."""
LB_NAMESPACE = "envoy.lb"
SUBSET_NAMESPACE = "envoy.lb.subset_hint"

EXT_PROC_SERVICE = "envoy.service.ext_proc.v3.ExternalProcessor"
"""The gRPC service, and the name its health is asked for under."""
