"""Measures over years: nothing is lost, nothing withheld is told, and a gap is never drawn as a value."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trend_pages import trend_page

from schemas.tables.verdicts import TREND, Told
from schemas.terms import State
from tasks.reporting import trends
from tasks.reporting.charts.values import WITHHELD
from tasks.reporting.material import Measure
from tasks.reporting.text import covers, interval
from tasks.reporting.trends import (
    CHARTS,
    HMDA_BREAK,
    POINTS,
    RANGES,
    ROWS,
    TABLES,
    YearResult,
    all_series,
    breaks,
    fitting,
    largest,
    left_out,
    told,
    trend,
)

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


SERIES = [("outcomes", "lender", "race", group, "approval_rate") for group in ("white", HOSTILE)]


def chart(broken=(), years=YEARS, series=SERIES):
    return trends.by_year("Approval", years, series, "white", dict(broken))


def test_a_year_without_a_value_is_a_gap_and_holds_no_number():
    white, other = chart().series
    assert [line.reference for line in (white, other)] == [True, False]
    assert [point.year for point in other.points if point.point is not None] == [2016, 2021]
    gaps = {point.year: point for point in other.points if point.point is None}
    assert {year: point.value for year, point in gaps.items()} == {2017: WITHHELD, 2018: None, 2019: None, 2020: None}
    assert all((point.low, point.high, point.n) == (None, None, None) for point in gaps.values())
    assert [gaps[number].sentence for number in (2017, 2018, 2019, 2020)] == [
        *("Withheld.", "Too few people for a value.", "Could not be audited.", "Undefined."),
    ]


def test_shares_are_drawn_in_percent_with_their_interval_and_people():
    drawn = chart()
    (point,) = [point for point in drawn.series[1].points if point.year == 2016]
    assert drawn.unit.name == "percent"
    assert (point.value, point.low, point.high) == pytest.approx((60, 50, 70))
    assert point.n == 100


def test_a_check_gives_its_state_and_no_check_none():
    checked = year(2022, measure("white", 0.7, 300, state=State.OUTSIDE), measure(HOSTILE, 0.7, 300, state="no_limit"))
    assert [line.points[-1].state for line in chart(years=(*YEARS, checked)).series] == ["outside", ""]


def test_a_break_is_drawn_in_its_year():
    assert chart().breaks == ()
    assert chart({2018: "another rule"}).breaks == ((2018, "another rule"),)


def test_without_an_interval_to_draw_there_is_no_chart():
    assert chart(years=[YEARS[3]]) is None
    assert chart(years=of_draws(), series=all_series(of_draws())) is None
    other = [replace(YEARS[0], measures=(measure("white", 0.2, 300, name="burden", method="fgce"),))]
    assert chart(years=other, series=all_series(other)) is None


@pytest.mark.parametrize(
    ("unit", "values", "name", "said", "places", "factor"),
    [
        ("rate", [0.2], "approval_rate", "percent", 1, 100),
        ("rate", [0.2], "approval_rate_difference", "percentage points", None, 100),
        ("points", [0.2], "st_effect", "percentage points", None, 100),
        ("rate", [0.9], "approval_rate_ratio", "ratio", 2, 1),
        ("count", [1234.0], "people", "value", 0, 1),
        ("number", [0.034, 0.01, float("nan")], "cost", "value", 4, 1),
        ("number", [3e-9], "cost", "value", 6, 1),
        ("number", [], "cost", "value", 0, 1),
    ],
)
def test_a_chart_counts_in_the_unit_of_its_measure(unit, values, name, said, places, factor):
    found, times = trends.scale(unit, values, name)
    assert (found.name, found.places, times) == (said, places, factor)


@pytest.mark.parametrize("name", ["approval_rate", "st_effect", "approval_rate_difference", "denial_rate_ratio"])
def test_an_interval_that_covers_is_printed(name):
    assert covers(name)
    assert interval(measure("white", 0.5, 300, name=name), "rate").startswith("[")


@pytest.mark.parametrize("name", ["burden", "cec", "infeasible_share_difference", "st_effect_null", "cst_effect_x"])
def test_an_interval_that_does_not_cover_is_not_printed_but_a_range_of_draws_is(name):
    assert not covers(name)
    assert interval(measure("white", 0.5, 300, name=name), "rate") == ""
    assert interval(measure("white", 0.5, 300, name=name, note="range"), "rate").startswith("(")


@pytest.fixture(scope="module")
def page():
    return trend_page(f"Loans {HOSTILE}", YEARS, {"race": "white"}, True, []).decode()


def test_the_page_shows_every_year_and_escapes_names(page):
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    body = page.split("<main", 1)[1]
    for year_of in YEARS:
        assert str(year_of.year) in body
    assert HMDA_BREAK[1] in body
    assert "Could not be audited." in body
    assert "Too few people" in body
    assert "withheld" in body


def test_the_page_asks_the_network_for_nothing_and_runs_no_script(page):
    assert not re.findall(r"""(?:src|href)=["']https?:""", page)
    assert "<script" not in page
    assert "default-src 'none'" in page


