"""measures.xlsx: what is published of a run as sheets, numbers as numbers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from schemas.report import GroupShown
from schemas.table import Table
from schemas.tables.publication import PUBLISHED_WATERFALL
from schemas.tables.source import SOURCE_READ, read_words, told
from schemas.tables.validations import VALIDATIONS
from schemas.tables.verdicts import QUESTIONS, STATES
from schemas.terms import State, Theory
from tasks.reporting.chapters.decide.result import Decision
from tasks.reporting.declared import all_declared, words
from tasks.reporting.exports.groups import groups
from tasks.reporting.exports.spreadsheet import Sheet, spreadsheet
from tasks.reporting.material import Material, Measure

MOST_MEASURES = 30_000
"""Rows of measures that are tried at all: more never fit (50 bytes a row)."""
MOST_BYTES = 1_500_000
"""Of the workbook. Where all measures are too many, those without a number are left out, then all of them."""
RUNG = "rung"
"""Parameter of measures that are made step by step, each with more to adjust for."""
_STATES = {
    State.BREACH: "the whole verdict interval lies beyond a limit that was fixed before",
    State.INSUFFICIENT_EVIDENCE: "too few people, no interval, or it reaches over the limit: no pass",
    State.WITHIN: "the whole verdict interval lies on the allowed side of the limit",
    State.NO_LIMIT: "computed; nobody said what is too much",
    State.DESCRIPTIVE: "computed; it has no interval that covers as often as it says",
    State.NOT_RUN: "not computed",
}


def workbook(material: Material, decision: Decision) -> bytes:
    """The content of measures.xlsx, with as many of the measures as it has room for."""
    every = material.measures
    for some in (every, tuple(m for m in every if m.value is not None)):
        if len(some) <= MOST_MEASURES and len(content := _workbook(material, decision, some)) <= MOST_BYTES:
            return content
    return _workbook(material, decision, ())


def _workbook(material: Material, decision: Decision, measures: tuple[Measure, ...]) -> bytes:
    found, falls = groups(material), material.tables.get(PUBLISHED_WATERFALL.name, ())
    return spreadsheet(
        (
            Sheet("Read me", ("what", "is"), tuple(_read_me(material, decision, len(measures)))),
            Sheet("Decide", ("part", "question", "state", "words"), tuple(_decide(decision))),
            Sheet("Figures", _FIGURES, tuple(_figures(material, decision))),
            Sheet("Groups", _GROUPS, tuple(row for group in found for row in _group(group)), filtered=True),
            Sheet("Checks", _names(VALIDATIONS), _cells(VALIDATIONS, material.rows(VALIDATIONS)), filtered=True),
            Sheet("Waterfall", _names(PUBLISHED_WATERFALL), _cells(PUBLISHED_WATERFALL, falls), filtered=True),
            _measures(material, measures),
            Sheet("Glossary", ("term", "kind", "of", "meaning"), tuple(_glossary()), filtered=True),
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
    yield "value, low, high", "as published: an effect on denial above zero is against the group"
    yield "as printed", "the same as the pages print it, in the unit named beside it"
    yield "points", "percentage points of approval; negative is against the group"
    for state, meaning in _STATES.items():
        yield f"state: {STATES[state]}", meaning


def _decide(decision: Decision) -> Iterator[tuple[object, ...]]:
    yield "headline", "", "", decision.headline.words
    for row in decision.questions:
        yield "what was found", row.question, row.state_words, row.sentence
    for part, lines in (
        ("what would change this", decision.change),
        ("do next", decision.next),
        ("what this cannot tell", decision.cannot),
    ):
        yield from ((part, "", "", f"{line.words} {line.command}".strip()) for line in lines)


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
    shown = decision.figures
    for each in shown.comparisons:
        ends = each.value, each.low, each.high, each.n, each.state_words
        yield "forest", each.label, each.detail, "", shown.attribute, shown.group, *ends
    named = words()
    for m in material.measures:
        if RUNG in m.said and m.subgroup == 0:
            label = named[m.measure].words if m.measure in named else m.measure
            detail = ", ".join(f"{name} {value}" for name, value in m.said.items())
            whose = m.decision_maker, m.protected_attribute, m.group
            yield "ladder", label, detail, *whose, *_of_approval(m), m.n, STATES[State(m.state)]


def _of_approval(m: Measure) -> tuple[float | None, ...]:
    """A difference of denial and its ends as points of approval, the lower end first."""
    return tuple(None if each is None else -100 * each for each in (m.value, m.high, m.low))


_GROUPS = (
    *("attribute", "group", "reference", "n", "of", "decisions of", "measure", "state"),
    *("value", "low", "high", "as printed", "unit as printed"),
)


def _group(group: GroupShown) -> Iterator[tuple[object, ...]]:
    """A line for the approvals by each decision maker, and one for each verdict."""
    own = group.attribute, group.group, "yes" if group.reference else "", group.n.value
    for each in group.approvals:
        rate = each.rate
        yield (
            *own,
            "Approvals",
            each.decision_maker,
            "approval_rate",
            "",
            rate.value,
            each.low,
            each.high,
            rate.shown,
            "",
        )
    for row in group.verdicts:
        shown = f"{row.effect.shown} {row.interval.shown}".strip()
        numbers = row.effect.value, row.interval.low, row.interval.high, shown, row.unit
        yield *own, QUESTIONS[Theory(row.theory)], row.decision_maker, row.measure, row.state_words, *numbers


def _measures(material: Material, told: tuple[Measure, ...]) -> Sheet:
    names = tuple(each.name for each in fields(Measure))
    if material.measures and not told:
        told_where = f"{len(material.measures):,} measures are too many for a sheet: they are in measures.parquet"
        return Sheet("Measures", ("where",), ((told_where,),))
    rows = tuple(tuple(getattr(m, name) for name in names) for m in told)
    return Sheet("Measures", names, rows, filtered=True)


def _glossary() -> Iterator[tuple[object, ...]]:
    """Measures in words, then terms, of outcomes and of every method."""
    for one in all_declared().values():
        yield from ((name, "measure", one.title, f"{m.words}: {m.meaning}") for name, m in one.measures.items())
        yield from ((term, "term", one.title, meaning) for term, meaning in one.glossary.items())


def _names(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.columns)


def _cells(table: Table, rows: Iterable[Mapping[str, Any]]) -> tuple[tuple[object, ...], ...]:
    return tuple(tuple(row[name] for name in _names(table)) for row in rows)
