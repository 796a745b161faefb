"""CEC above the own group: matched pairs, randomization test and interval."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numba
import numpy as np
from scipy import stats
from scipy.spatial import cKDTree

from schemas.errors import DataQualityError
from tasks.counterfactuals.algorithm import nearest
from tasks.counterfactuals.algorithm.nearest import UNMATCHED, Index, Matching
from tasks.methods.cec.algorithm import pairs
from tasks.methods.cec.algorithm.pairs import BATCH, Scored, View
from tasks.methods.cec.settings import CecSettings
from tasks.numerics import encoding
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.attributions import Linear
from tasks.numerics.encoding import Columns
from tasks.numerics.problem import ModelView, Refit
from tasks.numerics.results import Aggregate, Draws, Inference
from tasks.numerics.statistics.regression import Relabelling, fitted, p_of, propensity, strata
from tasks.numerics.statistics.sampling import Asked

# --------------------------------------------------------------------------------------------------------------------
# Nearest rows under relabelled groups: each row's neighbours are listed once, and every relabelling filters the lists.
#
# The match of a row under a relabelling is the first of its list that carries the wanted label. A list that runs out is
# searched again among all rows with that label, never cut short: the result is that of a search from the start.
#
# Scope: rows of one model with one outcome. Pairs and scores: ``pairing``.


DEPTH = 32
"""Neighbours listed: a label that one in ten carries is missing in 3 % of lists."""
SHALLOW = 8
"""Neighbours listed of rows that only rare labels ask: these are searched for in any case, and the others are near."""
RARE = 1 / DEPTH
"""Share of the rows of two groups below which a label is rare."""
FEW = 10_000_000
"""Distances that are all computed where lists run out; of more, a tree is built (some 10 ms either way)."""


@dataclass(frozen=True)
class Lists:
    """Rows that one model explains, with one outcome, and their nearest pool rows with that outcome."""

    model: int
    index: Index
    rows: Longs
    """``(r,)`` ascending."""
    pool: Longs
    """``(c,)`` rows that may be matches, ascending."""
    near: Ints
    """``(r, k)`` rows of the pool: nearest first in single precision, of equally near ones the lowest row."""
    away: Floats
    """``(r, k)`` their distances, in standard deviations."""
    listed: Longs
    """``(r,)`` neighbours listed of each row; ``near`` holds nothing beyond them."""

    @cached_property
    def place(self) -> Longs:
        """``(n,)`` place of each row in ``rows``; -1 of a row that is not among them."""
        positions = np.full(len(self.index.at), -1, np.int64)
        positions[self.rows] = np.arange(len(self.rows))
        return positions

    @cached_property
    def in_pool(self) -> Bools:
        """``(n,)`` whether a row is in the pool."""
        mask = np.zeros(len(self.index.at), np.bool_)
        mask[self.pool] = True
        return mask

    def match(self, at: Longs, is_candidate: Bools) -> Longs:
        """The nearest pool row with the wanted label for each of some rows, or ``UNMATCHED``, ``(a,)``.

        Args:
            at: ``(a,)`` places in ``rows``.
            is_candidate: ``(n,)`` whether a row carries the label.
        """
        if not self.index.matching.replacement:
            candidates = np.flatnonzero(self.in_pool & is_candidate)
            if not len(candidates):
                return np.full(len(at), UNMATCHED)
            places = encoding.gather(self.index.at[candidates])
            assigned_places, distance = nearest.match(self.index.at[self.rows[at]], places)
            return self._within_reach(np.where(assigned_places < 0, UNMATCHED, candidates[assigned_places]), distance)
        matches, distance, sure = _first_candidate(self.near, self.away, self.listed, at, is_candidate, len(self.pool))
        anew = np.flatnonzero(~sure)
        if len(anew):
            candidates = np.flatnonzero(self.in_pool & is_candidate)
            if not len(candidates):
                return np.full(len(at), UNMATCHED)
            matches[anew], distance[anew] = self._searched(self.rows[at[anew]], candidates)
        return self._within_reach(matches, distance)

    def _searched(self, rows: Longs, candidates: Longs) -> tuple[Longs, Floats]:
        """The nearest of all candidates to each row, and how far it is."""
        if len(rows) * len(candidates) <= FEW:
            few: tuple[Longs, Floats] = _nearest_of_few(self.index.at, rows, candidates)
            return few
        places = encoding.gather(self.index.at[candidates])
        place, distance = encoding.nearest(cKDTree(places.at), places.first, self.index.at[rows])
        return candidates[places.first[place]], distance

    def _within_reach(self, matches: Longs, distance: Floats) -> Longs:
        most = self.index.matching.maximum_distance
        return matches if most is None else np.where(distance > most, UNMATCHED, matches)


def lists(
    explained: ModelView,
    indices: tuple[Index, ...],
    among: Bools,
    depth: int = DEPTH,
    of: Bools | None = None,
    deep: Bools | None = None,
) -> tuple[Lists, ...]:
    """The lists of every model and outcome.

    Args:
        explained: Models and their pools.
        indices: Of each model the rows laid out to be matched.
        among: ``(n,)`` rows whose labels are exchanged; no other row is matched, or a match.
        depth: Neighbours listed.
        of: ``(n,)`` the rows whose neighbours are listed; None: all of them.
        deep: ``(n,)`` the rows of whom ``depth`` are listed, of the others ``SHALLOW``; None: all of them.
    """
    out = []
    for number, (index, pool) in enumerate(zip(indices, explained.pools, strict=True)):
        for outcome in (False, True):
            same_outcome = among & (index.label == outcome)
            group_rows = same_outcome & explained.rows_of(number)
            rows = np.flatnonzero(group_rows if of is None else group_rows & of)
            pool_rows = np.flatnonzero(same_outcome & pool)
            if len(rows) and len(pool_rows):
                # public data hold thousands of equal rows, on which a balanced tree would be slow to build
                tree = cKDTree(index.at[pool_rows], balanced_tree=False)
                is_deep = np.ones(len(rows), np.bool_) if deep is None else deep[rows]
                counts = np.minimum(np.where(is_deep, depth, SHALLOW), len(pool_rows))
                near, away = np.zeros((len(rows), counts.max()), np.int32), np.full((len(rows), counts.max()), np.inf)
                for k in np.unique(counts).tolist():
                    some = np.flatnonzero(counts == k)
                    # queries that lie close together read the same part of the tree
                    some = some[cKDTree(index.at[rows[some]], balanced_tree=False).indices]
                    far, place = tree.query(index.at[rows[some]], k=np.arange(1, k + 1), workers=encoding.WORKERS)
                    order = np.lexsort((pool_rows[place], far.astype(np.float32)), axis=-1)
                    near[some, :k] = np.take_along_axis(pool_rows[place], order, axis=1)
                    away[some, :k] = np.take_along_axis(far, order, axis=1)
                # without the trees of groups: the next protected attribute has others
                out.append(Lists(number, replace(index, cells={}), rows, pool_rows, near, away, counts))
    return tuple(out)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _first_candidate(
    near: Ints, away: Floats, listed: Longs, at: Longs, is_candidate: Bools, pool: int
) -> tuple[Longs, Floats, Bools]:
    """The first wanted row of some lists, its distance, and whether no row beyond the list can take its place.

    A list that ends before the pool of ``pool`` rows does may have left out rows as near as its last.
    """
    matches, distance = np.full(at.shape[0], -1, np.int64), np.full(at.shape[0], np.inf)
    sure = np.zeros(at.shape[0], np.bool_)
    for i in range(at.shape[0]):
        width = listed[at[i]]
        for j in range(width):
            if is_candidate[near[at[i], j]]:
                matches[i], distance[i] = near[at[i], j], away[at[i], j]
                sure[i] = pool <= width or np.float32(distance[i]) < np.float32(away[at[i], width - 1])
                break
    return matches, distance, sure


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _nearest_of_few(at: Floats, rows: Longs, candidates: Longs) -> tuple[Longs, Floats]:
    """The nearest candidate of each row in single precision, of equally near ones the lowest row.

    Coordinates are laid out column by column first, so that the distances of many candidates are summed at once.
    """
    matches, distance = np.empty(rows.shape[0], np.int64), np.empty(rows.shape[0])
    columns, squared = np.empty((at.shape[1], candidates.shape[0])), np.empty(candidates.shape[0])
    for j in range(at.shape[1]):
        for c in range(candidates.shape[0]):
            columns[j, c] = at[candidates[c], j]
    for i in range(rows.shape[0]):
        squared[:] = 0.0
        for j in range(at.shape[1]):
            column, value = columns[j], at[rows[i], j]
            for c in range(column.shape[0]):
                gap = value - column[c]
                squared[c] += gap * gap
        least, limit = np.float32(np.inf), squared.min() * (1 + 1e-6)
        for c in range(candidates.shape[0]):
            if squared[c] <= limit:  # no root where it cannot be among the nearest
                away = np.sqrt(squared[c])
                if np.float32(away) < least:
                    least, matches[i], distance[i] = np.float32(away), candidates[c], away
    return matches, distance


# --------------------------------------------------------------------------------------------------------------------
# CEC across groups less CEC within the group under any labels: what a relabelling is scored by.
#
# Matches, and the baselines that are means of labelled rows, follow the labels; the model is held.
#
# Scope: one set of labels. Labels: ``relabelled``. The search: ``neighbours``.


@dataclass(frozen=True)
class Ground:
    """What stays the same under every relabelling of a group and the reference group."""

    explained: ModelView
    among: Bools
    """``(n,)`` the rows of both groups."""
    lists: tuple[Lists, ...]
    sample: Bools | None = None
    """``(n,)`` the rows that are matched if they are members; None: all."""

    @classmethod
    def lay(cls, explained: ModelView, views: tuple[View, ...], among: Bools, depth: int = DEPTH) -> "Ground":
        """Lists the neighbours of the rows of two groups.

        Args:
            explained: Models and their inputs.
            views: Its views.
            among: ``(n,)`` the rows of both groups.
            depth: Neighbours listed of each row.
        """
        return cls(explained, among, listed(explained, views, among, depth))

    def above(self, member: Bools) -> float:
        """Mean of CEC across less CEC within, over members with both; NaN where there is none.

        Args:
            member: ``(n,)`` who is of the group; the others of both groups are the reference group.
        """
        parts = [np.zeros(0), *self._parts(member)]
        differences = np.concatenate(parts)
        differences = differences[~np.isnan(differences)]
        return float(differences.mean()) if len(differences) else np.nan

    @cached_property
    def pools(self) -> tuple[Longs, Bools]:
        """``(n,)`` number of the lists of pools that each row is in, and ``(lists, numbers)`` which pools these are."""
        bits = np.zeros(len(self.among), np.int64)
        for place, neighbours in enumerate(self.lists):
            bits[neighbours.pool] |= 1 << place
        alike, number = np.unique(bits, return_inverse=True)
        return number, (alike >> np.arange(len(self.lists))[:, None]) & 1 > 0

    def _parts(self, member: Bools) -> Iterator[Floats]:
        members, other_rows = np.flatnonzero(member), self.among & ~member
        query_rows = members if self.sample is None else members[self.sample[members]]
        number, belongs = self.pools
        sums, counts = _sums(self.explained.x, members, number, belongs.shape[1])
        for neighbours, inside in zip(self.lists, belongs, strict=True):
            at, cell = neighbours.place[query_rows], int(counts[inside].sum())
            at = at[at >= 0]
            if not len(at) or not cell:
                continue
            across, within = neighbours.match(at, other_rows), neighbours.match(at, member)
            is_matched = (across != UNMATCHED) & (within != UNMATCHED)
            three = np.vstack([neighbours.rows[at][is_matched], across[is_matched], within[is_matched]])
            baseline = sums[inside].sum(axis=0) / cell
            for start in range(0, three.shape[1], BATCH):
                yield self._compared(neighbours.model, three[:, start : start + BATCH], baseline)

    def _compared(self, model: int, three: Longs, baseline: Floats) -> Floats:
        """``(b,)`` of members and their two matches, ``(3, b)``, explained from one baseline."""
        explains = self.explained.models[model]
        if isinstance(explains, Linear):
            differences: Floats = _of_linear(self.explained.x, explains.coefficients, baseline, three)
            return differences
        return compared(self.explained, model, three, baseline)


def listed(
    explained: ModelView,
    views: tuple[View, ...],
    among: Bools,
    depth: int = DEPTH,
    of: Bools | None = None,
    deep: Bools | None = None,
) -> tuple[Lists, ...]:
    """The neighbours among some rows ``(n,)``, as of ``lists``: listed once for several pairs of groups."""
    return lists(explained, tuple(view.index for view in views), among, depth, of, deep)


def compared(explained: ModelView, model: int, three: Longs, baseline: Floats) -> Floats:
    """CEC of members with their first match less that with their second, ``(b,)``; NaN where one has no direction.

    Args:
        explained: Models and their inputs.
        model: Which of them explains.
        three: ``(3, b)`` members, and their matches.
        baseline: ``(p,)`` of all explanations.
    """
    x = explained.x[three.ravel()]
    attributions = explained.models[model].attribute(x, np.tile(baseline, (len(x), 1)))
    own_directions, across, within = np.split(pairs.directions(attributions), 3)
    return pairs.apart(own_directions, across) - pairs.apart(own_directions, within)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _of_linear(x: Floats, weights: Floats, baseline: Floats, three: Longs) -> Floats:
    """``compared`` for a linear model with attributions ``weights * (x - baseline)``."""
    size, width = three.shape[1], x.shape[1]
    differences, g, length = np.full(size, np.nan), np.empty((3, width)), np.empty(3)
    for i in range(size):
        for k in range(3):
            squared = 0.0
            for j in range(width):
                g[k, j] = (x[three[k, i], j] - baseline[j]) * weights[j]
                squared += g[k, j] * g[k, j]
            length[k] = np.sqrt(squared)
        if min(length[0], length[1], length[2]) <= pairs.EPSILON:
            continue
        across = within = 0.0
        for j in range(width):
            own_share = g[0, j] / (length[0] + pairs.EPSILON)
            across += (own_share - g[1, j] / (length[1] + pairs.EPSILON)) ** 2
            within += (own_share - g[2, j] / (length[2] + pairs.EPSILON)) ** 2
        differences[i] = min(np.sqrt(across) / 2, 1.0) - min(np.sqrt(within) / 2, 1.0)
    return differences


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _sums(x: Floats, rows: Longs, number: Longs, numbers: int) -> tuple[Floats, Longs]:
    """``(numbers, p)`` sums of some rows by number, and how many rows have it, ``(numbers,)``."""
    total, counts = np.zeros((numbers, x.shape[1])), np.zeros(numbers, np.int64)
    for row in rows:
        counts[number[row]] += 1
        for j in range(x.shape[1]):
            total[number[row], j] += x[row, j]
    return total, counts


# --------------------------------------------------------------------------------------------------------------------
# Randomization test of CEC above the own group: labels relabelled within strata of the propensity of the group.
#
# Null: given the propensity stratum, labels do not matter for reasons. Members differ from the reference group in their
# columns, so that even under the null the statistic is not 0: it is held against the mean of the draws.
#
# Scope: labels and draws. The statistic: ``pairing``.


DECIMALS = 10
"""To which a propensity counts: the last digits of a matrix product are those of the machine."""


def without(columns: Columns, names: tuple[str, ...]) -> Columns:
    """The columns without ``names``: those of a protected attribute would reveal the group."""
    places = [place for place, name in enumerate(columns.names) if name not in names]
    return replace(
        columns,
        names=tuple(columns.names[place] for place in places),
        kinds=tuple(columns.kinds[place] for place in places),
        categories=tuple(columns.categories[place] for place in places),
        values=columns.values[:, places],
    )


def strata_of(columns: Columns, member: Bools, rows: Longs) -> Longs:
    """Stratum of each of ``(r,)`` rows, by the propensity of the group given the columns, with squares.

    Args:
        columns: All ``n`` applicants; no column that the groups are made of.
        member: ``(n,)`` who is of the group.
        rows: Rows of the group and of the reference group.
    """
    row_columns = columns.rows(rows)
    score = propensity(fitted(row_columns).of(row_columns.values), member[rows])
    return strata(np.round(score, DECIMALS))


def exchangeable(member: Bools, stratum: Longs) -> Bools:
    """Mask ``(r,)`` of rows in a stratum with both labels. Labels of all other rows are never exchanged."""
    stratum_sizes = np.bincount(stratum, minlength=1)
    inside = np.bincount(stratum, member, minlength=1)
    is_exchangeable: Bools = ((inside > 0) & (inside < stratum_sizes))[stratum]
    return is_exchangeable


def draws(ground: Ground, member: Bools, columns: Columns, count: int, rng: np.random.Generator) -> Floats:
    """The statistic under relabelled groups, ``(count,)``; none where no stratum holds both labels.

    Args:
        ground: The rows of the group and of the reference group.
        member: ``(n,)`` who is of the group.
        columns: All ``n`` applicants; no column that the groups are made of.
        count: Relabellings.
        rng: Draws them.
    """
    rows = np.flatnonzero(ground.among)
    stratum = strata_of(columns, member, rows)
    if not exchangeable(member[rows], stratum).any():
        return np.zeros(0)
    out, layout = np.empty(count), Relabelling.of(stratum)
    for draw in range(count):
        labels = np.zeros(len(member), dtype=bool)
        labels[rows] = layout.draw(member[rows], rng)
        out[draw] = ground.above(labels)
    return out


# --------------------------------------------------------------------------------------------------------------------
# Bootstrap interval of CEC above the own group: resamples rows, refits the model, matches and scores pairs again.
#
# A copy of a row stays in the fold of the row, so that no row is matched with itself. The t interval has refits - 1
# degrees of freedom and the value of the audit in its middle.
#
# Scope: resampled values, and the interval.


LEVEL = 0.95
FEWEST = 0.8
"""Share of the refits that must have a value: the others had a group, a label or a feature with nothing to compare."""

SMALLEST = 1e-12
"""A spread that is smaller is that of rounding."""

Values = Callable[[ModelView, Longs], dict[int, float]]
"""From models and the resampled rows ``(n,)`` to the statistic by group."""


def resampled(
    explained: ModelView,
    group: Ints,
    groups: Collection[int],
    refit: Refit,
    count: int,
    values: Values,
    rng: np.random.Generator,
) -> dict[int, Floats]:
    """By group the statistic on resampled rows, ``(count,)``; NaN where it has none.

    Args:
        explained: The models of the audit.
        group: ``(n,)``.
        groups: Those wanted.
        refit: Fits the models again.
        count: Resamples.
        values: The statistic.
        rng: Draws the rows.
    """
    n, out = len(group), {number: np.full(count, np.nan) for number in groups}
    for draw in range(count):
        rows = rng.integers(0, n, n)
        view = refit(explained, rows)
        if view is None:
            continue
        try:
            value_of_group = values(view, rows)
        except DataQualityError:  # a feature that is constant among resampled rows
            continue
        for number in out:
            out[number][draw] = value_of_group.get(number, np.nan)
    return out


def interval(value: float, resampled_values: Floats) -> tuple[float, float, tuple[float, float] | None]:
    """Standard error, degrees of freedom and t interval of a value, which lies in [-1, 1].

    NaN, NaN and None where fewer than ``FEWEST`` of the refits have a value, or they do not differ.

    Args:
        value: Of the audit.
        resampled_values: ``(refits,)``.
    """
    finite_values = resampled_values[np.isfinite(resampled_values)]
    se = float(finite_values.std(ddof=1)) if len(finite_values) >= max(2, FEWEST * len(resampled_values)) else np.nan
    if not (np.isfinite(value) and se > SMALLEST):
        return np.nan, np.nan, None
    df = len(finite_values) - 1
    half = float(stats.t.ppf((1 + LEVEL) / 2, df)) * se
    return se, float(df), (max(-1.0, value - half), min(1.0, value + half))


# --------------------------------------------------------------------------------------------------------------------
# CEC above the own group, as a verdict on reasons takes it: one number of a group, its null, its interval.
#
# Value: mean over members of CEC across groups less CEC within the group. It is held against the mean of relabelled
# draws, not against 0. Without refits there is no honest interval, and the measure is descriptive.
#
# Scope: the aggregate of a group, and the order of its parts.


MEASURE = "cec_above_own_group"

LEARNT_FROM_NOBODY = "the model learnt from no rows of its own here, so that every applicant would be their own match"
NOBODY_PAIRED = "no member has a score with both groups"
NOT_REFITTED = "too few refits have a value, or all have the same: no interval"
NOT_EXCHANGEABLE = "no propensity stratum holds both groups: labels cannot be exchanged"
NOT_EXACT = "attributions have no closed form: relabelled draws would take too long"


@dataclass(frozen=True)
class Reasons:
    """Models and groups of one protected attribute."""

    explained: ModelView
    views: tuple[View, ...]
    group: Ints
    """``(n,)``."""
    reference: int
    columns: Columns | None
    """What all applicants handed in, but for columns that the groups are made of; without, no label is exchanged."""
    refit: Refit | None
    sample: Asked | None = None
    """The rows of a sample that are matched; None: all."""

    @cached_property
    def lists(self) -> tuple[Lists, ...]:
        """Neighbours of all rows. Every group selects those in its group and in the reference group.

        Of a large problem, of the rows that any group would ask under some labels.
        """
        everyone = np.ones(len(self.group), np.bool_)
        groups = [group for group in np.unique(self.group).tolist() if group != self.reference]
        of = deep = everyone
        if self.sample is not None and groups:
            of = np.logical_or.reduce([self.sample.below(group) for group in groups])
            counts = np.bincount(self.group)
            common = [group for group in groups if counts[group] >= RARE * (counts[group] + counts[self.reference])]
            deep = np.logical_or.reduce([self.sample.below(group) for group in common], initial=False)
        key = "lists", self.views[0].index.matching
        neighbours: tuple[Lists, ...]
        before, deep_before, neighbours = self.explained.shared.get(key, (~everyone, ~everyone, ()))
        if (of & ~before).any() or (deep & ~deep_before).any():
            before, deep_before = of | before, deep | deep_before
            neighbours = listed(self.explained, self.views, everyone, of=before, deep=deep_before)
            self.explained.shared[key] = before, deep_before, neighbours
        return neighbours

    def draws(self, group: int, count: int, rng: np.random.Generator) -> tuple[Floats, str]:
        """The statistic of a group under relabelled groups, or none of it and why."""
        if not count or self.columns is None:
            return np.zeros(0), ""
        if not all(model.exact for model in self.explained.models):
            return np.zeros(0), NOT_EXACT
        member = np.equal(self.group, group)
        # relabelled members are sampled by the same hashes, so that their number is that of the group's sample
        below = None if self.sample is None else self.sample.below(group)
        ground = Ground(self.explained, member | np.equal(self.group, self.reference), self.lists, below)
        null_values = draws(ground, member, self.columns, count, rng)
        return null_values, "" if len(null_values) else NOT_EXCHANGEABLE

    def resampled(self, groups: list[int], settings: CecSettings, rng: np.random.Generator) -> Mapping[int, Floats]:
        """The statistic by group on resampled rows with the model fitted again; nothing without refits."""
        if not settings.refits or self.refit is None or not groups:
            return {}

        is_drawn = np.ones(len(self.group), np.bool_) if self.sample is None else self.sample.drawn

        def values(view: ModelView, rows: Longs) -> dict[int, float]:
            # copies of sampled rows alone: their number varies as a sample's does, so that the spread counts the design
            return above(view, self.group[rows], groups, self.reference, Matching.of(settings), is_drawn[rows])

        return resampled(self.explained, self.group, groups, self.refit, settings.refits, values, rng)


def above(
    explained: ModelView,
    group: Ints,
    groups: list[int],
    reference: int,
    matching: Matching,
    is_query: Bools | None = None,
) -> dict[int, float]:
    """The statistic of each of some groups, NaN where no member has both scores.

    Args:
        explained: Models and their inputs.
        group: ``(n,)``.
        groups: Those wanted.
        reference: Whom they are matched with, beside their own group.
        matching: How.
        is_query: ``(n,)`` the rows that are asked; None: all.

    Raises:
        DataQualityError: As ``pairs.views``.
    """
    model_views = pairs.views(explained, group, matching)
    out = {}
    for number in groups:
        member = np.equal(group, number)
        rows: Longs = np.flatnonzero(member if is_query is None else member & is_query)
        across, within = (pairs.score_pairs(explained, model_views, rows, to) for to in (reference, number))
        out[number] = _headline_mean(across, within)[0]
    return out


def above_own_group(
    group: int, scored: Scored, within: Scored | None, null_draws: tuple[Floats, str], resampled: Floats | None
) -> tuple[Aggregate, list[Draws]]:
    """The aggregate of a group, and what it is held against.

    Args:
        group: Its number.
        scored: Its rows matched with the reference group.
        within: The same rows matched with the group; None where they would be their own matches.
        null_draws: The statistic under relabelled groups, or why there is none.
        resampled: ``(refits,)`` the statistic on resampled rows; None without refits.
    """
    value, n = (np.nan, 0) if within is None else _headline_mean(scored, within)
    if not np.isfinite(value):
        reason = LEARNT_FROM_NOBODY if within is None else NOBODY_PAIRED
        return Aggregate(group, 0, MEASURE, {}, np.nan, n, compared=False, reason=reason, inference=Inference()), []
    values, reason = null_draws
    p = p_of(value, values) if np.isfinite(values).any() else np.nan
    se, df, ends = (np.nan, np.inf, None) if resampled is None else interval(value, resampled)
    reasons = (reason, NOT_REFITTED if resampled is not None and ends is None else "")
    aggregate = Aggregate(
        group,
        0,
        MEASURE,
        {},
        value,
        n,
        compared=False,
        reason="; ".join(filter(None, reasons)),
        interval=ends,
        inference=Inference(se=se, df=df if np.isfinite(df) else np.inf, p=p),
    )
    return aggregate, [Draws(group, MEASURE, {}, values, reference="null")] if len(values) else []


def _headline_mean(scored: Scored, within: Scored) -> tuple[float, int]:
    """Mean of CEC across less CEC within over rows with both, and how many they are."""
    differences = scored.compared.cec - within.compared.cec
    differences = differences[~np.isnan(differences)]
    return (float(differences.mean()) if len(differences) else np.nan), len(differences)
