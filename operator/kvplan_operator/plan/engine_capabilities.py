"""Which flags an engine of a given version knows: an unknown flag ends it at start, again and again.

Inputs: a vLLM version as text, or None where nobody states it; flag names. Outputs: what is known and what has to be
left out. A version that nobody states is taken to be current; a flag that the table does not have (one that people put
into a plan) is theirs to answer for and is kept. Where the release is not on record, ``since`` is the first one the
flag was seen in, so that a flag may be left out in vain but never written in vain. Pure.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Release = tuple[int, int]
"""Major and minor number of a version."""

OLDEST: Release = (0, 9)
"""Oldest release the table speaks of."""


@dataclass(frozen=True)
class Capability:
    """Since when the engine knows a flag.

    Attributes:
        since: first release that is known to have it.
        source: how that is known.
    """

    since: Release
    source: str


_EARLIER = "in the documentation of 0.9"
CAPABILITIES: Mapping[str, Capability] = {
    "tensor-parallel-size": Capability(OLDEST, _EARLIER),
    "pipeline-parallel-size": Capability(OLDEST, _EARLIER),
    "max-model-len": Capability(OLDEST, _EARLIER),
    "max-num-seqs": Capability(OLDEST, _EARLIER),
    "block-size": Capability(OLDEST, _EARLIER),
    "gpu-memory-utilization": Capability(OLDEST, _EARLIER),
    "kv-cache-dtype": Capability(OLDEST, _EARLIER),
    "kv-cache-memory-bytes": Capability((0, 11), "seen in 0.11; merged in September 2025, between 0.10 and 0.11"),
    "enable-force-include-usage": Capability((0, 11), "seen in 0.11"),
    "shutdown-timeout": Capability((0, 18), "pull request 36666, released with 0.18.0"),
    "watermark": Capability((0, 24), "pull request 44594; in the configuration classes of 0.24.0"),
    "max-num-queued-reqs": Capability((0, 29), "pull request 49445, released with 0.29"),
    "max-num-queued-tokens": Capability((0, 29), "pull request 49445, released with 0.29"),
    "custom-histogram-buckets": Capability((0, 31), "first in the candidates after 0.30.1"),
    "max-num-active-seqs": Capability((0, 32), "pull request 56758; ran on 0.32.0"),
    "nnodes": Capability((0, 32), "a group over two nodes started on 0.32.0"),
    "node-rank": Capability((0, 32), "a group over two nodes started on 0.32.0"),
    "master-addr": Capability((0, 32), "a group over two nodes started on 0.32.0"),
    "headless": Capability((0, 32), "a group over two nodes started on 0.32.0"),
}
"""Every flag that kvplan writes."""


def release(version: str | None) -> Release | None:
    """Major and minor number; None for a version that nobody states."""
    found = re.match(r"v?(\d+)\.(\d+)", version or "")
    return (int(found[1]), int(found[2])) if found else None


def knows(version: str | None, flag: str) -> bool:
    """Whether an engine of this version takes the flag."""
    stated, capability = release(version), CAPABILITIES.get(flag)
    return stated is None or capability is None or stated >= capability.since


def unknown_flags(version: str | None, flags: Iterable[str]) -> tuple[str, ...]:
    """Those of the flags that an engine of this version would end at, in order of name."""
    return tuple(sorted(flag for flag in flags if not knows(version, flag)))


def version_of_image(image: str) -> str | None:
    """The version an image's tag states, ``vllm/vllm-openai:v0.32.0``; None where it states none."""
    tag = image.partition("@")[0].rpartition(":")[2]
    found = re.match(r"v?(\d+\.\d+(\.\d+)?)(?![\w/])", tag)
    return found[1] if found else None
