"""Encoding of columns into [0, 1], and back (FGCE, appendix; clipping is ours, see docs/methods/index.md).

A continuous column is clipped at its 1st and 99th percentile, cut into log2(unique) + 1 or a given number of bins of
equal width, and scaled so that the first bin is 0 and the last is 1. Ordered categories are spread evenly over [0, 1];
other categories become one column each. Missing values are not accepted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.numerics.arrays import Floats, Ints

Codes = Ints

CLIP = (0.01, 0.99)
"""Quantiles at which a continuous column is clipped: public HMDA holds loan-to-value ratios of 9,999."""


@dataclass(frozen=True)
class Scale:
    """How a continuous column is laid onto [0, 1]."""

    low: float
    high: float
    bins: int | None
    """Number of equal-width bins, None for no bins."""

    @property
    def constant(self) -> bool:
        """Whether all values of the column became one, or lie closer than a double can divide by."""
        return bool(self.high - self.low < np.finfo(np.float64).tiny)


def fit_scale(values: Floats, *, clip: bool, bins: bool | int) -> Scale:
    """The scale of a column from its finite values ``(n,)``; ``bins`` may be a number, or whether there are any."""
    low, high = np.quantile(values, CLIP, method="inverted_cdf") if clip else (values.min(), values.max())
    if bins is True:
        inside = values[(values >= low) & (values <= high)]
        bins = max(1, int(np.log2(len(np.unique(inside)))) + 1)
    return Scale(float(low), float(high), bins or None)


def encode_continuous(values: Floats, scale: Scale) -> Floats:
    """``(n,)`` in [0, 1]; 0 throughout for a constant column."""
    if scale.constant:
        return np.zeros(len(values))
    inside = np.clip(values, scale.low, scale.high)
    if scale.bins is None:
        return _unit(inside, scale.low, scale.high)
    index = np.floor((inside - scale.low) / (scale.high - scale.low) * scale.bins)
    return _unit(np.minimum(index, scale.bins - 1), 0, max(scale.bins - 1, 1))


def _unit(values: Floats | Codes, low: float, high: float) -> Floats:
    """Values between ``low`` and ``high`` laid onto [0, 1], rounded as scikit-learn's ``MinMaxScaler`` rounds.

    The paper's matrices were made with it, and whether a distance is below epsilon can hang on the last bit.
    """
    factor = 1 / (high - low)
    return np.clip(values * factor - low * factor, 0.0, 1.0)


def encode_ordered(codes: Codes, categories: int) -> Floats:
    """Category numbers ``(n,)`` from 0 spread over [0, 1]."""
    return _unit(codes, 0, max(categories - 1, 1))


def decode_ordered(encoded: Floats, categories: int) -> Codes:
    """The category numbers behind ``encode_ordered``."""
    return np.rint(encoded * max(categories - 1, 1)).astype(np.int32)


def encode_one_hot(codes: Codes, categories: int) -> Floats:
    """``(n, categories)`` of 0 and 1."""
    out: Floats = (codes[:, None] == np.arange(categories)).astype(np.float64)
    return out


def decode_one_hot(encoded: Floats) -> Codes:
    """The category numbers behind ``encode_one_hot``."""
    out: Codes = encoded.argmax(axis=1).astype(np.int32)
    return out


def category_codes(values: Sequence[str], categories: Sequence[str]) -> Codes:
    """Number of each value among the categories, -1 where it is none of them."""
    number = {category: i for i, category in enumerate(categories)}
    return np.fromiter((number.get(value, -1) for value in values), np.int32, len(values))
