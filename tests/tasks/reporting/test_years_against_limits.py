"""Verdicts of years as a table and a chapter: nothing lost, nothing withheld told, gaps named, in time."""

import json
import math
import time

import pytest
from test_trend import HOSTILE
from test_trend import year as trend_year
from trend_pages import trend_page
from year_verdicts import many_years, verdict, year_of

from schemas.tables.verdicts import MONITORING
from schemas.terms import State
from tasks.metrics.algorithm.monitoring import Conditions, MonitoringRule
from tasks.reporting.trends import (
    HMDA_BREAK,
    YearVerdicts,
    breaches,
    changed,
    chapter,
    era,
    follow,
    said_by_theory,
    table,
)

RULE = MonitoringRule()


def rows_of(years, rule=RULE, **more):
    rows = table("a", follow(years, rule, **more), rule).to_pylist()
    return {(row["group"], row["year"]): row for row in rows}


YEARS = (
    year_of(2016, verdict("Black", 0.08, 0.01), verdict(HOSTILE, 0.01, 0.01)),
    year_of(2017, verdict("Black", None, None), verdict(HOSTILE, 0.01, 0.01)),
    YearVerdicts(2018, why="never audited"),
    year_of(2019, verdict("Black", 0.08, 0.01)),
)


def test_every_series_has_a_row_in_every_year_and_a_gap_says_why():
    found = rows_of(YEARS)
    assert len(found) == 8
    assert table("a", follow(YEARS, RULE), RULE).schema.equals(MONITORING.schema())
    gaps = {key: (row["state"], row["reason"]) for key, row in found.items() if row["value"] is None}
    assert gaps == {
        ("Black", 2017): ("inconclusive", "withheld"),
        ("Black", 2018): ("not_run", "never audited"),
        (HOSTILE, 2018): ("not_run", "never audited"),
        (HOSTILE, 2019): ("not_run", "the run of this year does not judge it"),
    }
    assert all(row["pooled"] is None and row["change"] is None for row in found.values() if row["value"] is None)
    assert found["Black", 2019]["state"] == State.OUTSIDE
    assert found["Black", 2019]["pooled"] == pytest.approx(-0.08)
    assert all(row["high"] == pytest.approx(-0.06) for (g, _), row in found.items() if g == "Black" and row["value"])


def test_the_theory_as_a_whole_and_what_stands_beside_are_not_followed():
    beside = verdict("Black", 0.5, 0.01, measure="st_effect", role="beside")
    found = rows_of([year_of(2016, verdict("Black", 0.01, 0.01), beside)])
    assert [row["measure"] for row in found.values()] == ["adjusted_denial_effect"]


@pytest.mark.parametrize(
    "few", [{"n": 29, "events": 15}, {"events": 9}, {"events": 1_995}, {"n_reference": 12}, {"events_reference": 3}]
)
def test_too_few_people_are_no_estimate(few):
    row = rows_of([year_of(2016, verdict("Black", 0.5, 0.01, **few))])["Black", 2016]
    assert (row["pooled"], row["state"]) == (None, State.INCONCLUSIVE)
    assert "fewer than" in row["reason"]


def test_counts_that_are_withheld_are_not_taken_for_few():
    hidden = {"n": None, "events": None, "n_reference": None, "events_reference": None}
    assert rows_of([year_of(2016, verdict("Black", 0.5, 0.01, **hidden))])["Black", 2016]["state"] == State.OUTSIDE


def test_a_bias_of_the_verdict_widens_the_band():
    plain, wide = (rows_of([year_of(2016, verdict("Black", 0.05, 0.01, bias=b))])["Black", 2016] for b in (None, 0.1))
    assert wide["pooled_low"] == pytest.approx(plain["pooled_low"] - 0.1)


def test_groups_are_compared_by_their_definition():
    def with_codes(number, value, codes):
        return year_of(number, verdict("Black", value, 0.01), groups={("race", "Black"): codes, ("race", ""): "x"})

    same, other = (rows_of([with_codes(2016, 0.1, "b"), with_codes(2017, 0.1, c)])["Black", 2017] for c in ("b", "B"))
    assert same["change_state"] == "none"
    assert other["change_state"] == "not_comparable"


def test_hmda_is_another_thing_from_2018():
    assert [era(year, True) for year in (2017, 2018)] == ["", HMDA_BREAK[1]]
    assert era(2018, False) == ""
    years = [year_of(y, verdict("Black", 0.05, 0.01), conditions=Conditions(era=era(y, True))) for y in (2017, 2018)]
    row = rows_of(years)["Black", 2018]
    assert row["change_state"] == "not_comparable"
    assert HMDA_BREAK[1] in row["reason"]


