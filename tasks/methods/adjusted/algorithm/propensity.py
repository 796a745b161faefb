"""Propensity score, support, overlap weights and AIPW."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tasks.methods.adjusted.algorithm.design import Design, independent, renumbered
from tasks.numerics.arrays import (
    Bools,
    Floats,
    Ints,
    Longs,
    Matrix,
    Packed,
    first_columns_of,
    some_columns_of,
    some_rows_of,
    sums_of,
)
from tasks.numerics.statistics.regression import (
    CACHED,
    Estimate,
    LogitFit,
    estimate,
    fit_logit,
    improved,
    inverse,
    logistic,
    share_inside,
    standard_error,
)

# --------------------------------------------------------------------------------------------------------------------
# The propensity score: probability that an applicant is of the group rather than of the reference group.
#
# Rosenbaum and Rubin (1983), by a logit of the controls of a rung.


RIDGE = 0.1
"""Penalty of nuisance fits where maximum likelihood has no maximum, or may have none on part of the rows."""


@dataclass(frozen=True)
class Pair:
    """The ``m`` rows of a group and of the reference group, with the controls of one rung."""

    rows: Bools
    """``(n,)`` which rows of the design they are."""
    y: Floats
    """``(m,)`` 1 for denied."""
    member: Bools
    """``(m,)`` of the group."""
    x: Matrix
    """``(m, q)`` intercept and controls; of full rank."""
    names: tuple[str, ...]
    """``(q,)``."""
    columns: Longs
    """``(q,)`` of the design."""
    cluster: Ints | None
    weight: Floats | None = None
    """``(m,)`` how much each row counts; None: all alike."""

    def without_columns(self) -> "Pair":
        """The same without ``x``, which ``with_columns`` takes from the design once more."""
        return replace(self, x=np.zeros((0, 0)))

    def with_columns(self, design: Design) -> "Pair":
        """The same with ``x``."""
        return self if len(self.x) else replace(self, x=_rows_with(design, self.rows, self.columns))


@dataclass(frozen=True)
class Propensity:
    """A pair with its fitted propensity."""

    pair: Pair
    fit: LogitFit
    """Of membership on the controls."""
    separated: str
    """The sign of separation that made the fit a penalised one; else empty."""

    @property
    def e(self) -> Floats:
        """``(m,)`` propensities."""
        return self.fit.fitted


def pair_rows(design: Design, group: int, rung: int) -> Pair:
    """The rows and controls of a group and the reference group on a rung."""
    rows = (design.group == group) | (design.group == design.reference)
    columns = np.r_[0, design.first_control : design.widths[rung]]
    x = _rows_with(design, rows, columns)
    is_independent = independent(x)
    names = tuple(design.names[column] for column in columns[is_independent])
    cluster = None if design.cluster is None else renumbered(design.cluster[rows])
    x = x if is_independent.all() else _contiguous(some_columns_of(x, is_independent))
    return Pair(rows, design.y[rows], design.group[rows] == group, x, names, columns[is_independent], cluster)


def _rows_with(design: Design, rows: Bools, columns: Longs) -> Matrix:
    """Some rows of a design with some of its columns."""
    if design.packed is not None:
        return design.packed.having(columns).taken(rows)
    x: Floats = design.x[np.ix_(rows, columns)]
    return x


def _contiguous(x: Matrix) -> Matrix:
    return np.ascontiguousarray(x) if isinstance(x, np.ndarray) else x


def fit_propensity(pair: Pair) -> Propensity:
    """Fit membership by a logit, with a ridge penalty if the controls separate the two groups."""
    member = pair.member.astype(np.float64)
    fit = fit_logit(pair.x, member, weight=pair.weight)
    if not fit.separated:
        return Propensity(pair, fit, "")
    return Propensity(pair, fit_logit(pair.x, member, ridge=RIDGE, weight=pair.weight), fit.separated)


# --------------------------------------------------------------------------------------------------------------------
# The overlap-weighted difference: compares the groups where both are.
#
# Members are weighted by 1 - e and reference applicants by e. With a logit for e the weighted means of its columns are
# equal exactly (Li, Morgan and Zaslavsky 2018, theorem 3).


def overlap_weights(propensity: Propensity) -> Floats:
    """``(m,)`` 1 - e for members and e for reference applicants."""
    return np.where(propensity.pair.member, 1 - propensity.e, propensity.e)


def overlap_effect(propensity: Propensity, level: float) -> Estimate:
    """Difference of weighted denial rates, group minus reference.

    Its influence function has a term for the estimated propensity: with sums A of a (1 - e) and B of (1 - a) e, and
    D = - sum of e (1 - e) [a (y - mu1) / A + (1 - a) (y - mu0) / B] x, that term is D' H^-1 x_i (a_i - e_i)
    (Li, Thomas and Li 2019, appendix).
    """
    pair, e = propensity.pair, propensity.e
    member = pair.member.astype(np.float64)
    row_weight = np.ones(len(e)) if pair.weight is None else pair.weight
    weights = overlap_weights(propensity)
    rows = row_weight * weights
    shares = [member * rows / (member @ rows), (1 - member) * rows / ((1 - member) @ rows)]
    means = [float(share @ pair.y) for share in shares]
    residuals = [pair.y - mean for mean in means]
    influence = shares[0] * residuals[0] - shares[1] * residuals[1]
    inside = [share / np.where(weights > 0, weights, 1.0) for share in shares]  # a / A and (1 - a) / B
    slope = sums_of(pair.x, -e * (1 - e) * (inside[0] * residuals[0] + inside[1] * residuals[1]))
    influence = influence + row_weight * (pair.x @ (propensity.fit.inverse @ slope)) * (member - e)
    se = standard_error(influence, pair.cluster)
    reason = f"propensity penalised: {propensity.separated}" if propensity.separated else ""
    return estimate(means[0] - means[1], se, level, pair.cluster, reason)


# --------------------------------------------------------------------------------------------------------------------
# Support: how far the reference group has applicants like those of the group, by the propensity and by columns.


CALIPER = 0.25
"""Standard deviations of the logit of e within which a reference applicant is near (Rosenbaum and Rubin 1985)."""


@dataclass(frozen=True)
class Support:
    """Overlap of a group with the reference group on one rung."""

    rung: int
    group: int
    n: int
    """Rows of the group."""
    inside: float
    """Share of the group's rows with a propensity in [0.05, 0.95]; 1 on rung 0, which adjusts for nothing."""
    comparable: float
    """The same at equal sizes of both groups (odds of e times reference rows over group rows): what is judged, as the
    propensity of a small group is below 0.05 for its size alone."""
    difference_raw: float
    """Largest standardised difference of a column: difference of means over the deviation of both groups together."""
    column_raw: str
    difference_weighted: float
    """The same after overlap weights."""
    column_weighted: str
    unmatched: float
    """Share of the group's rows without a reference applicant within 0.25 standard deviations of the logit of e."""
    reason: str = ""


