"""kvplan's flags in an engine's command line."""

import pytest

from kvplan_operator.act.arguments import CommandLine, with_flags
from kvplan_operator.act.refusals import RolloutRefused
from kvplan_operator.api.conditions import ConditionReason

OWNED = {"max-num-seqs", "max-num-active-seqs", "tensor-parallel-size", "custom-histogram-buckets", "watermark"}

ARGS: dict[str, tuple[list[str], dict[str, str], list[str]]] = {
    "a flag that is absent comes last": (["--model=m"], {"max-num-seqs": "8"}, ["--model=m", "--max-num-seqs=8"]),
    "two words stay two words": (["--max-num-seqs", "4", "--x"], {"max-num-seqs": "8"}, ["--max-num-seqs", "8", "--x"]),
    "one word stays one word": (["--max-num-seqs=4", "--x"], {"max-num-seqs": "8"}, ["--max-num-seqs=8", "--x"]),
    "a short form stays short": (["-tp", "2", "m"], {"tensor-parallel-size": "4"}, ["-tp", "4", "m"]),
    "a short form with an equals sign": (["-tp=2"], {"tensor-parallel-size": "4"}, ["-tp=4"]),
    "underscores are hyphens": (["--max_num_seqs=4"], {"max-num-seqs": "8"}, ["--max_num_seqs=8"]),
    "of repeated flags one is left": (
        ["--max-num-seqs=4", "--x", "--max-num-seqs", "6"],
        {"max-num-seqs": "8"},
        ["--max-num-seqs=8", "--x"],
    ),
    "an owned flag that is not wanted goes with its value": (["--watermark", "0.1", "--x", "y"], {}, ["--x", "y"]),
    "the user's flags and values stay in their order": (
        ["--b", "1", "--a=2", "--c", '{"d": [1, 2]}', "--no-e"],
        {},
        ["--b", "1", "--a=2", "--c", '{"d": [1, 2]}', "--no-e"],
    ),
    "a JSON value is one value": (
        ["--custom-histogram-buckets", '{"request_tokens": [1]}'],
        {"custom-histogram-buckets": '{"request_tokens":[1,2]}'},
        ["--custom-histogram-buckets", '{"request_tokens":[1,2]}'],
    ),
    "a negative value is a value": (
        ["--max-num-seqs", "-1", "--x"],
        {"max-num-seqs": "8"},
        ["--max-num-seqs", "8", "--x"],
    ),
    "a flag without its value gets one": (
        ["--max-num-seqs", "--x"],
        {"max-num-seqs": "8"},
        ["--max-num-seqs", "8", "--x"],
    ),
    "a switch has no value": (["--x"], {"enable-force-include-usage": ""}, ["--x", "--enable-force-include-usage"]),
    "a switch that is off is turned on": (
        ["--no-enable-force-include-usage", "m"],
        {"enable-force-include-usage": ""},
        ["--enable-force-include-usage", "m"],
    ),
    "a longer name is another flag": (
        ["--max-num-seqs-x=1"],
        {"max-num-seqs": "8"},
        ["--max-num-seqs-x=1", "--max-num-seqs=8"],
    ),
}


@pytest.mark.parametrize(("args", "flags", "expected"), ARGS.values(), ids=ARGS.keys())
def test_only_kvplans_flags_change_and_doing_it_twice_changes_nothing(
    args: list[str], flags: dict[str, str], expected: list[str]
) -> None:
    once = with_flags(CommandLine(args=tuple(args)), flags, OWNED, "Deployment d")
    assert list(once.args) == expected
    assert with_flags(once, flags, OWNED, "Deployment d") == once


COMMANDS: dict[str, tuple[list[str], list[str]]] = {
    "vllm serve": (["vllm", "serve", "m"], []),
    "a path to vllm": (["/usr/local/bin/vllm", "serve", "m"], []),
    "python -m": (["python3", "-m", "vllm.entrypoints.openai.api_server"], ["--model=m"]),
    "a launcher before it": (["tini", "--", "vllm", "serve"], ["m"]),
    "variables before it": (["env", "HF_HOME=/models", "vllm", "serve"], ["m"]),
    "the image's own": ([], ["m"]),
}


@pytest.mark.parametrize(("command", "args"), COMMANDS.values(), ids=COMMANDS.keys())
def test_flags_are_added_after(command: list[str], args: list[str]) -> None:
    line = with_flags(CommandLine(tuple(command), tuple(args)), {"max-num-seqs": "8"}, OWNED, "Deployment d")
    assert list(line.command) == command
    assert list(line.args) == [*args, "--max-num-seqs=8"]


def test_a_flag_in_command_stays_there() -> None:
    line = CommandLine(("vllm", "serve", "m", "--max-num-seqs", "4"), ("--x",))
    assert with_flags(line, {"max-num-seqs": "8"}, OWNED, "d").command == ("vllm", "serve", "m", "--max-num-seqs", "8")


REFUSED: dict[str, tuple[list[str], list[str]]] = {
    "a shell": (["/bin/sh", "-c"], ["vllm serve m --max-num-seqs 4"]),
    "a login shell after a launcher": (["tini", "--", "bash", "-lc"], ["exec vllm serve m"]),
    "a shell in args alone": ([], ["bash", "-c", "vllm serve m"]),
    "a script": (["/entrypoint.sh"], ["--max-num-seqs=4"]),
    "another program": (["python", "-m", "sglang.launch_server"], []),
}


@pytest.mark.parametrize(("command", "args"), REFUSED.values(), ids=REFUSED.keys())
def test_what_hides_the_flags_is_refused_with_a_remedy(command: list[str], args: list[str]) -> None:
    with pytest.raises(RolloutRefused, match=r"Deployment d: command is .* write") as caught:
        with_flags(CommandLine(tuple(command), tuple(args)), {"max-num-seqs": "8"}, OWNED, "Deployment d")
    assert caught.value.refusal.reason is ConditionReason.UNSUPPORTED_COMMAND
    assert caught.value.refusal.stalled
