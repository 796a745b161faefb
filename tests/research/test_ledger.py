"""The ledger of a paper: what is declared of its tables and figures, held against the lines that were compared."""

import math
import re

import pytest

from research import figures
from research.figures import Cell, Figure, Line, Spread, Status, Verdict, compare, entries, ledger
from research.reproduction_page import cells
from tasks.pipeline.registry import METHODS

TABLE = {
    "what": "Table 1",
    "shows": "costs",
    "status": "met",
    "datasets": ["german"],
    "source": "Table 1",
    "quantities": ["cost"],
    "rows": [],
}
DRAWN = {"what": "Figure 1", "shows": "curves", "status": "drawn", "datasets": ["german"], "drawn_by": "cost-by-k"}
CANNOT = {"what": "Figure 2", "shows": "two persons", "status": "cannot", "datasets": [], "reason": "no rows"}


def line(verdict, *, tolerance=0.1, obtained=1.0, quantity="cost", why=""):
    figure = Figure("Table 1", False, Cell(quantity, "female"), 1.0, tolerance)
    return Line("german", figure, obtained, verdict, why)


def row(*lines, block=TABLE, drawn=()):
    (found,) = ledger(entries({"table": [block]}), lines, drawn)
    return found


def test_lines_are_counted_by_how_they_came_out():
    found = row(
        line(Verdict.AGREES),
        line(Verdict.OTHERWISE, why="theirs has ours"),
        line(Verdict.APART, why="other folds"),
        line(Verdict.INFORMATION, obtained=1.2),
        line(Verdict.INFORMATION, obtained="not run: long"),
        line(Verdict.AGREES, quantity="other"),
    )
    tally = found.tally
    counts = (tally.figures, tally.agree, tally.otherwise, tally.apart, tally.information, tally.not_run, tally.differ)
    assert counts == (5, 1, 1, 1, 1, 1, 0)
    assert (tally.near, tally.middling) == (2, 1)
    assert tally.why == {"theirs has ours", "other folds"}
    assert found.status == (Status.PARTLY,)
    assert found.tally.judged == 3


def test_a_status_counts_what_agrees_of_what_was_judged():
    agrees, apart = line(Verdict.AGREES), line(Verdict.APART, why="other folds")
    assert row(agrees, agrees).status == (Status.MET,)
    assert row(agrees, apart).status == (Status.PARTLY,)
    assert row(apart, line(Verdict.OTHERWISE)).status == (Status.NOT_REPRODUCED,)
    assert cells(row(agrees, agrees, apart))[3] == "partly met (2 of 3)"


def test_what_is_declared_gives_way_to_what_the_run_says():
    assert row(line(Verdict.AGREES), line(Verdict.DIFFERS)).status == (Status.DIFFERS,)
    assert row().status == (Status.MISSING,)
    assert row(line(Verdict.INFORMATION, obtained="not run")).status == (Status.NOT_RUN,)
    assert row(line(Verdict.INFORMATION, obtained=None, why="no file")).status == (Status.NOT_RUN,)
    assert row(block=DRAWN).status == (Status.MISSING, Status.DRAWN)
    assert row(block=DRAWN, drawn=[("german", "cost-by-k")]).status == (Status.DRAWN,)
    assert row(block=CANNOT).status == (Status.CANNOT,)


def test_blocks_of_one_table_are_one_row():
    other = TABLE | {"datasets": ["adult"], "status": "drawn", "reason": "other rows", "shows": "costs of Adult"}
    (entry,) = entries({"table": [TABLE, other, {"source": "reproduced", "datasets": ["german"]}]})
    assert entry.datasets == ("german", "adult")
    assert entry.shows == "costs; costs of Adult"
    assert entry.declared == {Status.MET, Status.DRAWN}


@pytest.mark.parametrize("missing", ["shows", "status"])
def test_a_block_without_its_words_is_refused(missing):
    with pytest.raises(ValueError, match=f"Table 1 .* no '{missing}'"):
        entries({"table": [{key: value for key, value in TABLE.items() if key != missing}]})


def test_what_cannot_be_had_has_a_reason_and_what_is_drawn_a_drawing():
    with pytest.raises(ValueError, match=r"Figure 2 .* no reason"):
        entries({"figure": [CANNOT | {"reason": ""}]})
    with pytest.raises(ValueError, match=r"Figure 1 .* 'drawn_by' does not say"):
        entries({"figure": [DRAWN | {"drawn_by": ""}]})


