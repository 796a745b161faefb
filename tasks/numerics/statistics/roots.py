"""Roots of many functions of one variable at once, by Chandrupatla's method (1997).

It takes the steps of scipy's ``elementwise.find_root`` and ends at the same numbers. For the few functions of a small
table scipy's own checks of arrays take six times as long as the search.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from tasks.numerics.arrays import Bools, Floats

MOST_STEPS: Final = 2_000
"""Halvings of the widest interval of doubles."""
_TINY, _EPSILON = float(np.finfo(np.float64).smallest_normal), float(np.finfo(np.float64).eps)


def roots(function: Callable[..., Floats], low: float, high: float, arguments: tuple[Floats, ...]) -> Floats:
    """The roots of functions between two ends; NaN where a function has the same sign at both.

    Args:
        function: takes ``(u,)`` points and the arguments there, and gives ``(u,)`` values.
        low: lower end.
        high: upper end.
        arguments: arrays that broadcast together.

    Returns:
        In the shape of ``arguments``.
    """
    broadcast = np.broadcast_arrays(*arguments)
    given = [argument.ravel() for argument in broadcast]
    out, places = np.full(given[0].shape, np.nan), np.arange(given[0].size)
    x1, x2 = np.full(out.shape, low), np.full(out.shape, high)
    f1, f2 = function(x1, *given), function(x2, *given)
    x3, f3, half = x2, f2, True  # the first step halves
    for _ in range(MOST_STEPS):
        best, tolerance, stops = _look(x1, f1, x2, f2)
        out[places[stops]] = best[stops]
        if stops.all():
            break
        if stops.any():
            places, tolerance, *given = (part[~stops] for part in (places, tolerance, *given))
            x1, f1, x2, f2, x3, f3 = (part[~stops] for part in (x1, f1, x2, f2, x3, f3))
        least = 0.5 * tolerance / np.abs(x2 - x1)
        share = np.full(x1.shape, 0.5) if half else np.clip(_share(x1, f1, x2, f2, x3, f3), least, 1 - least)
        x = x1 + share * (x2 - x1)
        f, half = function(x, *given), False
        same = np.sign(f) == np.sign(f1)
        x3, f3 = np.where(same, x1, x2), np.where(same, f1, f2)
        x2, f2 = np.where(same, x2, x1), np.where(same, f2, f1)
        x1, f1 = x, f
    return out.reshape(broadcast[0].shape)


def _look(x1: Floats, f1: Floats, x2: Floats, f2: Floats) -> tuple[Floats, Floats, Bools]:
    """The better end, NaN without a root between both; how exact it has to be; whether the search ends."""
    first = np.abs(f1) < np.abs(f2)
    best = np.where(first, x1, x2)
    exact = np.abs(np.where(first, f1, f2)) <= _TINY
    tolerance = np.abs(best) * 4 * _EPSILON + 4 * _TINY
    none = ~exact & ((np.sign(f1) == np.sign(f2)) | (np.isnan(f1) & np.isnan(f2)))
    return np.where(none, np.nan, best), tolerance, exact | none | (np.abs(x2 - x1) < tolerance)


def _share(x1: Floats, f1: Floats, x2: Floats, f2: Floats, x3: Floats, f3: Floats) -> Floats:
    """How far from the first end to the second: by inverse quadratic interpolation where that is safe, else half."""
    xi, alpha = (x1 - x2) / (x3 - x2), (x3 - x1) / (x2 - x1)
    with np.errstate(divide="ignore", invalid="ignore"):
        phi = (f1 - f2) / (f3 - f2)
        interpolated = f1 / (f1 - f2) * f3 / (f3 - f2) - alpha * f1 / (f3 - f1) * f2 / (f2 - f3)
    safe = ((1 - np.sqrt(1 - xi)) < phi) & (phi < np.sqrt(xi))
    return np.where(safe, interpolated, 0.5)
