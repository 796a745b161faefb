"""DuckDB views over the lake, one per table, each row with the run that it belongs to.

A table's file may serve several runs (stages are shared by content), so a view joins the files with the manifests.
"""

import json
from collections import defaultdict
from pathlib import Path

import duckdb

from schemas.artifact import Partition
from schemas.errors import IntegrityError, SpecError
from tasks._store import Lake


def open_views(lake: Lake) -> duckdb.DuckDBPyConnection:
    """A connection with one view per table of the lake; it can read the lake's files and nothing else.

    Raises:
        SpecError: the lake holds no run.
        IntegrityError: a manifest cannot be read.
    """
    files: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for run, partitions in _runs(lake).items():
        for partition in partitions:
            for artifact in partition.tables:
                files[artifact.table].append((run, str(lake.root / artifact.path)))
    connection = duckdb.connect()
    connection.execute(
        "CREATE SCHEMA internal; CREATE TABLE internal.files (run VARCHAR, view VARCHAR, filename VARCHAR)"
    )
    rows = [(run, table, path) for table, entries in files.items() for run, path in entries]
    connection.executemany("INSERT INTO internal.files VALUES (?, ?, ?)", rows)
    for table, entries in files.items():
        connection.execute(_view(table, sorted({path for _, path in entries})))
    connection.execute("SET allowed_directories = [$root]", {"root": str(lake.root)})
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def latest_run(lake: Lake) -> str:
    """The run whose manifest was written last.

    Raises:
        SpecError: the lake holds no run.
    """
    manifests = sorted(_manifests(lake), key=lambda path: path.stat().st_mtime_ns)
    return manifests[-1].parent.name


def _manifests(lake: Lake) -> list[Path]:
    found = list((lake.root / "runs").glob("*/manifest.json"))
    if not found:
        raise SpecError(f"the lake {lake.root} holds no run yet; `evenhand audit` makes one")
    return found


def _runs(lake: Lake) -> dict[str, list[Partition]]:
    runs = {}
    for path in sorted(_manifests(lake)):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            runs[content["run"]] = [Partition.model_validate(p) for p in content["partitions"]]
        except (ValueError, KeyError) as error:
            raise IntegrityError(f"{path} cannot be read as a manifest; run that audit again to rewrite it") from error
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
