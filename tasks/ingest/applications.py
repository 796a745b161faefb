"""Applications and refused rows of a source, in the order of the source."""

# ruff: noqa: S608 names are ours

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.column import ColumnSpec
from schemas.audit.source import KeptRule, Source
from schemas.audit.spec import Decision, Protected
from schemas.errors import DataQualityError, InfrastructureError, SpecError, TooFewError, nearest
from schemas.tables.applications import APPLICATIONS, MEMBERSHIPS, REFUSALS
from schemas.terms import Kind
from tasks.ingest.sources import raw
from tasks.ingest.sources.raw import Laid, Unread
from tasks.ingest.statement import Line, Statement
from tasks.lake import store
from tasks.lake.storage import Setting, connected
from tasks.lake.store import Drafts, Written
from tasks.pipeline import stage as lineage
from tasks.pipeline.resources import NAME, allowed_mb
from tasks.pipeline.stage import Keeping, Kinds, whole

if TYPE_CHECKING:
    import duckdb


# --------------------------------------------------------------------------------------------------------------------
# The DuckDB of one ingest: its share of memory and threads, and where it puts what does not fit.


SHARE = 0.25
"""Of the memory that an audit may take."""
MOST_MB = 800.0
"""The tables that the stage holds and Arrow's readers come on top of it: a whole year stays below 1.5 GB."""


@contextmanager
def database(spill: Path | None) -> Iterator["duckdb.DuckDBPyConnection"]:
    """A new connection; what does not fit into memory goes to a folder, if one is given.

    Raises:
        InfrastructureError: EVENHAND_MEMORY is no size; the rows do not fit into the memory or onto the disk.
    """
    import duckdb

    memory = f"{min(SHARE * allowed_mb(), MOST_MB):.0f}MB"
    config: dict[str, Setting] = {
        "memory_limit": memory,
        "temp_directory": "" if spill is None else str(spill),
        "preserve_insertion_order": False,
    }
    try:
        with connected(config) as connection:
            yield connection
    except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
        raise _unfit(memory, error) from error
    except OSError as error:
        if "Out of Memory Error" in str(error):  # as Arrow hands it on from a stream
            raise _unfit(memory, error) from error
        raise


def _unfit(memory: str, error: Exception) -> InfrastructureError:
    first = str(error).strip().partition("\n")[0]
    return InfrastructureError(
        f"the source could not be read within {memory} of memory: {first}; set {NAME} higher, or make room on the disk"
    )


# --------------------------------------------------------------------------------------------------------------------
# Judged rows in the order of the source, from a stream in any order and in bounded memory.
#
# DuckDB's own sort of wide rows ends with an error where it should spill, whatever the folder for it: few rows are
# sorted at once, and many are first put into files by ranges of their number, each of which is sorted for itself.


RANGE = 2**19
"""Numbers of rows of a file."""
_HELD = 2**14
"""Rows of a range that are held until they are written."""


def in_order(batches: Iterable[pa.RecordBatch], folder: Path | None) -> Iterator[pa.Table]:
    """The rows by ``place``, in tables one after the other.

    Args:
        batches: of one schema.
        folder: is made if the rows are more than are held at once; they are held without one.
    """
    waiting, pending, files = iter(batches), list[pa.RecordBatch](), None
    for batch in waiting:
        pending.append(batch)
        if folder is not None and sum(pending_batch.num_rows for pending_batch in pending) > store.GROUP:
            files = _Ranges(folder, batch.schema)
            for pending_batch in pending:
                files.add(pending_batch)
            pending = []
            break
    if files is not None:
        for batch in waiting:
            files.add(batch)
        yield from files.tables()
    elif pending:
        yield _sorted(pa.Table.from_batches(pending))


def _sorted(rows: pa.Table) -> pa.Table:
    place = rows["place"].to_numpy()
    return rows if (place[1:] > place[:-1]).all() else rows.take(pa.array(np.argsort(place, kind="stable")))


