"""Declaration of a stage: its tables, key, validation and output; refused rows; what a stage keeps to resume."""

import hashlib
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from threadpoolctl import ThreadpoolController

from schemas.artifact import Artifact, Partition
from schemas.audit.expectations import OwnExpectation
from schemas.audit.source import KeptRule
from schemas.audit.spec import AuditSpec, StageSettings
from schemas.errors import IntegrityError, SuiteError
from schemas.table import Table
from schemas.tables.applications import MEMBERSHIPS, REFUSAL_COUNTS, REFUSALS
from schemas.terms import Refusal
from tasks.lake.storage import connected
from tasks.lake.store import Drafts, Lake, Written, drafts
from tasks.pipeline.digests import code_digest, versions
from tasks.pipeline.progress import raise_if_stopped
from tasks.pipeline.resources import cpu_seconds, measured, telling_short_memory

# --------------------------------------------------------------------------------------------------------------------
# Refused rows of a stage: counted exactly by kind, and kept as rows, all of them or a weighted sample.
#
# Rows are counted before any is left out, so that counts never rest on the sample. Scope: the tables ``refusals`` and
# ``refusal_counts``. Which rows are refused and why: the stages, and ``tasks.pipeline.stage.hold``.


EXPECTATIONS = "expectations.json"
"""File of a partition with the suites of its tables and their results; restricted, as it counts rows exactly."""
WHOLE_ROWS = 100_000
"""Refused rows of a stage up to which ``sample`` keeps all of them."""
SAMPLED_ROWS = 1_000
"""Rows of a reason and column in a sample."""

_LIKE = ["stage", "reason", "column", "favourable"]
_HASHED = "SELECT md5_number_lower(concat($seed, ':', row_id)) AS hash FROM refusals"


@dataclass(frozen=True)
class Kinds:
    """Numbers of refused rows that are alike in reason, column, decision and the groups of all attributes."""

    attributes: tuple[str, ...]
    """In the order of their names; one without a name where there is none."""
    rows: pa.Table
    """``stage``, ``reason``, ``column``, ``favourable``, ``group 0``, ``group 1``, ... and ``n``, in any order."""

    @classmethod
    def of(cls, attributes: Sequence[str], columns: Sequence[pa.ChunkedArray | pa.Array]) -> "Kinds":
        """From the columns of ``rows``."""
        groups = [(f"group {i}", pa.string()) for i in range(len(attributes))]  # names of ours, whatever theirs are
        like = [(name, REFUSAL_COUNTS.schema().field(name).type) for name in _LIKE]
        schema = pa.schema([*like, *groups, ("n", pa.int64())])
        return cls(tuple(attributes), pa.Table.from_arrays(list(columns), names=schema.names).cast(schema))

    @property
    def total(self) -> int:
        """Number of rows."""
        return int(pc.sum(self.rows["n"]).as_py() or 0)

    def table(self) -> pa.Table:
        """In the shape of ``REFUSAL_COUNTS``, the kinds numbered in the order of what they are alike in."""
        names = self.rows.column_names[:-1]
        kinds = self.rows.sort_by([(name, "ascending") for name in names]).to_pylist()
        marks = [(name, f"group {i}") for i, name in enumerate(self.attributes)]
        lines = [(number, kind, *mark) for number, kind in enumerate(kinds) for mark in marks]
        return REFUSAL_COUNTS.build(
            **{name: [kind[name] for _, kind, _, _ in lines] for name in _LIKE},
            kind=[number for number, _, _, _ in lines],
            protected_attribute=[name for _, _, name, _ in lines],
            group=[kind[mark] for _, kind, _, mark in lines],
            n=[kind["n"] for _, kind, _, _ in lines],
        )


