"""report.json: the same results as the pages, for machines, in the shape of ``schemas.report``.

Measures are not repeated in it; they are in measures.parquet.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from schemas.report import (
    Broken,
    Checks,
    Digests,
    FigureShown,
    HeadlineSaid,
    Interval,
    Line,
    Named,
    Number,
    QuestionAnswered,
    Report,
    Rows,
    RowsOf,
    Signature,
    SourceRead,
)
from schemas.tables.source import DECISION_DIRECTION, SOURCE_READ, told
from schemas.tables.validations import VALIDATIONS
from schemas.tables.verdicts import VERDICTS, published
from schemas.terms import State, Theory
from tasks.metrics.verdict_tables import state_of
from tasks.preprocessing.direction import warnings
from tasks.reporting.chapters.decide.result import Comparison, Decision, Figures
from tasks.reporting.chapters.decide.result import Line as Advice
from tasks.reporting.exports.groups import groups, people
from tasks.reporting.material import Material
from tasks.reporting.signatures import Signature as Signed


def document(material: Material, decision: Decision, pages: Iterable[str]) -> bytes:
    """The content of report.json.

    Args:
        material: what is published of the run.
        decision: the first page.
        pages: paths of the other files, below the folder of the run.
    """
    said = report(material, decision, pages).model_dump(mode="json")
    return json.dumps(said, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def report(material: Material, decision: Decision, pages: Iterable[str]) -> Report:
    """The same as a model."""
    s, verdicts = material.settings, material.rows(VERDICTS)
    wholes = {Theory(row["theory"]): State(row["state"]) for row in verdicts if row["role"] == "theory"}
    return Report(
        run=s.run,
        audit=s.name,
        title=s.title,
        year=s.year,
        partition=material.part and RowsOf(column=material.part.column, value=material.part.value),
        state=state_of(wholes, s.verdicts),
        source=_source(material),
        digests=Digests(source_sha256=s.source_sha256, code=s.code, version=s.version),
        disclosure=s.disclosure.profile,
        headline=_headline(decision),
        questions=tuple(QuestionAnswered.model_validate(vars(row)) for row in decision.questions),
        figures=tuple(_figure(decision.figures, each) for each in decision.figures.comparisons),
        groups=groups(material),
        checks=tuple(_checks(material)),
        change=_lines(decision.change),
        next=_lines(decision.next),
        cannot=_lines(decision.cannot),
        signatures=tuple(_signature(each) for each in material.signed.signatures),
        pages=tuple(pages),
        theories=Rows.model_validate(published(verdicts)),
        warnings=tuple(_warnings(material)),
    )


def _signature(each: Signed) -> Signature:
    return Signature(name=each.by, role=each.role, date=each.day, sha256=each.sha256, key=each.key)


def _warnings(material: Material) -> Iterator[str]:
    if material.restricted:
        yield material.restricted
    for row in material.rows(DECISION_DIRECTION):
        yield from warnings(row, material.settings.decision)


def _source(material: Material) -> SourceRead:
    """What was read; nothing of it where the table has no row."""
    for row in map(told, material.rows(SOURCE_READ)):
        return SourceRead(name=row["source"], sha256=row["sha256"], rows=people(row["rows"]), year=row["year"])
    return SourceRead(name="", sha256="", rows=people(None), year=None)


def _headline(decision: Decision) -> HeadlineSaid:
    named = tuple(Named(attribute=attribute, group=group) for attribute, group in decision.headline.groups)
    return HeadlineSaid(rule=decision.headline.rule, words=decision.headline.words, groups=named)


def _figure(figures: Figures, each: Comparison) -> FigureShown:
    return FigureShown(
        name=each.name,
        label=each.label,
        detail=each.detail,
        attribute=figures.attribute,
        group=figures.group,
        reference=figures.reference,
        among=figures.among,
        state=each.state,
        state_words=each.state_words,
        points=Number(value=each.value, shown=each.shown),
        interval=Interval(low=each.low, high=each.high, kind=each.interval, shown=each.shown_interval),
        limit=Number(value=each.limit, shown=each.shown_limit),
        n=people(each.n),
    )


def _lines(lines: Iterable[Advice]) -> tuple[Line, ...]:
    return tuple(Line.model_validate(vars(line)) for line in lines)


def _checks(material: Material) -> Iterator[Checks]:
    """A line a table; only what did not hold is told in full."""
    of_table: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in material.rows(VALIDATIONS):
        of_table.setdefault((row["stage"], row["table"]), []).append(row)
    for (stage, table), rows in of_table.items():
        broken = tuple(_broken(row) for row in rows if not row["success"])
        yield Checks(stage=stage, table=table, expectations=len(rows), broken=broken)


def _broken(row: Mapping[str, Any]) -> Broken:
    kept = {name: row[name] for name in ("expectation", "column", "expected", "elements", "unexpected")}
    return Broken(**kept, set_aside=row["quarantined"])
