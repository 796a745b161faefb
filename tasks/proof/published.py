"""Published figures, read from a data file, with remarks that explain where a figure need not be ours.

Here belong the file and the remarks. How the tables of a paper are laid out, and the reference outputs, are in
``printed.py`` and ``golden.py`` of its method's folder ``reproduction``.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from schemas.errors import InfrastructureError
from tasks.proof.lines import Remark, Value, Verdict

REPRODUCED = "reproduced"
"""Source of the figures that the authors' code gives, printed to four decimals."""

ASKED = "asked"
"""Source of what a method's default is held to and no paper prints, such as never to end lower than it began."""

BESIDE = "beside"
"""Source of what is told beside figures and that nobody prints: there is nothing to hold against it."""

_HERE = Path(__file__).parents[2] / "flows"
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


def remarks(said: Mapping[str, Any], dataset: str, groups: Sequence[str] = ()) -> list[Remark]:
    """The remarks on a data set; ``groups`` are the names of G0 and G1, where its tables write these."""
    names = dict(zip(("G0", "G1"), groups, strict=False))
    return [
        Remark(
            sources=frozenset(each["sources"]),
            quantities=frozenset(each["quantities"]),
            group=names.get(each.get("group", ""), each.get("group", "")),
            at=place(each["at"]) if "at" in each else None,
            ours=each.get("ours"),
            verdict=Verdict(each["verdict"]),
            why=each["why"],
        )
        for each in said.get("remark", [])
        if dataset in each["datasets"]
    ]


def place(said: Sequence[str | float]) -> tuple[Value, ...]:
    """What a cell is at: words, and all numbers of one type."""
    return tuple(each if isinstance(each, str) else float(each) for each in said)
