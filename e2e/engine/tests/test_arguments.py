"""The command line: vLLM's forms, values and refusals."""

from pathlib import Path

import pytest

from kvplan_engine.arguments.parser import parse
from kvplan_engine.core.sizing import DoesNotFit, KvCache, ModelShape
from kvplan_engine.main import main
from kvplan_engine.settings import Settings, settings_of


def _settings(*argv: str, environment: dict[str, str] | None = None) -> Settings:
    return settings_of(parse(list(argv), environment or {}))


@pytest.mark.parametrize(
    "launcher",
    [
        ["vllm", "serve", "org/model"],
        ["/usr/local/bin/vllm", "serve", "org/model"],
        ["serve", "org/model"],
        ["vllm", "serve", "--model", "org/model"],
        ["python", "-m", "vllm.entrypoints.openai.api_server", "--model", "org/model"],
        ["/usr/bin/python3.11", "-m", "vllm.entrypoints.cli.main", "serve", "org/model"],
        ["-m", "vllm.entrypoints.openai.api_server", "--model=org/model"],
        ["--model", "org/model"],
    ],
    ids=" ".join,
)
def test_every_way_to_start_a_server_means_the_same(launcher: list[str]) -> None:
    settings = _settings(*launcher, "--max_num_seqs", "7", "--max-num-batched-tokens=2k")
    assert settings.model_names == ("org/model",)
    assert (settings.limits.max_running, settings.limits.max_batched_tokens) == (7, 2000)


@pytest.mark.parametrize(
    ("text", "number"),
    [("67108864", 67108864), ("64M", 67108864), ("64m", 64_000_000), ("1k", 1000), ("1K", 1024), ("25.6k", 25_600)],
)
def test_memory_is_read_as_vllm_reads_it(text: str, number: int) -> None:
    assert parse(["--kv-cache-memory-bytes", text], {}).kv_cache_memory_bytes == number


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--kv-cache-memory-bytes", "64Mi"], "invalid int value: '64Mi'"),
        (["--kv-cache-memory-bytes", "1.5M"], "decimals are not allowed"),
        (["--kv-cache-memory-bytes", "-1"], "must be at least 1"),
        (["--max-num-seqs", "1k"], "invalid int value: '1k'"),
        (["--max-num-seqs", "٣"], "invalid int value"),
        (["--max-num-seqs", "0"], "must be at least 1"),
        (["--no-such-flag"], "unrecognized arguments: --no-such-flag"),
        (["--max-num-se", "4"], "unrecognized arguments"),
        (["serve", "model", "another"], "unrecognized arguments: another"),
        (["--watermark", "1.5"], "must be between 0 and 1"),
        (["--watermark", "nan"], "must be at least 0 and finite"),
        (["--scheduling-policy", "lifo"], "invalid choice: 'lifo'"),
        (["--custom-histogram-buckets", "{"], "cannot be converted to JSON"),
        (["--custom-histogram-buckets", "[1]"], "expected a JSON object"),
        (["--custom-histogram-buckets", '{"request_tokens": [2, 1]}'], "edges must rise"),
        (["--custom-histogram-buckets", '{"request_tokens": [true]}'], "expected a list of numbers"),
        (["--config", "missing.yaml"], "Unable to read the config file"),
        (["--config", "engine.json"], "must be of a yaml/yml type"),
        (["--stand-in-model-shape", "1,2,3"], "expected LAYERS,KV_HEADS,HEAD_DIM,VALUE_BYTES"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_vllm_refuses_exits_with_2(argv: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--max-num-seqs", "4", "--max-num-active-seqs", "5"], "max_num_active_seqs (5) must not exceed"),
        (["--scheduler-cls", "other.Scheduler"], "cannot import scheduler_cls 'other.Scheduler'"),
        (["--custom-histogram-buckets", '{"tokens": [1]}'], "unknown ['tokens']"),
        (["--num-gpu-blocks-override", "31", "--block-size", "16", "--max-model-len", "512"], "(512)"),
        (["--kv-cache-memory-bytes", "1", "--max-model-len", "-1"], "more than the 0 available"),
        (["--gpu-memory-utilization", "0"], "more than the 0 available"),
    ],
)
def test_an_engine_that_cannot_start_exits_with_1(
    argv: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 1
    assert says in capsys.readouterr().err


def test_a_config_file_gives_flags_and_the_command_line_wins(tmp_path: Path) -> None:
    file = tmp_path / "engine.yaml"
    file.write_text(
        "model: org/model\nmax_num_seqs: 9\nwatermark: 0.02\nenable-prefix-caching: false\nenforce-eager: true\n"
        "served-model-name: [a, b]\ncustom-histogram-buckets: {request_tokens: [8, 16]}\n"
    )
    settings = _settings("serve", "--config", str(file), "--max-num-seqs", "5")
    assert settings.model_names == ("a", "b")
    assert (settings.limits.max_running, settings.limits.watermark) == (5, 0.02)
    assert settings.limits.prefix_caching  # a switch that is off in the file is left out, as in vLLM
    assert settings.flags.custom_histogram_buckets == {"request_tokens": (8, 16)}


@pytest.mark.parametrize("content", ["- a\n", "text\n", "a: [\n", "no-such-flag: 1\n", "\x00"])
def test_a_broken_config_file_exits_with_2(tmp_path: Path, content: str) -> None:
    file = tmp_path / "engine.yaml"
    file.write_text(content)
    with pytest.raises(SystemExit) as ended:
        _settings("--config", str(file))
    assert ended.value.code == 2


def test_an_empty_config_file_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "engine.yaml").touch()
    assert _settings("--config", str(tmp_path / "engine.yaml")).limits == _settings().limits


