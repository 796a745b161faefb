"""DuckDB views over the lake, and bounded queries."""

import json
import re
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import pairwise
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import psutil
import pyarrow as pa
from pyarrow.fs import LocalFileSystem

from schemas.artifact import Artifact, Partition
from schemas.errors import EvenhandError, InfrastructureError, IntegrityError, SpecError, nearest
from schemas.questions import BEFORE, TABLES_BEFORE
from tasks.lake import log
from tasks.lake.storage import connected, group_memory, mapping_of
from tasks.lake.store import OF_PARTITION, VIEW, Lake, as_table, partition_of

# --------------------------------------------------------------------------------------------------------------------
# DuckDB views over the lake, one per table, each row with its run; ``stage_runs``, what stages cost; ``alerts``.
#
# Every reader of the lake opens its tables here. Arrow reads the files, whose digests are checked; DuckDB itself may
# open no file, whatever a statement says. Statements can reach DuckDB's temporary directory, so it is fresh, private
# and removed with the connection.


WITH_PARTITION = ("measures", "verdicts", "findings", "refusals")
"""Tables whose rows name the partition of their run, beside the stage runs."""
ALERTS = "alerts"
"""The view of whom was told how runs ended, where the lake has such records; and their folder."""
_OF_ALERT = pa.schema(
    [
        *((name, pa.string()) for name in ("time", "state", "subject", "rule", "to", "run", "outcome")),
        ("tries", pa.int64()),
        ("reason", pa.string()),
    ]
)
_PARTITIONS, _RUN = "partitions_of_runs", "run_"
_MOST_MEMORY = 8 * 10**9
_TIME = "%Y-%m-%dT%H:%M:%SZ"
"""How manifests write when a run was finished."""

# lock_configuration comes last: settings after it are refused
_SANDBOX = """
    SET python_enable_replacements = false;
    SET allow_persistent_secrets = false;
    SET autoinstall_known_extensions = false;
    SET autoload_known_extensions = false;
    SET enable_external_access = false;
    SET lock_configuration = true;
"""


