"""What another edition changed: counted by hand, balanced, and no more than the two runs published."""

import pytest
from test_trend import measure, year

from schemas.tables.verdicts import RESTATEMENT, Told
from tasks.reporting.trend_pages import SOURCE, Edition, changed, restated_rows, restatement, section
from tasks.reporting.trends import RANGES, ROWS

OLD = Edition(
    year(2022, measure("white", 0.70, 300), measure("Black", 0.60, 100), measure("Asian", None, None), vintage="old"),
    {SOURCE: 1000, "used": 900, "refused: filtered": 60, "refused: missing covariate": 40},
)
NEW = Edition(
    year(2022, measure("white", 0.75, 310, state="within"), measure("Black", None, None), vintage="new"),
    {SOURCE: 1010, "used": 930, "refused: filtered": 20, "refused: missing covariate": 60},
)


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
    assert {row["difference"] for row in restated_rows(OLD, OLD)} == {0}


def test_rows_are_told_by_hand_and_balance():
    rows = {row["rows"]: row for row in restated_rows(OLD, NEW)}
    assert rows[SOURCE] == {"rows": SOURCE, "old": 1000, "new": 1010, "difference": 10}
    assert rows["refused: filtered"]["difference"] == -40
    parts = [row for name, row in rows.items() if name != SOURCE]
    assert [sum(row[side] for row in parts) for side in ("old", "new", "difference")] == [1000, 1010, 10]


def test_what_an_edition_withholds_is_withheld_with_its_difference():
    hidden = Edition(NEW.result, {**NEW.counts, "refused: filtered": None})
    rows = {row["rows"]: row for row in restated_rows(OLD, hidden)}
    assert rows["refused: filtered"] == {"rows": "refused: filtered", "old": 60, "new": None, "difference": None}
    assert rows["used"]["difference"] == 30
    cells = {row[0].text: [cell.text for cell in row] for row in section(OLD, hidden).tables[0].rows}
    assert cells["refused: filtered"][1:] == ["60", "withheld", "withheld"]


def test_a_line_that_one_edition_lacks_is_zero_rows_there_and_none_where_no_counts_were_published():
    more = Edition(NEW.result, {**NEW.counts, "refused: duplicate": 3})
    assert restated_rows(OLD, more)[-1] == {"rows": "refused: duplicate", "old": 0, "new": 3, "difference": 3}
    before = Edition(OLD.result, {})
    assert {row["old"] for row in restated_rows(before, NEW)} == {None}
    assert "published no counts" in section(before, NEW).tables[0].note
    assert section(OLD, NEW).tables[0].note == ""


def test_of_many_measures_those_that_moved_most_stay():
    def edition(step):
        measures = (measure(f"group {i}", 0.4 + step * i / 100, 300) for i in range(ROWS + 2))
        return Edition(year(2022, *measures), OLD.counts)

    table = section(edition(0), edition(1)).tables[1]
    assert len(table.rows) == ROWS
    assert table.rows[0][2].text == "group 2 (race)"
    assert f"These are the {ROWS} measures with the largest effects, of {ROWS + 2}." in table.note
    assert "`evenhand restatement 2022` gives all" in table.note


def test_the_section_names_both_editions_and_prints_differences():
    found = section(OLD, NEW)
    assert [word.split(";")[0] for word in found.words] == ["Earlier: old", "Later: new"]
    rows_table, measures_table = found.tables
    assert [row[3].text for row in rows_table.rows] == ["+10", "+30", "−40", "+20"]
    cells = {row[2].text.split(" ")[0]: [cell.text for cell in row] for row in measures_table.rows}
    assert cells["white"][5] == "+5\N{NO-BREAK SPACE}pp"
    assert cells["Black"][4:6] == ["withheld", "–"]
    assert cells["white"][6:] == ["Not run", "Within the limit"]


def test_a_range_of_draws_is_told_as_one():
    drawn = measure("white", 0.2, 300, name="infeasible_share_size_matched", method="fgce", note="range")
    ranged = Edition(year(2022, drawn, vintage="new"), NEW.counts)
    (row,) = [row for row in restatement("a", OLD, ranged).to_pylist() if row["measure"] == drawn.measure]
    assert (row["old_note"], row["new_note"]) == ("", "range")
    table = section(OLD, ranged).tables[1]
    (cells,) = [row for row in table.rows if row[4].detail.startswith("(")]
    assert cells[4].detail == "(10 to 30)"
    assert RANGES in table.note
    assert RANGES not in section(OLD, NEW).tables[1].note