def test_the_stand_ins_own_settings_come_from_the_environment_too() -> None:
    environment = {"STAND_IN_TIME_SCALE": "0.5", "STAND_IN_STEP_MILLISECONDS": "4"}
    assert _settings(environment=environment).speed.time_scale == 0.5
    assert _settings("--stand-in-time-scale", "2", environment=environment).speed.time_scale == 2


def test_67108864_bytes_are_4096_blocks_of_32_tokens() -> None:
    cache = _settings("--kv-cache-memory-bytes", "67108864", "--block-size", "32").cache
    assert (cache.blocks, cache.blocks * cache.block_tokens) == (4096, 131_072)


@pytest.mark.parametrize(
    ("flags", "tokens"),
    [((), 2_097_152), (("-tp", "2"), 4_194_304), (("-pp", "2"), 4_194_304), (("-tp", "4"), 4_194_304)],
    ids=["one GPU", "TP 2", "PP 2", "TP 4 on two KV heads: a head per rank at least"],
)
def test_a_gib_per_gpu_holds_what_was_measured(flags: tuple[str, ...], tokens: int) -> None:
    cache = _settings("--kv-cache-memory-bytes", str(2**30), "--block-size", "32", *flags).cache
    assert cache.blocks * cache.block_tokens == tokens


def test_the_reported_size_is_not_reduced_by_the_null_block() -> None:
    assert KvCache(blocks=32, block_tokens=32, max_model_len=512).size_tokens == 1024
    assert KvCache(blocks=32, block_tokens=32, max_model_len=512).max_concurrency == 2.0


def test_a_models_own_config_gives_its_shape_and_length(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        '{"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096,'
        ' "max_position_embeddings": 4096}'
    )
    bytes_per_token = ModelShape(32, 8, 128, 2).token_bytes(1, 1)
    settings = _settings("serve", str(tmp_path), "--kv-cache-memory-bytes", str(bytes_per_token * 16 * 1000))
    assert (settings.cache.blocks, settings.cache.max_model_len) == (1000, 4096)
    halved = _settings("serve", str(tmp_path), "--kv-cache-dtype", "fp8", "--kv-cache-memory-bytes", str(2**30))
    full = _settings("serve", str(tmp_path), "--kv-cache-memory-bytes", str(2**30))
    assert halved.cache.blocks == 2 * full.cache.blocks


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[]", "must be a JSON object"),
        ("{", "Expecting property name"),
        ("{}", "lacks ['num_hidden_layers', 'num_attention_heads', 'hidden_size']"),
        ('{"num_hidden_layers": 0, "num_attention_heads": 4, "hidden_size": 64}', "lacks ['num_hidden_layers']"),
    ],
)
def test_a_broken_model_config_exits_with_1(
    tmp_path: Path, content: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text(content)
    assert main(["serve", str(tmp_path)]) == 1
    assert says in capsys.readouterr().err


def test_the_longest_length_can_be_left_to_the_cache() -> None:
    flags = ("--num-gpu-blocks-override", "32", "--block-size", "32", "--max-model-len")
    assert _settings(*flags, "auto").cache.max_model_len == 1024
    with pytest.raises(DoesNotFit, match="1025"):
        _settings(*flags, "1025")


def test_without_bytes_the_share_of_the_device_less_the_weights_is_taken() -> None:
    flags = ("--stand-in-gpu-memory-bytes", "1000000", "--stand-in-weight-bytes", "200000", "--max-model-len", "-1")
    cache = _settings(*flags, "--gpu-memory-utilization", "0.5", "-tp", "2").cache
    assert cache.blocks == (500_000 - 100_000) // (256 * 16)


def test_the_flags_that_a_plan_renders_are_accepted() -> None:
    rendered = {
        "tensor-parallel-size": "4",
        "pipeline-parallel-size": "1",
        "max-model-len": "8192",
        "custom-histogram-buckets": '{"request_tokens":[1,2,4,8192]}',
        "block-size": "16",
        "kv-cache-memory-bytes": str(2**30),
        "max-num-seqs": "256",
        "max-num-active-seqs": "40",
        "watermark": "0.02",
        "shutdown-timeout": "120",
        "enable-force-include-usage": None,
        "enable-server-load-tracking": None,
    }
    argv = [word for name, value in rendered.items() for word in (f"--{name}", value) if word is not None]
    assert _settings("vllm", "serve", "org/model", *argv).limits.max_running == 40
