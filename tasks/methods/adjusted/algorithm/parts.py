"""Parts of a group: the effect in every declared part, with one critical value for all parts of an attribute.

A mean hides its parts: harm in one product and favour in another add up to nothing. In a part the reference group's own
rows there, weighted to be like the members, are taken out: what the rule misses in that part alone, such as a strict
branch, is no effect. All parts of all groups share one critical value, the 95 % point of the largest of their
standardised effects (Dudoit and van der Laan 2008), drawn from the correlations of their influences.

Scope: effects in parts, their errors, which of them are outside or keep the whole from being within.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from tasks.methods.adjusted.algorithm.expected import Effect, Rule
from tasks.methods.adjusted.algorithm.regressions import cluster_sums
from tasks.numerics.arrays import Floats, Ints, Longs, Matrix
from tasks.numerics.levels import add_parts
from tasks.numerics.statistics.regression import weighted_squares

MOST_LEVELS = 60
"""Levels of a column that are looked at, the commonest."""
LARGEST_SHARE = 0.95
"""A part with more of the members is the whole."""
LEAST_VARIANCE = 5.0
"""Sum of p0 (1 - p0) that both the members and the reference rows of a part need."""
FEWEST_CLUSTERS = 10
"""A part with members in so many clusters has an error by clusters, too."""
FIFTHS = "expected denial"
"""Name of the split by p0."""
CHUNK = 16_384
"""Rows with their columns in memory at a time."""
TIMES_LIMIT = 2.5
"""The limit of a part is no larger than so many times that of the group's row."""


@dataclass(frozen=True)
class Split:
    """A declared way to part the applications."""

    column: str
    levels: tuple[str, ...]
    code: Ints
    """``(n,)`` index into the levels; -1 of a row in none."""
    attribute: bool = False
    """Whether it is another protected attribute."""
    time: bool = False
    """Whether it is the quarter of the application."""
    office: bool = False
    """Whether it says through whom an application went, is no control, and has too few levels for errors by cluster."""


def split_of_number(column: str, values: Floats) -> Split:
    """The thirds of a number, named by their ends; fewer where ends are equal."""
    return _split_at(column, values, (1 / 3, 2 / 3))


def split_of_fifths(p0: Floats) -> Split:
    """The fifths of the chance of denial by the reference group's rule."""
    split = _split_at(FIFTHS, p0, (0.2, 0.4, 0.6, 0.8))
    count = len(split.levels)
    return replace(split, levels=tuple(f"fifth {place + 1} of {count}" for place in range(count)))


def _split_at(column: str, values: Floats, shares: tuple[float, ...]) -> Split:
    finite = np.isfinite(values)
    ends = np.unique(np.quantile(values[finite], shares, method="closest_observation")) if finite.any() else np.zeros(0)
    code = np.where(finite, np.searchsorted(ends, values, side="left"), -1).astype(np.int32)
    names = [f"{end:.4g}" for end in ends]
    levels = [
        *([f"up to {names[0]}"] if names else ["all"]),
        *(f"above {low} to {high}" for low, high in itertools.pairwise(names)),
        *([f"above {names[-1]}"] if names else []),
    ]
    return Split(column, tuple(levels), code)


@dataclass(frozen=True)
class Part:
    """The effect in one part of a group."""

    group: int
    column: str
    level: str
    n: int
    """Members."""
    n_reference: int
    value: float
    se: float
    low: float
    high: float
    """Simultaneous two-sided 95 % interval."""
    above: float
    """Simultaneous one-sided 95 % lower bound."""
    outside: bool
    """Whether that bound exceeds the limit of a part."""
    bars: bool
    """Whether it keeps the group from being within: above the limit, and its interval above 0."""
    exceeds_rest: bool
    """Whether it is shown to exceed the whole group's effect."""

    @property
    def strength(self) -> float:
        """The effect in errors."""
        return self.value / self.se if self.se > 0 else 0.0


@dataclass(frozen=True)
class Rules:
    """Settings of parts."""

    limit: float = 0.05
    minimum_n: int = 50
    draws: int = 1000


@dataclass(frozen=True)
class Inside:
    """A group with what its parts need."""

    group: int
    effect: Effect
    odds: Floats
    """``(n,)`` odds of membership."""
    limit: float
    """Of the group's row."""


