"""Tests of the decision's direction, of leakage, and of missing values."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.statistics.regression import area_under_curve

# --------------------------------------------------------------------------------------------------------------------
# Check of the direction of the decision: do columns with a known direction rank it as they should?
#
# Each column with a direction (more is better, or less is better) gives every application a rank between 0 and 1. The
# sum of the ranks is compared with the favourable decision by the area under the ROC curve (AUC). Swapped decisions
# turn an AUC of 0.7 into one of 0.3. Rates of groups cannot show this: half of all honest lenders approve their
# reference group least often of two.


LEAST = 10
"""Decisions of either kind below which nothing is said."""


@dataclass(frozen=True)
class Direction:
    """How well directed columns rank the favourable decision."""

    auc: float
    error: float
    """Standard error of the AUC (DeLong, DeLong and Clarke-Pearson 1988)."""

    @property
    def high(self) -> float:
        """One-sided 95 % upper bound."""
        return min(1.0, self.auc + float(scipy.stats.norm.ppf(0.95)) * self.error)

    @property
    def reversed(self) -> bool:
        """Whether the AUC lies below 0.5 beyond chance."""
        return self.high < 0.5


def direction(values: Floats, signs: Sequence[int], favourable: Bools) -> Direction | None:
    """Hold the directed columns against the decision.

    Args:
        values: ``(n, c)`` columns as numbers, categories by their order; NaN where missing.
        signs: ``(c,)`` 1 where more is better for the applicant, -1 where less is.
        favourable: ``(n,)`` decisions.

    Returns:
        None where there is no column, or fewer than ``LEAST`` decisions of either kind.
    """
    if not len(signs) or min(np.count_nonzero(favourable), np.count_nonzero(~favourable)) < LEAST:
        return None
    score = np.zeros(len(values))
    for column, sign in zip(values.T, signs, strict=True):
        finite = np.isfinite(column)
        scaled = np.full(len(column), 0.5)
        scaled[finite] = (scipy.stats.rankdata(column[finite]) - 0.5) / max(1, np.count_nonzero(finite))
        score += sign * scaled
    all_ranks = scipy.stats.rankdata(score)
    good, bad = np.count_nonzero(favourable), np.count_nonzero(~favourable)
    above = (all_ranks[favourable] - scipy.stats.rankdata(score[favourable])) / bad
    below = 1 - (all_ranks[~favourable] - scipy.stats.rankdata(score[~favourable])) / good
    error = np.sqrt(above.var(ddof=1) / good + below.var(ddof=1) / bad)
    return Direction(float(above.mean()), float(error))


# --------------------------------------------------------------------------------------------------------------------
# Tests whether a column is known only after the decision: the AUC of its values, and of their being filled in.
#
# A file may write 0 for what is not there: that a number is the most common one counts as its being filled in does.
#
# A lender sets an interest rate once it approves. Where the rate stands, the application was approved, and a model that
# sees it learns the decision from it (label leakage). Each column is held against the decision alone.


STOPS, WARNS = 0.9, 0.7
"""AUC from which a column is taken to be known after the decision, and from which being filled in is told of."""


@dataclass(frozen=True)
class Association:
    """How well one column ranks the decision. AUCs are at least 0.5, in whichever direction; NaN where unknown."""

    filled: float
    """Of whether it is filled in."""
    value: float
    """Of its values, among applications that have one."""
    common: float
    """Of whether it is the most common number; NaN for codes, 0.5 where there are no three numbers."""
    filled_favourable: float
    """Share of the favourable decisions that have a value."""
    filled_unfavourable: float


def association(values: Floats, favourable: Bools, unordered: bool) -> Association:
    """Holds one column against the decision.

    Args:
        values: ``(n,)`` numbers or codes of categories; NaN where missing.
        favourable: ``(n,)`` decisions.
        unordered: Whether the codes have no order: categories then rank by their share of favourable decisions.
    """
    finite = np.isfinite(values)
    finite_favourable = favourable[finite]
    finite_values = values[finite]
    ranks = _shares(finite_values.astype(np.int64), finite_favourable) if unordered else finite_values
    distinct_values, counts = np.unique(finite_values, return_counts=True)
    is_common = np.zeros(len(finite_values))
    if len(distinct_values) >= 3:  # of two numbers, one is always the most common
        is_common = (finite_values == distinct_values[np.argmax(counts)]).astype(np.float64)
    return Association(
        auc(finite.astype(np.float64), favourable),
        auc(ranks, finite_favourable, either_way=not unordered),
        np.nan if unordered else auc(is_common, finite_favourable),
        _share(finite, favourable),
        _share(finite, ~favourable),
    )


def auc(values: Floats, favourable: Bools, *, either_way: bool = True) -> float:
    """Area under the ROC curve of ``(n,)`` numbers, ties as halves, at least 0.5; NaN for few.

    Args:
        values: ``(n,)`` numbers.
        favourable: ``(n,)`` decisions.
        either_way: Whether small numbers may be those of favourable decisions; else an area below 0.5 is chance.
    """
    good, bad = int(np.count_nonzero(favourable)), int(np.count_nonzero(~favourable))
    if min(good, bad) < LEAST:
        return np.nan
    area = area_under_curve(values, favourable)
    return max(area, 1 - area if either_way else 0.5)


def _shares(codes: "np.ndarray[tuple[int], np.dtype[np.int64]]", favourable: Bools) -> Floats:
    """For each row the share of favourable decisions of its category among the other half of the rows.

    By the row itself, a category of one row would always be right. Categories that the other half lacks have the share
    of all.
    """
    if not len(codes):
        return np.empty(0)
    places, shares, _ = _by_halves(codes, favourable)
    return shares[places]


def _by_halves(
    codes: "np.ndarray[tuple[int], np.dtype[np.int64]]", favourable: Bools
) -> tuple["np.ndarray[tuple[int], np.dtype[np.int64]]", Floats, "np.ndarray[tuple[int, int], np.dtype[np.int64]]"]:
    """Number of each row's category and half; by number the share in the other half, and the rows of no and yes."""
    rng, halves = np.random.default_rng(0), np.zeros(len(favourable), dtype=bool)
    for side in (favourable, ~favourable):
        halves[side] = rng.permutation(int(side.sum())) % 2 == 0
    size = 2 * (int(codes.max(initial=-1)) + 1)
    places = 2 * codes + halves
    counts = np.bincount(places, minlength=size)
    events = np.bincount(places[favourable], minlength=size)
    other = np.arange(size) ^ 1
    shares = np.full(size, favourable.mean())
    np.divide(events[other], counts[other], out=shares, where=counts[other] > 0)
    return places, shares, np.stack([counts - events, events], axis=1)


