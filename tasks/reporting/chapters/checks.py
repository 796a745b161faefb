"""Expectations that the tables of a run were held against: a summary, every failure, and the rest folded."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from schemas.tables.publication import published
from schemas.tables.validations import VALIDATIONS
from tasks.reporting.evidence.words import table_found
from tasks.reporting.numbers import count, number_cell
from tasks.reporting.section import Cell, Section, TableView

MOST_ROWS = 250
"""Expectations that held and are printed; the query gives all."""
_QUIET = ("strict_min", "strict_max")
Check = Mapping[str, Any]


def checks(found: Iterable[Check], run: str) -> Section:
    """All expectations of a run, those that failed before the others."""
    every = list(found)
    failed = [each for each in every if not each["success"]]
    held = [each for each in every if each["success"]]
    aside = sum(each["quarantined"] for each in failed)
    words = (
        f"{count(len(every))} expectations were held against the tables of this run; {count(len(failed))} failed.",
        *((f"For {count(aside)} of these the rows were set aside; they stand among the rows out.",) if aside else ()),
    )
    tables = [_summary(every)] if every else []
    if failed:
        tables.append(_list("Expectations that failed", failed))
    if held:
        tables.append(_rest(held, run))
    return Section("Checks of every table", "checks", words, tables=tuple(tables))


def _summary(every: list[Check]) -> TableView:
    """A row for each table of each stage."""
    of: dict[tuple[str, str], list[Check]] = {}
    for each in every:
        of.setdefault((each["stage"], each["table"]), []).append(each)
    columns = {
        "Stage": lambda key: Cell(key[0]),
        "Table": lambda key: Cell(key[1]),
        "Expectations": lambda key: number_cell(count(len(of[key]))),
        "Held": lambda key: number_cell(count(sum(each["success"] for each in of[key]))),
        "Failed": lambda key: number_cell(count(sum(not each["success"] for each in of[key]))),
        "Rows set aside": lambda key: _total([each["unexpected"] for each in of[key] if each["quarantined"]]),
    }
    return TableView.of("Expectations by stage and table", of, columns)


def _rest(held: list[Check], run: str) -> TableView:
    """Those that held, of which the first are printed."""
    view = _list("Expectations that held", held[:MOST_ROWS], folded=True)
    if len(held) <= MOST_ROWS:
        return view
    note = f"The first {count(MOST_ROWS)} of {count(len(held))}. All: {table_found(run, published(VALIDATIONS).name)}."
    return TableView(view.title, view.header, view.rows, note, folded=True)


def _list(title: str, found: list[Check], *, folded: bool = False) -> TableView:
    columns = {
        "Table": lambda each: Cell(f"{each['stage']}: {each['table']}"),
        "Result": lambda each: _result(each),
        "Expectation": lambda each: Cell(each["expectation"].removeprefix("expect_").replace("_", " ")),
        "Column": lambda each: Cell(_cut(each["column"] or "–")),
        "Expected": lambda each: Cell(_cut(expected(each["expected"]))),
        "Values looked at": lambda each: _count(each["elements"]),
        "Broken by": lambda each: _count(each["unexpected"]),
    }
    return TableView.of(title, found, columns, folded=folded)


def _result(each: Check) -> Cell:
    if each["quarantined"]:
        return Cell("set aside", "state", "quarantined")
    return Cell("held", "state", "held") if each["success"] else Cell("failed", "state", "failed")


def _count(n: int | None) -> Cell:
    return Cell("withheld", "none") if n is None else number_cell(count(n))


def _total(numbers: list[int | None]) -> Cell:
    known = [n for n in numbers if n is not None]
    return _count(sum(known) if len(known) == len(numbers) else None)


def expected(text: str) -> str:
    """The arguments of an expectation as words, without the engine's own."""
    said = {k: v for k, v in json.loads(text or "{}").items() if v is not None and k not in _QUIET}
    words = {k.replace("_", " "): ", ".join(map(str, v)) if isinstance(v, list) else str(v) for k, v in said.items()}
    return "; ".join(f"{key}: {value}" for key, value in words.items())


def _cut(text: str, most: int = 120) -> str:
    return text if len(text) <= most else text[:most].rstrip(" ,;") + "\N{HORIZONTAL ELLIPSIS}"
