"""/metrics: what an engine counts, under vLLM's names."""
