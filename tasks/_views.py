"""DuckDB views over the lake, one per table, each row with the run that it belongs to.

A table's file may serve several runs (stages are shared by content), so a view joins the files with the manifests.
"""

import json
from collections import defaultdict

import duckdb

from schemas.artifact import Partition
from schemas.errors import IntegrityError, SpecError, nearest
from tasks._store import Lake


def open_views(lake: Lake, run: str | None = None) -> duckdb.DuckDBPyConnection:
    """A connection with one view per table, of one run or of all; it can read the lake's files and nothing else.

    Every file is checked against its digest first. Of all runs, those of which a file was removed are left out.

    Raises:
        SpecError: the lake holds no such run.
        IntegrityError: a manifest or a file is not the one that was written.
    """
    files: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, partitions in _runs(lake, run).items():
        for artifact in (a for p in partitions for a in p.tables):
            files[artifact.table].append((name, str(lake.check(artifact.path, artifact.sha256))))
    connection = duckdb.connect()
    connection.execute(
        "CREATE SCHEMA internal; CREATE TABLE internal.files (run VARCHAR, view VARCHAR, filename VARCHAR)"
    )
    rows = [(name, table, path) for table, entries in files.items() for name, path in entries]
    connection.executemany("INSERT INTO internal.files VALUES (?, ?, ?)", rows)
    for table, entries in files.items():
        connection.execute(_view(table, sorted({path for _, path in entries})))
    connection.execute("SET allowed_directories = [$root]", {"root": str(lake.storage.copies)})
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def require_reading(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """Refuse a statement that does more than read.

    Raises:
        SpecError: it would write, or change the connection.
    """
    reading = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
    if any(statement.type not in reading for statement in connection.extract_statements(query)):
        raise SpecError("only queries are run here: SELECT, FROM, WITH, SHOW, DESCRIBE, SUMMARIZE or EXPLAIN")


def latest_run(lake: Lake) -> str:
    """The run whose manifest was written last.

    Raises:
        SpecError: the lake holds no run.
    """
    manifests = _manifests(lake)
    return max(manifests, key=lambda run: lake.storage.modified(manifests[run]))


def _manifests(lake: Lake) -> dict[str, str]:
    """Run -> path of its manifest."""
    found = lake.storage.glob("runs/*/manifest.json")
    if not found:
        raise SpecError(f"the lake {lake.location} holds no run yet; `evenhand audit` makes one")
    return {path.split("/")[1]: path for path in found}


def _runs(lake: Lake, run: str | None) -> dict[str, list[Partition]]:
    manifests = _manifests(lake)
    if run is not None and run not in manifests:
        raise SpecError(f"the lake {lake.location} holds no run {run!r}; {nearest(run, list(manifests))}")
    runs = {}
    for name in manifests if run is None else [run]:
        path = manifests[name]
        try:
            content = json.loads(lake.storage.read(path) or b"")
            partitions = [Partition.model_validate(p) for p in content["partitions"]]
        except (ValueError, KeyError) as error:
            where = lake.storage.where(path)
            raise IntegrityError(f"{where} cannot be read as a manifest; run that audit again to rewrite it") from error
        if run is not None or all(lake.storage.exists(a.path) for p in partitions for a in p.tables):
            runs[name] = partitions
    return runs


def _view(table: str, paths: list[str]) -> str:
    """The statement of a view. Names and paths are our own; they are quoted all the same."""
    listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    name, text = table.replace('"', '""'), table.replace("'", "''")
    return (
        f'CREATE VIEW "{name}" AS SELECT f.run, t.* EXCLUDE (filename) '  # noqa: S608
        f"FROM read_parquet([{listed}], filename = true, union_by_name = true) AS t "
        f"JOIN internal.files AS f ON f.filename = t.filename AND f.view = '{text}'"
    )
