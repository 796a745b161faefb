"""First page as printed: texts, numbers and three figures."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from schemas import questions
from schemas.questions import STATES
from schemas.terms import State, Theory
from tasks.reporting.charts.rows import Forest
from tasks.reporting.charts.values import MINUS, POINTS, WITHHELD, Mark, places_of
from tasks.reporting.first_page.facts import (
    About,
    Groups,
    Key,
    Standing,
    approval_points,
    forms,
    interval,
    points,
    said,
)
from tasks.reporting.material import capital
from tasks.reporting.text import count

# --------------------------------------------------------------------------------------------------------------------
# The first page as it is printed: strings, and with each printed number the number itself.
#
# Scope: shapes. Templates escape the texts; names of groups in them are the users' own.


Interval = Literal["verdict", "plain", ""]
"""``verdict``: corrected for all groups judged; ``plain``: two-sided 95 %, where no limit was tested."""


@dataclass(frozen=True)
class Headline:
    """The first sentence, and the rule that made it."""

    rule: str
    words: str
    groups: tuple[tuple[str, str], ...] = ()
    """Attribute and name of the groups that it is about."""


@dataclass(frozen=True)
class Effect:
    """An effect of a group as a sentence prints it, with its two-sided 95 % interval."""

    key: Key
    value: float
    low: float | None
    high: float | None
    none: float = 0.0
    """The value of no difference: 0 points, or 100 % of a cost."""
    decimals: int = 0

    @property
    def excludes(self) -> bool:
        """Whether the printed interval excludes no difference."""
        return self.low is not None and self.high is not None and not self.low <= self.none <= self.high

    @property
    def clearance(self) -> float:
        """How far the interval is from no difference against the group; negative where it reaches over it."""
        if self.low is None or self.high is None:
            return -math.inf
        return max(self.none - self.high, self.low - self.none) if self.excludes else -abs(self.high - self.low)


Answer = Literal["differs", "same", "open", ""]
NOBODY: Final = About()
DIFFERS: Final = "differs"
SAME: Final = "same"
OPEN: Final = "open"


@dataclass(frozen=True)
class Question:
    """A row of "What was found": result, against the limit, how reliable."""

    theory: Theory
    page: str
    """Name of the page that answers it at length; empty where it has none."""
    question: str
    state: State
    state_words: str
    sentence: str
    """The result."""
    answer: Answer = ""
    """What the printed intervals show; empty where there is none."""
    against: str = ""
    reliable: str = ""
    effects: tuple[Effect, ...] = ()
    """Effects that the result prints."""


@dataclass(frozen=True)
class Comparison:
    """One of the three figures, in points of approval: negative is against the group."""

    name: Literal["all", "adjusted", "nearest"]
    label: str
    detail: str
    """What it is adjusted for, and the number of people of the group."""
    state: State
    state_words: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    interval: Interval = ""
    plain_low: float | None = None
    plain_high: float | None = None
    limit: float | None = None
    n: int | None = None
    text: str = ""
    """The value as printed, or why it is missing."""
    shown_interval: str = ""
    shown_limit: str = ""


@dataclass(frozen=True)
class Figures:
    """The same three comparisons, always, of one group that a rule chose."""

    title: str
    caption: str
    comparisons: tuple[Comparison, ...]
    attribute: str = ""
    group: str = ""
    reference: str = ""
    among: int = 0
    """Number of groups that it was chosen among."""

    @property
    def key(self) -> tuple[str, str] | None:
        """The group; None where no group has enough people."""
        return (self.attribute, self.group) if self.group else None


@dataclass(frozen=True)
class Line:
    """A line of "What would change this", "Do next" or the limits of the page, with the rule that printed it."""

    rule: str
    words: str
    command: str = ""
    """A command that does it; empty without one."""


@dataclass(frozen=True)
class Decision:
    """All of the first page that depends on the run."""

    headline: Headline
    questions: tuple[Question, ...]
    figures: Figures
    change: tuple[Line, ...]
    """What to know about the results."""
    next: tuple[Line, ...]
    cannot: tuple[Line, ...]
    about: About = NOBODY
    matched: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Block in words -> the characteristics that similar applicants share."""
    matched_title: str = ""
    terms: tuple[tuple[str, str], ...] = ()
    """Terms of the page that a reader may not know, each with its meaning."""

    def texts(self) -> Iterator[str]:
        """Every text of the page, in its order."""
        yield self.headline.words
        for row in self.questions:
            yield from (row.question, row.sentence, row.against, row.reliable)
        yield from (self.figures.title, self.figures.caption)
        for comparison in self.figures.comparisons:
            yield from (comparison.label, comparison.detail, comparison.text, comparison.shown_interval)
        for line in (*self.change, *self.next, *self.cannot):
            yield from (line.words, line.command)


