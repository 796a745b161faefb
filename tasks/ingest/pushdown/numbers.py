"""Cells as numbers, to the last bit those that pandas reads.

A plain number, of at most 15 digits and without an exponent, is the nearest double for every reader. All other texts
are read by pandas, each distinct one once: it reads digits beyond the 15th in its own way, and whole numbers exactly
where the column has no others, so it is told what else the column holds.
"""
# ruff: noqa: S608 names are ours

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from tasks.ingest.pushdown.cells import Cells

if TYPE_CHECKING:
    import duckdb

_PLAIN = "[0-9]{1,15}|-[1-9][0-9]{0,14}|-?[0-9]+[.][0-9]+"
_FRACTION, _NEGATIVE = "contains({0}, '.')", "NOT contains({0}, '.') AND starts_with({0}, '-')"
_WORDS = ("nan", "inf", "infinity")


class Wanted(NamedTuple):
    """A column that is read as numbers."""

    name: str
    absent: str
    """SQL of whether a cell is left out; what it would read as does not matter then."""


@dataclass(frozen=True)
class Number:
    """SQL of the cells of one column as numbers."""

    value: str
    """The number; null of a cell that is left out or is none. It may be infinite."""
    unread: str = "false"
    """Whether the text is no number."""
    infinite: str = "false"
    """Whether it is not finite, by its value or its word."""
    join: str = ""
    """What the statement has to join for it."""


def numbers(cells: Cells, wanted: Sequence[Wanted], connection: "duckdb.DuckDBPyConnection") -> list[Number]:
    """How each of the columns is read, by what its texts are like in the view ``cells``."""
    if not wanted:
        return []
    (found,) = connection.sql(f"SELECT {', '.join(_profile(cells, each) for each in wanted)} FROM cells").fetchall()
    profiles = [found[5 * i : 5 * i + 5] for i in range(len(wanted))]
    odd = _odd_texts(
        cells, [each if told[-1] else None for each, told in zip(wanted, profiles, strict=True)], connection
    )
    for i, (texts, (*others, absent, _)) in enumerate(zip(odd, profiles, strict=True)):
        if texts is not None:
            connection.register(f"odd_{i}", _read(texts, [each for each in others if each is not None], bool(absent)))
    return [_number(cells, each, None if odd[i] is None else f"odd_{i}") for i, each in enumerate(wanted)]


def plain(text: str) -> str:
    """SQL of whether every reader takes a text for the same number."""
    return f"(strlen({text}) <= 16 AND regexp_full_match({text}, '{_PLAIN}'))"


def _profile(cells: Cells, wanted: Wanted) -> str:
    """A plain text with a fraction, a negative and another whole one; how many are left out, and how many are odd."""
    text, taken = cells.text(wanted.name), f"NOT {wanted.absent} AND {plain(cells.text(wanted.name))}"
    fraction, negative = _FRACTION.format(text), _NEGATIVE.format(text)
    kinds = (fraction, negative, f"NOT ({fraction}) AND NOT ({negative})")
    picked = ", ".join(f"any_value({text}) FILTER (WHERE {taken} AND {kind})" for kind in kinds)
    return f"{picked}, count_if({wanted.absent}), count_if(NOT {wanted.absent} AND NOT {plain(text)})"


def _odd_texts(
    cells: Cells, wanted: Sequence[Wanted | None], connection: "duckdb.DuckDBPyConnection"
) -> list[pa.Array | None]:
    """The distinct texts of each column that are not plain; None of a column that is not asked for."""
    asked = [each for each in wanted if each is not None]
    if not asked:
        return [None] * len(wanted)
    lists = [
        f"list(DISTINCT {cells.text(name)}) FILTER (WHERE NOT {absent} AND NOT {plain(cells.text(name))})"
        for name, absent in asked
    ]
    found = connection.sql(f"SELECT {', '.join(lists)} FROM cells").to_arrow_table()
    texts = iter([column.combine_chunks().flatten() for column in found.columns])
    return [None if each is None else next(texts) for each in wanted]


def _number(cells: Cells, wanted: Wanted, odd: str | None) -> Number:
    """How a column is read, with the table of its odd texts if it has some."""
    text = cells.text(wanted.name)
    direct = f"TRY_CAST({text} AS DOUBLE)"
    if odd is None:
        return Number(f"CASE WHEN {wanted.absent} THEN NULL ELSE {direct} END")
    fault = f"coalesce({odd}.fault, 0)"
    return Number(
        f"CASE WHEN {wanted.absent} THEN NULL WHEN {plain(text)} THEN {direct} ELSE {odd}.number END",
        f"({fault} = 1 AND NOT {wanted.absent})",
        f"({fault} = 2 AND NOT {wanted.absent})",
        f"LEFT JOIN {odd} ON {text} = {odd}.text",
    )


def _read(texts: pa.Array, others: Sequence[str], absent: bool) -> pa.Table:
    """Each text with its number, and its fault: 1 of no number, 2 of one that is not finite."""
    import pandas as pd

    odd = texts.to_pandas()
    beside = pd.Series([*others, *([None] if absent else [])], dtype=odd.dtype)
    read = pd.to_numeric(pd.concat([odd, beside]), errors="coerce").to_numpy(dtype=float)[: len(odd)]
    words = odd.str.lower().str.lstrip("+-").isin(_WORDS).to_numpy(dtype=bool)
    fault = np.where(np.isinf(read) | words, 2, np.where(np.isnan(read), 1, 0)).astype(np.int8)
    return pa.table({"text": texts, "number": pa.array(read, from_pandas=True), "fault": fault})
