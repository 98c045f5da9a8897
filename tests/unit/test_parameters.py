"""The parameter table is complete, and the document is the table."""

import dataclasses
from pathlib import Path

from kvplan_solver.instance import ClassInput, ConfigurationInput, Instance, NodeInput
from kvplan_solver.parameters import PARAMETERS, as_markdown

STRUCTURE = {"name", "classes", "configurations", "nodes"}


def test_every_field_of_the_input_has_a_row_and_every_row_a_field() -> None:
    fields = {
        (owner, field.name)
        for owner in (ClassInput, ConfigurationInput, NodeInput, Instance)
        for field in dataclasses.fields(owner)
        if field.name not in STRUCTURE
    }
    assert {(p.owner, p.field) for p in PARAMETERS} == fields
    assert len(PARAMETERS) == len(fields)


def test_the_document_is_the_table() -> None:
    assert (Path(__file__).parents[2] / "docs" / "parameters.md").read_text() == as_markdown()
