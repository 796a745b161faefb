"""Charts of a page of a question, each from its declaration.

Charts of many groups show those with the largest values, and say so.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from schemas.tables.publication import PUBLISHED_WATERFALL
from schemas.terms import Refusal
from tasks.reporting.chapters.decide.facts import Key
from tasks.reporting.chapters.questions.declaration import Picture, Question, declaration
from tasks.reporting.chapters.questions.ladder import ladder, sensitivity
from tasks.reporting.chapters.questions.marks import (
    SCALES,
    Scale,
    beside_mark,
    judged_mark,
    largest,
    measure_mark,
)
from tasks.reporting.chapters.questions.matter import Matter
from tasks.reporting.chapters.questions.room import Room
from tasks.reporting.charts.forest import Forest
from tasks.reporting.charts.marks import Mark
from tasks.reporting.charts.numbers import WITHHELD
from tasks.reporting.charts.steps import Steps
from tasks.reporting.material import listed
from tasks.reporting.section import Figure

MOST_FIGURES = 6
NEITHER = (Refusal.DECISION_NOT_AUDITED, Refusal.MISSING_DECISION)
"""Why a record has no approval and no denial."""


def figures(matter: Matter, question: Question, room: Room) -> tuple[Figure, ...]:
    """The charts of a page, in the order of its declaration; none without groups."""
    pictures = question.pictures if matter.shown(question) else ()
    return tuple(each for picture in pictures for each in _of(matter, question, picture, room))[:MOST_FIGURES]


def _of(matter: Matter, question: Question, picture: Picture, room: Room) -> Iterator[Figure]:
    if picture.kind in ("verdicts", "beside"):
        yield from _judged(matter, question, picture, room)
    elif picture.kind == "series":
        yield from _series(matter, question, picture, room)
    elif picture.kind == "undecided":
        yield from _undecided(matter, question, picture, room)
    else:
        drawn: Mapping[str, Callable[[Matter, Question, Picture], Iterator[Figure]]] = {
            "ladder": ladder,
            "sensitivity": sensitivity,
        }
        yield from drawn[picture.kind](matter, question, picture)


def _judged(matter: Matter, question: Question, picture: Picture, room: Room) -> Iterator[Figure]:
    """What is judged, or the second method beside it, with its limits."""
    scale, keys = SCALES[question.scale], matter.shown(question)
    every = [(key, _number(matter, question, picture, key, scale)) for key in keys]
    shown = largest(every, room.charts, scale)
    rows = [_named(matter, mark, key) for key, mark in every if key in shown]
    if picture.kind == "verdicts" or any(mark.value is not None for mark in rows):
        found = (matter.primary(question.theory, key) for key in shown)
        makers = [row.decision_maker for row in found if row is not None]
        yield _figure(matter, picture, scale, rows, keys, makers)


def _number(matter: Matter, question: Question, picture: Picture, key: Key, scale: Scale) -> Mark:
    """What is judged of a group, or its number by the second method."""
    if picture.kind == "beside":
        return beside_mark(matter, question.theory, key, picture.measure, scale)
    return judged_mark(matter, question, key)


def _series(matter: Matter, question: Question, picture: Picture, room: Room) -> Iterator[Figure]:
    """Measures, those that the run has."""
    series = [each for each in picture.series if matter.has(each)]
    scale, keys = SCALES[picture.scale], matter.shown(question)
    most = max(room.charts // max(len(series), 1), 1)
    if picture.references:
        own = SCALES[question.scale]
        shown = largest(((key, _number(matter, question, picture, key, own)) for key in keys), most, own)
    else:
        shown = largest(
            ((key, measure_mark(matter, each, key, scale)) for each in series[:1] for key in keys), most, scale
        )
    wanted = matter.with_references(shown) if picture.references else shown
    rows = [_named(matter, _ranged(measure_mark(matter, each, key, scale)), key) for key in wanted for each in series]
    if rows:
        found = (matter.measure(each, key) for each in series for key in shown)
        yield _figure(matter, picture, scale, rows, keys, [m.decision_maker for m in found if m is not None])


def _undecided(matter: Matter, question: Question, picture: Picture, room: Room) -> Iterator[Figure]:
    """What became of all records, of the groups that stand first on the page."""
    keys = matter.shown(question)
    wanted = matter.with_references(keys[: max(room.charts // 3, 1)])
    rows = [_named(matter, mark, key) for key in wanted for mark in _undecided_marks(matter, picture, key)]
    if rows:
        yield _figure(matter, picture, SCALES[picture.scale], rows, keys, ())


def _undecided_marks(matter: Matter, picture: Picture, key: Key) -> Iterator[Mark]:
    """A row each for approved, denied and neither, of 100 records; none where every record was approved or denied."""
    source, counts = _counts(matter, picture, key)
    if counts is None:
        return
    blank = Mark(label=matter.groups.label(key), reference=matter.is_reference(key))
    for words, count in counts.items():
        mark = replace(blank, detail=words, n=WITHHELD if source is None else source)
        if count is None or not source:
            yield replace(mark, value=WITHHELD, note=declaration().missing["withheld_note"])
        else:
            yield replace(mark, value=min(100 * count / source, 100.0))


def _counts(matter: Matter, picture: Picture, key: Key) -> tuple[int | None, dict[str, int | None] | None]:
    """Records of a group, and how many ended how, as published; None where no record ended otherwise."""
    lines = [
        r for r in matter.material.named(PUBLISHED_WATERFALL.name) if (r["protected_attribute"], r["group"]) == key
    ]
    left = [row["n"] for row in lines if row["kind"] == "refused" and row["reason"] in NEITHER]
    source = next((row["n"] for row in lines if row["kind"] == "source"), None)
    if not any(count is None or count for count in left):
        return source, None
    rate = matter.measure(picture.series[0], key)
    known = rate is not None and rate.value is not None and rate.n is not None
    approved = round(rate.value * rate.n) if known else None  # type: ignore[union-attr, operator]
    denied = rate.n - approved if known else None  # type: ignore[union-attr, operator]
    neither = None if None in left else sum(left)
    names = declaration().pictures
    return source, {names["approved"]: approved, names["denied"]: denied, names["neither"]: neither}


def _ranged(mark: Mark) -> Mark:
    """The range of draws where readers see it, under the label."""
    return replace(mark, detail=f"{mark.detail} {mark.note}", note="") if mark.note.startswith("(") else mark


def _named(matter: Matter, mark: Mark, key: Key) -> Mark:
    """The row with its attribute, where the audit has several."""
    if len({attribute for attribute, _ in matter.groups.order}) < 2:
        return mark
    return replace(mark, detail=", ".join(filter(None, (key[0], mark.detail))))


def _figure(
    matter: Matter, picture: Picture, scale: Scale, rows: Sequence[Mark], keys: Sequence[Key], makers: Iterable[str]
) -> Figure:
    """The chart, its caption with whose decisions it is of, and how many of the groups it shows."""
    said, known = declaration().pictures, {"reference": matter.references(keys)}
    caption = [picture.caption.format(**known)]
    whose = [matter.material.whose(maker) for maker in dict.fromkeys(makers)]
    caption += [said["whose"].format(whose=listed(whose))] if whose else []
    shown = len({mark.label for mark in rows} & {matter.groups.label(key) for key in keys})
    first = said["first_apart" if picture.references else "first"]
    caption += [first.format(n=shown, of=len(keys))] if shown < len(keys) else []
    title = picture.title.format(**known)
    return Figure(chart(title, scale, rows, picture.kind not in ("series", "undecided")), " ".join(caption))


def chart(title: str, scale: Scale, rows: Sequence[Mark], judged: bool) -> Forest:
    """A forest; bars where no row has an interval.

    Args:
        title: of the chart.
        scale: of its numbers.
        rows: one at least.
        judged: whether intervals are those of verdicts.
    """
    limits = {row.limit for row in rows if row.limit is not None}
    one = limits.pop() if len(limits) == 1 else None
    words = declaration().pictures
    kind = words["interval_verdict" if judged and (one is not None or limits) else "interval_plain"]
    own = rows if one is None else [replace(row, limit=None) for row in rows]
    return _kind(rows)(
        title=title, unit=scale.unit, rows=tuple(own), limit=one, side=scale.side, interval=kind, head="Group"
    )


def _kind(rows: Sequence[Mark]) -> Callable[..., Forest]:
    """Bars where there is a value and no interval anywhere."""
    if any(row.low is not None for row in rows) or not any(isinstance(row.value, int | float) for row in rows):
        return Forest
    return lambda **parts: Steps(**parts, bars=True)
