"""How a verification looks: every broken constraint by name, and the reference's bracket where asked for."""

from rich.console import RenderableType

from kvplan_cli.output import View, bullets, number, percent, sentence
from kvplan_cli.verification import Verification
from kvplan_solver.certificate import Check


def verify_view(found: Verification) -> View:
    """The verdict first, then what it rests on."""
    planned = found.planned
    document = {
        "plan": planned.plan.metadata.name,
        "holds": found.holds,
        "violations": [{"check": v.check, "subject": v.subject, "message": v.message} for v in found.violations],
        "costPerSecond": planned.result.objective,
        "reference": None if found.bracket is None else {"lower": found.bracket.lower, "upper": found.bracket.upper},
        "referenceRefused": found.refused,
        "notes": list(found.notes),
    }
    verdict = (
        f"{planned.plan.metadata.name} holds: {len(Check)} kinds of constraint checked, every "
        f"other field follows from the decision, "
        f"cost {number(planned.result.objective)} per second."
        if found.holds
        else f"{planned.plan.metadata.name} does not hold:"
    )
    lines = [f"  {v.check}: {v.subject}: {v.message}" for v in found.violations]
    reference = _reference(found)
    sections: list[RenderableType] = [sentence(verdict, "bold"), *map(sentence, lines)]
    sections += [sentence(reference)] if reference else []
    return View(document, [*sections, *bullets("Notes", found.notes)])


def _reference(found: Verification) -> str:
    """The bracket in words; empty where it was not asked for."""
    if found.refused:
        return f"Reference: too large to enumerate. {found.refused}"
    if found.bracket is None:
        return ""
    low, high, cost = found.bracket.lower, found.bracket.upper, found.planned.result.objective
    above = percent(max(0.0, (cost - low) / low), 2) if low > 0 else "–"
    return (
        f"Reference (full enumeration): the optimum lies in [{number(low, 6)}, {number(high, 6)}]; "
        f"this plan costs {number(cost, 6)}, at most {above} above it."
    )
