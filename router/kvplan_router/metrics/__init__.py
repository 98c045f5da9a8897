"""The core's plain values as Prometheus families."""