def measure_support(propensity: Propensity, rung: int, group: int) -> Support:
    """Support of a group on a rung."""
    pair, e = propensity.pair, propensity.e
    n = int(pair.member.sum())
    if pair.x.shape[1] < 2:
        return Support(rung, group, n, 1.0, 1.0, math.nan, "", math.nan, "", 0.0)
    raw, weighted = standardised_differences(pair.x, pair.member, [np.ones(len(e)), overlap_weights(propensity)])
    of_members = e[pair.member]
    return Support(
        rung=rung,
        group=group,
        n=n,
        inside=share_inside(of_members, 1, 1),
        comparable=share_inside(of_members, n, len(e) - n),
        difference_raw=float(np.nanmax(raw)),
        column_raw=pair.names[1 + int(np.nanargmax(raw))],
        difference_weighted=float(np.nanmax(weighted)),
        column_weighted=pair.names[1 + int(np.nanargmax(weighted))],
        unmatched=unmatched_share(e, pair.member),
        reason=f"propensity penalised: {propensity.separated}" if propensity.separated else "",
    )


def standardised_differences(x: Matrix, member: Bools, weights: Sequence[Floats]) -> Iterator[Floats]:
    """``(q - 1,)`` absolute differences of means by each weight, in unweighted standard deviations (Austin 2009).

    To twelve places: weights that balance all columns leave rounding errors, the largest one of any column.

    Args:
        x: ``(m, q)`` columns, the first of which, the intercept, is left out.
        member: ``(m,)`` of the group.
        weights: ``(m,)`` each.
    """
    if isinstance(x, np.ndarray):
        x = x[:, 1:]
        mean, square = x.mean(axis=0), np.einsum("ij,ij->j", x, x) / len(x)
    else:
        mean, square = x.sums(np.ones(len(x))) / len(x), x.lengths() / len(x)
    with np.errstate(invalid="ignore", divide="ignore"):
        sd = np.sqrt(square - mean**2)
        for weight in weights:
            shares = [np.where(side, weight, 0.0) for side in (member, ~member)]
            of_member, of_other = (sums_of(x, share) / share.sum() for share in shares)
            differences: Floats = np.round(np.abs(of_member - of_other) / sd, 12)
            yield differences if isinstance(x, np.ndarray) else differences[1:]


