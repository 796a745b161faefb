"""Curves: what is measured at many points has a row a curve with arrays, in place of a row of measures a point.

Points that a limit is about, or that stand for the setting of the audit, stay measures. Scope: which points are on
curves, their arrays, and the way back from arrays to rows. What of them is published: ``publish.measures``.
"""

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.limits import Threshold
from schemas.audit.spec import AuditSpec
from schemas.table import Table
from schemas.tables.findings import CURVES, FGCE_CURVES, METHOD_CURVES
from schemas.tables.verdicts import OF_CURVE
from schemas.terms import Note, State
from tasks.lake.storage import connected
from tasks.metrics.algorithm.measures import base_name
from tasks.numerics.statistics.intervals import ENOUGH, quantile, wilsons
from tasks.pipeline.registry import METHODS, asked_for

Values = Mapping[str, float | str | None]
"""By parameter; None of one that no point that stays has."""
Rule = Mapping[str, Mapping[str, Values]]
"""Method -> measure with many points -> parameters of the points that stay measures; without any, none stays."""

_IDENTITY = ("method", "measure", "parameters")
_ALONG = ("k", "d", "c")
_DENOMINATOR = "denominator"
LISTS = ("value", "n", "events", "low", "high", "drawn", "drawn_low", "drawn_high", "draws", "note", "drawn_note")
"""Columns of a curve with an entry for each point, beside its parameters."""
INFORMATION = "no interval that is known to cover as often as it says"
_WITHHELD = "withheld"


def rule_of(spec: AuditSpec) -> dict[str, dict[str, dict[str, float | str | None]]]:
    """Which measures of an audit are on curves, and which of their points stay measures."""
    out: dict[str, dict[str, dict[str, float | str | None]]] = {}
    for method in asked_for(spec):
        settings = spec.methods.named(method.name)
        out[method.name] = {
            measure: {name: getattr(settings, name, None) for name in names} for measure, names in method.curves.items()
        }
    return out


def is_curve(measure: str) -> bool:
    """Whether a measure, or what it compares, has many points, few or none of which stay measures."""
    return any(base_name(measure) in method.curves for method in METHODS.values())


def table_of(method: str) -> Table:
    """The table that has the curves of a method."""
    return FGCE_CURVES if method == "fgce" else METHOD_CURVES


@dataclass(frozen=True)
class Parted:
    """What methods counted, apart: for measures, and for curves."""

    tallies: pa.Table
    aggregates: pa.Table
    draws: pa.Table
    points: tuple[pa.Table, pa.Table, pa.Table]
    """Tallies, aggregates and draws of points on curves."""

    @classmethod
    def of(
        cls,
        tallies: pa.Table,
        aggregates: pa.Table,
        draws: pa.Table,
        rule: Rule,
        limits: Sequence[Threshold],
    ) -> "Parted":
        """Part the statistics: points of measures with many of them, and all of parts of a group, are for curves.

        Args:
            tallies: of all methods.
            aggregates: of all methods.
            draws: of all methods; what was drawn on permuted labels stays with its measure.
            rule: by which points stay measures.
            limits: a point that one may be about stays a measure.
        """
        permuted = set(_names(draws.filter(pc.equal(draws["reference"], "null"))).to_pylist())
        every = tallies, aggregates, draws
        masks = [_moved(table, rule, limits, permuted) for table in every]
        for place in (0, 1):
            masks[place] = pc.or_(masks[place], pc.greater(every[place]["subgroup"], 0))
        retained = [table.filter(pc.invert(mask)) for table, mask in zip(every, masks, strict=True)]
        tallied, aggregated, draws_of_points = (table.filter(mask) for table, mask in zip(every, masks, strict=True))
        return cls(retained[0], retained[1], retained[2], (tallied, aggregated, draws_of_points))


def _moved(table: pa.Table, rule: Rule, limits: Sequence[Threshold], permuted: Collection[str]) -> Any:
    """Which rows are of points on curves, all of their groups alike."""
    mask = pa.chunked_array([np.zeros(table.num_rows, np.bool_)])
    for method, measures in rule.items():
        of_method = pc.equal(table["method"], method)
        examined = {base_name(limit.measure) for limit in limits} | {name.split(_BETWEEN)[1] for name in permuted}
        all_points = [measure for measure, points in measures.items() if not points and measure not in examined]
        if all_points:
            mask = pc.or_(mask, pc.and_(of_method, pc.is_in(table["measure"], pa.array(all_points))))
        some_points = [measure for measure in measures if measure not in all_points]
        some = pc.and_(of_method, pc.is_in(table["measure"], pa.array(some_points, pa.string())))
        distinct = pc.unique(_names(table.filter(some))).to_pylist()
        leaving = [name for name in distinct if name not in permuted and not _stays(name, rule, limits)]
        if leaving:
            place = np.flatnonzero(some.to_numpy(zero_copy_only=False))
            points = pc.is_in(_names(table.filter(some)), pa.array(leaving)).to_numpy(zero_copy_only=False)
            further = np.zeros(table.num_rows, np.bool_)
            further[place[points]] = True
            mask = pc.or_(mask, pa.chunked_array([further]))
    return mask


_BETWEEN = "\n"


def _names(table: pa.Table) -> Any:
    return pc.binary_join_element_wise(*(table[name] for name in _IDENTITY), _BETWEEN)


def _stays(name: str, rule: Rule, limits: Sequence[Threshold]) -> bool:
    """Whether points of this method, measure and parameters are measures."""
    method, measure, text = name.split(_BETWEEN)
    points = rule.get(method, {}).get(measure)
    if points is None:
        return True
    parameters = json.loads(text)
    if points and all(parameters.get(key, value) == value for key, value in points.items()):
        return True
    return any(
        base_name(limit.measure) == measure
        and limit.method in (None, method)
        and limit.parameters.items() <= parameters.items()
        for limit in limits
    )


