"""Runs a reader's query within bounds of time and memory, and explains why one failed.

Scope: the limits of a query and the words of its errors. What a query can reach: ``tasks.lake.views.open_views``.
"""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Any

import duckdb
import pyarrow as pa

from schemas.errors import EvenhandError, InfrastructureError, SpecError
from tasks.lake.threads import connected

_SIZE = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*([KMGT])B", re.IGNORECASE)
_UNITS = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BATCH_ROWS = 2**16
_NO_ACCESS = re.compile(r'Cannot access (?:file|directory) "(.*?)" - file system operations', re.DOTALL)

_READING = {
    duckdb.StatementType.SELECT,
    duckdb.StatementType.EXPLAIN,
    duckdb.StatementType.MULTI,  # PIVOT
}
_REFUSED = {"current_setting", "getvariable", "query", "json_execute_serialized_sql"}
"""The temporary directory is open to statements, whose file must be a constant. The first two are constants that can
name it: a setting, and a variable that EXPLAIN ANALYZE SET filled. The others run text in which these can be hidden.
A table such as duckdb_settings() tells the directory too: DuckDB takes no file from a subquery, a row or a macro."""


def size_of(text: str) -> int:
    """Bytes of a size such as ``2GB``.

    Raises:
        SpecError: it is no size.
    """
    found = _SIZE.fullmatch(text.strip())
    size = int(float(found[1]) * _UNITS[found[2].upper()]) if found else 0
    if size < _UNITS["M"]:
        raise SpecError(f"--memory {text!r} is no size of 1MB or more; give one such as 2GB or 500MB")
    return size


def untold(connection: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    """Tables that the words of a query name and that are not those made to be published."""
    views = "SELECT view_name FROM duckdb_views() WHERE schema_name = 'main' AND NOT internal"
    names = {str(name) for (name,) in connection.execute(views).fetchall()}
    said = set(re.findall(r"\w+", query.lower()))
    return sorted(name for name in names & said if not name.startswith("published_"))


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
    for name in _called(query):
        if name in _REFUSED:
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
        running = pool.submit(_result, connection, query, memory)
        try:
            wait([running], seconds)
            if not running.done():
                raise InfrastructureError(f"the query was stopped after {seconds:g} s; narrow it, or give --timeout")
        finally:
            while not running.done():  # again and again: between two statements an interrupt is lost
                connection.interrupt()
                wait([running], 0.1)
    return running.result()


def _result(connection: duckdb.DuckDBPyConnection, query: str, memory: int) -> pa.Table:
    try:
        require_reading(connection, query)
        relation = connection.sql(query)
        if relation is None:
            return pa.table({})
        reader = relation.to_arrow_reader(_BATCH_ROWS)
        return pa.Table.from_batches(_bounded(reader, memory), reader.schema)
    except (duckdb.Error, OSError) as error:  # while batches are read, Arrow makes an OSError of any
        raise _explained(str(error), query, memory) from error


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a result; a column of dates or times that Python cannot hold is text, as DuckDB writes it."""
    columns = [_values(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        return list(column.to_pylist())
    except OverflowError:  # before year 1, after year 9999, infinity; also inside of a list
        with connected() as connection:
            texts = connection.from_arrow(pa.table({"value": column})).project("value::VARCHAR")
            return [text for (text,) in texts.fetchall()]


def _bounded(reader: pa.RecordBatchReader, memory: int) -> Iterator[pa.RecordBatch]:
    """The batches of a result, which DuckDB does not count as memory of its own."""
    taken = 0
    for batch in reader:
        taken += batch.nbytes
        if taken > memory:
            raise _too_large(memory)
        yield batch


def _explained(text: str, query: str, memory: int) -> EvenhandError:
    """The error of DuckDB in our words where it has to do with the bounds, and as it is otherwise."""
    if "max_temp_directory_size" in text or "No space left" in text:
        return InfrastructureError(
            f"the query needs more than the {memory / 1e6:,.0f} MB of memory given, and the temporary directory has no "
            "room for the rest; narrow it, give --memory, or name a larger disk with TMPDIR"
        )
    if "Out of Memory Error" in text:
        return _too_large(memory)
    if denied := _NO_ACCESS.search(text):
        file = denied[1]
        writes = re.search(rf"\bTO\s*\(?\s*'{re.escape(file.replace(chr(39), chr(39) * 2))}'", query, re.IGNORECASE)
        does = "write" if writes else "open"
        return SpecError(f"the query failed: it would {does} {file}; evenhand sql has no files but the lake's tables")
    return SpecError(f"the query failed: {text}")


def _too_large(memory: int) -> InfrastructureError:
    return InfrastructureError(
        f"the query needs more than the {memory / 1e6:,.0f} MB of memory given; narrow it, or give --memory"
    )


def _called(query: str) -> Iterator[str]:
    """Names that are followed by a bracket, in lower case."""
    raw, tokens = query.encode(), duckdb.tokenize(query)
    ends = [*(start for start, _ in tokens), len(raw)][1:]
    words = [
        raw[start:end].decode().strip()
        for (start, kind), end in zip(tokens, ends, strict=True)
        if kind != duckdb.token_type.comment
    ]
    for word, following in pairwise(words):
        if following.startswith("("):
            yield word.strip('"').lower()