def unmatched_share(e: Floats, member: Bools) -> float:
    """Share of members without a reference applicant within the caliper on the logit of e."""
    bounded = np.clip(e, 1e-12, 1 - 1e-12)
    index = np.log(bounded / (1 - bounded))
    reference = np.sort(index[~member])
    place = np.searchsorted(reference, index[member])
    below = index[member] - reference[np.maximum(place - 1, 0)]
    above = reference[np.minimum(place, len(reference) - 1)] - index[member]
    nearest = np.minimum(np.abs(below), np.abs(above))
    return float((nearest > CALIPER * index.std()).mean())


# --------------------------------------------------------------------------------------------------------------------
# Cross-fitting: each row's probability by a logit fitted without the row's fold, for many splits at once.
#
# All folds of all splits start from the fit of all rows and share its curvature, so that a step of a hundred fits is
# two matrix products. Folds that do not converge so are fitted alone. Fits have a small ridge penalty: a part of the
# rows may lack a category's only denial.


STEPS = 30
SMALL = 1e-5
"""Largest step of a coefficient at which a fit has converged."""
CELLS = 2**22
"""Rows times fits held at a time."""


def draw_folds(strata: Ints, folds: int, splits: int, rng: np.random.Generator) -> Ints:
    """``(splits, m)`` fold of each row, equally many of each stratum ``(m,)`` in every fold."""
    fold_of_row = np.empty((splits, len(strata)), np.int32)
    places = [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]
    for split in range(splits):
        for rows in places:
            fold_of_row[split, rows] = rng.permutation(np.arange(len(rows)) % folds)
    return fold_of_row


