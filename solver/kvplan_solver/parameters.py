"""Every number the solver takes: symbol, unit, default and source, in one table.

The defaults are read from the input types themselves, so that the table cannot disagree with them. Rendered
into docs/parameters.md by ``as_markdown``; a test keeps the file and the fields complete.
"""

import dataclasses
from dataclasses import dataclass

from kvplan_solver.instance import ClassInput, ConfigurationInput, Instance, NodeInput

PAPER = "BCD-DRO"
OURS = "kvplan"


@dataclass(frozen=True)
class Parameter:
    """One input number.

    Attributes:
        owner: the input type that has it.
        field: its name there.
        symbol: the paper's symbol, where it has one.
        unit: unit of the value.
        source: equation of the paper, or the reason it exists.
    """

    owner: type
    field: str
    symbol: str
    unit: str
    source: str

    @property
    def default(self) -> str:
        """The default as text; "required" where there is none."""
        field = next(f for f in dataclasses.fields(self.owner) if f.name == self.field)
        if field.default is dataclasses.MISSING:
            return "required" if field.default_factory is dataclasses.MISSING else "empty"
        return str(field.default) if field.default != "" else "any"


PARAMETERS: tuple[Parameter, ...] = (
    Parameter(ClassInput, "arrival_rate", "λ_i", "requests/s", f"{PAPER} §III.A"),
    Parameter(ClassInput, "input_tokens_mean", "Lin_i", "tokens", f"{PAPER} (1): the mean, in T"),
    Parameter(ClassInput, "input_tokens_p95", "Lin_i", "tokens", f"{PAPER} (2)–(4), (6e): the P95, in r"),
    Parameter(ClassInput, "input_tokens_max", "–", "tokens", f"{OURS}: the longest prompt, for max-model-len"),
    Parameter(ClassInput, "shared_prefix_tokens", "Lpre_i", "tokens", f"{PAPER} (6e)"),
    Parameter(ClassInput, "max_output_tokens", "Lmax_i", "tokens", f"{PAPER} (5): end of the support"),
    Parameter(ClassInput, "output_lengths", "ξ̂_i", "tokens", f"{PAPER} §III.D: samples"),
    Parameter(ClassInput, "latency_slo_seconds", "D_i", "s", f"{PAPER} (6f): bounds the mean"),
    Parameter(ClassInput, "preemption_cost", "cp", "cost/token", f"{PAPER} (2)"),
    Parameter(ClassInput, "waste_cost", "cw", "cost/token", f"{PAPER} (3)"),
    Parameter(ClassInput, "latency_weight", "c_slo", "cost/s", f"{PAPER} (6a), §V.A"),
    Parameter(ClassInput, "rejection_weight", "c_rej", "cost/request", f"{PAPER} (6a), §V.A"),
    Parameter(ClassInput, "radius", "ε", "tokens (Scale: fraction)", f"{PAPER} (5)"),
    Parameter(ClassInput, "arrival_scv", "Ca²", "–", f"{OURS}: measured burstiness; 1 is the paper's Poisson"),
    Parameter(ConfigurationInput, "tensor_parallel", "τ_k", "GPUs", f"{PAPER} §III.A"),
    Parameter(ConfigurationInput, "pipeline_parallel", "p_k", "stages", f"{PAPER} §III.A"),
    Parameter(ConfigurationInput, "kv_capacity_tokens", "M_k", "tokens", f"{PAPER} (6e)"),
    Parameter(ConfigurationInput, "prefill_seconds_per_token", "α·p_k/C_k", "s/token", f"{PAPER} (1)"),
    Parameter(ConfigurationInput, "decode_seconds_per_token", "β/B_k", "s/token", f"{PAPER} (1)"),
    Parameter(ConfigurationInput, "overhead_seconds", "N_L·τ_k·t_ar", "s", f"{PAPER} (1)"),
    Parameter(ConfigurationInput, "max_sequences", "S_k", "sequences", f"{OURS}: 1 is the paper's queue"),
    Parameter(ConfigurationInput, "gpu_product", "–", "–", f"{OURS}: product the configuration was sized for"),
    Parameter(ConfigurationInput, "spans_nodes", "–", "–", f"{OURS}: stages may lie on different nodes"),
    Parameter(ConfigurationInput, "service_seconds", "T_ik", "s", f"{OURS}: a measurement beats (1)"),
    Parameter(NodeInput, "free_gpus", "J", "GPUs", f"{PAPER} (6b), per node"),
    Parameter(NodeInput, "gpu_product", "–", "–", f"{OURS}: mixed fleets"),
    Parameter(Instance, "headroom_milli", "κ", "thousandths", f"{PAPER} (6e)"),
    Parameter(Instance, "gpu_second_cost", "c_gpu", "cost/GPU-s", f"{PAPER} (6a)"),
    Parameter(Instance, "idle_gpu_second_cost", "–", "cost/GPU-s", f"{OURS}: z has no price in the paper"),
    Parameter(Instance, "switching_cost", "–", "cost/s per group", f"{OURS}: z has no price in the paper"),
    Parameter(Instance, "ambiguity", "P_ε", "–", f"{PAPER} (5); WassersteinInf and Scale are ours"),
    Parameter(Instance, "max_utilisation", "u_max", "–", f"{OURS}: the paper's strict u < 1"),
    Parameter(Instance, "block_tokens", "B", "tokens", f"{OURS}: the engine's KV block"),
    Parameter(Instance, "max_gpus", "J", "GPUs", f"{PAPER} (6b)"),
    Parameter(Instance, "min_gpus", "–", "GPUs", f"{OURS}: a floor on the fleet"),
    Parameter(Instance, "max_groups", "–", "groups", f"{OURS}: what a plan can list of one configuration"),
    Parameter(Instance, "running", "–", "–", f"{OURS}: groups that stay where they are if they can"),
)


def as_markdown() -> str:
    """The table of docs/parameters.md."""
    head = [
        "# Parameters of the solver",
        "",
        "Generated from `kvplan_solver.parameters`; a test keeps it current.",
        "",
    ]
    lines = ["| symbol | name | unit | default | source |", "|---|---|---|---|---|"]
    lines += [
        f"| {p.symbol} | `{p.owner.__name__}.{p.field}` | {p.unit} | {p.default} | {p.source} |" for p in PARAMETERS
    ]
    return "\n".join([*head, *lines, ""])
