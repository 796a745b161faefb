"""Finds whether a row of the source was used, and if not, why: from the tables of a run, or from the source again.

A run keeps a sample of its refused rows where they are many. Why a row was refused follows from the row and the spec,
so the stage that refused it is called once more, on the source or the applications of the run, and keeps every row.
"""

import pyarrow as pa
import pyarrow.compute as pc

from flows.runs.index import read_manifest
from flows.runs.replay import planned_again
from schemas.artifact import Partition
from schemas.audit.source import KeptRefusals
from schemas.errors import SpecError
from schemas.tables.applications import APPLICATIONS, FEATURES, REFUSALS
from tasks.ingest.stage import ingest
from tasks.lake.store import Lake
from tasks.pipeline.stage import hold
from tasks.plan import inputs
from tasks.preprocessing.stage import preprocess

_COLUMNS = ["row_id", "source_row", "stage", "reason", "column", "detail"]


def why_refused(lake: Lake, run: str, row_id: str) -> pa.Table | None:
    """Stage, reason, column and detail of a refused row, as one row; None of one that no stage refused.

    Raises:
        SpecError: the source has no such row; the run is of another version.
        InfrastructureError: the row is not in the tables of the run, and its source is not there.
        IntegrityError: nor is the source the one that the run read; a table is not the one that was written.
    """
    done = [Partition.model_validate(entry) for entry in read_manifest(lake, run)["partitions"]]
    refusals_of_row = [_row(lake.read(a), row_id) for p in done for a in p.tables if a.table == REFUSALS.name]
    refusal = pa.concat_tables(refusals_of_row)
    if refusal.num_rows:
        return refusal.slice(0, 1).select(_COLUMNS)
    if _has(lake, done, FEATURES.name, row_id):
        return None
    planned = planned_again(lake, run)[1]
    stage = preprocess if _has(lake, done, APPLICATIONS.name, row_id) else ingest
    # The stage is called once more: does it refuse the row?
    step = next(step for step in planned.steps if step.stage is stage)
    tables = stage.read(lake, inputs(step, done))
    settings = step.settings.model_copy(update={"refusals": KeptRefusals(keep="all")})
    produced = stage.function(*tables, settings=settings)
    refusal = _row(produced.refusals, row_id)
    if refusal.num_rows == 0:
        rows_in = produced.rows_in if produced.rows_in is not None else tables[0].num_rows
        refusal = _row(hold(stage, produced, rows_in)[1], row_id)
    if refusal.num_rows == 0:
        column = planned.spec.row_id
        ids = f"ids are those of column {column!r}" if column else "ids are numbers of rows, from 1"
        raise SpecError(f"--row {row_id}: the source of run {run} has no such row; {ids}")
    return refusal.slice(0, 1).select(_COLUMNS)


def _has(lake: Lake, done: list[Partition], table: str, row_id: str) -> bool:
    return any(_row(lake.read(a), row_id).num_rows for p in done for a in p.tables if a.table == table)


def _row(table: pa.Table, row_id: str) -> pa.Table:
    return table.filter(pc.equal(table["row_id"], row_id))
