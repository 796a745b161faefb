"""Charts of question pages: measures, agreement of methods, the ladder of a group's difference."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from schemas.audit.column import NO_BLOCK
from schemas.questions import QUESTIONS
from schemas.tables.verdicts import PUBLISHED_WATERFALL
from schemas.terms import DecisionMaker, Refusal, State, Theory
from tasks.reporting.charts.matrix import Cell, Matrix, Row
from tasks.reporting.charts.rows import Forest, Steps
from tasks.reporting.charts.values import WITHHELD, Mark
from tasks.reporting.first_page.facts import Groups, Key, Standing, short
from tasks.reporting.first_page.facts import Row as FactsRow
from tasks.reporting.material import Measure, listed
from tasks.reporting.question_pages import data
from tasks.reporting.text import Figure, Section

# --------------------------------------------------------------------------------------------------------------------
# What several methods say of one question and group: which contradict each other, and the matrix of all states.


MOST_GROUPS = 12
"""Rows of the matrix, which is drawn twice: of 25 with long names it is 150 kB, and the page has 250."""
TITLE = "What each method says of each group"
Said = Mapping[str, Any]
"""A row of the table ``agreement``."""


@dataclass(frozen=True)
class Apart:
    """A group with a verdict of outside by one method and of inside by another."""

    theory: Theory
    maker: str
    key: Key
    outside: tuple[str, ...]
    """Measures."""
    inside: tuple[str, ...]


def apart(rows: Iterable[Said]) -> tuple[Apart, ...]:
    """The contradictions, in the order of the rows."""
    by_group: dict[tuple[str, str, Key], list[Said]] = {}
    for row in rows:
        by_group.setdefault((row["theory"], row["decision_maker"], _key(row)), []).append(row)
    states = (State.OUTSIDE, State.WITHIN)
    groups = [
        Apart(
            Theory(theory),
            maker,
            key,
            *(tuple(row["measure"] for row in verdicts if row["state"] == s) for s in states),
        )
        for (theory, maker, key), verdicts in by_group.items()
    ]
    return tuple(group for group in groups if group.outside and group.inside)


def agreement(rows: Iterable[Said], groups: Groups, words: Callable[[str], str]) -> Section | None:
    """Group x measure, contradictions first if groups are many; None without rows.

    Args:
        rows: of the table ``agreement``.
        groups: their order and names.
        words: a measure in words.
    """
    order = list(QUESTIONS)
    ordered_rows = sorted(
        rows, key=lambda row: (order.index(row["theory"]), row["decision_maker"] != DecisionMaker.LENDER)
    )
    cells: dict[tuple[Key, str], str] = {}
    for row in ordered_rows:
        cells.setdefault((_key(row), row["measure"]), row["state"])
    keys = {key for key, _ in cells}
    if not keys:
        return None
    against = {group.key for group in apart(ordered_rows)}
    ordered = [key for key in groups.order if key in keys]
    shown_keys = set(sorted(ordered, key=lambda key: (key not in against, ordered.index(key)))[:MOST_GROUPS])
    measures = list(dict.fromkeys(measure for _, measure in cells))
    matrix_rows = tuple(
        Row(
            label=groups.label(key),
            cells=tuple(Cell(state=cells[key, name]) if (key, name) in cells else None for name in measures),
        )
        for key in ordered
        if key in shown_keys
    )
    chart = Matrix(title=TITLE, columns=tuple(words(name) for name in measures), rows=matrix_rows)
    text = "No two methods contradict each other: nowhere does one say outside the limit and another within the limit."
    if against:
        text = f"Methods point apart for {len(against)} groups: one says outside the limit, another within the limit."
    remark = f" The first {len(shown_keys)} of {len(ordered)} groups." if len(shown_keys) < len(ordered) else ""
    return Section(TITLE, "agreement", (text,), figures=(Figure(chart, "State by method." + remark),))


def _key(row: Said) -> Key:
    return row["protected_attribute"], row["group"]


# --------------------------------------------------------------------------------------------------------------------
# The rest of a group's difference, by block of columns on file, and in comparison with a factor not on file.
#
# Scope: the two charts of the adjusted comparison. Its estimates: ``tasks.methods.adjusted``.


MOST_LADDERS = 2
"""Most groups with a ladder: the group of the first page, then those outside a limit."""
MOST_COLUMNS = 3
"""Columns on file that an unseen factor is held against."""


def ladder(matter: data.Matter, question: data.Question, picture: data.Picture) -> Iterator[Figure]:
    """Steps from the raw difference to the last rung, with the result of a second method."""
    scale, words = data.SCALES[question.scale], data.declaration().pictures
    for key in _ordered_groups(matter, question)[:MOST_LADDERS]:
        row = matter.primary(question.theory, key)
        rungs = [] if row is None else [rung for series in picture.series for rung in matter.rungs(series, row)]
        if row is None or not rungs:
            continue
        deciding_rung, marks = _judged_rung(_benchmarks(matter, row, picture)), []
        for name, m in rungs:
            label = words["rung_none"] if name == NO_BLOCK else words["rung"].format(block=name)
            mark = _rung(m, label, scale)
            if name == deciding_rung:  # the judged rung has its state and the interval of its verdict
                verdict = _two_sided(
                    data.verdict_mark(matter, row, Standing(row.key, row.state, row), scale), row, scale
                )
                mark = replace(verdict, label=label, detail=words["judged"], n=None, limit=None)
            marks.append(mark)
        mark = data.beside_mark(matter, question.theory, key, picture.measure, scale)
        mark = _two_sided(mark, matter.groups.beside(question.theory, key, picture.measure), scale)
        k = matter.groups.run.neighbours
        label = words["nearest"] if k is None else words["nearest_k"].format(k=k)
        marks.append(replace(mark, label=label, detail=words["beside"], apart=True, limit=None, n=None))
        title = picture.title.format(group=matter.groups.label(key))
        limit = None if row.limit is None else scale.of(row.limit)
        yield Figure(Steps(title=title, unit=scale.unit, rows=tuple(marks), limit=limit), picture.caption)


def _two_sided(mark: Mark, row: FactsRow | None, scale: data.Scale) -> Mark:
    """The mark with the two-sided interval, as the steps have."""
    if row is None or mark.point is None or row.plain_low is None or row.plain_high is None:
        return mark
    low, high = sorted((scale.of(row.plain_low), scale.of(row.plain_high)))
    return replace(mark, low=low, high=high)


def _ordered_groups(matter: data.Matter, question: data.Question) -> list[Key]:
    """Groups with enough people: that of the first page, those outside, then the others."""
    chart_key = matter.decision.figures.key
    keys = [key for key in matter.shown(question) if matter.groups.enough(key)]
    outside = {key for key in keys if matter.groups.standing(question.theory, key).state is State.OUTSIDE}
    return sorted(keys, key=lambda key: (key != chart_key, key not in outside))


def _rung(m: Measure, label: str, scale: data.Scale) -> Mark:
    if m.value is None:
        words = data.declaration().missing
        note = words["withheld_note" if m.withheld else "none_note"]
        return Mark(label=label, value=WITHHELD if m.withheld else None, note=note)
    ends = [scale.of(end) for end in (m.low, m.high) if end is not None]
    low, high = sorted(ends) if len(ends) == 2 else (None, None)
    return Mark(label=label, value=scale.of(m.value), low=low, high=high)


def _judged_rung(benchmarks: list[Mapping[str, Any]]) -> str | None:
    """The last block of the rung that benchmarks are about, which is the judged one; None without any."""
    return next((benchmark["blocks"].rpartition(" + ")[2] or NO_BLOCK for benchmark in benchmarks), None)


def _benchmarks(matter: data.Matter, row: FactsRow, picture: data.Picture) -> list[Mapping[str, Any]]:
    """Columns on file as benchmarks of a group, on the judged rung."""
    named = {"decision_maker": row.decision_maker, "protected_attribute": row.key[0], "group": row.key[1]}
    return [
        benchmark
        for benchmark in matter.material.named(picture.table)
        if all(benchmark[name] == named[name] for name in named)
    ]


def sensitivity(matter: data.Matter, question: data.Question, picture: data.Picture) -> Iterator[Figure]:
    """The linear difference of the first group, if a factor as strong as a column on file were unseen."""
    key = next(iter(_ordered_groups(matter, question)), None)
    row = None if key is None else matter.primary(question.theory, key)
    if key is None or row is None or row.withheld:
        return
    scale = data.SCALES[question.scale]
    benchmarks = [benchmark for benchmark in _benchmarks(matter, row, picture) if benchmark["value"] is not None]
    ranked = sorted(
        (benchmark for benchmark in benchmarks if benchmark["times"] == 1),
        key=lambda benchmark: abs(benchmark["value"]),
    )
    if not ranked:
        return
    several = [
        benchmark for benchmark in benchmarks if benchmark["times"] > 1 and benchmark["column"] == ranked[0]["column"]
    ]
    rung, words = _judged_rung(benchmarks), data.declaration().pictures
    measured = [m for series in picture.series for name, m in matter.rungs(series, row) if name == rung]
    rows = [replace(_rung(m, words["as_measured"], scale), low=None, high=None) for m in measured]
    for benchmark in (*reversed(ranked[:MOST_COLUMNS]), *several):
        column = matter.material.settings.columns.get(benchmark["column"])
        name = short((column.label if column else "") or benchmark["column"])
        detail = words["as_strong" if benchmark["times"] == 1 else "times"].format(times=benchmark["times"])
        rows.append(Mark(label=name, detail=detail, value=scale.of(benchmark["value"])))
    title = picture.title.format(group=matter.groups.label(key))
    limit = None if row.limit is None else scale.of(row.limit)
    yield Figure(Steps(title=title, unit=scale.unit, rows=tuple(rows), limit=limit, bars=True), picture.caption)


# --------------------------------------------------------------------------------------------------------------------
# Charts of a page of a question, each from its declaration.
#
# Charts of many groups show those with the largest values, and say so.


MOST_FIGURES = 6
NEITHER = (Refusal.NOT_A_DECISION, Refusal.DECISION_NOT_AUDITED, Refusal.MISSING_DECISION)
"""Why a record has no approval and no denial."""


def figures(matter: data.Matter, question: data.Question, room: data.Room) -> tuple[Figure, ...]:
    """The charts of a page, in the order of its declaration; none without groups."""
    keys, scale = matter.shown(question), data.SCALES[question.scale]
    charts: list[Figure] = []
    for picture in question.pictures if keys else ():
        if picture.kind in ("verdicts", "beside"):
            every = [(key, _number(matter, question, picture, key, scale)) for key in keys]
            largest_keys = data.largest(every, room.charts, scale)
            rows = [_named(matter, mark, key) for key, mark in every if key in largest_keys]
            if picture.kind == "verdicts" or any(mark.value is not None for mark in rows):
                deciding_rows = (matter.primary(question.theory, key) for key in largest_keys)
                makers = [row.decision_maker for row in deciding_rows if row is not None]
                charts.append(_figure(matter, picture, scale, rows, keys, makers))
        elif picture.kind == "series":
            charts += _series(matter, question, picture, room)
        elif picture.kind == "undecided":
            row_keys = matter.with_references(keys[: max(room.charts // 3, 1)])
            rows = [_named(matter, mark, key) for key in row_keys for mark in _undecided(matter, picture, key)]
            if rows:
                charts.append(_figure(matter, picture, data.SCALES[picture.scale], rows, keys, ()))
        elif picture.kind == "ladder":
            charts += ladder(matter, question, picture)
        else:
            charts += sensitivity(matter, question, picture)
    return tuple(charts[:MOST_FIGURES])


def _number(matter: data.Matter, question: data.Question, picture: data.Picture, key: Key, scale: data.Scale) -> Mark:
    """What is judged of a group, or its number by the second method."""
    if picture.kind == "beside":
        return data.beside_mark(matter, question.theory, key, picture.measure, scale)
    return data.judged_mark(matter, question, key)


def _series(matter: data.Matter, question: data.Question, picture: data.Picture, room: data.Room) -> Iterator[Figure]:
    """Measures, those that the run has."""
    series = [of_picture for of_picture in picture.series if matter.has(of_picture)]
    scale, keys = data.SCALES[picture.scale], matter.shown(question)
    most = max(room.charts // max(len(series), 1), 1)
    if picture.references:
        row_scale = data.SCALES[question.scale]
        largest_keys = data.largest(
            ((key, _number(matter, question, picture, key, row_scale)) for key in keys), most, row_scale
        )
    else:
        largest_keys = data.largest(
            ((key, data.measure_mark(matter, part, key, scale)) for part in series[:1] for key in keys), most, scale
        )
    row_keys = matter.with_references(largest_keys) if picture.references else largest_keys
    rows = []
    for key in row_keys:
        for part in series:
            mark = data.measure_mark(matter, part, key, scale)
            if mark.note.startswith("("):  # readers see the range of draws under the label
                mark = replace(mark, detail=f"{mark.detail} {mark.note}", note="")
            rows.append(_named(matter, mark, key))
    if rows:
        measures = (matter.measure(part, key) for part in series for key in largest_keys)
        yield _figure(matter, picture, scale, rows, keys, [m.decision_maker for m in measures if m is not None])


def _undecided(matter: data.Matter, picture: data.Picture, key: Key) -> Iterator[Mark]:
    """A row each for approved, denied and neither, of 100 records; none where every record was approved or denied."""
    lines = [
        r for r in matter.material.named(PUBLISHED_WATERFALL.name) if (r["protected_attribute"], r["group"]) == key
    ]
    undecided_counts = [row["n"] for row in lines if row["kind"] == "refused" and row["reason"] in NEITHER]
    source = next((row["n"] for row in lines if row["kind"] == "source"), None)
    if not any(count is None or count for count in undecided_counts):
        return
    approved = denied = None
    rate = matter.measure(picture.series[0], key)
    if rate is not None and rate.value is not None and rate.n is not None:
        approved = round(rate.value * rate.n)
        denied = rate.n - approved
    neither = None if None in undecided_counts else sum(undecided_counts)
    names = data.declaration().pictures
    for name, count in (("approved", approved), ("denied", denied), ("neither", neither)):
        mark = Mark(label=matter.groups.label(key), reference=matter.is_reference(key))
        mark = replace(mark, detail=names[name], n=WITHHELD if source is None else source)
        if count is None or not source:
            yield replace(mark, value=WITHHELD, note=data.declaration().missing["withheld_note"])
        else:
            yield replace(mark, value=min(100 * count / source, 100.0))


def _named(matter: data.Matter, mark: Mark, key: Key) -> Mark:
    """The row with its attribute, where the audit has several."""
    if len({attribute for attribute, _ in matter.groups.order}) < 2:
        return mark
    return replace(mark, detail=", ".join(filter(None, (key[0], mark.detail))))


def _figure(
    matter: data.Matter,
    picture: data.Picture,
    scale: data.Scale,
    rows: Sequence[Mark],
    keys: Sequence[Key],
    makers: Iterable[str],
) -> Figure:
    """The chart, its caption with the decision maker, and how many of the groups it shows."""
    texts, placeholders = data.declaration().pictures, {"reference": matter.references(keys)}
    caption = [picture.caption.format(**placeholders)]
    whose = [matter.material.whose(maker) for maker in dict.fromkeys(makers)]
    caption += [texts["whose"].format(whose=listed(whose))] if whose else []
    number_shown = len({mark.label for mark in rows} & {matter.groups.label(key) for key in keys})
    first = texts["first_apart" if picture.references else "first"]
    caption += [first.format(n=number_shown, of=len(keys))] if number_shown < len(keys) else []
    title = picture.title.format(**placeholders)
    return Figure(chart(title, scale, rows, picture.kind not in ("series", "undecided")), " ".join(caption))


def chart(title: str, scale: data.Scale, rows: Sequence[Mark], has_verdicts: bool) -> Forest:
    """A forest; bars where no row has an interval.

    Args:
        title: of the chart.
        scale: of its numbers.
        rows: one at least.
        has_verdicts: whether intervals are those of verdicts.
    """
    limits = {row.limit for row in rows if row.limit is not None}
    common_limit = limits.pop() if len(limits) == 1 else None
    words = data.declaration().pictures
    kind = words["interval_verdict" if has_verdicts and (common_limit is not None or limits) else "interval_plain"]
    marks = rows if common_limit is None else [replace(row, limit=None) for row in rows]
    is_bars = all(row.low is None for row in rows) and any(isinstance(row.value, int | float) for row in rows)
    build: Callable[..., Forest] = partial(Steps, bars=True) if is_bars else Forest
    return build(
        title=title,
        unit=scale.unit,
        rows=tuple(marks),
        limit=common_limit,
        side=scale.side,
        interval=kind,
        head="Group",
    )