def measured_alone(table: pa.Table, measures: pa.Table) -> pa.Table:
    """The statistics with a row in the table of measures."""
    of_group = pc.equal(table["subgroup"], 0)
    return table.filter(pc.and_(of_group, pc.is_in(_names(table), _names(measures).combine_chunks())))


def curves_of(points: Sequence[pa.Table], level: float) -> dict[str, pa.Table]:
    """The tables of curves, from the tallies, aggregates and draws of points."""
    query = (Path(__file__).parent / "sql" / "curves.sql").read_text(encoding="utf-8")
    tail = (1 - level) / 2
    tallies, aggregates, draws = points
    in_order = aggregates.append_column(
        "place", pa.array(np.arange(aggregates.num_rows))
    )  # names as the method has them
    with connected() as connection:
        for name, table in zip(("tallies", "aggregates", "draws"), (tallies, in_order, draws), strict=True):
            connection.register(name, table)
        rows = connection.sql(query, params={"tail": tail, "enough": ENOUGH}).to_arrow_table()
        events, of = (rows[name].to_numpy(zero_copy_only=False) for name in ("events", "of"))
        low, high = np.full((2, rows.num_rows), np.nan)
        with_units = np.flatnonzero(of > 0)
        low[with_units], high[with_units] = wilsons(events[with_units], of[with_units], quantile(tail))
        for name, ends in (("low", low), ("high", high)):
            rows = rows.append_column(name, pa.array(ends, from_pandas=True))
        connection.register("points", rows)
        keys = ", ".join(f'"{name}"' for name in (*OF_CURVE, "measure", _DENOMINATOR))
        order = ", ".join(f"{name} NULLS FIRST" for name in (*_ALONG, "place", "parameters"))
        parts = ", ".join(
            [f"json_extract_string(parameters, '$.{_DENOMINATOR}') AS {_DENOMINATOR}"]
            + [f"TRY_CAST(json_extract_string(parameters, '$.{name}') AS DOUBLE) AS {name}" for name in _ALONG]
        )
        query = f"SELECT *, dense_rank() OVER (ORDER BY {keys}) AS number FROM (SELECT *, {parts} FROM points)"  # noqa: S608 ours
        sorted_rows = connection.sql(f"{query} ORDER BY number, {order}").to_arrow_table()
    of_fgce = pc.equal(sorted_rows["method"], "fgce")
    parted = (sorted_rows.filter(of_fgce), sorted_rows.filter(pc.invert(of_fgce)))
    return {declared.name: _folded(declared, rows) for declared, rows in zip(CURVES, parted, strict=True)}


def _folded(declared: Table, rows: pa.Table) -> pa.Table:
    """Sorted rows of points as a row a curve with lists."""
    number = rows["number"].to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    offsets = pa.array(np.append(starts, len(number)).astype(np.int32))
    first = rows.take(pa.array(starts))
    columns: dict[str, pa.Array] = {}
    for column in declared.columns:
        name = "measure" if column.name == "curve" else column.name
        if column.type in ("doubles", "strings"):
            columns[column.name] = pa.ListArray.from_arrays(offsets, rows[name].combine_chunks())
        else:
            columns[column.name] = first[name].combine_chunks()
    return pa.table([columns[f.name].cast(f.type) for f in declared.schema()], schema=declared.schema())


# --------------------------------------------------------------------------------------------------------------------
# From arrays back to rows: a point as the table of measures would have it, for those who ask for one measure.


Row = dict[str, Any]
_UNTESTED = {"p": None, "q": None, "low": None, "high": None}


def rows_of(curves: Iterable[Row], references: Mapping[str, str]) -> Iterator[Row]:
    """The points of curves as rows of measures without a data set and a year, each followed by the mean of its draws.

    Args:
        curves: rows of a table of curves.
        references: protected attribute -> its reference group.
    """
    for curve in curves:
        whose = {name: curve[name] for name in OF_CURVE}
        reference = references.get(curve["protected_attribute"])
        lists = zip(curve["parameters"], *(curve[name] for name in LISTS), strict=True)
        for parameters, value, n, events, low, high, average, drawn_low, drawn_high, draws, note, drawn_note in lists:
            row = {**whose, **_UNTESTED, "measure": curve["curve"], "parameters": parameters, "reference_group": None}
            counts = {"n": _whole(n), "events": _whole(events), "low": low, "high": high}
            yield {**row, **counts, "value": value, **_told(value, n, events, note)}
            if average is None and not drawn_note.startswith(_WITHHELD):
                continue
            ends = {"n": _whole(draws), "events": None, "value": average, "low": drawn_low, "high": drawn_high}
            named = {"measure": f"{curve['curve']}_size_matched", "reference_group": reference}
            noted = "; ".join(part for part in (drawn_note, Note.RANGE * (drawn_low is not None)) if part)
            yield {**row, **named, **ends, **_told(average, 0, None, noted)}


def _told(value: float | None, n: float | None, events: float | None, note: str) -> Row:
    """State, reason and note of a point."""
    if value is not None:
        return {"state": str(State.INFORMATION), "reason": INFORMATION, "note": note}
    if note.startswith(_WITHHELD) or n is None:
        return {"state": str(State.INFORMATION), "reason": note, "note": ""}
    if Note.FEW in note.split("; ") and events is not None:
        return {"state": str(State.NOT_RUN), "reason": f"{events:.0f} of {n:.0f}", "note": str(Note.FEW)}
    return {"state": str(State.NOT_RUN), "reason": note or "not measured", "note": note}


def _whole(number: float | None) -> int | None:
    return None if number is None or math.isnan(number) else int(number)
