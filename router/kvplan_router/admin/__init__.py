"""What the process tells people and machines: /metrics, /state, /healthz, /readyz."""
