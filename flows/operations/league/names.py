"""Names of lenders, from the table of lenders beside a vintage, where that knows them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from flows.runs.index import Run

FILE: Final = "lenders.parquet"
"""Beside the rows of a vintage: a row for each lender, with its name if the publisher gives one."""
COLUMN: Final = "lender_id"
"""Column of partitions whose values that table names."""


def names_of(runs: Iterable[Run], column: str) -> Mapping[str, str]:
    """Value -> name; nothing for another column, a source without a vintage, or a vintage without names."""
    if column != COLUMN:
        return {}
    files = {run.spec["source"].get("vintage_file") for run in runs} - {None}
    return {value: name for file in sorted(files) for value, name in _named(Path(file).parent / FILE)}


def _named(file: Path) -> list[tuple[str, str]]:
    if not file.is_file():
        return []
    import pyarrow.parquet as pq  # the command loads it anyway; not so who has no vintage

    if not {COLUMN, "name"} <= set(pq.read_schema(file).names):
        return []
    rows = pq.read_table(file, columns=[COLUMN, "name"]).to_pylist()
    return [(row[COLUMN], row["name"]) for row in rows if row[COLUMN] and row["name"]]
