"""The command line: what vLLM 0.32 accepts, and the stand-in's own settings."""
