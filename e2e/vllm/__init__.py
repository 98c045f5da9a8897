"""Tests on the real vLLM, on a CPU."""

from pathlib import Path


def tiny_model_path() -> Path:
    """The program that writes the model; it runs under vLLM's own Python."""
    return Path(__file__).with_name("tiny_model.py")
