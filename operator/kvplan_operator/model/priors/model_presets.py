"""The sizes of common models, each with its source.

Purpose: the table behind ``spec.model.preset`` and behind model names that need no numbers.
Sources: the model configurations inside aiconfigurator-core 0.12.0, whose dimensions the parameters are
counted from; Mistral 7B from table 1 of arXiv 2310.06825. Must not: hold a number without a source.
"""

from dataclasses import dataclass

from kvplan_operator.api.fleet_enums import KvDtype, WeightDtype

BITS = {"FP32": 32, "BF16": 16, "FP16": 16, "FP8": 8, "INT8": 8, "INT4": 4, "FP4": 4}
"""Bits of one number, by the API's word for its format."""


@dataclass(frozen=True)
class ModelFacts:
    """What the priors need of a model.

    Attributes:
        name: preset or given name, for messages.
        parameters: all parameters.
        active_parameters: those that one token passes (fewer for a mixture of experts).
        layers: N_L.
        kv_heads: heads that keep keys and values.
        head_dim: numbers per head.
        weights_bytes: bytes of all weights.
        weight_dtype: format of the weights.
        kv_dtype: format of the cached keys and values.
        snapshot_model: the estimator's name; empty where it has none or a fact differs from the preset.
        attention_heads: query heads; 0 is unknown.
    """

    name: str
    parameters: float
    active_parameters: float
    layers: int
    kv_heads: int
    head_dim: int
    weights_bytes: float
    weight_dtype: WeightDtype
    kv_dtype: KvDtype
    snapshot_model: str = ""
    attention_heads: int = 0

    def kv_bytes_per_token(self, tensor_parallel: int) -> float:
        """Bytes one token takes over a whole group: a rank never holds less than one KV head."""
        heads = tensor_parallel * max(1, -(-self.kv_heads // tensor_parallel))
        return 2.0 * self.layers * heads * self.head_dim * BITS[self.kv_dtype] / 8


@dataclass(frozen=True)
class ModelPreset:
    """A model whose sizes are known, the other names people use for it, and the source."""

    facts: ModelFacts
    source: str
    aliases: tuple[str, ...] = ()


def _config(name: str) -> str:
    return f"aiconfigurator-core 0.12.0 model_configs/{name}_config.json"


def _bf16(
    name: str,
    parameters: int,
    layers: int,
    *,
    attention_heads: int,
    kv_heads: int = 8,
    active_parameters: int | None = None,
    snapshot_model: str = "",
) -> ModelFacts:
    """A model stored in bfloat16 with heads of 128 numbers, as all but one of the table are."""
    return ModelFacts(
        name=name,
        parameters=parameters,
        active_parameters=active_parameters or parameters,
        layers=layers,
        kv_heads=kv_heads,
        head_dim=128,
        weights_bytes=2 * parameters,
        weight_dtype=WeightDtype.BF16,
        kv_dtype=KvDtype.BF16,
        snapshot_model=snapshot_model,
        attention_heads=attention_heads,
    )


LLAMA_70B = "meta-llama/Meta-Llama-3.1-70B"

MODEL_PRESETS = (
    ModelPreset(
        _bf16(LLAMA_70B, 70_553_706_496, 80, attention_heads=64, snapshot_model=LLAMA_70B),
        _config("meta-llama--Meta-Llama-3.1-70B"),
        ("Llama-3.1-70B", "Llama-3.1-70B-Instruct", "Meta-Llama-3.1-70B-Instruct"),
    ),
    ModelPreset(
        _bf16(
            "meta-llama/Meta-Llama-3.1-8B", 8_030_261_248, 32,
            attention_heads=32, snapshot_model="meta-llama/Meta-Llama-3.1-8B",
        ),
        _config("meta-llama--Meta-Llama-3.1-8B"),
        ("Llama-3.1-8B", "Llama-3.1-8B-Instruct", "Meta-Llama-3.1-8B-Instruct"),
    ),
    ModelPreset(
        _bf16("meta-llama/Llama-3.3-70B-Instruct", 70_553_706_496, 80, attention_heads=64, snapshot_model=LLAMA_70B),
        "the dimensions of Llama 3.1 70B (80 layers, 64 heads, 8 KV heads, hidden size 8192, feed-forward 28672)",
    ),
    ModelPreset(
        _bf16("mistralai/Mistral-7B-v0.1", 7_241_732_096, 32, attention_heads=32),
        "arXiv 2310.06825, table 1",
        ("Mistral-7B-Instruct-v0.1", "Mistral-7B-Instruct-v0.2"),
    ),
    ModelPreset(
        ModelFacts(
            name="nvidia/Llama-3.1-70B-Instruct-FP8",
            parameters=70_553_706_496,
            active_parameters=70_553_706_496,
            layers=80,
            kv_heads=8,
            head_dim=128,
            weights_bytes=72_655_052_800,  # embedding and output head stay 16 bits wide
            weight_dtype=WeightDtype.FP8,
            kv_dtype=KvDtype.FP8,
            snapshot_model="nvidia/Llama-3.1-70B-Instruct-FP8",
            attention_heads=64,
        ),
        _config("nvidia--Llama-3.1-70B-Instruct-FP8"),
    ),
    ModelPreset(
        _bf16(
            "Qwen/Qwen3-30B-A3B", 30_532_122_624, 48,
            attention_heads=32, kv_heads=4, active_parameters=3_353_032_704, snapshot_model="Qwen/Qwen3-30B-A3B",
        ),
        _config("Qwen--Qwen3-30B-A3B"),
    ),
    ModelPreset(
        _bf16("Qwen/Qwen3-32B", 32_762_123_264, 64, attention_heads=64, snapshot_model="Qwen/Qwen3-32B"),
        _config("Qwen--Qwen3-32B"),
    ),
    ModelPreset(
        _bf16("Qwen/Qwen3-8B", 8_190_735_360, 36, attention_heads=32, snapshot_model="Qwen/Qwen3-8B"),
        _config("Qwen--Qwen3-8B"),
    ),
)  # fmt: skip


def find_preset(name: str) -> ModelPreset | None:
    """The preset with this name or alias, whatever the case and the organisation before the slash."""
    short = _short(name)
    for preset in MODEL_PRESETS:
        if short in (_short(known) for known in (preset.facts.name, *preset.aliases)):
            return preset
    return None


def preset_names() -> str:
    """All presets, for messages."""
    return ", ".join(preset.facts.name for preset in MODEL_PRESETS)


def _short(name: str) -> str:
    return name.rsplit("/", 1)[-1].lower()
