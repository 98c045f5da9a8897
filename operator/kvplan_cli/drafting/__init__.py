"""A first fleet drafted from what runs already: vLLM Deployments, the nodes they are on, the traffic they see."""
