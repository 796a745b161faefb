"""Contrasts: effects as linear forms in the decisions, with weights from lists of neighbours.

The mean difference of situation testing is linear in the decisions, so that its error has a closed form: the sum of
w_j^2 s_j^2 counts every decision once, however many complainants share it as a neighbour. It is also a mean over
complainants, so that where a sample of them is asked the design adds s^2/m (1 - m/N).
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tasks.methods.cst.algorithm.effect.side import Side, fit_side, scored
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.columns import Columns
from tasks.numerics.statistics.design import DesignRows, fitted
from tasks.numerics.statistics.sampling import design_variance

NOBODY = -1
"""Stands in a list of neighbours where there are no more."""


class Lists(NamedTuple):
    """Neighbours of ``c`` complainants who have both a control and a test group."""

    row: Longs
    """``(c,)`` complainants, ascending."""
    control: Longs
    """``(c, w)`` rows of their control groups, -1 beyond the last."""
    test: Longs
    """``(c, w)`` rows of their test groups."""
    moved: Floats | None = None
    """``(c, p)`` values around which the test groups were sought; None for the complainants' own."""


class Design(NamedTuple):
    """A sample of complainants, and how far each of them moves both sides of an effect."""

    asked: int
    of: int
    control: Floats
    """``(n,)`` of each row, about 0; 0 of who was not asked, or has no neighbours."""
    test: Floats
    """``(n,)``"""

    def variance(self, control: float = 1.0, test: float = -1.0) -> float:
        """That the design adds to so many times the control side plus so many times the other."""
        return design_variance(control * self.control + test * self.test, self.asked, self.of)

    def less(self, other: "Design") -> "Design":
        """Of the difference of two effects, of the same sample."""
        return self._replace(control=self.control - other.control, test=self.test - other.test)


class Sides(NamedTuple):
    """Both sides of a comparison."""

    own: Side
    other: Side
    score: Floats | None = None
    """Coefficients of the score of denial, where the designs have one."""

    def variance(self, size: int) -> Floats:
        """``(n,)`` noise of each decision of the file; 0 for a row on neither side."""
        found = np.zeros(size)
        for side in (self.own, self.other):
            found[side.rows] = side.variance
        return found

    @property
    def unchanging(self) -> bool:
        """Whether nobody on either side was decided on otherwise than the others."""
        return all(np.ptp(side.denied) == 0 for side in (self.own, self.other))


@dataclass(frozen=True)
class Contrast:
    """An effect on the decisions of ``n`` rows."""

    weights: Floats
    """``(n,)``; the effect is their product with the decisions. They sum to 1 on the control side, -1 on the other."""
    raw: Floats
    """``(n,)`` the same without the adjustment: c_j less t_j."""
    control: Floats
    """``(n,)`` c_j: how often a row served as control, as a share."""
    complainants: int
    structural: float = 0.0
    """Variance that comes from the estimated causal model; 0 where nothing is estimated."""
    design: Design | None = None
    """Of a sample of complainants; None where all are asked."""

    def value(self, denied: Floats) -> float:
        """The effect: positive where the group is denied more often."""
        return float(self.weights @ denied)

    def se(self, variance: Floats) -> float:
        """Standard error, from the noise of each decision ``(n,)``, the causal model and the sample of complainants."""
        return math.sqrt(float(self.weights**2 @ variance) + self.structural + self.sampling)

    @property
    def sampling(self) -> float:
        """Variance that comes from asking a sample of the complainants; exactly 0 where all are asked."""
        return 0.0 if self.design is None else self.design.variance()

    def estimated(self, structural: float) -> "Contrast":
        """The same with the variance of an estimated causal model."""
        return replace(self, structural=structural)

    def less(self, other: "Contrast") -> "Contrast":
        """The difference of two effects on the same rows; only this one's causal model is estimated."""
        design = None if self.design is None or other.design is None else self.design.less(other.design)
        return replace(self, weights=self.weights - other.weights, raw=self.raw - other.raw, design=design)


def designs_of(columns: Columns) -> tuple[DesignRows, DesignRows]:
    """Design rows with squares and without, standardised over all rows."""
    return fitted(columns, squared=True), fitted(columns, squared=False)


def sides_of(
    designs: tuple[DesignRows, DesignRows],
    values: Floats,
    rows: tuple[Longs, Longs],
    denied: Floats,
    near: Sides | None = None,
) -> Sides | None:
    """Both sides; None where one has too few rows for an adjustment.

    Args:
        designs: Of ``designs_of``.
        values: ``(n, p)`` of all rows.
        rows: Of the group, and of whom it is compared with.
        denied: ``(n,)``.
        near: The sides of another group beside the same others, where the searches for logits start.
    """
    score, logit = (None, None) if near is None else (near.score, near.other.logit)
    with_score = scored(designs, values, np.sort(np.concatenate(rows)), denied, score)
    own = fit_side(with_score, values, rows[0], denied)
    other = fit_side(with_score, values, rows[1], denied, logit) if own is not None else None
    return Sides(own, other, with_score[0].coefficients) if own is not None and other is not None else None


def contrast(sides: Sides, values: Floats, lists: Lists, part: tuple[int, int] | None = None) -> Contrast:
    """The adjusted mean difference of the complainants' control and test groups.

    Args:
        sides: Both regressions, of all rows.
        values: ``(n, p)`` of all rows.
        lists: Neighbours of the complainants.
        part: How many complainants were asked, and of how many; None: of all.
    """
    size = len(values)
    control, test = served(lists.control, size), served(lists.test, size)
    own, moved = values[lists.row], lists.moved if lists.moved is not None else values[lists.row]
    weights = np.zeros(size)
    for side, share, target, sign in ((sides.own, control, own, 1.0), (sides.other, test, moved, -1.0)):
        zbar = side.design.of(target).mean(axis=0)
        weights[side.rows] = sign * side.adjusted(share[side.rows], zbar)
    design = None
    if part is not None and part[0] < part[1]:
        of_rows = (sides.own, lists.control, own), (sides.other, lists.test, moved)
        design = Design(*part, *(_influence(*each, lists.row, size) for each in of_rows))
    return Contrast(weights, control - test, control, len(lists.row), design=design)


def _influence(side: Side, members: Longs, target: Floats, row: Longs, size: int) -> Floats:
    """``(n,)`` how far each complainant moves the mean of one side: the neighbours' residuals, and the own prediction.

    Args:
        side: Its regression, with coefficients b.
        members: ``(c, w)`` neighbours of each complainant, -1 beyond the last.
        target: ``(c, p)`` values that they are to have.
        row: ``(c,)`` the complainants.
        size: Rows of the file.
    """
    residual = np.zeros(size)
    residual[side.rows] = side.denied - side.z @ side.coefficients
    known = members != NOBODY
    each = np.where(known, residual[members], 0.0).sum(axis=1) / known.sum(axis=1)
    each = each + side.design.of(target) @ side.coefficients
    found = np.zeros(size)
    found[row] = (each - each.mean()) / len(row)
    return found


def served(members: Longs, size: int) -> Floats:
    """``(n,)`` how often each row is a neighbour, as a share: every complainant's group weighs the same.

    Args:
        members: ``(c, w)`` rows, -1 beyond the last; nobody's group is empty.
        size: Rows of the file.
    """
    known = members != NOBODY
    weight = known / (known.sum(axis=1, keepdims=True) * max(len(members), 1))
    found: Floats = np.bincount(members[known], weight[known], minlength=size)  # type: ignore[assignment]
    return found
