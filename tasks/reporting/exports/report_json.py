"""The file report.json."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from schemas.questions import STATES, rephrase_rows
from schemas.report import (
    Approval,
    Broken,
    Checks,
    Digests,
    EffectShown,
    FigureShown,
    GroupShown,
    HeadlineSaid,
    Interval,
    Judged,
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
from schemas.tables.applications import DECISION_DIRECTION, SOURCE_READ, VALIDATIONS, told
from schemas.tables.readings import VERDICT_FINDINGS
from schemas.tables.verdicts import VERDICTS, in_approval, published_findings, published_verdicts, state_of_row
from schemas.terms import State, Theory
from tasks.metrics.verdicts import state_of, theories_of
from tasks.pipeline.registry import OUTCOMES, OUTCOMES_METHOD
from tasks.preprocessing.checks import warnings
from tasks.reporting.charts.values import WITHHELD, Estimate, ends_text, value_text
from tasks.reporting.first_page.facts import Groups, Row, of_100
from tasks.reporting.first_page.page import run_of
from tasks.reporting.first_page.result import Comparison, Decision, Figures, Question
from tasks.reporting.first_page.result import Line as Advice
from tasks.reporting.material import Material, Measure, by_size
from tasks.reporting.question_pages.data import SCALES, declaration, ends_of, number_of
from tasks.reporting.text import count, significant

# --------------------------------------------------------------------------------------------------------------------
# The groups of a run, each with its people, approvals and state in every theory; for JSON and workbook.


UNDEFINED = "undefined"
NOT_MEASURED = "not measured"
_APPROVAL = OUTCOMES[0]
_SCALES = {question.theory: SCALES[question.scale] for question in declaration().questions.values()}
"""Theory -> how the page of its question prints numbers."""


def groups(material: Material) -> tuple[GroupShown, ...]:
    """Every group of every protected attribute: the reference first, then by falling size."""
    judged_groups = Groups(run_of(material))
    return tuple(
        _group(material, judged_groups, protected.name, name, protected.reference)
        for protected in material.settings.protected
        for name in by_size(_rates(material, protected.name), protected.reference)
    )


def people(n: int | None) -> Number:
    """A number of people as published."""
    return Number(value=n, shown=WITHHELD if n is None else count(n))


def _rates(material: Material, attribute: str) -> Iterator[Measure]:
    """The shares approved, one of each group and decision maker."""
    for m in material.measures:
        of_group = m.method == OUTCOMES_METHOD and m.measure == _APPROVAL and m.subgroup == 0
        if of_group and m.protected_attribute == attribute:
            yield m


def _group(material: Material, judged_groups: Groups, attribute: str, name: str, reference: str) -> GroupShown:
    rates = [m for m in _rates(material, attribute) if m.group == name]
    approvals, verdicts = [], []
    for m in rates:
        missing = m.reason if m.of_few else WITHHELD if m.withheld else UNDEFINED
        text = missing if m.value is None else f"{of_100(m.value)} of 100"
        rate = Number(value=m.value, shown=text)
        approvals.append(Approval(decision_maker=m.decision_maker, rate=rate, low=m.low, high=m.high))
    for stored in material.rows(VERDICTS):
        row = in_approval(stored)
        if (row["role"], row["protected_attribute"], row["group"]) != ("primary", attribute, name):
            continue
        value, ends, unit = _printed(judged_groups, stored)
        interval = Interval(low=None, high=None, kind="", shown="")
        # The two-sided interval, unless a limit was tested.
        for kind, low, high in (("plain", "plain_low", "plain_high"), ("verdict", "low", "high")):
            if row["value"] is not None and row[low] is not None and row[high] is not None:
                interval = Interval.model_validate({"low": row[low], "high": row[high], "kind": kind, "shown": ends})
        verdict = Judged(
            theory=Theory(row["theory"]),
            decision_maker=row["decision_maker"],
            method=row["method"],
            measure=row["measure"],
            state=state_of_row(row),
            state_words=WITHHELD if row["withheld"] else STATES[State(row["state"])].words,
            effect=Number(value=row["value"], shown=value),
            interval=interval,
            unit=unit,
        )
        verdicts.append(verdict)
    return GroupShown(
        attribute=attribute,
        group=name,
        reference=name == reference,
        n=people(max((m.n for m in rates if m.n is not None), default=None)),
        approvals=tuple(approvals),
        verdicts=tuple(verdicts),
    )


def _printed(groups: Groups, row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Value, interval and their unit, as the page of the question prints them."""
    facts = Row.of(row)
    if row["value"] is None or facts.withheld:
        return WITHHELD if row["withheld"] else NOT_MEASURED, "", ""
    scale = _SCALES.get(facts.theory)
    if scale is None:  # a limit of the spec itself, in the unit of its measure
        ends = f"[{', '.join(map(significant, facts.ends))}]" if facts.ends else ""
        return significant(row["value"]), ends, ""
    value, (low, high) = number_of(groups, facts, scale, facts.value), ends_of(groups, facts, scale)
    if value is None:
        return WITHHELD, "", ""
    estimate = Estimate(value=value, low=low, high=high)
    printed = ends_text(estimate, scale.unit)
    return value_text(estimate, scale.unit), f"[{', '.join(printed)}]" if printed else "", scale.unit.name