@dataclass(frozen=True)
class _Column:
    """One part of one group, before its error is known."""

    inside: Inside
    split: Split
    level: int
    n: int
    """Members."""
    n_reference: int
    mean: float
    """The members' mean of y - p0."""
    taken_out: float
    """The weighted mean of the reference rows."""
    weight: float
    """Sum of the reference rows' odds."""
    gradient: Floats
    """``(k,)`` of the effect by the rule's coefficients, with its sign turned."""
    least: float
    """Error of a part where nobody differs: by p0 (1 - p0)."""


def parts_of(
    rule: Rule,
    groups: Sequence[Inside],
    splits: Mapping[int, Sequence[Split]],
    cluster: Ints | None,
    rules: Rules,
    rng: np.random.Generator,
) -> list[Part]:
    """The effects in all parts of all groups that are large enough.

    Args:
        rule: of the reference group.
        groups: those that are judged.
        splits: group -> the ways to part it.
        cluster: ``(n,)`` from 0, or None.
        rules: the limit, the fewest people and the draws.
        rng: draws the largest of standardised effects.
    """
    columns = [column for inside in groups for column in _columns(rule, inside, splits[inside.group], rules)]
    if not columns:
        return []
    cross, errors = _cross_products(rule, groups, columns, cluster)
    count = len(columns)
    by_row = np.sqrt(np.maximum(np.diag(cross)[:count], 1e-300))
    correlation = cross[:count, :count] / np.outer(by_row, by_row)
    one_sided, two_sided = critical_values(correlation, rules.draws, rng)
    whole = {inside.group: count + place for place, inside in enumerate(groups)}
    parts = []
    for place, column in enumerate(columns):
        value = column.mean - column.taken_out
        se = max(by_row[place], errors[place], column.least)
        limit = min(rules.limit, TIMES_LIMIT * column.inside.limit)
        at = whole[column.inside.group]
        of_difference = math.sqrt(max(cross[place, place] + cross[at, at] - 2 * cross[place, at], 0.0))
        low, above = value - two_sided * se, value - one_sided * se
        parts.append(
            Part(
                column.inside.group,
                column.split.column,
                column.split.levels[column.level],
                column.n,
                column.n_reference,
                value,
                se,
                low,
                value + two_sided * se,
                above,
                outside=above > limit,
                bars=value > limit and low > 0,
                exceeds_rest=value - column.inside.effect.value > one_sided * of_difference,
            )
        )
    return parts


def critical_values(correlation: Floats, draws: int, rng: np.random.Generator) -> tuple[float, float]:
    """95 % points of the largest of normal variables with this correlation, and of the largest of their sizes.

    Variables are drawn by the symmetric root of the correlation, which is unique: signs of eigenvectors, and vectors of
    equal eigenvalues, depend on the processor.
    """
    eigenvalues, vectors = np.linalg.eigh(correlation)
    root = (vectors * np.sqrt(np.maximum(eigenvalues, 0.0))) @ vectors.T
    normal = rng.standard_normal((draws, len(correlation))) @ root
    return float(np.quantile(normal.max(axis=1), 0.95)), float(np.quantile(np.abs(normal).max(axis=1), 0.95))


@dataclass(frozen=True)
class _Levels:
    """The levels of a split that are looked at in a group, with their sums."""

    split: Split
    codes: tuple[Ints, Ints]
    """Of the members, and of the reference rows."""
    levels: Longs
    counts: tuple[Longs, Longs]
    """``(width,)`` members, and reference rows."""
    spread: Floats
    """``(width,)`` of p0 (1 - p0) over members."""

    @property
    def width(self) -> int:
        """How many levels the split has."""
        return len(self.split.levels)


