"""A reader who solves for counts: tables of whole people that fit all numbers of released files."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

EVERYBODY = "All"


class Cell(NamedTuple):
    """People who are alike to a reader."""

    groups: tuple[tuple[str, str], ...]
    """Protected attribute and group, of each attribute."""
    line: str
    """``used``, or the line of the waterfall that refused them."""
    denied: tuple[str, ...]
    """Decision makers who denied them."""


class Asked(NamedTuple):
    """A count of people: of a group, in the source, used or refused, all or those denied by a decision maker."""

    attribute: str
    group: str
    line: str
    """``source``, ``used``, or a line of refused records."""
    denied_by: str = ""

    def counts(self, cell: Cell) -> bool:
        return (
            self.group in (EVERYBODY, dict(cell.groups)[self.attribute])
            and self.line in ("source", cell.line)
            and (not self.denied_by or self.denied_by in cell.denied)
        )


class Reader:
    """What follows from released numbers."""

    def __init__(self, cells: Iterable[Cell], known: Mapping[Asked, tuple[float, float]]) -> None:
        self.cells: Sequence[Cell] = list(cells)
        rows = [[float(count.counts(cell)) for cell in self.cells] for count in known]
        low, high = np.array(list(known.values()), dtype=float).T
        self._fits = LinearConstraint(np.array(rows), low, high)

    def ends(self, count: Asked) -> tuple[int, int]:
        """The fewest and the most people that a count may be, by integer programmes."""
        aim = np.array([float(count.counts(cell)) for cell in self.cells])
        found = []
        for sign in (1, -1):
            answer = milp(sign * aim, constraints=self._fits, integrality=np.ones(aim.size), bounds=Bounds(0, 10_000))
            assert answer.status == 0, (count, answer.message)
            found.append(round(sign * answer.fun))
        return found[0], found[1]