class _Ranges:
    """A file for each range of numbers, open until all rows have arrived."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._schema = folder, schema
        self._held: dict[int, list[pa.RecordBatch]] = defaultdict(list)
        self._writers: dict[int, pa.ipc.RecordBatchFileWriter] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        of = batch["place"].to_numpy() // RANGE
        for at in np.unique(of).tolist():
            self._held[at].append(batch.filter(pa.array(of == at)))
            if sum(part.num_rows for part in self._held[at]) >= _HELD:
                self._write(at)

    def tables(self) -> Iterator[pa.Table]:
        """The rows of each range in order; the file of the range is removed afterwards."""
        for at in sorted({*self._held, *self._writers}):
            self._write(at)
            self._writers[at].close()
            with pa.ipc.open_file(str(self._path(at))) as file:
                rows = file.read_all()
            yield _sorted(rows)
            self._path(at).unlink()

    def _write(self, at: int) -> None:
        if at not in self._writers:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writers[at] = pa.ipc.new_file(str(self._path(at)), self._schema, options=options)
        rows = pa.Table.from_batches(self._held.pop(at, []), self._schema)
        self._writers[at].write_table(rows.combine_chunks())

    def _path(self, at: int) -> Path:
        return self._folder / f"{at}.arrow"


# --------------------------------------------------------------------------------------------------------------------
# The rows of a source as they are judged: applications of those that are used, and what became of each.
#
# Both grow on the disk where they are many, so that no more than a row group of either is held.


BATCH = 65_536
"""Rows of a record batch."""
_JUDGED = {"place": pa.int64(), "row_id": pa.string(), "refused": pa.int32(), "favourable": pa.bool_()}


@dataclass(frozen=True)
class Judged:
    """What became of the rows, in the order of the source; the connection has all of them as the view ``judged``."""

    applications: pa.Table | Written
    rows: int
    lines: Sequence[Line]
    """Reason and column by the number in ``refused`` of the view."""
    attributes: tuple[str, ...]
    """Protected attributes; ``g0``, ``g1``, ... of the view are their groups."""
    every: pa.Table | Written
    """The view's rows."""

    def refused_for(self, reasons: Sequence[str], connection: "duckdb.DuckDBPyConnection") -> int:
        """Number of rows that are refused for one of some reasons."""
        numbers = [number for number, (reason, _) in enumerate(self.lines) if reason in reasons]
        ((rows,),) = connection.execute(
            "SELECT count(*) FROM judged WHERE list_contains($numbers, refused)", {"numbers": numbers or [-1]}
        ).fetchall()
        return int(rows)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Columns of the view in the order of the source; DuckDB does not keep an order that no statement requires."""
        if isinstance(self.every, Written):
            return self.every.batches(columns)
        return iter(self.every.select(columns).to_batches(BATCH))


def judge(
    statement: Statement,
    columns: Mapping[str, ColumnSpec],
    attributes: Sequence[str],
    connection: "duckdb.DuckDBPyConnection",
    drafts: Drafts,
) -> Judged:
    """Stream the statement's rows apart."""
    kinds = [(name, pa.float64() if c.type is Kind.CONTINUOUS else pa.string()) for name, c in columns.items()]
    wide = pa.schema([*APPLICATIONS.schema(), *(pa.field(name, kind) for name, kind in kinds)])
    groups = [f"g{i}" for i in range(len(attributes))]
    narrow = pa.schema([*_JUDGED.items(), *((name, pa.string()) for name in groups)])
    used, every, rows = drafts.new(APPLICATIONS.name, wide), drafts.new("judged", narrow), 0
    stream = connection.sql(statement.sql).to_arrow_reader(BATCH)
    for batch in in_order(stream, drafts.aside("by number")):
        rows += batch.num_rows
        every.append(batch.select(narrow.names).cast(narrow))
        usable_rows = batch.filter(pc.is_null(batch["refused"]))
        fixed = [
            usable_rows["row_id"],
            usable_rows["place"],
            usable_rows["favourable"],
            usable_rows["outcome"],
            usable_rows["exempt"],
        ]
        typed = [usable_rows[f"v{i}"] for i in range(len(columns))]
        used.append(pa.Table.from_arrays([*fixed, *typed], names=wide.names).cast(wide))
    applications = used.ended()
    if isinstance(applications, pa.Table):
        applications = applications.combine_chunks()
    ended = every.ended()
    if isinstance(ended, Written):
        connection.read_parquet(str(ended.path)).create_view("judged")
    else:
        connection.register("judged", ended)
    return Judged(applications, rows, statement.lines, tuple(attributes), ended)


# --------------------------------------------------------------------------------------------------------------------
# Whether what was read can be audited: both decisions, every group that the spec names, and someone to compare.


MOST_UNLISTED = 0.01
"""Share of the decisions of a source with a recipe that may be in no list of the spec."""


def year(
    column: str | None,
    source: Source,
    expected_year: int,
    statement: Statement,
    source_view: Laid,
    connection: "duckdb.DuckDBPyConnection",
) -> int | None:
    """The year by the rows that are kept and have one; None where none has, or no column holds it.

    Raises:
        DataQualityError: a row is of another year than the one that is wanted.
    """
    if column is None:
        return None
    rows_by_year = years(column, statement, source_view, connection)
    return raw.year_of(source.words, column, rows_by_year, expected_year)


