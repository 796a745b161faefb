"""The view ``texts``: cells as text to be compared with codes, trimmed, and 5.0 as 5.

SQL does it for ASCII. Other texts are few, and have other blanks and digits: Python maps each once.
"""
# ruff: noqa: S608 names are ours, values are bound

from typing import TYPE_CHECKING

import pyarrow as pa

from tasks.ingest.cells import canonical
from tasks.ingest.pushdown.bound_values import BoundValues
from tasks.ingest.sources.laid import Laid

if TYPE_CHECKING:
    import duckdb

BLANKS = "".join(chr(code) for code in range(128) if chr(code).isspace())
"""What Python trims of an ASCII text."""


def lay_texts(laid: Laid, connection: "duckdb.DuckDBPyConnection", bound: BoundValues) -> None:
    """Make the view, with ``place``, ``t0``, ``t1``, ... for the columns, and ``q0``, ``q1``, ... as they are."""
    connection.execute(f"CREATE TEMP VIEW raw AS {laid.rows}")
    blanks, joins = bound.value(BLANKS), []
    odd = _beyond_ascii(laid, connection)
    chosen = ["place", *(f"q{i}" for i in range(len(laid.quarantined)))]
    for i, name in enumerate(laid.columns):
        mended = f"mended_{i}"
        text = f"c{i}"
        if name not in laid.as_compared:
            text = _canonical(text if name in laid.plain else f"trim({text}, {blanks})")
        if i in odd and _map(i, mended, connection):
            joins.append(f"LEFT JOIN {mended} ON c{i} = {mended}.text")
            text = f"CASE WHEN {_ascii(f'c{i}')} THEN {text} ELSE coalesce({mended}.canonical, c{i}) END"
        elif i in odd:
            text = f"CASE WHEN {_ascii(f'c{i}')} THEN {text} ELSE c{i} END"
        chosen.append(f"{text} AS t{i}")
    connection.execute(f"CREATE TEMP VIEW texts AS SELECT {', '.join(chosen)} FROM raw {' '.join(joins)}")


def _canonical(text: str) -> str:
    """``tasks.ingest.cells.canonical`` of an ASCII text without blanks around."""
    number = f"suffix({text}, '0') AND contains({text}, '.') AND regexp_full_match({text}, '-*[0-9]+[.]0+')"
    return f"CASE WHEN {number} THEN split_part({text}, '.', 1) ELSE {text} END"


def _ascii(cell: str) -> str:
    return f"strlen({cell}) = length({cell})"


def _beyond_ascii(laid: Laid, connection: "duckdb.DuckDBPyConnection") -> set[int]:
    """Positions of the columns that have such a text."""
    asked = [i for i, name in enumerate(laid.columns) if name not in laid.plain | laid.as_compared]
    if not asked:
        return set()
    counts = ", ".join(f"count_if(NOT {_ascii(f'c{i}')})" for i in asked)
    (found,) = connection.sql(f"SELECT {counts} FROM raw").fetchall()
    return {i for i, n in zip(asked, found, strict=True) if n}


def _map(i: int, name: str, connection: "duckdb.DuckDBPyConnection") -> bool:
    """Register a table of the column's texts beyond ASCII that Python writes in another way; whether there are some."""
    query = f"SELECT DISTINCT c{i} FROM raw WHERE NOT {_ascii(f'c{i}')}"
    told = {text: canonical(text) for (text,) in connection.sql(query).fetchall()}
    changed = {text: new for text, new in told.items() if text != new}
    connection.register(name, pa.table({"text": list(changed), "canonical": list(changed.values())}))
    return bool(changed)