@dataclass(frozen=True)
class Keeping:
    """How the refused rows of a stage are counted and kept."""

    rule: KeptRule = "sample"
    seed: int = 0
    memberships: pa.Table | Written | None = None
    """Groups of the rows that came in, as ``MEMBERSHIPS``."""
    failed: bool = False
    """Whether rows that failed an expectation are kept by any rule: after ingest nothing else tells which they are."""
    counts: Kinds | None = None
    """The refused rows, where the stage has counted them itself and gives those alone that are written."""
    written: int = 0
    """Number of the rows that such a stage gives."""

    @property
    def left_out(self) -> int:
        """Refused rows that the stage has counted and not given."""
        return 0 if self.counts is None else self.counts.total - self.written


def counted(refusals: pa.Table, memberships: pa.Table | None) -> pa.Table:
    """Number of refused rows by kind, exactly, in the shape of ``REFUSAL_COUNTS``.

    Rows that ``memberships`` does not have, as nothing of them could be read, are of no group of each attribute.
    """
    return kinds_of(refusals, memberships).table() if refusals.num_rows else REFUSAL_COUNTS.empty()


def counts(refusals: pa.Table, keeping: Keeping) -> pa.Table:
    """The same of all refused rows of a stage, those among them that it has counted and not given."""
    if keeping.counts is None:
        return counted(refusals, _of(refusals, keeping.memberships))
    later, kinds = refusals.slice(keeping.written), keeping.counts
    if later.num_rows:
        rows = kinds_of(later, _of(later, keeping.memberships)).rows
        kinds = replace(kinds, rows=pa.concat_tables([kinds.rows, rows]))
    return kinds.table()


def kinds_of(refusals: pa.Table, memberships: pa.Table | None) -> Kinds:
    """The kinds of refused rows."""
    rows, names = refusals.select(_LIKE), list[str]()
    for name, groups in _by_attribute(refusals["row_id"], memberships):
        rows = rows.append_column(f"group {len(names)}", groups)
        names.append(name)
    return Kinds.of(names, rows.group_by(rows.column_names).aggregate([([], "count_all")]).columns)


def _of(refusals: pa.Table, memberships: pa.Table | Written | None) -> pa.Table | None:
    """The memberships of these rows, where they lie in a file."""
    if not isinstance(memberships, Written):
        return memberships
    return memberships.dataset().to_table(filter=pc.field("row_id").isin(refusals["row_id"].combine_chunks()))