def years(
    column: str, statement: Statement, source_view: Laid, connection: "duckdb.DuckDBPyConnection"
) -> dict[str, int]:
    """Rows that are kept by their year, the most frequent one first; of a column of dates the year of the date."""
    text, missing = statement.cells.text(column), statement.cells.missing(column)
    text = f"left({text}, 4)" if column in source_view.dates else text
    return dict(
        connection.sql(
            f"SELECT {text} AS year, count(*) FROM {statement.rows} WHERE {statement.kept} AND NOT {missing} "
            "GROUP BY year ORDER BY count(*) DESC, min(place)"
        ).fetchall()
    )


def only_lender(column: str, statement: Statement, connection: "duckdb.DuckDBPyConnection") -> str | None:
    """The lender of all rows that are kept; None where they are of several, or of none that is named."""
    text, missing = statement.cells.text(column), statement.cells.missing(column)
    lenders = connection.sql(
        f"SELECT DISTINCT CASE WHEN NOT {missing} THEN {text} END FROM {statement.rows} WHERE {statement.kept} LIMIT 2"
    ).fetchall()
    return lenders[0][0] if len(lenders) == 1 else None


def check_decision(decision: Decision, statement: Statement, connection: "duckdb.DuckDBPyConnection") -> None:
    """A side of the decision that no row has, while rows have values of neither side, is a misspelling.

    Raises:
        SpecError: the side, with the nearest of the values that rows have.
    """
    text, missing = statement.cells.text(decision.column), statement.cells.missing(decision.column)
    values = {value for (value,) in connection.sql(f"SELECT DISTINCT {text} FROM cells WHERE NOT {missing}").fetchall()}
    neither = sorted(values - {*decision.favourable, *decision.unfavourable, *decision.neither})
    for side in ("favourable", "unfavourable"):
        declared_values = getattr(decision, side)
        if neither and values.isdisjoint(declared_values):
            hint = nearest(declared_values[0], neither)
            raise SpecError(
                f"no row of {decision.column!r} holds any of {list(declared_values)}; {hint}", ("decision", side)
            )


def check_listed(decision: Decision, statement: Statement, connection: "duckdb.DuckDBPyConnection") -> None:
    """Check that few rows hold a decision that is in no list of the spec: more of them are a new word.

    Raises:
        DataQualityError: they are above 1 % of the rows that are kept and have a decision; the values are named.
    """
    text, missing = statement.cells.text(decision.column), statement.cells.missing(decision.column)
    rows = dict(
        connection.sql(
            f"SELECT {text} AS value, count(*) FROM {statement.rows} WHERE {statement.kept} AND NOT {missing} "
            "GROUP BY value ORDER BY count(*) DESC, value"
        ).fetchall()
    )
    listed = {*decision.favourable, *decision.unfavourable, *decision.neither}
    unlisted = {value: n for value, n in rows.items() if value not in listed}
    if (number := sum(unlisted.values())) > MOST_UNLISTED * sum(rows.values()):
        named = ", ".join(f"{value!r} ({n:,} rows)" for value, n in list(unlisted.items())[:5])
        further = f" and {len(unlisted) - 5} more" if len(unlisted) > 5 else ""
        raise DataQualityError(
            f"{number:,} rows of {decision.column!r} hold values that no list of `decision` has: {named}{further}; "
            "add each to favourable, unfavourable or neither"
        )


def check_usable(judged: Judged, source: Source, decision: Decision, connection: "duckdb.DuckDBPyConnection") -> int:
    """The number of rows that are used, which have both decisions.

    Raises:
        DataQualityError: there is no row, or none that can be used, with the reasons that refuse most.
        TooFewError: every decision is the same.
    """
    name = " and ".join(source.paths) or source.kind
    if judged.rows == 0:
        raise DataQualityError(f"{name} has no rows: at least one application is needed; give a table with rows")
    ((usable, favourable),) = connection.sql(
        "SELECT count(*), count_if(favourable) FROM judged WHERE refused IS NULL"
    ).fetchall()
    if usable == 0:
        raise DataQualityError(
            f"no row of {name} can be used: {_most_refused(judged, connection)}; "
            "look at `decision`, `columns` and `source` in the spec"
        )
    if favourable in (0, usable):
        side = "favourable" if favourable else "unfavourable"
        every = f"all {usable:,} usable decisions are" if usable > 1 else "the one usable decision is"
        raise TooFewError(
            f"{every} {side}, so there is nothing to compare: add rows of both kinds, or correct the spec; "
            f"decision.column is {decision.column!r}, favourable {list(decision.favourable)}"
        )
    return int(usable)