def test_what_the_last_sequence_says_counts():
    new = [year_of(y, verdict("Black", 0.0, 0.01), conditions=Conditions(version="2")) for y in (2020, 2021)]
    assert breaches(follow(YEARS, RULE)) == {("similar_applicants", "Black"): 2016}
    assert said_by_theory(follow(YEARS, RULE)) == [
        "Similar applicants: the years together are outside the limit (Black since 2016)"
    ]
    assert breaches(follow([*YEARS, *new], RULE)) == {}
    assert said_by_theory(follow([*YEARS, *new], RULE)) == [
        "Similar applicants: the years together are not outside the limit"
    ]
    assert said_by_theory([]) == []


def test_only_the_last_year_counts_as_changed():
    def at(values):
        return follow([year_of(2010 + t, verdict("Black", v, 0.01)) for t, v in enumerate(values)], RULE)

    calm = [0.01, 0.012, 0.008, 0.01]
    assert [one.of.group for one in changed(at([*calm, 0.2]))] == ["Black"]
    assert changed(at([*calm, 0.2, 0.01])) == []


def page_of(years, rule=RULE):
    chapters = chapter(follow(years, rule), rule)
    return trend_page("Loans", [trend_year(2016), trend_year(2019)], {"race": "white"}, False, [], chapters).decode()


def test_the_page_draws_the_band_against_the_limit_and_escapes_names():
    html = page_of(YEARS)
    assert "Years against their limits" in html
    assert "outside the limit (Black since 2016)" in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "two years cannot tell a change from wandering" in html.lower()


def test_the_figure_holds_no_number_for_a_gap_and_the_limit_as_a_line():
    (section,) = chapter(follow(YEARS, RULE), RULE)
    chart = section.parts[0].figures[0].chart
    points = {(line.label, point.year): point for line in chart.series for point in line.points}
    gaps = {key for key, point in points.items() if point.point is None}
    assert gaps == {("Black", 2017), ("Black", 2018), (HOSTILE, 2018), (HOSTILE, 2019)}
    assert all((points[key].value, points[key].low) == (None, None) for key in gaps)
    assert points["Black", 2018].sentence == "Never audited."
    assert (chart.limit, chart.side) == (-0.02, "at_least")
    assert points["Black", 2019].state == "outside"
    assert "earlier" not in section.parts[0].figures[0].caption


def test_a_limit_that_was_another_before_is_named():
    years = [year_of(2016 + t, verdict("Black", 0.05, 0.01, limit=limit)) for t, limit in enumerate((0.03, 0.02))]
    figure = chapter(follow(years, RULE), RULE)[0].parts[0].figures[0]
    assert figure.chart.limit == -0.02
    assert "Limit in earlier years: at least -0.03." in figure.caption


def test_a_break_of_the_sequence_is_drawn():
    years = [year_of(2016 + t, verdict("Black", 0.05, 0.01), conditions=Conditions(version=str(t))) for t in range(2)]
    (section,) = chapter(follow(years, RULE), RULE)
    ((year, words),) = section.parts[0].figures[0].chart.breaks
    assert year == 2017
    assert "another version of the method" in words


def test_without_an_estimate_the_sequence_is_a_table():
    (section,) = chapter(follow([year_of(2016, verdict("Black", None, None))], RULE), RULE)
    (part,) = section.parts
    assert part.figures == ()
    assert [cell.text for cell in part.tables[0].rows[0]] == ["Black", "Inconclusive"]


def test_a_ratio_is_written_as_one_and_its_change_as_a_factor():
    years = [year_of(2016 + t, verdict("Black", 0.7 + 0.05 * t, 0.02, theory="approval_rates")) for t in range(2)]
    html = page_of(years)
    assert "× 1.07" in html
    assert "at least 0.8" in html


@pytest.mark.parametrize("rule", [MonitoringRule("bonferroni", years=8), MonitoringRule("none")])
def test_other_rules_are_named(rule):
    html = page_of(YEARS, rule)
    assert ("probability 0.34" in html) == (rule.rule == "none")
    assert ("8 planned years" in html) == (rule.rule == "bonferroni")


def test_without_verdicts_there_is_no_chapter():
    assert chapter(follow([YearVerdicts(2016, why="no verdicts")], RULE), RULE) == []
    assert "Years against their limits" in page_of(YEARS)


def test_18_years_of_12_groups_are_a_page_in_three_seconds():
    years = many_years(18, [f"group {i}" for i in range(12)])
    page_of(YEARS)  # templates and declarations are read once a process
    begun = time.process_time()
    html = page_of(years)
    assert time.process_time() - begun < 3
    assert all(f"group {i}" in html for i in range(12))


def test_numbers_that_are_not_there_are_null_and_json_takes_them():
    rows = table("a", follow(YEARS, RULE), RULE).to_pylist()
    assert json.dumps(rows, allow_nan=False)
    assert not any(isinstance(v, float) and math.isnan(v) for row in rows for v in row.values())
