"""A cumulative logit fitted to a resample, by Newton's method from the fit to all rows.

The penalised likelihood is concave in slopes and cuts together (Burridge 1981), so that it has one maximum, and from
nearby three or four steps reach it where the search from the start takes thirty. Rows are sorted by category once: all
sums over categories are then of neighbours.

Scope: the steps. The model, and its fit from the start: ``cumulative``.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit

from tasks.numerics.arrays import Floats, Longs

CLOSE = 1e-9
"""Newton has arrived when no parameter would move by more."""
STEPS, HALVINGS = 30, 30


@dataclass(frozen=True)
class Sorted:
    """``n`` rows by category, of ``c`` categories that all occur."""

    x: Floats
    """``(n, q)`` scaled causes."""
    place: Longs
    """``(n,)`` ascending."""
    start: Longs
    """``(c,)`` first row of each category."""

    @classmethod
    def of(cls, x: Floats, place: Longs) -> "Sorted":
        """Rows and the number of each row's category."""
        order = np.argsort(place, kind="stable")
        ordered = place[order]
        return cls(x[order], ordered, np.flatnonzero(np.diff(ordered, prepend=-1)))

    def sums(self, values: Floats) -> Floats:
        """Sums by category ``(c, ...)`` of one value, or one row, for each row."""
        return np.add.reduceat(values, self.start, axis=0)


def newton(x: Floats, place: Longs, slopes: Floats, cuts: Floats) -> tuple[Floats, Floats] | None:
    """Slopes ``(q,)`` and cuts ``(c - 1,)`` of the largest penalised likelihood; None where it is not reached.

    Args:
        x: ``(n, q)`` scaled causes.
        place: ``(n,)`` number of each row's category; all from 0 to c - 1 occur.
        slopes: Where to start.
        cuts: Likewise, ascending.
    """
    rows, q = Sorted.of(x, place), len(slopes)
    b = np.concatenate([slopes, cuts])
    value = likelihood(rows, b)
    for _ in range(STEPS):
        gradient, curvature = derivatives(rows, b)
        try:
            step = np.linalg.solve(curvature, gradient)
        except np.linalg.LinAlgError:
            return None
        for _ in range(HALVINGS):
            ahead = b + step
            reached = likelihood(rows, ahead)
            if reached >= value - 1e-12 * abs(value):
                break
            step = step / 2
        else:
            return None
        b, value = ahead, reached
        if np.abs(step).max() <= CLOSE:
            return b[:q], b[q:]
    return None


def likelihood(rows: Sorted, b: Floats) -> float:
    """Log likelihood less half the squared slopes; minus infinity where the cuts do not ascend."""
    q = rows.x.shape[1]
    if (np.diff(b[q:]) <= 0).any():
        return float("-inf")
    above, below, gap = _ends(rows, b)
    whole = log_expit(above) + log_expit(-below) + np.log(-np.expm1(-gap))
    return float(whole.sum() - b[:q] @ b[:q] / 2)


def derivatives(rows: Sorted, b: Floats) -> tuple[Floats, Floats]:
    """Gradient ``(q + c - 1,)`` and minus the second derivatives of the penalised log likelihood.

    With F the logistic function, a row's probability is F(a) - F(b) between its ends a and b, less the linear term;
    ``shrink`` is 1 / (exp(a - b) - 1). Minus the second derivatives are F(a) F(-a) + h in a, F(b) F(-b) + h in b and -h
    across, with h = shrink (1 + shrink).
    """
    q = rows.x.shape[1]
    above, below, gap = _ends(rows, b)
    up, down, shrink = expit(-above), expit(below), 1 / np.expm1(gap)
    of_above, of_below = up + shrink, down + shrink  # the second with its sign turned
    a, c, h = rows.sums(up * (1 - up)), rows.sums(down * (1 - down)), rows.sums(shrink * (1 + shrink))
    both = up * (1 - up) + down * (1 - down)
    found = np.zeros((len(b), len(b)))
    found[:q, :q] = (rows.x * both[:, None]).T @ rows.x
    found.flat[: q * len(b) : len(b) + 1] += 1
    upper = rows.sums(rows.x * (up * (1 - up))[:, None])[:-1]
    lower = rows.sums(rows.x * (down * (1 - down))[:, None])[1:]
    found[q:, :q] = -upper - lower
    found[:q, q:] = found[q:, :q].T
    cut = np.arange(q, len(b))
    found[cut, cut] = (a + h)[:-1] + (c + h)[1:]
    found[cut[1:], cut[:-1]] = found[cut[:-1], cut[1:]] = -h[1:-1]
    gradient = np.concatenate(
        [-(rows.x.T @ (of_above - of_below)) - b[:q], rows.sums(of_above)[:-1] - rows.sums(of_below)[1:]]
    )
    return gradient, found


def _ends(rows: Sorted, b: Floats) -> tuple[Floats, Floats, Floats]:
    """Both ends of each row's category less its linear term, and how far they are apart."""
    q = rows.x.shape[1]
    ends, linear = np.concatenate([[-np.inf], b[q:], [np.inf]]), rows.x @ b[:q]
    wide = np.concatenate([[np.inf], np.diff(b[q:]), [np.inf]])
    return ends[rows.place + 1] - linear, ends[rows.place] - linear, wide[rows.place]
