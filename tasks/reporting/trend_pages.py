"""Pages of trends and restatements."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from schemas.sentences import filled, sentences
from schemas.tables.verdicts import RESTATEMENT, Told
from schemas.terms import State
from tasks.pipeline.registry import METHODS, OUTCOMES_METHOD
from tasks.reporting import text, trends
from tasks.reporting.charts.layout import Chart
from tasks.reporting.charts.values import MINUS
from tasks.reporting.declared import declared, names
from tasks.reporting.frame import Frame, page
from tasks.reporting.material import Measure, anchor
from tasks.reporting.trends import (
    CELLS,
    CHARTS,
    POINTS,
    RANGES,
    TABLES,
    Series,
    YearResult,
    all_series,
    breaks,
    fitting,
    found,
    largest,
    left_out,
    told,
)

# --------------------------------------------------------------------------------------------------------------------
# Restatement: what a later edition of a year's data changed, in rows and in every headline measure.
#
# Both columns are what the two runs published, withheld where they withhold; a difference is made of published values
# only, so that the page shows nothing that the two reports do not show.


_said = partial(filled, "years")
SOURCE = "in the source"
"""Label of the rows of the source, as opposed to their parts."""


@dataclass(frozen=True)
class Edition:
    """One run of the year, and how many rows went where."""

    result: YearResult
    counts: Mapping[str, int | None]
    """Rows of the source (``SOURCE``), and its parts: rows used, and rows refused by reason. None: withheld. Empty
    where the run published none."""


def restatement(audit: str, old: Edition, new: Edition) -> pa.Table:
    """Every headline measure by both editions, in the shape of ``RESTATEMENT``."""
    rows = []
    for series in all_series((old.result, new.result)):
        method, maker, attribute, group, measure = series
        before, after = found(old.result, series), found(new.result, series)
        values = [m.value if m else None for m in (before, after)]
        row = {
            "audit": audit,
            "year": new.result.year,
            "method": method,
            "decision_maker": maker,
            "protected_attribute": attribute,
            "group": group,
            "measure": measure,
            "old": values[0],
            "new": values[1],
            "difference": None if values[0] is None or values[1] is None else values[1] - values[0],
            "old_note": before.note if before else "",
            "new_note": after.note if after else "",
            "old_told": told(before, old.result.minimum_n),
            "new_told": told(after, new.result.minimum_n),
            "old_state": before.state if before else State.NOT_RUN,
            "new_state": after.state if after else State.NOT_RUN,
        }
        rows.append(row)
    return RESTATEMENT.build(**{column.name: [row[column.name] for row in rows] for column in RESTATEMENT.columns})


def restated_rows(old: Edition, new: Edition) -> list[dict[str, object]]:
    """Rows of the source, used and refused by reason, as both editions published them."""
    rows: list[dict[str, object]] = []
    for line in dict.fromkeys([*old.counts, *new.counts]):
        before, after = (edition.counts.get(line, 0 if edition.counts else None) for edition in (old, new))
        difference = None if before is None or after is None else after - before
        rows.append({"rows": line, "old": before, "new": after, "difference": difference})
    return rows


def section(old: Edition, new: Edition) -> text.Section:
    """The two tables of a restatement, with the editions named."""

    def cell(n: object, signed: bool = False) -> text.Cell:
        if not isinstance(n, int):
            return text.Cell("withheld", "none")
        return text.number_cell(f"{n:+,}".replace("-", MINUS) if signed and n else text.count(n))

    year = new.result.year
    words = tuple(
        _said(f"restatements.{name}", vintage=edition.result.vintage, run=edition.result.run)
        for name, edition in (("earlier", old), ("later", new))
    )
    rows = tuple(
        (text.Cell(str(row["rows"])), cell(row["old"]), cell(row["new"]), cell(row["difference"], signed=True))
        for row in restated_rows(old, new)
    )
    note = "" if old.counts and new.counts else _said("restatements.no_counts")
    counts = text.TableView(
        _said("restatements.rows", year=year), ("Rows", "Earlier", "Later", "Difference"), rows, note
    )
    tables = (counts, _measures_table(year, old.result, new.result))
    return text.Section(
        _said("restatements.of_year", year=year), anchor("restatement", str(year)), words, tables=tables
    )


def _measures_table(year: int, old: YearResult, new: YearResult) -> text.TableView:
    every = all_series((old, new))
    visible_series, rows = largest(every, lambda series: _effect(found(old, series), found(new, series))), []
    for series in visible_series:
        _, maker, attribute, group, measure = series
        measure_words, unit = names(measure)
        before, after = found(old, series), found(new, series)
        difference = text.Cell("–", "none")
        if before is not None and after is not None and before.value is not None and after.value is not None:
            kind = "number" if measure.endswith("_ratio") else unit
            difference = text.number_cell(text.written(after.value - before.value, kind, "difference"))
        cells = (text.Cell(measure_words), text.Cell(maker), text.Cell(f"{group} ({attribute})"))
        states = (text.state_cell(m.state) if m else text.Cell("–", "none") for m in (before, after))
        rows.append((*cells, text.value_cell(before, unit), text.value_cell(after, unit), difference, *states))
    header = ("Measure", "Decisions of", "Group", "Earlier", "Later", "Difference", "State, earlier", "State, later")
    notes = [
        _said("restatements.intervals"),
        RANGES * any(m.of_draws for edition in (old, new) for m in edition.measures),
        left_out(len(visible_series), len(every), "measures", _said("restatements.rest", year=year)),
    ]
    return text.TableView(_said("restatements.measures", year=year), header, tuple(rows), " ".join(filter(None, notes)))


def _effect(old: Measure | None, new: Measure | None) -> float:
    """How far a measure shifted, in widths of its later interval, else as a part of it; infinite if it came or went."""
    before, after = old.value if old else None, new.value if new else None
    if new is None or before is None or after is None:
        return 0.0 if before is after else math.inf
    width = new.high - new.low if new.low is not None and new.high is not None else abs(after)
    return abs(after - before) / (width or 1.0)


def changed(table: pa.Table) -> int:
    """How many measures have another value, or have one where there was none."""
    rows = table.to_pylist()
    return sum(
        1 for row in rows if row["old"] != row["new"] or (row["old_told"], row["new_told"]).count(Told.VALUE) == 1
    )


# --------------------------------------------------------------------------------------------------------------------
# The page of a trend: the years and their editions, the years against their limits, measures, restatements.
#
# Static like the report: no network, no script. What does not fit is in the JSON file that the command writes too.


LIMITS: tuple[str, ...] = tuple(sentences("years")["cannot"])
"""What pages over years cannot tell."""
_JUDGED = {OUTCOMES_METHOD: {"approval_rate"}} | {
    name: {measure.measure for measure in method.verdict_measures} for name, method in METHODS.items()
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
    restated: Sequence[text.Section],
    monitored: Sequence[text.Section] = (),
) -> text.Section:
    """The content of the page.

    Args:
        title: of the audit.
        years: in order.
        references: protected attribute -> its reference group.
        hmda: whether the data are HMDA's, which break at 2018.
        restated: what later editions changed, a section a year.
        monitored: the years against their limits, which comes first.
    """
    broken = breaks(years, hmda)
    monitoring_charts = [figure.chart for section in monitored for part in section.parts for figure in part.figures]
    columns: dict[str, Callable[[YearResult], text.Cell]] = {
        "Year": lambda year: text.number_cell(str(year.year)),
        # The state of a run, or how the year ended without one.
        "State": lambda year: (
            text.state_cell(year.state) if year.state in set(State) else text.Cell(year.state, "state", year.state)
        ),
        "Edition of the data": lambda year: text.Cell(year.vintage or "–"),
        "Rows": lambda year: text.Cell("–", "none") if year.rows is None else text.number_cell(text.count(year.rows)),
        "Lacks": lambda year: text.Cell(", ".join(year.lacking) or "–"),
        "Run": lambda year: text.Cell(year.run or "–"),
        "Why": lambda year: text.Cell(year.why or "–"),
    }
    editions = text.TableView.of(_said("table"), years, columns, _said("table_note"))
    parts = [text.Section(_said("table"), "years", tables=(editions,)), *monitored]
    parts += _chapters(years, references, broken, monitoring_charts)
    if restated:
        introduction = (_said("restatements.introduction"),)
        parts.append(text.Section(_said("restatements.title"), "restatements", introduction, parts=tuple(restated)))
    notice = text.Notice(_said("not_one_series"), _said("breaks"), tuple(broken.values()))
    return _section(title, parts, notices=(notice,) if broken else ())


def span_of(years: Years) -> str:
    """The years in words."""
    return _said("span", first=years[0].year, last=years[-1].year)


def write_page(title: str, span: str, parts: Sequence[text.Section], limits: tuple[str, ...] = LIMITS) -> bytes:
    """A page of these parts, preceded by its limitations; ``span`` is the years that it is about."""
    return paged(_section(title, parts, limits), span)


def _section(
    title: str, parts: Sequence[text.Section], limits: tuple[str, ...] = LIMITS, notices: tuple[text.Notice, ...] = ()
) -> text.Section:
    cannot = text.Section(_said("cannot_title"), "limits", points=limits)
    return text.Section(title, "years-of-an-audit", notices=notices, parts=(cannot, *parts))


def paged(section: text.Section, span: str) -> bytes:
    """The page of a section."""
    frame = Frame(_said("frame", span=span), note=_said("aggregates"))
    return page("page.html.j2", "trend.html", section=section, frame=frame)


def _chapters(
    years: Years, references: Mapping[str, str], broken: Mapping[int, str], monitoring_charts: Sequence[Chart]
) -> list[text.Section]:
    """A chapter a method, a part a measure; what has no room is counted."""
    by_key: dict[Key, list[Series]] = {}
    for one_series in all_series(years):
        by_key.setdefault((one_series[0], one_series[2], one_series[4], one_series[1]), []).append(one_series)
    visible_series = {key: _largest(years, series, references.get(key[1], "")) for key, series in by_key.items()}
    drawable = {}
    for key in sorted(visible_series, key=lambda key: not _is_judged(years, visible_series[key])):
        series = visible_series[key]
        if chart := trends.by_year(_title(series[0]), years, series, references.get(key[1], ""), broken):
            drawable[key] = chart
    sizes = {key: trends.points(chart) for key, chart in drawable.items()}
    room = POINTS - sum(map(trends.points, monitoring_charts))
    charted = {
        key: text.Figure(drawable[key], _said("caption"))
        for key in fitting(sizes, CHARTS - len(monitoring_charts), room)
    }
    cells = {key: len(series) * len(years) for key, series in visible_series.items() if key not in charted}
    visible_keys = {*charted, *fitting(cells, TABLES, CELLS)}
    chapters = []
    for method in dict.fromkeys(key[0] for key in by_key):
        keys = [key for key in by_key if key[0] == method]
        number_left_out = sum(key not in visible_keys for key in keys)
        words = (_said("more_measures", n=number_left_out),) if number_left_out else ()
        parts = []
        for key in keys:
            if key in visible_keys:
                series, figure = visible_series[key], charted.get(key)
                remark = left_out(len(series), len(by_key[key]))
                part = text.Section(
                    _title(series[0]),
                    anchor(*key),
                    (remark,) if remark else (),
                    figures=(figure,) if figure else (),
                    tables=() if figure else (_table(years, series),),
                )
                parts.append(part)
        chapters.append(text.Section(declared(method).title, anchor(method), words, parts=tuple(parts)))
    return chapters


def _is_judged(years: Years, series: Sequence[Series]) -> bool:
    """Whether a theory is judged by the measure, or any year holds it against a limit."""
    method, measure = series[0][0], series[0][4]
    states = {m.state for year in years for one_series in series if (m := found(year, one_series))}
    return measure in _JUDGED.get(method, ()) or bool(states & set(trends.CHECKED))


def _largest(years: Years, series: Sequence[Series], reference: str) -> list[Series]:
    """The groups that fit: the reference group, and those furthest from it in their last year."""

    def last(one_series: Series) -> float | None:
        values = (
            m.value
            for year in reversed(years)
            if (m := found(year, one_series)) and told(m, year.minimum_n) is Told.VALUE
        )
        return next(values, None)

    base = next((last(one_series) for one_series in series if one_series[3] == reference), None) or 0.0
    return largest(
        series, lambda one_series: math.inf if one_series[3] == reference else abs((last(one_series) or base) - base)
    )


def _title(one_series: Series) -> str:
    _, maker, attribute, _, measure = one_series
    return trends.title_of(names(measure)[0], maker, attribute)


def _table(years: Years, series: Sequence[Series]) -> text.TableView:
    unit = names(series[0][4])[1]

    def cell(year: YearResult, one_series: Series) -> text.Cell:
        m = found(year, one_series)
        what = told(m, year.minimum_n)
        return text.value_cell(m, unit) if what is Told.VALUE else text.Cell(what.value, "none")

    of_draws = any(m.of_draws for year in years for one_series in series if (m := found(year, one_series)))
    rows = tuple((text.Cell(one_series[3]), *(cell(year, one_series) for year in years)) for one_series in series)
    header = ("Group", *(str(year.year) for year in years))
    return text.TableView(_title(series[0]), header, rows, RANGES * of_draws, folded=True)
