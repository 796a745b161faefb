"""Data of question pages: declaration, published values, marks, room for groups."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from schemas import questions
from schemas.audit.partition import unsampled
from schemas.questions import STATES
from schemas.sentences import sentences
from schemas.tables.verdicts import VERDICTS
from schemas.terms import DecisionMaker, State, Theory
from tasks.reporting.charts.layout import WIDE, Text
from tasks.reporting.charts.values import (
    OF_100,
    POINTS,
    WITHHELD,
    Count,
    Mark,
    Side,
    Unit,
    ends_text,
    people,
    shortest,
    value_text,
)
from tasks.reporting.first_page.facts import DECIMALS, Groups, Key, Row, Standing, approval_points
from tasks.reporting.first_page.result import Decision
from tasks.reporting.material import Material, Measure
from tasks.reporting.text import Cell, Section, covers, p_cell

# --------------------------------------------------------------------------------------------------------------------
# Model of the patterns of question pages in schemas/sentences.yaml: what is a question's own, and what all share.


ScaleName = Literal["points", "of_100", "of_denied", "cost", "score"]
"""How numbers of a chart or column are printed (``marks.SCALES``)."""
Sentence = Annotated[str, Field(min_length=1, max_length=300)]


class _Declared(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Series(_Declared):
    """A measure by group."""

    method: str
    measure: str
    at: dict[str, float | str] = {}
    """Its parameters."""
    words: str = ""
    """What it is, under the name of the group."""
    compared: bool = False
    """Whether the others are held against it: it is drawn as references are."""
    maker: DecisionMaker | None = None
    """Maker of the decisions; None: the lender if the run has its decisions, else the model."""


class Picture(_Declared):
    """A chart, or one for each of the first groups.

    ``verdicts``: what is judged. ``beside``: a second method of the same question. ``series``: measures, one row each
    for every group. ``ladder`` and ``sensitivity``: of the adjusted comparison. ``undecided``: who was approved, denied
    or neither, where a run has such records.
    """

    kind: Literal["verdicts", "beside", "series", "ladder", "sensitivity", "undecided"]
    title: str
    """May name ``{reference}`` and, of a chart for one group, ``{group}``."""
    caption: str
    scale: ScaleName = "points"
    measure: str = ""
    """Of ``beside``; of ``ladder`` the comparison with its last step."""
    table: str = ""
    """Of ``ladder`` and ``sensitivity``: the table of columns on file as benchmarks."""
    series: tuple[Series, ...] = ()
    references: bool = False
    """Whether reference groups have rows, too."""


class Column(_Declared):
    """A column of the table by group in addition to those on all pages."""

    words: str
    scale: ScaleName
    series: Series
    references: bool = False
    """Whether it makes rows of the reference groups."""


class Lead(_Declared):
    """A sentence of the answer with a number a group."""

    words: Sentence
    """May name ``{whose}`` decisions and the ``{reference}`` group; ``{sizes}`` are the numbers."""
    scale: ScaleName
    series: Series | None = None
    """None: what is judged."""
    beside: Series | None = None
    """What the number of the group is held against, in brackets."""


class Question(_Declared):
    """A page."""

    theory: Theory
    scale: ScaleName
    """Of what is judged."""
    value: str
    """Header of what is judged."""
    methods: tuple[str, ...]
    """Whose measures it shows."""
    pictures: tuple[Picture, ...]
    leads: tuple[Lead, ...] = ()
    """What the sentence of Decide has no room for."""
    columns: tuple[Column, ...] = ()
    sure: tuple[str, ...]
    """Rules of "how sure" in their order (``confidence.RULES``)."""
    hangs: Sentence
    """What the answer hangs on."""
    lifted: Series | None = None
    """A measure that is made again without each assumed effect in turn."""
    permuted: Series | None = None
    """p of what is shown, under permuted labels."""
    cannot: tuple[Sentence, Sentence, Sentence]


class Declaration(_Declared):
    """The whole file."""

    parts: dict[str, str]
    """Titles of the five parts."""
    answer: dict[str, str]
    sure: dict[str, str]
    table: dict[str, str]
    pictures: dict[str, str]
    missing: dict[str, str]
    links: dict[str, str]
    limits: dict[ScaleName, str]
    estimates: dict[str, str]
    """Measure -> what compares the groups, where several methods answer one question."""
    questions: dict[str, Question]


@cache
def declaration() -> Declaration:
    """The content of the file.

    Raises:
        pydantic.ValidationError: the file is not of this form.
    """
    return Declaration.model_validate(sentences("question_pages"))


def in_words(measure: str) -> str:
    """What compares the groups, for a measure that is judged or shown with one."""
    return declaration().estimates.get(measure, measure.replace("_", " "))


# --------------------------------------------------------------------------------------------------------------------
# How much of many groups a page shows, so that it keeps its number of words.
#
# Words are counted as a browser's ``innerText`` has them: texts, open tables, and the drawings for a wide screen.


MOST_WORDS = 830
"""Of a section; the page has 900, and the words around charts and tables need the rest."""


class Room(NamedTuple):
    """Rows that charts and the table may have."""

    charts: int
    table: int


ROOMS = (Room(24, 25), Room(16, 25), Room(10, 25), Room(6, 25), Room(6, 18), Room(6, 12), Room(4, 8), Room(2, 4))
"""The first that fits is taken: charts give way before the table."""


def words(section: Section) -> int:
    """Words of a section and its parts."""
    return sum(len(text.split()) for text in _texts(section))


def _texts(section: Section) -> Iterator[str]:
    yield section.title
    yield from (*section.words, *section.points, *(link.words for link in section.links))
    for notice in section.notices:
        yield from (notice.title, notice.text, *notice.points)
    for figure in section.figures:
        yield from (figure.chart.title, figure.caption)
        yield from (shape.text for shape in figure.chart.draw(WIDE).shapes if isinstance(shape, Text))
    for table in section.tables:
        yield table.title
        if not table.folded:
            yield from (*table.header, table.rest, table.note)
            yield from (cell.whole for row in table.rows for cell in row)
    for listing in section.listings:
        yield from (listing.title, "" if listing.folded else listing.text)
    for part in section.parts:
        yield from _texts(part)


# --------------------------------------------------------------------------------------------------------------------
# What pages of the questions look up: published measures and verdicts of a group.
#
# Scope: finding rows. What is written of them: ``marks``.


Found = tuple[str, str, str, str, str, str]


@dataclass(frozen=True)
class Matter:
    """A run as the pages look at it."""

    material: Material
    groups: Groups
    decision: Decision

    @cached_property
    def _measures(self) -> dict[Found, Measure]:
        """Measures of whole groups by method, decision maker, attribute, group, measure and parameters."""
        return {
            (m.method, m.decision_maker, m.protected_attribute, m.group, m.measure, unsampled(m.parameters)): m
            for m in self.material.measures
            if m.subgroup == 0
        }

    @cached_property
    def _makers(self) -> dict[tuple[str, str], list[str]]:
        """Method and measure -> decision makers, the lender first."""
        makers_of: dict[tuple[str, str], set[str]] = {}
        for m in self.material.measures:
            makers_of.setdefault((m.method, m.measure), set()).add(m.decision_maker)
        return {
            place: sorted(makers, key=lambda maker: maker != DecisionMaker.LENDER)
            for place, makers in makers_of.items()
        }

    def measure(self, series: Series, key: Key) -> Measure | None:
        """A measure of a group; None where the run did not make it."""
        makers = self._makers.get((series.method, series.measure), [])
        decision_makers = [series.maker] if series.maker else makers[:1]
        parameters = json.dumps(series.at, sort_keys=True)
        measures = (
            self._measures.get((series.method, maker, *key, series.measure, parameters)) for maker in decision_makers
        )
        return next((m for m in measures if m is not None), None)

    def every(self, series: Series, key: Key) -> Iterator[Measure]:
        """A measure of a group at all its parameters, of the decision maker that is looked at."""
        makers = self._makers.get((series.method, series.measure), [])
        prefix = (series.method, series.maker or next(iter(makers), ""), *key, series.measure)
        yield from (m for index, m in self._measures.items() if index[:5] == prefix)

    def has(self, series: Series) -> bool:
        """Whether the run has the measure of any group."""
        return (series.method, series.measure) in self._makers

    def rungs(self, series: Series, row: Row) -> Iterator[tuple[str, Measure]]:
        """The ladder of a row's group: last block of each rung, and its estimate; in the order of the measures."""
        prefix = (series.method, row.decision_maker, *row.key, series.measure)
        for index, m in self._measures.items():
            if index[:5] == prefix and "rung" in m.said and m.said == {**series.at, "rung": m.said["rung"]}:
                yield str(m.said["rung"]), m

    def p(self, row: Row) -> float | None:
        """One-sided p of an effect at or inside the limit, after Holm over the rows judged together."""
        named = ("theory", "role", "protected_attribute", "group", "decision_maker", "measure", "limit", "side")
        for verdict in self.material.named(VERDICTS.name):
            if all(verdict[name] == getattr(row, name) for name in named):
                p: float | None = verdict["p_breach_holm"]
                return p
        return None

    def primary(self, theory: Theory, key: Key) -> Row | None:
        """The row that decides the state of a group, of the decision maker that it belongs to."""
        row = self.groups.standing(theory, key).row
        if row is None or row.role == "primary":
            return row
        rows = (row for row in self.groups.run.rows if row.theory is theory and row.key == key)
        return next((row for row in rows if row.role == "primary"), None)

    def shown(self, question: Question) -> tuple[Key, ...]:
        """The groups of the page, in the one order of all pages."""
        return tuple(status.key for status in self.groups.standings(question.theory)) or self.groups.order

    def with_references(self, keys: Iterable[Key]) -> tuple[Key, ...]:
        """The same groups, before those of each attribute its reference group."""
        ordered_keys: dict[Key, None] = {}
        for key in keys:
            reference = self.groups.reference_key(key[0])
            ordered_keys |= {reference: None} if reference else {}
            ordered_keys[key] = None
        return tuple(ordered_keys)

    def is_reference(self, key: Key) -> bool:
        """Whether others are compared with the group."""
        return self.groups.reference_key(key[0]) == key

    def references(self, keys: Iterable[Key]) -> str:
        """The reference groups of the comparison, in words."""
        return self.groups.references(list(keys))[0]