def _columns(rule: Rule, inside: Inside, splits: Sequence[Split], rules: Rules) -> Iterator[_Column]:
    """The parts of a group that are looked at; sums of all levels of all splits are taken in one pass."""
    of_group, reference = np.flatnonzero(inside.effect.members), np.flatnonzero(rule.reference)
    p0 = rule.p0
    residuals = [rule.y[rows] - p0[rows] for rows in (of_group, reference)]
    variances = [p0[rows] * (1 - p0[rows]) for rows in (of_group, reference)]
    odds = inside.odds[reference]
    of_splits = []
    for split in splits:
        codes = split.code[of_group], split.code[reference]
        width = len(split.levels)
        counts, of_reference = (np.bincount(code[code >= 0], minlength=width) for code in codes)
        commonest = np.sort(np.argsort(-counts, kind="stable")[:MOST_LEVELS])
        enough = (counts >= rules.minimum_n) & (counts <= LARGEST_SHARE * inside.effect.n)
        enough &= of_reference >= rules.minimum_n
        if not enough[commonest].any():
            continue
        spread, spread_of_reference = (
            _by_level(code, variance, width) for code, variance in zip(codes, variances, strict=True)
        )
        enough &= np.minimum(spread, spread_of_reference) >= LEAST_VARIANCE
        if enough[commonest].any():
            levels = commonest[enough[commonest]]
            of_splits.append(_Levels(split, codes, levels, (counts, of_reference), spread))
    slopes, of_rule = (
        _sums_of_rows(rule.x, rows, [(of.codes[side], of.width) for of in of_splits], weight)
        for side, (rows, weight) in enumerate(((of_group, variances[0]), (reference, odds * variances[1])))
    )
    first = 0
    for of in of_splits:
        mean = _by_level(of.codes[0], residuals[0], of.width)
        weight = _by_level(of.codes[1], odds, of.width)
        taken_out = _by_level(of.codes[1], odds * residuals[1], of.width)
        squares = _by_level(of.codes[1], odds**2 * variances[1], of.width)
        for level in of.levels:
            n = int(of.counts[0][level])
            gradient = slopes[first + level] / n - of_rule[first + level] / weight[level]
            yield _Column(
                inside,
                of.split,
                int(level),
                n,
                int(of.counts[1][level]),
                float(mean[level]) / n,
                float(taken_out[level]) / float(weight[level]),
                float(weight[level]),
                gradient,
                math.sqrt(float(of.spread[level]) / n**2 + float(squares[level]) / float(weight[level]) ** 2),
            )
        first += of.width


def _by_level(code: Ints, values: Floats, width: int) -> Floats:
    """``(width,)`` sums of values by level; rows in none do not count."""
    sums: Floats = np.bincount(code + 1, values, width + 1)[1:]  # type: ignore[assignment]
    return sums


def _sums_of_rows(x: Matrix, rows: Longs, splits: Sequence[tuple[Ints, int]], weight: Floats) -> Floats:
    """``(widths, k)`` weighted sums of some rows of ``x`` by the levels of several splits, one below the other.

    Args:
        x: ``(n, k)``.
        rows: ``(m,)`` of ``x``.
        splits: the level of each of these rows, -1 of none, and how many levels there are.
        weight: ``(m,)``.
    """
    widths = np.array([width for _, width in splits], np.int64)
    total, count = int(widths.sum()), len(splits)
    sums = np.zeros((total + 1, x.shape[1]))  # the last one is of rows in no level
    starts = np.cumsum(widths) - widths
    for start in range(0, len(rows), CHUNK):
        some = slice(start, start + CHUNK)
        levels = np.empty((len(rows[some]), count), np.int32)
        for place, (code, _) in enumerate(splits):
            levels[:, place] = np.where(code[some] < 0, total, starts[place] + code[some])
        ends = count * np.arange(len(levels) + 1)
        cells = (np.repeat(weight[some], count), levels.ravel(), ends)
        sums += sparse.csc_matrix(cells, shape=(total + 1, len(levels))) @ x[rows[some]]
    return sums[:-1]


