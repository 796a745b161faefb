"""Compares published figures with our own: a line has the figure, ours beside it, and the verdict.

Figures have two kinds of source: the reference outputs, which ours must equal, and the paper, which in places deviates
from its authors' own code. Where ours equals the reference and the paper does not, the paper prints otherwise, and that
is no failure. Some figures are errors, of which ours may be less. A cell that our code did not fill differs.

Scope: comparison. Figures: ``published``, and ``golden.py`` and ``obtained.py`` of a method's folder ``reproduction``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

Value = float | str
ALL = "all"
"""Stands for the groups together."""

FOUR_DECIMALS = 1e-4

NOT_RUN = "not run"
"""Stands for a cell that our code does not fill; a reason can follow it, after a colon. Such a cell has no verdict."""

CONFIRMED = "the reference has what we have"
"""Why the paper may print otherwise."""


class Verdict(StrEnum):
    """How a figure and ours compare."""

    AGREES = "agrees"
    DIFFERS = "differs"
    OTHERWISE = "paper prints otherwise"
    INFORMATION = "information"


class Cell(NamedTuple):
    """What a figure is about: a quantity of a group, at some k, limit d, share c or attribute."""

    quantity: str
    group: str
    at: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Figure:
    """The value of a cell in a source."""

    source: str
    reference: bool
    """Whether the source is the reference's output, and not the paper."""
    cell: Cell
    value: Value
    """NaN where the source has no value because there is none to have."""
    tolerance: float
    at_most: bool = False
    """Whether ours agrees wherever it is not above, too: the less the better."""
    at_least: bool = False
    """Whether ours agrees wherever it is not below, too: the more the better."""


@dataclass(frozen=True)
class Remark:
    """The reason why figures of a data set need not be ours. The first that fits a figure counts."""

    sources: frozenset[str]
    quantities: frozenset[str]
    group: str
    """Empty: every group."""
    at: tuple[Value, ...] | None
    """None: at every k, d or c."""
    ours: float | None
    """What we then must have, to four decimals; None: anything."""
    verdict: Verdict
    why: str
    between: tuple[float, float] | None = None
    """Least and greatest value that it explains; None: any. Beyond them a figure differs all the same."""

    def fits(self, figure: Figure, ours: Value) -> bool:
        """Whether it is about this figure."""
        cell = figure.cell
        return (
            figure.source in self.sources
            and cell.quantity in self.quantities
            and self.group in ("", cell.group)
            and self.at in (None, cell.at)
            and (self.ours is None or (isinstance(ours, float) and abs(ours - self.ours) < FOUR_DECIMALS))
            and (self.between is None or (isinstance(ours, float) and self.between[0] <= ours <= self.between[1]))
        )


@dataclass(frozen=True)
class Line:
    """One figure with ours beside it."""

    dataset: str
    figure: Figure
    obtained: Value | None
    """None where our code filled no such cell."""
    verdict: Verdict
    why: str = ""

    @property
    def difference(self) -> float | None:
        """Ours less the figure, where both are numbers."""
        ours, said = self.obtained, self.figure.value
        both = isinstance(ours, float) and isinstance(said, float) and math.isfinite(ours) and math.isfinite(said)
        return ours - said if both else None  # type: ignore[operator]


def compare(
    dataset: str, figures: Sequence[Figure], obtained: Mapping[Cell, Value], remarks: Sequence[Remark]
) -> list[Line]:
    """Compares figures with our cells and returns a line for each, in their order."""
    confirmed = {f.cell for f in figures if f.reference and _equal(obtained.get(f.cell), f)}
    return [_line(dataset, figure, obtained.get(figure.cell), confirmed, remarks) for figure in figures]


def _line(dataset: str, figure: Figure, ours: Value | None, confirmed: set[Cell], remarks: Sequence[Remark]) -> Line:
    if _equal(ours, figure):
        return Line(dataset, figure, ours, Verdict.AGREES)
    if ours is None:
        return Line(dataset, figure, ours, Verdict.DIFFERS, "our code filled no such cell")
    if not figure.reference and figure.cell in confirmed:
        return Line(dataset, figure, ours, Verdict.OTHERWISE, CONFIRMED)
    remark = next((r for r in remarks if r.fits(figure, ours)), None)
    if remark:
        return Line(dataset, figure, ours, remark.verdict, remark.why)
    if isinstance(ours, str) and ours.startswith(NOT_RUN):
        return Line(dataset, figure, ours, Verdict.INFORMATION)
    return Line(dataset, figure, ours, Verdict.DIFFERS)


def _equal(ours: Value | None, figure: Figure) -> bool:
    said = figure.value
    if isinstance(ours, float) and isinstance(said, float):
        above = ours - said
        off = above if figure.at_most else -above if figure.at_least else abs(above)
        return (math.isnan(ours) and math.isnan(said)) or off <= figure.tolerance
    return ours == said