# --------------------------------------------------------------------------------------------------------------------
# Published numbers of a group as marks of charts and cells of tables: one value, one way to print it.
#
# Effects on denial are printed as points of approval. An interval is printed of measures whose
# intervals cover as often as they say, and of no other; a range of draws is printed in words.


@dataclass(frozen=True)
class Scale:
    """A unit, and what a published number is multiplied by."""

    unit: Unit
    factor: float
    side: Side = "at_least"
    """Allowed side of a limit, as printed."""
    centre: float = 0.0
    """What is printed of no difference."""
    effect: bool = False
    """Whether it is of effects on denial, which are printed as differences in approval."""

    def of(self, value: float) -> float:
        """The number in the unit, without digits that were not published."""
        return approval_points(value) if self.effect else round(self.factor * value, DECIMALS) + 0.0


SCALES: Mapping[ScaleName, Scale] = {
    "points": Scale(POINTS, 100, effect=True),
    "of_100": Scale(OF_100, 100),
    "of_denied": Scale(Unit("of 100 denied applicants", low=0.0, high=100.0), 100),
    "cost": Scale(
        Unit("cost of the reference group's way, per 100 of the group's", places=0, low=0.0), 100, centre=100
    ),
    "score": Scale(Unit("points of score, of 100", signed=True, places=1), 100, "at_most"),
}
"""``points``: of an effect on denial, in points of approval."""


