"""From a key plan to what the table encoder takes: the only bridge between numpy and the wire format."""

from kvplan_solver.cacheroute.key_plan import KeyPlan
from kvplan_solver.cacheroute.table.values import Home, TableKeys


def table_keys(plan: KeyPlan) -> TableKeys:
    """The admitted keys of a plan with their distinct homes, as standard-library columns."""
    numbers: dict[tuple[int, ...], int] = {}
    home_of = [0] * len(plan.keys)
    members, offsets = plan.members.tolist(), plan.offsets.tolist()
    for row, backup in enumerate(plan.backups.tolist()):
        home = (backup, *members[offsets[row] : offsets[row + 1]])
        home_of[row] = numbers.setdefault(home, len(numbers))
    homes = tuple(_home(plan.destinations, backup, places) for backup, *places in numbers)
    return TableKeys(homes, plan.keys.tolist(), plan.rates.rates.tolist(), home_of)


def _home(destinations: tuple[str, ...], backup: int, places: list[int]) -> Home:
    return Home(tuple(destinations[r] for r in places), destinations[backup] if backup >= 0 else None)
