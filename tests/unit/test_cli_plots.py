"""Figures: what is drawn where, and the same plan gives the same picture."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from kvplan_cli.errors import CommandError
from kvplan_cli.plots.convergence import convergence_figure, course, searched
from kvplan_cli.plots.loads import loads_figure
from kvplan_cli.plots.partition import Box, boxes, partition_figure
from kvplan_cli.plots.reservation import reservation_figures
from kvplan_cli.plots.save import save_figures
from kvplan_cli.plots.style import colours, ink_on
from kvplan_cli.sticking import example_instance
from kvplan_solver.instance import Ambiguity, ConfigurationInput, GroupPlacement, Instance, NodeInput
from kvplan_solver.result import Method, Options, TracePoint
from kvplan_solver.solve import solve


def mixed_instance() -> Instance:
    wide = ConfigurationInput("tp2", 2, 1, 50_000, 1e-4, 0.02)
    deep = ConfigurationInput("pp2", 1, 2, 50_000, 1e-4, 0.02, spans_nodes=True)
    return Instance(example_instance().classes, (wide, deep), (NodeInput("a", 4), NodeInput("b", 4)))


PLACEMENTS = (GroupPlacement("pp2", ("a", "b")), GroupPlacement("tp2", ("a",)), GroupPlacement("tp2", ("b",)))


def words(figure: Figure) -> str:
    """Every text of a figure."""
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    legends = [axes.get_legend() for axes in figure.axes]
    texts += [text.get_text() for legend in [*legends, *figure.legends] if legend for text in legend.get_texts()]
    titles = [axes.get_title(loc="left") for axes in figure.axes] + [figure.get_suptitle()]
    return "\n".join([*texts, *titles])


def test_every_stage_gets_gpus_of_its_own_on_its_node() -> None:
    assert boxes(mixed_instance(), PLACEMENTS) == [
        Box("a", "pp2", "pp2-0/1", 0, 1),
        Box("b", "pp2", "pp2-0/2", 0, 1),
        Box("a", "tp2", "tp2-0", 1, 2),
        Box("b", "tp2", "tp2-1", 1, 2),
    ]


def test_the_partition_names_groups_nodes_and_what_is_idle() -> None:
    figure = partition_figure(mixed_instance(), PLACEMENTS, "tiny")
    shown = words(figure)
    for text in ("tiny: 3 groups on 6 of 8 GPUs", "tp2-1", "pp2-0/2", "tp2: 2 × 2 GPU", "idle: 2 GPU"):
        assert text in shown
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["a", "b"]


def test_many_nodes_are_drawn_in_columns() -> None:
    nodes = tuple(NodeInput(f"node-{n:02d}", 8) for n in range(40))
    instance = Instance(example_instance().classes, mixed_instance().configurations, nodes)
    assert len(partition_figure(instance, (), "large").axes) == 3


def test_the_reservation_is_drawn_against_the_distribution_and_the_threshold() -> None:
    instance = example_instance()
    [figure] = reservation_figures(instance.classes, [1744, 3072, 4192], Ambiguity.WASSERSTEIN_1)
    shown = words(figure)
    for text in ("chat: ", "fractile q = 0.909", "reserved: 144 output tokens", "shift threshold R", "ε in force"):
        assert text in shown
    assert len(figure.axes) == 6


def test_more_than_four_classes_get_further_figures() -> None:
    classes = example_instance().classes * 2
    figures = reservation_figures(classes, [4192] * 6, Ambiguity.SCALE)
    assert [len(figure.axes) for figure in figures] == [8, 4]
    assert "shift threshold" not in words(figures[0])


def test_the_course_only_improves() -> None:
    trace = [TracePoint("a", 10.0, 1.0, 0.1), TracePoint("b", 12.0, 3.0, 0.2), TracePoint("c", 8.0, 2.0, 0.3)]
    found = course(trace)
    assert found.objective.tolist() == [10.0, 10.0, 8.0]
    assert found.bound.tolist() == [1.0, 3.0, 3.0]
    assert (found.in_seconds, found.times.tolist()) == (True, [0.1, 0.2, 0.3])
    assert course([TracePoint("a", 1.0, 0.5)]).in_seconds is False


def test_the_convergence_shows_a_gap_only_where_a_bound_is_proven() -> None:
    instance = example_instance()
    certified = convergence_figure(solve(instance), "tiny")
    literal = convergence_figure(solve(instance, Options(method=Method.LITERAL)), "tiny")
    assert (len(certified.axes), len(literal.axes)) == (2, 1)
    assert "no lower bound: the method proves none" in words(literal)


def test_a_plan_settled_at_its_own_batch_is_told_apart_from_the_search() -> None:
    found = solve(example_instance())
    settled = replace(found, trace=(*found.trace, TracePoint("settled", found.objective, found.lower_bound)))
    assert searched(settled) == found.trace
    assert "at the speeds of its own batch" in words(convergence_figure(settled, "tiny"))
    assert "at the speeds of its own batch" not in words(convergence_figure(found, "tiny"))


def test_loads_show_both_sides_and_how_even_they_are() -> None:
    figure = loads_figure({"tp2-0": 1.0, "tp2-10": 3.0}, {"tp2-0": 2.0, "tp2-2": 2.0}, "Loads", "requests")
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["tp2-0", "tp2-2", "tp2-10"]
    assert "before: 2 destinations, largest/mean 1.500" in words(figure)
    assert "after: 2 destinations, largest/mean 1.000" in words(figure)
    heights = [bar.get_height() for bar in figure.axes[0].patches if isinstance(bar, Rectangle)]
    assert heights == [1.0, 0.0, 3.0, 2.0, 2.0, 0.0]


def test_the_same_figure_is_saved_as_the_same_bytes(tmp_path: Path) -> None:
    saved = []
    for name in ("one", "two"):
        [path] = save_figures(tmp_path / name, {"loads": loads_figure({"a-0": 1.0}, {"a-0": 2.0}, "Loads", "requests")})
        saved.append(path.read_bytes())
    assert saved[0] == saved[1]
    assert saved[0].startswith(b"\x89PNG")


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(CommandError, match="cannot be written"):
        save_figures(tmp_path / "file", {"loads": loads_figure({}, {}, "nothing", "requests")})


def test_type_on_every_colour_is_readable() -> None:
    def luminance(colour: str) -> float:
        channels = np.array([int(colour[n : n + 2], 16) for n in (1, 3, 5)]) / 255
        linear = np.where(channels <= 0.03928, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return float(linear @ np.array([0.2126, 0.7152, 0.0722]))

    for colour in colours([str(n) for n in range(7)]).values():
        ink = {"white": "#ffffff"}.get(ink_on(colour), ink_on(colour))
        light, dark = sorted((luminance(colour), luminance(ink)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3.0
