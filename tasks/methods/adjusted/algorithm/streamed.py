"""Streamed regressions for data larger than memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tasks.methods.adjusted.algorithm.design import Levels, gram_of
from tasks.methods.adjusted.algorithm.regressions import CollinearError, LinearFit, cr1_factor, sandwich
from tasks.numerics.arrays import Floats, Ints, Matrix, Packed, some_rows_of, sums_of
from tasks.numerics.statistics.regression import log_likelihood, logistic

# --------------------------------------------------------------------------------------------------------------------
# Batches of rows that can be read again from the start, as often as an estimate needs a pass.


@dataclass(frozen=True)
class Batch:
    """Some rows of a regression, ``m`` of them."""

    y: Floats
    """``(m,)`` outcome; 0 or 1 for a logit."""
    x: Matrix
    """``(m, p)`` design with its intercept."""
    cluster: Ints | None = None
    """``(m,)`` cluster of each row, numbered from 0 over all batches; None for independent rows."""
    levels: Levels | None = None
    """Fixed effects: indicators that follow the columns of ``x``."""

    def rows(self, chosen: slice) -> "Batch":
        """Some of its rows."""
        cluster = None if self.cluster is None else self.cluster[chosen]
        levels = None if self.levels is None else self.levels.rows(chosen)
        return Batch(self.y[chosen], some_rows_of(self.x, chosen), cluster, levels)

    @property
    def width(self) -> int:
        """Columns and indicators."""
        columns: int = self.x.shape[1]
        return columns + (0 if self.levels is None else self.levels.count)

    def sums(self, values: Floats) -> Floats:
        """``(p,)`` sums of every column times values ``(m,)``."""
        dense = sums_of(self.x, values)
        return dense if self.levels is None else np.append(dense, self.levels.sums(values[:, None]))

    def fitted(self, coefficients: Floats) -> Floats:
        """``(m,)`` linear predictor of coefficients ``(p,)``."""
        if self.levels is None:
            return self.x @ coefficients
        return self.x @ coefficients[: self.x.shape[1]] + self.levels.of(coefficients[self.x.shape[1] :])

    def products(self, weight: Floats | None = None) -> Floats:
        """``(p, p)`` cross products of all columns; ``weight`` ``(m,)`` is that of each row in a column."""
        square = None if weight is None else weight**2
        if isinstance(self.x, Packed):
            dense = self.x.squares(square)
        else:
            weighted = self.x if weight is None else self.x * weight[:, None]
            dense = weighted.T @ weighted
        if self.levels is None:
            return dense
        beside = self.levels.sums(self.x, square)
        return np.block([[dense, beside.T], [beside, self.levels.products(square)]])


Batches = Callable[[], Iterator[Batch]]
"""Each call begins a new pass over the same rows in the same order."""


def split(batch: Batch, rows: int) -> Batches:
    """Rows in memory as batches of so many."""
    return lambda: (batch.rows(slice(start, start + rows)) for start in range(0, len(batch.y), rows))


def every(batches: Batches, step: int) -> Batch:
    """Every ``step``-th row in one batch, whichever way the rows are split; one pass."""
    rows_read, y, x = 0, list[Floats](), list[Floats]()
    for batch in batches():
        chosen = slice(-rows_read % step, None, step)
        y.append(batch.y[chosen].copy())  # a view would keep the whole batch
        x.append(batch.x[chosen].copy())
        rows_read += len(batch.y)
    return Batch(np.concatenate(y), np.concatenate(x))


class ClusterSums:
    """Sums of scores by cluster, over batches; ``(G, p)`` grows with the clusters that were seen."""

    def __init__(self, columns: int) -> None:
        self.sums: Floats = np.zeros((0, columns))
        self.rows: Floats = np.zeros(0)

    def add(self, batch: Batch, residuals: Floats, cluster: Ints) -> None:
        """Add the scores of a batch, column times residual ``(m,)``, to the sums of their clusters."""
        clusters = max(len(self.rows), int(cluster.max(initial=-1)) + 1)
        new = clusters - len(self.rows)
        self.sums, self.rows = np.pad(self.sums, ((0, new), (0, 0))), np.pad(self.rows, (0, new))
        if isinstance(batch.x, Packed):
            self.sums[:, : batch.x.shape[1]] += batch.x.sums_by(residuals, cluster, clusters)
        else:
            for place, column in enumerate(batch.x.T):
                self.sums[:, place] += np.bincount(cluster, column * residuals, clusters)
        if batch.levels is not None:
            from tasks.numerics.levels import add_cells  # loads numba

            first, indicators = batch.x.shape[1], batch.levels.count
            for code in batch.levels.codes:
                has_one = code < indicators
                add_cells(self.sums, cluster[has_one], first + code[has_one], residuals[has_one])
        self.rows += np.bincount(cluster, minlength=clusters)

    @property
    def clusters(self) -> int:
        """How many clusters have rows."""
        return int(np.count_nonzero(self.rows))

    @property
    def meat(self) -> Floats:
        """``(p, p)`` cross products of the sums."""
        products: Floats = self.sums.T @ self.sums
        return products


class Meat:
    """Cross products of scores, of rows or, where batches have them, of clusters."""

    def __init__(self, columns: int) -> None:
        self.of_rows: Floats = np.zeros((columns, columns))
        self.by_cluster: ClusterSums | None = None

    def add(self, batch: Batch, residuals: Floats) -> None:
        """Add the scores x * residual of a batch."""
        self.of_rows += batch.products(residuals)
        if batch.cluster is not None:
            self.by_cluster = self.by_cluster or ClusterSums(batch.width)
            self.by_cluster.add(batch, residuals, batch.cluster)

    @property
    def robust(self) -> Floats:
        """``(p, p)`` of rows, or of clusters times G / (G - 1); NaN with one cluster."""
        by = self.by_cluster
        if by is None:
            return self.of_rows
        return by.meat * (by.clusters / (by.clusters - 1) if by.clusters > 1 else np.nan)


# --------------------------------------------------------------------------------------------------------------------
# Least squares from sufficient statistics: cross products by batches, and a second pass for robust errors.


COLLINEAR = 1e-12
"""A column of which the others leave so small a share of its squared length is collinear."""


def fit_batches(batches: Batches) -> LinearFit:
    """The fit of ``fit_linear`` on all rows together, in two passes.

    The second pass takes residuals, whose cross products with the columns also correct the coefficients for what
    rounding of the cross products has cost them (one step of iterative refinement).

    Args:
        batches: Rows, with clusters for CR1. Their fixed effects are fitted as columns of indicators would be, at the
            cost of one number a row.

    Raises:
        CollinearError: A column is a combination of the others, or there are no more rows than columns.
    """
    n, gram, moments = 0, np.zeros((0, 0)), np.zeros(0)
    for batch in batches():
        if n == 0:
            gram, moments = np.zeros((batch.width, batch.width)), np.zeros(batch.width)
        n += len(batch.y)
        gram += batch.products()
        moments += batch.sums(batch.y)
    df = n - len(moments)
    if df < 1:
        raise CollinearError(f"{n} rows are too few for {len(moments)} columns")
    bread = inverse(gram)
    coefficients = bread @ moments
    meat, squares, remaining_moments = Meat(len(moments)), 0.0, np.zeros(len(moments))
    for batch in batches():
        residuals = batch.y - batch.fitted(coefficients)
        squares += float(residuals @ residuals)
        remaining_moments += batch.sums(residuals)
        meat.add(batch, residuals)
    refined = coefficients + bread @ remaining_moments
    hc1, by = sandwich(bread, meat.of_rows, n / df), meat.by_cluster
    if by is None:
        return LinearFit(refined, bread * squares / df, hc1, None, df)
    cr1 = sandwich(bread, by.meat, cr1_factor(n, df, by.clusters))
    return LinearFit(refined, bread * squares / df, hc1, cr1, df, by.clusters)


@dataclass(frozen=True)
class Coefficient:
    """One coefficient of least squares."""

    value: float
    se: float
    """Clustered (CR1), else robust (HC1)."""
    classical: float
    """Its error under equal variances."""
    df: int
    """Residual degrees of freedom."""


def nested_fits(
    y: Floats,
    x: Matrix,
    column: int,
    widths: Sequence[int],
    cluster: Ints | None = None,
    gram: Floats | None = None,
) -> list[Coefficient | None]:
    """A coefficient as ``fit_linear`` has it, on the first columns of a matrix, for each of several numbers of them.

    The cross products of all columns hold those of the first ones, so that all fits together take four passes. One
    step of iterative refinement corrects what rounding of the cross products has cost.

    Args:
        y: ``(n,)`` outcome.
        x: ``(n, p)`` columns, independent of each other.
        column: Whose coefficient.
        widths: How many columns each fit has.
        cluster: ``(n,)`` cluster of each row, from 0 without gaps, for CR1.
        gram: ``(p, p)`` cross products of the columns, where they are known.

    Returns:
        None where there are no more rows than columns.

    Raises:
        CollinearError: A column is a combination of those before it.
    """
    n, moments = len(y), sums_of(x, y)
    gram = gram_of(x) if gram is None else gram
    fitted = [place for place, width in enumerate(widths) if n > width]
    breads = [inverse(gram[: widths[place], : widths[place]]) for place in fitted]
    coefficients, directions = np.zeros((2, x.shape[1], len(fitted)))
    for number, bread in enumerate(breads):
        coefficients[: len(bread), number] = bread @ moments[: len(bread)]
        directions[: len(bread), number] = bread[column]
    remaining_moments = sums_of(x, y[:, None] - x @ coefficients)
    for number, bread in enumerate(breads):
        coefficients[: len(bread), number] += bread @ remaining_moments[: len(bread), number]
    residuals = y[:, None] - x @ coefficients
    influence = (x @ directions) * residuals
    fits: list[Coefficient | None] = [None] * len(widths)
    for number, (place, bread) in enumerate(zip(fitted, breads, strict=True)):
        df, scores = n - len(bread), influence[:, number]
        if cluster is None:
            variance = n / df * float(scores @ scores)
        else:
            sums = np.bincount(cluster, scores)
            variance = cr1_factor(n, df, len(sums)) * float(sums @ sums)
        squares = float(residuals[:, number] @ residuals[:, number])
        fits[place] = Coefficient(
            float(coefficients[column, number]),
            float(np.sqrt(variance)),
            float(np.sqrt(bread[column, column] * squares / df)),
            df,
        )
    return fits


def inverse(gram: Floats) -> Floats:
    """``(p, p)`` inverse of cross products, with columns brought to length 1 beforehand.

    Raises:
        CollinearError: A column is a combination of the others, or zero in every row.
    """
    length = np.sqrt(np.diag(gram))
    if not length.all():
        raise CollinearError(f"column {int(length.argmin())} is zero in every row")
    try:
        root = np.linalg.cholesky(gram / np.outer(length, length))
    except np.linalg.LinAlgError as error:
        raise CollinearError("a column is a combination of the others") from error
    if np.diag(root).min() ** 2 < COLLINEAR:
        raise CollinearError(f"column {int(np.diag(root).argmin())} is a combination of those before")
    half = np.linalg.inv(root)
    inverse_gram: Floats = half.T @ half / np.outer(length, length)
    return inverse_gram


# --------------------------------------------------------------------------------------------------------------------
# Logistic regression by Newton's method over batches: one pass a step, from a start on a sample.
#
# Scope: coefficients. Effects and robust errors, one pass more: ``effects``.


MOST_STEPS = 25
HALVINGS = 5
"""How often a step that lowers the likelihood is halved."""
DECREMENT = 1e-14
"""A step that promises to raise the mean log likelihood by no more is the last."""
SAMPLE, LEAST_ROWS = 100, 20
"""Every so many-th row is in the sample of the start, if it then has so many rows for each column."""


@dataclass(frozen=True)
class Pass:
    """What one pass at given coefficients adds up."""

    n: int
    likelihood: float
    """Log likelihood."""
    score: Floats
    """``(p,)`` its gradient."""
    information: Floats
    """``(p, p)`` its negative second derivative."""


@dataclass(frozen=True)
class Newton:
    """Coefficients, and how they were found."""

    coefficients: Floats
    converged: bool
    passes: int
    n: int


def fit_logit(batches: Batches, start: Floats | None = None, sample: int = SAMPLE) -> Newton:
    """Maximise the likelihood of a logit over all rows.

    Args:
        batches: Rows with an outcome of 0 or 1.
        start: ``(p,)`` coefficients to begin at; those of a sample if left out.
        sample: Every so many-th row is in that sample.

    Returns:
        ``converged`` is false where columns separate the outcomes, or 25 steps do not do.
    """
    if start is not None:
        return _climb(batches, start)
    few = every(batches, sample)
    start = np.zeros(few.x.shape[1])
    if sample > 1 and len(few.y) >= LEAST_ROWS * len(start):
        guess = _climb(lambda: iter([few]), start)
        start = guess.coefficients if guess.converged else start
    fit = _climb(batches, start)
    return replace(fit, passes=fit.passes + 1)


def _climb(batches: Batches, start: Floats) -> Newton:
    at, passes, size = start, 1, 1.0
    best = added_up(batches, at)
    step = _step(best)
    for _ in range(MOST_STEPS):
        if step is None:
            return Newton(at, False, passes, best.n)
        if float(best.score @ step) <= DECREMENT * best.n:
            return Newton(at + step, True, passes, best.n)
        now, passes = added_up(batches, at + size * step), passes + 1
        if now.likelihood < best.likelihood and size > 0.5**HALVINGS:
            size /= 2
            continue
        at, best, size = at + size * step, now, 1.0
        step = _step(best)
    return Newton(at, False, passes, best.n)


def _step(at: Pass) -> Floats | None:
    """Newton's step; None where the information has no inverse, as under separation."""
    try:
        step: Floats = inverse(at.information) @ at.score
    except CollinearError:
        return None
    return step


