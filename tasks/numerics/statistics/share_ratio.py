"""Score interval of the ratio of two independent shares (Koopman 1984; Miettinen and Nurminen 1985), many at once.

A ratio is inside if the score test does not reject it: the distance of the two shares from that ratio, over its
standard error at the most likely shares with that ratio. Miettinen and Nurminen multiply the variance by N / (N - 1).
The ends are roots on the logarithm of the ratio, found once for every distinct pair of counts.

A bootstrap of the ratio has no width where a share is 0 and too low a coverage where counts are small.
"""

import numpy as np

from tasks.numerics.arrays import Floats
from tasks.numerics.statistics.proportions import Pair

FURTHEST = 60.0
"""Logarithm of the largest ratio that is looked at; counts of persons do not lead there."""


def bounds(pair: Pair, z: float) -> tuple[Floats, Floats]:
    """Lower and upper end of control share over test share at normal quantile ``z``, each ``(c,)``.

    The lower end is 0 where the control group has no event, the upper end infinite where the test group has none.
    """
    counts, back = np.unique(np.column_stack(pair), axis=0, return_inverse=True)
    distinct, place = Pair(*counts.T), back.reshape(-1)
    low = np.where(distinct.control > 0, _end(distinct, z), 0.0)
    high = np.where(distinct.test > 0, _end(distinct, -z), np.inf)
    return low[place], high[place]


def score(pair: Pair, ratio: float) -> Floats:
    """The score statistic at a ratio, ``(c,)``: above 0 where the shares speak for a larger one.

    Its normal tail is the p of the test whose intervals ``bounds`` gives.
    """
    counts = Pair(*(np.asarray(each, dtype=np.float64) for each in pair))
    distance, error = _distance(np.full(counts.control.shape, ratio), counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(error > 0, distance / error, np.where(distance == 0, 0.0, np.sign(distance) * np.inf))


def _end(pair: Pair, z: float) -> Floats:
    """The ratio at which the score is ``z``; where a group has no event there may be none."""
    from scipy.optimize import elementwise  # a fifth of a second, and a plan searches for no end

    found = elementwise.find_root(lambda log, *counts: _beyond(log, Pair(*counts), z), (-FURTHEST, FURTHEST), args=pair)
    return np.asarray(np.exp(found.x), dtype=np.float64)


def _beyond(log: Floats, pair: Pair, z: float) -> Floats:
    """The distance of the shares from the ratio, less ``z`` standard errors: above 0 where the score exceeds ``z``."""
    ratio = np.exp(log)
    distance, error = _distance(ratio, pair)
    # where everybody has the event a ratio of 1 leaves neither distance nor error: the score is 0, which is inside
    beyond = np.where((distance == 0) & (error == 0), -z, distance - z * error)
    return np.asarray(beyond / (1 + ratio), dtype=np.float64)


def _distance(ratio: Floats, pair: Pair) -> tuple[Floats, Floats]:
    """The distance of the shares from a ratio, and its standard error at the likeliest shares with that ratio.

    These are the smaller root of a quadratic, in the form that does not cancel.
    """
    n = pair.control_n + pair.test_n
    b = pair.control_n * ratio + pair.control + pair.test_n + pair.test * ratio
    events = pair.control + pair.test
    root = np.sqrt(np.maximum(b * b - 4 * n * ratio * events, 0))
    test = 2 * events / (b + root)
    control = np.minimum(ratio * test, 1)
    variance = control * (1 - control) / pair.control_n + ratio**2 * test * np.maximum(1 - test, 0) / pair.test_n
    error = np.sqrt(variance * n / (n - 1))
    return pair.control_share - ratio * pair.test_share, error
