"""Published numbers of a group as marks of charts and cells of tables: one value, one way to print it.

Effects on denial are printed as points of approval, with their sign turned. An interval is printed of measures whose
intervals cover as often as they say, and of no other; a range of draws stands in words.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from schemas.tables import verdicts
from schemas.tables.verdicts import STATES
from schemas.terms import State, Theory
from tasks.reporting.chapters.decide.facts import Key, Row
from tasks.reporting.chapters.decide.groups import DECIMALS, Groups, Standing
from tasks.reporting.chapters.questions.declaration import Question, ScaleName, Series, declaration
from tasks.reporting.chapters.questions.matter import Matter
from tasks.reporting.charts.marks import Mark, Side, ends_text, value_text
from tasks.reporting.charts.numbers import OF_100, POINTS, WITHHELD, Count, Unit, people, shortest
from tasks.reporting.material import Measure
from tasks.reporting.numbers import covers, p_cell
from tasks.reporting.section import Cell


@dataclass(frozen=True)
class Scale:
    """A unit, and what a published number is multiplied by."""

    unit: Unit
    factor: float
    side: Side = "at_least"
    """Allowed side of a limit, as printed."""
    centre: float = 0.0
    """What is printed of no difference."""

    def of(self, value: float) -> float:
        """The number in the unit, without digits that were not published."""
        return round(self.factor * value, DECIMALS) + 0.0


SCALES: Mapping[ScaleName, Scale] = {
    "points": Scale(POINTS, -100),
    "of_100": Scale(OF_100, 100),
    "of_denied": Scale(Unit("of 100 denied applicants", low=0.0, high=100.0), 100),
    "cost": Scale(
        Unit("cost of the reference group's way, per 100 of the group's", places=0, low=0.0), 100, centre=100
    ),
    "score": Scale(Unit("points of score, of 100", signed=True, places=1), 100, "at_most"),
}
"""``points``: of an effect on denial, turned into points of approval."""


def number_of(groups: Groups, row: Row, scale: Scale, value: float | None) -> float | None:
    """A number of a verdict's row in the unit of its page; None without one, or where the unit is withheld."""
    if value is None or row.theory is not Theory.OUTCOME:
        return None if value is None else scale.of(value)
    return groups.gap_points(row, value)


def limit_of(groups: Groups, row: Row, scale: Scale) -> float | None:
    """The limit of a row in the unit of its page; one on a ratio of rates as precisely as what it limits."""
    limit = number_of(groups, row, scale, row.limit)
    return limit if limit is None or row.theory is not Theory.OUTCOME else round(limit, groups.gap_decimals)


def ends_of(groups: Groups, row: Row, scale: Scale) -> tuple[float, float] | tuple[None, None]:
    """Both ends of a row's interval in the unit of its page, the lower one first; None without one."""
    ends = (number_of(groups, row, scale, end) for end in row.ends or ())
    known = sorted(end for end in ends if end is not None)
    return (known[0], known[1]) if len(known) == 2 else (None, None)


def verdict_mark(matter: Matter, row: Row | None, standing: Standing, scale: Scale) -> Mark:
    """A judged number of a group: the row, and the state in which the group stands."""
    groups, words = matter.groups, declaration().missing
    state = verdicts.WITHHELD if standing.withheld else str(standing.state)
    blank = Mark(label=groups.label(standing.key), n=count_of(groups, standing.key), state=state)
    if standing.withheld or (row is not None and row.withheld):
        return replace(blank, value=WITHHELD, note=words["withheld_note"])
    value = None if row is None else number_of(groups, row, scale, row.value)
    if row is None or value is None:
        hidden = row is not None and row.value is not None
        return replace(blank, value=WITHHELD if hidden else None, note=_why(row, standing) if not hidden else "")
    limit = limit_of(groups, row, scale)
    low, high = ends_of(groups, row, scale)
    note = "" if low is not None else words["no_interval"].format(value=STATES[standing.state].capitalize())
    return replace(blank, value=value, low=low, high=high, limit=limit, note=note)


def judged_mark(matter: Matter, question: Question, key: Key) -> Mark:
    """What is judged of a group, on the page of its question."""
    row, standing = matter.primary(question.theory, key), matter.groups.standing(question.theory, key)
    return verdict_mark(matter, row, standing, SCALES[question.scale])


def beside_mark(matter: Matter, theory: Theory, key: Key, measure: str, scale: Scale) -> Mark:
    """The same of a second method, with its own state."""
    row = matter.groups.beside(theory, key, measure)
    standing = Standing(key, State.NOT_RUN if row is None else row.state, row)
    return verdict_mark(matter, row, standing, scale)