def _by_attribute(ids: pa.ChunkedArray, memberships: pa.Table | None) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Attributes in the order of their names, each with the group of every row; of one without a name if none is."""
    names = [] if memberships is None else sorted(pc.unique(memberships["protected_attribute"]).to_pylist())
    if memberships is None or not names:
        yield "", pa.chunked_array([pa.nulls(len(ids), pa.string())])
        return
    for name in names:
        attribute_memberships = memberships.filter(pc.equal(memberships["protected_attribute"], name))
        at = pc.index_in(ids, value_set=attribute_memberships["row_id"].combine_chunks())
        yield name, attribute_memberships["group"].combine_chunks().take(at.combine_chunks())


def rows_counted(counts: pa.Table) -> int:
    """Number of rows in ``REFUSAL_COUNTS``, where each is counted once for every attribute."""
    if counts.num_rows == 0:
        return 0
    attributes = counts["protected_attribute"].to_pylist()
    return sum(n for n, name in zip(counts["n"].to_pylist(), attributes, strict=True) if name == attributes[0])


def kept(refusals: pa.Table, keeping: Keeping) -> pa.Table:
    """The refused rows that are written, in their order, each with the number of rows that it represents.

    A sample is drawn by the hash of seed and row id: whether a row is drawn depends neither on the order of the rows
    nor on the rows of other reasons.
    """
    if whole(keeping.rule, refusals.num_rows + keeping.left_out):
        return refusals
    sampled_rows = refusals.slice(0, keeping.written if keeping.left_out else 0)
    later = refusals.slice(sampled_rows.num_rows)
    failed = pc.and_(pc.equal(later["reason"], str(Refusal.FAILED_EXPECTATION)), pa.scalar(keeping.failed))
    always, rest = later.filter(failed), later.filter(pc.invert(failed))
    if keeping.rule == "counts":
        return pa.concat_tables([sampled_rows, always])
    return pa.concat_tables([sampled_rows, _sampled(rest, keeping.seed), always])


def whole(rule: KeptRule, rows: int) -> bool:
    """Whether every one of so many refused rows of a stage is written."""
    return rule == "all" or (rule == "sample" and rows <= WHOLE_ROWS)


def _sampled(refusals: pa.Table, seed: int) -> pa.Table:
    with connected() as connection:
        connection.register("refusals", refusals.select(["row_id"]))
        hashes = connection.sql(_HASHED, params={"seed": seed}).fetchnumpy()["hash"]
    reason, column = (
        refusals[name].combine_chunks().dictionary_encode(null_encoding="encode") for name in ("reason", "column")
    )
    # ``(rows,)`` number of each row's reason and column
    lines = reason.indices.to_numpy().astype(np.int64) * len(column.dictionary) + column.indices.to_numpy()
    weights = np.zeros(refusals.num_rows)
    for line in np.unique(lines):
        rows = np.flatnonzero(lines == line)
        sample = rows[np.argsort(hashes[rows], kind="stable")[:SAMPLED_ROWS]]
        weights[sample] = len(rows) / len(sample)
    at = REFUSALS.schema().get_field_index("weight")
    chosen = refusals.set_column(at, REFUSALS.schema().field(at), pa.array(weights))
    return chosen.filter(pa.array(weights > 0))


def without(memberships: pa.Table | Written, refusals: pa.Table, written: pa.Table) -> pa.Table | Written:
    """Memberships but for the refused rows that are not written."""
    if written.num_rows == refusals.num_rows:
        return memberships
    written_ids = written["row_id"].combine_chunks()
    gone = refusals["row_id"].filter(pc.invert(pc.is_in(refusals["row_id"], value_set=written_ids))).combine_chunks()
    if isinstance(memberships, Written):
        return memberships.filtered(lambda rows: pc.invert(pc.is_in(rows["row_id"], value_set=gone)))
    return memberships.filter(pc.invert(pc.is_in(memberships["row_id"], value_set=gone)))


# --------------------------------------------------------------------------------------------------------------------
# Scratch place of a long stage: intermediate results, from which it resumes after a stop.
#
# It lies in the lake under ``unfinished/<stage>-<key>``; the holder of the key's lock may read and write it. It
# survives a failure of the stage or its process, and is removed once the stage's partition is published.


log = logging.getLogger("evenhand")

_Parsed = TypeVar("_Parsed")


class Scratch:
    """Files of one key of one stage; without a lake nothing is kept."""

    def __init__(self, lake: Lake | None = None, stage: str = "", key: str = "") -> None:
        """Nothing is made on disk before the first file is written."""
        self._lake, self._folder = lake, f"unfinished/{stage}-{key}"

    def path(self, name: str) -> Path | str | None:
        """Where a file is, or would be: a path, or the URI that it has in a lake at one."""
        if self._lake is None:
            return None
        where = self._lake.storage.where(f"{self._folder}/{name}")
        return where if "://" in where else Path(where)

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if it does not exist. The writer has to detect whether it is complete."""
        return None if self._lake is None else self._lake.storage.read(f"{self._folder}/{name}")

    def whole(self, name: str, parse: Callable[[bytes], _Parsed]) -> _Parsed | None:
        """The parsed content of a file; None where there is none, or a damaged one, which is logged."""
        content = self.read(name)
        try:
            return None if content is None else parse(content)
        except IntegrityError as error:
            log.warning("%s: %s", self.path(name), error)
            return None

    def where(self, name: str) -> str:
        """The path of a file in an error's words; nothing without a lake."""
        return "" if self.path(name) is None else f" (in {self.path(name)})"

    def write(self, name: str, content: bytes) -> None:
        """Write a file in one step, over the one that was there: it is read as it was before, or as it is then.

        The work stops here if that was requested: it can go on from this very file.

        Raises:
            KeyboardInterrupt: the process was asked to stop.
            InfrastructureError: the disk is full or fails.
        """
        if self._lake is not None:
            self._lake.write_file(f"{self._folder}/{name}", content, draft=f"{self._folder}/.{name}")
        raise_if_stopped()

    def clear(self) -> None:
        """Remove all files."""
        if self._lake is not None:
            self._lake.storage.remove(self._folder)