def area_of_categories(codes: "np.ndarray[tuple[int], np.dtype[np.int64]]", favourable: Bools) -> float:
    """The area ``value`` of ``association`` of unordered categories, none of them missing, by their counts alone."""
    if min(int(np.count_nonzero(favourable)), int(np.count_nonzero(~favourable))) < LEAST:
        return np.nan
    _, shares, rows = _by_halves(codes, favourable)
    distinct, order = np.unique(shares, return_inverse=True)
    bad, good = (np.bincount(order, weights=rows[:, side], minlength=len(distinct)) for side in (0, 1))
    area = float(good @ (np.cumsum(bad) - bad / 2) / (good.sum() * bad.sum()))
    return max(area, 0.5)


def _share(finite: Bools, among: Bools) -> float:
    return float(finite[among].mean()) if among.any() else np.nan


# --------------------------------------------------------------------------------------------------------------------
# Tests whether missing values predict the decision: decisions by missing column, and the AUC of all flags.
#
# A lender may stop asking once it denies, or deny applicants who do not answer. A value is then missing because of the
# decision, and a model that sees missingness or imputed values learns the decision from it (label leakage).


FOLDS = 5
MANY = 100_000
"""Applications above which those that lack the same values are fitted as one with a weight."""
_NORMAL = 1.96


@dataclass(frozen=True)
class Lacking:
    """Counts of applications by flag, each ``(f,)``."""

    flagged: Longs
    favourable: Longs
    """Of the flagged, favourable decisions."""
    elsewhere: Longs
    """Of the flagged, those whose refusal names another flag."""
    favourable_elsewhere: Longs
    """Of these, favourable decisions."""


def by_reason(gone: Bools, exempt: Bools) -> Bools:
    """Flags ``(n, 2 f)`` of what ``(n, f)`` is gone: first of applications not exempt from reporting ``(n,)``.

    A value that need not be reported is another thing than one that nobody knows, and decisions differ accordingly.
    """
    return np.column_stack([gone & ~exempt[:, None], gone & exempt[:, None]])


