"""The page of a trend: the years and their editions, every measure as a figure and as a table, restatements.

Static like the report: it asks the network for nothing and needs no script.
"""

from collections.abc import Callable, Mapping, Sequence

from schemas.tables.trends import Told
from schemas.tables.verdicts import STATES
from schemas.terms import State
from tasks.pipeline.registry import METHODS
from tasks.reporting.chapters.measure_names import names
from tasks.reporting.charts import vega
from tasks.reporting.material import Shown, anchor
from tasks.reporting.methods import section_modules
from tasks.reporting.numbers import count, number_cell, value_cell
from tasks.reporting.pages import page
from tasks.reporting.section import Cell, Figure, Notice, Section, TableView
from tasks.reporting.trends import charts as trend_charts
from tasks.reporting.trends.trend import RANGES, Series, YearResult, all_series, breaks, found, told

LIMITS = (
    "Every year is an audit of its own: models, distances and groups are made anew, and a difference between two years "
    "may come from that, from who applied, or from what was recorded.",
    "Intervals of measures are of each year by itself. That two of them overlap, or not, is no test of a change: see "
    "Years against their limits.",
    "A gap is a year without a value to draw: not audited, withheld, undefined, or of too few people. None is a pass.",
)
_MARKS = "× is a year without a value to draw. A line ends at a gap and at a dashed break."
_DOTS = "Dots with intervals"
_DOTS_OF_DRAWS = "Dots, without the ranges of draws, which are no intervals: the table below holds them"


def trend_page(
    title: str,
    years: Sequence[YearResult],
    references: Mapping[str, str],
    hmda: bool,
    restated: Sequence[Section],
    monitored: Sequence[Section] = (),
) -> bytes:
    """The page.

    Args:
        title: of the audit.
        years: in order.
        references: protected attribute -> its reference group.
        hmda: whether the data are HMDA's, which break at 2018.
        restated: what later editions changed, a section a year.
        monitored: the years against their limits, which comes first.
    """
    broken = breaks(years, hmda)
    warning = Notice("Not one series", "The lines are cut where years are not alike.", tuple(broken.values()))
    content = {
        "title": title,
        "span": f"{years[0].year} to {years[-1].year}",
        "limits": LIMITS,
        "warning": warning if broken else None,
        "years": _years(years),
        "sections": [*monitored, *_chapters(years, references, broken), *_restated(restated)],
    }
    return page("trend.html.j2", figures=True, **content)


def words() -> dict[str, Shown]:
    """How every measure is written."""
    return {name: shown for module in section_modules(METHODS).values() for name, shown in module.MEASURES.items()}


def _years(years: Sequence[YearResult]) -> TableView:
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
    """The verdict of a run, or how the year ended without one."""
    return Cell(STATES[State(state)], "state", state) if state in STATES else Cell(state, "state", state)


def _chapters(years: Sequence[YearResult], references: Mapping[str, str], broken: Mapping[int, str]) -> list[Section]:
    known, titles = words(), {"outcomes": "Decisions"} | {name: method.title for name, method in METHODS.items()}
    series = all_series(years)
    out = []
    for method in dict.fromkeys(one[0] for one in series):
        mine = [one for one in series if one[0] == method]
        keys = list(dict.fromkeys((one[2], one[4], one[1]) for one in mine))
        parts = tuple(
            _part(years, [one for one in mine if (one[2], one[4], one[1]) == key], references, broken, known)
            for key in keys
        )
        out.append(Section(titles.get(method, method), anchor(method), parts=parts))
    return out


def _part(
    years: Sequence[YearResult],
    series: Sequence[Series],
    references: Mapping[str, str],
    broken: Mapping[int, str],
    known: Mapping[str, Shown],
) -> Section:
    """One measure of one attribute and decision maker: its figure and its table."""
    method, maker, attribute, _, measure = series[0]
    said, shown = names(measure, known)
    title = f"{said[0].upper()}{said[1:]} ({maker}), by {attribute}"
    swatches = vega.palette([one[3] for one in series], references.get(attribute, ""))
    shapes = trend_charts.editions(years)
    rows = trend_charts.drawn(years, series, shown.unit, broken)
    share = shown.unit == "rate" and not measure.endswith("_ratio")
    of_draws = any(m.of_draws for year in years for one in series if (m := found(year, one)))
    figures: tuple[Figure, ...] = ()
    if any(row["what"] == "dot" for row in rows):
        drawing = trend_charts.panel(title, rows, swatches, shapes, broken, share)
        marks = f"{_DOTS_OF_DRAWS if of_draws else _DOTS}; {_MARKS}"
        figures = (Figure(title, (drawing,), marks, trend_charts.legend(swatches, shapes, rows)),)
    place = anchor(method, attribute, measure, maker)
    return Section(title, place, figures=figures, tables=(_table(title, years, series, shown, RANGES * of_draws),))


def _table(title: str, years: Sequence[YearResult], series: Sequence[Series], shown: Shown, note: str) -> TableView:
    def cell(year: YearResult, one: Series) -> Cell:
        m = found(year, one)
        what = told(m, year.minimum_n)
        if m is None or what is not Told.VALUE:
            return Cell(what.value, "none")
        return value_cell(m, shown.unit)

    rows = tuple((Cell(one[3]), *(cell(year, one) for year in years)) for one in series)
    return TableView(title, ("Group", *(str(year.year) for year in years)), rows, note, folded=True)


def _restated(restated: Sequence[Section]) -> list[Section]:
    said = "What another edition of a year's data changed, by the two last runs on different data."
    return [Section("Restatements", "restatements", (said,), parts=tuple(restated))] if restated else []