def added_up(batches: Batches, coefficients: Floats) -> Pass:
    """Likelihood, score and information of all rows at given coefficients."""
    p = len(coefficients)
    n, likelihood, score, information = 0, 0.0, np.zeros(p), np.zeros((p, p))
    for batch in batches():
        x = batch.x[:]
        linear = x @ coefficients
        fitted = logistic(linear)
        n += len(linear)
        likelihood += log_likelihood(linear, batch.y)
        score += x.T @ (batch.y - fitted)
        half = x * np.sqrt(fitted * (1 - fitted))[:, None]
        information += half.T @ half
    return Pass(n, likelihood, score, information)


# --------------------------------------------------------------------------------------------------------------------
# Average effects of group indicators in a logit, with sandwich errors, in one pass over batches.
#
# Scope: effects as discrete changes of an indicator, over the group's own members and over all rows; delta method.


BEYOND = 1e-8
"""A fitted probability so near to 0 or 1 is a sign of separation."""


@dataclass(frozen=True)
class Average:
    """An average effect and its standard error."""

    value: float
    se: float


@dataclass(frozen=True)
class LogitEffects:
    """Results of one pass at the estimate, with groups in the order of their columns."""

    covariance: Floats
    """``(p, p)`` sandwich (HC0); with clusters of scores summed by cluster, times G / (G - 1)."""
    over_members: tuple[Average, ...]
    """Averaged over the group's members, against the reference group."""
    over_all: tuple[Average, ...]
    """Averaged over all rows: everyone in the group against everyone in the reference group."""
    denial: tuple[float, ...]
    """Mean fitted probability of each group's members."""
    members: tuple[int, ...]
    n: int
    separated: bool
    """Whether a fitted probability is within 1e-8 of 0 or 1."""


