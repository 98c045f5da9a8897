"""GPU presets: what a ``nvidia.com/gpu.product`` label says about memory, bandwidth and arithmetic.

Purpose: turn the node label into the four numbers of the formula prior.
Input: the label's value. Output: a ``GpuPreset``. Must not: guess; an unknown product is an error that lists
the known ones, and a MIG slice is refused because its share of the GPU is not in these numbers.
Sources: the system files of aiconfigurator-core 0.12.0 where it has one, NVIDIA's data sheet otherwise; each
preset says which. Arithmetic rates are dense (without sparsity).
"""

import re
from dataclasses import dataclass

from kvplan_solver.errors import InvalidInput

GIB = 1 << 30
MIB = 1 << 20
TERA = 10**12
GIGA = 10**9


@dataclass(frozen=True)
class GpuPreset:
    """One GPU product.

    Attributes:
        name: for ``nodes.gpuPreset``; the estimator's name of the system where it has one.
        label: regular expression that the whole product label must match.
        memory_bytes: memory of one GPU.
        bandwidth: memory bandwidth, bytes per second.
        bf16_flops: dense bfloat16 operations per second.
        fp8_flops: dense 8-bit float operations per second; None where the GPU has no such units.
        fast_link: whether the GPUs of a node reach each other over NVLink rather than PCIe.
        source: where the numbers are from.
    """

    name: str
    label: str
    memory_bytes: int
    bandwidth: float
    bf16_flops: float
    fp8_flops: float | None
    fast_link: bool
    source: str


ESTIMATOR = "aiconfigurator-core 0.12.0, the system file of this name"
A100_DATA_SHEET = "NVIDIA A100 data sheet: 40 GB, 1,555 GB/s, 312 TFLOPS dense bf16"

GPU_PRESETS = (
    GpuPreset(
        "a100_40gb", "NVIDIA-A100-SXM4-40GB",
        40 * GIB, 1555 * GIGA, 312 * TERA, None, True, A100_DATA_SHEET,
    ),
    GpuPreset(
        "a100_40gb_pcie", "NVIDIA-A100-PCIE-40GB",
        40 * GIB, 1555 * GIGA, 312 * TERA, None, False, A100_DATA_SHEET,
    ),
    GpuPreset(
        "a100_pcie", "NVIDIA-A100-80GB-PCIe",
        80 * GIB, 1935 * GIGA, 312 * TERA, None, False, ESTIMATOR,
    ),
    GpuPreset(
        "a100_sxm", "NVIDIA-A100-SXM4-80GB",
        80 * GIB, 2039 * GIGA, 312 * TERA, None, True, ESTIMATOR,
    ),
    GpuPreset(
        "b200_sxm", "NVIDIA-B200",
        180 * GIB, 7700 * GIGA, 2250 * TERA, 4500 * TERA, True, ESTIMATOR,
    ),
    GpuPreset(
        "h100_pcie", "NVIDIA-H100-PCIe",
        80 * GIB, 2000 * GIGA, 756.5 * TERA, 1513 * TERA, False, ESTIMATOR,
    ),
    GpuPreset(
        "h100_sxm", "NVIDIA-H100-80GB-HBM3",
        80 * GIB, 3350 * GIGA, 989 * TERA, 1978 * TERA, True, ESTIMATOR,
    ),
    GpuPreset(
        "h200_sxm", "NVIDIA-H200",
        141 * GIB, 4800 * GIGA, 989 * TERA, 1978 * TERA, True, ESTIMATOR,
    ),
    GpuPreset(
        "l4", "NVIDIA-L4",
        24 * GIB, 300 * GIGA, 121 * TERA, 242 * TERA, False, ESTIMATOR,
    ),
    GpuPreset(
        "l40s", "NVIDIA-L40S",
        46068 * MIB, 864 * GIGA, 362.05 * TERA, 733 * TERA, False, ESTIMATOR,
    ),
)  # fmt: skip

_SHARED = re.compile("-SHARED$")
_MIG = "-MIG-"
_NUMBERS = "the configuration's kvCapacityTokens, prefillTokensPerSecond and decodeMicrosecondsPerToken"


def find_gpu(label: str, preset: str | None = None) -> GpuPreset:
    """The preset of a product label; a preset named in the fleet's spec beats the label.

    Raises:
        InvalidInput: unknown preset or product (the known ones are listed), or a MIG slice.
    """
    if preset is not None:
        return _by_name(preset)
    if _MIG in label:
        remedy = f"a MIG slice has no preset: set {_NUMBERS}"
        raise InvalidInput("node label", "nvidia.com/gpu.product", label, remedy)
    product = _SHARED.sub("", label)
    for gpu in GPU_PRESETS:
        if re.fullmatch(gpu.label, product):
            return gpu
    raise InvalidInput("node label", "nvidia.com/gpu.product", label, f"no preset knows it: {_remedy()}")


def _by_name(name: str) -> GpuPreset:
    for gpu in GPU_PRESETS:
        if gpu.name == name.lower():
            return gpu
    raise InvalidInput("ServingFleet", "spec.nodes.gpuPreset", name, _remedy())


def _remedy() -> str:
    known = ", ".join(gpu.name for gpu in GPU_PRESETS)
    return f"set nodes.gpuPreset to one of {known}; or set {_NUMBERS}"