# --------------------------------------------------------------------------------------------------------------------
# The three figures: all applicants, adjusted, nearest; always these, of one group that a rule chose.
#
# The group is that with the least favourable near end of the adjusted interval among groups with enough people
# (report.md 5). It is chosen after looking, so that its interval is the verdict interval, whose near end is corrected
# for all groups judged.


NEAREST = "st_effect"
"""The second method of ``direct``, which compares each applicant with the nearest of the reference group."""
InPoints = Callable[[float], float | None]


class Chosen(NamedTuple):
    """The group shown, and the number of groups that it was chosen among."""

    key: Key | None
    among: int = 0


def figures(groups: Groups) -> Figures:
    """The three comparisons of the group chosen; those that are missing say why."""
    chosen = choice(groups)
    if chosen.key is None:
        title, caption = forms("figures", "no_group")[0], said("figures", "no_group_caption")[0]
        empty = (_missing(name, "", _state_without_group(name, groups)) for name in ("all", "adjusted", "nearest"))
        return Figures(title, caption, tuple(empty))
    attribute, group = chosen.key
    label, reference = groups.label(chosen.key), groups.reference_label(attribute)
    title = said("figures", "title", group=label, reference=reference)[0]
    key = groups.reference_key(attribute)
    comparisons = _comparisons(chosen.key, groups)
    return Figures(title, "", comparisons, attribute, group, key[1] if key else "", chosen.among)


def _state_without_group(name: str, groups: Groups) -> State:
    """State of a comparison without any group of enough people: computed for some, it is insufficient evidence."""
    if name == "nearest":
        states = [row.state for row in groups.run.rows if row.measure == NEAREST]
    else:
        overall_row = groups.run.theory(Theory.APPROVAL_RATES if name == "all" else Theory.SIMILAR_APPLICANTS)
        states = [] if overall_row is None else [overall_row.state]
    if not states or set(states) == {State.NOT_RUN}:
        return State.NOT_RUN
    return State.NO_LIMIT if set(states) == {State.NO_LIMIT} else State.INCONCLUSIVE


def forest(group_figures: Figures) -> Forest:
    """The three comparisons as they are drawn, each with its own limit."""
    marks = []
    for comparison in group_figures.comparisons:
        hidden = comparison.text == WITHHELD
        missing = "interval" if comparison.value is not None else "figure"
        # The reason is in the place of a mark that has no interval.
        note = "" if comparison.low is not None or hidden else f"{capital(comparison.state_words)}: no {missing}."
        mark = Mark(
            label=comparison.label,
            detail=comparison.detail,
            value=WITHHELD if hidden else comparison.value,
            low=comparison.low,
            high=comparison.high,
            note=note,
            state=questions.WITHHELD if hidden else "",
            limit=float(comparison.shown_limit.replace(MINUS, "-")) if comparison.shown_limit else None,
        )
        marks.append(mark)
    return Forest(title=group_figures.title, unit=POINTS, rows=tuple(marks), interval="95 % interval")


def choice(groups: Groups) -> Chosen:
    """The group with the least favourable near end of the adjusted interval; without one, of the plain gap.

    Ends of verdict intervals are compared with each other, and two-sided ones only where no row has a verdict
    interval. Ties go to the group that comes first. Where no interval is known: the first group.
    """
    enough = [key for key in groups.order if groups.enough(key)]
    for theory, sign in ((Theory.SIMILAR_APPLICANTS, 1.0), (Theory.APPROVAL_RATES, -1.0)):
        rows = {key: groups.standing(theory, key).row for key in enough}
        for plain in (False, True):
            ends: dict[Key, float] = {}
            for key, row in rows.items():
                if row is None:
                    continue
                low, high = (row.plain_low, row.plain_high) if plain else (row.low, row.high)
                if low is not None and high is not None:
                    # The lower end of an effect on denial, the upper one of a ratio of approvals.
                    ends[key] = low if sign > 0 else high
            if ends:
                return Chosen(max(ends, key=lambda key: sign * ends[key]), len(ends))
    return Chosen(enough[0], len(enough)) if enough else Chosen(None)


