"""Tables of a league: one of each measure and group, and one of all partitions."""

from collections.abc import Callable, Mapping
from typing import Final

from tasks.metrics.league.asked import Subject
from tasks.metrics.league.rows import Entrant, Line, Standings
from tasks.reporting.declared import form_of, names
from tasks.reporting.league.words import value_words
from tasks.reporting.material import capital
from tasks.reporting.numbers import DASH, count, ends, number_cell, p_cell, significant, state_cell
from tasks.reporting.section import Cell, TableView

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
        "Value": lambda line: _value(subject, line),
        "Less that of all": lambda line: _signed(subject, line.difference),
        "Pooled": lambda line: _estimate(subject, line.pooled, line.pooled_low, line.pooled_high),
        "p": lambda line: p_cell(line.p),
        "q (Benjamini-Hochberg)": lambda line: p_cell(line.q),
        "q (Benjamini-Yekutieli)": lambda line: p_cell(line.q_dependent),
        "Screened": lambda line: Cell("yes" if line.screened else "no"),
        "State": lambda line: state_cell(line.figure.state),
        "Robustness value": lambda line: _robustness(line.figure.robustness),
        "Detectable": lambda line: _plain(subject, line.figure.detectable),
        "Report": lambda line: Cell("report", address=links.get(line.entrant.run, "")),
    }
    rows = [_of_all(columns, table)] if table.everybody is not None else []
    shown = TableView.of("", table.lines[:most], columns).rows
    note = (
        "Value with its 95 % interval. Screened: q by Benjamini-Hochberg at most 0.05, and the verdict interval beyond "
        "the limit. State: of the partition's own verdict. Detectable: the smallest effect (of a ratio, the largest) "
        "that this many people would have shown with a power of 80 %. All: every row of the year, this one included."
    )
    rest = REST if len(table.lines) > most else ""
    return TableView("By partition", tuple(columns), (*rows, *shown), note, whole=len(table.lines), rest=rest)


def partitions(
    entrants: Mapping[str, tuple[Entrant, str]], noun: str, links: Mapping[str, str], most: int
) -> TableView:
    """All partitions with a run: rows, state of the run, and whether applicants were sampled."""
    columns: dict[str, Callable[[tuple[Entrant, str]], Cell]] = {
        capital(noun.removesuffix("s")): lambda each: Cell(called(each[0])),
        "Usable rows": lambda each: _count(each[0].usable),
        "State of the run": lambda each: state_cell(each[1]),
        "Asked by sample": lambda each: Cell(each[0].sampled or "none: everybody was asked"),
        "Run": lambda each: Cell(each[0].run, address=links.get(each[0].run, "")),
    }
    made = TableView.of("Partitions with a run", list(entrants.values())[:most], columns, folded=True)
    rest = REST if len(entrants) > most else ""
    return TableView(made.title, made.header, made.rows, "", folded=True, whole=len(entrants), rest=rest)


def _of_all(columns: Mapping[str, Callable[[Line], Cell]], table: Standings) -> tuple[Cell, ...]:
    """The row of all rows of the year: its own figure, and nothing that compares partitions."""
    figure = table.everybody
    if figure is None:
        raise ValueError("there is no run over all rows")
    line = Line(Entrant("All"), figure)
    own = {"Value", "n of the group", "Robustness value", "Detectable", "State"}
    cells = {name: make(line) if name in own else DASH for name, make in columns.items()}
    first = next(iter(columns))
    return tuple(Cell("All rows of the year") if name == first else cell for name, cell in cells.items())


def _count(n: int | None) -> Cell:
    return _NONE if n is None else number_cell(count(n))


def _value(subject: Subject, line: Line) -> Cell:
    figure = line.figure
    return _NONE if figure.withheld else _estimate(subject, figure.value, figure.low, figure.high)


def _estimate(subject: Subject, value: float | None, low: float | None, high: float | None) -> Cell:
    if value is None:
        return DASH
    known = low is not None and high is not None
    said = ends(low or 0.0, high or 0.0, names(subject.measure)[1], form_of(subject.measure)) if known else ""
    return Cell(value_words(subject, value), "number", detail=said)


def _signed(subject: Subject, value: float | None) -> Cell:
    if value is None:
        return DASH
    said = value_words(subject, value)
    return number_cell(said if said.startswith("+") or value <= 0 else f"+{said}")


def _plain(subject: Subject, value: float | None) -> Cell:
    return DASH if value is None else number_cell(value_words(subject, value))


def _robustness(value: float | None) -> Cell:
    return DASH if value is None else number_cell(f"{significant(100 * value)}\N{NO-BREAK SPACE}%")
