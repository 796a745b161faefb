"""All papers in turn: results are kept and taken up again; the ledger is a page, and docs/reproduction.md is one."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import REPOSITORY, SHARED, evenhand

from research import figures, reproduction_page
from research.figures import Drawing, Status, Verdict, curves, entries
from research.reproduction import Part, Whole, done, is_kept, ledgers, reproduce_all
from research.reproduction_page import charts_page
from tasks.pipeline.registry import METHODS

EXAMPLE = Part("raguel", "example", True, SHARED)
"""The smallest of all: the worked example of a paper."""
PAGE = REPOSITORY / "docs" / "reproduction.md"


def test_a_part_that_is_kept_is_the_part_that_was_run(tmp_path: Path) -> None:
    first = done(EXAMPLE, tmp_path)
    assert is_kept(EXAMPLE, tmp_path)
    assert not is_kept(replace(EXAMPLE, quick=False), tmp_path)
    again = done(EXAMPLE, tmp_path)
    assert again == first
    assert {line.verdict for line in first.lines} <= {Verdict.AGREES, Verdict.INFORMATION}


def test_a_part_of_other_code_is_run_again(tmp_path: Path) -> None:
    done(EXAMPLE, tmp_path)
    file = EXAMPLE.file(tmp_path)
    file.write_text(file.read_text().replace('"key": "', '"key": "other '))
    assert not is_kept(EXAMPLE, tmp_path)


def test_the_page_has_a_row_for_every_table_and_figure(tmp_path: Path) -> None:
    found = [done(EXAMPLE, None)]
    rows = ledgers(found)
    said = reproduction_page.page(rows, found)
    for paper in METHODS:
        for entry in entries(figures.read(paper)):
            assert f"| {entry.what} | " in said
    assert "32 agree" in reproduction_page.totals({"raguel": rows["raguel"]})


def test_what_was_not_run_is_said_and_nothing_of_it_is_missing(tmp_path: Path) -> None:
    done(EXAMPLE, tmp_path)
    found = reproduce_all(Whole(SHARED, quick=True, results=tmp_path, kept=True))
    assert [result.part for result in found] == [EXAMPLE]
    rows = {row.entry.what: row.status for row in ledgers(found)["raguel"]}
    assert rows["Table 2"] == (Status.MET,)
    assert rows["Table 3"] == (Status.NOT_RUN,)
    said = reproduction_page.page(ledgers(found), found)
    assert "At the smaller size of `--quick`: raguel example. Not run: adjusted loanapp" in said
    assert "--quick --kept --markdown" in said
    assert "0 differs, 0 missing, 0 not reproduced," in said.splitlines()[2]


def test_a_kept_result_at_full_size_stands_in_place_of_a_quick_one(tmp_path: Path) -> None:
    whole = replace(EXAMPLE, quick=False)
    done(whole, tmp_path)
    found = reproduce_all(Whole(SHARED, quick=True, results=tmp_path, kept=True))
    assert [result.part for result in found] == [whole]


def test_kept_results_have_the_verdicts_of_the_present_remarks(tmp_path: Path) -> None:
    done(EXAMPLE, tmp_path)
    file = EXAMPLE.file(tmp_path)
    file.write_text(file.read_text().replace('"verdict": "agrees"', '"verdict": "differs"'))
    assert {line.verdict for line in done(EXAMPLE, tmp_path).lines} == {Verdict.AGREES}


def test_a_drawing_is_a_chart_with_its_numbers() -> None:
    drawing = Drawing("cost-by-k", "Figure 4", "Cost", "k", "cost", curves([1, 2], {"FGCE": [0.5, float("nan")]}))
    said = charts_page({("fgce", "german"): [drawing.plain()]})
    assert "FGCE, Figure 4, german: Cost" in said
    assert "no value" in said
    assert "<script" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("all", "--only", "german"), "takes no --only; a single paper does"),
        (("fgce", "--keep", "results"), "takes no --keep; `reproduce all` does"),
        (("fgce", "--baseline", "DICE"), "fgce"),
    ],
)
def test_an_option_of_others_is_refused(words: tuple[str, ...], said: str) -> None:
    ended = evenhand("reproduce", *words, "--data", str(SHARED))
    assert ended.returncode == 2
    assert said in " ".join(ended.stderr.split())


def test_the_page_in_docs_is_of_the_present_tables_and_figures() -> None:
    said = PAGE.read_text()
    for paper, method in METHODS.items():
        part = said.split(f"## {method.title} (`evenhand reproduce {paper}`)")[1].split("\n## ")[0]
        rows = re.findall(r"^\| ((?:Table|Figure)[^|]*?) \| (.*?) \| (.*?) \| (.*?) \|", part, re.MULTILINE)
        listed = [entry for entry in entries(figures.read(paper)) if re.match("Table|Figure", entry.what)]
        expected = [(e.what, e.shows.replace("|", "\\|"), ", ".join(e.datasets)) for e in listed]
        assert [row[:3] for row in rows] == expected
        known = "|".join(re.escape(status) for status in Status)
        for row in rows:
            assert all(re.fullmatch(rf"({known})( \([\d,]+ of [\d,]+\))?", part) for part in row[3].split(", ")), row
            assert not re.search("missing|differs", row[3])