def draw_folds_of_clusters(strata: Ints, cluster: Ints, folds: int, splits: int, rng: np.random.Generator) -> Ints:
    """``(splits, m)`` fold of each row, that of its whole cluster, so that no fit sees dependents of its held-out rows.

    A cluster is dealt with those of the rarest stratum that it has rows of, which spreads each stratum over folds.

    Args:
        strata: ``(m,)``.
        cluster: ``(m,)`` from 0 without gaps.
        folds: Parts of a split.
        splits: Random splits.
        rng: Draws them.
    """
    count = int(cluster.max()) + 1
    lowest = int(strata.min())
    pairs = np.flatnonzero(np.bincount((strata.astype(np.int64) - lowest) * count + cluster))
    of_strata, of_cluster = (pairs // count).astype(np.int32), pairs % count
    order = np.argsort(-np.bincount(of_strata)[of_strata], kind="stable")
    rarest = np.zeros(count, np.int32)
    rarest[of_cluster[order]] = of_strata[order]  # the last one written to a cluster is its rarest
    return draw_folds(rarest, folds, splits, rng)[:, cluster]


def fit_without_folds(x: Matrix, y: Floats, fold: Ints, folds: int, like: LogitFit | None = None) -> Floats:
    """Coefficients of a ridge logit without each fold of each split.

    Args:
        x: ``(m, q)`` design of full rank, intercept first.
        y: ``(m,)`` 0 or 1.
        fold: ``(splits, m)`` fold of each row, from 0.
        folds: Number of folds.
        like: A fit near that of all rows, if there is any.

    Returns:
        ``(splits, q, folds)``.
    """
    full_fit = fit_logit(x, y, None if like is None else like.coefficients, ridge=RIDGE, like=like)
    if isinstance(x, Packed):
        return np.stack([_fit_packed(x, y, of_split, folds, full_fit) for of_split in fold])
    at_once = max(1, CELLS // (len(x) * folds))
    fold_coefficients = []
    for first in range(0, len(fold), at_once):
        part = fold[first : first + at_once]
        in_training = part.T[:, :, None] != np.arange(folds, dtype=np.int32)
        in_training = in_training.reshape(len(x), -1)
        fold_coefficients.append(
            _fit_many(x, y, in_training, full_fit.coefficients, full_fit.inverse * folds / (folds - 1))
        )
    return np.concatenate(fold_coefficients, axis=1).T.reshape(len(fold), folds, -1).transpose(0, 2, 1)


def _fit_packed(x: Packed, y: Floats, fold: Ints, folds: int, full_fit: LogitFit) -> Floats:
    """``(q, folds)`` coefficients of one split of many rows. Each fit begins with the information of its rows.

    The first score of a fit is that of the rows of its fold, as all rows together have none.
    """
    residual, slope = y - full_fit.fitted, full_fit.fitted * (1 - full_fit.fitted)
    penalty = np.full(x.shape[1], RIDGE)
    penalty[0] = 0.0
    of_fold = [np.flatnonzero(fold == number) for number in range(folds)]
    squares = [x.taken(rows).squares(slope[rows]) for rows in of_fold]
    every = np.sum(squares, axis=0) + np.diag(penalty)
    curvature = [inverse(every - square) for square in squares]
    b = np.repeat(full_fit.coefficients[:, None], folds, axis=1)
    score = (x.sums(residual) - penalty * full_fit.coefficients - x.sums_by(residual, fold, folds)).T
    moving, width = np.arange(folds), CACHED * folds
    for _ in range(STEPS):
        step = np.column_stack([curvature[number] @ score[:, place] for place, number in enumerate(moving)])
        b[:, moving] += step
        open_ = ~(np.abs(step).max(axis=0) <= SMALL)
        moving, before, step = moving[open_], score[:, open_], step[:, open_]
        if not len(moving):
            return b
        score = -penalty[:, None] * b[:, moving]
        for first in range(0, len(x), width):
            some, rows = some_rows_of(x, slice(first, first + width)), slice(first, first + width)
            of_rows = logistic(some @ b[:, moving])
            np.subtract(y[rows, None], of_rows, out=of_rows)
            of_rows *= fold[rows, None] != moving
            score += sums_of(some, of_rows)
        for place, number in enumerate(moving):
            change = before[:, place] - score[:, place]
            if step[:, place] @ change > 0:
                curvature[number] = improved(curvature[number], step[:, place], change)
    for number in moving:
        rows = fold != number
        b[:, number] = fit_logit(x.taken(rows), y[rows], full_fit.coefficients, ridge=RIDGE).coefficients
    return b


def predict(x: Matrix, coefficients: Floats, fold: Ints) -> Floats:
    """``(splits, m)`` probabilities of the rows by the fit without their fold."""
    probabilities = [
        logistic(np.take_along_axis(x @ fold_coefficients, of[:, None].astype(np.int64), axis=1)[:, 0])
        for fold_coefficients, of in zip(coefficients, fold, strict=True)
    ]
    return np.stack(probabilities)


def _fit_many(x: Matrix, y: Floats, in_training: Bools, start: Floats, curvature: Floats) -> Floats:
    """``(q, f)`` ridge logits on the rows ``kept (m, f)``, by steps with the inverse Hessian ``curvature``.

    A step is extrapolated by the one before (Anderson 1965): those of a fit that lacks a category's only denials shrink
    slowly.
    """
    b = np.repeat(start[:, None], in_training.shape[1], axis=1)
    penalty = np.full((len(b), 1), RIDGE)
    penalty[0] = 0.0
    moving = np.arange(in_training.shape[1])
    before: tuple[Floats, Floats] | None = None
    for _ in range(STEPS):
        rows_used = in_training if len(moving) == in_training.shape[1] else in_training[:, moving]
        score = -penalty * b[:, moving]
        for first in range(0, len(x), CACHED):
            rows = slice(first, first + CACHED)
            some = some_rows_of(x, rows)
            residual = logistic(some @ b[:, moving])
            np.subtract(y[rows, None], residual, out=residual)
            residual *= rows_used[rows]
            score += sums_of(some, residual)
        step = move = curvature @ score
        if before is not None:
            change = step - before[1]
            share = (change * step).sum(axis=0) / np.maximum((change**2).sum(axis=0), 1e-300)
            move = step - share * (before[0] + change)
        b[:, moving] += move
        open_ = ~(np.abs(step).max(axis=0) <= SMALL)
        moving, before = moving[open_], (move[:, open_], step[:, open_])
        if not len(moving):
            return b
    for column in moving:
        b[:, column] = fit_logit(
            some_rows_of(x, in_training[:, column]), y[in_training[:, column]], start, ridge=RIDGE
        ).coefficients
    return b


# --------------------------------------------------------------------------------------------------------------------
# The doubly robust effect on the group's own members (AIPW for the average effect on the treated).
#
# What members were denied, minus what a model of the reference group's denials says of them, corrected by the reference
# group's residuals with odds of membership as weights (Robins, Rotnitzky and Zhao 1994; Chernozhukov and others 2018,
# equation 5.4, with cross-fitting and the median over splits of definition 3.3).


CLIPPED = (0.01, 0.99)
"""Propensities are clipped here, which bounds a weight by 99."""
SPLIT_ROWS = 200_000
"""Most rows of all splits together, but for one split: the more rows, the less splits differ."""

ONE_FOLD = "one_cluster: all rows of a group are held out together, and nothing is left to fit"


@dataclass(frozen=True)
class Expected:
    """Predicted denial of every row by a model of the reference group's denials, fitted without the row's fold."""

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
        splits: Random splits; fewer where they have more than 200,000 rows together.
        rng: Draws the splits.
    """
    many = min(splits, max(1, math.ceil(SPLIT_ROWS / len(design.y))))
    if design.cluster is None:
        fold = draw_folds(design.group, folds, many, rng)
    else:
        fold = draw_folds_of_clusters(design.group, design.cluster, folds, many, rng)
    reference = design.group == design.reference
    if _held_out_whole(fold, reference):
        return Expected(fold, folds, np.full(fold.shape, np.nan))
    width = design.widths[rung]
    columns = np.r_[0, design.first_control : width]
    x = _rows_with(design, reference, columns)
    is_independent = independent(x)
    x = x if is_independent.all() else _contiguous(some_columns_of(x, is_independent))
    fits = np.zeros((len(fold), width, folds))  # 0 for the columns that are left out: no rows are copied without them
    fits[:, columns[is_independent]] = fit_without_folds(x, design.y[reference], fold[:, reference], folds)
    return Expected(fold, folds, predict(first_columns_of(design.matrix, width), fits, fold))


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
    fits = fit_without_folds(pair.x, member, fold, expected.folds, propensity.fit)
    e = np.clip(predict(pair.x, fits, fold), *CLIPPED)
    split_effects = [
        _effect(pair, *split_inputs) for split_inputs in zip(e, expected.denial[:, pair.rows], strict=True)
    ]
    values, variances = np.array(split_effects).T
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