# --------------------------------------------------------------------------------------------------------------------
# report.json: the same results as the pages, for machines, in the shape of ``schemas.report``.
#
# Measures are not repeated in it; they are in measures.parquet.


def document(material: Material, decision: Decision, pages: Iterable[str]) -> bytes:
    """The content of report.json.

    Args:
        material: what is published of the run.
        decision: the first page.
        pages: paths of the other files, below the folder of the run.
    """
    content = report(material, decision, pages).model_dump(mode="json")
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def report(material: Material, decision: Decision, pages: Iterable[str]) -> Report:
    """The same as a model."""
    s, verdicts, first = material.settings, material.rows(VERDICTS), decision.headline
    named = tuple(Named(attribute=attribute, group=group) for attribute, group in first.groups)
    # Nothing of the source where its table has no row.
    none: dict[str, Any] = {"source": "", "sha256": "", "rows": None, "year": None}
    read = next(map(told, material.rows(SOURCE_READ)), none)
    direction = (text for row in material.rows(DECISION_DIRECTION) for text in warnings(row, s.decision))
    return Report(
        run=s.run,
        audit=s.name,
        title=s.title,
        year=s.year,
        partition=material.part and RowsOf(column=material.part.column, value=material.part.value),
        state=state_of(theories_of(verdicts), s.verdicts),
        source=SourceRead(name=read["source"], sha256=read["sha256"], rows=people(read["rows"]), year=read["year"]),
        digests=Digests(source_sha256=s.source_sha256, code=s.code, version=s.version),
        disclosure=s.disclosure.profile,
        headline=HeadlineSaid(rule=first.rule, words=first.words, groups=named),
        questions=tuple(map(_question, decision.questions)),
        figures=tuple(_figure(decision.figures, comparison) for comparison in decision.figures.comparisons),
        groups=groups(material),
        checks=tuple(_checks(material)),
        change=_lines(decision.change),
        next=_lines(decision.next),
        cannot=_lines(decision.cannot),
        signatures=tuple(
            Signature(name=signed.by, role=signed.role, date=signed.day, sha256=signed.sha256, key=signed.key)
            for signed in material.signed.signatures
        ),
        pages=tuple(pages),
        theories=Rows.model_validate(published_verdicts(rephrase_rows(verdicts, material.rephrase))),
        findings=Rows.model_validate(
            published_findings(rephrase_rows(material.named(VERDICT_FINDINGS.name), material.rephrase))
        ),
        warnings=(*((material.restricted,) if material.restricted else ()), *direction),
    )


def _figure(figures: Figures, comparison: Comparison) -> FigureShown:
    return FigureShown(
        name=comparison.name,
        label=comparison.label,
        detail=comparison.detail,
        attribute=figures.attribute,
        group=figures.group,
        reference=figures.reference,
        among=figures.among,
        state=comparison.state,
        state_words=comparison.state_words,
        points=Number(value=comparison.value, shown=comparison.text),
        interval=Interval(
            low=comparison.low, high=comparison.high, kind=comparison.interval, shown=comparison.shown_interval
        ),
        limit=Number(value=comparison.limit, shown=comparison.shown_limit),
        n=people(comparison.n),
    )


def _question(row: Question) -> QuestionAnswered:
    effects = tuple(
        EffectShown(attribute=e.key[0], group=e.key[1], value=e.value, low=e.low, high=e.high, none=e.none)
        for e in row.effects
    )
    return QuestionAnswered.model_validate({**vars(row), "effects": effects})


def _lines(lines: Iterable[Advice]) -> tuple[Line, ...]:
    return tuple(Line.model_validate(vars(line)) for line in lines)


_OF_EXPECTATION = ("expectation", "column", "expected", "elements", "unexpected")


def _checks(material: Material) -> Iterator[Checks]:
    """One line per table; only failed checks are listed in full."""
    of_table: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in material.rows(VALIDATIONS):
        of_table.setdefault((row["stage"], row["table"]), []).append(row)
    for (stage, table), rows in of_table.items():
        broken = tuple(
            Broken(**{name: row[name] for name in _OF_EXPECTATION}, set_aside=row["quarantined"])
            for row in rows
            if not row["success"]
        )
        yield Checks(stage=stage, table=table, expectations=len(rows), broken=broken)