class _Sums:
    """Sums for one group: differences of probabilities and their gradients."""

    def __init__(self, columns: int) -> None:
        self.members, self.denial, self.own, self.over_all = 0, 0.0, 0.0, 0.0
        self.own_gradient: Floats = np.zeros(columns)
        self.all_gradient: Floats = np.zeros(columns)


def logit_effects(batches: Batches, coefficients: Floats, groups: Sequence[int]) -> LogitEffects:
    """Sandwich covariance and average effects at the estimate.

    Args:
        batches: Rows with an outcome of 0 or 1.
        coefficients: ``(p,)`` estimate.
        groups: Places of the group indicators in the design; a row is in one group at most.
    """
    p, n, separated = len(coefficients), 0, False
    sums, meat, information = [_Sums(p) for _ in groups], Meat(p), np.zeros((p, p))
    for batch in batches():
        linear = batch.x @ coefficients
        fitted = logistic(linear)
        half = batch.x[:] * np.sqrt(_slope(fitted))[:, None]
        information += half.T @ half
        meat.add(batch, batch.y - fitted)
        separated |= bool(np.any((fitted < BEYOND) | (fitted > 1 - BEYOND)))
        n += len(linear)
        _add(sums, batch, linear, coefficients, list(groups))
    covariance = sandwich(inverse(information), meat.robust)
    return LogitEffects(
        covariance,
        tuple(_average(group_sums.own, group_sums.own_gradient, group_sums.members, covariance) for group_sums in sums),
        tuple(_average(group_sums.over_all, group_sums.all_gradient, n, covariance) for group_sums in sums),
        tuple(group_sums.denial / group_sums.members if group_sums.members else np.nan for group_sums in sums),
        tuple(group_sums.members for group_sums in sums),
        n,
        separated,
    )