def test_ids_of_the_page_are_unique(page):
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)


def test_a_value_of_too_few_is_in_the_table_of_no_page(page):
    assert "<td>50</td>" not in page  # 0.5 of 12 people in 2018
    assert "<td>60</td>" in page


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


def test_a_page_with_ranges_of_draws_says_what_they_are(page):
    ranged = trend_page("Loans", of_draws(), {"race": "white"}, False, []).decode()
    assert "(10 to 30)" in ranged
    assert "[10.0, 30.0]" not in ranged
    assert RANGES in ranged
    assert "<svg" not in ranged
    assert RANGES not in page
    assert "<svg" in page


def many(measures, groups):
    """Two years of measures with intervals, of decision makers by the dozen so that there are many charts."""
    names = [f"group {i:02}" for i in range(groups)]
    return [
        year(
            n,
            *(
                measure(g, 0.5 + i / 100, 300, maker=f"maker {k:02}")
                for k in range(measures)
                for i, g in enumerate(names)
            ),
        )
        for n in (2016, 2017)
    ]


def test_a_page_has_room_for_so_many_charts_and_tables_and_says_what_is_left():
    years = many(CHARTS + TABLES + 3, 2)
    html = trend_page("Loans", years, {"race": "group 00"}, False, []).decode()
    assert html.count('class="wide"') == CHARTS
    assert html.count('<details class="folded">') == TABLES
    assert "3 more are in the JSON file beside this page." in html
    assert trend("a", years).num_rows == 2 * 2 * (CHARTS + TABLES + 3)


def test_a_page_of_eighteen_years_stays_small():
    names = [f"group {i}" for i in range(12)]
    years = [
        year(n, *(measure(g, 0.5, 300, maker=f"m{k}") for k in range(30) for g in names)) for n in range(2007, 2025)
    ]
    html = trend_page("Loans", years, {"race": "group 0"}, False, [])
    assert html.count(b'class="wide"') == POINTS // (12 * 18)
    assert len(html) < 1_800_000


@given(st.lists(st.integers(0, 50)), st.integers(0, 10), st.integers(0, 100))
def test_what_fits_is_no_more_than_there_is_room_for_and_nothing_else_would_fit(sizes, most, room):
    kept = fitting(dict(enumerate(sizes)), most, room)
    left = room - sum(sizes[i] for i in kept)
    assert len(kept) <= most
    assert left >= 0
    assert len(kept) == most or all(sizes[i] > left for i in range(len(sizes)) if i not in kept)


def test_judged_measures_are_drawn_first():
    late = measure("white", 0.5, 300, name="denial_rate_difference", maker="zz", state=State.OUTSIDE)
    fill = many(CHARTS + 1, 1)[0].measures
    plain = tuple(replace(m, measure="denial_rate", state="no_limit") for m in fill)
    html = trend_page("Loans", [year(2016, *plain, late)], {"race": "white"}, False, []).decode()
    drawn = re.findall(r'<svg class="wide"[^>]*>\s*<title[^>]*>([^<]*)', html)
    assert len(drawn) == CHARTS
    assert sum("(zz)" in title for title in drawn) == 1


def test_groups_beyond_the_room_are_left_to_the_file_and_the_page_says_so():
    html = trend_page("Loans", many(1, ROWS + 2), {"race": "group 00"}, False, []).decode()
    assert f"These are the {ROWS} groups with the largest effects, of {ROWS + 2}." in html
    for name, shown in (("group 00", True), ("group 01", False), ("group 02", False), ("group 03", True)):
        assert (f"<bdi>{name}" in html) == shown, name  # the reference group stays, those nearest to it go


@given(st.lists(st.floats(0, 1), max_size=60))
def test_the_largest_stay_and_keep_their_order(sizes):
    kept = largest(range(len(sizes)), lambda i: sizes[i])
    assert kept == sorted(kept)
    assert len(kept) == min(len(sizes), ROWS)
    gone = set(range(len(sizes))) - set(kept)
    assert max((sizes[i] for i in gone), default=0) <= min((sizes[i] for i in kept), default=0)
    assert bool(left_out(len(kept), len(sizes))) == bool(gone)
