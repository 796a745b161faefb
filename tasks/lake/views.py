"""DuckDB views over the lake, one per table, each row with its run; ``stage_runs``, what stages cost; ``alerts``.

Every reader of the lake opens its tables here. Arrow reads the files, whose digests are checked; DuckDB itself may open
no file, whatever a statement says. Statements can reach DuckDB's temporary directory, so it is fresh, private and
removed with the connection.
"""

import json
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import psutil
import pyarrow as pa
from pyarrow.fs import LocalFileSystem

from schemas.artifact import Artifact, Partition
from schemas.errors import IntegrityError, SpecError, nearest
from tasks.lake.stage_runs import OF_PARTITION, VIEW, as_table, partition_of
from tasks.lake.storage import mapping_of
from tasks.lake.store import Lake
from tasks.lake.threads import connected

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
    """Default memory of a query in bytes: a quarter of the machine's, at most 8 GB."""
    return int(min(psutil.virtual_memory().total // 4, _MOST_MEMORY))


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
    for name, manifest in runs.items():
        for artifact in (a for a in _artifacts(manifest) if tables is None or a.table in tables):
            files[artifact.table].append((name, str(lake.check(artifact.path, artifact.sha256))))
    with TemporaryDirectory(prefix="evenhand-sql-") as scratch, connected() as connection:
        connection.execute("CREATE SCHEMA internal")
        parted = _add_partitions(connection, runs)
        for table, entries in files.items():
            _add_view(connection, table, entries, _partition_columns(table, parted))
        if tables is None or VIEW in tables:
            _add_table(connection, VIEW, as_table(runs))
        if (tables is None or ALERTS in tables) and (told := _alerts(lake, run)):
            _add_table(connection, ALERTS, pa.Table.from_pylist(told, schema=_OF_ALERT))
        connection.execute("SET temp_directory = $scratch", {"scratch": scratch})
        connection.execute("SET memory_limit = $size", {"size": f"{(memory or default_memory()) // 1000}KB"})
        connection.execute(_SANDBOX)
        yield connection


def latest_run(lake: Lake) -> str:
    """The run that was finished last.

    Raises:
        SpecError: the lake holds no run.
    """
    manifests = _manifests(lake)
    return max(manifests, key=lambda run: _finished(lake, manifests[run]))


def _finished(lake: Lake, path: str) -> tuple[str, int]:
    """When a run was finished, by its manifest; the file's time, which a copy changes, serves where that says nothing.

    The manifest counts seconds: of two runs in one second, the file that was written last is the later one.
    """
    written = lake.storage.modified(path)
    try:
        said = mapping_of(lake.storage.read(path))["finished"]
    except (ValueError, KeyError):
        said = None
    return said if isinstance(said, str) else time.strftime(_TIME, time.gmtime(written // 10**9)), written


def _manifests(lake: Lake) -> dict[str, str]:
    """Run -> path of its manifest."""
    found = lake.storage.glob("runs/*/manifest.json")
    if not found:
        raise SpecError(f"the lake {lake.location} holds no run yet; `evenhand audit` makes one")
    return {path.split("/")[1]: path for path in found}


def _runs(lake: Lake, run: str | None) -> dict[str, dict[str, Any]]:
    """Run -> its manifest."""
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
    """The records of alerts, of one run or of all (``flows.outcome.alerts.record`` writes them)."""
    found = []
    for path in lake.storage.glob(f"{ALERTS}/*.json"):
        try:
            said = json.loads(lake.storage.read(path) or b"")
            row = {
                **said,
                **{name: said["ending"][name] for name in ("subject", "run")},
                "state": said["ending"]["name"],
            }
        except (ValueError, KeyError, TypeError) as error:
            raise IntegrityError(f"{lake.storage.where(path)} is no record of an alert; remove it") from error
        found.append({name: row[name] for name in _OF_ALERT.names})
    return sorted((row for row in found if run in (None, row["run"])), key=lambda row: (row["time"], row["to"]))


def _add_partitions(connection: duckdb.DuckDBPyConnection, runs: Mapping[str, Mapping[str, Any]]) -> bool:
    """Make the table of the partitions that runs are about; whether any is about one."""
    rows = [(run, *partition_of(manifest)) for run, manifest in runs.items()]
    parted = [row for row in rows if row[1] is not None]
    if parted:
        columns = dict(zip((_RUN, *OF_PARTITION), map(list, zip(*parted, strict=True)), strict=True))
        connection.execute("USE internal")
        connection.from_arrow(pa.table(columns)).create(_PARTITIONS)
        connection.execute("USE memory.main")
    return bool(parted)


def _partition_columns(table: str, parted: bool) -> str:
    """SQL of the columns that name a row's partition, looked up by the run; none in tables without them."""
    if table not in WITH_PARTITION:
        return ""
    if not parted:
        return "".join(f", CAST(NULL AS VARCHAR) AS {name}" for name in OF_PARTITION)
    return "".join(
        f", (SELECT p.{name} FROM internal.{_PARTITIONS} p WHERE p.{_RUN} = {{mark}}) AS {name}"  # noqa: S608
        for name in OF_PARTITION
    )


def _add_view(connection: duckdb.DuckDBPyConnection, table: str, entries: Sequence[tuple[str, str]], more: str) -> None:
    """Make the view of a table of which ``entries`` are the runs and files; ``more`` are columns of their runs.

    Audits of different columns have tables of different columns: one dataset for each set of columns.
    """
    from pyarrow import dataset  # loads pandas, and every command imports this module

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
        mark = _free_name("run", schema.names)
        connection.execute("USE internal")
        connection.from_arrow(_marked(some, schema, mark)).create_view(name)
        connection.execute("USE memory.main")
        selects.append(_select(name, schema.names, mark, more))
    connection.execute(f"CREATE VIEW {_quoted(table)} AS {' UNION ALL BY NAME '.join(selects)}")


def _marked(entries: Sequence[tuple[str, str]], schema: pa.Schema, mark: str) -> "pa.dataset.Dataset":
    """Files of one schema, each row with its run in the column ``mark``.

    The run is Arrow's partition of the file, as one file may serve several runs (stages are shared by content): a
    condition on the run then opens the files of that run only.
    """
    from pyarrow import dataset

    format_, local = dataset.ParquetFileFormat(), LocalFileSystem()
    parts = [format_.make_fragment(path, local, dataset.field(mark) == run) for run, path in entries]
    return dataset.FileSystemDataset(parts, schema.append(pa.field(mark, pa.string())), format_, local)


def _select(name: str, columns: Sequence[str], mark: str, more: str) -> str:
    """The rows of a dataset, the run first; a column of the data with that name becomes ``run_1``."""
    own = [column for column in columns if column.lower() == "run"]
    renamed = ", ".join(f"{_quoted(c)} AS {_quoted(_free_name(f'{c}_1', columns))}" for c in own[:1])
    rest = f"* EXCLUDE ({_quoted(mark)})" + (f" RENAME ({renamed})" if renamed else "")
    said = more.replace("{mark}", f"rows_.{_quoted(mark)}")
    return f"SELECT {_quoted(mark)} AS run, {rest}{said} FROM internal.{_quoted(name)} AS rows_"  # noqa: S608


def _free_name(wanted: str, taken: Sequence[str]) -> str:
    """The name, or the next longer one that no column has."""
    known = {name.lower() for name in taken}
    while wanted.lower() in known:
        wanted += "_"
    return wanted


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
