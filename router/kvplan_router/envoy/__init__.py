"""What our own Envoy is configured with, and the endpoints file it watches."""
