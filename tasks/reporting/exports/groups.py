"""The groups of a run, each with its people, its approvals and how it stands in every theory; for JSON and workbook."""

from collections.abc import Iterator, Mapping
from typing import Any

from schemas.report import Approval, GroupShown, Interval, Judged, Number
from schemas.tables.verdicts import STATES, VERDICTS, state_of_row
from schemas.terms import State, Theory
from tasks.pipeline.registry import OUTCOMES, OUTCOMES_METHOD
from tasks.reporting.chapters.decide.facts import Row
from tasks.reporting.chapters.decide.groups import Groups
from tasks.reporting.chapters.decide.numbers import of_100
from tasks.reporting.chapters.decide.reading import run_of
from tasks.reporting.chapters.questions.declaration import declaration
from tasks.reporting.chapters.questions.marks import SCALES, ends_of, number_of
from tasks.reporting.charts.marks import Estimate, ends_text, value_text
from tasks.reporting.charts.numbers import WITHHELD
from tasks.reporting.material import Material, Measure, by_size
from tasks.reporting.numbers import count, significant

UNDEFINED = "undefined"
NOT_MEASURED = "not measured"
_APPROVAL = OUTCOMES[0]
_SCALES = {question.theory: SCALES[question.scale] for question in declaration().questions.values()}
"""Theory -> how the page of its question prints numbers."""


def groups(material: Material) -> tuple[GroupShown, ...]:
    """Every group of every protected attribute: the reference first, then by falling size."""
    judged = Groups(run_of(material))
    return tuple(
        _group(material, judged, protected.name, name, protected.reference)
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


def _group(material: Material, judged: Groups, attribute: str, name: str, reference: str) -> GroupShown:
    rates = [m for m in _rates(material, attribute) if m.group == name]
    verdicts = (
        row
        for row in material.rows(VERDICTS)
        if (row["role"], row["protected_attribute"], row["group"]) == ("primary", attribute, name)
    )
    return GroupShown(
        attribute=attribute,
        group=name,
        reference=name == reference,
        n=people(max((m.n for m in rates if m.n is not None), default=None)),
        approvals=tuple(_approval(m) for m in rates),
        verdicts=tuple(_judged(judged, row) for row in verdicts),
    )


def _approval(m: Measure) -> Approval:
    shown = f"{of_100(m.value)} of 100" if m.value is not None else WITHHELD if m.withheld else UNDEFINED
    return Approval(decision_maker=m.decision_maker, rate=Number(value=m.value, shown=shown), low=m.low, high=m.high)


def _judged(groups: Groups, row: Mapping[str, Any]) -> Judged:
    """A verdict: numbers as published, and the same in the words of the page of its question."""
    value, ends, unit = _printed(groups, row)
    return Judged(
        theory=Theory(row["theory"]),
        decision_maker=row["decision_maker"],
        method=row["method"],
        measure=row["measure"],
        state=state_of_row(row),
        state_words=WITHHELD if row["withheld"] else STATES[State(row["state"])],
        effect=Number(value=row["value"], shown=value),
        interval=_interval(row, ends),
        unit=unit,
    )


def _printed(groups: Groups, row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Value, interval and their unit, as the page of the question prints them."""
    read = Row.of(row)
    if row["value"] is None or read.withheld:
        return WITHHELD if row["withheld"] else NOT_MEASURED, "", ""
    scale = _SCALES.get(read.theory)
    if scale is None:  # a limit of the spec itself, in the unit of its measure
        ends = f"[{', '.join(map(significant, read.ends))}]" if read.ends else ""
        return significant(row["value"]), ends, ""
    value, (low, high) = number_of(groups, read, scale, read.value), ends_of(groups, read, scale)
    if value is None:
        return WITHHELD, "", ""
    estimate = Estimate(value=value, low=low, high=high)
    printed = ends_text(estimate, scale.unit)
    return value_text(estimate, scale.unit), f"[{', '.join(printed)}]" if printed else "", scale.unit.name


def _interval(row: Mapping[str, Any], shown: str) -> Interval:
    """The verdict interval; the two-sided one where no limit was tested."""
    for kind, low, high in (("verdict", "low", "high"), ("plain", "plain_low", "plain_high")):
        ends = row[low], row[high]
        if row["value"] is not None and None not in ends:
            return Interval.model_validate({"low": ends[0], "high": ends[1], "kind": kind, "shown": shown})
    return Interval(low=None, high=None, kind="", shown="")
