"""What is left of a group's difference, block by block of columns on file, and beside a factor that is not on file.

Scope: the two charts of the adjusted comparison. Its estimates: ``tasks.methods.adjusted``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from schemas.blocks import NO_BLOCK
from schemas.terms import State
from tasks.reporting.chapters.decide.facts import Key, Row
from tasks.reporting.chapters.decide.groups import Standing, short
from tasks.reporting.chapters.questions.declaration import Picture, Question, declaration
from tasks.reporting.chapters.questions.marks import SCALES, Scale, beside_mark, verdict_mark
from tasks.reporting.chapters.questions.matter import Matter
from tasks.reporting.charts.marks import Mark
from tasks.reporting.charts.numbers import WITHHELD
from tasks.reporting.charts.steps import Steps
from tasks.reporting.material import Measure
from tasks.reporting.section import Figure

MOST_LADDERS = 2
"""Groups whose ladder is drawn: that of the first page, then those outside a limit."""
MOST_COLUMNS = 3
"""Columns on file that an unseen factor is held against."""


def ladder(matter: Matter, question: Question, picture: Picture) -> Iterator[Figure]:
    """Steps from the raw difference to the last rung, and beside it what a second method says."""
    scale = SCALES[question.scale]
    for key in _first(matter, question)[:MOST_LADDERS]:
        row = matter.primary(question.theory, key)
        marks = [] if row is None else list(_rungs(matter, row, picture, scale))
        if row is None or not marks:
            continue
        rows = (*marks, _beside(matter, question, picture, key))
        title = picture.title.format(group=matter.groups.label(key))
        limit = None if row.limit is None else scale.of(row.limit)
        yield Figure(Steps(title=title, unit=scale.unit, rows=rows, limit=limit), picture.caption)


def _beside(matter: Matter, question: Question, picture: Picture, key: Key) -> Mark:
    """What stands beside the last step."""
    mark = beside_mark(matter, question.theory, key, picture.measure, SCALES[question.scale])
    k, words = matter.groups.run.neighbours, declaration().pictures
    label = words["nearest"] if k is None else words["nearest_k"].format(k=k)
    row = matter.groups.beside(question.theory, key, picture.measure)
    mark = _plain(mark, row, SCALES[question.scale])
    return replace(mark, label=label, detail=words["beside"], apart=True, limit=None, n=None)


def _plain(mark: Mark, row: Row | None, scale: Scale) -> Mark:
    """The mark with the two-sided interval, as the steps have."""
    if row is None or mark.point is None or row.plain_low is None or row.plain_high is None:
        return mark
    low, high = sorted((scale.of(row.plain_low), scale.of(row.plain_high)))
    return replace(mark, low=low, high=high)


def _first(matter: Matter, question: Question) -> list[Key]:
    """Groups with enough people: that of the first page, those outside, then the others."""
    shown = matter.decision.figures.key
    keys = [key for key in matter.shown(question) if matter.groups.enough(key)]
    outside = {key for key in keys if matter.groups.standing(question.theory, key).state is State.BREACH}
    return sorted(keys, key=lambda key: (key != shown, key not in outside))


def _rungs(matter: Matter, row: Row, picture: Picture, scale: Scale) -> Iterator[Mark]:
    """A mark a rung; the judged one has its state and the interval of its verdict."""
    words = declaration().pictures
    standing = Standing(row.key, row.state, row)
    rungs = [each for series in picture.series for each in matter.rungs(series, row)]
    judged = _judged_rung(_benchmarks(matter, row, picture))
    for name, m in rungs:
        label = words["rung_none"] if name == NO_BLOCK else words["rung"].format(block=name)
        if name == judged:
            mark = verdict_mark(matter, row, standing, scale)
            yield replace(_plain(mark, row, scale), label=label, detail=words["judged"], n=None, limit=None)
        else:
            yield _rung(m, label, scale)


def _rung(m: Measure, label: str, scale: Scale) -> Mark:
    if m.value is None:
        words = declaration().missing
        note = words["withheld_note" if m.withheld else "none_note"]
        return Mark(label=label, value=WITHHELD if m.withheld else None, note=note)
    ends = [scale.of(end) for end in (m.low, m.high) if end is not None]
    low, high = sorted(ends) if len(ends) == 2 else (None, None)
    return Mark(label=label, value=scale.of(m.value), low=low, high=high)


def _judged_rung(benchmarks: list[Mapping[str, Any]]) -> str | None:
    """The last block of the rung that benchmarks are about, which is the judged one; None without any."""
    return next((each["blocks"].rpartition(" + ")[2] or NO_BLOCK for each in benchmarks), None)


def _benchmarks(matter: Matter, row: Row, picture: Picture) -> list[Mapping[str, Any]]:
    """Columns on file as benchmarks of a group, on the judged rung."""
    named = {"decision_maker": row.decision_maker, "protected_attribute": row.key[0], "group": row.key[1]}
    return [each for each in matter.material.named(picture.table) if all(each[name] == named[name] for name in named)]


def sensitivity(matter: Matter, question: Question, picture: Picture) -> Iterator[Figure]:
    """The linear difference of the first group, if a factor as strong as a column on file were unseen."""
    key = next(iter(_first(matter, question)), None)
    row = None if key is None else matter.primary(question.theory, key)
    if key is None or row is None or row.withheld:
        return
    scale = SCALES[question.scale]
    found = [each for each in _benchmarks(matter, row, picture) if each["value"] is not None]
    ranked = sorted((each for each in found if each["times"] == 1), key=lambda each: abs(each["value"]))
    if not ranked:
        return
    several = [each for each in found if each["times"] > 1 and each["column"] == ranked[0]["column"]]
    strong = [_as_strong(matter, each, scale) for each in (*reversed(ranked[:MOST_COLUMNS]), *several)]
    rung, label = _judged_rung(found), declaration().pictures["as_measured"]
    measured = [_rung(m, label, scale) for s in picture.series for name, m in matter.rungs(s, row) if name == rung]
    rows = [*(replace(mark, low=None, high=None) for mark in measured), *strong]
    title = picture.title.format(group=matter.groups.label(key))
    limit = None if row.limit is None else scale.of(row.limit)
    yield Figure(Steps(title=title, unit=scale.unit, rows=tuple(rows), limit=limit, bars=True), picture.caption)


def _as_strong(matter: Matter, each: Mapping[str, Any], scale: Scale) -> Mark:
    words, column = declaration().pictures, matter.material.settings.columns.get(each["column"])
    name = short((column.label if column else "") or each["column"])
    said = words["as_strong" if each["times"] == 1 else "times"].format(times=each["times"])
    return Mark(label=name, detail=said, value=scale.of(each["value"]))
