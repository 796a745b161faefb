"""Joins the columns of a second file to the rows of the first, by a key that both have.

Keys are compared folded, and leading zeros count. Rows of the first file without a partner stay, and lack the columns.
A key that stands twice in the second file gives no row: nobody can tell which of the two is meant.
"""

# ruff: noqa: S608 names are ours

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from schemas.audit.intake import SecondFile
from schemas.terms import Refusal
from tasks.ingest.intake.folding import fold
from tasks.ingest.sources.raw import Laid, RuleCount

if TYPE_CHECKING:
    import duckdb

_PLAIN_KEY = "[A-Za-z0-9_/-]+"
"""Keys that folding changes in their case alone."""


def joined(
    first: Laid, second: Laid, file: SecondFile, connection: "duckdb.DuckDBPyConnection", *, of_attribute: bool = False
) -> Laid:
    """The rows of the first file with columns of the second.

    Args:
        first: with the column of its key.
        second: with the column of its key and those to join.
        file: the columns of the key, and those to join.
        connection: where both are.
        of_attribute: whether the columns are those of protected attributes, under whose name the join is counted.
    """
    key, columns, at = file.key, file.columns, f"join_{len(first.columns)}"
    _keys(f"{at}_first", first, key.this, connection)
    _keys(f"{at}_second", second, key.other, connection)
    cells = [f"c{second.columns.index(name)}" for name in columns]
    cells_taken = ", ".join(f"any_value({cell}) AS {cell}" for cell in dict.fromkeys(cells))
    connection.execute(
        f"CREATE TEMP TABLE {at}_partners AS SELECT key, count(*) AS rows, {cells_taken} FROM {at}_second "
        "WHERE key <> '' GROUP BY key"
    )
    rows, several = f"{at}_first LEFT JOIN {at}_partners AS p USING (key)", "coalesce(p.rows, 0) > 1"
    ((matched, unmatched),) = connection.sql(
        f"SELECT count_if(p.rows = 1), count_if(p.rows IS NULL) FROM {rows}"
    ).fetchall()
    ((unused,),) = connection.sql(
        f"SELECT count(*) FROM {at}_second WHERE key = '' OR key NOT IN (SELECT key FROM {at}_first)"
    ).fetchall()
    counts = (("join", matched), ("unjoined", unmatched), ("unused", unused))
    named = columns if of_attribute else ("",)
    width = len(first.columns)
    chosen = [f"{at}_first.place", *(f"{at}_first.c{i}" for i in range(width))]
    chosen += [f"coalesce(CASE WHEN {several} THEN '' ELSE p.{c} END, '') AS c{width + i}" for i, c in enumerate(cells)]
    chosen += [f"{at}_first.q{i}" for i in range(len(first.quarantined))]
    chosen.append(f"{several} AS q{len(first.quarantined)}")
    return replace(
        first,
        rows=f"SELECT {', '.join(chosen)} FROM {rows}",
        columns=(*first.columns, *columns),
        quarantined=(*first.quarantined, (Refusal.OUTSIDE_JOIN, key.this)),
        rules=(*first.rules, *(RuleCount(name, rule, 0, n) for name in named for rule, n in counts if n)),
        joined=first.joined if of_attribute else {"matched": matched, "unmatched": unmatched, "unused": unused},
    )


def _keys(name: str, view: Laid, column: str, connection: "duckdb.DuckDBPyConnection") -> None:
    """The rows of a file with their folded key; Python folds what is not plain, each distinct text once."""
    cell, mapped = f"c{view.columns.index(column)}", f"{name}_keys"
    plain = f"regexp_full_match({cell}, '{_PLAIN_KEY}')"
    odd = connection.sql(f"SELECT DISTINCT {cell} FROM ({view.rows}) WHERE NOT {plain}").fetchall()
    texts = [text for (text,) in odd]
    connection.register(mapped, pa.table({"text": texts, "folded": [fold(text) for text in texts]}, _KEYS))
    folded = f"CASE WHEN {plain} THEN lower({cell}) ELSE coalesce(keys.folded, '') END"
    connection.execute(
        f"CREATE TEMP VIEW {name} AS SELECT view.*, {folded} AS key FROM ({view.rows}) AS view "
        f"LEFT JOIN {mapped} AS keys ON view.{cell} = keys.text"
    )


_KEYS = pa.schema([("text", pa.string()), ("folded", pa.string())])