def number_of(groups: Groups, row: Row, scale: Scale, value: float | None) -> float | None:
    """A number of a verdict's row in the unit of its page; None without one, or where the unit is withheld."""
    if value is None or row.theory is not Theory.APPROVAL_RATES:
        return None if value is None else scale.of(value)
    return groups.gap_points(row, value)


def limit_of(groups: Groups, row: Row, scale: Scale) -> float | None:
    """The limit of a row in the unit of its page; one on a ratio of rates as precisely as what it limits."""
    limit = number_of(groups, row, scale, row.limit)
    return limit if limit is None or row.theory is not Theory.APPROVAL_RATES else round(limit, groups.gap_decimals)


def ends_of(groups: Groups, row: Row, scale: Scale) -> tuple[float, float] | tuple[None, None]:
    """Both ends of a row's interval in the unit of its page, the lower one first; None without one."""
    ends = (number_of(groups, row, scale, end) for end in row.ends or ())
    finite_ends = sorted(end for end in ends if end is not None)
    return (finite_ends[0], finite_ends[1]) if len(finite_ends) == 2 else (None, None)


def verdict_mark(matter: Matter, row: Row | None, status: Standing, scale: Scale) -> Mark:
    """A judged number of a group: the row, and the state of the group."""
    groups, words = matter.groups, declaration().missing
    state = questions.WITHHELD if status.withheld else str(status.state)
    blank = Mark(label=groups.label(status.key), n=count_of(groups, status.key), state=state)
    if status.withheld or (row is not None and row.withheld):
        return replace(blank, value=WITHHELD, note=words["withheld_note"])
    value = None if row is None else number_of(groups, row, scale, row.value)
    if row is None or value is None:
        if row is None:
            return replace(blank, note=words["not_primary" if status.row is not None else "none_note"])
        return replace(blank, value=WITHHELD) if row.value is not None else replace(blank, note=_because(row.reason))
    limit = limit_of(groups, row, scale)
    low, high = ends_of(groups, row, scale)
    note = "" if low is not None else words["no_interval"].format(value=STATES[status.state].words.capitalize())
    return replace(blank, value=value, low=low, high=high, limit=limit, note=note)


