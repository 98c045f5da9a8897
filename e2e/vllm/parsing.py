"""What vLLM's own parser says of argument lists.

Inputs: the Python of vLLM's environment, lists as pods have them. Output: its words about each; None for one it takes.
"""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

PROGRAM = Path(__file__).with_name("parse_flags.py")


def refusals(python: Path, lists: Sequence[Sequence[str]]) -> list[str | None]:
    """The parser's words about each list."""
    done = subprocess.run([python, PROGRAM], input=json.dumps(lists), capture_output=True, text=True, check=True)
    words: list[str | None] = json.loads(done.stdout.splitlines()[-1])
    return words
