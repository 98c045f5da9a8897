"""The HTTP server: what of vLLM's API a router, an operator and a kubelet touch."""
