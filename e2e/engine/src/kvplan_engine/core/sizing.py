"""How many KV blocks an engine has, and what it says about them.

Inputs: the model's shape, the parallelism and the memory flags. Bytes of a token on the fullest GPU are
2 · layers on its stage · KV heads on its rank · head size · bytes per value; KV heads never fall below one
per rank. The exact block count, where given, beats the exact bytes, which beat the share of the device. Pure.
"""

import math
from dataclasses import dataclass


class DoesNotFit(Exception):
    """The engine cannot start: one sequence of the longest length exceeds its KV cache."""


@dataclass(frozen=True)
class ModelShape:
    """What the KV cache depends on.

    Attributes:
        layers: attention layers.
        kv_heads: key/value heads.
        head_dim: size of a head.
        value_bytes: bytes per number.
    """

    layers: int = 2
    kv_heads: int = 2
    head_dim: int = 32
    value_bytes: int = 2

    def token_bytes(self, tensor_parallel: int, pipeline_parallel: int) -> int:
        """KV bytes of one token on the GPU that holds most."""
        layers = math.ceil(self.layers / pipeline_parallel)
        heads = max(1, math.ceil(self.kv_heads / tensor_parallel))
        return 2 * layers * heads * self.head_dim * self.value_bytes


@dataclass(frozen=True)
class KvCache:
    """The KV cache of one engine.

    Attributes:
        blocks: blocks, the null block included.
        block_tokens: tokens per block.
        max_model_len: longest prompt plus answer, tokens.
    """

    blocks: int
    block_tokens: int
    max_model_len: int

    @property
    def max_concurrency(self) -> float:
        """Longest sequences that fit at once, as vLLM reports it (the null block is not deducted)."""
        return self.blocks / math.ceil(self.max_model_len / self.block_tokens)

    @property
    def size_tokens(self) -> int:
        """``kv_cache_size_tokens`` as vLLM reports it."""
        return int(self.max_concurrency * self.max_model_len)


def kv_cache(blocks: int, block_tokens: int, max_model_len: int | None) -> KvCache:
    """The cache with ``blocks`` blocks; without a length, the longest that fits is taken.

    Raises:
        DoesNotFit: one sequence of ``max_model_len`` needs more blocks, or there are none at all.
    """
    fits = blocks * block_tokens
    longest = fits if max_model_len is None else max_model_len
    if not 0 < longest <= fits:
        raise DoesNotFit(
            f"To serve at least one request with the model's max seq len ({longest}), {longest} tokens of KV cache "
            f"are needed, which is more than the {max(0, fits)} available. Raise kv-cache-memory-bytes or "
            f"gpu-memory-utilization, or lower max-model-len."
        )
    return KvCache(blocks, block_tokens, longest)