def _most_refused(judged: Judged, connection: "duckdb.DuckDBPyConnection", group: str = "", of: str = "") -> str:
    """The three reasons that refuse most rows; of the group named ``of`` in the column ``group``, if given."""
    where, bound = (f"WHERE {group} = ?", [of]) if group else ("", [])
    query = f"SELECT refused, count(*) FROM judged {where} GROUP BY refused ORDER BY count(*) DESC, min(place) LIMIT 3"
    lines = [(*judged.lines[line], n) for line, n in connection.execute(query, bound).fetchall()]
    return "; ".join(f"{n} rows: {reason} ({column})" for reason, column, n in lines)


def check_groups(
    judged: Judged, protected: Sequence[Protected], usable: int, connection: "duckdb.DuckDBPyConnection"
) -> None:
    """Check that every group of the spec occurs, and that two of each attribute remain among the usable rows.

    Raises:
        SpecError: no row belongs to a group, with the nearest that is there.
        TooFewError: one group is left, or the reference group is not.
    """
    for i, p in enumerate(protected):
        group_uses = connection.sql(f"SELECT g{i}, bool_or(refused IS NULL) FROM judged GROUP BY g{i}").fetchall()
        observed_groups, usable_groups = (
            sorted(group for group, _ in group_uses),
            {group for group, used in group_uses if used},
        )
        for group in (*p.groups, p.reference):
            if group not in observed_groups:
                where = ("groups", group) if group in p.groups else ("reference",)
                raise SpecError(
                    f"no row belongs to group {group!r}; {nearest(group, observed_groups)}", ("protected", i, *where)
                )
        if len(usable_groups) == 1:
            raise TooFewError(
                f"protected attribute {p.name!r} has one group only among the {usable:,} usable rows "
                f"({next(iter(usable_groups))!r}): there is no group to compare it with"
            )
        if p.reference not in usable_groups:
            raise TooFewError(
                f"every row of the reference group {p.reference!r} of {p.name!r} was refused: "
                f"{_most_refused(judged, connection, f'g{i}', p.reference)}; look at `columns` (types and bounds), "
                "leave out columns without values, or choose another reference"
            )


# --------------------------------------------------------------------------------------------------------------------
# The refused rows of a source: counted, those drawn that are written, and the groups of all rows that are.
#
# A row that is not written is a number here, never a Python object.


_STAGE = "ingest"


@dataclass(frozen=True)
class Refused:
    """What is written of the refused rows, and of the groups."""

    refusals: pa.Table
    memberships: pa.Table | Written
    keeping: Keeping


def refused(
    judged_rows: Judged,
    unread: Sequence[Unread],
    rule: KeptRule,
    seed: int,
    connection: "duckdb.DuckDBPyConnection",
    drafts: Drafts,
) -> Refused:
    """Count the refused rows and those that could not be read, and draw those that are written."""
    lines = list(
        dict.fromkeys([*judged_rows.lines, *((unread_row.reason.value, unread_row.column) for unread_row in unread)])
    )
    connection.register("unread", _unread(unread, lines))
    kinds_lines = lines
    order = sorted(range(len(judged_rows.attributes)), key=lambda i: judged_rows.attributes[i])
    groups, none = [f"g{i}" for i in order], ["NULL::VARCHAR"] * len(order)
    alike = ", ".join(["refused", "favourable", *groups])
    of_no_group = ", ".join(["refused", "NULL::BOOLEAN", *none])
    counted_kinds = connection.sql(
        f"SELECT {alike}, count(*) AS n FROM judged WHERE refused IS NOT NULL GROUP BY ALL "
        f"UNION ALL SELECT {of_no_group}, count(*) FROM unread GROUP BY refused"
    ).to_arrow_table()
    reason, column = _words(counted_kinds["refused"], kinds_lines)
    columns = [pa.array([_STAGE] * counted_kinds.num_rows, pa.string()), reason, column, *counted_kinds.columns[1:]]
    kinds = Kinds.of([judged_rows.attributes[i] for i in order], columns)
    every = whole(rule, kinds.total)
    sample = _drawn(rule, seed, connection) if not every else None
    rows = _rows(judged_rows, lines, sample)
    rows = pa.concat_tables([rows, _told(unread, sample)])
    memberships = _memberships(judged_rows, None if sample is None else sample["place"], drafts)
    return Refused(rows, memberships, Keeping(rule, seed, memberships, counts=kinds, written=rows.num_rows))


