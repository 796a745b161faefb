"""The tables of the RAGUEL paper as figures, and what it does not print but has to stand beside them.

Here belongs the layout of tables: a row is a method at a group, with a quantity in each column, or a line of Table 6.
The figures are in the data file.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tasks.proof.lines import Cell, Figure
from tasks.proof.published import BESIDE, place

NOT_PRINTED = "not printed"


def figures(said: Mapping[str, Any], dataset: str) -> Iterator[Figure]:
    """What the tables say of a data set; those that are not judged have neither a tolerance nor a bound."""
    for table in said["table"]:
        if dataset in table["datasets"]:
            for group, *at, values in table["rows"]:
                for quantity, value in zip(table["quantities"], values, strict=True):
                    yield Figure(
                        table["source"],
                        False,
                        Cell(quantity, group, place(at)),
                        float(value),
                        table.get("tolerance", 0.0),
                        at_least=table.get("at_least", False),
                    )


def beside(printed: Iterable[Figure], told: Iterable[Cell]) -> Iterator[Figure]:
    """A line for all that is told and that no table prints."""
    known = {figure.cell for figure in printed}
    yield from (Figure(BESIDE, False, cell, NOT_PRINTED, 0.0) for cell in told if cell not in known)
