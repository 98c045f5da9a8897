"""The argument parser: vLLM's flags, of which those that bind here are read, and the stand-in's own.

An unknown flag or a bad value exits with 2, as vLLM does. The stand-in's own flags also have environment
variables (``--stand-in-time-scale`` is STAND_IN_TIME_SCALE), so that a pod's arguments can stay vLLM's.
"""

from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Callable, Mapping
from typing import Any

from kvplan_engine.arguments import ignored, values
from kvplan_engine.arguments.shape import server_flags
from kvplan_engine.core.limits import Policy

OWN_PREFIX = "stand-in-"


def parse(argv: list[str], environment: Mapping[str, str]) -> Namespace:
    """Settings of a command line; exits with 2 and a message where vLLM would."""
    parser = build_parser(environment)
    try:
        flags = server_flags(argv)
    except ArgumentTypeError as why:
        parser.error(str(why))
    return parser.parse_args(flags)


def build_parser(environment: Mapping[str, str]) -> ArgumentParser:
    """The parser, with defaults of the stand-in's own flags taken from ``environment``."""
    parser = ArgumentParser(prog="kvplan-engine", description=__doc__, allow_abbrev=False)
    _add_server(parser)
    _add_memory(parser)
    _add_scheduler(parser)
    _add_ignored(parser)
    _add_own(parser, environment)
    return parser


def _add_server(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("server")
    group.add_argument("--config", metavar="FILE.yaml")
    group.add_argument("--model", default="tiny")
    group.add_argument("--served-model-name", nargs="+", metavar="NAME")
    group.add_argument("--host", default="127.0.0.1")
    group.add_argument("--port", type=values.whole_number, default=8000)
    group.add_argument("--api-key", nargs="+", default=[])
    group.add_argument("--shutdown-timeout", type=values.amount, default=0.0)
    group.add_argument("--max-num-queued-reqs", type=values.count)
    group.add_argument("--max-num-queued-tokens", type=values.scaled_count)
    group.add_argument("--custom-histogram-buckets", type=values.bucket_edges, default={})
    for switch in ("force-include-usage", "server-load-tracking", "prompt-tokens-details", "request-id-headers"):
        group.add_argument(f"--enable-{switch}", action=BooleanOptionalAction, default=False)


def _add_memory(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("memory and parallelism")
    group.add_argument("--tensor-parallel-size", "-tp", type=values.count, default=1)
    group.add_argument("--pipeline-parallel-size", "-pp", type=values.count, default=1)
    group.add_argument("--max-model-len", type=values.length_or_auto)
    group.add_argument("--block-size", type=values.count, default=16)
    group.add_argument("--gpu-memory-utilization", type=values.share, default=0.92)
    group.add_argument("--kv-cache-memory-bytes", type=values.scaled_count)
    group.add_argument("--num-gpu-blocks-override", type=values.count)
    group.add_argument("--enable-prefix-caching", action=BooleanOptionalAction, default=True)


def _add_scheduler(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("scheduler")
    group.add_argument("--max-num-seqs", type=values.count, default=256)
    group.add_argument("--max-num-active-seqs", type=values.count)
    group.add_argument("--max-num-batched-tokens", type=values.scaled_count, default=8192)
    group.add_argument("--long-prefill-token-threshold", type=values.whole_number, default=0)
    group.add_argument("--enable-chunked-prefill", action=BooleanOptionalAction, default=True)
    group.add_argument("--scheduler-reserve-full-isl", action=BooleanOptionalAction, default=True)
    group.add_argument("--watermark", type=values.share, default=0.0)
    group.add_argument("--scheduling-policy", choices=[policy.value for policy in Policy], default=Policy.FCFS.value)
    group.add_argument("--scheduler-cls", default="")


def _add_ignored(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("accepted without effect")
    for name in ignored.VALUES:
        group.add_argument(f"--{name}", metavar="VALUE")
    for name in ignored.OBJECTS:
        group.add_argument(f"--{name}", type=values.json_object, metavar="JSON")
    for name in ignored.LISTS:
        group.add_argument(f"--{name}", nargs="+", metavar="VALUE")
    for name in ignored.SWITCHES:
        group.add_argument(f"--{name}", action=BooleanOptionalAction)


def _add_own(parser: ArgumentParser, environment: Mapping[str, str]) -> None:
    group = parser.add_argument_group("the stand-in's own (or environment variables STAND_IN_…)")

    def add(name: str, read: Callable[[str], Any], default: str, text: str) -> None:
        flag = OWN_PREFIX + name
        default = environment.get(flag.replace("-", "_").upper(), default)
        group.add_argument(f"--{flag}", type=read, default=default, help=f"{text} (default: {default})")

    add("host", str, "", "address to bind whatever --host says; pods that share a machine get one each")
    add("time-scale", values.rate, "1", "factor on every duration; 0.1 is ten times faster")
    add("startup-seconds", values.amount, "0", "time before the port opens")
    add("step-milliseconds", values.amount, "5", "fixed part of a step on one GPU")
    add("answer-milliseconds", values.amount, "0.05", "added to a step per running answer on one GPU")
    add("prefill-tokens-per-second", values.rate, "20000", "prompt tokens computed per second on one GPU")
    add("scaling", values.share, "0.8", "speed grows as tensor-parallel-size to this power")
    add("answer-tokens", values.rate, "128", "median length of answers that end by themselves")
    add("answer-sigma", values.amount, "0.8", "their lognormal sigma")
    add("model-shape", values.model_shape, "2,2,32,2", "LAYERS,KV_HEADS,HEAD_DIM,VALUE_BYTES without a config.json")
    add("gpu-memory-bytes", values.scaled_count, "80G", "memory of one GPU")
    add("weight-bytes", values.scaled_number, "0", "weights of the whole model")
    add("max-body-bytes", values.scaled_count, "64M", "largest request body; over it HTTP 413")
