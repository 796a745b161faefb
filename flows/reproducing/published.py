"""Published figures, and the remarks that explain where a figure need not be ours: read from a data file.

Here belong the file and the precision to which the paper prints. Reference outputs are in ``golden``.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from flows.reproducing.lines import COUNTS, FOUR_DECIMALS, Cell, Figure, Remark, Value, Verdict
from schemas.errors import InfrastructureError

PRINTED = 0.0101
"""The paper prints two decimals, rounded in places and cut off in others."""

REPRODUCED = "reproduced"
"""Source of the figures that the authors' code gives, printed to four decimals."""

_HERE = Path(__file__).parents[1]
_PLACES = (_HERE.parent / "data" / "published", _HERE / "bundled" / "published")


def read(paper: str) -> Mapping[str, Any]:
    """The published figures of a paper.

    Raises:
        InfrastructureError: The file is not where it was installed.
    """
    file = next((place for place in _PLACES if place.is_dir()), _PLACES[0]) / f"{paper}.toml"
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InfrastructureError(f"{str(file)!r} is not there; it belongs to evenhand: install it again") from error


def figures(said: Mapping[str, Any], dataset: str, groups: Sequence[str]) -> Iterator[Figure]:
    """What the tables say of a data set; ``groups`` are the names of G0 and G1."""
    for table in said["table"]:
        if table["dataset"] == dataset:
            for label, group in zip(("G0", "G1"), groups, strict=True):
                for at, row in zip(table.get("at", [None]), table[label], strict=True):
                    yield from _row(table, group, () if at is None else (float(at),), row)


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


def remarks(said: Mapping[str, Any], dataset: str, groups: Sequence[str]) -> list[Remark]:
    """The remarks on a data set, with the groups by their names."""
    names = {"": "", **dict(zip(("G0", "G1"), groups, strict=True))}
    return [
        Remark(
            sources=frozenset(each["sources"]),
            quantities=frozenset(each["quantities"]),
            group=names[each.get("group", "")],
            at=tuple(map(float, each["at"])) if "at" in each else None,
            ours=each.get("ours"),
            verdict=Verdict(each["verdict"]),
            why=each["why"],
        )
        for each in said.get("remark", [])
        if dataset in each["datasets"]
    ]
