"""Declaration of a stage: a plain function, with the tables that it reads and writes.

The declaration determines its wiring, its key, the validation of its output, the quarantine, the lineage record and the
Prefect task. A stage sees Arrow tables and its settings, and no files, keys or Prefect.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
from threadpoolctl import threadpool_limits

from schemas.artifact import Artifact, Partition
from schemas.audit.spec import StageSettings
from schemas.errors import SuiteError
from schemas.table import Table
from schemas.tables.applications import MEMBERSHIPS, REFUSAL_COUNTS, REFUSALS
from schemas.terms import Refusal
from tasks.lake.drafts import Drafts, Written, drafts
from tasks.lake.store import Lake
from tasks.pipeline.lineage.cost import cpu_seconds, measured
from tasks.pipeline.lineage.digests import code_digest, versions
from tasks.pipeline.lineage.memory import telling_short_memory
from tasks.pipeline.lineage.refusals import Keeping, counts, kept, rows_counted, without
from tasks.pipeline.scratch import Scratch
from tasks.pipeline.stop_request import raise_if_stopped

_OF_REFUSALS = (REFUSALS, REFUSAL_COUNTS)
Inputs = Mapping[str, Sequence[Artifact]]
"""Table name -> its artifacts; several are read as one table, in this order."""


@dataclass(frozen=True)
class Produced:
    """Output of a stage."""

    tables: Mapping[str, pa.Table | Written]
    refusals: pa.Table = field(default_factory=REFUSALS.empty)
    rows_in: int | None = None
    """Units that came in, where they are not the rows of the first table read."""
    declared: Mapping[str, Table] = field(default_factory=dict)
    """Declarations that the audit spec completed, by table name."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    keeping: Keeping = field(default_factory=Keeping)
    """How the refused rows are counted, and which of them are written."""

    def unheld(self) -> dict[str, pa.Table | Written]:
        """All tables as the function gives them; nothing is held against its declaration."""
        told = counts(self.refusals, self.keeping)
        return {**self.tables, REFUSALS.name: self.refusals, REFUSAL_COUNTS.name: told}


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
    streams: bool = False

    @property
    def of_applications(self) -> tuple[Table, ...]:
        """Tables of which a row is one application: rows of theirs are refused, and those of no others."""
        return tuple(table for table in self.writes if table.per_application)

    def key(self, inputs: Inputs, settings: StageSettings, modules: Sequence[str] = ()) -> str:
        """Cache key: a hash of settings, inputs, reached code and versions of libraries."""
        said = {
            "stage": self.name,
            "settings": settings.identifying(),
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
        rows = lake.storage.local / "tmp" / f"{self.name}-{key}-rows"
        with lake.lock(f"{self.name}-{key}"), drafts(lake.storage.local, rows) as growing:
            scratch = Scratch(lake, self.name, key)
            with telling_short_memory(f"stage {self.name}"):
                found = lake.find(self.name, key) or self._compute(lake, key, inputs, settings, (scratch, growing))
            if self.resumable:
                scratch.clear()
            return found

    def _compute(
        self, lake: Lake, key: str, inputs: Inputs, settings: StageSettings, places: tuple[Scratch, Drafts]
    ) -> Partition:
        with measured() as cost:
            tables = self.read(lake, inputs)
            scratch, growing = places
            own: dict[str, Any] = {"scratch": scratch} if self.resumable else {}
            own |= {"drafts": growing} if self.streams else {}
            produced = self.function(*tables, settings=settings, **own)
            raise_if_stopped()
            rows_in = produced.rows_in if produced.rows_in is not None else tables[0].num_rows
            before = cpu_seconds()
            content, refusals, results = hold(self, produced, rows_in)
            validating = cpu_seconds() - before
        out, refused = content[self.writes[0].name].num_rows, refusals.num_rows
        if REFUSAL_COUNTS.name in content:
            refused = rows_counted(content[REFUSAL_COUNTS.name])
        record = {
            "stage": self.name,
            "key": key,
            "inputs": [a.model_dump() for t in self.reads for a in inputs[t.name]],
            "rows": {"in": rows_in, "out": out, "refused": refused},
            **cost,
            "validation_cpu_seconds": round(validating, 3),
            "versions": versions(),
        }
        return lake.publish(
            self.name, key, {**content, "refusals": refusals, "validations": results}, produced.files, record
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


def hold(stage: Stage, produced: Produced, rows_in: int) -> tuple[dict[str, pa.Table | Written], pa.Table, pa.Table]:
    """Hold every table of a stage against its declaration; set bad application rows aside; check the balance.

    Returns:
        The tables that are written, with the counts of refused rows where the stage may refuse some; the refused rows
        that are written; and the results in the shape of ``VALIDATIONS``.

    Raises:
        SuiteError: a failure that no quarantine mends, named with table, column, expectation, counts and row ids.
    """
    from tasks.pipeline.validation.boundary import as_table

    contents, refusals = {table.name: produced.tables[table.name] for table in stage.writes}, produced.refusals
    told = _told(stage, produced, contents, refusals)
    outcomes = _validated(stage, produced, told, rows_in)
    failed = {name: [o for o in of_table if not o.success] for name, of_table in outcomes.items()}
    results = [(table.name, o, not o.success) for table in stage.writes for o in outcomes[table.name]]
    for table in stage.writes:
        if failed[table.name]:
            if not (table.per_application and all(o.row_ids for o in failed[table.name])):
                raise SuiteError(_describe(stage.name, table.name, failed[table.name]))
            contents[table.name], aside = _quarantine(stage.name, contents[table.name], failed[table.name])
            refusals = pa.concat_tables([refusals, aside])
    if any(failed[table.name] for table in stage.writes):
        told = _told(stage, produced, contents, refusals)
        outcomes = _validated(stage, produced, told, rows_in)
    for name, of_table in outcomes.items():
        if bad := [o for o in of_table if not o.success]:
            raise SuiteError(_describe(stage.name, name, bad))
    results += [(table.name, o, False) for table in _OF_REFUSALS for o in outcomes.get(table.name, ())]
    results += [(stage.writes[0].name, o, False) for o in outcomes.get(_balance_of(stage), ())]
    return (
        {name: told[name] for name in told if name != REFUSALS.name},
        told[REFUSALS.name],
        as_table(stage.name, results),
    )


def _told(stage: Stage, produced: Produced, contents: Mapping[str, Any], refusals: pa.Table) -> dict[str, Any]:
    """The tables that are written, those of refused rows among them: their counts where the stage may refuse some."""
    written, told = kept(refusals, produced.keeping), dict(contents)
    if MEMBERSHIPS in stage.writes:
        told[MEMBERSHIPS.name] = without(contents[MEMBERSHIPS.name], refusals, written)
    if stage.of_applications:
        told[REFUSAL_COUNTS.name] = counts(refusals, produced.keeping)
    return {**told, REFUSALS.name: written}


def _validated(stage: Stage, produced: Produced, told: Mapping[str, Any], rows_in: int) -> dict[str, list[Any]]:
    """Outcomes by table, in the order in which failures are told; those of the balance last."""
    from tasks.pipeline.validation.boundary import validate_all

    tables = [*stage.writes, *(table for table in _OF_REFUSALS if table.name in told)]
    read = [each.dataset() if isinstance(each, Written) else each for each in (told[t.name] for t in tables)]
    declared = [(each, produced.declared.get(t.name, t)) for each, t in zip(read, tables, strict=True)]
    refused = rows_counted(told[REFUSAL_COUNTS.name]) if REFUSAL_COUNTS.name in told else told[REFUSALS.name].num_rows
    rows = (rows_in, told[stage.writes[0].name].num_rows, refused) if stage.balanced else None
    return dict(
        zip([*(table.name for table in tables), _balance_of(stage)], validate_all(declared, rows), strict=False)
    )


def _balance_of(stage: Stage) -> str:
    return f"{stage.writes[0].name} and refusals"


def _quarantine(stage: str, content: pa.Table | Written, failed: Sequence[Any]) -> tuple[pa.Table | Written, pa.Table]:
    """Split off the rows that broke an expectation, each with the first one that it broke."""
    first: dict[str, Any] = {}
    for outcome in failed:
        for row_id in outcome.row_ids:
            first.setdefault(row_id, outcome)
    broken = pa.array(list(first), pa.string())
    if isinstance(content, Written):
        rows = content.dataset().to_table(filter=pads.field("row_id").isin(broken))
        stays: pa.Table | Written = content.filtered(
            lambda batch: pc.invert(pc.is_in(batch["row_id"], value_set=broken))
        )
    else:
        bad = pc.is_in(content["row_id"], value_set=broken)
        rows, stays = content.filter(bad), content.filter(pc.invert(bad))
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
        weight=[1.0] * n,
    )
    return stays, aside


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
    streams: bool = False,
) -> Callable[[Callable[..., Produced]], Stage]:
    """Declare a stage.

    Args:
        reads: the tables that the function takes, in its order.
        writes: the tables that it gives; the first one is balanced against the rows that came in.
        resources: patterns under ``tasks/`` of files that decide its output.
        balanced: whether its first table and its refusals must add up to the rows that came in.
        resumable: whether the function also takes ``scratch``, where it leaves what it can go on from when it was
            stopped; what it gives must not depend on where it was.
        streams: whether the function also takes ``drafts``, where it puts rows of tables that are too long to be held.
    """

    def declare(function: Callable[..., Produced]) -> Stage:
        settings = get_type_hints(function)["settings"]
        tables = tuple(reads), tuple(writes)
        return Stage(function.__name__, function, *tables, settings, tuple(resources), balanced, resumable, streams)

    return declare
