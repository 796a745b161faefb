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

from tasks.methods.adjusted.algorithm.expected import Effect, Rule, error_of
from tasks.numerics.arrays import Bools, Floats, Ints

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
    members: Bools
    """``(n,)``."""
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
                int(column.members.sum()),
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
    """95 % points of the largest of normal variables with this correlation, and of the largest of their sizes."""
    eigenvalues, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    normal = rng.standard_normal((draws, len(correlation))) @ root.T
    return float(np.quantile(normal.max(axis=1), 0.95)), float(np.quantile(np.abs(normal).max(axis=1), 0.95))


def _columns(rule: Rule, inside: Inside, splits: Sequence[Split], rules: Rules) -> Iterator[_Column]:
    """The parts of a group that are looked at."""
    variance, residual = rule.p0 * (1 - rule.p0), rule.y - rule.p0
    of_group = inside.effect.members
    for split in splits:
        counts = np.bincount(split.code[of_group & (split.code >= 0)], minlength=len(split.levels))
        for level in np.sort(np.argsort(-counts, kind="stable")[:MOST_LEVELS]):
            n = int(counts[level])
            if n < rules.minimum_n or n > LARGEST_SHARE * inside.effect.n:
                continue
            inside_level = split.code == level
            members, reference = of_group & inside_level, rule.reference & inside_level
            n_reference = int(reference.sum())
            if n_reference < rules.minimum_n:
                continue
            if min(variance[members].sum(), variance[reference].sum()) < LEAST_VARIANCE:
                continue
            odds = inside.odds[reference]
            weight = float(odds.sum())
            gradient = variance[members] @ rule.x[members] / n
            gradient -= (odds * variance[reference]) @ rule.x[reference] / weight
            of_reference = float((odds**2) @ variance[reference]) / weight**2
            yield _Column(
                inside,
                split,
                int(level),
                members,
                n_reference,
                float(residual[members].mean()),
                float(odds @ residual[reference]) / weight,
                weight,
                gradient,
                math.sqrt(float(variance[members].sum()) / n**2 + of_reference),
            )


def _cross_products(
    rule: Rule, groups: Sequence[Inside], columns: Sequence[_Column], cluster: Ints | None
) -> tuple[Floats, Floats]:
    """Cross products of the influences of all parts and wholes, ``(K + groups,)`` squared; errors by clusters ``(K,)``.

    Rows come in chunks, so that no matrix of rows and parts is held.
    """
    count, rows = len(columns), len(rule.y)
    by_clusters = np.zeros(count)
    slopes = np.stack([column.gradient for column in columns]) @ rule.inverse
    reference_rows, k = int(rule.reference.sum()), rule.x.shape[1]
    factor = math.sqrt(reference_rows / max(reference_rows - k, 1))
    residual, sizes = rule.y - rule.p0, [int(column.members.sum()) for column in columns]
    cross = np.zeros((count + len(groups),) * 2)

    def influence(part: slice, place: int) -> Floats:
        """Of the rows of a slice on one part."""
        column = columns[place]
        inside = column.members[part] * (residual[part] - column.mean) / sizes[place]
        inside_level = rule.reference[part] & (column.split.code[part] == column.level)
        outside = inside_level * column.inside.odds[part] * (residual[part] - column.taken_out) / column.weight
        through_rule = rule.reference[part] * (rule.x[part] @ slopes[place]) * residual[part] * factor
        out: Floats = inside - outside - through_rule
        return out

    for start in range(0, rows, CHUNK):
        part = slice(start, start + CHUNK)
        pieces = [influence(part, place) for place in range(count)]
        stacked = np.stack([*pieces, *(inside.effect.influence[part] for inside in groups)])
        cross += stacked @ stacked.T
    if cluster is not None:
        for place, column in enumerate(columns):
            if len(np.unique(cluster[column.members])) >= FEWEST_CLUSTERS:
                every = influence(slice(None), place)
                by_clusters[place] = error_of(every, column.members, rule.reference, cluster).se
    return cross, by_clusters
