"""Declaration of a stage: a plain function, with the tables that it reads and writes.

The declaration determines its wiring, its key, the validation of its output, the quarantine, the lineage record and the
Prefect task. A stage sees Arrow tables and its settings, and no files, keys or Prefect.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

import pyarrow as pa
import pyarrow.compute as pc
from threadpoolctl import threadpool_limits

from schemas.artifact import Artifact, Partition
from schemas.audit.spec import StageSettings
from schemas.errors import EvenhandError, InfrastructureError, SuiteError
from schemas.table import Table
from schemas.tables.applications import REFUSALS
from schemas.terms import Refusal
from tasks.lake.store import Lake
from tasks.pipeline.lineage.digests import code_digest, peak_memory_mb, versions
from tasks.pipeline.scratch import Scratch
from tasks.pipeline.stop_request import raise_if_stopped

Inputs = Mapping[str, Sequence[Artifact]]
"""Table name -> its artifacts; several are read as one table, in this order."""


@dataclass(frozen=True)
class Produced:
    """Output of a stage."""

    tables: Mapping[str, pa.Table]
    refusals: pa.Table = field(default_factory=REFUSALS.empty)
    rows_in: int | None = None
    """Units that came in, where they are not the rows of the first table read."""
    declared: Mapping[str, Table] = field(default_factory=dict)
    """Declarations that the audit spec completed, by table name."""
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """A declared stage."""

    name: str
    function: Callable[..., Produced]
    reads: tuple[Table, ...]
    writes: tuple[Table, ...]
    settings: type[StageSettings]
    resources: tuple[str, ...]
    balanced: bool
    resumable: bool = False

    def key(self, inputs: Inputs, settings: StageSettings, modules: Sequence[str] = ()) -> str:
        """Cache key: a hash of settings, inputs, reached code and versions of libraries."""
        said = {
            "stage": self.name,
            "settings": settings.model_dump(mode="json"),
            "inputs": {table.name: [a.sha256 for a in inputs[table.name]] for table in self.reads},
            "code": code_digest([self.function.__module__, *modules], self.files()),
            "versions": versions(),
        }
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]

    def files(self) -> list[Path]:
        """The files beside its code that decide its output."""
        here = Path(__file__).parents[1]
        return [path for pattern in self.resources for path in here.glob(pattern)]

    def read(self, lake: Lake, inputs: Inputs) -> list[pa.Table]:
        """The tables that the function takes, in its order; one that no stage wrote is empty.

        Raises:
            IntegrityError: a file is missing or has been altered.
        """
        return [_whole(lake, table, inputs[table.name]) for table in self.reads]

    def run(self, lake: Lake, inputs: Inputs, settings: StageSettings, modules: Sequence[str] = ()) -> Partition:
        """The stage's partition: the one in the lake if its key is there, else computed, validated and published.

        Raises:
            SuiteError: what it wrote does not keep its declaration.
            EvenhandError: as the stage's function says.
        """
        raise_if_stopped()
        _one_thread_of_linear_algebra()
        key = self.key(inputs, settings, modules)
        with lake.lock(f"{self.name}-{key}"):
            scratch = Scratch(lake, self.name, key)
            found = lake.find(self.name, key) or self._compute(lake, key, inputs, settings, scratch)
            if self.resumable:
                scratch.clear()
            return found

    def _compute(self, lake: Lake, key: str, inputs: Inputs, settings: StageSettings, scratch: Scratch) -> Partition:
        started, clock = time.time(), time.perf_counter()
        tables = self.read(lake, inputs)
        try:
            own = {"scratch": scratch} if self.resumable else {}
            produced = self.function(*tables, settings=settings, **own)
        except EvenhandError:
            raise
        except MemoryError as error:
            raise InfrastructureError(
                f"stage {self.name} ran out of memory; narrow source.keep, or give it more"
            ) from error
        raise_if_stopped()
        rows_in = produced.rows_in if produced.rows_in is not None else tables[0].num_rows
        kept, refusals, results = hold(self, produced, rows_in)
        record = {
            "stage": self.name,
            "key": key,
            "inputs": [a.model_dump() for t in self.reads for a in inputs[t.name]],
            "rows": {"in": rows_in, "out": kept[self.writes[0].name].num_rows, "refused": refusals.num_rows},
            "started": started,
            "seconds": round(time.perf_counter() - clock, 3),
            "peak_memory_mb": round(peak_memory_mb(), 1),
            "versions": versions(),
        }
        return lake.publish(
            self.name, key, {**kept, "refusals": refusals, "validations": results}, produced.files, record
        )


def _one_thread_of_linear_algebra() -> None:
    """The last digits of a product depend on the number of threads: tables are the same bytes in every process.

    It holds for the whole process and is not undone, as years in threads of one process would undo it for each other.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of libraries that a stage loads later
    threadpool_limits(1, user_api="blas")


