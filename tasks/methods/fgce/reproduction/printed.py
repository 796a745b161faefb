"""Reads the tables of the FGCE paper, with the precision to which it prints them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasks.proof import published
from tasks.proof.lines import FOUR_DECIMALS, Cell, Figure, Value
from tasks.proof.published import REPRODUCED, tables

COUNTS = ("nodes", "edges", "strong_components", "weak_components", "coverable", "false_negatives", "candidates", "k0")
"""Quantities without a tolerance."""

PRINTED = 0.0101
"""The paper prints two decimals, rounded in places and cut off in others."""


def figures(said: Mapping[str, Any], dataset: str, groups: Sequence[str]) -> Iterator[Figure]:
    """Yields the figures of the tables by group of a data set; ``groups`` are the names of G0 and G1."""
    for table in filter(_of_groups, tables(said, dataset)):
        for label, group in zip(("G0", "G1"), groups, strict=True):
            for at, row in zip(table.get("at", [None]), table[label], strict=True):
                yield from _row(table, group, () if at is None else (float(at),), row)


def of_systems(said: Mapping[str, Any], dataset: str) -> Iterator[Figure]:
    """Yields the figures of the tables by system or by attribute of a data set, and what is asked of them."""
    others = [table for table in said["table"] if not _of_groups(table)]
    yield from published.figures({"table": others}, dataset)


def _of_groups(table: Mapping[str, Any]) -> bool:
    return "G0" in table


def _row(table: Mapping[str, Any], group: str, at: tuple[Value, ...], row: Sequence[float]) -> Iterator[Figure]:
    by_name = dict(zip(table["quantities"], map(float, row), strict=True))
    if by_name.get("dauc_coverage") == 0 and by_name["dauc_saturation"] == 1:
        by_name["dauc_saturation"] = float("nan")  # nothing is covered at any k, for which the paper prints 1
    for quantity, value in by_name.items():
        tolerance = _tolerance(quantity, table["source"] == REPRODUCED)
        yield Figure(table["source"], False, Cell(quantity, group, at), value, tolerance)


def _tolerance(quantity: str, reproduced: bool) -> float:
    if quantity in (*COUNTS, "dauc_saturation", "cauc_saturation"):
        return 0.0
    return FOUR_DECIMALS if reproduced else PRINTED
