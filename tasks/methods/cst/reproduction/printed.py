"""Reads the tables of the CST paper: by variant and number of neighbours k, or as rows of named quantities."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.methods.cst.algorithm.comparisons import CENTRED, CF, CST, ST
from tasks.proof.lines import Cell, Figure, Value
from tasks.proof.published import place, tables

VARIANTS = (CST, ST, CENTRED)
"""Variants that count neighbours; counterfactual fairness (CF) knows no k."""


def figures(said: Mapping[str, Any], dataset: str) -> Iterator[Figure]:
    """Yields the figures of the tables of a data set."""
    for table in tables(said, dataset):
        for cell, value in _cells(table):
            least = cell.quantity in table.get("at_least", ())
            said_value = value if isinstance(value, str) else float(value)
            yield Figure(table["source"], False, cell, said_value, table.get("tolerance", 0.0), at_least=least)


def _cells(table: Mapping[str, Any]) -> Iterator[tuple[Cell, Value]]:
    if "quantities" in table:
        for at, row in zip(table.get("at", [()]), table["rows"], strict=True):
            for quantity, value in zip(table["quantities"], row, strict=True):
                yield Cell(quantity, table["group"], place(at)), value
        return
    for variant in VARIANTS:
        for k, value in zip(table["ks"], table.get(variant, ()), strict=variant in table):
            yield Cell(table["quantity"], table["group"], (variant, float(k))), value
    if CF in table:
        yield Cell(table["quantity"], table["group"], (CF,)), table[CF]
