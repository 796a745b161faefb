"""What methods declare of their pages: every measure has words and a block, and the words are those of the house."""

import re
from collections.abc import Iterator

import pytest
from evidence_runs import material, row
from pydantic import ValidationError

from tasks.pipeline.registry import METHODS, NAMES, OUTCOMES, OUTCOMES_METHOD
from tasks.reporting import pages
from tasks.reporting.declared import Block, Declared, Entry, declared
from tasks.reporting.material import Measure
from tasks.reporting.stage import READ
from tasks.reporting.text import covers

EVERY = (OUTCOMES_METHOD, *NAMES)
BANNED = re.compile(r"unbiased|prov(e|es|en|ing|ed) discrimination", re.IGNORECASE)


def _texts(said: Declared) -> list[str]:
    blocks = [text for block in said.evidence for text in (block.title, block.says)]
    measures = [text for each in said.measures.values() for text in (each.words, each.meaning)]
    return [said.title, said.question, *said.method, *said.cannot, *blocks, *measures, *said.glossary.values()]


@pytest.mark.parametrize("name", EVERY)
def test_every_measure_has_words_and_stands_in_a_block(name: str) -> None:
    said, made = declared(name), OUTCOMES if name == OUTCOMES_METHOD else METHODS[name].measures
    assert set(said.measures) == set(made)
    assert {each for block in said.evidence for each in block.measures} == set(made)


@pytest.mark.parametrize("name", EVERY)
def test_side_tables_are_read_and_have_the_fields(name: str) -> None:
    tables = {table.name: {column.name for column in table.columns} for table in READ}
    for block in declared(name).evidence:
        if block.table:
            known = tables[block.table] if block.table in tables else tables[f"published_{block.table}"]
            assert {*block.fields, *block.where} <= known, block.title


OF_VARIATION = {"rv", "rv_alpha", "of_denial", "of_group"}
"""Fields of side tables that are shares of variation, and not of people."""


@pytest.mark.parametrize("name", EVERY)
def test_shares_of_people_name_the_column_with_their_number(name: str) -> None:
    columns = {table.name: {column.name for column in table.columns} for table in READ}
    for block in declared(name).evidence:
        shares = {field: entry.of for field, entry in block.fields.items() if entry.unit == "rate"}
        assert {field for field, people in shares.items() if not people} <= OF_VARIATION, block.title
        assert set(shares.values()) - {""} <= (columns[f"published_{block.table}"] if shares else set()), block.title


@pytest.mark.parametrize("name", EVERY)
def test_measures_are_told_apart(name: str) -> None:
    told = [(each.words, each.meaning) for each in declared(name).measures.values()]
    assert sorted(told) == sorted(set(told))
    assert all(words for words, _ in told)


@pytest.mark.parametrize("name", EVERY)
def test_no_word_says_more_than_is_known(name: str) -> None:
    assert [text for text in _texts(declared(name)) if BANNED.search(text)] == []


@pytest.mark.parametrize("name", EVERY)
def test_titles_of_blocks_are_told_apart(name: str) -> None:
    titles = [block.title for block in declared(name).evidence]
    assert sorted(titles) == sorted(set(titles))


def test_intervals_cover_where_the_method_says_so_and_nowhere_else() -> None:
    assert covers("adjusted_effect")
    assert covers("approval_rate_ratio")
    assert covers("recourse_cost_reference_over_group"), "a name that is no comparison of another measure"
    assert not covers("burden_difference")
    assert not covers("approval_rate_size_matched_difference")


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (
            {"title": "Two", "columns": [{"measure": "a"}], "table": "x", "fields": {"a": Entry(words="a")}},
            "one of columns",
        ),
        ({"title": "None"}, "one of columns"),
        ({"title": "No setting", "measure": "a"}, "measure goes with along"),
        ({"title": "Unknown", "columns": [{"measure": "b"}]}, "without words"),
    ],
)
def test_a_block_of_no_kind_is_refused(block: dict[str, object], message: str) -> None:
    words = {"words": "a", "unit": "rate", "meaning": "A."}
    usual = {
        "title": "T",
        "short": "T",
        "question": "Q",
        "page": "approval-rates",
        "method": ["M."],
        "cannot": ["C."],
        "measures": {"a": words},
    }
    with pytest.raises(ValidationError, match=message):
        Declared.model_validate({**usual, "evidence": [block]})


def _rows_of(block: Block) -> Iterator[Measure]:
    """A row for each column of a block, or for each form at two settings, each with a value of its own."""
    values = (0.001 * i for i in range(1, 1000))
    at = {name: 1.0 if value in ("min", "max") else value for name, value in block.at.items()}
    for shown in block.columns:
        fixed = {name: 1.0 if value in ("min", "max") else value for name, value in shown.at.items()}
        for setting in ("a", "b") if block.along else ("",):
            yield row("Black", shown.name, next(values), at={**fixed, **dict.fromkeys(block.along, setting)})
    for form in block.forms if block.measure else ():
        for setting in ("a", "b"):
            name = f"{block.measure}_{form}" if form else block.measure
            yield row("Black", name, next(values), at={**at, **dict.fromkeys(block.along, setting)})


@pytest.mark.parametrize("name", EVERY)
def test_every_row_that_a_block_asks_for_is_printed_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = declared(name)
    for block in said.evidence:
        rows = tuple(_rows_of(block))
        if not rows:
            continue
        alone = said.model_copy(update={"evidence": (block,)})
        monkeypatch.setattr(pages, "declared", lambda _, alone=alone: alone)
        tables = [table for part in pages.evidence(material(rows), OUTCOMES_METHOD).parts for table in part.tables]
        cells = [cell.text for table in tables for line in table.rows for cell in line if cell.kind == "number"]
        numbers = [cell for cell in cells if cell != "100"]
        assert len(tables) == 1, block.title
        assert len(numbers) == len(rows), block.title