def measure_mark(matter: Matter, series: Series, key: Key, scale: Scale) -> Mark:
    """A measure of a group, with its interval if that covers as often as it says."""
    m, words = matter.measure(series, key), declaration().missing
    blank = Mark(label=matter.groups.label(key), detail=series.words)
    blank = replace(blank, reference=matter.is_reference(key), compared=series.compared)
    if m is None:
        return replace(blank, note=words["none_note"])
    n: Count = None if m.of_draws else WITHHELD if m.n is None else m.n
    if m.value is None:
        why = words["withheld_note"] if m.withheld else _because(m.reason)
        shown = _published_range(matter, series, key)
        return replace(blank, n=n, value=WITHHELD if m.withheld and not shown else None, note=shown or why)
    low, high = _ends(m, scale)
    return replace(blank, n=n, value=scale.of(m.value), low=low, high=high, note=_draws(m, scale))


def count_of(groups: Groups, key: Key) -> Count:
    """Applicants of a group."""
    n = groups.people(key)
    return WITHHELD if n is None else n


def _ends(m: Measure, scale: Scale) -> tuple[float | None, float | None]:
    """Both ends of a covering interval, the lower one first."""
    if m.low is None or m.high is None or m.of_draws or not covers(m.measure):
        return None, None
    low, high = sorted((scale.of(m.low), scale.of(m.high)))
    return low, high


def _draws(m: Measure, scale: Scale) -> str:
    """The range of what was drawn, in words."""
    if not m.of_draws or m.low is None or m.high is None:
        return ""
    low, high = sorted((scale.of(m.low), scale.of(m.high)))
    places, signed = scale.unit.places or 0, scale.unit.signed
    ends = {"low": shortest(low, places, signed), "high": shortest(high, places, signed)}
    return declaration().pictures["draws"].format(**ends)


def _published_range(matter: Matter, series: Series, key: Key) -> str:
    """A rate that is published as a range only."""
    group = matter.groups.published(key)
    return group.shown if group is not None and series.measure == "approval_rate" else ""


def _why(row: Row | None, standing: Standing) -> str:
    """Why a number is not there."""
    words = declaration().missing
    if row is None:
        return words["not_primary"] if standing.row is not None else words["none_note"]
    return _because(row.reason)


def _because(reason: str) -> str:
    words = declaration().missing
    why = reason.removeprefix("not measured: ").replace("_", " ").rstrip(".")
    return words["because"].format(reason=why) if why else words["none_note"]


def value_cell(mark: Mark, unit: Unit, ends: bool = False) -> Cell:
    """The number of a mark; behind it the range of draws or, if asked for, the interval."""
    if mark.value is None or mark.value == WITHHELD:
        return Cell(declaration().missing["withheld" if mark.value else "none"], "none")
    drawn = mark.note if mark.note.startswith("(") else ""
    interval = interval_cell(mark, unit).text if ends and mark.point is not None else ""
    return Cell(value_text(mark, unit), "number", detail=drawn or interval)


def interval_cell(mark: Mark, unit: Unit) -> Cell:
    """The interval of a mark."""
    ends = ends_text(mark, unit)
    return Cell(f"[{ends[0]}, {ends[1]}]", "number") if ends else Cell("–", "none")


def count_cell(n: Count) -> Cell:
    """A number of people."""
    return Cell(people(n), "none" if n == WITHHELD else "number")


def state_cell(standing: Standing) -> Cell:
    """The state of a group in words."""
    words = STATES[standing.state] + f" ({WITHHELD})" * standing.withheld
    return Cell(words, "state", str(standing.state))


def adjusted_p_cell(matter: Matter, row: Row | None) -> Cell:
    """The p after Holm of the row that decides."""
    return p_cell(None if row is None or row.withheld else matter.p(row))


def largest(marks: Iterable[tuple[Key, Mark]], most: int, scale: Scale) -> tuple[Key, ...]:
    """The keys of the largest values, those outside a limit before them, in the order in which they came."""
    found = list(marks)
    ranked = sorted(range(len(found)), key=lambda i: _rank(found[i][1], scale.centre))[:most]
    return tuple(found[i][0] for i in sorted(ranked))


def _rank(mark: Mark, centre: float) -> tuple[bool, bool, float]:
    known = isinstance(mark.value, int | float)
    size = abs(float(mark.value) - centre) if isinstance(mark.value, int | float) else 0.0
    return mark.state != State.BREACH, not known, -size
