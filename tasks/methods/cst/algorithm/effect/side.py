"""One side of a matching estimator: its design rows, its regression, and the noise of its decisions.

The control side is the complainants' group, the test side the reference group. Design rows: ``numerics.design``.
"""

from dataclasses import dataclass

import numpy as np

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


@dataclass(frozen=True)
class Side:
    """``s`` rows of one group as a regression sees them."""

    rows: Longs
    """``(s,)`` their numbers in the file, ascending."""
    design: DesignRows
    z: Floats
    """``(s, d)`` design rows."""
    denied: Floats
    """``(s,)`` 1 where the decision was unfavourable, else 0."""
    inverse: Floats
    """``(d, d)`` generalised inverse of Z'Z."""
    variance: Floats
    """``(s,)`` s_j^2 = (y_j - p_j)^2 / (1 - h_j)^2: the noise of each decision, given the applicants."""

    @property
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


def fit_side(designs: tuple[DesignRows, DesignRows], values: Floats, rows: Longs, denied: Floats) -> Side | None:
    """The side of some rows; None with fewer than ``ROWS_A_COLUMN`` rows for each column that varies among them.

    Args:
        designs: With squares, and without.
        values: ``(n, p)`` of all rows.
        rows: ``(s,)`` rows of this side, ascending.
        denied: ``(n,)`` 1 for an unfavourable decision.
    """
    for design in designs:
        z = design.of(values[rows])
        inverse, rank = inverse_of(z)
        if len(rows) >= ROWS_A_COLUMN * max(rank, 1):
            return Side(rows, design, z, denied[rows], inverse, noise(z, denied[rows]))
    return None


def noise(z: Floats, denied: Floats) -> Floats:
    """``(s,)`` squared residuals of a ridge logit over (1 - leverage)^2.

    Source: Abadie and Imbens (2006, section 4), conditional on the applicants; the correction for leverage is that of
    the jackknife (HC3).
    """
    fit = fit_logit(z, denied, ridge=RIDGE)
    weight = fit.fitted * (1 - fit.fitted)
    leverage = weight * np.einsum("ij,jk,ik->i", z, fit.inverse, z, optimize=True)
    found: Floats = ((denied - fit.fitted) / (1 - np.minimum(leverage, LARGEST_LEVERAGE))) ** 2
    return found


def inverse_of(z: Floats) -> tuple[Floats, int]:
    """Generalised inverse of Z'Z, ``(d, d)``, and the rank of Z ``(s, d)``."""
    if not len(z):
        return np.zeros((z.shape[1], z.shape[1])), 0
    sizes, vectors = np.linalg.eigh(z.T @ z)
    kept = sizes > SMALLEST * sizes[-1]
    return (vectors[:, kept] / sizes[kept]) @ vectors[:, kept].T, int(kept.sum())
