"""The ledger of a paper: what is declared of its tables and figures, held against the lines that were compared."""

import re

import pytest

from research import figures
from research.figures import Cell, Figure, Line, Status, Verdict, entries, ledger
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
        line(Verdict.INFORMATION, why="other folds"),
        line(Verdict.INFORMATION, tolerance=0.0),
        line(Verdict.INFORMATION, obtained="not run: long"),
        line(Verdict.AGREES, quantity="other"),
    )
    tally = found.tally
    assert (tally.figures, tally.agree, tally.explained, tally.information, tally.not_run, tally.differ) == (
        (5, 1, 2, 1, 1, 0)
    )
    assert tally.why == {"theirs has ours", "other folds"}
    assert found.status == (Status.MET,)


def test_what_is_declared_gives_way_to_what_the_run_says():
    assert row(line(Verdict.AGREES), line(Verdict.DIFFERS)).status == (Status.DIFFERS,)
    assert row().status == (Status.MISSING,)
    assert row(line(Verdict.INFORMATION, obtained="not run")).status == (Status.NOT_RUN,)
    assert row(line(Verdict.INFORMATION, obtained=None, why="no file")).status == (Status.NOT_RUN,)
    assert row(block=DRAWN).status == (Status.MISSING, Status.DRAWN)
    assert row(block=DRAWN, drawn=[("german", "cost-by-k")]).status == (Status.DRAWN,)
    assert row(block=CANNOT).status == (Status.CANNOT,)


def test_blocks_of_one_table_are_one_row():
    other = TABLE | {"datasets": ["adult"], "status": "beside", "shows": "costs of Adult"}
    (entry,) = entries({"table": [TABLE, other, {"source": "reproduced", "datasets": ["german"]}]})
    assert entry.datasets == ("german", "adult")
    assert entry.shows == "costs; costs of Adult"
    assert entry.declared == {Status.MET, Status.BESIDE}


@pytest.mark.parametrize("missing", ["shows", "status"])
def test_a_block_without_its_words_is_refused(missing):
    with pytest.raises(ValueError, match=f"Table 1 .* no '{missing}'"):
        entries({"table": [{key: value for key, value in TABLE.items() if key != missing}]})


def test_what_cannot_be_had_has_a_reason_and_what_is_drawn_a_drawing():
    with pytest.raises(ValueError, match=r"Figure 2 .* no reason"):
        entries({"figure": [CANNOT | {"reason": ""}]})
    with pytest.raises(ValueError, match=r"Figure 1 .* 'drawn_by' does not say"):
        entries({"figure": [DRAWN | {"drawn_by": ""}]})


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
