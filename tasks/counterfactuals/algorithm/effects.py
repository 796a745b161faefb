"""Distributions of the features of a group, real and counterfactual: quantiles and shares of categories.

Values of single applicants cannot be inferred: the outermost quantiles are the first and the last decile, and
publication withholds small groups.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.numerics.columns import Columns

QUANTILES = tuple(tenth / 10 for tenth in range(1, 10))


class Effect(NamedTuple):
    """One number of a feature, as it is and as it would be."""

    feature: str
    category: str | None
    quantile: float | None
    factual: float
    imagined: float


def effects(factual: Columns, imagined: NDArray[np.float64], features: tuple[str, ...]) -> Iterator[Effect]:
    """Deciles of numbers and of ordered categories' shares.

    Args:
        factual: ``r`` applicants.
        imagined: ``(r, p)`` the same applicants as members of another group.
        features: Which columns to tell of.
    """
    for name in features:
        place = factual.names.index(name)
        before, after, categories = factual.values[:, place], imagined[:, place], factual.categories[place]
        if not categories:
            pairs = zip(QUANTILES, np.quantile(before, QUANTILES), np.quantile(after, QUANTILES), strict=True)
            yield from (Effect(name, None, at, float(old), float(new)) for at, old, new in pairs)
            continue
        for number, category in enumerate(categories):
            yield Effect(name, category, None, float((before == number).mean()), float((after == number).mean()))
