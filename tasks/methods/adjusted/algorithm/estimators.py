"""Estimators of one rung of the ladder, and the wild bootstrap."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from tasks.methods.adjusted.algorithm import regressions
from tasks.methods.adjusted.algorithm.design import MOST_COLUMNS, RARE, Design
from tasks.methods.adjusted.algorithm.propensity import (
    Propensity,
    Support,
    aipw_effect,
    expected_denials,
    fit_propensity,
    measure_support,
    overlap_effect,
    pair_rows,
)
from tasks.methods.adjusted.algorithm.sensitivity import Sensitivity, e_value_of_effect, sensitivity
from tasks.methods.adjusted.algorithm.streamed import Batch, fit_batches, split
from tasks.numerics.arrays import (
    Bools,
    Floats,
    Ints,
    Longs,
    Matrix,
    first_columns_of,
    some_columns_of,
    some_rows_of,
)
from tasks.numerics.statistics.regression import (
    BLOCK,
    ENOUGH,
    FEW_CLUSTERS,
    Estimate,
    LogitFit,
    count_clusters,
    estimate,
    fit_logit,
    logistic,
    standard_error,
)

# --------------------------------------------------------------------------------------------------------------------
# Wild cluster bootstrap of one least squares coefficient, for few clusters.
#
# A clustered error is too small with few clusters. Here the t of the estimate is held against its distribution if the
# residuals of whole clusters change sign and size at random while the null holds (Cameron, Gelbach and Miller 2008,
# with restricted residuals; six-point weights of Webb 2023). The interval is the set of nulls that are not rejected.


DRAWS = 999
WEBB = np.sqrt(np.array([0.5, 1.0, 1.5]))
"""Sizes of the six-point weights; each has either sign."""
DOUBLINGS = 12
"""An end is looked for up to 2^12 standard errors from the estimate."""
HALVINGS = 30


@dataclass(frozen=True)
class Statistic:
    """The t of one coefficient for any null b0 and weights of clusters; residuals are linear in b0.

    ``outcome`` and ``residual`` are ``(G, p)`` cluster sums of x times what the other columns leave of y and of the
    coefficient's own column; ``row`` is its row of (X'X)^-1, ``slopes (G, p)`` that row times each cluster's X'X.
    """

    outcome: Floats
    residual: Floats
    row: Floats
    slopes: Floats
    bread: Floats

    def t(self, null: float, weights: Floats) -> Floats:
        """``(draws,)`` of the weights ``(draws, G)``, without small-sample factor; weights of 1: the estimate's own."""
        sums = self.outcome - null * self.residual
        shifted_sums = weights * (sums @ self.row)
        residual_sums = shifted_sums - (weights @ sums @ self.bread) @ self.slopes.T
        error = np.sqrt((residual_sums**2).sum(axis=1))
        statistics: Floats = np.divide(shifted_sums.sum(axis=1), error, out=np.zeros(len(weights)), where=error > 0)
        return statistics

    def p(self, null: float, weights: Floats) -> float:
        """Two-sided p of the null: share of the draws, and the estimate itself, that are as far out."""
        observed_statistic = abs(float(self.t(null, np.ones((1, weights.shape[1])))[0]))
        return float(
            (1 + (np.abs(self.t(null, weights)) >= observed_statistic * (1 - 1e-12)).sum()) / (1 + len(weights))
        )


