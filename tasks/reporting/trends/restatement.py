"""Restatement: what a later edition of a year's data changed, in rows and in every headline measure.

Both columns are what the two runs published, withheld where they withhold; a difference is made of published values
only, so that the page tells nothing that could not be had from the two reports.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from schemas.tables.trends import RESTATEMENT, Told
from schemas.terms import State
from tasks.reporting.charts.numbers import MINUS
from tasks.reporting.declared import Unit, names
from tasks.reporting.material import Measure, anchor
from tasks.reporting.numbers import count, number_cell, state_cell, value_cell, written
from tasks.reporting.section import Cell, Row, Section, TableView
from tasks.reporting.trends.fitting import largest, left_out
from tasks.reporting.trends.trend import RANGES, Series, YearResult, all_series, found, told

SOURCE = "in the source"
"""What the rows of the source are called beside their parts."""


@dataclass(frozen=True)
class Edition:
    """One run of the year, and how many rows went where."""

    result: YearResult
    counts: Mapping[str, int | None]
    """Rows of the source (``SOURCE``), and its parts: rows used, and rows refused by reason. None: withheld. Empty
    where the run published none."""


def restatement(audit: str, old: Edition, new: Edition) -> pa.Table:
    """Every headline measure by both editions, in the shape of ``RESTATEMENT``."""
    rows = [_measure_row(audit, old.result, new.result, one) for one in all_series((old.result, new.result))]
    return RESTATEMENT.build(**{column.name: [row[column.name] for row in rows] for column in RESTATEMENT.columns})


def restated_rows(old: Edition, new: Edition) -> list[dict[str, object]]:
    """Rows of the source, used and refused by reason, as both editions published them."""
    lines = dict.fromkeys([*old.counts, *new.counts])
    return [
        _count_row(line, *(each.counts.get(line, 0 if each.counts else None) for each in (old, new))) for line in lines
    ]


def section(old: Edition, new: Edition) -> Section:
    """The two tables of a restatement, with the editions named."""
    year = new.result.year
    words = (
        f"Earlier: {old.result.vintage}; run {old.result.run}.",
        f"Later: {new.result.vintage}; run {new.result.run}.",
    )
    tables = (_counts_table(year, old, new), _measures_table(year, old.result, new.result))
    return Section(f"Restatement of {year}", anchor("restatement", str(year)), words, tables=tables)


def _measure_row(audit: str, old: YearResult, new: YearResult, series: Series) -> dict[str, object]:
    method, maker, attribute, group, measure = series
    before, after = found(old, series), found(new, series)
    values = [m.value if m else None for m in (before, after)]
    return {
        "audit": audit,
        "year": new.year,
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
        "old_told": told(before, old.minimum_n),
        "new_told": told(after, new.minimum_n),
        "old_state": before.state if before else State.NOT_RUN,
        "new_state": after.state if after else State.NOT_RUN,
    }


def _count_row(line: str, old: int | None, new: int | None) -> dict[str, object]:
    return {"rows": line, "old": old, "new": new, "difference": None if old is None or new is None else new - old}


def _counts_table(year: int, old: Edition, new: Edition) -> TableView:
    def cell(n: object, signed: bool = False) -> Cell:
        if not isinstance(n, int):
            return Cell("withheld", "none")
        return number_cell(f"{n:+,}".replace("-", MINUS) if signed and n else count(n))

    rows = tuple(
        (Cell(str(row["rows"])), cell(row["old"]), cell(row["new"]), cell(row["difference"], signed=True))
        for row in restated_rows(old, new)
    )
    note = "" if old.counts and new.counts else "A run of an earlier version published no counts: they read withheld."
    return TableView(f"Rows of {year}", ("Rows", "Earlier", "Later", "Difference"), rows, note)


def _measures_table(year: int, old: YearResult, new: YearResult) -> TableView:
    series = all_series((old, new))
    shown = largest(series, lambda one: _effect(found(old, one), found(new, one)))
    header = ("Measure", "Decisions of", "Group", "Earlier", "Later", "Difference", "State, earlier", "State, later")
    notes = [
        "Intervals are of each edition by itself: most rows are in both, so that they are no test of the difference.",
        RANGES * any(m.of_draws for edition in (old, new) for m in edition.measures),
        left_out(len(shown), len(series), "measures", f"`evenhand restatement {year}` gives all."),
    ]
    rows = tuple(_cells(old, new, one) for one in shown)
    return TableView(f"Measures of {year}", header, rows, " ".join(filter(None, notes)))


def _effect(old: Measure | None, new: Measure | None) -> float:
    """How far a measure moved, in widths of its later interval, else as a part of it; infinite if it came or went."""
    before, after = old.value if old else None, new.value if new else None
    if new is None or before is None or after is None:
        return 0.0 if before is after else math.inf
    width = new.high - new.low if new.low is not None and new.high is not None else abs(after)
    return abs(after - before) / (width or 1.0)


def _cells(old: YearResult, new: YearResult, series: Series) -> Row:
    _, maker, attribute, group, measure = series
    said, unit = names(measure)
    before, after = found(old, series), found(new, series)
    return (
        Cell(said),
        Cell(maker),
        Cell(f"{group} ({attribute})"),
        value_cell(before, unit),
        value_cell(after, unit),
        _difference(before, after, unit, measure),
        *(state_cell(m.state) if m else Cell("–", "none") for m in (before, after)),
    )


def _difference(old: Measure | None, new: Measure | None, unit: Unit, measure: str) -> Cell:
    if old is None or new is None or old.value is None or new.value is None:
        return Cell("–", "none")
    unit = "number" if measure.endswith("_ratio") else unit
    return number_cell(written(new.value - old.value, unit, "difference"))


def changed(table: pa.Table) -> int:
    """How many measures have another value, or have one where there was none."""
    rows = table.to_pylist()
    return sum(
        1 for row in rows if row["old"] != row["new"] or (row["old_told"], row["new_told"]).count(Told.VALUE) == 1
    )