def _add(sums: Sequence[_Sums], batch: Batch, linear: Floats, coefficients: Floats, groups: list[int]) -> None:
    """Add a batch: each row as it would be in the reference group, and in each group."""
    x = batch.x[:]
    base = linear - x[:, groups] @ coefficients[groups]
    without = logistic(base)
    for of, column in zip(sums, groups, strict=True):
        inside = logistic(base + coefficients[column])
        change, slopes = inside - without, _slope(inside) - _slope(without)
        is_member = x[:, column] == 1
        of.members += int(is_member.sum())
        of.denial += float(inside[is_member].sum())
        of.own += float(change[is_member].sum())
        of.over_all += float(change.sum())
        of.own_gradient += _gradient(x[is_member], slopes[is_member], _slope(inside[is_member]), groups, column)
        of.all_gradient += _gradient(x, slopes, _slope(inside), groups, column)


def _gradient(x: Floats, slopes: Floats, inside: Floats, groups: list[int], column: int) -> Floats:
    """``(p,)`` derivative of the summed differences; of the indicators only the group's own has one."""
    gradient: Floats = x.T @ slopes
    gradient[groups] = 0.0
    gradient[column] = inside.sum()
    return gradient


def _slope(fitted: Floats) -> Floats:
    return fitted * (1 - fitted)


