"""What the cluster, the engines, the routers and Prometheus say, gathered into one frozen snapshot."""