def _whole(lake: Lake, table: Table, artifacts: Sequence[Artifact]) -> pa.Table:
    """All artifacts of a table as one; none where no stage before wrote it."""
    return pa.concat_tables([lake.read(artifact) for artifact in artifacts]) if artifacts else table.empty()


def hold(stage: Stage, produced: Produced, rows_in: int) -> tuple[dict[str, pa.Table], pa.Table, pa.Table]:
    """Hold every table of a stage against its declaration; set bad application rows aside; check the balance.

    Returns:
        The tables kept, all refusals, and the results in the shape of ``VALIDATIONS``.

    Raises:
        SuiteError: a failure that no quarantine mends, named with table, column, expectation, counts and row ids.
    """
    from tasks.pipeline.validation import Outcome, as_table, validate, validate_balance

    kept, refusals = {}, produced.refusals
    results: list[tuple[str, Outcome, bool]] = []
    for table in (*stage.writes, REFUSALS):
        declared = produced.declared.get(table.name, table)
        content = refusals if table is REFUSALS else produced.tables[table.name]
        outcomes = validate(content, declared)
        failed = [o for o in outcomes if not o.success]
        mendable = table.per_application and all(o.row_ids for o in failed)
        results += [(table.name, o, mendable and not o.success) for o in outcomes]
        if failed and not mendable:
            raise SuiteError(_describe(stage.name, table.name, failed))
        while failed:  # a large table shows a few of its bad rows at a time
            content, aside = _quarantine(stage.name, content, failed)
            refusals = pa.concat_tables([refusals, aside])
            failed = [o for o in validate(content, declared) if not o.success]
        if table is not REFUSALS:
            kept[table.name] = content
    if stage.balanced:
        balance = validate_balance(rows_in, kept[stage.writes[0].name].num_rows, refusals.num_rows)
        results += [(stage.writes[0].name, o, False) for o in balance]
        if not all(o.success for o in balance):
            raise SuiteError(_describe(stage.name, f"{stage.writes[0].name} and refusals", balance))
    return kept, refusals, as_table(stage.name, results)


def _quarantine(stage: str, content: pa.Table, failed: Sequence[Any]) -> tuple[pa.Table, pa.Table]:
    """Split off the rows that broke an expectation, each with the first one that it broke."""
    first: dict[str, Any] = {}
    for outcome in failed:
        for row_id in outcome.row_ids:
            first.setdefault(row_id, outcome)
    bad = pc.is_in(content["row_id"], value_set=pa.array(list(first), pa.string()))
    rows = content.filter(bad)
    ids = rows["row_id"].to_pylist()
    n = len(ids)
    aside = REFUSALS.build(
        row_id=ids,
        source_row=rows["source_row"] if "source_row" in rows.column_names else [None] * n,
        stage=[stage] * n,
        reason=[Refusal.FAILED_EXPECTATION] * n,
        column=[first[i].column for i in ids],
        detail=[f"{first[i].expectation} {first[i].expected}" for i in ids],
        favourable=rows["favourable"] if "favourable" in rows.column_names else [None] * n,
    )
    return content.filter(pc.invert(bad)), aside


def _describe(stage: str, table: str, failed: Sequence[Any]) -> str:
    lines = [f"stage {stage}: table {table} does not keep what it declares; nothing of it was published:"]
    for o in failed:
        ids = f"; rows {', '.join(o.row_ids[:3])}" if o.row_ids else ""
        lines.append(
            f"  column {o.column or '-'}: {o.expectation} {o.expected}: {o.unexpected} of {o.elements} values{ids}"
        )
    lines.append("  look at these rows in the source, or mend the audit spec's `columns` (type, order, bounds)")
    return "\n".join(lines)


def stage(
    *,
    reads: Sequence[Table] = (),
    writes: Sequence[Table],
    resources: Sequence[str] = (),
    balanced: bool = True,
    resumable: bool = False,
) -> Callable[[Callable[..., Produced]], Stage]:
    """Declare a stage.

    Args:
        reads: the tables that the function takes, in its order.
        writes: the tables that it gives; the first one is balanced against the rows that came in.
        resources: patterns under ``tasks/`` of files that decide its output.
        balanced: whether its first table and its refusals must add up to the rows that came in.
        resumable: whether the function also takes ``scratch``, where it leaves what it can go on from when it was
            stopped; what it gives must not depend on where it was.
    """

    def declare(function: Callable[..., Produced]) -> Stage:
        settings = get_type_hints(function)["settings"]
        tables = tuple(reads), tuple(writes)
        return Stage(function.__name__, function, *tables, settings, tuple(resources), balanced, resumable)

    return declare
