"""Measures over years: nothing is lost, nothing withheld is told, and a gap is never drawn as a value."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.tables.trends import TREND, Told
from schemas.terms import State
from tasks.reporting.material import Measure
from tasks.reporting.section import Swatch
from tasks.reporting.trends import charts as charts_of_years
from tasks.reporting.trends.page import trend_page
from tasks.reporting.trends.trend import HMDA_BREAK, RANGES, YearResult, all_series, breaks, told, trend

HOSTILE = "<script>alert(1)</script>"


def measure(group, value, n, *, year=2016, name="approval_rate", maker="lender", method="outcomes", **more):
    half = {"low": None if value is None else value - 0.1, "high": None if value is None else value + 0.1}
    fixed = {"dataset": "a", "year": year, "method": method, "decision_maker": maker, "protected_attribute": "race"}
    rest = {"reference_group": None, "subgroup": 0, "parameters": "{}", "events": None, "p": None, "q": None}
    said = {"state": "not_run", "reason": "no threshold set", **more}
    return Measure(**fixed, group=group, measure=name, value=value, n=n, **half, **rest, **said)


def year(number, *measures, **more):
    told_of = {"run": f"a-{number}-0", "vintage": f"snapshot, TX, frozen {number}", "edition": "snapshot"}
    return YearResult(number, **{**told_of, "state": "within", "rows": 500, **more}, measures=measures)


YEARS = (
    year(2016, measure("white", 0.7, 300), measure(HOSTILE, 0.6, 100), edition="historic", lacking=("ltv", "race: x")),
    year(2017, measure("white", 0.7, 300), measure(HOSTILE, None, None), edition="historic", lacking=("ltv",)),
    year(2018, measure("white", 0.8, 300), measure(HOSTILE, 0.5, 12)),
    YearResult(2019, state="failed", why="could not be audited"),
    year(2020, measure("white", 0.8, 300), measure(HOSTILE, None, 40)),
    year(2021, measure("white", 0.8, 300), measure(HOSTILE, 0.65, 90)),
)


def rows_of(table, group):
    return {row["year"]: row for row in table.to_pylist() if row["group"] == group}


def test_every_measure_has_a_row_in_every_year():
    table = trend("a", YEARS)
    assert table.schema.equals(TREND.schema())
    assert table.num_rows == 2 * len(YEARS)
    told_of = {number: row["told"] for number, row in rows_of(table, HOSTILE).items()}
    assert told_of == {
        2016: Told.VALUE,
        2017: Told.WITHHELD,
        2018: Told.TOO_FEW,
        2019: Told.NOT_MADE,
        2020: Told.UNDEFINED,
        2021: Told.VALUE,
    }
    row = rows_of(table, "white")[2019]
    assert (row["value"], row["state"], row["reason"], row["run"]) == (None, State.NOT_RUN, "could not be audited", "")


@given(st.one_of(st.none(), st.floats(0, 1)), st.one_of(st.none(), st.integers(0, 100)), st.integers(2, 60))
def test_only_a_value_of_enough_people_is_told_as_one(value, n, minimum):
    what = told(measure("white", value, n), minimum)
    assert (what is Told.VALUE) == (value is not None and (n is None or n >= minimum))


def test_hmda_breaks_at_2018_and_other_data_where_columns_come_or_go():
    assert breaks(YEARS, hmda=False) == {2018: "from 2018 with ltv"}  # a group without members is no break
    assert breaks(YEARS, hmda=True) == {2018: f"{HMDA_BREAK[1]}; from 2018 with ltv"}
    assert breaks(YEARS[3:], hmda=True) == {}
    assert breaks([YEARS[2], YEARS[1]], hmda=False) == {2017: "from 2017 without ltv"}


def drawn(broken):
    series = [("outcomes", "lender", "race", group, "approval_rate") for group in ("white", HOSTILE)]
    return charts_of_years.drawn(YEARS, series, "rate", broken)


def test_what_has_no_value_to_draw_is_a_mark_and_holds_no_number():
    rows = drawn({})
    assert len(rows) == 2 * len(YEARS)
    mine = {row["year"]: row for row in rows if row["group"] == HOSTILE}
    assert [number for number, row in mine.items() if row["what"] == "dot"] == [2016, 2021]
    gaps = [row for row in rows if row["what"] == "gap"]
    assert len(gaps) == 5
    assert all("value" not in row and "low" not in row for row in gaps)
    assert mine[2018]["shown"] == "too few"


def segments(rows, group):
    """The years of each line that is drawn."""
    lines = {}
    for row in rows:
        if row["group"] == group and row["what"] == "dot":
            lines.setdefault(row["segment"], []).append(row["year"])
    return list(lines.values())


def test_lines_end_at_gaps_and_at_breaks():
    assert segments(drawn({}), "white") == [[2016, 2017, 2018], [2020, 2021]]
    assert segments(drawn({2018: "another rule"}), "white") == [[2016, 2017], [2018], [2020, 2021]]
    assert segments(drawn({2018: "another rule"}), HOSTILE) == [[2016], [2021]]


def test_the_break_and_the_editions_are_drawn():
    shapes = charts_of_years.editions(YEARS)
    assert shapes == {"historic": "circle", "snapshot": "square"}
    swatches = {"white": Swatch("white", "#000"), HOSTILE: Swatch(HOSTILE, "#00f", "1 1")}
    panel = charts_of_years.panel("Approval", drawn({}), swatches, shapes, {2018: "another rule"}, share=True)
    assert [row["x"] for row in panel.spec["datasets"]["rows"] if row["what"] == "break"] == [2017.5]
    (rule,) = [layer for layer in panel.spec["layer"] if "break" in json.dumps(layer.get("transform", ""))]
    assert rule["mark"]["type"] == "rule"
    assert "svg" in panel.svg


@pytest.fixture(scope="module")
def page():
    return trend_page(f"Loans {HOSTILE}", YEARS, {"race": "white"}, True, []).decode()


def test_the_page_shows_every_year_and_escapes_names(page):
    assert HOSTILE not in re.sub(
        r"<script.*?</script>", lambda m: "" if "alert" not in m[0] else m[0], page, flags=re.S
    )
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    body = page.split("<main", 1)[1]
    for year_of in YEARS:
        assert str(year_of.year) in body
    assert HMDA_BREAK[1] in body
    assert "could not be audited" in body
    assert "too few" in body
    assert "withheld" in body


def test_the_page_asks_the_network_for_nothing(page):
    own = re.sub(r"<script>.*?</script>", "", page, flags=re.S)
    assert not re.findall(r"""(?:src|href)=["']https?:""", own)
    assert "default-src 'none'" in own


