"""What the controller process loads: judging, routing and showing plans needs no solver library.

A fresh interpreter imports each module, because this one has loaded the libraries long ago.
"""

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import kvplan_operator.gate
import kvplan_operator.status
from tests.planning import sample, sample_manifests

SOLVER_LIBRARIES = ("highspy", "cvxpy")
PARTS = [
    f"{package.__name__}.{module.name}"
    for package in (kvplan_operator.gate, kvplan_operator.status)
    for module in pkgutil.iter_modules(package.__path__)
]
PURE = [
    "kvplan_operator.plan.assess",
    "kvplan_operator.plan.choice",
    "kvplan_operator.plan.diff",
    "kvplan_operator.plan.explain",
    "kvplan_operator.plan.table_input",
    "kvplan_solver.certificate",
]

ASSESS = """
import json, pathlib
from kvplan_operator.api.manifests import load_manifests
from kvplan_operator.model.inventory import inventory_from_objects
from kvplan_operator.model.problem import build_problem
from kvplan_operator.plan.assess import assess_plan

found = load_manifests(json.loads(pathlib.Path(sys.argv[1]).read_text()))
fleet, (plan,) = found.fleets[0], found.plans
problem = build_problem(fleet, found.classes, inventory_from_objects(found.nodes, (), fleet), {})
assert assess_plan(plan, problem).certificate.holds
"""


def loaded(code: str, *arguments: str) -> str:
    """The solver libraries that a fresh interpreter holds after some code."""
    report = f"print([name for name in {SOLVER_LIBRARIES!r} if name in sys.modules])"
    command = [sys.executable, "-c", f"import sys\n{code}\n{report}", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_importing_what_the_controller_runs_loads_no_solver_library() -> None:
    assert loaded("\n".join(f"import {module}" for module in [*PURE, *PARTS])) == "[]"


def test_assessing_a_plan_loads_no_solver_library(tmp_path: Path) -> None:
    sample_fleet, objects = sample_manifests(), tmp_path / "objects.json"
    parts = (*sample_fleet.fleets, *sample_fleet.classes, sample().plan)
    documents = [part.to_wire() for part in parts] + [dict(node) for node in sample_fleet.nodes]
    objects.write_text(json.dumps(documents))
    assert loaded(ASSESS, str(objects)) == "[]"
