"""Estimated latencies of one model × GPU × TP over batches and lengths, and the snapshot that holds them.

Purpose: read the data file shipped with the package, find the profile of one configuration.
Inputs: ``data/snapshot.json`` (format, provenance and units inside it; written by
``python -m kvplan_cli.priors_snapshot``).
Outputs: frozen ``Profile`` values in seconds and tokens.
Must not: know how the numbers were made, or need the library that made them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import Floats
from kvplan_solver.units import MICRO

SNAPSHOT_FORMAT = 1


@dataclass(frozen=True)
class ProfileKey:
    """What a profile was estimated for: the library's names of model and system, and τ (p = 1)."""

    model: str
    system: str
    tensor_parallel: int


@dataclass(frozen=True, eq=False)
class Profile:
    """Latencies of one group.

    Attributes:
        key: what was estimated.
        kv_capacity_tokens: M, KV tokens of one group at ``memory_utilisation`` of the snapshot.
        batch: sequences running together, ascending, length B.
        input_tokens: prompt length of each length point, length P.
        output_tokens: output length of each length point, length P.
        first_token_seconds: time to first token, shape (P, B).
        token_seconds: time per further output token, shape (P, B).
    """

    key: ProfileKey
    kv_capacity_tokens: int
    batch: Floats
    input_tokens: Floats
    output_tokens: Floats
    first_token_seconds: Floats
    token_seconds: Floats

    def service_seconds(self) -> Floats:
        """T of one request at every point, seconds, shape (P, B): first token plus the ξ − 1 others."""
        further = np.maximum(self.output_tokens - 1.0, 0.0)
        return np.asarray(self.first_token_seconds + self.token_seconds * further[:, None])


@dataclass(frozen=True)
class Snapshot:
    """All profiles of the data file and where they come from.

    Attributes:
        library: name and version of the estimator.
        memory_utilisation: share of GPU memory assumed for M, in (0, 1].
        profiles: by key, in the order of the file.
    """

    library: str
    memory_utilisation: float
    profiles: Mapping[ProfileKey, Profile]

    def find(self, model: str, system: str, tensor_parallel: int) -> Profile | None:
        """The profile of a model, system and τ; None where the snapshot has none."""
        return self.profiles.get(ProfileKey(model, system, tensor_parallel))


def parse_snapshot(document: Mapping[str, Any]) -> Snapshot:
    """Read a snapshot from its JSON document.

    Raises:
        InvalidInput: the document has another format than this version reads.
    """
    found = document.get("format")
    if found != SNAPSHOT_FORMAT:
        raise InvalidInput("snapshot", "format", found, f"regenerate it: this version reads {SNAPSHOT_FORMAT}")
    profiles = [_profile(document, entry) for entry in document["profiles"]]
    return Snapshot(
        library=document["provenance"]["library"],
        memory_utilisation=document["provenance"]["memoryUtilisationMilli"] / 1000,
        profiles={profile.key: profile for profile in profiles},
    )


@cache
def bundled_snapshot() -> Snapshot:
    """The snapshot shipped with the package; read once."""
    text = resources.files(__package__).joinpath("data/snapshot.json").read_text(encoding="utf-8")
    return parse_snapshot(json.loads(text))


def _profile(document: Mapping[str, Any], entry: Mapping[str, Any]) -> Profile:
    lengths = np.array(document["lengths"], dtype=np.float64)
    return Profile(
        key=ProfileKey(entry["model"], entry["system"], entry["tensorParallel"]),
        kv_capacity_tokens=entry["kvCapacityTokens"],
        batch=np.array(document["batch"], dtype=np.float64),
        input_tokens=lengths[:, 0],
        output_tokens=lengths[:, 1],
        first_token_seconds=np.array(entry["firstTokenMicroseconds"], dtype=np.float64) / MICRO,
        token_seconds=np.array(entry["tokenMicroseconds"], dtype=np.float64) / MICRO,
    )
