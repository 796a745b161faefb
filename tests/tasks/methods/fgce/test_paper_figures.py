"""What the reproduction of the FGCE paper draws and compares, on a graph of a few rows; the ledger of its tables."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from research import figures
from research.fgce import cells as fgce_cells
from research.fgce import systems
from research.fgce.experiments import EXPERIMENTS, Experiments
from research.fgce.group_explanations import EXPLANATIONS, Proposals
from research.fgce.systems import Relaxed, Request
from research.figures import ALL, Cell, Figure
from tasks.feasibility_graph import algorithm as feasibility
from tasks.feasibility_graph.algorithm import FREE, UP, Rules
from tasks.methods.fgce.algorithm.ablation import Variant
from tasks.methods.fgce.algorithm.solver import Solver
from tasks.methods.fgce.settings import FgceSettings
from tasks.numerics.problem import Problem

ROWS = np.array([[0.0], [0.25], [0.5], [1.0]])
"""Two false negatives, two candidates; the last row is out of reach of the others at 0.3."""

NONE = np.zeros((4, 0), np.int32)
SETTINGS = FgceSettings(epsilon=0.3)


def problem(direction=UP):
    nodes = feasibility.collapse(ROWS, NONE, NONE, Rules(np.array([direction], np.int8)))
    built = feasibility.build(nodes, Rules(np.array([direction], np.int8)), 0.3, SETTINGS)
    return Problem(
        encoded=ROWS,
        feature_of_column=np.zeros(1, np.int32),
        features=("f",),
        group=np.zeros(4, np.int32),
        groups=("a",),
        reference=0,
        factual=np.array([True, True, False, False]),
        candidate=np.array([False, False, True, True]),
        node=nodes.node,
        graph=built.graph,
    )


def relaxed(epsilon, direction=UP):
    encodings = pa.table(
        {"constraint": ["up" if direction == UP else "free"], "transitions": pa.array([None], "string")}
    )
    variant = Variant("nothing", Rules(np.array([direction], np.int8)), NONE, epsilon)
    return Relaxed(f"{epsilon:g}", "nothing", variant, encodings, np.zeros((4, 1), np.int32))


def test_rows_are_counted_by_component():
    shown = fgce_cells.components(problem())
    assert shown.cells == {
        Cell("active_components", "a"): 1.0,
        Cell("factuals_in_component", "a", (1.0,)): 2.0,
        Cell("candidates_in_component", "a", (1.0,)): 1.0,
    }
    assert [curve.y for curve in shown.drawings[0].curves] == [(2.0,), (1.0,)]


def test_the_window_that_was_printed_is_found():
    """Areas over k = 2 to 4, divided by the smallest cost of any group at any share."""
    costs = {"a": 10.0 / np.arange(1, 11), "b": 40.0 / np.arange(1, 11) ** 2}
    found = {
        Cell("least_cost", group, (0.5, float(k))): float(values[k - 1])
        for group, values in costs.items()
        for k in range(1, 11)
    }
    printed = [
        Figure("Table V", False, Cell("cauc", group, (0.5,)), float(np.trapezoid(values[1:4]) / 2 / 0.4), 0.01)
        for group, values in costs.items()
    ]
    cells = dict(fgce_cells.windows_cells(printed, found))
    assert cells[Cell("areas_agreeing_in_the_best_window", ALL)] == 2
    assert str(cells[Cell("best_window", ALL)]) == "k 2 to 4, divided by the smallest at the share: 2 of 2"


def test_no_window_is_told_where_no_area_is_printed():
    assert dict(fgce_cells.windows_cells([], {})) == {}


def test_attributes_that_seldom_change_are_left_out():
    two = replace(problem(), features=("f", "g"), groups=("a", "b"))
    shares = {("a", "f"): 0.9, ("b", "f"): 0.1, ("a", "g"): 0.5, ("b", "g"): 0.2}
    shown = fgce_cells.changed({Cell("acf", group, (name,)): v for (group, name), v in shares.items()}, two)
    (drawing,) = shown.drawings
    assert drawing.x == "1 f"
    assert {curve.name: curve.y for curve in drawing.curves} == {"a": (0.9,), "b": (0.1,)}


def test_costs_without_epsilon_are_those_of_permitted_steps():
    """Up from 0 and 0.25 to 0.5 and 1; nothing where the rule is turned round."""
    asked = Request(problem(), {}, SETTINGS)
    (part,) = systems.parts_of(asked, relaxed(np.inf))
    assert part.cost.tolist() == [[0.5, 1.0], [0.25, 0.75]]
    (down,) = systems.parts_of(asked, replace(relaxed(np.inf), variant=turned(np.inf)))
    assert np.isinf(down.cost).all()


def turned(epsilon):
    return Variant("nothing", Rules(np.array([feasibility.DOWN], np.int8)), NONE, epsilon)


def test_fgce_serves_the_share_that_the_table_asks_for():
    cells = dict(systems.fgce_cells(Request(problem(), {}, SETTINGS), [relaxed(0.3)], 9, 0.9, Solver(10.0)))
    assert cells[Cell("feasible_share", "FGCE", ("0.3", "nothing"))] == 1.0
    assert cells[Cell("feasible_mean_cost", "FGCE", ("0.3", "nothing"))] == pytest.approx(0.375)


def test_a_proposal_counts_where_it_is_valid_and_possible(monkeypatch):
    """Three numbers: both are valid, one is possible, and its cost is the mean."""
    rules = lambda encoded, _: (Rules(np.array([UP], np.int8)), np.zeros((len(encoded), 0), np.int32))  # noqa: E731
    monkeypatch.setattr(systems, "rules_of", rules)
    found = Proposals(np.array([[0.7], [0.2]]), np.zeros(2, np.int32), np.array([0.7, 0.05]), np.array(["", ""]), 1, ())
    cells = dict(systems.proposed_cells("X", found, Request(problem(), {}, SETTINGS), [relaxed(0.3)]))
    assert cells[Cell("valid_share", "X")] == 1.0
    assert cells[Cell("feasible_share", "X", ("0.3", "nothing"))] == 0.5
    assert cells[Cell("feasible_mean_cost", "X", ("0.3", "nothing"))] == pytest.approx(0.7)


def test_epsilon_of_a_rule_is_no_epsilon_of_the_paper():
    with pytest.raises(ValueError, match="expected a number"):
        _ = Request(problem(FREE), {}, FgceSettings()).epsilon


def test_every_table_and_figure_has_a_status():
    said = figures.read("fgce")
    drawn = {f"{measure.replace('_', '-')}-by-epsilon" for measure in fgce_cells.WORDS}
    drawn |= {"rows-by-component", "attribute-change-frequency", "fgce-and-face-by-k", "fgce-over-face-by-k"}
    for table in [*said["table"], *said["figure"]]:
        if table.get("source") in ("reproduced", "asked"):
            continue
        assert table["shows"]
        assert table["status"] in ("met", "cannot", "drawn")
        assert bool(table["datasets"]) == (table["status"] != "cannot") == ("reason" not in table)
        assert table["datasets"] == [each for each in EXPERIMENTS if each in table["datasets"]]
    assert {figure["drawn_by"] for figure in said["figure"] if figure["status"] == "drawn"} == drawn
    numbers = {each["what"].split(",")[0] for each in [*said["table"], *said["figure"]] if "what" in each}
    roman = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "XIII", "XIV", "XV", "XVI"]
    assert numbers == {f"Table {each}" for each in roman} | {f"Figure {at}" for at in range(1, 9)}


def test_baselines_are_those_of_the_registry_and_face():
    assert set(systems.KNOWN) == {"face", *EXPLANATIONS}
    assert Experiments.known_baselines == systems.KNOWN
