"""The page of definitions: the same for every run, within its budget, and nothing that a method declares is missing."""

from collections.abc import Iterator
from typing import get_args

import pytest

from schemas.audit.limits import Disclosure
from schemas.questions import QUESTIONS, STATES
from schemas.terms import Theory
from tasks.pipeline.registry import METHODS
from tasks.reporting.declared import all_declared
from tasks.reporting.exports.single_file import BUDGETS, size_of
from tasks.reporting.frame import Frame, page
from tasks.reporting.pages import definitions, judged
from tasks.reporting.text import Section


@pytest.fixture(scope="module")
def sections() -> dict[str, Section]:
    return {section.anchor: section for section in definitions()}


def _below(section: Section) -> Iterator[Section]:
    yield section
    for part in section.parts:
        yield from _below(part)


def _cells(section: Section) -> list[tuple[str, ...]]:
    return [tuple(cell.text for cell in row) for table in section.tables for row in table.rows]


def test_it_is_the_same_every_time() -> None:
    assert definitions() == definitions()


def test_its_parts_stand_in_their_order(sections: dict[str, Section]) -> None:
    assert list(sections) == ["states", "questions", "verdicts", "methods", "glossary", "disclosure"]


def test_it_keeps_its_budget() -> None:
    (budget,) = (each for each in BUDGETS if each.files == "method.html")
    whole = Section("Definitions", "definitions", parts=definitions())
    size = size_of(page("page.html.j2", "method.html", frame=Frame(""), section=whole), opened=True)
    assert budget.most.words is not None
    assert budget.most.bytes is not None
    assert size.words is not None
    assert size.bytes is not None
    assert 4_000 < size.words <= budget.most.words
    assert size.bytes <= budget.most.bytes
    assert (size.charts, size.requests) == (0, 0)


def test_every_state_has_its_word_and_its_meaning(sections: dict[str, Section]) -> None:
    rows = _cells(sections["states"])
    assert [row[0] for row in rows] == [state.words for state in STATES.values()]
    assert [row[1] for row in rows] == [state.meaning for state in STATES.values()]


def test_every_question_and_what_decides_it(sections: dict[str, Section]) -> None:
    rows = _cells(sections["questions"])
    asked = [QUESTIONS[theory].words for theory in Theory if theory is not Theory.OWN_LIMITS]
    assert {row[0] for row in rows} == set(asked)
    assert len(rows) == 1 + sum(len(method.verdict_measures) for method in METHODS.values())
    decides = [row for row in rows if row[3] == "decides"]
    assert {row[0] for row in decides} == set(asked)
    limits = {row[1]: row[-1].replace("\N{NO-BREAK SPACE}", " ") for row in rows}
    words = all_declared()
    assert limits[words["adjusted"].measures["adjusted_effect"].words] == "at most 2 pp"
    assert limits[words["cst"].measures["cst_effect"].words] == "at most 5 pp"
    assert limits["approval rate, ratio to the reference"] == "at least 0.8"
    assert limits[words["raguel"].measures["recourse_cost_reference_over_group"].words] == "at least 0.8"
    assert limits[words["fgce"].measures["infeasible_share_relabelled"].words] == "at most 5 pp"
    assert limits[words["cec"].measures["cec_above_own_group"].words] == "none by default"


def test_what_decides_stands_first_in_each_question() -> None:
    for theory in Theory:
        roles = [each.role for found, _, each in judged() if found is theory]
        assert roles == sorted(roles, key=lambda role: role != "primary")


def test_every_method_has_a_section_named_like_it(sections: dict[str, Section]) -> None:
    parts = {part.anchor: part for part in sections["methods"].parts}
    assert list(parts) == list(all_declared())
    for name, said in all_declared().items():
        assert parts[name].words == (said.question, *said.method)
        assert _cells(parts[name]) == [(each.words, each.meaning) for each in said.measures.values()]
        assert parts[name].parts[0].points == said.cannot


def test_the_glossary_has_every_term_in_alphabetical_order(sections: dict[str, Section]) -> None:
    terms = [row[0] for row in _cells(sections["glossary"])]
    assert terms == sorted(set(terms), key=lambda term: (term.casefold(), term))
    assert {term for said in all_declared().values() for term in said.glossary} < set(terms)


def test_no_term_has_two_meanings() -> None:
    found: dict[str, str] = {}
    for said in all_declared().values():
        for term, text in said.glossary.items():
            assert found.setdefault(term, text) == text, term


def test_covering_measures_are_named_where_intervals_are_explained(sections: dict[str, Section]) -> None:
    text = " ".join(word for part in _below(sections["verdicts"]) for word in part.words)
    words = all_declared()
    for name, method in METHODS.items():
        assert all(words[name].measures[each].words in text for each in method.covering)
    assert "{" not in text


def test_every_profile_is_explained(sections: dict[str, Section]) -> None:
    known = get_args(Disclosure.model_fields["profile"].annotation)
    assert {row[0] for row in _cells(sections["disclosure"])} == set(known)


def test_anchors_are_told_apart(sections: dict[str, Section]) -> None:
    anchors = [each.anchor for section in sections.values() for each in _below(section)]
    assert sorted(anchors) == sorted(set(anchors))