def _unread(unread: Sequence[Unread], lines: Sequence[Line]) -> pa.Table:
    """Rows that could not be read, in addition to those of the view ``judged``."""
    line = {key: i for i, key in enumerate(lines)}
    return pa.table(
        {
            "place": pa.array([unread_row.row for unread_row in unread], pa.int64()),
            "row_id": pa.array([f"line-{unread_row.row}" for unread_row in unread], pa.string()),
            "refused": pa.array(
                [line[unread_row.reason.value, unread_row.column] for unread_row in unread], pa.int32()
            ),
        }
    )


def _drawn(rule: KeptRule, seed: int, connection: "duckdb.DuckDBPyConnection") -> pa.Table:
    """Numbers of the rows that are written, each with the number of rows that it represents."""
    samples = []
    if rule == "sample":
        hashed = f"md5_number_lower(concat({seed:d}, ':', row_id))"
        samples = connection.sql(
            f"SELECT count(*), min_by(place, {hashed}, {lineage.SAMPLED_ROWS}) FROM ("
            "SELECT place, row_id, refused FROM judged WHERE refused IS NOT NULL "
            "UNION ALL SELECT place, row_id, refused FROM unread) GROUP BY refused"
        ).fetchall()
    places = [place for _, places in samples for place in places]
    weights = [n / len(places) for n, places in samples for _ in places]
    return pa.table({"place": pa.array(places, pa.int64()), "weight": pa.array(weights, pa.float64())})


def _rows(judged_rows: Judged, lines: Sequence[Line], sample: pa.Table | None) -> pa.Table:
    """The refused rows of the table that are written, in the order of the source."""
    schema, tables = REFUSALS.schema(), []
    for batch in judged_rows.batches(["place", "row_id", "refused", "favourable"]):
        rows = batch.filter(pc.is_valid(batch["refused"]))
        weight = pa.array(np.ones(rows.num_rows))
        if sample is not None:
            at = pc.index_in(rows["place"], value_set=sample["place"].combine_chunks())
            rows, at = rows.filter(pc.is_valid(at)), at.drop_null()
            weight = sample["weight"].combine_chunks().take(at)
        reason, column = _words(rows["refused"], lines)
        stage, detail = pa.array([_STAGE] * rows.num_rows, pa.string()), pa.nulls(rows.num_rows, pa.string())
        arrays = [rows["row_id"], rows["place"], stage, reason, column, detail, rows["favourable"], weight]
        tables.append(pa.Table.from_arrays(arrays, schema=schema))
    return pa.concat_tables([schema.empty_table(), *tables]).combine_chunks()


def _told(unread: Sequence[Unread], sample: pa.Table | None) -> pa.Table:
    """The rows that could not be read, as far as they are written."""
    weight = None if sample is None else dict(zip(*(column.to_pylist() for column in sample.columns), strict=True))
    rows = [unread_row for unread_row in unread if weight is None or unread_row.row in weight]
    return REFUSALS.build(
        row_id=[f"line-{unread_row.row}" for unread_row in rows],
        source_row=[unread_row.row for unread_row in rows],
        stage=[_STAGE] * len(rows),
        reason=[unread_row.reason for unread_row in rows],
        column=[unread_row.column for unread_row in rows],
        detail=[unread_row.detail for unread_row in rows],
        favourable=[None] * len(rows),
        weight=[1.0 if weight is None else weight[unread_row.row] for unread_row in rows],
    )


def _words(line: pa.Array, lines: Sequence[Line]) -> tuple[pa.Array, pa.Array]:
    """Reason and column of the numbers of lines."""
    reasons = pa.array([reason for reason, _ in lines], pa.string())
    columns = pa.array([column for _, column in lines], pa.string())
    return pc.take(reasons, line), pc.take(columns, line)


def _memberships(judged_rows: Judged, sampled_places: pa.ChunkedArray | None, drafts: Drafts) -> pa.Table | Written:
    """The groups of the rows that are used and of the refused ones that are written, attribute by attribute."""
    schema = MEMBERSHIPS.schema()
    written = drafts.new(MEMBERSHIPS.name, schema)
    chosen = None if sampled_places is None else sampled_places.combine_chunks()
    for i, name in enumerate(judged_rows.attributes):
        for batch in judged_rows.batches(["place", "refused", "row_id", f"g{i}"]):
            rows = batch
            if chosen is not None:
                rows = batch.filter(pc.or_(pc.is_null(batch["refused"]), pc.is_in(batch["place"], value_set=chosen)))
            attribute = pa.array([name] * rows.num_rows, pa.string())
            written.append(pa.Table.from_arrays([rows["row_id"], attribute, rows[f"g{i}"]], schema=schema))
    ended = written.ended()
    return ended.combine_chunks() if isinstance(ended, pa.Table) else ended
