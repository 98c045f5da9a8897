"""How an explanation looks: why the plan is as it is, and what would change it."""

from collections.abc import Iterator

from rich.console import RenderableType

from kvplan_cli.output import View, bullets, number, percent, sentence, table
from kvplan_cli.plan_view import headline
from kvplan_operator.plan.explain import Explanation
from kvplan_operator.plan.planned import Planned
from kvplan_solver.codec import to_plain

_CLASSES = ("class", "fractile", "reserved", "best alone", "ε", "threshold R", "ε moves it")
_SOURCES = ("of", "quantity", "value", "source", "detail")
_BATCH = ("configuration", "speeds at batch", "prefill, µs/token", "decode, µs/token", "batch of the plan", "")


def explain_view(planned: Planned, explanation: Explanation) -> View:
    """Every reason, in the order in which people ask."""
    document = {"plan": planned.plan.metadata.name, **to_plain(explanation)}
    return View(document, [sentence(f"{headline(planned)}\n", "bold"), *_sections(planned, explanation)])


def _sections(planned: Planned, found: Explanation) -> Iterator[RenderableType]:
    yield from bullets("What binds", [b.sentence for b in found.binding] or ["nothing: more of anything saves nothing"])
    yield from bullets("The best other partition", [found.runner_up.sentence] if found.runner_up else [])
    yield from bullets("What the plan file says of itself", found.stated)
    yield table("Why each class reserves what it reserves, in tokens", _CLASSES, _class_rows(found))
    yield from bullets("The radius", [c.sentence for c in found.classes])
    rejected = [f"{r.class_name}: {percent(r.share)} rejected, {r.why}; {r.remedy}" for r in found.rejected]
    yield from bullets("Rejected demand", rejected)
    yield from bullets("What would change the plan", found.would_change)
    yield table("Batch and plan", _BATCH, _batch_rows(planned))
    rows = ([s.subject, s.quantity, s.value, s.source.value, s.detail] for s in found.sources)
    yield table("Where every number came from", _SOURCES, rows)
    yield from bullets("Warnings", found.warnings)
    violations = [f"{v.check.value}: {v.subject}: {v.message}" for v in found.violations]
    yield from bullets("Certificate violations", violations)
    yield from bullets("Fields that do not follow from the decision", [d.message for d in found.differences])


def _class_rows(found: Explanation) -> Iterator[list[object]]:
    for c in found.classes:
        yield [
            c.name, f"{c.fractile:.3f}", c.reservation_tokens, c.best_tokens, c.radius,
            c.shift_threshold_tokens, c.radius_moves_reservation,
        ]  # fmt: skip


def _batch_rows(planned: Planned) -> Iterator[list[object]]:
    speeds = {k.name: k for k in planned.instance.configurations}
    for point in planned.fixed_point.points:
        remark = "assumed: the plan runs none" if point.assumed else ""
        k = speeds[point.configuration]
        prefill, decode = k.prefill_seconds_per_token * 1e6, k.decode_seconds_per_token * 1e6
        yield [point.configuration, number(point.frozen), prefill, decode, number(point.implied), remark]
