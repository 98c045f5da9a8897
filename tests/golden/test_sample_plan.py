"""The plan of the sample fleet, checked in so that a change of the planner is reviewed as a change of plans.

``python -m tests.golden.test_sample_plan`` writes the files anew.
"""

from pathlib import Path

import pytest
import yaml

from kvplan_operator.plan.explain import explain
from tests.planning import sample

FOLDER = Path(__file__).parent / "plan"


def plan_text() -> str:
    """The whole object; costs and forecasts in its status show what a new decision is worth."""
    return yaml.safe_dump(sample().plan.to_wire(), sort_keys=False, allow_unicode=True)


def explanation_text() -> str:
    """What a person is told about it."""
    found = explain(sample())
    told = {
        "status": found.status.value,
        "binding": [binding.sentence for binding in found.binding],
        "runnerUp": found.runner_up.sentence if found.runner_up else None,
        "classes": [reason.sentence for reason in found.classes],
        "wouldChange": list(found.would_change),
        "warnings": list(found.warnings),
        "sources": [f"{row.subject}: {row.quantity}: {row.value:.6g} ({row.source})" for row in found.sources],
    }
    return yaml.safe_dump(told, sort_keys=False, allow_unicode=True, width=115)


TEXTS = {"sample.yaml": plan_text, "sample-explanation.yaml": explanation_text}


@pytest.mark.parametrize("name", TEXTS)
def test_the_sample_plan_is_the_one_on_file(name: str) -> None:
    expected = (FOLDER / name).read_text(encoding="utf-8")
    assert TEXTS[name]() == expected, "if the change is wanted: python -m tests.golden.test_sample_plan"


if __name__ == "__main__":
    for name, text in TEXTS.items():
        (FOLDER / name).write_text(text(), encoding="utf-8")
