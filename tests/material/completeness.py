"""The property that all attributions share: they sum to what the logit gains from the baseline."""

import numpy as np


def completeness_error(model, x, baseline, attributions):
    """``|sum_j IG_j - (f(x) - f(b))| / max(1, |f(x) - f(b)|)`` of each row, ``(r,)``, for the logit ``f``.

    Args:
        model: What the attributions are of.
        x: ``(r, p)`` rows.
        baseline: ``(r, p)`` where each row's path starts.
        attributions: ``(r, p)``.
    """
    gain = model.logit(x) - model.logit(baseline)
    return np.abs(attributions.sum(axis=1) - gain) / np.maximum(1.0, np.abs(gain))
