"""The file measures.xlsx."""

import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from xlsxwriter import Workbook

from schemas.questions import QUESTIONS, STATES
from schemas.table import Table
from schemas.tables.applications import SOURCE_READ, VALIDATIONS, read_words, told
from schemas.tables.verdicts import PUBLISHED_CURVES, PUBLISHED_WATERFALL
from schemas.terms import State, Theory
from tasks.reporting.declared import all_declared, words
from tasks.reporting.exports.report_json import groups
from tasks.reporting.first_page.result import Decision
from tasks.reporting.material import Material, Measure
from tasks.reporting.text import AS_COUNTS, FORMULA, share_cell

# --------------------------------------------------------------------------------------------------------------------
# Rows as an XLSX workbook: equal rows give equal bytes, and no text of the data is ever a formula or a link.
#
# Scope: how a sheet is written. ``workbook`` fills the sheets of a report, ``flows`` those of reviewers.


LONGEST = 32_767
"""Characters of a cell; what is longer is cut."""
_CREATED = datetime(2000, 1, 1)
"""Written into every workbook in place of the clock, so that bytes repeat."""
_NARROWEST, _WIDEST = 9, 60
_SAMPLED = 200
"""Rows by which the width of a column is set."""
_A4 = 9


@dataclass(frozen=True)
class Sheet:
    """One sheet."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[Sequence[object]]
    """Cells are text, numbers, booleans or None; what is none of these is written as text."""
    above: tuple[str, ...] = field(default=())
    """Lines above the header."""
    filtered: bool = False
    """Whether the header has filters."""


def spreadsheet(sheets: Iterable[Sheet], *, in_memory: bool = False) -> bytes:
    """The content of an XLSX file.

    Args:
        sheets: in the order of the file.
        in_memory: whether to write nothing to disk meanwhile, as rows of persons require; it takes more memory.
    """
    sink = io.BytesIO()
    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with Workbook(sink, {**options, "in_memory": in_memory, "constant_memory": not in_memory}) as book:
        book.set_properties({"created": _CREATED})
        bold = book.add_format({"bold": True, "text_wrap": True, "valign": "top"})
        guarded = book.add_format({"quote_prefix": True})
        for sheet in sheets:
            _fill(book.add_worksheet(sheet.title), sheet, bold, guarded)
    return sink.getvalue()


def _fill(place: Any, sheet: Sheet, bold: Any, guarded: Any) -> None:
    top, last = len(sheet.above), max(len(sheet.header) - 1, 0)
    lines = [*((line,) for line in sheet.above), sheet.header, *sheet.rows]
    for column, name in enumerate(sheet.header):
        cells = (row[column] for row in sheet.rows[:_SAMPLED])
        texts = (f"{cell:.6g}" if isinstance(cell, float) else str(cell or "") for cell in cells)
        longest = max(map(len, texts), default=0)
        place.set_column(column, column, min(max(longest + 1, min(len(name) + 3, 24), _NARROWEST), _WIDEST))
    for number, line in enumerate(lines):
        for column, value in enumerate(line):
            _write(place, number, column, value, bold if number <= top else None, guarded)
    place.freeze_panes(top + 1, 0)
    if sheet.filtered and sheet.rows:
        place.autofilter(top, 0, len(lines) - 1, last)
    place.set_landscape()
    place.set_paper(_A4)
    place.fit_to_pages(1, 0)
    place.repeat_rows(top)
    place.print_area(0, 0, len(lines) - 1, last)


def _write(place: Any, row: int, column: int, value: object, form: Any, guarded: Any) -> None:
    """A cell: numbers as numbers, text as text; text like a formula keeps an apostrophe when it is edited."""
    if value is None or value == "":
        return
    if isinstance(value, bool):
        place.write_boolean(row, column, value, form)
    elif isinstance(value, int | float) and math.isfinite(value):
        place.write_number(row, column, value, form)
    else:
        text = str(value)[:LONGEST]
        place.write_string(row, column, text, form or (guarded if text.startswith(FORMULA) else None))


# --------------------------------------------------------------------------------------------------------------------
# measures.xlsx: what is published of a run as sheets, numbers as numbers.


MOST_MEASURES = 30_000
"""Rows of measures that are tried at all: more never fit (50 bytes a row)."""
MOST_BYTES = 1_500_000
"""Of the workbook. Where all measures are too many, those without a number are left out, then all of them."""
RUNG = "rung"
"""Parameter of measures that are made step by step, each with more to adjust for."""


_POINT = (
    *("method", "decision_maker", "protected_attribute", "group", "subgroup", "measure", "parameters"),
    *("value", "low", "high", "n", "note"),
)
"""Columns of a point of a curve."""


def workbook(material: Material, decision: Decision) -> bytes:
    """The content of measures.xlsx, with as many of the measures as it has room for."""
    every, points = material.measures, material.points
    with_value = tuple(m for m in every if m.value is not None)
    for some, of_curves in ((every, points), (every, ()), (with_value, ())):
        if len(some) + len(of_curves) > MOST_MEASURES:
            continue
        if len(content := _workbook(material, decision, some, of_curves)) <= MOST_BYTES:
            return content
    return _workbook(material, decision, (), ())


def _workbook(
    material: Material, decision: Decision, measures: tuple[Measure, ...], points: tuple[Measure, ...]
) -> bytes:
    falls = material.tables.get(PUBLISHED_WATERFALL.name, ())
    answers = ((row.question, row.state_words, row.sentence, row.against, row.reliable) for row in decision.questions)
    decide = [("headline", "", "", decision.headline.words, "", ""), *(("what was found", *row) for row in answers)]
    for part, lines in (
        ("what to know", decision.change),
        ("do next", decision.next),
        ("what this cannot show", decision.cannot),
    ):
        decide += [(part, "", "", f"{line.words} {line.command}".strip(), "", "") for line in lines]
    glossary = []
    for method in all_declared().values():
        glossary += [(name, "measure", method.title, f"{m.words}: {m.meaning}") for name, m in method.measures.items()]
        glossary += [(term, "term", method.title, meaning) for term, meaning in method.glossary.items()]
    glossary = [(term, kind, of, material.rephrase(meaning)) for term, kind, of, meaning in glossary]
    names = tuple(column.name for column in fields(Measure))
    rows = tuple(tuple(getattr(m.in_approval, name) for name in names) for m in measures)
    every = Sheet("Measures", names, rows, filtered=True)
    if material.measures and not measures:
        where = f"{len(material.measures):,} measures are too many for a sheet: they are in measures.parquet"
        every = Sheet("Measures", ("where",), ((where,),))
    of_curves = Sheet(
        "Curves", _POINT, tuple(tuple(getattr(m, name) for name in _POINT) for m in points), filtered=True
    )
    if material.points and not points:
        tables = " and ".join(table.name for table in PUBLISHED_CURVES)
        where = f"{len(material.points):,} points are too many for a sheet: they are in {tables} (evenhand sql)"
        of_curves = Sheet("Curves", ("where",), ((where,),))
    return spreadsheet(
        (
            Sheet("Read me", ("what", "is"), tuple(_read_me(material, decision, len(measures)))),
            Sheet("Decide", ("part", "question", "state", "words", "against the limit", "how reliable"), decide),
            Sheet("Figures", _FIGURES, tuple(_figures(material, decision))),
            Sheet("Groups", _GROUPS, tuple(_groups(material)), filtered=True),
            Sheet("Checks", _names(VALIDATIONS), _cells(VALIDATIONS, material.rows(VALIDATIONS)), filtered=True),
            Sheet(
                "Waterfall", _names(PUBLISHED_WATERFALL), _cells(PUBLISHED_WATERFALL, map(_fall, falls)), filtered=True
            ),
            every,
            *((of_curves,) if material.points else ()),
            Sheet("Glossary", ("term", "kind", "of", "meaning"), glossary, filtered=True),
        )
    )


def _read_me(material: Material, decision: Decision, measures: int) -> Iterator[tuple[object, ...]]:
    s = material.settings
    if material.restricted:
        yield "restricted", material.restricted
    yield "run", s.run
    yield "title", s.title
    yield "answer", decision.headline.words
    for row in material.rows(SOURCE_READ):
        yield "read", read_words(told(row)) if row["rows"] is not None else row["source"]
    yield "sha256 of the source", s.source_sha256
    yield "digest of the code", s.code
    yield "disclosure control", s.disclosure.profile
    if measures < len(material.measures):
        yield "measures", f"{measures:,} of {len(material.measures):,} have room here; all are in measures.parquet"
    yield "an empty cell", "withheld, or not measured"
    yield "value, low, high", "differences are group less reference group in approval: negative is approved less often"
    yield "as printed", "the same as the pages print it, in the unit named beside it"
    yield "points", "percentage points of approval; negative is against the group"
    for state in STATES.values():
        yield f"state: {state.words}", state.meaning


_FIGURES = (
    "figure",
    "comparison",
    "detail",
    "decisions of",
    "attribute",
    "group",
    "points",
    "low",
    "high",
    "n",
    "state",
)


def _figures(material: Material, decision: Decision) -> Iterator[tuple[object, ...]]:
    """The three comparisons of Decide, then every measure that is adjusted step by step."""
    group_figures = decision.figures
    for comparison in group_figures.comparisons:
        ends = comparison.value, comparison.low, comparison.high, comparison.n, comparison.state_words
        yield "forest", comparison.label, comparison.detail, "", group_figures.attribute, group_figures.group, *ends
    named = words()
    for m in material.measures:
        if RUNG in m.said and m.subgroup == 0:
            label = named[m.measure].words if m.measure in named else m.measure
            detail = ", ".join(f"{name} {value}" for name, value in m.said.items())
            place = m.decision_maker, m.protected_attribute, m.group
            turned = m.in_approval
            points = (None if share is None else 100 * share for share in (turned.value, turned.low, turned.high))
            yield "ladder", label, detail, *place, *points, m.n, STATES[State(m.state)].words


_GROUPS = (
    *("attribute", "group", "reference", "n", "of", "decisions of", "measure", "state"),
    *("value", "low", "high", "as printed", "unit as printed"),
)


def _groups(material: Material) -> Iterator[tuple[object, ...]]:
    """A line for the approvals of a group by each decision maker, and one for each verdict."""
    for group in groups(material):
        leading = group.attribute, group.group, "yes" if group.reference else "", group.n.value
        for approval in group.approvals:
            rate, place = approval.rate, (approval.decision_maker, "approval_rate", "")
            yield *leading, "Approvals", *place, rate.value, approval.low, approval.high, rate.shown, ""
        for row in group.verdicts:
            text = f"{row.effect.shown} {row.interval.shown}".strip()
            numbers = row.effect.value, row.interval.low, row.interval.high, text, row.unit
            yield (
                *leading,
                QUESTIONS[Theory(row.theory)].words,
                row.decision_maker,
                row.measure,
                row.state_words,
                *numbers,
            )


def _fall(row: Mapping[str, Any]) -> dict[str, Any]:
    """A line of the waterfall; a share of few people as its counts."""
    if row["approval"] is None or row["n"] is None or row["n"] >= AS_COUNTS:
        return dict(row)
    return {**row, "approval": share_cell(row["approval"], row["n"]).text}


def _names(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.columns)


def _cells(table: Table, rows: Iterable[Mapping[str, Any]]) -> tuple[tuple[object, ...], ...]:
    return tuple(tuple(row[name] for name in _names(table)) for row in rows)