NOWHERE: Final = Scratch()
"""For a stage that is called as the plain function that it is."""


# --------------------------------------------------------------------------------------------------------------------
# Declaration of a stage: a plain function, with the tables that it reads and writes.
#
# The declaration determines its wiring, its key, the validation of its output, the quarantine, the lineage record and
# the Prefect task. A stage sees Arrow tables and its settings, and no files, keys or Prefect.


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
    expectations: Mapping[str, Sequence[OwnExpectation]] = field(default_factory=dict)
    """Expectations of the user's about tables, by table name."""
    laws: Mapping[str, Sequence[OwnExpectation]] = field(default_factory=dict)
    """Expectations of the stage about what its tables count, by table name."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    keeping: Keeping = field(default_factory=Keeping)
    """How the refused rows are counted, and which of them are written."""

    def unheld(self) -> dict[str, pa.Table | Written]:
        """All tables as the function gives them; nothing is held against its declaration."""
        refusal_counts = counts(self.refusals, self.keeping)
        return {**self.tables, REFUSALS.name: self.refusals, REFUSAL_COUNTS.name: refusal_counts}


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
        """Tables with one row per application: only rows of these tables are refused."""
        return tuple(table for table in self.writes if table.per_application)

    def key(self, inputs: Inputs, settings: StageSettings, modules: Sequence[str] = ()) -> str:
        """Cache key: a hash of settings, inputs, reached code and versions of libraries."""
        parts = {
            "stage": self.name,
            "settings": settings.identifying(),
            "inputs": {table.name: [a.sha256 for a in inputs[table.name]] for table in self.reads},
            "code": code_digest([self.function.__module__, *modules], self.files()),
            "versions": versions(),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]

    def files(self) -> list[Path]:
        """The files besides its code that decide its output."""
        root = Path(__file__).parents[1]
        return [path for pattern in self.resources for path in root.glob(pattern)]

    def read(self, lake: Lake, inputs: Inputs) -> list[pa.Table]:
        """The tables that the function takes, in its order; one that no stage wrote is empty.

        Raises:
            IntegrityError: a file is missing or has been altered.
        """
        return [
            pa.concat_tables([lake.read(artifact) for artifact in artifacts]) if artifacts else table.empty()
            for table, artifacts in ((table, inputs[table.name]) for table in self.reads)
        ]

    def run(self, lake: Lake, inputs: Inputs, settings: StageSettings, modules: Sequence[str] = ()) -> Partition:
        """The stage's partition: taken from the lake if its key exists, else computed, validated and published.

        Raises:
            SuiteError: what it wrote does not keep its declaration.
            EvenhandError: as the stage's function says.
        """
        raise_if_stopped()
        # The last digits of a product depend on the number of threads: tables are the same bytes in every process. It
        # is not undone, as years in threads of one process would undo it for each other.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of libraries that a stage loads later
        _libraries(len(sys.modules)).limit(limits=1, user_api="blas")
        key = self.key(inputs, settings, modules)
        rows = lake.storage.local / "tmp" / f"{self.name}-{key}-rows"
        with lake.lock(f"{self.name}-{key}"), drafts(lake.storage.local, rows) as growing:
            scratch = Scratch(lake, self.name, key)
            with telling_short_memory(f"stage {self.name}"):
                partition = lake.find(self.name, key) or self._compute(lake, key, inputs, settings, (scratch, growing))
            if self.resumable:
                scratch.clear()
            return partition

    def _compute(
        self, lake: Lake, key: str, inputs: Inputs, settings: StageSettings, places: tuple[Scratch, Drafts]
    ) -> Partition:
        with measured() as cost:
            tables = self.read(lake, inputs)
            scratch, growing = places
            extra_arguments: dict[str, Any] = {"scratch": scratch} if self.resumable else {}
            extra_arguments |= {"drafts": growing} if self.streams else {}
            produced = self.function(*tables, settings=settings, **extra_arguments)
            raise_if_stopped()
            rows_in = produced.rows_in if produced.rows_in is not None else tables[0].num_rows
            before = cpu_seconds()
            content, refusals, results, expectations = hold(self, produced, rows_in)
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
        written = {**content, "refusals": refusals, "validations": results}
        return lake.publish(self.name, key, written, {**produced.files, EXPECTATIONS: expectations}, record)


@lru_cache(1)
def _libraries(modules: int) -> ThreadpoolController:  # noqa: ARG001 a new module may have brought another library
    """The libraries with threads, which are looked for once for so many loaded modules: it takes milliseconds."""
    return ThreadpoolController()


def hold(
    stage: Stage, produced: Produced, rows_in: int
) -> tuple[dict[str, pa.Table | Written], pa.Table, pa.Table, bytes]:
    """Hold every table of a stage against its declaration; set bad application rows aside; check the balance.

    Returns:
        The tables that are written, with the counts of refused rows where the stage may refuse some; the refused rows
        that are written; the results in the shape of ``VALIDATIONS``; and for each table its suite with the result of
        Great Expectations, as JSON: of the rows before any was set aside.

    Raises:
        SuiteError: a failure that no quarantine mends, named with table, column, expectation, counts and row ids.
        InfrastructureError: an expectation could not be evaluated.
    """
    from tasks.pipeline.validation import as_table

    contents, refusals = {table.name: produced.tables[table.name] for table in stage.writes}, produced.refusals
    held_tables = _told(stage, produced, contents, refusals)
    outcomes, kept_results = _validated(stage, produced, held_tables, rows_in)
    failed = {name: [o for o in of_table if not o.success] for name, of_table in outcomes.items()}
    results = [(table.name, o, not o.success) for table in stage.writes for o in outcomes[table.name]]
    for table in stage.writes:
        if failed[table.name]:
            if not (table.per_application and all(o.row_ids for o in failed[table.name])):
                raise SuiteError(_describe(stage.name, table.name, failed[table.name]))
            contents[table.name], aside = _quarantine(stage.name, contents[table.name], failed[table.name])
            refusals = pa.concat_tables([refusals, aside])
    if any(failed[table.name] for table in stage.writes):
        held_tables = _told(stage, produced, contents, refusals)
        outcomes, later = _validated(stage, produced, held_tables, rows_in)
        kept_results |= {table.name: later[table.name] for table in _OF_REFUSALS if table.name in later}
    for name, of_table in outcomes.items():
        if bad := [o for o in of_table if not o.success]:
            raise SuiteError(_describe(stage.name, name, bad))
    results += [(table.name, o, False) for table in _OF_REFUSALS for o in outcomes.get(table.name, ())]
    results += [(stage.writes[0].name, o, False) for o in outcomes.get(_balance_of(stage), ())]
    for name, law in produced.laws.items():
        law_outcomes, kept_results[f"{name}, law"] = _lawful(stage, name, contents[name], law)
        results += [(name, o, False) for o in law_outcomes]
    for name, own in produced.expectations.items():
        own_outcomes, kept_results[f"{name}, own expectations"] = _own(stage, name, contents[name], own)
        results += [(name, o, False) for o in own_outcomes]
    return (
        {name: held_tables[name] for name in held_tables if name != REFUSALS.name},
        held_tables[REFUSALS.name],
        as_table(stage.name, results),
        _in_lines(stage.name, kept_results).encode(),
    )


def _in_lines(stage: str, kept_results: Mapping[str, Any]) -> str:
    """The results as JSON, a table a line: with an indent Python writes it five times as long."""
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(result)}" for name, result in kept_results.items())
    return f'{{"stage": {json.dumps(stage)}, "tables": {{\n{lines}\n}}}}\n'


def _own(
    stage: Stage, name: str, content: pa.Table | Written, expectations: Sequence[OwnExpectation]
) -> tuple[list[Any], dict[str, Any]]:
    """Outcomes of the user's own expectations about a table, and the result that is kept.

    Raises:
        SuiteError: a critical one did not hold.
    """
    from tasks.pipeline.validation.own import judge

    outcomes, kept_result = judge(name, content.dataset() if isinstance(content, Written) else content, expectations)
    if any(not o.success and o.severity == "critical" for o in outcomes):
        raise SuiteError(_describe_own(stage.name, name, outcomes))
    return outcomes, kept_result


def _lawful(
    stage: Stage, name: str, content: pa.Table | Written, law: Sequence[OwnExpectation]
) -> tuple[list[Any], dict[str, Any]]:
    """Outcomes of the stage's own expectations about what a table counts, and the result that is kept.

    Raises:
        SuiteError: the counts do not add up.
    """
    from tasks.pipeline.validation.own import judge

    outcomes, kept_result = judge(name, content.dataset() if isinstance(content, Written) else content, law)
    if bad := [o for o in outcomes if not o.success]:
        raise SuiteError(_describe(stage.name, name, bad))
    return outcomes, kept_result


def _told(stage: Stage, produced: Produced, contents: Mapping[str, Any], refusals: pa.Table) -> dict[str, Any]:
    """The tables that are written, those of refused rows among them: their counts where the stage may refuse some."""
    written, held_tables = kept(refusals, produced.keeping), dict(contents)
    if MEMBERSHIPS in stage.writes:
        held_tables[MEMBERSHIPS.name] = without(contents[MEMBERSHIPS.name], refusals, written)
    if stage.of_applications:
        held_tables[REFUSAL_COUNTS.name] = counts(refusals, produced.keeping)
    return {**held_tables, REFUSALS.name: written}


def _validated(
    stage: Stage, produced: Produced, held_tables: Mapping[str, Any], rows_in: int
) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Outcomes by table, in the order in which failures are reported, those of the balance last; and what is kept."""
    from tasks.pipeline.validation import judged

    tables = [*stage.writes, *(table for table in _OF_REFUSALS if table.name in held_tables)]
    sources = [
        content.dataset() if isinstance(content, Written) else content
        for content in (held_tables[t.name] for t in tables)
    ]
    declared = [(content, produced.declared.get(t.name, t)) for content, t in zip(sources, tables, strict=True)]
    refused = (
        rows_counted(held_tables[REFUSAL_COUNTS.name])
        if REFUSAL_COUNTS.name in held_tables
        else held_tables[REFUSALS.name].num_rows
    )
    rows = (rows_in, held_tables[stage.writes[0].name].num_rows, refused) if stage.balanced else None
    validation = judged(declared, rows)
    names = [*(table.name for table in tables), _balance_of(stage)]
    return dict(zip(names, validation.outcomes, strict=False)), validation.results


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
        rows = content.dataset().to_table(filter=pc.field("row_id").isin(broken))
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


def _describe_own(stage: str, table: str, outcomes: Sequence[Any]) -> str:
    lines = [f"stage {stage}: table {table} breaks critical `expectations` of the spec; nothing of it was published:"]
    for place, o in enumerate(outcomes):
        if not o.success and o.severity == "critical":
            ids = f"rows {', '.join(o.row_ids[:3])}" if o.row_ids else "no rows are named"
            of = f" of {o.column}" if o.column else ""
            counts = f"{o.unexpected} of {o.elements} values"
            lines.append(f"  expectations.{place}: {o.expectation}{of} {o.expected}: {counts}; {ids}")
    lines.append("  look at the source, or give an expectation `severity: warning` in the spec")
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


@dataclass(frozen=True, kw_only=True)
class OwnStage:
    """A stage of one method alone, declared as ``OWN_STAGE`` at the end of its ``stage.py``."""

    stage: Stage
    settings: Callable[[AuditSpec], StageSettings | None]
    """Makes its settings; None where the spec does not request the stage."""
