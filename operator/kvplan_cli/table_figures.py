"""The figure of a routing table: load per destination, with the table before where there is one."""

from typing import TYPE_CHECKING

from kvplan_cli.plots.loads import loads_figure
from kvplan_solver.cacheroute.inputs import Floats
from kvplan_solver.cacheroute.install import loads_at
from kvplan_solver.cacheroute.key_plan import KeyPlan

if TYPE_CHECKING:
    from matplotlib.figure import Figure


UNIT = "load over planned load, mean = 1"


def table_figures(fleet: str, keys: KeyPlan, before: KeyPlan | None) -> "dict[str, Figure]":
    """``table-loads``: both tables at today's rates; without one before, the cold load alone stands beside."""
    after = relative_loads(keys, keys.loads)
    if before is not None and len(before.keys):
        title = f"{fleet}: load per destination before and after the replan"
        return {"table-loads": loads_figure(relative_loads(keys, loads_at(before, keys)), after, title, UNIT)}
    title = f"{fleet}: load per destination, cold tail alone and with the planned keys"
    cold = relative_loads(keys, keys.initial_load)
    return {"table-loads": loads_figure(cold, after, title, UNIT, ("cold tail", "all"))}


def relative_loads(keys: KeyPlan, loads: Floats) -> dict[str, float]:
    """L_r over its planned load c_r, divided by what the whole plan has: 1 is as planned."""
    total = float(keys.loads.sum())
    scale = float(keys.weights.sum()) / total if total > 0 else 0.0
    return {
        name: scale * load / weight
        for name, load, weight in zip(keys.destinations, loads.tolist(), keys.weights.tolist(), strict=True)
        if weight > 0
    }