def _average(total: float, gradient: Floats, rows: int, covariance: Floats) -> Average:
    if rows == 0:
        return Average(np.nan, np.nan)
    return Average(total / rows, float(np.sqrt(gradient @ covariance @ gradient)) / rows)


# --------------------------------------------------------------------------------------------------------------------
# Several fixed effects without dummies: the within transformation (Frisch, Waugh and Lovell).
#
# An intercept and whatever does not vary within a level become zero: leave them out of the design.


MOST_ROUNDS = 10_000
APART = 1e-12
"""Rounds end when no value moves by more than this share of its column's standard deviation."""


def within(values: Floats, effects: Sequence[Ints]) -> Floats:
    """``(n, k)`` values less several fixed effects, by alternating projections (Guimaraes and Portugal 2010).

    Args:
        values: ``(n, k)`` outcome and columns.
        effects: For each fixed effect ``(n,)`` levels, from 0.

    Raises:
        ValueError: The projections do not settle.
    """
    residuals: Floats = np.array(values, dtype=np.float64)
    scale = np.maximum(residuals.std(axis=0), np.finfo(float).tiny)
    for _ in range(MOST_ROUNDS):
        before = residuals
        for levels in effects:
            counts = np.maximum(np.bincount(levels), 1)
            means = np.column_stack([np.bincount(levels, column) / counts for column in residuals.T])
            residuals = residuals - means[levels]
        if len(effects) == 1 or float((np.abs(residuals - before) / scale).max(initial=0.0)) <= APART:
            return residuals
    raise ValueError(f"fixed effects did not settle in {MOST_ROUNDS} rounds")
