"""The one entry: ``solve(instance, options) -> Result`` by the chosen method."""

from kvplan_solver.certified.method import solve_certified
from kvplan_solver.instance import Instance
from kvplan_solver.literal.method import solve_literal
from kvplan_solver.result import Method, Options, Result


def solve(instance: Instance, options: Options | None = None) -> Result:
    """Solve one planning problem.

    Args:
        instance: the problem; checked when it was built.
        options: method, gap target, effort, seed, clock and callbacks.

    Returns:
        A result; demand beyond capacity is rejected in part, not an error.

    Raises:
        EnumerationTooLarge: the literal method on too large a set of partitions.
    """
    chosen = options if options is not None else Options()
    method = {Method.CERTIFIED: solve_certified, Method.LITERAL: solve_literal}[chosen.method]
    return method(instance, chosen)
