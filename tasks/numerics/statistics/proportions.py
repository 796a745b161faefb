"""Two shares and their difference: intervals and one-sided tests, for many complainants at once.

There are three intervals of the difference of two independent shares. Wald's (Alvarez and Ruggieri 2023, Eq. 5, read
with the sum of the two variances; with the printed minus some published rows would need the root of a negative number)
has no width when both shares are 0 or 1. Newcombe's hybrid score interval (1998, method 10) and that of Agresti and
Caffo (2000) do not have that fault.

Each is a lower bound at a normal quantile z, falling in z; at -z the same expression is the upper bound. The p-value of
'the difference is at most tau' is the level at which the lower bound is tau, so that p < alpha iff the lower bound
exceeds tau.
"""

from typing import Literal, NamedTuple

import numpy as np
import scipy

from tasks.numerics.arrays import Floats, Longs

Interval = Literal["newcombe", "agresti_caffo", "wald"]

FURTHEST = 37.0
"""Normal quantile whose tail is about the smallest that a double holds in full (6e-300)."""


class Pair(NamedTuple):
    """Events in a control and in a test group, counted for each complainant. Of one shape; NaN where not counted."""

    control: Floats
    control_n: Floats
    test: Floats
    test_n: Floats

    @property
    def control_share(self) -> Floats:
        """Share of events in the control group."""
        return self.control / self.control_n

    @property
    def test_share(self) -> Floats:
        """Share of events in the test group."""
        return self.test / self.test_n

    @property
    def delta(self) -> Floats:
        """How much larger the control group's share is.

        Divided once, out of whole numbers: equal shares differ by 0, and 8 of 10 and 6 of 10 by no more than 0.2.
        """
        return (self.control * self.test_n - self.test * self.control_n) / (self.control_n * self.test_n)


def quantile(alpha: float, decimals: int | None = None) -> float:
    """Normal quantile of a one-sided level; published figures rest on one rounded to three digits (1.645)."""
    z = float(scipy.special.ndtri(1 - alpha))
    return z if decimals is None else round(z, decimals)


def wilson(events: int, n: int, z: float) -> tuple[float, float]:
    """Wilson's score interval of one share (1927) at normal quantile ``z``: from 0 where nobody, to 1 where all."""
    low, high = wilsons(np.array([events], dtype=np.float64), np.array([n], dtype=np.float64), z)
    return float(low[0]), float(high[0])


def wilsons(events: Floats, n: Floats, z: float) -> tuple[Floats, Floats]:
    """``wilson`` of each of ``(s,)`` shares; all have units."""
    low, high = (_wilson(np.float64(side), events, n) for side in (z, -z))
    return np.where(events > 0, low, 0.0), np.where(events < n, high, 1.0)


def bounds(pair: Pair, interval: Interval, z: float) -> tuple[Floats, Floats]:
    """Lower and upper bound of the difference at normal quantile ``z``, each one-sided; of the shape of the pair."""
    if interval == "newcombe":
        return _newcombe(np.float64(z), *pair), _newcombe(np.float64(-z), *pair)
    centre, error = _normal(pair, interval)
    return centre - z * error, centre + z * error


def p_values(pair: Pair, interval: Interval, tau: float) -> Floats:
    """Smallest level at which the lower bound is above ``tau``, of the shape of the pair; NaN where not counted.

    An interval without width (Wald, both shares 0 or 1) gives 0 or 1.
    """
    if interval == "newcombe":
        return _newcombe_p(pair, tau)
    centre, error = _normal(pair, interval)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(error > 0, scipy.special.ndtr((tau - centre) / error), np.where(centre > tau, 0.0, 1.0))
    return np.where(np.isnan(centre), np.nan, p)


def _normal(pair: Pair, interval: Interval) -> tuple[Floats, Floats]:
    """Centre and standard error of an interval that is linear in z."""
    if interval == "agresti_caffo":
        pair = Pair(pair.control + 1, pair.control_n + 2, pair.test + 1, pair.test_n + 2)
    control, test = pair.control_share, pair.test_share
    return pair.delta, np.sqrt(control * (1 - control) / pair.control_n + test * (1 - test) / pair.test_n)


def _newcombe(z: Floats | np.float64, control: Floats, control_n: Floats, test: Floats, test_n: Floats) -> Floats:
    """Newcombe's lower bound; the upper one where ``z`` is negative."""
    down = control / control_n - _wilson(z, control, control_n)
    up = _wilson(-z, test, test_n) - test / test_n
    return Pair(control, control_n, test, test_n).delta - np.copysign(np.hypot(down, up), z)


def _wilson(z: Floats | np.float64, events: Floats, n: Floats) -> Floats:
    """Wilson's lower bound of one share; the upper one where ``z`` is negative."""
    spread = np.sqrt(events * (n - events) / n + z**2 / 4)
    return (events + z**2 / 2 - z * spread) / (n + z**2)


def _newcombe_p(pair: Pair, tau: float) -> Floats:
    """Tail beyond the z at which the lower bound is ``tau``, found once for every distinct pair of counts."""
    known = ~np.isnan(pair.delta)
    p = np.full(known.shape, np.nan)
    if known.any():
        first, back = _distinct(Pair(*(part[known] for part in pair)))
        p[known] = _tail(Pair(*(part[known][first] for part in pair)), tau)[back]
    return p


def _tail(pair: Pair, tau: float) -> Floats:
    """The p-values of ``(u,)`` pairs; 0 or 1 where the bound is on one side of ``tau`` at every z looked at."""
    above = _newcombe(np.float64(FURTHEST), *pair) >= tau
    below = _newcombe(np.float64(-FURTHEST), *pair) <= tau
    from scipy.optimize import elementwise  # a fifth of a second, and a plan searches for no end

    found = elementwise.find_root(lambda z, *counts: _newcombe(z, *counts) - tau, (-FURTHEST, FURTHEST), args=pair)
    return np.select([above, below], [0.0, 1.0], scipy.special.ndtr(-found.x))


def _distinct(pair: Pair) -> tuple[Longs, Longs]:
    """Where each distinct pair of counts comes first, and which of them each complainant has.

    Groups of k neighbours have few pairs of counts, whatever the number of complainants.
    """
    base = int(max(pair.control_n.max(), pair.test_n.max())) + 1
    key = np.zeros(pair.control.shape, dtype=np.int64)
    for part in pair:
        key = key * base + part.astype(np.int64)
    _, first, back = np.unique(key, return_index=True, return_inverse=True)
    return first, back
