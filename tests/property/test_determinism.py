"""Same instance, same bytes: across repeats, processes and hash seeds."""

import os
import subprocess
import sys

import pytest

from kvplan_solver.codec import dump_json, load_instance, load_result
from kvplan_solver.result import Method, Options
from kvplan_solver.solve import solve
from tests.property.tiny_instances import random_tiny_instance

CHILD = """
import sys
from kvplan_solver.codec import dump_json, load_instance
from kvplan_solver.result import Method, Options
from kvplan_solver.solve import solve
sys.stdout.write(dump_json(solve(load_instance(sys.stdin.read()), Options(method=Method(sys.argv[1])))))
"""


def _in_a_child(instance: str, method: Method, hash_seed: str) -> str:
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", CHILD, method.value]
    return subprocess.run(command, input=instance, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("method", list(Method))
@pytest.mark.parametrize("seed", [1, 4, 7])
def test_a_result_has_the_same_bytes_in_every_process(seed: int, method: Method) -> None:
    instance = random_tiny_instance(seed)
    here = dump_json(solve(instance, Options(method=method)))
    children = {_in_a_child(dump_json(instance), method, hash_seed) for hash_seed in ("0", "1", "4711")}
    assert children == {here}


@pytest.mark.parametrize("seed", range(10))
def test_an_instance_and_its_result_survive_json(seed: int) -> None:
    instance = random_tiny_instance(seed)
    assert dump_json(load_instance(dump_json(instance))) == dump_json(instance)
    result = solve(instance)
    assert dump_json(load_result(dump_json(result))) == dump_json(result)