def default_memory() -> int:
    """Default memory of a query in bytes: a quarter of what the machine or the container has, at most 8 GB."""
    return int(min(psutil.virtual_memory().total // 4, group_memory().limit / 4, _MOST_MEMORY))


@contextmanager
def open_views(
    lake: Lake, run: str | None = None, memory: int | None = None, tables: Collection[str] | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with one view per table, of one run or of all; it has no file but the lake's tables.

    Every file is checked against its digest first. Of all runs, those of which a file was removed are left out.
    What does not fit into ``memory`` bytes is spilled to a temporary directory that goes with the connection. Where
    ``tables`` are given, only these have views.

    Raises:
        SpecError: the lake holds no such run.
        IntegrityError: a manifest or a file is not the one that was written.
    """
    files: dict[str, list[tuple[str, str]]] = defaultdict(list)
    runs = _runs(lake, run)
    stages = {} if runs or run is not None else {UNFINISHED: {"partitions": newest_stages(lake)}}
    for name, manifest in (runs or stages).items():
        for artifact in (a for a in _artifacts(manifest) if tables is None or a.table in tables):
            files[artifact.table].append((name, str(lake.check(artifact.path, artifact.sha256))))
    with TemporaryDirectory(prefix="evenhand-sql-") as scratch, connected() as connection:
        connection.execute("CREATE SCHEMA internal")
        # Columns that name a row's partition are looked up by the run.
        rows = [(name, *partition_of(manifest)) for name, manifest in runs.items()]
        parted = [row for row in rows if row[1] is not None]
        extra_columns = "".join(f", CAST(NULL AS VARCHAR) AS {name}" for name in OF_PARTITION)
        if parted:
            columns = dict(zip((_RUN, *OF_PARTITION), map(list, zip(*parted, strict=True)), strict=True))
            connection.execute("USE internal")
            connection.from_arrow(pa.table(columns)).create(_PARTITIONS)
            connection.execute("USE memory.main")
            extra_columns = "".join(
                f", (SELECT p.{name} FROM internal.{_PARTITIONS} p WHERE p.{_RUN} = {{mark}}) AS {name}"  # noqa: S608
                for name in OF_PARTITION
            )
        for table, entries in files.items():
            _add_view(connection, table, entries, extra_columns if table in WITH_PARTITION else "")
        if not stages and (tables is None or VIEW in tables):
            _add_table(connection, VIEW, as_table(runs))
        if (tables is None or ALERTS in tables) and (alerts := _alerts(lake, run)):
            _add_table(connection, ALERTS, pa.Table.from_pylist(alerts, schema=_OF_ALERT))
        connection.execute("SET temp_directory = $scratch", {"scratch": scratch})
        connection.execute("SET memory_limit = $size", {"size": f"{(memory or default_memory()) // 1000}KB"})
        connection.execute(_SANDBOX)
        yield connection


UNFINISHED = "no run yet"
"""In the column `run` of the tables of a lake whose audits have not come to an end."""


def newest_stages(lake: Lake) -> list[dict[str, Any]]:
    """What stages of a lake without a run have written since the newest one read its source, in that order.

    Raises:
        SpecError: no stage has written anything.
    """
    written = {path: lake.storage.modified(path) for path in lake.storage.glob("stages/*/*/partition.json")}
    if not written:
        raise SpecError(f"the lake {lake.location} holds no run yet; `evenhand audit` makes one")
    since = max((at for path, at in written.items() if path.split("/")[1] == "ingest"), default=0)
    return [
        mapping_of(lake.storage.read(path))
        for path in sorted(written, key=written.__getitem__)
        if written[path] >= since
    ]


def latest_run(lake: Lake) -> str:
    """The run that was published last by the lake's log, as clocks are set back; without a log the last to finish.

    Raises:
        SpecError: the lake holds no run.
    """
    times, numbers = {}, log.published(lake)
    for run, path in _manifests(lake).items():
        # Without an end time in the manifest, that of the file counts, which copying changes. The manifest counts
        # seconds: of two runs in one second, the file that was written last is the later one.
        written = lake.storage.modified(path)
        try:
            finished = mapping_of(lake.storage.read(path))["finished"]
        except (ValueError, KeyError):
            finished = None
        if not isinstance(finished, str):
            finished = time.strftime(_TIME, time.gmtime(written // 10**9))
        times[run] = numbers.get(run, 0), finished, written
    return max(times, key=lambda run: times[run])


def _manifests(lake: Lake) -> dict[str, str]:
    """Run -> path of its manifest."""
    paths = lake.storage.glob("runs/*/manifest.json")
    if not paths:
        raise SpecError(f"the lake {lake.location} holds no run yet; `evenhand audit` makes one")
    return {path.split("/")[1]: path for path in paths}


def _runs(lake: Lake, run: str | None) -> dict[str, dict[str, Any]]:
    """Run -> its manifest."""
    if run is None and not lake.storage.glob("runs/*/manifest.json"):
        return {}
    manifests = _manifests(lake)
    if run is not None and run not in manifests:
        raise SpecError(f"the lake {lake.location} holds no run {run!r}; {nearest(run, list(manifests))}")
    runs = {}
    for name in manifests if run is None else [run]:
        path = manifests[name]
        try:
            content = mapping_of(lake.storage.read(path))
            artifacts = _artifacts(content)
        except (ValueError, KeyError, TypeError) as error:
            where = lake.storage.where(path)
            raise IntegrityError(f"{where} cannot be read as a manifest; run that audit again to rewrite it") from error
        if run is not None or all(lake.storage.exists(artifact.path) for artifact in artifacts):
            runs[name] = content
    return runs


def _artifacts(manifest: Mapping[str, Any]) -> list[Artifact]:
    return [artifact for entry in manifest["partitions"] for artifact in Partition.model_validate(entry).tables]


def _add_table(connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    """Make a view of a table in memory, such as what each stage of each run cost: it is of no file."""
    connection.execute("USE internal")
    connection.from_arrow(table).create(name)
    connection.execute("USE memory.main")
    connection.execute(f"CREATE VIEW {name} AS SELECT * FROM internal.{name}")  # noqa: S608 a name of ours


def _alerts(lake: Lake, run: str | None) -> list[dict[str, Any]]:
    """The records of alerts, of one run or of all (``flows.outcome.alerts`` writes them)."""
    alerts = []
    for path in lake.storage.glob(f"{ALERTS}/*.json"):
        try:
            alert = json.loads(lake.storage.read(path) or b"")
            row = {
                **alert,
                **{name: alert["ending"][name] for name in ("subject", "run")},
                "state": alert["ending"]["name"],
            }
        except (ValueError, KeyError, TypeError) as error:
            raise IntegrityError(f"{lake.storage.where(path)} is no record of an alert; remove it") from error
        alerts.append({name: row[name] for name in _OF_ALERT.names})
    return sorted((row for row in alerts if run in (None, row["run"])), key=lambda row: (row["time"], row["to"]))


def _add_view(
    connection: duckdb.DuckDBPyConnection, table: str, entries: Sequence[tuple[str, str]], extra_columns: str
) -> None:
    """Create the view of a table from the runs and files in ``entries``; ``extra_columns`` are columns of their runs.

    Audits of different columns have tables of different columns: one dataset for each set of columns.
    """
    from pyarrow import dataset  # loads pandas, and every command imports this module

    format_, local = dataset.ParquetFileFormat(), LocalFileSystem()
    schemas = {
        path: dataset.dataset(path, format="parquet", filesystem=LocalFileSystem()).schema
        for path in {path for _, path in entries}
    }
    alike: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for run, path in entries:
        alike[repr([(field.name, field.type) for field in schemas[path]])].append((run, path))
    selects = []
    for number, some in enumerate(alike.values()):
        schema, name = schemas[some[0][1]], f"{table} {number}"
        # Each row has its run in the column ``mark``. The run is Arrow's partition of the file, as one file may serve
        # several runs (stages are shared by content): a condition on the run then opens the files of that run only.
        mark = _free_name("run", schema.names)
        parts = [format_.make_fragment(path, local, dataset.field(mark) == run) for run, path in some]
        marked = dataset.FileSystemDataset(parts, schema.append(pa.field(mark, pa.string())), format_, local)
        connection.execute("USE internal")
        connection.from_arrow(marked).create_view(name)
        connection.execute("USE memory.main")
        # The run comes first; a column of the data with that name becomes ``run_1``.
        run_columns = [column for column in schema.names if column.lower() == "run"]
        renamed = ", ".join(f"{_quoted(c)} AS {_quoted(_free_name(f'{c}_1', schema.names))}" for c in run_columns[:1])
        named = BEFORE.keys() & set(schema.names) if table in TABLES_BEFORE else set()
        now = ", ".join(f"{_key_now(column)} AS {_quoted(column)}" for column in sorted(named))
        rest = f"* EXCLUDE ({_quoted(mark)})" + (f" REPLACE ({now})" if now else "")
        rest += f" RENAME ({renamed})" if renamed else ""
        extra = extra_columns.replace("{mark}", f"rows_.{_quoted(mark)}")
        selects.append(f"SELECT {_quoted(mark)} AS run, {rest}{extra} FROM internal.{_quoted(name)} AS rows_")  # noqa: S608
    connection.execute(f"CREATE VIEW {_quoted(table)} AS {' UNION ALL BY NAME '.join(selects)}")


def _key_now(column: str) -> str:
    """The keys of a column, where an earlier version wrote others."""
    renamed = " ".join(f"WHEN '{before}' THEN '{now}'" for before, now in BEFORE[column].items())
    return f"CASE {_quoted(column)} {renamed} ELSE {_quoted(column)} END"


def _free_name(name: str, used_names: Sequence[str]) -> str:
    """The name, or the next longer one that no column has."""
    lower_names = {name.lower() for name in used_names}
    while name.lower() in lower_names:
        name += "_"
    return name


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# --------------------------------------------------------------------------------------------------------------------
# Runs a reader's query within bounds of time and memory, and explains why one failed.
#
# Scope: the limits of a query and the words of its errors. What a query can reach: ``tasks.lake.views.open_views``.


_SIZE = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*([KMGT])B", re.IGNORECASE)
_UNITS = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BATCH_ROWS = 2**16
_NO_ACCESS = re.compile(r'Cannot access (?:file|directory) "(.*?)" - file system operations', re.DOTALL)

_NO_MEMORY = ("Out of Memory Error", "bad_alloc", "bad allocation", "Cannot allocate memory")
"""In errors of a query for which its own limit, or that of the process, has no room."""

_OF_WORDS = ("Parser Error", "Binder Error", "Catalog Error")
"""Errors about the words of a query, before any row is read."""

_READING = {
    duckdb.StatementType.SELECT,
    duckdb.StatementType.EXPLAIN,
    duckdb.StatementType.MULTI,  # PIVOT
}
_REFUSED = {"current_setting", "getvariable", "query", "query_table", "json_execute_serialized_sql"}
"""The temporary directory is open to statements, whose file must be a constant. The first two are constants that can
name it: a setting, and a variable that EXPLAIN ANALYZE SET filled. The others run text in which these, or the name of
a restricted table, can be hidden.
A table such as duckdb_settings() tells the directory too: DuckDB takes no file from a subquery, a row or a macro."""


def size_of(text: str) -> int:
    """Bytes of a size such as ``2GB``.

    Raises:
        SpecError: it is no size.
    """
    match = _SIZE.fullmatch(text.strip())
    size = int(float(match[1]) * _UNITS[match[2].upper()]) if match else 0
    if size < _UNITS["M"]:
        raise SpecError(f"--memory {text!r} is no size of 1MB or more; give one such as 2GB or 500MB")
    return size


def untold(connection: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    """Tables that the words of a query name and that are not those made to be published."""
    views = "SELECT view_name FROM duckdb_views() WHERE schema_name = 'main' AND NOT internal"
    names = {str(name) for (name,) in connection.execute(views).fetchall()}
    query_words = set(re.findall(r"\w+", query.lower()))
    return sorted(name for name in names & query_words if not name.startswith("published_"))


def require_reading(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """Refuse a statement that does more than read, for a clear message; the connection stops it in any case.

    Raises:
        SpecError: it would write, change the connection, or ask for its settings; or it is not UTF-8 text.
    """
    try:
        query.encode()
    except UnicodeEncodeError as error:  # bytes of the command line that are no UTF-8
        raise SpecError("the query failed: it is not UTF-8 text") from error
    if any(statement.type not in _READING for statement in connection.extract_statements(query)):
        raise SpecError("only queries are run here: SELECT, FROM, WITH, SHOW, DESCRIBE, SUMMARIZE, PIVOT or EXPLAIN")
    raw, tokens = query.encode(), duckdb.tokenize(query)
    ends = [*(start for start, _ in tokens), len(raw)][1:]
    words = [
        raw[start:end].decode().strip()
        for (start, kind), end in zip(tokens, ends, strict=True)
        if kind != duckdb.token_type.comment
    ]
    for word, following in pairwise(words):
        name = word.strip('"').lower()
        if following.startswith("(") and name in _REFUSED:
            raise SpecError(f"the query failed: {name}() is not run here; evenhand sql reads the lake's tables only")


def answer(connection: duckdb.DuckDBPyConnection, query: str, seconds: float, memory: int) -> pa.Table:
    """The result of a query on a connection of ``open_views``.

    Args:
        connection: the connection, opened with ``memory``.
        query: one statement or more; the result is that of the last.
        seconds: what the query may take.
        memory: bytes that the result may take; the connection holds the query itself to as many.

    Raises:
        SpecError: the query is wrong, or does more than read.
        InfrastructureError: it takes more time or memory than it may.
    """
    with ThreadPoolExecutor(
        1
    ) as pool:  # DuckDB answers Ctrl-C late where it runs in the main thread: minutes were seen
        running = pool.submit(result_of, connection, query, memory)
        try:
            wait([running], seconds)
            if not running.done():
                raise after_seconds(seconds)
        finally:
            while not running.done():  # again and again: between two statements an interrupt is lost
                connection.interrupt()
                wait([running], 0.1)
    return running.result()


def result_of(connection: duckdb.DuckDBPyConnection, query: str, memory: int) -> pa.Table:
    """The result of a query without a limit of its time; the rest is as for ``answer``."""
    try:
        require_reading(connection, query)
        relation = connection.sql(query)
        if relation is None:
            return pa.table({})
        reader = relation.to_arrow_reader(_BATCH_ROWS)
        batches, bytes_read = [], 0
        for batch in reader:
            bytes_read += batch.nbytes
            if bytes_read > memory:  # DuckDB does not count the result
                raise too_large(memory)
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema)
    except (duckdb.Error, OSError) as error:  # while batches are read, Arrow makes an OSError of any
        raise _explained(connection, str(error), query, memory) from error


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a result; a column of dates or times that Python cannot hold is text, as DuckDB writes it."""
    columns: list[list[Any]] = []
    for column in table.columns:
        try:
            columns.append(column.to_pylist())
        except OverflowError:  # before year 1, after year 9999, infinity; also inside of a list
            with connected() as connection:
                texts = connection.from_arrow(pa.table({"value": column})).project("value::VARCHAR")
                columns.append([text for (text,) in texts.fetchall()])
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _explained(connection: duckdb.DuckDBPyConnection, text: str, query: str, memory: int) -> EvenhandError:
    """The error of DuckDB in our words where it has to do with the bounds, and as it is otherwise.

    What reads rows may quote cells: of a restricted table that is marked, as a result is.
    """
    if "max_temp_directory_size" in text or "No space left" in text:
        return InfrastructureError(
            f"the query needs more than the {memory / 1e6:,.0f} MB of memory given, and the temporary directory has no "
            "room for the rest; narrow it, give --memory, or name a larger disk with TMPDIR"
        )
    if any(words in text for words in _NO_MEMORY):
        return too_large(memory)
    if denied := _NO_ACCESS.search(text):
        file = denied[1]
        writes = re.search(rf"\bTO\s*\(?\s*'{re.escape(file.replace(chr(39), chr(39) * 2))}'", query, re.IGNORECASE)
        does = "write" if writes else "open"
        return SpecError(f"the query failed: it would {does} {file}; evenhand sql has no files but the lake's tables")
    quotable = [] if text.startswith(_OF_WORDS) else untold(connection, query)
    marked = f"\nrestricted: not for publication, since this may quote {', '.join(quotable)}" if quotable else ""
    return SpecError(f"the query failed: {text}{marked}")


def too_large(memory: int) -> InfrastructureError:
    """The error of a query that needs more memory than it was given."""
    return InfrastructureError(
        f"the query needs more than the {memory / 1e6:,.0f} MB of memory given; narrow it, or give --memory"
    )


def after_seconds(seconds: float) -> InfrastructureError:
    """The error of a query that took longer than it may."""
    return InfrastructureError(f"the query was stopped after {seconds:g} s; narrow it, or give --timeout")
