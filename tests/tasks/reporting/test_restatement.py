"""What another edition changed: counted by hand, balanced, and no more than the two reports tell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_trend import measure, year

from schemas.tables.trends import RESTATEMENT, Told
from tasks.metrics.algorithm.disclosure import POLICIES
from tasks.reporting.trends.page import words
from tasks.reporting.trends.restatement import SOURCE, Edition, changed, restated_rows, restatement, section
from tasks.reporting.trends.trend import RANGES

OLD = Edition(
    year(2022, measure("white", 0.70, 300), measure("Black", 0.60, 100), measure("Asian", None, None), vintage="old"),
    {SOURCE: 1000, "used": 900, "refused: filtered": 60, "refused: missing covariate": 40},
)
NEW = Edition(
    year(2022, measure("white", 0.75, 310, state="within"), measure("Black", None, None), vintage="new"),
    {SOURCE: 1010, "used": 930, "refused: filtered": 20, "refused: missing covariate": 60},
)
PUBLIC, STRICT = POLICIES["public"], POLICIES["strict"]


def test_every_measure_of_either_edition_has_its_row():
    table = restatement("a", OLD, NEW)
    assert table.schema.equals(RESTATEMENT.schema())
    found = {row["group"]: row for row in table.to_pylist()}
    assert set(found) == {"white", "Black", "Asian"}
    white = found["white"]
    assert white["difference"] == pytest.approx(0.75 - 0.70)
    assert (white["old_state"], white["new_state"]) == ("not_run", "within")
    assert (found["Black"]["old"], found["Black"]["new"], found["Black"]["difference"]) == (0.60, None, None)
    assert (found["Black"]["new_told"], found["Asian"]["new_told"]) == (Told.WITHHELD, Told.NOT_MADE)
    assert changed(table) == 2


def test_an_edition_beside_itself_changes_nothing():
    table = restatement("a", OLD, OLD)
    assert changed(table) == 0
    assert {row["difference"] for row in table.to_pylist()} == {0.0, None}
    assert {row["difference"] for row in restated_rows(OLD, OLD, PUBLIC)} == {0}


def test_rows_are_told_by_hand_and_balance():
    rows = {row["rows"]: row for row in restated_rows(OLD, NEW, PUBLIC)}
    assert rows[SOURCE] == {"rows": SOURCE, "old": 1000, "new": 1010, "difference": 10}
    assert rows["refused: filtered"]["difference"] == -40
    parts = [row for name, row in rows.items() if name != SOURCE]
    assert [sum(row[side] for row in parts) for side in ("old", "new", "difference")] == [1000, 1010, 10]


counts = st.lists(st.integers(0, 40), min_size=2, max_size=5)


@given(counts, counts, st.sampled_from([PUBLIC, STRICT]))
def test_no_small_count_is_told_or_left_to_be_had_by_subtraction(old, new, policy):
    names = [f"refused: {i}" for i in range(min(len(old), len(new)))]
    sides = [dict(zip(names, side, strict=False)) for side in (old, new)]
    pair = [Edition(e.result, {SOURCE: sum(side.values()), **side}) for e, side in zip((OLD, NEW), sides, strict=True)]
    rows = [row for row in restated_rows(*pair, policy) if row["rows"] != SOURCE]
    hidden = np.array([row["old"] is None for row in rows])
    for side, edition in zip(("old", "new"), sides, strict=True):
        for row in rows:
            assert row[side] is None or not 0 < edition[row["rows"]] < policy.smallest
        if hidden.any() and not hidden.all():
            # what is hidden can be had as a sum: it must be of several counts, and not small
            together = sum(edition[row["rows"]] for row, gone in zip(rows, hidden, strict=True) if gone)
            assert hidden.sum() > 1
            assert not 0 < together < policy.smallest


def test_the_section_names_both_editions_and_prints_differences():
    found = section(OLD, NEW, PUBLIC, words())
    assert [word.split(";")[0] for word in found.words] == ["Earlier: old", "Later: new"]
    rows_table, measures_table = found.tables
    assert [row[3].text for row in rows_table.rows] == ["+10", "+30", "−40", "+20"]
    cells = {row[2].text.split(" ")[0]: [cell.text for cell in row] for row in measures_table.rows}
    assert cells["white"][5] == "+5.0\N{NO-BREAK SPACE}pp"
    assert cells["Black"][4:6] == ["withheld", "–"]
    assert cells["white"][6:] == ["not run", "inside limit"]


def test_a_range_of_draws_is_told_as_one():
    drawn = measure("white", 0.2, 300, name="infeasible_share_size_matched", method="fgce", note="range")
    ranged = Edition(year(2022, drawn, vintage="new"), NEW.counts)
    (row,) = [row for row in restatement("a", OLD, ranged).to_pylist() if row["measure"] == drawn.measure]
    assert (row["old_note"], row["new_note"]) == ("", "range")
    table = section(OLD, ranged, PUBLIC, words()).tables[1]
    (cells,) = [row for row in table.rows if row[4].detail.startswith("(")]
    assert cells[4].detail == "(10.0 to 30.0)"
    assert RANGES in table.note
    assert RANGES not in section(OLD, NEW, PUBLIC, words()).tables[1].note
