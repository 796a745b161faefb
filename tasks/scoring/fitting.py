"""Fits models, and refits them on resamples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias
from zlib import crc32

import numpy as np
from scipy.special import logit

from schemas.audit.model import Model
from tasks.numerics.arrays import AT_ONCE, Bools, Floats, Ints, Longs
from tasks.numerics.attributions import Linear, of_logistic_regression
from tasks.numerics.encoding import Places, gather
from tasks.numerics.networks.network import Network, of_module
from tasks.numerics.statistics.regression import MANY, Counts, blocks, rate_matched, refitted, resampled

if TYPE_CHECKING:
    from sklearn.base import ClassifierMixin


# --------------------------------------------------------------------------------------------------------------------
# Fits models by their kind in the spec: classifiers of scikit-learn, and a network of our own.
#
# Each takes encoded features and gives the probability of the favourable decision. Choice of training rows:
# ``decision_makers``.


Fit: TypeAlias = "Callable[..., Network | Linear | ClassifierMixin]"
"""From inputs ``(r, d)`` and labels ``(r,)`` to a model that was fitted to them."""


def fit_of(kind: str, seed: int) -> Fit:
    """How models of a kind are fitted; the same rows give the same model."""
    return partial(_fitted, kind, seed)


def distinct(model: Model, x: Floats) -> Places | None:
    """The distinct ones of many rows ``(n, d)``; None of few rows, or where more than half are distinct.

    Bins and codes leave of a nation's applicants a third of the rows. A fit to them is the same but for rounding.
    """
    if model.kind not in KINDS or model.split != "crossfit" or len(x) <= MANY:
        return None
    places = gather(x)
    return places if 2 * len(places.start) <= len(x) else None


def fit_to(fit: Fit, x: Floats, y: Bools, rows: Longs, places: Places | None) -> "Network | Linear | ClassifierMixin":
    """The model that is fitted to some rows of inputs ``(n, d)`` and labels ``(n,)``; ``places`` as above."""
    if places is None:
        return fit(x[rows], y[rows])
    counts = np.bincount(2 * places.place[rows] + y[rows], minlength=2 * len(places.start))
    cells = np.flatnonzero(counts)
    return fit(places.at[cells // 2], cells % 2 == 1, counts[cells].astype(np.float64))


def _fitted(
    kind: str, seed: int, x: Floats, y: Bools, weight: Floats | None = None
) -> "Network | Linear | ClassifierMixin":
    """A model of a kind; of a logistic regression, which alone takes weights of rows, only the coefficients.

    Raises:
        DataQualityError: The loss of a network is no longer finite.
    """
    if kind == "logistic_regression":
        from sklearn.linear_model import LogisticRegression

        classifier = LogisticRegression(max_iter=1000, random_state=seed)
        return of_logistic_regression(classifier.fit(x, y, weight))
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
    """``(n, draws)`` how often each row counts; rows lie as the places' ``order`` has them, where there are any."""
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

    def tallies(self, x: Floats, groups: Sequence[tuple[Ints, int]], places: Places | None) -> tuple[Longs, Longs]:
        """How many rows of each group a resample has, and how many of them it favours, both ``(groups, draws)``.

        Args:
            x: ``(n, d)`` inputs.
            groups: of several attributes the number of each row's group ``(n,)``, and how many groups there are.
            places: those that the refits were made with.
        """
        favourable = self.favourable(x if places is None else places.at)
        of_row = np.arange(len(x)) if places is None else np.repeat(np.arange(len(places.start)), places.count)
        coded = [(codes if places is None else codes[places.order], number) for codes, number in groups]
        n, approved = np.zeros((2, sum(number for _, number in groups), len(self.cut)), np.int64)
        for rows in (slice(first, first + AT_ONCE) for first in range(0, len(x), AT_ONCE)):
            members = np.vstack([codes[rows] == np.arange(number)[:, None] for codes, number in coded])
            counts = self.counts[rows].astype(np.float32, order="C")
            n += (members.astype(np.float32) @ counts).astype(np.int64)  # exact of so few rows
            counts *= favourable[of_row[rows]]
            approved += (members.astype(np.float32) @ counts).astype(np.int64)
        return n, approved


def refits(
    x: Floats, y: Bools, explained: Bools, model: Model, draws: int, seed: int, places: Places | None = None
) -> Refits | None:
    """The model on resamples of rows; None where it cannot be fitted here quickly, or is not requested.

    Args:
        x: ``(n, d)`` inputs.
        y: ``(n,)`` the lender's decisions.
        explained: ``(n,)`` rows that may be explained; of a single holdout, those that it was not fitted to.
        model: Kind, split and threshold.
        draws: Resamples.
        seed: Of the resamples: the same for all who ask.
        places: As ``distinct`` has them, of a cross-fitted model alone.
    """
    if not draws or model.kind not in KINDS:
        return None
    rng = np.random.default_rng([seed, crc32(b"refits")])
    learnt = np.ones(len(y), dtype=bool) if model.split == "crossfit" else ~explained
    counts = resampled((~learnt).astype(np.int64), draws, rng)
    inputs, labels, draw_counts = x, y, counts
    if not learnt.all():
        inputs, labels, draw_counts = x[learnt], y[learnt], counts[learnt]
    elif places is not None:
        inputs, labels = places.at, y[places.order]
        for draw in range(draws):
            counts[:, draw] = counts[places.order, draw]
    design = np.column_stack([np.ones(len(inputs)), inputs])
    coefficients = refitted(design, labels, draw_counts, RIDGE, places)
    if model.threshold == "rate_matched":  # such that denials agree in each resample
        thresholds, denied = [], (~labels).astype(np.float64)
        for some in blocks(len(design), draws):
            index, count = design @ coefficients[:, some], draw_counts[:, some]
            denials = (denied @ count).astype(np.int64)
            if places is not None:
                count = places.sums(count.astype(np.float32, order="C")).astype(np.int64)
            thresholds += [rate_matched(index[:, at], count[:, at], int(n)) for at, n in enumerate(denials)]
        cut = np.array(thresholds)
    else:
        cut = np.full(draws, float(logit(model.threshold)))
    return Refits(counts, coefficients[1:], coefficients[0], cut)
