"""ServingFleet.spec, what runs where: the model, the nodes, the configurations and the engine.

Each default is stated here, once. Where the planner falls back on measurements or on shipped data, the field
is optional and its description says what stands in for it. Pure data.
"""

from typing import ClassVar

from pydantic import Field

from kvplan_operator.api.base import ATOMIC, ApiModel, Rule
from kvplan_operator.api.common import LabelSelector, Toleration
from kvplan_operator.api.fleet_enums import KvDtype, TemplateKind, WeightDtype, WriteMode
from kvplan_operator.api.scalars import (
    BlockTokens,
    Bytes,
    ConfigurationName,
    Count,
    DnsLabel,
    Flag,
    LabelValue,
    Microseconds,
    ModelName,
    ObjectName,
    Parallelism,
    PositiveCount,
    PositiveMilli,
    PositiveTokens,
    PresetName,
    QualifiedName,
    Version,
)


class Model(ApiModel):
    """The model, as far as its memory and speed matter."""

    rules: ClassVar = (
        Rule(
            "has(self.name) || has(self.preset)",
            "give model.name, model.preset or both",
            "name",
            lambda self: self.name is not None or self.preset is not None,
        ),
    )

    name: ModelName | None = Field(
        default=None,
        description="Name that the engine loads and clients ask for, for example Qwen/Qwen3-32B.",
    )
    preset: ModelName | None = Field(
        default=None,
        description="Model of the shipped data, for example Qwen/Qwen3-32B; fills in absent fields below.",
    )
    parameters_billions: PositiveCount | None = Field(
        default=None,
        description="Parameters in billions, rounded up; weightsBytes is exact and wins. Absent: preset.",
    )
    weights_bytes: Bytes | None = Field(
        default=None, description="Bytes of all weights as loaded. Absent: parameters times bytes per weight."
    )
    layers: PositiveCount | None = Field(default=None, description="Transformer layers. Absent: from the preset.")
    kv_heads: PositiveCount | None = Field(
        default=None, description="Key-value heads per layer. Absent: from the preset."
    )
    head_dim: PositiveCount | None = Field(default=None, description="Dimension of one head. Absent: from the preset.")
    weight_dtype: WeightDtype | None = Field(
        default=None, description="Number format of the weights. Absent: from the preset, else BF16."
    )
    kv_dtype: KvDtype | None = Field(
        default=None, description="Number format of the KV cache. Absent: from the preset, else BF16."
    )
    max_model_len: PositiveTokens | None = Field(
        default=None,
        description="Longest prompt plus output in tokens. Absent: what the classes on each group need.",
    )


class Nodes(ApiModel):
    """The nodes whose GPUs the fleet may use."""

    rules: ClassVar = (
        Rule(
            "!has(self.minGpus) || !has(self.maxGpus) || self.minGpus <= self.maxGpus",
            "use a minGpus of at most maxGpus",
            "minGpus",
            lambda self: self.max_gpus is None or (self.min_gpus or 0) <= self.max_gpus,
        ),
    )

    selector: LabelSelector = Field(description="Labels of the nodes; an empty selector means every node.")
    gpu_resource: QualifiedName = Field(default="nvidia.com/gpu", description="Name under which nodes offer GPUs.")
    gpu_preset: PresetName | None = Field(
        default=None,
        description="System of the shipped data, for example h200_sxm. Absent: by the GPU product label.",
    )
    tolerations: tuple[Toleration, ...] = Field(
        default=(), max_length=32, json_schema_extra=ATOMIC,
        description="Taints that the groups tolerate; nodes with other taints are left out.",
    )  # fmt: skip
    min_gpus: Count | None = Field(default=None, description="GPUs that groups take at least. Absent: no floor.")
    max_gpus: Count | None = Field(
        default=None, description="GPUs that groups take at most. Absent: what the nodes have free."
    )


class Configuration(ApiModel):
    """One way to run a group: its parallelism and, where known, what a group of it can do."""

    name: ConfigurationName = Field(description="Name, unique in the fleet; slots are numbered after it.")
    tensor_parallel: Parallelism = Field(description="GPUs of one stage; always on one node.")
    pipeline_parallel: Parallelism = Field(default=1, description="Stages of one group.")
    gpu_product: LabelValue | None = Field(
        default=None,
        description="GPU product label of the nodes it runs on, for example NVIDIA-H200. Absent: any node.",
    )
    span_nodes: Flag = Field(
        default=False, description="Whether stages may lie on different nodes; needs LeaderWorkerSet."
    )
    deployment: ObjectName | None = Field(
        default=None,
        description="Existing vLLM Deployment to adopt. Absent: kvplan creates one from engine.templateRef.",
    )
    max_sequences: PositiveCount | None = Field(
        default=None, description="Sequences one group runs at once. Absent: planned from its KV capacity."
    )
    kv_capacity_tokens: PositiveTokens | None = Field(
        default=None,
        description="KV tokens of one group, as measured. Absent: from the engine, from data, or computed.",
    )
    prefill_tokens_per_second: PositiveTokens | None = Field(
        default=None,
        description="Prompt tokens one group prefills per second, as measured. Absent: from data.",
    )
    decode_microseconds_per_token: Microseconds | None = Field(
        default=None,
        description="Time per output token of a sequence at the usual batch, as measured. Absent: from data.",
    )


class TemplateRef(ApiModel):
    """The pod template that engines are created from."""

    kind: TemplateKind = Field(default=TemplateKind.POD_TEMPLATE, description="Kind of the object.")
    name: ObjectName = Field(description="Name of the object, in the fleet's namespace.")


class Engine(ApiModel):
    """How engines are started when kvplan creates or patches them."""

    template_ref: TemplateRef | None = Field(
        default=None,
        description="Template for groups that kvplan creates. Absent: only adopted Deployments can run.",
    )
    container: DnsLabel = Field(default="vllm", description="Container of the template that runs vLLM.")
    write_mode: WriteMode = Field(
        default=WriteMode.ARGS, description="Whether flags go into the container's args or a config file."
    )
    version: Version | None = Field(
        default=None, description="vLLM version; decides which flags exist. Absent: read off the engine."
    )
    block_tokens: BlockTokens = Field(default=16, description="Tokens of one KV block of the engine.")
    gpu_memory_utilization_milli: PositiveMilli = Field(
        default=900,
        description="Share of GPU memory the engine may use, in thousandths, as the shipped data assume.",
    )
