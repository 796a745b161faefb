"""The page of a league: what it says first, names that are no markup, and what fits where partitions are many."""

import re

import numpy as np
import pytest

from tasks.metrics.league.rows import ACROSS, Census, Entrant, Figure, Hidden, Subject, standings
from tasks.reporting.league import CELLS, Content, expected, first_statement, league_page, noun_of

SUBJECT = Subject(
    "similar_applicants", "primary", "adjusted", "adjusted_effect", "{}", "lender", "race", "Black", "white"
)
HOSTILE = "<script>alert(1)</script> & \N{RIGHT-TO-LEFT OVERRIDE}Co"


def figure(value, se, **more):
    low, high = value - 1.96 * se, value + 1.96 * se
    judged = {"judged_low": low, "judged_high": high, "limit": 0.02, "side": "at_most", "p": 0.5, "n": 120}
    return Figure(value, low, high, se=se, **{**judged, "state": "inconclusive", "robustness": 0.1, **more})


def content(k=5, *, names=(), every=True, **more):
    rng = np.random.default_rng(2)
    values = [*names, *(f"LEI{n:04}" for n in range(len(names), k))]
    entrants = [Entrant(value, "", f"loans-2024-{n}", 900) for n, value in enumerate(values)]
    figures = [(entrant, figure(rng.normal(0.05, 0.1), 0.05)) for entrant in entrants]
    table = standings(figures, figure(0.06, 0.01) if every else None)
    every_one = {entrant.value: (entrant, "within") for entrant in entrants}
    links = {entrant.run: f"../{entrant.run}/report.html" for entrant, _ in figures}
    given = {"title": "Loans, 2024", "column": "lender_id", "restricted": False, "census": Census(k, 3, 1, 2, 0)}
    return Content(
        **{**given, "entrants": every_one, "standings": {SUBJECT: table}, "hidden": {}, "links": links, **more}
    )


def text_of(page):
    """The words of the page, without its style."""
    body = page.decode().partition("<main")[2]
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


def test_the_first_statement_is_that_it_is_no_verdict():
    said = text_of(league_page(content()))
    first = said.index("Benjamini-Hochberg over lenders is for screening and is no verdict on its own")
    assert first < said.index("Adjusted difference of approval (lender), race: Black, against white: ")
    assert first_statement("lenders") in said


def test_expected_false_ones_order_and_census_are_said():
    said = text_of(league_page(content()))
    assert "0.2 would be called by chance" in said.replace("\N{NO-BREAK SPACE}", " ") or "0.3 would be" in said
    assert "no ranking of lenders whose intervals overlap" in said
    assert "5 have a run, 3 have too few people, 1 failed, 2 not begun" in said
    assert "All rows of the year" in said


def test_names_of_lenders_are_text():
    page = league_page(content(names=(HOSTILE,))).decode()
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_reports_are_linked_and_only_those_that_are_given():
    page = league_page(content(links={"loans-2024-1": "../loans-2024-1/report.html"})).decode()
    assert set(re.findall(r'<a href="(\.\.[^"]+)"', page)) == {"../loans-2024-1/report.html"}


def test_what_is_withheld_across_partitions_is_said_without_a_count_of_people():
    made = content(hidden={"race": Hidden(frozenset({"LEI0001"}), everybody=True)})
    said = text_of(league_page(made))
    assert "Figures by race of 1 lender are withheld here" in said
    assert "Figures of all rows by race are withheld" in said


@pytest.mark.parametrize("k", [4, 15, 1_200])
def test_any_number_of_partitions_makes_a_page_within_its_room(k):
    page = league_page(content(k))
    assert len(page) < 2_500_000
    rows = page.decode().count('<th scope="row"')
    assert rows <= CELLS
    assert ("JSON file beside" in text_of(page)) == (k > CELLS // 14)


def test_without_a_run_over_all_rows_there_is_no_difference():
    assert "All rows of the year" not in text_of(league_page(content(every=False)))


def test_a_withheld_figure_is_withheld_in_every_column():
    table = standings(
        [(Entrant("A"), ACROSS), (Entrant("B"), figure(0.1, 0.02)), (Entrant("C"), figure(0.0, 0.02))], None
    )
    said = text_of(league_page(content(standings={SUBJECT: table})))
    row = said[said.index(" A ") :][:200]
    assert "withheld" in row
    assert table.lines[-1].entrant.value == "A"
    assert expected(table, "lenders").startswith("Expected false ones: of 2 tests")


def test_values_of_other_columns_are_partitions():
    assert noun_of("lender_id") == noun_of("lei") == "lenders"
    assert noun_of("state") == "partitions"


def test_a_page_of_a_profile_that_withholds_nothing_says_so():
    assert "Not to be published or passed on" in league_page(content(restricted=True)).decode()
