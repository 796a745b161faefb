"""The refused rows of a source: counted, those drawn that are written, and the groups of all rows that are.

A row that is not written is a number here, never a Python object.
"""
# ruff: noqa: S608 names are ours

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.source import KeptRule
from schemas.tables.applications import MEMBERSHIPS, REFUSALS
from tasks.ingest.pushdown.judged import Judged
from tasks.ingest.pushdown.reasons import Line
from tasks.ingest.sources.raw import Unread
from tasks.lake.drafts import Drafts, Written
from tasks.pipeline.lineage import refusals as lineage
from tasks.pipeline.lineage.refusals import Keeping, Kinds, whole

if TYPE_CHECKING:
    import duckdb

_STAGE = "ingest"


@dataclass(frozen=True)
class Refused:
    """What is written of the refused rows, and of the groups."""

    refusals: pa.Table
    memberships: pa.Table | Written
    keeping: Keeping


def refused(
    judged: Judged,
    unread: Sequence[Unread],
    rule: KeptRule,
    seed: int,
    connection: "duckdb.DuckDBPyConnection",
    drafts: Drafts,
) -> Refused:
    """Count the refused rows and those that could not be read, and draw those that are written."""
    lines = list(dict.fromkeys([*judged.lines, *((each.reason.value, each.column) for each in unread)]))
    connection.register("unread", _unread(unread, lines))
    kinds = _kinds(judged, lines, connection)
    every = whole(rule, kinds.total)
    drawn = _drawn(rule, seed, connection) if not every else None
    rows = _rows(judged, lines, drawn)
    rows = pa.concat_tables([rows, _told(unread, drawn)])
    memberships = _memberships(judged, None if drawn is None else drawn["place"], drafts)
    return Refused(rows, memberships, Keeping(rule, seed, memberships, counted=kinds, given=rows.num_rows))


def _unread(unread: Sequence[Unread], lines: Sequence[Line]) -> pa.Table:
    """Rows of which nothing could be read, beside the view ``judged``."""
    line = {each: i for i, each in enumerate(lines)}
    return pa.table(
        {
            "place": pa.array([each.row for each in unread], pa.int64()),
            "row_id": pa.array([f"line-{each.row}" for each in unread], pa.string()),
            "refused": pa.array([line[each.reason.value, each.column] for each in unread], pa.int32()),
        }
    )


def _kinds(judged: Judged, lines: Sequence[Line], connection: "duckdb.DuckDBPyConnection") -> Kinds:
    """Numbers of refused rows that are alike; those that could not be read are of no group."""
    order = sorted(range(len(judged.attributes)), key=lambda i: judged.attributes[i])
    groups, none = [f"g{i}" for i in order], ["NULL::VARCHAR"] * len(order)
    alike = ", ".join(["refused", "favourable", *groups])
    of_no_group = ", ".join(["refused", "NULL::BOOLEAN", *none])
    found = connection.sql(
        f"SELECT {alike}, count(*) AS n FROM judged WHERE refused IS NOT NULL GROUP BY ALL "
        f"UNION ALL SELECT {of_no_group}, count(*) FROM unread GROUP BY refused"
    ).to_arrow_table()
    reason, column = _words(found["refused"], lines)
    told = [pa.array([_STAGE] * found.num_rows, pa.string()), reason, column, *found.columns[1:]]
    return Kinds.of([judged.attributes[i] for i in order], told)


def _drawn(rule: KeptRule, seed: int, connection: "duckdb.DuckDBPyConnection") -> pa.Table:
    """Numbers of the rows that are written, each with the number of rows that it stands for."""
    found = []
    if rule == "sample":
        hashed = f"md5_number_lower(concat({seed:d}, ':', row_id))"
        found = connection.sql(
            f"SELECT count(*), min_by(place, {hashed}, {lineage.SAMPLED_ROWS}) FROM ("
            "SELECT place, row_id, refused FROM judged WHERE refused IS NOT NULL "
            "UNION ALL SELECT place, row_id, refused FROM unread) GROUP BY refused"
        ).fetchall()
    places = [place for _, drawn in found for place in drawn]
    weights = [n / len(drawn) for n, drawn in found for _ in drawn]
    return pa.table({"place": pa.array(places, pa.int64()), "weight": pa.array(weights, pa.float64())})


def _rows(judged: Judged, lines: Sequence[Line], drawn: pa.Table | None) -> pa.Table:
    """The refused rows of the table that are written, in the order of the source."""
    schema, found = REFUSALS.schema(), []
    for batch in judged.batches(["place", "row_id", "refused", "favourable"]):
        rows = batch.filter(pc.is_valid(batch["refused"]))
        weight = pa.array(np.ones(rows.num_rows))
        if drawn is not None:
            at = pc.index_in(rows["place"], value_set=drawn["place"].combine_chunks())
            rows, at = rows.filter(pc.is_valid(at)), at.drop_null()
            weight = drawn["weight"].combine_chunks().take(at)
        reason, column = _words(rows["refused"], lines)
        stage, detail = pa.array([_STAGE] * rows.num_rows, pa.string()), pa.nulls(rows.num_rows, pa.string())
        arrays = [rows["row_id"], rows["place"], stage, reason, column, detail, rows["favourable"], weight]
        found.append(pa.Table.from_arrays(arrays, schema=schema))
    return pa.concat_tables([schema.empty_table(), *found]).combine_chunks()


def _told(unread: Sequence[Unread], drawn: pa.Table | None) -> pa.Table:
    """The rows of which nothing could be read, as far as they are written."""
    weight = None if drawn is None else dict(zip(*(column.to_pylist() for column in drawn.columns), strict=True))
    rows = [each for each in unread if weight is None or each.row in weight]
    return REFUSALS.build(
        row_id=[f"line-{each.row}" for each in rows],
        source_row=[each.row for each in rows],
        stage=[_STAGE] * len(rows),
        reason=[each.reason for each in rows],
        column=[each.column for each in rows],
        detail=[each.detail for each in rows],
        favourable=[None] * len(rows),
        weight=[1.0 if weight is None else weight[each.row] for each in rows],
    )


def _words(line: pa.Array, lines: Sequence[Line]) -> tuple[pa.Array, pa.Array]:
    """Reason and column of the numbers of lines."""
    reasons = pa.array([reason for reason, _ in lines], pa.string())
    columns = pa.array([column for _, column in lines], pa.string())
    return pc.take(reasons, line), pc.take(columns, line)


def _memberships(judged: Judged, drawn: pa.ChunkedArray | None, drafts: Drafts) -> pa.Table | Written:
    """The groups of the rows that are used and of the refused ones that are written, attribute by attribute."""
    schema = MEMBERSHIPS.schema()
    written = drafts.new(MEMBERSHIPS.name, schema)
    chosen = None if drawn is None else drawn.combine_chunks()
    for i, name in enumerate(judged.attributes):
        for batch in judged.batches(["place", "refused", "row_id", f"g{i}"]):
            rows = batch
            if chosen is not None:
                rows = batch.filter(pc.or_(pc.is_null(batch["refused"]), pc.is_in(batch["place"], value_set=chosen)))
            attribute = pa.array([name] * rows.num_rows, pa.string())
            written.append(pa.Table.from_arrays([rows["row_id"], attribute, rows[f"g{i}"]], schema=schema))
    ended = written.ended()
    return ended.combine_chunks() if isinstance(ended, pa.Table) else ended
