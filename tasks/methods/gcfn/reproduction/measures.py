"""Measures a model's predictions by category, and how far its scores move between categories (sections 4.3, 5.1)."""

from dataclasses import dataclass

import numpy as np

from tasks.numerics.arrays import Bools, Floats, Longs


@dataclass(frozen=True)
class Rates:
    """Of decisions on some rows, NaN where nobody is to be counted. Positive is what the label says."""

    accuracy: float
    ppv: float
    """Share of those with the label among those predicted to have it."""
    fpr: float
    """Share predicted to have the label among those without."""
    fnr: float
    """Share predicted not to have it among those with."""


def unfairness(scores: Floats, imagined: Floats) -> Floats:
    """CF = E (h(x, m) - h(x, m_a'))^2 for each generator, ``(s,)``; the worst of them is the paper's number.

    Args:
        scores: ``(n,)`` probabilities.
        imagined: ``(s, k - 1, n)`` those in the other categories, over which the mean is taken (equation 70).
    """
    found: Floats = np.square(imagined - scores).mean(axis=(1, 2))
    return found


def rates(label: Bools, predicted: Bools) -> Rates:
    """Computes rates of predictions ``(n,)`` against labels ``(n,)``."""
    return Rates(
        accuracy=_share(label == predicted),
        ppv=_share(label[predicted]),
        fpr=_share(predicted[~label]),
        fnr=_share(~predicted[label]),
    )


def treated_differently(given: Bools, fair: Bools, by: Floats) -> tuple[Floats, Longs, Longs]:
    """Counts the decisions that differ between two models, by the value of something (Figures 6 and 18).

    Returns:
        Distinct values ascending, rows with each, and how many of these are decided otherwise.
    """
    values, place = np.unique(by, return_inverse=True)
    n = len(values)
    return values, np.bincount(place, minlength=n), np.bincount(place[given != fair], minlength=n)


def _share(true: Bools) -> float:
    return float(true.mean()) if len(true) else np.nan