def wild_interval(
    x: Floats, y: Floats, fit: regressions.LinearFit, column: int, cluster: Ints, level: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Interval of a coefficient by 999 draws; NaN at an end that they do not bound.

    Args:
        x: ``(n, p)`` design of the fit.
        y: ``(n,)`` outcome.
        fit: Least squares fit, for the estimate and the first stride.
        column: Whose coefficient.
        cluster: ``(n,)`` from 0 without gaps.
        level: Of the interval.
        rng: Draws the weights.
    """
    clusters = int(cluster.max()) + 1
    stride = float(np.sqrt(fit.classical[column, column]))
    if clusters < 2 or not stride > 0:
        return math.nan, math.nan
    statistic = wild_statistic(x, y, column, cluster, clusters)
    weights = rng.choice(np.concatenate([-WEBB, WEBB]), (DRAWS, clusters)).astype(np.float64)
    value = float(fit.coefficients[column])
    low, high = (_end(statistic, weights, value, side * stride, 1 - level) for side in (-1, 1))
    return low, high


def wild_statistic(x: Floats, y: Floats, column: int, cluster: Ints, clusters: int) -> Statistic:
    """The pieces of the statistic that do not depend on the null or the draws."""
    other_columns = np.delete(x, column, axis=1)
    q = np.linalg.qr(other_columns)[0]
    bread: Floats = np.linalg.inv(x.T @ x).astype(np.float64)
    outcome, column_residuals = (values - q @ (q.T @ values) for values in (y, x[:, column]))
    row = bread[column]
    return Statistic(
        outcome=regressions.cluster_sums(x, outcome, cluster, clusters),
        residual=regressions.cluster_sums(x, column_residuals, cluster, clusters),
        row=row,
        slopes=regressions.cluster_sums(x, x @ row, cluster, clusters),
        bread=bread,
    )


def _end(statistic: Statistic, weights: Floats, value: float, stride: float, alpha: float) -> float:
    """The null farthest from the estimate on one side that is not rejected, by bisection."""
    inner, outer = value, value + stride
    for _ in range(DOUBLINGS):
        if statistic.p(outer, weights) < alpha:
            break
        inner, stride = outer, 2 * stride
        outer = value + stride
    else:
        return math.nan
    for _ in range(HALVINGS):
        middle = (inner + outer) / 2
        if statistic.p(middle, weights) < alpha:
            outer = middle
        else:
            inner = middle
    return inner


# --------------------------------------------------------------------------------------------------------------------
# Output of the ladder: one adjusted effect for each rung, group and estimator.


Estimator = Literal["logit", "lpm", "overlap", "aipw", "expected"]
Fit = Literal["newton", "limit", "firth", "cells", "streamed", ""]


@dataclass(frozen=True)
class Effect:
    """The adjusted difference of denial between a group and the reference group, and what it rests on.

    A number that cannot be had is NaN, and ``reason`` says why.
    """

    rung: int
    blocks: tuple[str, ...]
    """Names of the blocks that the rung adjusts for."""
    group: int
    estimator: Estimator
    average_over: Literal["own", "all", "overlap"]
    """The rows that the effect is averaged over: the group's own, all, or those where both groups are."""
    value: float
    """Difference of the probability of denial, group minus reference (0.1 is 10 percentage points)."""
    low: float
    high: float
    """95 % interval (the level of the audit)."""
    se: float
    df: float = math.inf
    """Degrees of freedom of its interval: clusters less one; infinite for the normal."""
    odds_ratio: float = math.nan
    """Of the logit; else NaN."""
    n: int = 0
    """Rows of the group on this rung (the same on every rung)."""
    events: int = 0
    """Denials among them."""
    support: float = math.nan
    """Share of the group's rows with a propensity, at equal sizes of both groups, inside [0.05, 0.95]."""
    rv: float = math.nan
    rv_alpha: float = math.nan
    """Robustness values (Cinelli and Hazlett 2020) of the linear fit: at the estimate, and at the interval's end."""
    e_value: float = math.nan
    e_value_near: float = math.nan
    """E-values of the logit's effect (VanderWeele and Ding 2017): at the estimate, and at the interval's near end."""
    strongest: str = ""
    """The control column that explains most of what is left of denial."""
    adjusted_by_strongest: float = math.nan
    """The effect if a column as strong as the strongest one were unseen."""
    unseen: Sensitivity | None = None
    """Of the linear fit: what every control explains, and the effect given a column as strong."""
    fit: Fit = ""
    reason: str = ""
    """Why there is no value, or what the reader must know of it (dropped columns, poor support)."""


# --------------------------------------------------------------------------------------------------------------------
# Input of the estimators for one rung of the ladder: design, testable groups, and notes on all rows.


FEW, ONE = "few_clusters", "one_cluster"
"""How the reasons of few clusters, and of a single one, begin."""
INDEPENDENT = "which take rows as independent"
"""The reason of intervals that leave out the clusters."""
PLACE = "place"
"""The block of fixed effects."""

Over = Literal["own", "all", "overlap"]


@dataclass(frozen=True)
class Rung:
    """One rung with the settings of its estimators."""

    number: int
    blocks: tuple[str, ...]
    design: Design
    level: float
    counts: Ints
    """``(groups,)`` rows of each group."""
    events: Ints
    """``(groups,)`` denials among them."""
    groups: tuple[int, ...]
    """Groups to be judged: present, with enough denials and approvals."""
    notes: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Group -> what holds for each of its estimators (poor support)."""
    support: dict[int, float] = field(default_factory=dict)
    fit: LogitFit | None = None
    """Of denial on its columns, where that is known."""

    @cached_property
    def x(self) -> Matrix:
        """``(n, p)`` columns of this rung, without those of ``levels``."""
        width = self.design.widths[self.number]
        return first_columns_of(self.design.matrix, width - int((self.design.placed < width).sum()))

    @property
    def batch(self) -> Batch:
        """Rows of this rung, with fixed effects where it has some: columns of ``x``, then indicators."""
        levels = self.design.levels if PLACE in self.blocks else None
        return Batch(self.design.y, self.x, self.design.cluster, levels)

    @property
    def order(self) -> Longs:
        """``(p,)`` places in ``batch`` of the columns of this rung."""
        width = self.design.widths[self.number]
        placed = self.design.placed[self.design.placed < width]
        in_batch = np.concatenate([np.setdiff1d(np.arange(width), placed), placed])
        return np.argsort(in_batch)

    @cached_property
    def df(self) -> float:
        """Degrees of freedom of intervals."""
        return math.inf if self.design.cluster is None else float(count_clusters(self.design.cluster) - 1)

    def few_clusters(self, group: int) -> str:
        """That clusters are few, in all or of a group; empty where enough."""
        if group not in self._few_clusters:
            self._few_clusters[group] = few_clusters(self.design.cluster, self.design.group == group)
        return self._few_clusters[group]

    @cached_property
    def _few_clusters(self) -> dict[int, str]:
        return {}

    @property
    def indicators(self) -> slice:
        """Columns of all groups."""
        return slice(1, self.design.first_control)

    @property
    def too_wide(self) -> str:
        """Why there is no logit; empty where there is."""
        if PLACE in self.blocks:
            return "place: fixed effects of lenders or places, the linear fit tells this rung"
        columns = self.design.widths[self.number]
        return f"too_many_columns: {columns}, the linear fit tells this rung" if columns > MOST_COLUMNS else ""

    def row(
        self,
        group: int,
        estimator: Estimator,
        over: Over,
        estimate: Estimate,
        reasons: tuple[str, ...] = (),
        **fields: Any,
    ) -> Effect:
        """An effect with the counts of its group, and the reasons that hold for the whole rung."""
        design = self.design
        dropped = design.dropped_until(self.number)
        every = (
            estimate.reason,
            *reasons,
            *self.notes.get(group, ()),
            f"left out: {', '.join(dropped)}" if dropped else "",
            f"terms added: {', '.join(design.terms)}" if design.terms else "",
            self.few_clusters(group),
        )
        return Effect(
            rung=self.number,
            blocks=self.blocks,
            group=group,
            estimator=estimator,
            average_over=over,
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            se=estimate.se,
            df=self.df,
            n=int(self.counts[group]),
            events=int(self.events[group]),
            support=self.support.get(group, math.nan),
            reason="; ".join(dict.fromkeys(reason for reason in every if reason)),
            **fields,
        )


def few_clusters(cluster: Ints | None, members: Bools) -> str:
    """Too few clusters, in all or with members of the group (MacKinnon and Webb 2017); empty where enough.

    Args:
        cluster: ``(n,)`` cluster of each row; None without clusters.
        members: ``(n,)`` whether a row is of the group.
    """
    if cluster is None:
        return ""
    clusters, cluster_count = count_clusters(cluster), count_clusters(cluster[members])
    if clusters == 1:
        return f"{ONE}: no error can be had"
    if clusters < FEW_CLUSTERS:
        return f"{FEW}: {clusters}, errors are too small below {FEW_CLUSTERS}"
    few = f"{FEW}: {cluster_count} with members of the group, errors are too small below {FEW_CLUSTERS}"
    return few if cluster_count < FEW_CLUSTERS else ""


# --------------------------------------------------------------------------------------------------------------------
# Rows of the linear probability model: coefficient of the group, and what an unseen column could do to it.
#
# It takes curvature for an effect where controls differ between groups, so it is reported with the logit and never
# decides.


@dataclass(frozen=True)
class Membership:
    """Least squares fit of one column of a design on the others, got from (X'X)^-1 without another pass."""

    coefficients: Floats
    """``(p - 1,)``."""
    classical: Floats
    """``(p - 1, p - 1)``."""
    df: int


def membership(bread: Floats, column: int, n: int) -> Membership:
    """The fit of a column on the others by the block inverse of ``bread``, (X'X)^-1 ``(p, p)``.

    With B its inverse: coefficients -B_od / B_dd, squared residuals 1 / B_dd, inverse of the others' cross products
    B_oo - B_od B_do / B_dd (Frisch, Waugh and Lovell).
    """
    other_columns = np.delete(np.arange(len(bread)), column)
    own_variance, beside = float(bread[column, column]), bread[other_columns, column]
    df = n - len(other_columns)
    conditional_bread = bread[np.ix_(other_columns, other_columns)] - np.outer(beside, beside) / own_variance
    return Membership(-beside / own_variance, conditional_bread / own_variance / df, df)


def linear_rows(
    rung: Rung, names: tuple[str, ...], rng: np.random.Generator, *, bootstrap: bool
) -> dict[int, list[Effect]]:
    """Coefficients with HC1 errors, or CR1 errors with clusters. On request with a wild cluster bootstrap interval.

    Args:
        rung: Its rows and columns.
        names: Names of the controls, as the design counts them.
        rng: For the bootstrap.
        bootstrap: Whether intervals with clusters are the bootstrap's.
    """
    design = rung.design
    try:
        if len(design.y) > BLOCK:
            fit = fit_batches(split(rung.batch, BLOCK)).ordered(rung.order)
        else:
            fit = regressions.fit_linear(design.y, rung.x[:], design.cluster)
    except regressions.CollinearError as error:
        return {g: [rung.row(g, "lpm", "all", Estimate(reason=str(error)))] for g in rung.groups}
    in_batch = np.empty(len(fit.coefficients))
    in_batch[rung.order] = fit.coefficients
    residual = float(np.square(design.y - rung.batch.fitted(in_batch)).sum())
    return {g: [_row(rung, g, fit, residual, names, rng, bootstrap)] for g in rung.groups}


def _row(
    rung: Rung,
    group: int,
    fit: regressions.LinearFit,
    residual: float,
    names: tuple[str, ...],
    rng: np.random.Generator,
    bootstrap: bool,
) -> Effect:
    """One group's coefficient with its robustness values."""
    design, column = rung.design, rung.design.indicators[group]
    group_estimate = estimate(float(fit.coefficients[column]), float(fit.se[column]), rung.level, design.cluster)
    if bootstrap and design.cluster is not None:
        low, high = wild_interval(rung.x[:], design.y, fit, column, design.cluster, rung.level, rng)
        reason = "interval by wild cluster bootstrap"
        group_estimate = group_estimate._replace(
            low=low, high=high, reason=reason if low <= high else f"{reason}: no bound"
        )
    if not fit.classical[column, column] > 0:
        return rung.row(group, "lpm", "all", group_estimate)
    places: dict[str, list[int]] = {}
    for place, control in enumerate(rung.design.control[: len(fit.coefficients)]):
        if control >= 0:
            places.setdefault(names[control], []).append(place)
    for place, control in rung.design.partners.items():
        places.setdefault(names[control], []).append(place)
    bread = fit.classical * fit.df / residual
    unseen = sensitivity(fit, membership(bread, column, len(rung.design.y)), column, places, 1 - rung.level)
    strongest = unseen.adjusted_by_strongest
    return rung.row(
        *(group, "lpm", "all", group_estimate),
        unseen=unseen,
        rv=unseen.rv,
        rv_alpha=unseen.rv_alpha,
        strongest=unseen.strongest,
        adjusted_by_strongest=math.nan if strongest is None else strongest.value,
    )


# --------------------------------------------------------------------------------------------------------------------
# Rows of the logit: odds ratio, and the average marginal effect over the group's own members and over all rows.


OVER: tuple[Over, ...] = ("own", "all")


def logit_rows(rung: Rung, start: Floats | None) -> tuple[dict[int, list[Effect]], Floats | None]:
    """Effects of each group from one logit of all groups.

    Where that is separated they are those at its limit. Firth's penalised fit has the groups without one.

    Args:
        rung: Its rows and columns.
        start: Coefficients of the rung below.

    Returns:
        Rows by group, and coefficients to start the next rung from.
    """
    if rung.too_wide:
        return {
            g: [rung.row(g, "logit", over, Estimate(reason=rung.too_wide)) for over in OVER] for g in rung.groups
        }, None
    x, y = rung.x, rung.design.y
    first = None if start is None else np.concatenate([start, np.zeros(x.shape[1] - len(start))])
    fit = rung.fit or fit_logit(x, y, first)
    if fit.separated:
        return _separated_rows(rung, fit), None
    effects: dict[int, list[Effect]] = {}
    for g in rung.groups:
        effects[g] = []
        for over in OVER:
            changed = regressions.change(
                fit.coefficients, _averaged(rung, g, over), rung.design.indicators[g], rung.indicators
            )
            estimate = regressions.effect_of(changed, fit, x, y, rung.level, rung.design.cluster)
            effects[g].append(_denial_logit_row(rung, g, over, estimate, changed.on, fit.coefficients, "newton"))
    return effects, fit.coefficients


def _separated_rows(rung: Rung, separated: LogitFit) -> dict[int, list[Effect]]:
    """Effects at the limit of the likelihood, and of Firth's fit for the groups that have no limit."""
    limit = regressions.fit_limit(rung.x, rung.design.y)
    with_limit = [] if limit is None else [g for g in rung.groups if _has_limit(rung, g, limit)]
    effects: dict[int, list[Effect]] = {}
    if limit is not None:
        x = some_columns_of(some_rows_of(rung.x, limit.rows), limit.columns)
        effects = {g: [_limit_row(rung, g, over, limit, x) for over in OVER] for g in with_limit}
    if len(effects) == len(rung.groups):
        return effects
    return _firth_rows(rung, separated, [g for g in rung.groups if g not in effects]) | effects


def _has_limit(rung: Rung, group: int, limit: regressions.LimitFit) -> bool:
    """Whether members and reference rows stay, and no group's indicator has a part in what separates the others."""
    stays = set(rung.design.group[limit.rows].tolist())
    indicators = list(rung.design.indicators.values())
    return {group, rung.design.reference} <= stays and bool(limit.steady[indicators].all())


def _limit_row(rung: Rung, group: int, over: Over, limit: regressions.LimitFit, x: Matrix) -> Effect:
    """The effect at the limit: over all rows of the group, or of the rung, of which those that left add nothing."""
    design, place = rung.design, {int(column): at for at, column in enumerate(limit.columns)}
    indicators = [place[column] for column in design.indicators.values() if column in place]
    y = design.y[limit.rows]
    inside = design.group[limit.rows] == group if over == "own" else slice(None)
    every = int((design.group == group).sum()) if over == "own" else len(design.y)
    changed = regressions.change(
        limit.fit.coefficients, some_rows_of(x, inside), place[design.indicators[group]], slice(1, 1 + len(indicators))
    )
    share = len(y[inside]) / every
    influence = np.zeros(len(design.y))
    influence[limit.rows] = (x @ (limit.fit.inverse @ (share * changed.gradient))) * (y - limit.fit.fitted)
    limit_estimate = estimate(
        share * changed.effect,
        standard_error(influence, design.cluster),
        rung.level,
        design.cluster,
        _left_words(rung, limit),
    )
    is_told = np.ones(len(design.y), np.bool_)
    is_told[limit.rows] = False
    denied = share * changed.on + float(design.y[is_told & (design.group == group)].sum()) / every
    coefficients = np.zeros(rung.x.shape[1])
    coefficients[limit.columns] = limit.fit.coefficients
    return _denial_logit_row(
        rung, group, over, limit_estimate, denied if over == "own" else np.nan, coefficients, "limit"
    )


def _left_words(rung: Rung, limit: regressions.LimitFit) -> str:
    """How many rows left, and with which columns; small counts are left out, as they may be withheld."""
    rows = len(rung.design.y) - len(limit.rows)
    count = f"{rows:,}" if rows >= RARE else f"fewer than {RARE}"
    gone = sorted(set(range(rung.x.shape[1])) - set(limit.columns.tolist()))
    names = ", ".join(rung.design.names[column] for column in gone)
    words = f"{count} applications whose decision the columns tell by themselves add nothing"
    return f"{words} ({names})" if names else words


def _firth_rows(rung: Rung, separated: LogitFit, groups: Sequence[int]) -> dict[int, list[Effect]]:
    """Effects of the penalised fit; their intervals are the effects at the ends of the profile interval."""
    x, y = rung.x[:], rung.design.y
    reason = f"separated: {separated.separated}; Firth's penalised fit with profile intervals"
    if rung.design.cluster is not None:
        reason += f", {INDEPENDENT}"
    fit = regressions.fit_firth(x, y)
    if not fit.converged:
        none = Estimate(reason=f"{reason}; it did not converge")
        return {g: [rung.row(g, "logit", over, none, fit="firth") for over in OVER] for g in groups}
    return {g: _firth_row(rung, g, fit, reason) for g in groups}


def _firth_row(rung: Rung, group: int, fit: regressions.FirthFit, reason: str) -> list[Effect]:
    """Own and all-row effects of one group; no standard error, which a separated fit has not.

    A profile without an end reaches to the largest difference that two probabilities can have.
    """
    design, column = rung.design, rung.design.indicators[group]
    ends = regressions.profile_interval(rung.x[:], design.y, fit, column, rung.level)
    effects = []
    for over in OVER:
        rows = _averaged(rung, group, over)
        value, low, high = (
            none if b is None else regressions.change(b, rows, column, rung.indicators).effect
            for b, none in ((fit.coefficients, np.nan), (ends.low, -1.0), (ends.high, 1.0))
        )
        denial = float(logistic(rows @ fit.coefficients).mean()) if over == "own" else np.nan
        estimate = Estimate(value, low, high, np.nan, reason)
        effects.append(_denial_logit_row(rung, group, over, estimate, denial, fit.coefficients, "firth"))
    return effects


def _averaged(rung: Rung, group: int, over: Over) -> Matrix:
    """The design rows that an effect is averaged over."""
    return some_rows_of(rung.x, rung.design.group == group) if over == "own" else rung.x


def _denial_logit_row(
    rung: Rung, group: int, over: Over, estimate: Estimate, denial: float, coefficients: Floats, fit: Fit
) -> Effect:
    """One row of the logit, with its odds ratio and E-values at the group's own share ``denial``."""
    e_value = e_value_of_effect(denial, estimate.value, estimate.low, estimate.high)
    return rung.row(
        *(group, "logit", over, estimate),
        odds_ratio=float(np.exp(coefficients[rung.design.indicators[group]])),
        e_value=e_value.value,
        e_value_near=e_value.near_end,
        fit=fit,
    )


# --------------------------------------------------------------------------------------------------------------------
# Rows of the estimators that rest on the propensity: overlap weights and AIPW, and the support of both.


POOR = ENOUGH
"""A smaller share of the group's rows on support is named in the reason."""


def propensities(rung: Rung) -> tuple[dict[int, Propensity], tuple[Support, ...]]:
    """The propensity and support of each group; none on a rung with too many columns.

    With many rows the columns of a pair are let go: ``weighted_rows`` takes them from the design once more.
    """
    of_group: dict[int, Propensity] = {}
    support: list[Support] = []
    for group in () if rung.too_wide else rung.groups:
        propensity = fit_propensity(pair_rows(rung.design, group, rung.number))
        support.append(measure_support(propensity, rung.number, group))
        if len(rung.design.y) > BLOCK:
            propensity = replace(propensity, pair=propensity.pair.without_columns())
        of_group[group] = propensity
    return of_group, tuple(support)


def with_support(rung: Rung, rows: tuple[Support, ...]) -> Rung:
    """The rung with each group's support, and a note where it is poor."""
    comparable = {row.group: row.comparable for row in rows}
    notes: dict[int, tuple[str, ...]] = {
        group: (f"poor_support: {share:.0%} of the group have a propensity in [0.05, 0.95] at equal group sizes",)
        for group, share in comparable.items()
        if share < POOR
    }
    return replace(rung, support=comparable, notes=notes)


def weighted_rows(
    rung: Rung,
    propensity_of_group: dict[int, Propensity],
    estimators: Sequence[Estimator],
    folds: int,
    splits: int,
    rng: np.random.Generator,
) -> dict[tuple[int, Estimator], list[Effect]]:
    """Requested overlap and AIPW rows of each group."""
    rows: dict[tuple[int, Estimator], list[Effect]] = {}
    expected = None
    if propensity_of_group and "aipw" in estimators:
        expected = expected_denials(rung.design, rung.number, folds, splits, rng)
    for group in rung.groups:
        propensity = propensity_of_group.get(group)
        if propensity is not None:
            propensity = replace(propensity, pair=propensity.pair.with_columns(rung.design))
        none = Estimate(reason=rung.too_wide)
        if "overlap" in estimators:
            effect = none if propensity is None else overlap_effect(propensity, rung.level)
            rows[group, "overlap"] = [rung.row(group, "overlap", "overlap", effect)]
        if "aipw" in estimators:
            effect = none if not (propensity and expected) else aipw_effect(propensity, expected, rung.level)
            rows[group, "aipw"] = [rung.row(group, "aipw", "own", effect)]
    return rows
