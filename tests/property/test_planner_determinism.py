"""The same input gives the same bytes, in any process and under any hash seed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
import json
from tests.planning import sample
from kvplan_operator.plan.digest import canonical_json
from kvplan_operator.plan.explain import explain
from kvplan_operator.plan.index_head import TableVersion
from kvplan_operator.plan.raw_keys import KeyRow, hashed
from kvplan_operator.plan.table_input import plan_table
from kvplan_solver.cacheroute.keys import fingerprint

planned = sample()
rows = [KeyRow("chat", f"tenant-{n}", 1 / (n + 1), 0.001, 512.0) for n in range(50)]
secret = b"0123456789abcdef"
rates = hashed(rows, planned.problem, secret)
table = plan_table(planned, rates, fingerprint(secret), TableVersion(1, 1))
print(json.dumps(planned.plan.to_wire()))
print(canonical_json(planned.plan.to_wire()).decode())
print(explain(planned))
print(table.encoded.index)
"""


def output(seed: str) -> bytes:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, check=True, capture_output=True
    ).stdout


@pytest.mark.slow
def test_a_plan_its_explanation_and_its_table_are_the_same_bytes_under_any_hash_seed() -> None:
    first, second = output("0"), output("4242")
    assert b"assistants-" in first
    assert first == second
