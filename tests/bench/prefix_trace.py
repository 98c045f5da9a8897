"""Requests with shared prefixes from the real hot-key trace: when they come, their prompts, their keys.

Inputs: the data directory. Outputs: ``TraceRequest`` rows in order of arrival. Prompts are made of the trace's block
ids, so that two of them begin alike exactly as far as the trace says. Requests of one time stamp are spread over the
stamp's three seconds, evenly: the trace's grid is an artefact.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

TRACE = "mooncake_hotkey_1000.jsonl.gz"
BLOCK_TOKENS, TOKEN_BYTES = 512, 4
LONGEST_TOKENS = 32_000
"""Requests with longer prompts are left out: a tenth of an engine's cache each."""
_GRID_SECONDS = 3.0


@dataclass(frozen=True)
class TraceRequest:
    """One request.

    Attributes:
        at: seconds since the trace began.
        key: id of the second prompt block: the first one is a system prompt that all of a kind share.
        blocks: ids of the prompt's blocks.
        prompt_tokens: of the prompt.
        output_tokens: of the answer.
    """

    at: float
    key: str
    blocks: tuple[int, ...]
    prompt_tokens: int
    output_tokens: int

    def prompt(self) -> str:
        """The text: four bytes per token, equal for equal leading blocks."""
        text = "".join(_block_text(block) for block in self.blocks)
        return text.ljust(self.prompt_tokens * TOKEN_BYTES, ".")[: self.prompt_tokens * TOKEN_BYTES]


def _block_text(block: int) -> str:
    size = BLOCK_TOKENS * TOKEN_BYTES
    return f"{Random(block).getrandbits(4 * size):0{size}x}"


def read(directory: Path) -> list[TraceRequest]:
    """The trace, in order of arrival."""
    with gzip.open(directory / TRACE, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    times = _spread([row["t_ms"] / 1000 for row in rows])
    return [
        TraceRequest(at, f"block-{row['h'][min(1, len(row['h']) - 1)]}", tuple(row["h"]), row["in"], row["out"])
        for at, row in zip(times, rows, strict=True)
        if row["in"] <= LONGEST_TOKENS
    ]


def _spread(stamps: Sequence[float]) -> Iterable[float]:
    """Evenly over the time that a stamp stands for."""
    many, seen = Counter(stamps), Counter[float]()
    for stamp in stamps:
        yield stamp + _GRID_SECONDS * seen[stamp] / many[stamp]
        seen[stamp] += 1
