"""The figures of one plan, by file name.

Inputs: a ``Planned``, and the plan before it where there is one. Output: figures, drawn in memory.
"""

from typing import TYPE_CHECKING

from kvplan_cli.plots.convergence import convergence_figure
from kvplan_cli.plots.loads import loads_figure
from kvplan_cli.plots.partition import partition_figure
from kvplan_cli.plots.reservation import reservation_figures
from kvplan_operator.plan.planned import Planned

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plan_figures(planned: Planned, before: Planned | None = None) -> "dict[str, Figure]":
    """Partition, convergence, reservation (numbered beyond four classes), and with a plan before: loads."""
    fleet, instance, result = planned.problem.fleet.metadata.name, planned.instance, planned.result
    figures = {
        "partition": partition_figure(instance, result.placements, fleet),
        "convergence": convergence_figure(result, fleet),
    }
    drawn = reservation_figures(instance.classes, result.reservation_tokens, instance.ambiguity)
    figures |= {f"reservation{f'-{n}' if n > 1 else ''}": figure for n, figure in enumerate(drawn, start=1)}
    if before is not None:
        title = f"{fleet}: planned load per destination before and after"
        loads = destination_loads(before), destination_loads(planned)
        figures["loads"] = loads_figure(*loads, title, "busy share of the sequences, %")
    return figures


def destination_loads(planned: Planned) -> dict[str, float]:
    """Busy share of the sequences by slot, %; the groups of one configuration share its load evenly."""
    return {
        f"{group.configuration}-{slot}": 100 * group.utilisation
        for group in planned.forecast.groups
        for slot in range(group.groups)
    }
