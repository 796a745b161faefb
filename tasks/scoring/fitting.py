"""Fits models, and refits them on resamples."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias
from zlib import crc32

import numpy as np
from scipy.special import logit

from schemas.audit.model import Model
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.attributions import Linear, of_logistic_regression
from tasks.numerics.networks.network import Network, of_module
from tasks.numerics.statistics.regression import Counts, blocks, rate_matched, refitted, resampled

if TYPE_CHECKING:
    from sklearn.base import ClassifierMixin


# --------------------------------------------------------------------------------------------------------------------
# Fits models by their kind in the spec: classifiers of scikit-learn, and a network of our own.
#
# Each takes encoded features and gives the probability of the favourable decision. Choice of training rows:
# ``decision_makers``.


Fit: TypeAlias = "Callable[[Floats, Bools], Network | Linear | ClassifierMixin]"
"""From inputs ``(r, d)`` and labels ``(r,)`` to a model that was fitted to them."""


def fit_of(kind: str, seed: int) -> Fit:
    """How models of a kind are fitted; the same rows give the same model."""
    return partial(_fitted, kind, seed)


def _fitted(kind: str, seed: int, x: Floats, y: Bools) -> "Network | Linear | ClassifierMixin":
    """A model of a kind; of a logistic regression the coefficients, which are all that there is of it.

    Raises:
        DataQualityError: The loss of a network is no longer finite.
    """
    if kind == "logistic_regression":
        from sklearn.linear_model import LogisticRegression

        return of_logistic_regression(LogisticRegression(max_iter=1000, random_state=seed).fit(x, y))
    if kind == "random_forest":
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(200, min_samples_leaf=5, random_state=seed).fit(x, y)
    if kind == "gradient_boosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(random_state=seed).fit(x, y)
    from tasks.numerics.networks.network import TrainingSettings
    from tasks.numerics.networks.training import UNMATCHED, TrainingRows, train  # torch, seconds to import

    # The network is trained for prediction alone, on inputs by their mean and deviation, which then move into its first
    # layer; no term of the loss looks at groups or matches.
    centre, scale = x.mean(axis=0), np.where(np.ptp(x, axis=0) > 0, x.std(axis=0), 1.0)
    rows = TrainingRows(
        inputs=(x - centre) / scale,
        favourable=y,
        protected=np.zeros(len(y), dtype=bool),
        match=np.full(len(y), UNMATCHED),
    )
    settings = TrainingSettings(lambda_eo=0.0, lambda_cec=0.0, seed=seed, device="cpu")
    return of_module(train(rows, settings).net).before_scaling(centre, scale)


# --------------------------------------------------------------------------------------------------------------------
# Refits the model and its threshold on resamples of rows: how much of a figure is due to the luck of a fit.
#
# Intervals that take a model as given are those of another question: what this one model does to other applicants. Here
# applicants are drawn anew, the model is fitted to them as it was to the real ones, and decides on them. One model is
# fitted to each resample, whatever the split; a rate-matched threshold is matched to the resample's own rate.
#
# Scope: kinds that can be fitted again in seconds. Fits of the audit itself: ``fitting``.


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
        decisions = np.empty((len(x), len(self.cut)), dtype=bool)
        for draws in blocks(*decisions.shape):
            decisions[:, draws] = x @ self.coefficients[:, draws] + self.intercept[draws] >= self.cut[draws]
        return decisions


def refits(x: Floats, y: Bools, explained: Bools, model: Model, draws: int, seed: int) -> Refits | None:
    """The model on resamples of rows; None where it cannot be fitted here quickly, or is not requested.

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
    fitted, labels, draw_counts = design, y, counts
    if not learnt.all():
        fitted, labels, draw_counts = design[learnt], y[learnt], counts[learnt]
    coefficients = refitted(fitted, labels, draw_counts, RIDGE)
    if model.threshold == "rate_matched":  # such that denials agree in each resample
        thresholds = []
        for some in blocks(len(fitted), draws):
            index, count = fitted @ coefficients[:, some], draw_counts[:, some]
            denied = count[~labels].sum(axis=0, dtype=np.int64)
            thresholds += [rate_matched(index[:, at], count[:, at], int(n)) for at, n in enumerate(denied)]
        cut = np.array(thresholds)
    else:
        cut = np.full(draws, float(logit(model.threshold)))
    return Refits(counts, coefficients[1:], coefficients[0], cut)