def _cross_products(
    rule: Rule, groups: Sequence[Inside], columns: Sequence[_Column], cluster: Ints | None
) -> tuple[Floats, Floats]:
    """Cross products of the influences of all parts and wholes, ``(K + groups,)`` squared; errors by clusters ``(K,)``.

    The influence of a part is that of its own rows and that of the rule, which goes through all reference rows and is
    linear in their columns: its cross products are those of the columns, by way of the slopes.
    """
    count, rows, k = len(columns), len(rule.y), rule.x.shape[1]
    slopes = np.stack([column.gradient for column in columns]) @ rule.inverse
    reference_rows = int(rule.reference.sum())
    factor = math.sqrt(reference_rows / max(reference_rows - k, 1))
    residual = rule.y - rule.p0
    of_rule = np.where(rule.reference, -factor * residual, 0.0)
    splits = list({id(column.split): column.split for column in columns}.values())
    number_of_split = {id(split): number for number, split in enumerate(splits)}
    number_of_group = {inside.group: number for number, inside in enumerate(groups)}
    part_of = np.full((len(groups), len(splits), max(len(split.levels) for split in splits)), -1, np.int32)
    for place, column in enumerate(columns):
        part_of[number_of_group[column.inside.group], number_of_split[id(column.split)], column.level] = place
    whose = np.full(rows, -1, np.int32)
    whose[rule.reference] = len(groups)
    for number, inside in enumerate(groups):
        whose[inside.effect.members] = number
    of_parts = np.array([(c.mean, c.n, c.taken_out, c.weight) for c in columns])
    own, through = np.zeros((count + len(groups),) * 2), np.zeros((count + len(groups), k))
    for start in range(0, rows, CHUNK):
        part = slice(start, start + CHUNK)
        add_parts(
            *(own, through, np.ascontiguousarray(rule.x[part]), of_rule[part], residual[part], whose[part]),
            *(np.column_stack([split.code[part] for split in splits]), part_of, of_parts),
            np.column_stack([inside.odds[part] for inside in groups]),
            np.column_stack([inside.effect.influence[part] for inside in groups]),
        )
    cross = own + own.T - np.diag(np.diag(own))
    of_slopes = slopes @ through.T
    cross[:count] += of_slopes
    cross[:, :count] += of_slopes.T
    cross[:count, :count] += slopes @ weighted_squares(rule.x, of_rule**2) @ slopes.T
    if cluster is None:
        return cross, np.zeros(count)
    of_clusters = cluster_sums(rule.x, of_rule, cluster, int(cluster.max()) + 1)
    return cross, _by_clusters(rule, columns, slopes @ of_clusters.T, cluster)


def _by_clusters(rule: Rule, columns: Sequence[_Column], through: Floats, cluster: Ints) -> Floats:
    """``(K,)`` errors by clusters, as ``expected.error_of`` has them; 0 of a part with members in few clusters.

    Args:
        rule: of the reference group.
        columns: ``K`` parts, those of a group and a split one after another.
        through: ``(K, G)`` sums by cluster of the influences through the rule, and not by a part's own rows.
        cluster: ``(n,)``.
    """
    count, residual = through.shape[1], rule.y - rule.p0
    reference = np.flatnonzero(rule.reference)
    beside_reference = _beside(np.bincount(cluster[reference], minlength=count))
    errors: list[float] = []
    for _, of_split in itertools.groupby(columns, lambda column: (column.inside.group, column.split.column)):
        some = list(of_split)
        inside, split = some[0].inside, some[0].split
        place_of_level = np.full(len(split.levels) + 1, -1)  # the last one is of rows in no level
        place_of_level[[column.level for column in some]] = np.arange(len(some))
        members, shape = np.flatnonzero(inside.effect.members), (len(some), count)
        place = place_of_level[split.code[members]], cluster[members]
        counts, residuals = (_by_cell(*place, of_rows, shape) for of_rows in (np.ones(len(members)), residual[members]))
        odds, place = inside.odds[reference], (place_of_level[split.code[reference]], cluster[reference])
        weights, weighted = (_by_cell(*place, of_rows, shape) for of_rows in (odds, odds * residual[reference]))
        for number, column in enumerate(some):
            of_members = (residuals[number] - column.mean * counts[number]) / column.n
            taken_out = (weighted[number] - column.taken_out * weights[number]) / column.weight
            of_reference = through[len(errors)] - taken_out
            total = of_members / _beside(counts[number]) + of_reference / beside_reference
            enough = np.count_nonzero(counts[number]) >= FEWEST_CLUSTERS
            errors.append(float(np.sqrt(total @ total)) if enough else 0.0)
    return np.array(errors)


def _by_cell(place: Longs, cluster: Ints, values: Floats, shape: tuple[int, int]) -> Floats:
    """Sums of values ``(m,)`` by the place of a part, -1 of none, and by cluster."""
    inside = place >= 0
    cells = place[inside] * shape[1] + cluster[inside]
    sums: Floats = np.bincount(cells, values[inside], shape[0] * shape[1]).astype(np.float64)
    return sums.reshape(shape)


def _beside(counts: Floats | Longs) -> Floats:
    """``(G,)`` one less the share of each cluster of all rows, no less than that of a row."""
    n = max(float(counts.sum()), 1.0)
    least: Floats = np.maximum(1 - counts / n, 1 / n)
    return least
