"""Restatement: what a later edition of a year's data changed, in rows and in every headline measure.

Both columns are what the two reports print, withheld where they withhold; a difference is made of printed values only,
so that the page tells nothing that could not be had from the two reports.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas.tables.trends import RESTATEMENT, Told
from schemas.tables.verdicts import STATES
from schemas.terms import State
from tasks.metrics.algorithm.disclosure import Policy, complement, rounded, small
from tasks.reporting.chapters.measure_names import names
from tasks.reporting.material import Measure, Shown
from tasks.reporting.numbers import MINUS, count, number_cell, value_cell, written
from tasks.reporting.section import Cell, Row, Section, TableView
from tasks.reporting.trends.trend import RANGES, Series, YearResult, all_series, found, told

SOURCE = "in the source"
"""What the rows of the source are called beside their parts."""


@dataclass(frozen=True)
class Edition:
    """One run of the year, and how many rows went where."""

    result: YearResult
    counts: Mapping[str, int]
    """Rows of the source (``SOURCE``), and its parts: rows used, and rows refused by reason."""


def restatement(audit: str, old: Edition, new: Edition) -> pa.Table:
    """Every headline measure by both editions, in the shape of ``RESTATEMENT``."""
    rows = [_measure_row(audit, old.result, new.result, one) for one in all_series((old.result, new.result))]
    return RESTATEMENT.build(**{column.name: [row[column.name] for row in rows] for column in RESTATEMENT.columns})


def restated_rows(old: Edition, new: Edition, policy: Policy) -> list[dict[str, object]]:
    """Rows of the source, used and refused by reason, by both editions; a count is withheld in both or in none.

    With a small one goes another, so that it cannot be had from the rows of the source, which are their sum.
    """
    parts = [name for name in dict.fromkeys([*old.counts, *new.counts]) if name != SOURCE]
    pairs = np.array([[edition.counts.get(name, 0) for edition in (old, new)] for name in parts], np.int64)
    hidden = np.array([any(small(policy, int(n)) for n in pair) for pair in pairs], dtype=np.bool_)
    for column in (0, 1, 0, 1):  # what is withheld for one edition may need another one for the other
        hidden = complement(hidden, pairs[:, column], policy.smallest)
    rows = [_count_row(SOURCE, (old.counts[SOURCE], new.counts[SOURCE]), False, policy)]
    return rows + [_count_row(*row, policy) for row in zip(parts, pairs.tolist(), hidden, strict=True)]


def section(old: Edition, new: Edition, policy: Policy, known: Mapping[str, Shown]) -> Section:
    """The two tables of a restatement, with the editions named."""
    year = new.result.year
    words = (
        f"Earlier: {old.result.vintage}; run {old.result.run}.",
        f"Later: {new.result.vintage}; run {new.result.run}.",
    )
    tables = (_counts_table(year, old, new, policy), _measures_table(year, old.result, new.result, known))
    return Section(f"Restatement of {year}", f"restatement-{year}", words, tables=tables)


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


def _count_row(name: str, counts: Sequence[int], hidden: bool, policy: Policy) -> dict[str, object]:
    if hidden:
        return {"rows": name, "old": None, "new": None, "difference": None}
    old, new = (rounded(policy, n) for n in counts)
    return {"rows": name, "old": old, "new": new, "difference": new - old}


def _counts_table(year: int, old: Edition, new: Edition, policy: Policy) -> TableView:
    def cell(n: object, signed: bool = False) -> Cell:
        if not isinstance(n, int):
            return Cell("withheld", "none")
        return number_cell(f"{n:+,}".replace("-", MINUS) if signed and n else count(n))

    rows = tuple(
        (Cell(str(row["rows"])), cell(row["old"]), cell(row["new"]), cell(row["difference"], signed=True))
        for row in restated_rows(old, new, policy)
    )
    return TableView(f"Rows of {year}", ("Rows", "Earlier", "Later", "Difference"), rows)


def _measures_table(year: int, old: YearResult, new: YearResult, known: Mapping[str, Shown]) -> TableView:
    rows: Sequence[Row] = [_cells(old, new, one, known) for one in all_series((old, new))]
    header = ("Measure", "Decisions of", "Group", "Earlier", "Later", "Difference", "Check, earlier", "Check, later")
    note = "Intervals are of each edition by itself: most rows are in both, so that they are no test of the difference."
    if any(m.of_draws for edition in (old, new) for m in edition.measures):
        note += f" {RANGES}"
    return TableView(f"Measures of {year}", header, tuple(rows), note)


def _cells(old: YearResult, new: YearResult, series: Series, known: Mapping[str, Shown]) -> Row:
    _, maker, attribute, group, measure = series
    said, shown = names(measure, known)
    before, after = found(old, series), found(new, series)
    return (
        Cell(said),
        Cell(maker),
        Cell(f"{group} ({attribute})"),
        value_cell(before, shown.unit),
        value_cell(after, shown.unit),
        _difference(before, after, shown, measure),
        *(Cell(STATES[State(m.state)], "state", m.state) if m else Cell("–") for m in (before, after)),
    )


def _difference(old: Measure | None, new: Measure | None, shown: Shown, measure: str) -> Cell:
    if old is None or new is None or old.value is None or new.value is None:
        return Cell("–", "none")
    base = f"{measure}_difference" if not measure.endswith("_difference") else measure
    text = written(new.value - old.value, "number" if measure.endswith("_ratio") else shown.unit, base)
    return number_cell(text)


def changed(table: pa.Table) -> int:
    """How many measures have another value, or have one where there was none."""
    rows = table.to_pylist()
    return sum(
        1 for row in rows if row["old"] != row["new"] or (row["old_told"], row["new_told"]).count(Told.VALUE) == 1
    )
