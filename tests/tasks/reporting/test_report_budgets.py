"""Whole reports within their budgets: of no group, of 12 groups by 3 attributes, of hostile and right-to-left names."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from exported_run import HOSTILE, material

from tasks.reporting.exports.single_file import SINGLE, budget_lines, single, size_of
from tasks.reporting.frame import Frame, page
from tasks.reporting.pages import files
from tasks.reporting.question_pages.data import words
from tasks.reporting.text import Cell, Link, Listing, Notice, Section, TableView

LONG = tuple(f"{i} {'W' * 77}" for i in range(12))
NAMES = (*HOSTILE, "\u05e9\u05dc\u05d5\u05dd", "\u0645\u0631\u062d\u0628\u0627", "<b>&amp;</b>")


@pytest.mark.parametrize(
    ("groups", "attributes"),
    [((), ("race",)), (LONG, ("race", "sex", "age")), (NAMES, ("race",))],
    ids=["nobody", "many", "hostile"],
)
def test_every_file_is_within_its_budget(groups: Sequence[str], attributes: Sequence[str]) -> None:
    made = files(material(groups, attributes))
    joined = single(made)
    assert {line.path: line.over for line in budget_lines({**made, SINGLE: joined}) if line.over} == {}
    pages = {path: text.decode() for path, text in {**made, SINGLE: joined}.items() if path.endswith(".html")}
    assert [path for path, text in pages.items() if "<script" in text or "<b>" in text] == []


def whole(title: str, *parts: Section) -> Section:
    """A section with one of everything that is printed."""
    table = TableView("a table", ("head",), ((Cell("one two"),),), note="a note", rest="the rest")
    return Section(
        title, title, words=("some words",), points=("a point",), notices=(Notice("seen", "a notice", ("why",)),),
        tables=(table, replace(table, folded=True)), links=(Link("a link", "report.html"),), parts=parts,
        listings=(Listing("a listing", "not counted"), Listing("an open listing", "is counted", folded=False)),
    )  # fmt: skip


def test_parts_count_at_any_depth_and_pages_are_planned_by_the_words_that_a_check_counts() -> None:
    section = whole("page", whole("part", whole("part-of-part", whole("below"))))
    content = page(
        "page.html.j2", "pages/approval-rates.html", frame=Frame("", links=(("report.html", "First"),)), section=section
    )
    counted = size_of(content)
    title = 1  # stands above main
    assert counted.words == words(section) - title
    assert counted.words == 4 * (words(whole("page"))) - title
    assert next(line.has for line in budget_lines({"pages/approval-rates.html": content})) == counted


def test_equal_runs_give_equal_bytes() -> None:
    assert files(material()) == files(material())


def test_definitions_are_the_same_for_every_run() -> None:
    assert files(material())["method.html"] == files(material(LONG, ("race", "sex")))["method.html"]
