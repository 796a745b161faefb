"""Performance of a classifier besides its explanations: accuracy, gaps between groups, and collapse.

A collapsed model decides alike for nearly everybody. Its gaps, flips and inconsistency are all small, so the flag is
printed beside every number.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

from tasks.numerics.arrays import Bools, Floats

LEAST_BALANCED_ACCURACY: Final = 0.55
POSITIVE_RATES: Final = (0.05, 0.95)
"""Outside of these a model has collapsed."""


@dataclass(frozen=True)
class Performance:
    """Of a model on held-out rows, without a unit; NaN where a number is not defined."""

    auc: float
    """NaN for a model without scores."""
    f1: float
    balanced_accuracy: float
    positive_rate: float
    eo_gap: float
    """The larger of the gaps between groups in true and in false positive rates; NaN if a cell is empty."""
    sp_gap: float
    """Gap between groups in positive predictions."""

    @property
    def collapsed(self) -> bool:
        """Whether the model decides alike for nearly everybody."""
        low, high = POSITIVE_RATES
        return self.balanced_accuracy < LEAST_BALANCED_ACCURACY or not low <= self.positive_rate <= high


def performance(favourable: Bools, protected: Bools, predicted: Bools, scores: Floats | None) -> Performance:
    """Measure predictions ``(n,)`` against labels ``(n,)``, with scores ``(n,)`` of any scale for the AUC."""
    both = favourable.any() and not favourable.all()
    gaps = [_gap(predicted, protected, favourable == label) for label in (True, False)]
    return Performance(
        auc=float(roc_auc_score(favourable, scores)) if both and scores is not None else np.nan,
        f1=float(f1_score(favourable, predicted, zero_division=0.0)),
        balanced_accuracy=float(balanced_accuracy_score(favourable, predicted)) if both else np.nan,
        positive_rate=float(predicted.mean()),
        eo_gap=float(np.max(gaps)),
        sp_gap=_gap(predicted, protected, np.ones(len(predicted), np.bool_)),
    )


def _gap(predicted: Bools, protected: Bools, among: Bools) -> float:
    """Absolute difference of positive rates between groups among some rows; NaN if a group has none of them."""
    one, other = predicted[among & protected], predicted[among & ~protected]
    return abs(float(one.mean()) - float(other.mean())) if len(one) and len(other) else np.nan