def judged_mark(matter: Matter, question: Question, key: Key) -> Mark:
    """What is judged of a group, on the page of its question."""
    row, status = matter.primary(question.theory, key), matter.groups.standing(question.theory, key)
    return verdict_mark(matter, row, status, SCALES[question.scale])


def beside_mark(matter: Matter, theory: Theory, key: Key, measure: str, scale: Scale) -> Mark:
    """The same of a second method, with its own state."""
    row = matter.groups.beside(theory, key, measure)
    status = Standing(key, State.NOT_RUN if row is None else row.state, row)
    return verdict_mark(matter, row, status, scale)


def measure_mark(matter: Matter, series: Series, key: Key, scale: Scale) -> Mark:
    """A measure of a group, with its interval if that has its nominal coverage."""
    m, words = matter.measure(series, key), declaration().missing
    blank = Mark(label=matter.groups.label(key), detail=series.words)
    blank = replace(blank, reference=matter.is_reference(key), compared=series.compared)
    if m is None:
        return replace(blank, note=words["none_note"])
    n: Count = None if m.of_draws else WITHHELD if m.n is None else m.n
    if m.value is None:
        why = words["withheld_note"] if m.withheld else _because(m.reason)
        group = matter.groups.published(key)
        share_words = group.approval_text if group is not None and series.measure == "approval_rate" else ""
        return replace(blank, n=n, value=WITHHELD if m.withheld and not share_words else None, note=share_words or why)
    mark = replace(blank, n=n, value=scale.of(m.value))
    if m.low is None or m.high is None:
        return mark
    low, high = sorted((scale.of(m.low), scale.of(m.high)))
    if not m.of_draws:
        return replace(mark, low=low, high=high) if covers(m.measure) else mark
    # A range of draws is no interval: it is printed in words.
    places, signed = scale.unit.places or 0, scale.unit.signed
    ends = {"low": shortest(low, places, signed), "high": shortest(high, places, signed)}
    return replace(mark, note=declaration().pictures["draws"].format(**ends))


def count_of(groups: Groups, key: Key) -> Count:
    """Applicants of a group."""
    n = groups.people(key)
    return WITHHELD if n is None else n


def _because(reason: str) -> str:
    words = declaration().missing
    why = reason.removeprefix("not measured: ").replace("_", " ").rstrip(".")
    return words["because"].format(reason=why) if why else words["none_note"]


def value_cell(mark: Mark, unit: Unit, ends: bool = False) -> Cell:
    """The number of a mark; behind it the range of draws or, on request, the interval."""
    if mark.value is None or mark.value == WITHHELD:
        return Cell(declaration().missing["withheld" if mark.value else "none"], "none")
    draws_range = mark.note if mark.note.startswith("(") else ""
    interval = interval_cell(mark, unit).text if ends and mark.point is not None else ""
    return Cell(value_text(mark, unit), "number", detail=draws_range or interval)


def interval_cell(mark: Mark, unit: Unit) -> Cell:
    """The interval of a mark."""
    ends = ends_text(mark, unit)
    return Cell(f"[{ends[0]}, {ends[1]}]", "number") if ends else Cell("–", "none")


def count_cell(n: Count) -> Cell:
    """A number of people."""
    return Cell(people(n), "none" if n == WITHHELD else "number")


def state_cell(status: Standing) -> Cell:
    """The state of a group in words."""
    words = STATES[status.state].words + f" ({WITHHELD})" * status.withheld
    return Cell(words, "state", str(status.state))


def adjusted_p_cell(matter: Matter, row: Row | None) -> Cell:
    """The p after Holm of the row that decides."""
    return p_cell(None if row is None or row.withheld else matter.p(row))


def largest(marks: Iterable[tuple[Key, Mark]], most: int, scale: Scale) -> tuple[Key, ...]:
    """The keys of the largest values, those outside a limit before them, in the order in which they came."""
    pairs = list(marks)
    ranked = sorted(range(len(pairs)), key=lambda i: _rank(pairs[i][1], scale.centre))[:most]
    return tuple(pairs[i][0] for i in sorted(ranked))


def _rank(mark: Mark, centre: float) -> tuple[bool, bool, float]:
    if not isinstance(mark.value, int | float):
        return mark.state != State.OUTSIDE, True, 0.0
    return mark.state != State.OUTSIDE, False, -abs(float(mark.value) - centre)
