"""The model fitted anew, and its threshold set anew, on resamples of rows: how much of a figure is the luck of a fit.

Intervals that take a model as given are those of another question: what this one model does to other applicants. Here
applicants are drawn anew, the model is fitted to them as it was to the real ones, and decides on them. One model is
fitted to each resample, whatever the split; a rate-matched threshold is matched to the resample's own rate.

Scope: kinds that can be fitted again in seconds. Fits of the audit itself: ``fitting``.
"""

from dataclasses import dataclass
from zlib import crc32

import numpy as np
from scipy.special import logit

from schemas.audit.model import Model
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.statistics.refits import Counts, blocks, rate_matched, refitted, resampled

RIDGE = 1.0
"""Of scikit-learn's logistic regression, C = 1."""

KINDS = ("logistic_regression",)
"""Kinds that are fitted again."""


@dataclass(frozen=True)
class Refits:
    """A linear model of the logit on each resample of ``n`` rows."""

    counts: Counts
    """``(n, draws)`` how often each row counts."""
    coefficients: Floats
    """``(d, draws)`` without the intercept."""
    intercept: Floats
    """``(draws,)``."""
    cut: Floats
    """``(draws,)`` the logit from which a decision is favourable."""

    def favourable(self, x: Floats) -> Bools:
        """``(r, draws)`` decisions of each resample's model on rows ``(r, d)``."""
        found = np.empty((len(x), len(self.cut)), dtype=bool)
        for draws in blocks(*found.shape):
            found[:, draws] = x @ self.coefficients[:, draws] + self.intercept[draws] >= self.cut[draws]
        return found


def refits(x: Floats, y: Bools, explained: Bools, model: Model, draws: int, seed: int) -> Refits | None:
    """The model on resamples of rows; None where it is not fitted here in no time, or not asked for.

    Args:
        x: ``(n, d)`` inputs.
        y: ``(n,)`` the lender's decisions.
        explained: ``(n,)`` rows that may be explained; of a single holdout, those that it was not fitted to.
        model: Kind, split and threshold.
        draws: Resamples.
        seed: Of the resamples: the same for all who ask.
    """
    if not draws or model.kind not in KINDS:
        return None
    rng = np.random.default_rng([seed, crc32(b"refits")])
    learnt = np.ones(len(y), dtype=bool) if model.split == "crossfit" else ~explained
    counts = resampled((~learnt).astype(np.int64), draws, rng)
    design = np.column_stack([np.ones(len(x)), x])
    fitted, labels, drawn = design, y, counts
    if not learnt.all():
        fitted, labels, drawn = design[learnt], y[learnt], counts[learnt]
    found = refitted(fitted, labels, drawn, RIDGE)
    return Refits(counts, found[1:], found[0], _cuts(fitted, labels, drawn, found, model))


def _cuts(design: Floats, y: Bools, counts: Counts, found: Floats, model: Model) -> Floats:
    """``(draws,)`` thresholds of the logit: as given, or such that denials agree in each resample."""
    if model.threshold != "rate_matched":
        return np.full(found.shape[1], float(logit(model.threshold)))
    cut = []
    for draws in blocks(len(design), found.shape[1]):
        index, count = design @ found[:, draws], counts[:, draws]
        denied = count[~y].sum(axis=0, dtype=np.int64)
        cut += [rate_matched(index[:, at], count[:, at], int(each)) for at, each in enumerate(denied)]
    return np.array(cut)
