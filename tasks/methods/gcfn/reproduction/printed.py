"""The tables of the GCFN paper as figures, and what it does not print but has to stand beside them.

Here belongs the layout of tables: a row for each generator or model. The figures are in the data file.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tasks.proof.lines import Cell, Figure
from tasks.proof.published import BESIDE

PAPER, DEFAULT, QUANTILES, MEAN = "GAN, paper's settings", "GAN, default settings", "quantile map", "conditional mean"
"""What imagines mediators; the last one is what a regression would find with endless data."""

SCORE, FAIR = "COMPAS score", "GCFN"
WHOLE_FILE = ", whole file"
"""Follows the name of the score where it is that of everybody, and not of held-out rows."""

NOT_PRINTED = "not printed"


def figures(said: Mapping[str, Any], dataset: str) -> Iterator[Figure]:
    """What the tables say of a data set. Rows that are not judged have no tolerance and are no upper limits."""
    for table in said["table"]:
        if table["dataset"] == dataset:
            for group, row in table["rows"].items():
                judged = group in table["judged"]
                for quantity, value in zip(table["quantities"], row, strict=True):
                    yield Figure(
                        table["source"],
                        table.get("reference", False),
                        Cell(quantity, group),
                        value,
                        table.get("tolerance", 0.0) if judged else 0.0,
                        judged and quantity in table.get("at_most", ()),
                    )


def beside(printed: Iterable[Figure], told: Iterable[Cell]) -> Iterator[Figure]:
    """A line for all that is told and that no table prints."""
    known = {figure.cell for figure in printed}
    yield from (Figure(BESIDE, False, cell, NOT_PRINTED, 0.0) for cell in told if cell not in known)
