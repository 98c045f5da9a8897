"""Plan files: one RoutingPlan as YAML, written as a whole.

Inputs: a plan. Output: text, or a file. The text leaves out how long the search took, so that the same inputs
give the same bytes.
"""

from pathlib import Path

from kvplan_cli.errors import CommandError, reason_of
from kvplan_cli.files import write_all, yaml_documents
from kvplan_operator.api.routing_plan import RoutingPlan

Document = dict[str, object]


def plan_document(plan: RoutingPlan) -> Document:
    """The plan as ``kubectl apply`` takes it, without wall times."""
    document: Document = dict(plan.to_wire())
    status = document.get("status")
    if isinstance(status, dict) and isinstance(status.get("solve"), dict):
        status["solve"].pop("durationMilliseconds", None)
    return document


def write_plan(path: Path, plan: RoutingPlan) -> Path:
    """Replace a file by the plan.

    Raises:
        CommandError: it cannot be written; an old file stays as it was.
    """
    return write_document(path, plan_document(plan))


def write_document(path: Path, document: Document) -> Path:
    """Replace a file by one document.

    Raises:
        CommandError: it cannot be written; an old file stays as it was.
    """
    try:
        [written] = write_all(path.parent, {path.name: yaml_documents([document])})
    except OSError as error:
        raise CommandError("--out", f"{path} cannot be written ({reason_of(error)})", "give another file") from error
    return written
