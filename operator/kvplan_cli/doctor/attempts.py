"""Looks that may be refused: what is found, or ``Unknown`` with the reason, so that one refusal hides nothing else."""

from collections.abc import Awaitable
from typing import TypeVar

from kvplan_cli.doctor.findings import Unknown
from kvplan_operator.kube.errors import KubeError
from kvplan_solver.errors import SolverError

T = TypeVar("T")


async def attempt(look: Awaitable[T]) -> T | Unknown:
    """What a look finds, or why it finds nothing."""
    try:
        return await look
    except (KubeError, SolverError) as error:
        return Unknown(" ".join(str(error).split()))
