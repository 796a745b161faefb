"""Reads published figures, and the remarks that explain where a figure need not be ours, from a paper's data file.

Scope: the file, its remarks, and tables with a row for each group or model. Other layouts: ``printed.py`` of a method's
folder ``reproduction``. Reference outputs: ``golden.py`` there.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tasks.proof.lines import NOT_RUN as NOT_RUN
from tasks.proof.lines import Cell, Figure, Remark, Value, Verdict
from tasks.proof.specs import shipped

REPRODUCED = "reproduced"
"""Source of the figures that the authors' code gives, printed to four decimals."""

ASKED = "asked"
"""Source of requirements on a method's default that no paper prints, such as never to end lower than it began."""

BESIDE = "beside"
"""Source of cells that are shown beside figures and that nobody prints."""

NOT_PRINTED = "not printed"
"""Stands for a figure that no table prints."""


def read(paper: str) -> Mapping[str, Any]:
    """Reads the published figures of a paper.

    Raises:
        InfrastructureError: The file is not where it was installed.
    """
    return tomllib.loads(shipped(f"published/{paper}.toml").read_text(encoding="utf-8"))


def tables(said: Mapping[str, Any], dataset: str) -> Iterator[Mapping[str, Any]]:
    """Yields the tables that are about a data set."""
    yield from (table for table in said["table"] if dataset in table["datasets"])


def figures(said: Mapping[str, Any], dataset: str) -> Iterator[Figure]:
    """Yields the figures of tables whose rows are a group, what the figures are at, and a value for each quantity.

    Groups that are not ``judged`` have neither a tolerance nor a bound; without that key all are.
    """
    for table in tables(said, dataset):
        for group, *at, values in table["rows"]:
            judged = group in table.get("judged", (group,))
            for quantity, value in zip(table["quantities"], values, strict=True):
                tolerance = table.get("tolerances", {}).get(quantity, table.get("tolerance", 0.0))
                yield Figure(
                    table["source"],
                    table.get("reference", False),
                    Cell(quantity, group, place(at)),
                    value if isinstance(value, str) else float(value),
                    tolerance if judged else 0.0,
                    at_most=judged and quantity in table.get("at_most", ()),
                    at_least=judged and quantity in table.get("at_least", ()),
                )


def beside(printed: Iterable[Figure], obtained: Iterable[Cell]) -> Iterator[Figure]:
    """Yields a figure without a value for each obtained cell that no table prints."""
    known = {figure.cell for figure in printed}
    yield from (Figure(BESIDE, False, cell, NOT_PRINTED, 0.0) for cell in obtained if cell not in known)


def remarks(said: Mapping[str, Any], dataset: str, groups: Sequence[str] = ()) -> list[Remark]:
    """Returns the remarks on a data set; ``groups`` are the names of G0 and G1, where its tables write these."""
    names = dict(zip(("G0", "G1"), groups, strict=False))
    return [
        Remark(
            sources=frozenset(each["sources"]),
            quantities=frozenset(each["quantities"]),
            group=names.get(each.get("group", ""), each.get("group", "")),
            at=place(each["at"]) if "at" in each else None,
            ours=each.get("ours"),
            verdict=Verdict(each["verdict"]),
            between=(each["between"][0], each["between"][1]) if "between" in each else None,
            why=each["why"],
        )
        for each in said.get("remark", [])
        if dataset in each["datasets"]
    ]


def place(said: Sequence[str | float]) -> tuple[Value, ...]:
    """Returns what a cell is at: words, and all numbers of one type."""
    return tuple(each if isinstance(each, str) else float(each) for each in said)
