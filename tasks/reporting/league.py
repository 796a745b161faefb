"""Page of a league of partitions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from schemas.sentences import filled, sentences
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


_said = partial(filled, "league")


def noun_of(column: str) -> str:
    """What the values of a column are called."""
    is_lender = "lender" in column.lower() or column.lower() == "lei"
    return _said("nouns.lenders" if is_lender else "nouns.partitions")


def first_statement(noun: str) -> str:
    """The statement that comes before all else."""
    return _said("first", noun=noun)


def order_words(noun: str) -> str:
    """In which order the rows are."""
    return _said("order", noun=noun)


def titled(subject: Subject) -> str:
    """A measure of a group as a heading."""
    against = _said("heading_against", reference=subject.reference_group) if subject.reference_group else ""
    return _said(
        "heading",
        measure=capital(names(subject.measure)[0]),
        size=f", {subject.parameters}" if subject.parameters != "{}" else "",
        whose=f" ({subject.decision_maker})" if subject.decision_maker else "",
        attribute=subject.protected_attribute,
        group=subject.group,
        against=against,
    )


def value_words(subject: Subject, value: float) -> str:
    """A value of the measure in its unit."""
    return written(value, names(subject.measure)[1], form_of(subject.measure))


def answer(subject: Subject, table: Standings, noun: str) -> str:
    """The result of the table of one measure and group, in a sentence."""
    visible_lines = [line for line in table.lines if not line.figure.withheld]
    breaches = sum(line.figure.state == State.OUTSIDE for line in visible_lines)
    words = {"heading": titled(subject), "noun": noun}
    if not table.tested:
        return _said("answer_untested", n=len(visible_lines), **words)
    n, none = len(table.screened), _said("none")
    false = _said("answer_false", false=_few(table.false)) if n else ""
    return _said("answer", screened=n or none, tested=table.tested, false=false, outside=breaches or none, **words)


def expected(table: Standings, noun: str) -> str:
    """How many false ones are expected, over the table."""
    if not table.tested:
        return _said("no_limit", single=noun.removesuffix("s"))
    counts = {"tested": table.tested, "by_chance": number(table.by_chance, 1), "screened": len(table.screened)}
    return _said("expected", noun=noun, false=_few(table.false), **counts)


def pooled_words(table: Standings, noun: str) -> str:
    """The model of all partitions, in a sentence."""
    pooled_lines = [line for line in table.lines if line.pooled is not None]
    if len(pooled_lines) < FEWEST:
        return _said("not_pooled", fewest=FEWEST, noun=noun)
    way: str = sentences("league")["ways"].get(table.spread.way, table.spread.way)
    scale = _said("scales.ratio" if table.logarithmic else "scales.difference")
    return _said("pooled", scale=scale, noun=noun, way=way, spread=f"{table.spread.tau2**0.5:.3g}")


def _few(value: float) -> str:
    if not value:
        return _said("none")
    return _said("at_most", n=f"{value:.1f}") if value >= 0.1 else _said("fewer")


# --------------------------------------------------------------------------------------------------------------------
# Tables of a league: one of each measure and group, and one of all partitions.


_NONE: Final = Cell("withheld", "none")


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
        rows.append((Cell(_said("everybody")), *cells[1:]))
    visible_rows = TableView.of("", table.lines[:most], columns).rows
    rest = _said("rest") if len(table.lines) > most else ""
    every_row = (*rows, *visible_rows)
    return TableView(_said("table"), tuple(columns), every_row, _said("table_note"), whole=len(table.lines), rest=rest)


def partitions(
    entrants: Mapping[str, tuple[Entrant, str]], noun: str, links: Mapping[str, str], most: int
) -> TableView:
    """All partitions with a run: rows, state of the run, and whether applicants were sampled."""
    columns: dict[str, Callable[[tuple[Entrant, str]], Cell]] = {
        capital(noun.removesuffix("s")): lambda entry: Cell(called(entry[0])),
        "Usable rows": lambda entry: _count(entry[0].usable),
        "State of the run": lambda entry: state_cell(entry[1]),
        "Asked by sample": lambda entry: Cell(entry[0].sampled or _said("everyone_asked")),
        "Run": lambda entry: Cell(entry[0].run, address=links.get(entry[0].run, "")),
    }
    view = TableView.of(_said("partitions"), list(entrants.values())[:most], columns, folded=True)
    rest = _said("rest") if len(entrants) > most else ""
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
        title=_said("chart", heading=titled(subject)),
        unit=unit,
        rows=tuple(marks),
        limit=None if limit is None else factor * limit,
        side=allowed,
        interval=_said("interval"),
        head="Partition",
    )
    caption = [_said("chart_note")]
    if len(lines) < len(table.lines):
        caption.append(_said("chart_first", n=len(lines), of=len(table.lines)))
    return (Figure(chart, " ".join(caption)),)


# --------------------------------------------------------------------------------------------------------------------
# The page of a league: what it is for, what was found, a caterpillar and a table of each measure and group.
#
# Static like the report: no network, no script. What does not fit is in the JSON file that the command writes too.


CELLS: Final = 20_000
"""Of all tables of the page."""
MARKS: Final = 2_000
"""Of all its charts."""


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
    first = Notice(_said("first_title"), first_statement(noun))
    answers = tuple(answer(subject, table, noun) for subject, table in content.standings.items())
    charted = max(LABELLED, MARKS // max(len(content.standings), 1))
    parts = [
        Section(
            titled(subject),
            anchor(*subject[2:8]),
            (expected(table, noun), pooled_words(table, noun), order_words(noun)),
            figures=pooled_intervals(subject, table, charted),
            tables=(standing(subject, table, noun, content.links, rows),),
        )
        for subject, table in content.standings.items()
    ]
    every = Section(
        _said("every", noun=noun),
        "partitions",
        (_said("census", column=content.column, census=content.census.words), *_withheld(content, noun)),
        tables=(partitions(content.entrants, noun, content.links, rows),),
    )
    cannot = Section(_said("cannot_title"), "limits", points=tuple(sentences("league")["cannot"]))
    section = Section(_said("title", noun=noun), "league", (), answers, (first,), parts=(*parts, every, cannot))
    frame = Frame(content.title, note=_said("aggregates"), restricted=RESTRICTED if content.restricted else "")
    return page("page.html.j2", "league.html", section=section, frame=frame)


def _withheld(content: Content, noun: str) -> list[str]:
    """What is withheld beyond what the runs withhold, without names."""
    out = []
    for attribute, hidden in content.hidden.items():
        if hidden.partitions:
            n = len(hidden.partitions)
            whose = noun if n > 1 else noun.removesuffix("s")
            out.append(_said("withheld", attribute=attribute, n=n, noun=whose))
        if hidden.everybody:
            why = _said("unequal" if hidden.unequal else "telling")
            out.append(_said("withheld_all", attribute=attribute, why=why))
    return out
