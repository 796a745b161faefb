"""The doubly robust effect on the group's own members (AIPW for the average effect on the treated).

What members were denied, minus what a model of the reference group's denials says of them, corrected by the reference
group's residuals with odds of membership as weights (Robins, Rotnitzky and Zhao 1994; Chernozhukov and others 2018,
equation 5.4, with cross-fitting and the median over splits of definition 3.3).
"""

from dataclasses import dataclass

import numpy as np

from tasks.methods.adjusted.algorithm.ladder.design.matrix import Design, independent
from tasks.methods.adjusted.algorithm.ladder.propensity.crossfit import (
    draw_folds,
    draw_folds_of_clusters,
    fit_without_folds,
    predict,
)
from tasks.methods.adjusted.algorithm.ladder.propensity.score import Pair, Propensity
from tasks.numerics.arrays import Bools, Floats, Ints
from tasks.numerics.statistics.influence import Estimate, estimate, standard_error

CLIPPED = (0.01, 0.99)
"""Propensities are clipped here, which bounds a weight by 99."""
ONE_SPLIT = 200_000
"""Above so many rows a single split is used: splits hardly differ there."""

ONE_FOLD = "one_cluster: all rows of a group are held out together, and nothing is left to fit"


@dataclass(frozen=True)
class Expected:
    """What a model of the reference group's denials says of every row, fitted without the row's fold."""

    fold: Ints
    """``(splits, n)``."""
    folds: int
    denial: Floats
    """``(splits, n)`` probabilities of denial."""


def expected_denials(design: Design, rung: int, folds: int, splits: int, rng: np.random.Generator) -> Expected:
    """Cross-fit the denials of the reference group, once for all groups. Folds are of whole clusters, if there are any.

    Args:
        design: Rows and columns.
        rung: Whose controls the model has.
        folds: Parts of a split.
        splits: Random splits; one above 200,000 rows.
        rng: Draws the splits.
    """
    many = 1 if len(design.y) > ONE_SPLIT else splits
    if design.cluster is None:
        fold = draw_folds(design.group, folds, many, rng)
    else:
        fold = draw_folds_of_clusters(design.group, design.cluster, folds, many, rng)
    x = design.x[:, np.r_[0, design.first_control : design.widths[rung]]]
    reference = design.group == design.reference
    if _held_out_whole(fold, reference):
        return Expected(fold, folds, np.full(fold.shape, np.nan))
    x = np.ascontiguousarray(x[:, independent(x[reference])])
    fits = fit_without_folds(x[reference], design.y[reference], fold[:, reference], folds)
    return Expected(fold, folds, predict(x, fits, fold))


def aipw_effect(propensity: Propensity, expected: Expected, level: float) -> Estimate:
    """Median over splits of the cross-fitted effect on members.

    The variance is the median of se^2 + (estimate - median)^2 over splits. There is no effect, but a reason, where one
    fold has all rows of either group: those of a single cluster cannot be held out.

    Args:
        propensity: Rows of the group and of the reference group, with the fit of all of them to start from.
        expected: Splits and expected denials of all rows.
        level: Of the interval.
    """
    pair = propensity.pair
    fold, member = expected.fold[:, pair.rows], pair.member.astype(np.float64)
    if _held_out_whole(fold, pair.member) or _held_out_whole(fold, ~pair.member):
        return Estimate(reason=ONE_FOLD)
    fits = fit_without_folds(pair.x, member, fold, expected.folds, propensity.fit.coefficients)
    e = np.clip(predict(pair.x, fits, fold), *CLIPPED)
    found = [_effect(pair, *each) for each in zip(e, expected.denial[:, pair.rows], strict=True)]
    values, variances = np.array(found).T
    value = float(np.median(values))
    se = float(np.sqrt(np.median(variances + (values - value) ** 2)))
    return estimate(value, se, level, pair.cluster)


def _held_out_whole(fold: Ints, rows: Bools) -> bool:
    """Whether all these rows are in the same fold of some split."""
    of = fold[:, rows]
    return bool((of == of[:, :1]).all(axis=1).any())


def _effect(pair: Pair, e: Floats, denial: Floats) -> tuple[float, float]:
    """Effect and variance of one split, given held-out propensities and expected denials ``(m,)``."""
    member = pair.member.astype(np.float64)
    count = member.sum()
    scores = (member - (1 - member) * e / (1 - e)) * (pair.y - denial)
    value = float(scores.sum() / count)
    return value, standard_error((scores - member * value) / count, pair.cluster) ** 2