def lacking(flags: Bools, favourable: Bools, named: Longs) -> Lacking:
    """Count which rows have which values missing.

    Args:
        flags: ``(n, f)`` whether an application lacks a feature, for a reason.
        favourable: ``(n,)`` decisions.
        named: ``(n,)`` number of the flag that the refusal of an application names; any for a complete one.
    """
    other = flags & (named[:, None] != np.arange(flags.shape[1]))
    approved = favourable[:, None]
    counts = (np.count_nonzero(table, axis=0) for table in (flags, flags & approved, other, other & approved))
    return Lacking(*(np.asarray(count, np.int64) for count in counts))


def auc_of_missingness(flags: Bools, favourable: Bools) -> float:
    """How well the flags ``(n, f)`` of what is missing rank the decisions ``(n,)``: 0.5 is not at all.

    The mean over folds of the AUC of a logistic regression on rows that it was not fitted on; NaN where nothing is
    missing, or fewer decisions of one kind than folds.
    """
    used = flags[:, flags.any(axis=0)]
    rarer = min(np.count_nonzero(favourable), np.count_nonzero(~favourable))
    if not used.shape[1] or rarer < FOLDS:
        return np.nan
    from sklearn.linear_model import LogisticRegression  # a plan reaches this module, and fits nothing
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    folds = StratifiedKFold(FOLDS)
    if len(used) <= MANY:
        scores = cross_val_score(LogisticRegression(), used.astype(float), favourable, cv=folds, scoring="roc_auc")
        return float(scores.mean())
    patterns, pattern = np.unique(used @ (1 << np.arange(used.shape[1])), return_inverse=True)
    flags_of_pattern = patterns[:, None] >> np.arange(used.shape[1]) & 1
    x, y = np.tile(flags_of_pattern, (2, 1)), np.repeat([False, True], len(patterns))
    cell, areas = pattern + len(patterns) * favourable, []
    for train, test in folds.split(cell, favourable):
        fitted_counts, asked_counts = (np.bincount(cell[rows], minlength=len(y)) for rows in (train, test))
        model = LogisticRegression().fit(x, y, fitted_counts)
        areas.append(roc_auc_score(y, model.decision_function(x), sample_weight=asked_counts))
    return float(np.mean(areas))


def beyond_chance(auc: float, favourable: int, unfavourable: int) -> bool:
    """Whether an AUC on so many decisions is further from 0.5 than chance takes it in 19 of 20 cases.

    By the variance of the Mann-Whitney statistic without ties, ``(a + b + 1) / (12 a b)``; ties make it smaller.
    """
    error = np.sqrt((favourable + unfavourable + 1) / (12 * favourable * unfavourable))
    return bool(abs(auc - 0.5) > _NORMAL * error)


# --------------------------------------------------------------------------------------------------------------------
# Copies: rows that are equal to an earlier one in every cell but the identifier, beyond what chance makes.


MORE_PAIRS, TIMES_CHANCE = 10, 100
"""Pairs of equal rows beyond so many, and so many times those by chance, are copies."""


@dataclass(frozen=True)
class Copies:
    """Equal rows of a table of ``n``."""

    later: Bools
    """``(n,)`` rows that are equal to an earlier one."""
    sets: int
    """Rows that have copies."""
    pairs: int
    expected: float
    """Pairs by chance: all pairs times the product over columns of the sum of squared shares."""

    @property
    def beyond_chance(self) -> bool:
        """Whether there are far more equal pairs than chance makes."""
        return self.pairs > MORE_PAIRS + TIMES_CHANCE * self.expected


def copies(columns: Sequence[Ints | Longs]) -> Copies:
    """Find equal rows.

    Args:
        columns: ``(n,)`` codes of each column; a missing value is a code like any other.
    """
    n = len(columns[0]) if columns else 0
    if n < 2:
        return Copies(np.zeros(n, np.bool_), 0, 0, 0.0)
    factors = np.random.default_rng(0).integers(1, 2**63, len(columns), dtype=np.uint64) | np.uint64(1)
    mixed, expected = np.zeros(n, np.uint64), n * (n - 1) / 2
    for codes, factor in zip(columns, factors, strict=True):
        shares = np.bincount(codes - codes.min()) / n
        expected *= float(shares @ shares)
        spread = codes.astype(np.uint64) * factor
        mixed = (mixed ^ (spread ^ (spread >> np.uint64(29)))) * np.uint64(0x9E3779B97F4A7C15)
    _, first, inverse, counts = np.unique(mixed, return_index=True, return_inverse=True, return_counts=True)
    later = first[inverse] != np.arange(n)
    return Copies(later, int((counts > 1).sum()), int((counts * (counts - 1) // 2).sum()), expected)
