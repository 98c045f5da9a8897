"""How the difference of two plans looks: what restarts, then what only routers change."""

from kvplan_cli.output import View, sentence, table
from kvplan_operator.plan.diff import PlanDiff

_HEADINGS = ("kind", "what changes", "before", "after", "pods")


def diff_view(difference: PlanDiff) -> View:
    """All rows, cold ones first, and a line on what they cost."""
    document = {
        "old": difference.old,
        "new": difference.new,
        "equal": difference.empty,
        "podsStarted": difference.started,
        "podsStopped": difference.stopped,
        "podsKept": difference.kept,
        "changes": [
            {
                "change": row.change.value, "cold": row.cold, "subject": row.subject, "old": row.old,
                "new": row.new, "pods": row.pods, "sentence": row.sentence,
            }
            for row in difference.rows
        ],
    }  # fmt: skip
    if difference.empty:
        return View(document, [sentence(f"{difference.old} and {difference.new} decide the same.")])
    rows = (
        ["cold" if row.cold else "hot", row.sentence, row.old or "–", row.new or "–", row.pods or "–"]
        for row in difference.rows
    )
    title = f"From {difference.old or 'no plan'} to {difference.new}"
    return View(document, [table(title, _HEADINGS, rows), sentence(_cost(difference))])


def _cost(difference: PlanDiff) -> str:
    if difference.hot_only:
        return "Routers alone change: no pod restarts."
    return f"{difference.started} pods start, {difference.stopped} stop for good, {difference.kept} go on undisturbed."