@pytest.mark.parametrize("status", ["partly met", "not reproduced", "differs", "missing", "not run"])
def test_nobody_declares_what_only_a_run_can_show(status):
    with pytest.raises(ValueError, match="only a run can show"):
        entries({"table": [TABLE | {"status": status}]})


def held(value, tolerance, spread=None):
    return Figure("Table 2", False, Cell("cec", "CEC model"), value, tolerance, spread=spread)


def test_a_tolerance_is_welchs_interval_of_two_means_and_half_a_digit():
    """By hand: 0.002 and 0.004 over five folds each, 5.88 degrees of freedom, t = 2.459."""
    figure = held(0.083, 0.0005, Spread(0.002, 5))
    (near,) = compare("adult", [figure], {figure.cell: 0.088}, (), {figure.cell: Spread(0.004, 5)})
    assert near.tolerance == pytest.approx(0.0005 + 2.459 * 0.002, abs=1e-5)
    assert (near.verdict, near.ratio) == (Verdict.AGREES, pytest.approx(1.0602, abs=1e-4))
    (far,) = compare("adult", [figure], {figure.cell: 0.127}, (), {figure.cell: Spread(0.004, 5)})
    assert far.verdict is Verdict.DIFFERS


@pytest.mark.parametrize(
    ("theirs", "ours", "tolerance"),
    [
        (Spread(0.002, 5), None, 2.776 * 0.002 * math.sqrt(1 / 5 + 1)),
        (Spread(math.nan, 1), Spread(0.02, 5), 2.776 * 0.02 * math.sqrt(1 / 5 + 1)),
        (Spread(math.nan, 1), None, 0.0),
        (Spread(0.0, 5), Spread(0.0, 5), 0.0),
    ],
)
def test_a_deviation_that_is_missing_is_that_of_the_other_side(theirs, ours, tolerance):
    figure = held(0.083, 0.0005, theirs)
    (compared,) = compare("adult", [figure], {figure.cell: 0.083}, (), {figure.cell: ours} if ours else {})
    assert compared.tolerance == pytest.approx(0.0005 + tolerance, abs=1e-5)


def test_data_in_place_of_the_papers_have_no_verdict():
    block = TABLE | {"status": "drawn", "reason": "other rows", "rows": [["female", [1.0]]], "tolerance": 0.5}
    (figure,) = figures.figures({"table": [block]}, "german")
    (compared,) = compare("german", [figure], {figure.cell: 1.0}, ())
    assert compared.verdict is Verdict.INFORMATION
    assert row(compared, block=block).status == (Status.DRAWN,)


ROMAN = "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI"
PRINTED = {
    "fgce": {*(f"Figure {n}" for n in range(1, 9)), *(f"Table {n}" for n in ROMAN.split())},
    "cst": {*(f"Table {n}" for n in range(1, 6)), *(f"Figure {n}" for n in range(1, 4))},
    "raguel": {*(f"Table {n}" for n in range(2, 7)), *(f"Figure {n}" for n in range(1, 5))},
    "gcfn": {"Table 2", "Table 3", *(f"Figure {n}" for n in (3, 4, 5, 6, 7, *range(10, 19)))},
    "cec": {*(f"Table {n}" for n in range(2, 5)), *(f"Figure {n}" for n in range(1, 8))},
}
"""Every table and figure with a result that the papers print."""


@pytest.mark.parametrize("paper", sorted(PRINTED))
def test_no_table_or_figure_of_a_paper_is_silently_absent(paper):
    listed = {each for entry in entries(figures.read(paper)) for each in numbered(entry.what)}
    assert PRINTED[paper] - listed == set()


def numbered(what):
    """The numbers that a row is for: ``Figures 14 to 17`` stands for four, ``Table XII, Student`` for a part of one."""
    several = re.fullmatch(r"(Table|Figure)s (\d+) to (\d+)", what)
    if several is None:
        return [what.partition(",")[0]]
    return [f"{several[1]} {n}" for n in range(int(several[2]), int(several[3]) + 1)]


@pytest.mark.parametrize("paper", METHODS)
def test_nothing_is_declared_as_missing_or_different(paper):
    for entry in entries(figures.read(paper)):
        assert not entry.declared & {Status.MISSING, Status.DIFFERS}, entry.what