def test_a_value_of_too_few_is_in_the_table_of_no_page(page):
    assert "50.0\N{NO-BREAK SPACE}%" not in page  # 0.5 of 12 people in 2018
    assert "60.0\N{NO-BREAK SPACE}%" in page


def of_draws():
    """Two years of a measure whose ends are a range of draws."""
    name = "infeasible_share_size_matched"
    return [
        year(number, measure("white", 0.2, 300, name=name, method="fgce", note="a bound; range"))
        for number in (2016, 2017)
    ]


def test_a_range_of_draws_is_told_as_one_in_the_table():
    notes = [row["note"] for row in trend("a", of_draws()).to_pylist()]
    assert notes == ["a bound; range"] * 2
    assert {row["note"] for row in trend("a", YEARS).to_pylist()} == {""}


def bars(years):
    """The intervals in the figure of the first series of some years."""
    series = charts_of_years.drawn(years, all_series(years)[:1], "rate", {})
    shapes = charts_of_years.editions(years)
    svg = charts_of_years.panel("A", series, {"white": Swatch("white", "#000")}, shapes, {}, share=True).svg
    return re.findall(r"<line ", svg.split("layer_1_marks", 1)[1].split("</g>", 1)[0])


def test_a_range_of_draws_is_no_bar_in_the_figure():
    assert not bars(of_draws())
    assert len(bars([year(2016, measure("white", 0.7, 300))])) == 1


def test_a_page_with_ranges_of_draws_says_what_they_are(page):
    drawn_page = trend_page("Loans", of_draws(), {"race": "white"}, False, []).decode()
    assert "(10.0 to 30.0)" in drawn_page
    assert "[10.0, 30.0]" not in drawn_page
    assert "Dots, without the ranges of draws, which are no intervals" in drawn_page
    assert RANGES in drawn_page
    assert RANGES not in page
    assert "Dots with intervals" in page
