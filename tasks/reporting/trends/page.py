"""The page of a trend: the years and their editions, the years against their limits, measures, restatements.

Static like the report: it asks the network for nothing and needs no script. What does not fit is in the JSON file that
the command writes beside it.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from schemas.tables.trends import Told
from schemas.terms import State
from tasks.pipeline.registry import METHODS, OUTCOMES_METHOD
from tasks.reporting.charts.element import Chart
from tasks.reporting.declared import declared, names
from tasks.reporting.material import anchor, capital
from tasks.reporting.numbers import count, number_cell, state_cell, value_cell
from tasks.reporting.pages.frame import Frame, page
from tasks.reporting.section import Cell, Figure, Notice, Section, TableView
from tasks.reporting.trends import charts
from tasks.reporting.trends.fitting import CELLS, CHARTS, POINTS, TABLES, fitting, largest, left_out
from tasks.reporting.trends.trend import RANGES, Series, YearResult, all_series, breaks, found, told

LIMITS = (
    "Every year is an audit of its own: models, distances and groups are made anew, and a difference between two years "
    "may come from that, from who applied, or from what was recorded.",
    "Intervals of measures are of each year by itself. That two of them overlap, or not, is no test of a change: see "
    "Years against their limits.",
    "A gap is a year without a value: not audited, withheld, undefined, or of too few people. None is a pass.",
)
_CAPTION = (
    "Marks with 95 % intervals. A cross is a year without a value; a line ends at a gap and at a dotted break. "
    "Editions of the data stand in the table of the years."
)
_NOTE = "Aggregates only, as the runs of the years published them; no applicant's record is in this file."
_JUDGED = {OUTCOMES_METHOD: {"approval_rate"}} | {
    name: {judged.measure for judged in method.judged} for name, method in METHODS.items()
}
"""What theories are judged by, and what the gap is made of."""
Years = Sequence[YearResult]
Key = tuple[str, str, str, str]
"""Method, protected attribute, measure and decision maker: what one chart or table is about."""


def trend_section(
    title: str,
    years: Years,
    references: Mapping[str, str],
    hmda: bool,
    restated: Sequence[Section],
    monitored: Sequence[Section] = (),
) -> Section:
    """What stands on the page.

    Args:
        title: of the audit.
        years: in order.
        references: protected attribute -> its reference group.
        hmda: whether the data are HMDA's, which break at 2018.
        restated: what later editions changed, a section a year.
        monitored: the years against their limits, which comes first.
    """
    broken = breaks(years, hmda)
    drawn = [figure.chart for section in monitored for part in section.parts for figure in part.figures]
    parts = [*monitored, *_chapters(years, references, broken, drawn), *_restated(restated)]
    told_first = Section("The years", "years", tables=(_years(years),))
    notice = Notice("Not one series", "The lines end where years are not alike.", tuple(broken.values()))
    return _section(title, [told_first, *parts], notices=(notice,) if broken else ())


def span_of(years: Years) -> str:
    """The years in words."""
    return f"{years[0].year} to {years[-1].year}"


def written(title: str, span: str, parts: Sequence[Section], limits: tuple[str, ...] = LIMITS) -> bytes:
    """A page of these parts, with what it cannot tell before them; ``span`` is the years that it is about."""
    return paged(_section(title, parts, limits), span)


def _section(
    title: str, parts: Sequence[Section], limits: tuple[str, ...] = LIMITS, notices: tuple[Notice, ...] = ()
) -> Section:
    cannot = Section("What this page cannot tell", "limits", points=limits)
    return Section(title, "years-of-an-audit", notices=notices, parts=(cannot, *parts))


def paged(section: Section, span: str) -> bytes:
    """The page of a section."""
    return page("page.html.j2", "trend.html", section=section, frame=Frame(f"Lending decisions, {span}", note=_NOTE))


def _years(years: Years) -> TableView:
    columns: dict[str, Callable[[YearResult], Cell]] = {
        "Year": lambda year: number_cell(str(year.year)),
        "State": lambda year: _state(year.state),
        "Edition of the data": lambda year: Cell(year.vintage or "–"),
        "Rows": lambda year: Cell("–", "none") if year.rows is None else number_cell(count(year.rows)),
        "Lacks": lambda year: Cell(", ".join(year.lacking) or "–"),
        "Run": lambda year: Cell(year.run or "–"),
        "Why": lambda year: Cell(year.why or "–"),
    }
    return TableView.of("The years", years, columns, "Rows are those of the source, before any is refused.")


def _state(state: str) -> Cell:
    """The state of a run, or how the year ended without one."""
    return state_cell(state) if state in set(State) else Cell(state, "state", state)


def _chapters(
    years: Years, references: Mapping[str, str], broken: Mapping[int, str], drawn: Sequence[Chart]
) -> list[Section]:
    """A chapter a method, a part a measure; what has no room is counted."""
    parts: dict[Key, list[Series]] = {}
    for one in all_series(years):
        parts.setdefault((one[0], one[2], one[4], one[1]), []).append(one)
    kept = {key: _largest(years, series, references.get(key[1], "")) for key, series in parts.items()}
    charted = _charted(years, kept, references, broken, drawn)
    shown = {*charted, *fitting({k: len(v) * len(years) for k, v in kept.items() if k not in charted}, TABLES, CELLS)}
    out = []
    for method in dict.fromkeys(key[0] for key in parts):
        mine = [key for key in parts if key[0] == method]
        left = sum(key not in shown for key in mine)
        words = (f"{left} more are in the JSON file beside this page.",) if left else ()
        made = (_part(years, kept[key], len(parts[key]), charted.get(key)) for key in mine if key in shown)
        out.append(Section(declared(method).title, anchor(method), words, parts=tuple(made)))
    return out


def _charted(
    years: Years,
    parts: Mapping[Key, Sequence[Series]],
    references: Mapping[str, str],
    broken: Mapping[int, str],
    drawn: Sequence[Chart],
) -> dict[Key, Figure]:
    """The charts, judged measures first, as long as there is room beside those that are drawn already."""
    ranked = sorted(parts, key=lambda key: not _is_judged(years, parts[key]))
    made = {
        key: charts.by_year(_title(parts[key][0]), years, parts[key], references.get(key[1], ""), broken)
        for key in ranked
    }
    found = {key: chart for key, chart in made.items() if chart}
    sizes = {key: charts.points(chart) for key, chart in found.items()}
    room = POINTS - sum(map(charts.points, drawn))
    return {key: Figure(found[key], _CAPTION) for key in fitting(sizes, CHARTS - len(drawn), room)}


def _is_judged(years: Years, series: Sequence[Series]) -> bool:
    """Whether a theory is judged by the measure, or any year holds it against a limit."""
    method, measure = series[0][0], series[0][4]
    states = {m.state for year in years for one in series if (m := found(year, one))}
    return measure in _JUDGED.get(method, ()) or bool(states & set(charts.CHECKED))


def _largest(years: Years, series: Sequence[Series], reference: str) -> list[Series]:
    """The groups that fit: the reference group, and those furthest from it in their last year."""

    def last(one: Series) -> float | None:
        values = (
            m.value for year in reversed(years) if (m := found(year, one)) and told(m, year.minimum_n) is Told.VALUE
        )
        return next(values, None)

    base = next((last(one) for one in series if one[3] == reference), None) or 0.0
    return largest(series, lambda one: math.inf if one[3] == reference else abs((last(one) or base) - base))


def _part(years: Years, kept: Sequence[Series], whole: int, figure: Figure | None) -> Section:
    """One measure of one attribute and decision maker: its chart, or else its table."""
    method, maker, attribute, _, measure = kept[0]
    more = left_out(len(kept), whole)
    return Section(
        _title(kept[0]),
        anchor(method, attribute, measure, maker),
        (more,) if more else (),
        figures=(figure,) if figure else (),
        tables=() if figure else (_table(years, kept),),
    )


def _title(one: Series) -> str:
    _, maker, attribute, _, measure = one
    words = names(measure)[0]
    return f"{capital(words)} ({maker}), by {attribute}"


def _table(years: Years, series: Sequence[Series]) -> TableView:
    unit = names(series[0][4])[1]

    def cell(year: YearResult, one: Series) -> Cell:
        m = found(year, one)
        what = told(m, year.minimum_n)
        return value_cell(m, unit) if what is Told.VALUE else Cell(what.value, "none")

    of_draws = any(m.of_draws for year in years for one in series if (m := found(year, one)))
    rows = tuple((Cell(one[3]), *(cell(year, one) for year in years)) for one in series)
    header = ("Group", *(str(year.year) for year in years))
    return TableView(_title(series[0]), header, rows, RANGES * of_draws, folded=True)


def _restated(restated: Sequence[Section]) -> list[Section]:
    said = "What another edition of a year's data changed, by the two last runs on different data."
    return [Section("Restatements", "restatements", (said,), parts=tuple(restated))] if restated else []
