"""One side of a matching estimator: its design rows, its regression, and the noise of its decisions.

The control side is the complainants' group, the test side the reference group. Design rows: ``numerics.design``.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.special import expit

from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.statistics.design import DesignRows
from tasks.numerics.statistics.logit import fit_logit

ROWS_A_COLUMN = 10
"""With fewer rows for each column of a side, squares are dropped; with fewer still, nothing is adjusted (ours)."""

RIDGE = 1e-3
"""Penalty of the logistic regression, so that a decision that columns foretell has a finite fit (ours)."""

LARGEST_LEVERAGE = 0.9
"""Leverages above it are taken as this, so that no single row makes the variance (ours)."""

SMALLEST = 1e-10
"""Eigenvalues of Z'Z below this share of the largest count as 0: the column does not vary on this side."""


class Rows(Protocol):
    """Makes design rows of values."""

    def of(self, values: Floats) -> Floats:
        """``(r, d)`` rows of applicants with ``(r, p)`` values."""


@dataclass(frozen=True)
class Scored:
    """Design rows with one column more: the probability of denial, by a logit of all applicants.

    Neighbours of complainants in a tail lie nearer to the centre. A logit bends there, which squares take up in part
    and products of columns would: this one column is what both say of denial (a prognostic score; Hansen 2008).
    """

    base: DesignRows
    score: DesignRows
    coefficients: Floats
    """``(s,)`` of the logit."""

    def of(self, values: Floats) -> Floats:
        """``(r, d + 1)`` design rows."""
        probability = expit(self.score.of(values) @ self.coefficients)
        return np.column_stack([self.base.of(values), probability])


def scored(
    designs: tuple[DesignRows, DesignRows], values: Floats, rows: Longs, denied: Floats, start: Floats | None = None
) -> tuple[Scored, Scored]:
    """The designs with the score of denial; it is fitted to these rows with squares, and labels do not matter to it.

    Args:
        designs: With squares, and without.
        values: ``(n, p)`` of all rows.
        rows: Both sides.
        denied: ``(n,)``.
        start: Where the search starts: the coefficients of most of the same rows.
    """
    fit = fit_logit(designs[0].of(values[rows]), denied[rows], start, ridge=RIDGE)
    with_squares, without = (Scored(design, designs[0], fit.coefficients) for design in designs)
    return with_squares, without


@dataclass(frozen=True)
class Side:
    """``s`` rows of one group as a regression sees them."""

    rows: Longs
    """``(s,)`` their numbers in the file, ascending."""
    design: Rows
    z: Floats
    """``(s, d)`` design rows."""
    denied: Floats
    """``(s,)`` 1 where the decision was unfavourable, else 0."""
    inverse: Floats
    """``(d, d)`` generalised inverse of Z'Z."""
    logit: Floats
    """``(d,)`` of the regression that tells its noise."""
    variance: Floats
    """``(s,)`` s_j^2 = (y_j - p_j)^2 / (1 - h_j)^2: the noise of each decision, given the applicants."""

    @cached_property
    def coefficients(self) -> Floats:
        """``(d,)`` least squares coefficients of the decisions."""
        found: Floats = self.inverse @ (self.z.T @ self.denied)
        return found

    def adjusted(self, share: Floats, target: Floats) -> Floats:
        """``(s,)`` weights with the design mean ``target``: w_j = c_j + z_j' (Z'Z)^- (target - sum_j c_j z_j).

        Args:
            share: ``(s,)`` how often each row served as a neighbour; sums to 1.
            target: ``(d,)`` mean design row of the complainants, or of their counterfactuals.

        Source: bias-corrected matching (Abadie and Imbens 2011, section 3), with a linear regression.
        """
        gap = target - self.z.T @ share
        found: Floats = share + self.z @ (self.inverse @ gap)
        return found


def fit_side(
    designs: tuple[Rows, Rows], values: Floats, rows: Longs, denied: Floats, start: Floats | None = None
) -> Side | None:
    """The side of some rows; None with fewer than ``ROWS_A_COLUMN`` rows for each column that varies among them.

    Args:
        designs: With squares, and without.
        values: ``(n, p)`` of all rows.
        rows: ``(s,)`` rows of this side, ascending.
        denied: ``(n,)`` 1 for an unfavourable decision.
        start: Where the search for the logit starts, if it has as many columns.
    """
    for design in designs:
        z = design.of(values[rows])
        inverse, rank = inverse_of(z)
        if len(rows) >= ROWS_A_COLUMN * max(rank, 1):
            near = start if start is not None and len(start) == z.shape[1] else None
            return Side(rows, design, z, denied[rows], inverse, *noise(z, denied[rows], near))
    return None


def noise(z: Floats, denied: Floats, start: Floats | None = None) -> tuple[Floats, Floats]:
    """Coefficients ``(d,)`` of a ridge logit, and its squared residuals over (1 - leverage)^2, ``(s,)``.

    Source: Abadie and Imbens (2006, section 4), conditional on the applicants; the correction for leverage is that of
    the jackknife (HC3).
    """
    fit = fit_logit(z, denied, start, ridge=RIDGE)
    weight = fit.fitted * (1 - fit.fitted)
    leverage = weight * np.einsum("ij,jk,ik->i", z, fit.inverse, z, optimize=True)
    return fit.coefficients, ((denied - fit.fitted) / (1 - np.minimum(leverage, LARGEST_LEVERAGE))) ** 2


def inverse_of(z: Floats) -> tuple[Floats, int]:
    """Generalised inverse of Z'Z, ``(d, d)``, and the rank of Z ``(s, d)``."""
    if not len(z):
        return np.zeros((z.shape[1], z.shape[1])), 0
    sizes, vectors = np.linalg.eigh(z.T @ z)
    kept = sizes > SMALLEST * sizes[-1]
    return (vectors[:, kept] / sizes[kept]) @ vectors[:, kept].T, int(kept.sum())
