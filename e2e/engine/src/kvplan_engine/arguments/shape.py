"""Argument lists of the ways to start a server, brought to one shape.

``vllm serve MODEL …``, ``serve MODEL …``, ``python -m vllm.entrypoints.openai.api_server --model MODEL …`` and
the bare flags all end as flags. ``--config FILE`` is a YAML file of flags; what the command line says wins.
"""

import json
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

import yaml

_MODULES = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.cli.main")


def server_flags(argv: list[str]) -> list[str]:
    """The flags of a command line, without the words that start a server.

    Raises:
        ArgumentTypeError: the config file cannot be read or is no mapping.
    """
    rest = _dashed(_without_launcher(argv))
    return _from_config(rest) + rest


def _without_launcher(argv: list[str]) -> list[str]:
    rest = list(argv)
    if rest and Path(rest[0]).name.startswith("python"):
        rest.pop(0)
    if rest[:1] == ["-m"] and rest[1:2] and rest[1] in _MODULES:
        del rest[:2]
    if rest and Path(rest[0]).name == "vllm":
        rest.pop(0)
    if rest[:1] == ["serve"]:
        return _model_as_flag(rest[1:])
    return rest


def _model_as_flag(rest: list[str]) -> list[str]:
    """``serve`` takes the model as its first word."""
    if rest and not rest[0].startswith("-"):
        return ["--model", *rest]
    return rest


def _dashed(words: list[str]) -> list[str]:
    """vLLM takes ``--max_num_seqs`` for ``--max-num-seqs``."""
    return [_dashed_word(word) if word.startswith("--") else word for word in words]


def _dashed_word(word: str) -> str:
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value


def _from_config(flags: list[str]) -> list[str]:
    path = _config_path(flags)
    if path is None:
        return []
    return [word for name, value in _read(path).items() for word in _words(name, value)]


def _config_path(flags: list[str]) -> Path | None:
    for index, word in enumerate(flags):
        if word == "--config":
            return Path(flags[index + 1]) if index + 1 < len(flags) else None
        if word.startswith("--config="):
            return Path(word.partition("=")[2])
    return None


def _read(path: Path) -> dict[str, Any]:
    if path.suffix not in {".yaml", ".yml"}:
        raise ArgumentTypeError(f"Config file must be of a yaml/yml type. {path} supplied")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as why:
        raise ArgumentTypeError(f"Unable to read the config file at {path}: {why}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ArgumentTypeError(f"The config file {path} must be a mapping of flags, not a {type(content).__name__}")
    return content


def _words(name: Any, value: Any) -> list[str]:
    """A switch that is off is left out, as in vLLM: ``no-…`` is a name of its own."""
    flag = _dashed_word(f"--{name}")
    if isinstance(value, bool):
        return [flag] if value else []
    if isinstance(value, list):
        return [flag, *map(str, value)]
    return [flag, json.dumps(value) if isinstance(value, dict) else str(value)]
