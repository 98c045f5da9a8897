"""Where a planning command takes its problem from: files where ``-f`` is given, the cluster where it is not.

Inputs: option values. Output: a frozen ``Grounds``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kvplan_cli.cluster.ground import live_problem
from kvplan_cli.cluster.place import Place, check_no_place
from kvplan_cli.cluster.reading import FleetView, read_fleet
from kvplan_cli.cluster.session import Session, in_cluster
from kvplan_cli.errors import CommandError
from kvplan_cli.inputs import read_manifests, the_fleet
from kvplan_cli.problems import problem_of, traced_facts
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.problem import Problem


@dataclass(frozen=True, eq=False)
class Grounds:
    """What a plan is made or explained from.

    Attributes:
        problem: of the fleet.
        view: the fleet as the cluster has it; None where files were read.
    """

    problem: Problem
    view: FleetView | None = None

    @property
    def in_force(self) -> RoutingPlan | None:
        """The plan in force on the cluster; None where there is none, or files were read."""
        return self.view.shelf.plans.get(self.view.shelf.current or "") if self.view else None


def grounds_of(
    filename: Sequence[str] | None, fleet: str, traces: Sequence[str], place: Place, prometheus: str
) -> Grounds:
    """The problem that the options speak of.

    Raises:
        CommandError: options that contradict, and whatever files or cluster lack.
    """
    if filename:
        check_no_place(place, prometheus)
        manifests = read_manifests(filename)
        return Grounds(problem_of(manifests, the_fleet(manifests, fleet), traces))

    async def job(session: Session) -> Grounds:
        view = await read_fleet(session, fleet)
        return Grounds(await live_problem(session, view, prometheus, traced_facts(view.classes, traces)), view)

    return in_cluster(place, job)


def fleet_named(argument: str, option: str) -> str:
    """The fleet's name, which may be an argument or ``--fleet``.

    Raises:
        CommandError: both are given and differ.
    """
    if argument and option and argument != option:
        raise CommandError("--fleet", f"the argument names another fleet, {argument!r}", "leave one of the two out")
    return argument or option
