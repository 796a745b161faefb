"""Counts of rules over all rows of a table, by DuckDB in one pass.

A key is unique if there are as many hashes of it as rows; only where there are fewer are the keys themselves grouped.
DuckDB streams the table and uses one thread. Counts are integers, so they are the same for any order of the rows.

Scope: numbers of rows, and identifiers of those that break a rule. The rules: ``rules``.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import duckdb
import pyarrow as pa

from tasks.lake.threads import connected
from tasks.pipeline.validation.rules import EVERY, Count, Rule

if TYPE_CHECKING:
    import pyarrow.dataset as pads

Content: TypeAlias = "pa.Table | pads.Dataset"
"""Rows in memory, or in one or several Parquet files that are read as a stream."""
HASHES = 2**24
"""Hashes of a key that are counted at a time: a table of more rows is passed over once for each part."""
MEMORY = "500MB"
"""Of DuckDB; what does not fit goes to the disk: 20 million hashes take no longer than without a limit."""


def count(content: Content, rules: Sequence[Rule]) -> list[Count]:
    """Count the elements of each rule and those that break it.

    Args:
        content: columns of the names and types that the rules are about.
        rules: at most one of them about a key.
    """
    rows = content.num_rows if isinstance(content, pa.Table) else content.count_rows()
    if not rows or not rules:
        return [Count(rule, 0, 0) for rule in rules]
    parts = -(-rows // HASHES)
    elements = list(dict.fromkeys(rule.element for rule in rules))
    counted = [_number(each) for each in elements] + [_broken(rule, parts, 0) for rule in rules]
    found = _only(content, f"SELECT {', '.join(counted)} FROM content", [v for rule in rules for v in rule.values])
    of = dict(zip(elements, found, strict=False))
    return [
        Count(rule, of[rule.element], _repeated(content, rule, of[rule.element], n, parts) if rule.key else n)
        for rule, n in zip(rules, found[len(elements) :], strict=True)
    ]


def broken_rows(content: Content, rule: Rule, most: int | None) -> tuple[str, ...]:
    """``row_id`` of the rows that break a rule, in the order of the table; the first ``most`` if that is given.

    A row without an identifier is not among them.
    """
    broken = f"count(*) OVER (PARTITION BY {', '.join(rule.key)}) > 1" if rule.key else rule.broken
    judged = f"SELECT row_id, row_number() OVER () AS place, ({rule.element}) AND ({broken}) AS broken FROM content"
    query = f"SELECT row_id FROM ({judged}) WHERE broken AND row_id IS NOT NULL ORDER BY place"
    found = _rows(content, query if most is None else f"{query} LIMIT {most}", rule.values)
    return tuple(row_id for (row_id,) in found)


def _broken(rule: Rule, parts: int, part: int) -> str:
    """Aggregate of a rule: the elements that break it; of a key the number of different hashes in a part."""
    if not rule.key:
        return _number(rule.element, rule.broken)
    digest = f"hash({', '.join(rule.key)})"
    of_part = f"{digest} % {parts} = {part}" if parts > 1 else EVERY
    return _number(rule.element, of_part, of=f"DISTINCT {digest}")


def _number(*conditions: str, of: str = "*") -> str:
    """Aggregate of the rows that meet all conditions; one that all rows meet costs time to plan."""
    met = " AND ".join(f"({each})" for each in conditions if each != EVERY)
    return f"count({of}) FILTER (WHERE {met})" if met else f"count({of})"


def _repeated(content: Content, rule: Rule, elements: int, hashes: int, parts: int) -> int:
    """Rows whose key another row has, too; ``hashes`` are those of the first part."""
    for part in range(1, parts):
        hashes += _only(content, f"SELECT {_broken(rule, parts, part)} FROM content")[0]
    if hashes == elements:
        return 0
    keys = ", ".join(rule.key)
    grouped = f"SELECT count(*) AS n FROM content WHERE {rule.element} GROUP BY {keys} HAVING count(*) > 1"
    return _only(content, f"SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM ({grouped})")[0]


def _only(content: Content, query: str, values: Sequence[str | float] = ()) -> tuple[int, ...]:
    (row,) = _rows(content, query, values)
    return row


def _rows(content: Content, query: str, values: Sequence[str | float] = ()) -> list[tuple[Any, ...]]:
    """Rows of a query over ``content``; each query reads the rows anew."""
    reader = content.to_reader() if isinstance(content, pa.Table) else _streamed(content)
    with _connected() as connection:
        connection.register("content", reader)
        return connection.execute(query, list(values)).fetchall()  # a relation would be planned twice


def _streamed(content: "pads.Dataset") -> pa.RecordBatchReader:
    """One row group after the other; a scanner of the data set holds several, and what it has read of the file."""
    from pyarrow.parquet import ParquetFile

    files = (ParquetFile(path, pre_buffer=False) for path in content.files)
    return pa.RecordBatchReader.from_batches(content.schema, (each for of in files for each in of.iter_batches(2**16)))


@contextmanager
def _connected() -> Iterator[duckdb.DuckDBPyConnection]:
    with _database(os.getpid()).cursor() as connection:
        try:
            yield connection
        finally:
            connection.unregister("content")


@cache
def _database(process: int) -> duckdb.DuckDBPyConnection:  # noqa: ARG001 the child of a fork opens its own
    """One database without tables a process: to open one costs as much as to count the tables of a small stage."""
    where = tempfile.gettempdir()
    return connected({"threads": 1, "temp_directory": where, "memory_limit": MEMORY})
