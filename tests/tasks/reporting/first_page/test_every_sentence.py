"""Every sentence of the first page is computed a second time from the published tables, over many runs.

A sentence without a run that prints it fails: so does one that is added later without a test.
"""

import re

import pandas as pd
import pytest
from first_page_advice_again import cannot, change, steps
from first_page_again import caption, figures, headline
from first_page_cases import gaps, headlines
from first_page_lines_again import question
from first_page_more_cases import approvals, lines, theories

from schemas.questions import STATES
from tasks.reporting.first_page.facts import sentences

KINDS = {"headlines": headlines, "gaps": gaps, "approvals": approvals, "theories": theories, "lines": lines}
CUT = {"lost, long", "one other", "one shown"}
"""Cases whose names are cut: they show that the shorter sentences are printed."""


@pytest.fixture(scope="module", params=KINDS)
def cases(request):
    """Pages of one kind, by the name of their case."""
    return dict(KINDS[request.param]())


def test_the_first_sentence_follows_from_the_states(cases):
    for name, page in cases.items():
        found = page.decision.headline
        assert (found.rule, found.words) == headline(page), name


def test_the_sentence_of_each_question_follows_from_its_numbers(cases):
    for name, page in cases.items():
        for row in page.decision.questions:
            if name not in CUT:
                assert row.sentence == question(page, row.theory), (name, row.theory)
            state = page.wholes.get(row.theory, ("not_run",))[0]
            assert (row.state, row.state_words) == (state, STATES[state].words), name


def test_the_figures_are_those_of_the_published_rows(cases):
    for name, page in cases.items():
        found = page.decision.figures
        if page.chosen is None:
            assert (found.title, found.caption) == ("Points of approval", "No group has enough people."), name
            continue
        assert found.group == page.chosen, name
        assert found.title.endswith("points of approval"), name
        assert found.caption == caption(page), name
        for each in found.comparisons:
            value, low, high, n = figures(page)[each.name]
            if each.value is not None:
                assert each.value == pytest.approx(value, abs=0.011 if each.name == "all" else 1e-3), name
                assert each.n == (None if pd.isna(n) else n), name
                assert each.detail.endswith("n withheld" if pd.isna(n) else f"n {n:,.0f}"), name
            if each.low is not None:
                assert (each.low, each.high) == pytest.approx((low, high), abs=1e-3), name


def test_the_lines_of_advice_follow_from_the_tables(cases):
    for name, page in cases.items():
        for made, again in ((page.decision.change, change(page)), (page.decision.next, steps(page))):
            assert {line.rule: line.words for line in made} == dict(list(again.items())[:3]), name
            assert [line.rule for line in made] == list(again)[:3], name
        if name not in CUT:
            assert [line.words for line in page.decision.cannot] == cannot(page), name


def test_every_sentence_of_the_file_is_printed_by_one_of_these_runs():
    printed = [text for kind in KINDS.values() for _, page in kind() for text in page.decision.texts()]
    unseen = []
    for part, names in sentences().items():
        for name, texts in names.items():
            for text in [texts] if isinstance(texts, str) else texts:
                pattern = re.compile(re.sub(r"\\\{\w+\\\}", "(.+)", re.escape(text)), re.IGNORECASE)
                if not any(pattern.search(each) for each in printed):
                    unseen.append(f"{part}.{name}: {text}")
    assert unseen == []
