"""Page of a league of partitions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from schemas.terms import State
from tasks.metrics.league.algorithm import FEWEST
from tasks.metrics.league.rows import Census, Entrant, Hidden, Line, Standings, Subject
from tasks.reporting.charts.rows import Caterpillar, Forest
from tasks.reporting.charts.values import Mark, Side, number
from tasks.reporting.declared import form_of, names
from tasks.reporting.frame import Frame, page
from tasks.reporting.material import RESTRICTED, anchor, capital
from tasks.reporting.text import (
    DASH,
    SPACE,
    Cell,
    Figure,
    Notice,
    Section,
    TableView,
    count,
    ends,
    number_cell,
    p_cell,
    significant,
    state_cell,
    written,
)
from tasks.reporting.trends import scale

# --------------------------------------------------------------------------------------------------------------------
# Sentences of a league: what its table is for, what is expected to be false, what is pooled, and in which order.


NO_RANKING: Final = (
    "Rows are in the order of the end of the pooled interval that is nearer to the limit, or to no difference. That "
    "is no ranking of {noun} whose intervals overlap."
)
LIMITS: Final = (
    "A state is that of the partition's own verdict, by its own limit and interval. It never follows from q, from a "
    "pooled estimate or from the place in the table.",
    "Every partition is an audit of its own. Partitions differ in whom they lend to, in products and in what they "
    "record; an adjusted difference leaves out what no column holds.",
    "Pooled intervals cover in the mean over partitions, and less often for one that lies far from all others.",
    "A partition that is in no table had too few people, has no run yet, or is withheld. None of these is a pass.",
)


def noun_of(column: str) -> str:
    """What the values of a column are called."""
    return "lenders" if "lender" in column.lower() or column.lower() == "lei" else "partitions"


def first_statement(noun: str) -> str:
    """The statement that comes before all else."""
    return (
        f"Benjamini-Hochberg over {noun} is for screening and is no verdict on its own: it says where to look first, "
        "and the verdict of each stands in its own report."
    )


def titled(subject: Subject) -> str:
    """A measure of a group as a heading."""
    against = f", against {subject.reference_group}" if subject.reference_group else ""
    whose = f" ({subject.decision_maker})" if subject.decision_maker else ""
    measure_words = capital(names(subject.measure)[0])
    size = f", {subject.parameters}" if subject.parameters != "{}" else ""
    return f"{measure_words}{size}{whose}, {subject.protected_attribute}: {subject.group}{against}"


def value_words(subject: Subject, value: float) -> str:
    """A value of the measure in its unit."""
    return written(value, names(subject.measure)[1], form_of(subject.measure))


def answer(subject: Subject, table: Standings, noun: str) -> str:
    """The result of the table of one measure and group, in a sentence."""
    visible_lines = [line for line in table.lines if not line.figure.withheld]
    breaches = sum(line.figure.state == State.OUTSIDE for line in visible_lines)
    if not table.tested:
        return f"{titled(subject)}: {len(visible_lines)} {noun} with a figure; none is held against a limit."
    n = len(table.screened)
    false = f", of which {_few(table.false)} are expected to be false" if n else ""
    return (
        f"{titled(subject)}: {n or 'none'} of {table.tested} {noun} screened{false}; {breaches or 'none'} outside the "
        "limit by its own verdict."
    )


def expected(table: Standings, noun: str) -> str:
    """How many false ones are expected, over the table."""
    if not table.tested:
        return f"No limit is set, so that no {noun.removesuffix('s')} is screened."
    return (
        f"Expected false ones: of {table.tested} tests at 5{SPACE}%, {number(table.by_chance, 1)} would be called by "
        f"chance if all {noun} just kept the limit; of the {len(table.screened)} screened, "
        f"{_few(table.false)} (false discovery rate of 5{SPACE}% among independent tests; q by Benjamini and "
        "Yekutieli holds under any dependence)."
    )


def pooled_words(table: Standings, noun: str) -> str:
    """The model of all partitions, in a sentence."""
    pooled_lines = [line for line in table.lines if line.pooled is not None]
    if len(pooled_lines) < FEWEST:
        return f"Of fewer than {FEWEST} {noun} with an interval nothing is pooled: estimates stand as they are."
    spread, way = table.spread, {"reml": "restricted maximum likelihood", "paule_mandel": "Paule and Mandel"}
    scale = "the logarithm of the ratio" if table.logarithmic else "the difference"
    return (
        f"Partial pooling: normal model of {scale}, variance between {noun} by {way.get(spread.way, spread.way)}, "
        f"standard deviation {spread.tau2**0.5:.3g}; intervals after Morris (1983) count that it is estimated."
    )


def _few(value: float) -> str:
    return "none" if not value else f"at most {value:.1f}" if value >= 0.1 else "fewer than 0.1"


# --------------------------------------------------------------------------------------------------------------------
# Tables of a league: one of each measure and group, and one of all partitions.


_NONE: Final = Cell("withheld", "none")
REST: Final = "The other rows are in the JSON file beside this page."


def called(entrant: Entrant) -> str:
    """A partition by the value of its column, and by its name where that is known."""
    return f"{entrant.value} ({entrant.name})" if entrant.name else entrant.value


def standing(subject: Subject, table: Standings, noun: str, links: Mapping[str, str], most: int) -> TableView:
    """One measure of one group: a row for each partition.

    Args:
        subject: the measure and group.
        table: what is known of it.
        noun: what partitions are called.
        links: run -> address of its report.
        most: rows that fit.
    """
    columns: dict[str, Callable[[Line], Cell]] = {
        capital(noun.removesuffix("s")): lambda line: Cell(called(line.entrant)),
        "Usable rows": lambda line: _count(line.entrant.usable),
        "n of the group": lambda line: _NONE if line.figure.withheld else _count(line.figure.n),
        "Value": lambda line: (
            _NONE
            if line.figure.withheld
            else Cell(line.figure.counts)
            if line.figure.counts
            else _estimate(subject, line.figure.value, line.figure.low, line.figure.high)
        ),
        "Less that of all": lambda line: _signed(subject, line.difference),
        "Pooled": lambda line: _estimate(subject, line.pooled, line.pooled_low, line.pooled_high),
        "p": lambda line: p_cell(line.p),
        "q (Benjamini-Hochberg)": lambda line: p_cell(line.q),
        "q (Benjamini-Yekutieli)": lambda line: p_cell(line.q_dependent),
        "Screened": lambda line: Cell("yes" if line.screened else "no"),
        "State": lambda line: state_cell(line.figure.state),
        "Robustness value": lambda line: (
            DASH
            if line.figure.robustness is None
            else number_cell(f"{significant(100 * line.figure.robustness)}\N{NO-BREAK SPACE}%")
        ),
        "Detectable": lambda line: (
            DASH if line.figure.detectable is None else number_cell(value_words(subject, line.figure.detectable))
        ),
        "Report": lambda line: Cell("report", address=links.get(line.entrant.run, "")),
    }
    rows = []
    if table.everybody is not None:
        # Its own figure, and nothing that compares partitions.
        line = Line(Entrant("All"), table.everybody)
        own = {"Value", "n of the group", "Robustness value", "Detectable", "State"}
        cells = [make(line) if name in own else DASH for name, make in columns.items()]
        rows.append((Cell("All rows of the year"), *cells[1:]))
    visible_rows = TableView.of("", table.lines[:most], columns).rows
    note = (
        "Value with its 95 % interval. Screened: q by Benjamini-Hochberg at most 0.05, and the verdict interval beyond "
        "the limit. State: of the partition's own verdict. Detectable: the smallest effect (of a ratio, the largest) "
        "that this many people would have shown with a power of 80 %. All: every row of the year, this one included."
    )
    rest = REST if len(table.lines) > most else ""
    return TableView("By partition", tuple(columns), (*rows, *visible_rows), note, whole=len(table.lines), rest=rest)


def partitions(
    entrants: Mapping[str, tuple[Entrant, str]], noun: str, links: Mapping[str, str], most: int
) -> TableView:
    """All partitions with a run: rows, state of the run, and whether applicants were sampled."""
    columns: dict[str, Callable[[tuple[Entrant, str]], Cell]] = {
        capital(noun.removesuffix("s")): lambda entry: Cell(called(entry[0])),
        "Usable rows": lambda entry: _count(entry[0].usable),
        "State of the run": lambda entry: state_cell(entry[1]),
        "Asked by sample": lambda entry: Cell(entry[0].sampled or "none: everybody was asked"),
        "Run": lambda entry: Cell(entry[0].run, address=links.get(entry[0].run, "")),
    }
    view = TableView.of("Partitions with a run", list(entrants.values())[:most], columns, folded=True)
    rest = REST if len(entrants) > most else ""
    return TableView(view.title, view.header, view.rows, "", folded=True, whole=len(entrants), rest=rest)


def _count(n: int | None) -> Cell:
    return _NONE if n is None else number_cell(count(n))


def _estimate(subject: Subject, value: float | None, low: float | None, high: float | None) -> Cell:
    if value is None:
        return DASH
    has_interval = low is not None and high is not None
    interval_text = (
        ends(low or 0.0, high or 0.0, names(subject.measure)[1], form_of(subject.measure)) if has_interval else ""
    )
    return Cell(value_words(subject, value), "number", detail=interval_text)


def _signed(subject: Subject, value: float | None) -> Cell:
    if value is None:
        return DASH
    text = value_words(subject, value)
    return number_cell(text if text.startswith("+") or value <= 0 else f"+{text}")


# --------------------------------------------------------------------------------------------------------------------
# Charts of a league: partially pooled intervals of partitions, in the order of the table.


LABELLED: Final = 15
"""Partitions of a chart whose rows have labels; of more, the table names them."""
_INTERVAL = "95 % interval, partially pooled"


def pooled_intervals(subject: Subject, table: Standings, most: int) -> tuple[Figure, ...]:
    """The pooled intervals of at most ``most`` partitions; no figure without any."""
    lines = [line for line in table.lines if line.pooled is not None][:most]
    if not lines:
        return ()
    unit, factor = scale(names(subject.measure)[1], (line.pooled or 0.0 for line in lines), subject.measure)
    marks = []
    for line in lines:
        value, low, high = (factor * (share or 0.0) for share in (line.pooled, line.pooled_low, line.pooled_high))
        figure = line.figure
        marks.append(Mark(label=called(line.entrant), value=value, low=low, high=high, n=figure.n, state=figure.state))
    figures = (line.figure for line in lines if line.figure.limit is not None)
    limit, side = next(((figure.limit, figure.side) for figure in figures), (None, ""))
    allowed: Side = "at_most" if side == "at_most" else "at_least"
    kind = Forest if len(marks) <= LABELLED else Caterpillar
    chart = kind(
        title=f"Pooled estimates: {titled(subject)}",
        unit=unit,
        rows=tuple(marks),
        limit=None if limit is None else factor * limit,
        side=allowed,
        interval=_INTERVAL,
        head="Partition",
    )
    remark = f" The first {len(lines)} of {len(table.lines)}." if len(lines) < len(table.lines) else ""
    return (
        Figure(
            chart, f"Marks with partially pooled 95 % intervals, marked by the state of each one's own verdict.{remark}"
        ),
    )


# --------------------------------------------------------------------------------------------------------------------
# The page of a league: what it is for, what was found, a caterpillar and a table of each measure and group.
#
# Static like the report: no network, no script. What does not fit is in the JSON file that the command writes too.


CELLS: Final = 20_000
"""Of all tables of the page."""
MARKS: Final = 2_000
"""Of all its charts."""
_NOTE = "Aggregates only, as the runs have published them; no applicant's record is in this file."


@dataclass(frozen=True)
class Content:
    """What the page shows."""

    title: str
    column: str
    restricted: bool
    """Whether a run withholds nothing."""
    census: Census
    entrants: Mapping[str, tuple[Entrant, str]]
    """Value -> partition, and the state of its run."""
    standings: Mapping[Subject, Standings]
    hidden: Mapping[str, Hidden]
    links: Mapping[str, str]
    """Run -> address of its report, from the page."""


def league_page(content: Content) -> bytes:
    """The page."""
    noun = noun_of(content.column)
    rows = max(10, CELLS // (14 * max(len(content.standings), 1)))  # all tables together hold ``CELLS``
    first = Notice("For screening", first_statement(noun))
    answers = tuple(answer(subject, table, noun) for subject, table in content.standings.items())
    charted = max(LABELLED, MARKS // max(len(content.standings), 1))
    parts = [
        Section(
            titled(subject),
            anchor(*subject[2:8]),
            (expected(table, noun), pooled_words(table, noun), NO_RANKING.format(noun=noun)),
            figures=pooled_intervals(subject, table, charted),
            tables=(standing(subject, table, noun, content.links, rows),),
        )
        for subject, table in content.standings.items()
    ]
    every = Section(
        f"The {noun}",
        "partitions",
        (f"By `{content.column}`: {content.census.words}", *_withheld(content, noun)),
        tables=(partitions(content.entrants, noun, content.links, rows),),
    )
    cannot = Section("What this page cannot tell", "limits", points=LIMITS)
    title = f"League of {noun}"
    section = Section(title, "league", (), answers, (first,), parts=(*parts, every, cannot))
    frame = Frame(content.title, note=_NOTE, restricted=RESTRICTED if content.restricted else "")
    return page("page.html.j2", "league.html", section=section, frame=frame)


def _withheld(content: Content, noun: str) -> list[str]:
    """What is withheld beyond what the runs withhold, without names."""
    out = []
    for attribute, hidden in content.hidden.items():
        if hidden.partitions:
            n = len(hidden.partitions)
            out.append(
                f"Figures by {attribute} of {n} {noun if n > 1 else noun.removesuffix('s')} are withheld here, since "
                "they would tell counts of few people elsewhere; their own reports have them, and are not to be "
                "published beside that of all rows."
            )
        if hidden.everybody:
            why = "counts do not add up to those of all rows" if hidden.unequal else "too much would follow from them"
            out.append(
                f"Figures of all rows by {attribute} are withheld here: {why}. Their own report is not to be published "
                "beside those of partitions."
            )
    return out
