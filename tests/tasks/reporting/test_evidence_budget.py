"""Budgets of evidence pages: nothing is lost or told twice, whatever the number of groups."""

import itertools
import time

import pytest
from conftest import examples
from evidence_runs import declaration, material, row
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.reporting import frame as reporting_frame
from tasks.reporting import pages
from tasks.reporting.evidence_tables import MOST_CHARTS, MOST_COLUMNS, MOST_ROWS, FullTable, Line, Noted, evenly
from tasks.reporting.frame import Frame
from tasks.reporting.text import Cell

EFFECTS = st.lists(st.floats(0, 1), min_size=1, max_size=80)


def whole(effects, **more):
    """A table with a row for each effect."""
    lines = tuple(Line((i,), (Noted(Cell(str(i)), f"note {i}"),), each) for i, each in enumerate(effects))
    return FullTable("Title", ("Row",), lines, "sheet Measures", **more)


@given(EFFECTS, st.integers(1, 40), st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_rows_are_printed_or_counted_and_keep_their_order(effects, most, even):
    table = whole(effects, evenly=even)
    printed, view = table.printed(most), table.view(most)
    left = len(effects) - len(printed)
    assert len(printed) == min(most, len(effects)) == len(view.rows)
    places = [line.key[0] for line in printed]
    assert places == sorted(set(places))
    assert (f"{left} more row" in view.rest) == (left > 0)
    assert view.whole == (len(effects) if left else 0)


@given(EFFECTS, st.integers(1, 40))
@settings(max_examples=examples(60), deadline=None)
def test_what_is_left_out_is_no_larger_than_what_is_printed(effects, most):
    printed = {line.key[0] for line in whole(effects).printed(most)}
    left = [each for i, each in enumerate(effects) if i not in printed]
    assert not left or max(left) <= min(effects[i] for i in printed)


@given(st.integers(2, 300), st.integers(2, 40))
def test_settings_are_thinned_evenly_with_both_ends(n, most):
    most = min(n, most)
    places = evenly(n, most)
    steps = {b - a for a, b in itertools.pairwise(places)}
    assert (places[0], places[-1], len(set(places))) == (0, n - 1, most)
    assert max(steps) - min(steps) <= 1


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 30))
def test_settings_of_groups_keep_two_groups_and_never_exceed_the_budget(groups, each, most):
    lines = tuple(Line((g, s), (Noted(Cell("x")),), float(g)) for g in range(groups) for s in range(each))
    kept = FullTable("Title", ("Row",), lines, "there", grouped=True).printed(most)
    there = {line.key[0] for line in kept}
    assert len(kept) <= most
    assert len(there) >= min(2, groups, most)
    assert 0 in there, "the first group is the reference"
    assert most == 1 or groups - 1 in there, "the largest effect stays"


def test_many_notes_are_left_to_the_file():
    note = whole([0.5] * 9).view(25).note
    assert note.count("†") == 6
    assert note.endswith("3 more notes: sheet Measures.")


def test_a_row_of_another_length_is_an_error():
    with pytest.raises(ValueError, match="another length"):
        FullTable("Title", ("One", "Two"), (Line((0,), (Noted(Cell("x")),)),), "there")


GROUPS = ["white", *(f"Group number {i} of a long list" for i in range(39))]
ATTRIBUTES = ("race", "ethnicity", "sex")
MAKERS = ("model", "lender")
SETTINGS = [{"k": k, "c": c} for k in range(5) for c in ("all", "feasible")]


def many():
    """12,000 rows: 40 groups of three attributes, two decision makers, five measures at ten settings."""
    return [
        row(group, f"m{i}", (g * 7 + i * 13 + j) % 100 / 101, at=at, low=0.0, high=1.0, attribute=a, maker=maker)
        for a in ATTRIBUTES
        for maker in MAKERS
        for g, group in enumerate(GROUPS)
        for i in range(5)
        for j, at in enumerate(SETTINGS)
    ]


@pytest.fixture(scope="module")
def large():
    blocks = []
    for i in range(5):
        at = {"k": "max", "c": "all"}
        columns = [{"measure": f"m{j}", "at": at} for j in range(5)]
        blocks += [
            {"title": f"Groups {i}", "columns": columns, "chart": "forest"},
            {"title": f"Settings {i}", "along": ["k", "c"], "measure": f"m{i}", "chart": "matrix"},
            {"title": f"Both {i}", "along": ["k", "c"], "columns": [{"measure": f"m{i}"}, {"measure": "m0"}]},
        ]
    rows = many()
    assert len(rows) == 12_000
    found = material(rows, ATTRIBUTES)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pages, "declared", lambda name: declaration(*blocks))
        start = time.process_time()
        made = pages.evidence(found, "outcomes")
        return made, time.process_time() - start


def test_many_groups_keep_the_budgets(large):
    made, seconds = large
    tables = [table for part in made.parts for table in part.tables]
    figures = [figure for part in made.parts for figure in part.figures]
    assert len(tables) == 15 * 6
    assert max(len(table.rows) for table in tables) <= MOST_ROWS
    assert max(len(table.header) for table in tables) <= MOST_COLUMNS + 4
    assert len(figures) == MOST_CHARTS
    assert seconds < 5
    frame = Frame("Title", "run", (("pages/approval-rates.html", "Approvals"), ("method.html", "Definitions")))
    assert len(reporting_frame.page("page.html.j2", "evidence/outcomes.html", frame=frame, section=made)) < 1_500_000


def test_many_groups_are_printed_or_counted(large):
    made, _ = large
    for part in made.parts:
        for table in part.tables:
            assert table.whole == 0 or "more rows" in table.rest
            if part.title.startswith("Settings"):
                assert "28 more groups" in table.rest
                assert table.header[2] == "white (reference)"
            else:
                assert table.rows[0][0].text == "white (reference)"