def _standings(key: Key, groups: Groups) -> dict[str, Standing]:
    """The state of the group in each comparison."""
    beside = groups.beside(Theory.SIMILAR_APPLICANTS, key, NEAREST)
    return {
        "all": groups.standing(Theory.APPROVAL_RATES, key),
        "adjusted": groups.standing(Theory.SIMILAR_APPLICANTS, key),
        "nearest": Standing(key, State.NOT_RUN if beside is None else beside.state, beside),
    }


def _comparisons(key: Key, groups: Groups) -> tuple[Comparison, ...]:
    """The three comparisons, each with the number of people that it is made of."""
    gap, adjusted, nearest = _standings(key, groups).values()
    columns = groups.run.columns.get(key)
    singular, several = forms("figures", "columns")
    k = groups.run.neighbours
    pair = {"group": groups.label(key), "reference": groups.reference_label(key[0])}
    number = WITHHELD if nearest.row is None or nearest.row.n is None else count(nearest.row.n)
    matched = "" if k is None or nearest.row is None else said("figures", "matched", k=k, n=number, **pair)[0]
    by = "" if columns is None else (singular if columns == 1 else several).format(n=columns)
    return (
        _comparison("all", "", gap, lambda ratio: groups.gap_points(gap.row, ratio), groups.gap_decimals),
        _comparison("adjusted", by, adjusted, approval_points),
        _comparison("nearest", "", nearest, approval_points, matched=matched),
    )


def _comparison(
    name: str,
    by: str,
    status: Standing,
    unit: InPoints,
    gap_decimals: int = 0,
    matched: str = "",
) -> Comparison:
    """A figure in points of approval, with its interval and limit in the same unit."""
    row, label = status.row, said("figures", name)[0]
    n = WITHHELD if row is None or row.n is None else count(row.n)
    people = matched or ("" if row is None else said("figures", "people", n=n)[0])
    detail = ", ".join(filter(None, (by, people)))
    if row is None or row.value is None or status.withheld:
        return _missing(name, detail, status.state, withheld=status.withheld)
    value, ends = unit(row.value), row.printed_ends
    if value is None:
        return _missing(name, detail, status.state, withheld=True)
    low, high = _sorted(ends, unit)
    plain_low, plain_high = _sorted((row.plain_low, row.plain_high), unit)
    limit = None if row.limit is None else unit(row.limit)
    kind: Interval = "" if ends is None else "plain" if row.plain_low is not None else "verdict"
    decimals, shown_limit = places_of(POINTS, low, high), ""
    if limit is not None:  # as it was declared, to a decimal; a ratio as precisely as what it limits
        finer = gap_decimals if name == "all" else 1
        shown_limit = points(limit, 0 if float(f"{limit:.1f}").is_integer() else finer)
    return Comparison(
        name,  # type: ignore[arg-type]
        label,
        detail,
        status.state,
        STATES[status.state].words,
        value,
        low,
        high,
        kind,
        plain_low,
        plain_high,
        limit,
        row.n,
        points(value, decimals),
        "" if low is None or high is None else interval(low, high, decimals),
        shown_limit,
    )


def _sorted(ends: tuple[float | None, float | None] | None, unit: InPoints) -> tuple[float | None, float | None]:
    """Both ends in points, the lower one first; none where one is not known."""
    if ends is None or ends[0] is None or ends[1] is None:
        return None, None
    low, high = unit(ends[0]), unit(ends[1])
    return (None, None) if low is None or high is None else (min(low, high), max(low, high))


def _missing(name: str, detail: str, state: State, *, withheld: bool = False) -> Comparison:
    """An empty line, with the reason in place of a number."""
    text = WITHHELD if withheld else STATES[state].words
    label = said("figures", name)[0]
    return Comparison(name, label, detail, state, STATES[state].words, text=text)  # type: ignore[arg-type]
