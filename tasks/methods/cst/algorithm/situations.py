"""Situations of complainants: compared rows, significance tests, tallies, and null calibration."""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tasks.methods.cst.algorithm import neighbours
from tasks.methods.cst.algorithm.neighbours import NUMERIC, Blocks, Neighbours, Space, in_batches, index, looked_at
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.encoding import Columns
from tasks.numerics.problem import Applicants, Counterfactuals, Problem, Waiting
from tasks.numerics.results import Draws, Tally
from tasks.numerics.statistics.intervals import (
    Pair,
    Parameters,
    alone,
    benjamini_hochberg,
    bounds,
    mean,
    p_values,
    quantile,
    share,
)

# --------------------------------------------------------------------------------------------------------------------
# Significance tests for each complainant: difference of two shares, p-value, q-value.
#
# A complainant is detected iff its control group was refused more often than its test group, by more than tau (Alvarez
# and Ruggieri 2023, Def. 3.4). Under pure chance about half of the complainants are detected at tau = 0. A detection is
# significant if its q-value over all complainants is below alpha.
#
# Scope: tests of counts. Where the counts come from: ``situations``.


@dataclass(frozen=True)
class Tests:
    """Tests of ``c`` complainants, for each number of neighbours; all ``(len(ks), c)``, NaN where not tested."""

    pair: Pair
    delta: Floats
    low: Floats
    high: Floats
    p: Floats
    q: Floats
    """p after Benjamini-Hochberg, over the complainants and for each number of neighbours apart."""

    def detected(self, tau: float) -> Floats:
        """1 where the difference is above ``tau``, else 0."""
        return flags(self.delta > tau, self.delta)

    def positive(self, tau: float) -> Floats:
        """1 where the control group was refused less often by more than ``tau`` (positive discrimination), else 0."""
        return flags(self.delta < -tau, self.delta)

    def significant(self, alpha: float) -> Floats:
        """1 where q is below ``alpha``, else 0."""
        return flags(self.q < alpha, self.delta)


def judge(pair: Pair, settings: CstSettings) -> Tests:
    """Test every complainant.

    Args:
        pair: ``(len(ks), c)`` refusals in both groups.
        settings: ``tau``, ``alpha``, ``interval`` and ``decimals``; published counts rest on differences, bounds and
            the normal quantile rounded to three digits. p and q are of what is not rounded.
    """
    low, high = bounds(pair, settings.interval, quantile(settings.alpha, settings.decimals))
    p = p_values(pair, settings.interval, settings.tau)
    q = np.stack([benjamini_hochberg(p_row) for p_row in p])
    delta = pair.delta
    if settings.decimals is not None:
        delta, low, high = (np.round(values, settings.decimals) for values in (delta, low, high))
    return Tests(pair, delta, low, high, p, q)


def unfair(refused: Bools, imagined: Bools) -> Floats:
    """Counterfactual fairness (CF), ``(c,)``: 1 where refused but for the group, -1 the other way round, else 0.

    Args:
        refused: ``(c,)`` unfavourable decisions on the complainants.
        imagined: ``(c,)`` the same decision maker's on their counterfactuals.
    """
    return refused.astype(np.float64) - imagined


def flags(yes: Bools, statistics: Floats) -> Floats:
    """1 or 0, and NaN where ``statistics`` is NaN."""
    return np.where(np.isnan(statistics), np.nan, yes)


# --------------------------------------------------------------------------------------------------------------------
# Situations of complainants: refusals among the nearest rows of the own group and of the reference group.
#
# The control group holds the k nearest rows of the complainant's own group, the test group the k nearest rows of the
# reference group; refusals are counted in both (Alvarez and Ruggieri 2023, sections 3.1 and 3.4). The search runs once
# for the largest k: every smaller group is a prefix of that list. With the search centres, the complainant is counted
# in the control group and its counterfactual in the test group, which then have k + 1 members (section 3.2).
#
# Scope: counts in lists of neighbours. Search: ``neighbours``. Tests: ``significance``.


NOBODY = -1
"""Stands in a list of neighbours where there are no more."""


class Counts(NamedTuple):
    """Refused among the neighbours of ``c`` complainants, by number of neighbours; NaN where there are fewer."""

    refused: Floats
    """``(len(ks), c)``"""
    n: Floats
    """``(len(ks), c)`` members of the group."""

    def at(self, place: Longs, size: int) -> "Counts":
        """The counts spread to ``size`` complainants at the positions ``place``; NaN for the others."""
        wide = np.full((2, len(self.n), size), np.nan)
        wide[:, :, place] = self
        return Counts(*wide)

    def only(self, which: int) -> "Counts":
        """Those of one number of neighbours, by its place in ``ks``."""
        return Counts(self.refused[which : which + 1], self.n[which : which + 1])


class Members(NamedTuple):
    """The rows of one of the two groups around each of ``c`` complainants, nearest first."""

    rows: Ints
    """``(c, k + 1)`` rows, ``NOBODY`` beyond the last."""
    distances: Floats
    """``(c, k + 1)`` from the search centre."""

    def of(self, which: slice) -> "Members":
        """Those of some complainants."""
        return Members(self.rows[which], self.distances[which])


class Side(NamedTuple):
    """One of the two groups around each of ``c`` complainants."""

    alone: Counts
    """Without the search centre."""
    centred: Counts
    """With it; NaN where what was decided on the centre is not known."""
    members: Members
    """Those without the search centre, for ``settings.k``."""


def length(settings: CstSettings) -> int:
    """How many rows to search: one more than the largest k, since a complainant is among its own neighbours."""
    return max(settings.ks) + 1


def control_side(near: Neighbours, row: Longs, refused: Bools, settings: CstSettings) -> Side:
    """Control groups from the ``length(settings)`` nearest rows to each complainant within its group.

    With many exact duplicates a complainant may be missing from its own nearest rows. The group has k others all the
    same; with ``duplicates: kept`` it has k + 1, as behind the published counts.

    Args:
        near: ``(c, length)`` with the complainant itself among its group.
        row: ``(c,)`` the complainants.
        refused: ``(n,)`` unfavourable decisions on all rows.
        settings: ``ks``, ``k`` and ``duplicates``.
    """
    met, itself, ks = _cumulative_refusals(near, refused), near.rows == row[:, None], np.array(settings.ks)[:, None]
    place = np.where(itself.any(axis=1), itself.argmax(axis=1), near.rows.shape[1])
    neighbour_count = (near.rows != NOBODY).sum(axis=1) - itself.any(axis=1)
    within, refused_self = place <= ks, refused[row]
    n = ks + (~within & (settings.duplicates == "kept"))
    alone = _take(met, n + within) - (within & refused_self)
    members = _members(near, itself, n[settings.ks.index(settings.k)], neighbour_count, settings)
    # k + 1 duplicates, kept, are as many as the complainant and k others: it is not counted as well
    centred = alone + (refused_self & (n == ks))
    return Side(_counts(alone, n, neighbour_count >= ks), _counts(centred, ks + 1, neighbour_count >= ks), members)


def test_side(near: Neighbours, row: Longs, refused: Bools, imagined: Bools | None, settings: CstSettings) -> Side:
    """Test groups, out of the ``length(settings)`` rows of the reference group nearest to each counterfactual.

    With ``duplicates: kept`` the counterfactual is one of the rows searched, under the row of its complainant, and
    k + 1 exact duplicates that come before it crowd it out.

    Args:
        near: ``(c, length)``; for situation testing the rows nearest to the complainants themselves.
        row: ``(c,)`` the complainants.
        refused: ``(n,)`` unfavourable decisions on all rows.
        imagined: ``(c,)`` unfavourable decisions on the counterfactuals; None where they are not known.
        settings: ``ks``, ``k``, ``duplicates`` and ``ties``.
    """
    met, neighbour_count = _cumulative_refusals(near, refused), (near.rows != NOBODY).sum(axis=1)
    ks = np.array(settings.ks)[:, None]
    n = ks + np.zeros(near.rows.shape[0], dtype=np.int64)
    last = near.rows[:, settings.ks].T
    before = last > row if settings.ties == "descending" else last < row
    duplicates_before: Bools = (near.distances[:, settings.ks].T == 0) & (last != NOBODY) & before
    crowded = duplicates_before & (settings.duplicates == "kept")
    alone = _counts(_take(met, n), n, neighbour_count >= ks)
    has_centre = imagined is not None
    centre = imagined if imagined is not None else np.zeros(len(row), dtype=bool)
    centred = _counts(_take(met, n + crowded) + (centre & ~crowded), n + 1, (neighbour_count >= ks) & has_centre)
    nobody = np.zeros(near.rows.shape, dtype=bool)
    return Side(alone, centred, _members(near, nobody, n[settings.ks.index(settings.k)], neighbour_count, settings))


def pair(control: Counts, test: Counts) -> Pair:
    """Both sides of every complainant, ``(len(ks), c)``; NaN on both where either has too few."""
    missing = np.isnan(control.n) | np.isnan(test.n)
    return Pair(*(np.where(missing, np.nan, part) for part in (*control, *test)))


def joined(sides: Sequence[Side]) -> Side:
    """Of blocks of complainants, one after the other, those of all."""
    alone, centred, members = zip(*sides, strict=True)
    return Side(
        Counts(*(np.concatenate(parts, axis=1) for parts in zip(*alone, strict=True))),
        Counts(*(np.concatenate(parts, axis=1) for parts in zip(*centred, strict=True))),
        Members(*(np.concatenate(parts) for parts in zip(*members, strict=True))),
    )


def _cumulative_refusals(near: Neighbours, refused: Bools) -> Longs:
    """``(c, m + 1)`` how many of the first 0, 1, 2 ... neighbours were refused."""
    cumulative_refusals = np.zeros((near.rows.shape[0], near.rows.shape[1] + 1), dtype=np.int64)
    np.cumsum(refused[near.rows] & (near.rows != NOBODY), axis=1, out=cumulative_refusals[:, 1:])
    return cumulative_refusals


def _take(cumulative_counts: Longs, first: Longs) -> Longs:
    """``(len(ks), c)`` refused among the first so many, ``(len(ks), c)``."""
    return np.take_along_axis(cumulative_counts, first.T, axis=1).T


def _counts(refused: Longs, n: Longs, enough: Bools) -> Counts:
    return Counts(np.where(enough, refused, np.nan), np.where(enough, n, np.nan))


def _members(near: Neighbours, itself: Bools, n: Longs, neighbour_count: Longs, settings: CstSettings) -> Members:
    """The first ``n`` of each list without the complainant; none if the list has fewer than k."""
    # k + 1 members at most, and the complainant among them
    rows, distances = near.rows[:, : settings.k + 2], near.distances[:, : settings.k + 2]
    order = np.argsort(itself[:, : settings.k + 2] | (rows == NOBODY), axis=1, kind="stable")[:, : settings.k + 1]
    is_member = (np.arange(order.shape[1]) < n[:, None]) & (neighbour_count >= settings.k)[:, None]
    members = np.where(is_member, np.take_along_axis(rows, order, axis=1), NOBODY)
    return Members(members.astype(np.int32), np.take_along_axis(distances, order, axis=1))


# --------------------------------------------------------------------------------------------------------------------
# Searches behind a situation: the rows that each complainant is compared with, for given labels of the rows.
#
# Situation testing (ST) searches both groups around the complainant; counterfactual situation testing (CST) searches
# the test group around its counterfactual (Alvarez and Ruggieri 2023, section 3.1). Labels are the problem's, or
# permuted.
#
# Scope: search centres and searched rows. Counting: ``situations``. Search: ``neighbours``.


CST, CENTRED, ST, CF = "cst", "cst_with_centres", "st", "cf"
"""Variants: without and with the search centres, situation testing, and counterfactual fairness."""


@dataclass(frozen=True)
class Imagined:
    """Counterfactuals as places to search around."""

    row: Longs
    """``(i,)`` their complainants, ascending."""
    space: Space
    """``(i,)`` places."""
    refused: Bools | None
    """``(i,)`` unfavourable decisions on them; None where they are not known."""

    def of(self, row: Longs) -> tuple[Longs, "Imagined"]:
        """Those of some rows, ascending: which of the rows have one, and theirs."""
        place = np.flatnonzero(np.isin(row, self.row))
        positions = np.searchsorted(self.row, row[place])
        return place, Imagined(
            row[place], self.space.rows(positions), None if self.refused is None else self.refused[positions]
        )


@dataclass(frozen=True)
class SearchSpace:
    """The rows of a problem under some labels, laid out to be searched."""

    applicants: Applicants
    group: Ints
    """``(n,)`` labels."""
    reference: int
    space: Space
    """``(n,)`` places."""
    imagined: Imagined | None
    settings: CstSettings
    scale: neighbours.Scale
    waiting: Waiting
    permuted: bool = False
    """Whether labels are permuted: then every decision maker searches the same rows, and distances are not kept."""

    @cached_property
    def digest(self) -> bytes:
        """Of all that neighbours follow from, but for the search centres."""
        search = (length(self.settings), self.settings.ties, self.settings.maximum_distance, self.reference)
        content = hashlib.sha256(repr((*search, self.applicants.crossed)).encode())
        for array in (self.space.numeric, self.space.nominal, self.group):
            content.update(np.asarray(array).tobytes())
        return content.digest()

    @cached_property
    def refused(self) -> Bools:
        """``(n,)`` unfavourable decisions."""
        return ~self.applicants.favourable

    def own(self, group: int) -> Blocks | None:
        """The rows of a group, laid out; None where they are fewer than the smallest k."""
        return self._laid_out(self.group == group)

    def others(self, group: int) -> Blocks | None:
        """The rows it is compared with: the reference group, or everybody else where the attribute is crossed."""
        return self._laid_out(self.group != group) if self.applicants.crossed else self._reference

    @cached_property
    def _reference(self) -> Blocks | None:
        return self._laid_out(self.group == self.reference)

    def _laid_out(self, members: Bools) -> Blocks | None:
        rows = np.flatnonzero(members)
        return index(self.space, rows) if len(rows) >= min(self.settings.ks) else None


def lay(
    problem: Problem,
    settings: CstSettings,
    group: Ints,
    counterfactuals: Counterfactuals | None,
    like: SearchSpace | None = None,
) -> SearchSpace:
    """Lay the rows of a problem out under some labels, with counterfactuals made for these labels.

    The imagined data, to which z-scores are fitted anew, are all rows with the counterfactuals in their place; those of
    the reference group may be among them (the authors round there, too) and are searched around by nobody.

    Args:
        problem: its own labels are not looked at.
        settings: distance, scaling and numbers of neighbours.
        group: ``(n,)`` labels.
        counterfactuals: of rows outside the reference group, not necessarily all; None: situation testing alone.
        like: The same rows under other labels, which share their places unless these rest on labels.

    Raises:
        ValueError: If the problem has no applicants.
        SpecError: If the distance has nothing to look at.
    """
    applicants, protected = applicants_of(problem), group != problem.reference
    attributes = neighbours.looked_at(applicants.columns, settings, applicants.attribute_columns)
    if like is not None and settings.distance != "propensity":
        ground = replace(like, group=group, imagined=None, settings=settings, permuted=True)
    else:
        scale = neighbours.fit(attributes, settings, applicants.favourable, protected)
        space = neighbours.place(attributes, scale)
        ground = SearchSpace(applicants, group, problem.reference, space, None, settings, scale, problem.waiting)
    if counterfactuals is None:
        return ground
    imagined = replace(applicants.columns, values=counterfactuals.values)
    imagined = neighbours.looked_at(imagined, settings, applicants.attribute_columns)
    scale = ground.scale
    if settings.imagines_everybody:
        everyone = attributes.values.copy()
        everyone[counterfactuals.row] = imagined.values
        data = replace(attributes, values=everyone)
        scale = neighbours.fit_imagined(scale, data, settings, applicants.favourable, protected)
    refused = None if counterfactuals.favourable is None else ~counterfactuals.favourable
    return replace(ground, imagined=Imagined(counterfactuals.row, neighbours.place(imagined, scale), refused))


def applicants_of(problem: Problem) -> Applicants:
    """The rows of a problem as applicants.

    Raises:
        ValueError: If it has none.
    """
    if problem.applicants is None:
        raise ValueError("situation testing needs applicants, and the problem has none; give Problem.applicants")
    return problem.applicants


@dataclass(frozen=True)
class Comparison:
    """What surrounds ``c`` complainants of one group."""

    row: Longs
    """``(c,)`` ascending."""
    tested: Longs
    """Which of them the test groups of ``test`` are of: those with a counterfactual, or all if none are made."""
    control: Side
    test: Side
    factual: Side
    """Test groups around the complainants themselves, of situation testing."""
    pairs: Mapping[str, Pair]
    """Refusals in both groups, ``(len(ks), c)``, by variant; NaN where a group cannot be filled."""
    unfair: Floats | None
    """``(c,)`` as ``significance.unfair``, NaN without a counterfactual; None where decisions on them are not known."""

    def counted(self) -> "Comparison":
        """The same without who the neighbours are, which takes far more room than how many of them were refused."""
        nobody = Members(np.zeros((0, 1), np.int32), np.zeros((0, 1)))
        sides = {name: getattr(self, name)._replace(members=nobody) for name in ("control", "test", "factual")}
        return replace(self, **sides)


def compare(ground: SearchSpace, group: int, row: Longs) -> Comparison:
    """Search both groups around complainants of one group, by every variant that there is something for.

    Args:
        ground: labels, places and counterfactuals.
        group: the complainants' group.
        row: ``(c,)`` the complainants, ascending; not necessarily all of the group.
    """
    control = control_of(ground, group, row)
    st = _test(ground, group, row, ground.space.rows(row), None)
    pairs = {ST: pair(control.alone, st.alone)}
    if ground.imagined is None:
        return Comparison(row, np.arange(len(row)), control, st, st, pairs, None)
    place, centres = ground.imagined.of(row)
    test = _test(ground, group, centres.row, centres.space, centres.refused)
    pairs = {CST: pair(control.alone, test.alone.at(place, len(row))), **pairs}
    flag = None
    if centres.refused is not None:
        pairs[CENTRED] = pair(control.centred, test.centred.at(place, len(row)))
        flag = np.full(len(row), np.nan)
        flag[place] = unfair(ground.refused[centres.row], centres.refused)
    return Comparison(row, place, control, test, st, pairs, flag)


def control_of(ground: SearchSpace, group: int, row: Longs) -> Side:
    """The control groups of complainants ``(c,)`` of one group."""

    def side(near: Neighbours, some: slice) -> Side:
        return control_side(near, row[some], ground.refused, ground.settings)

    return _around(ground, ground.own, group, ground.space.rows(row), side)


def cst_pair(ground: SearchSpace, group: int, row: Longs, control: Counts) -> Pair:
    """Refusals in both groups by the variant without centres, where the control groups are known already."""
    if ground.imagined is None:
        raise ValueError("counterfactual situation testing needs counterfactuals, and there are none")
    place, centres = ground.imagined.of(row)
    test = _test(ground, group, centres.row, centres.space, None)
    return pair(control, test.alone.at(place, len(row)))


def compare_again(ground: SearchSpace, compared: Comparison, group: int) -> Comparison:
    """A comparison of one group with the test groups of other counterfactuals; control groups stay as they are."""
    if ground.imagined is None:
        raise ValueError("counterfactual situation testing needs counterfactuals, and there are none")
    place, centres = ground.imagined.of(compared.row)
    test = _test(ground, group, centres.row, centres.space, None)
    return replace(compared, tested=place, test=test)


def _test(ground: SearchSpace, group: int, row: Longs, centres: Space, refused: Bools | None) -> Side:
    def side(near: Neighbours, some: slice) -> Side:
        decided = None if refused is None else refused[some]
        return test_side(near, row[some], ground.refused, decided, ground.settings)

    return _around(ground, ground.others, group, centres, side)


def _around(
    ground: SearchSpace,
    among: Callable[[int], Blocks | None],
    group: int,
    centres: Space,
    side: Callable[[Neighbours, slice], Side],
) -> Side:
    """Search in batches, so that the neighbours of all complainants are never held at a time."""
    settings, many = ground.settings, len(centres.numeric)
    size, key, listed = length(settings), b"", None
    if ground.permuted and settings.duplicates == "removed":
        content = hashlib.sha256(ground.digest + f"{among.__name__} {group}".encode())
        for coordinates in (centres.numeric, centres.nominal):
            content.update(coordinates.tobytes())
        key = content.digest()
        listed = ground.waiting.take(key)
    if listed is not None:
        return side(Neighbours(listed.astype(np.int64), np.full(listed.shape, np.nan)), slice(None))
    blocks = among(group)
    if blocks is None or not many:
        none = Neighbours(np.full((many, size), NOBODY), np.full((many, size), np.inf))
        return side(none, slice(None))
    sides = []
    for some, near in in_batches(blocks, centres, size, settings):
        if key and len(near.rows) == many:  # all in one batch
            ground.waiting.keep(key, near.rows.astype(np.int32))
        sides.append(side(near, some))
    return joined(sides)


# --------------------------------------------------------------------------------------------------------------------
# Tallies of CST for one group: the values of each statistic over the complainants of the group.
#
# A complainant without a test is NaN. The reference group has no complainants, so nothing is compared with it.
#
# Scope: means over complainants. Tests: ``significance``.


HEADLINE: Parameters = {}
"""What findings are about: the first variant, at ``settings.k``."""

ENDS = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Sizes of a difference between which complainants are counted, either side of 0."""


def of_variants(tests_of_variant: Mapping[str, Tests], settings: CstSettings) -> Iterator[Tally]:
    """By variant and number of neighbours: shares detected, significant and positive, and the difference itself."""
    place, main = settings.ks.index(settings.k), next(iter(tests_of_variant.values()))
    yield from flagged("share_significant", HEADLINE, main.significant(settings.alpha)[place], headline=True)
    yield from flagged("share_detected", HEADLINE, main.detected(settings.tau)[place])
    delta = main.delta[place]
    ends = np.concatenate([-np.array(ENDS[::-1]), [0.0], ENDS])
    for low, high in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        inside = (delta > low) & (delta <= high) | (delta == low) & (low == ends[0])
        yield from flagged("delta_share", {"from": low, "to": high}, flags(inside, delta))
    for variant, tests in tests_of_variant.items():
        for at, k in enumerate(settings.ks):
            of: Parameters = {"k": k, "variant": variant}
            yield from flagged("share_significant", of, tests.significant(settings.alpha)[at])
            yield from flagged("share_detected", of, tests.detected(settings.tau)[at])
            yield from flagged("share_positive", of, tests.positive(settings.tau)[at])
            yield from alone(mean("delta", of, tests.delta[at]))
        for tau in settings.taus:
            parameters: Parameters = {"k": settings.k, "variant": variant, "tau": tau}
            yield from flagged("share_detected_at", parameters, flags(tests.delta[place] > tau, tests.delta[place]))


def of_unfair(unfair: Floats) -> Iterator[Tally]:
    """Counterfactual fairness: refused but for the group, and the other way round."""
    yield from flagged("share_detected", {"variant": CF}, flags(unfair > 0, unfair))
    yield from flagged("share_positive", {"variant": CF}, flags(unfair < 0, unfair))


def without(edge: tuple[str, str], tests: Tests, settings: CstSettings) -> Iterator[Tally]:
    """Shares after removal of an edge out of the protected attribute from the causal graph; tested only at ``k``."""
    of: Parameters = {"k": settings.k, "variant": CST, "without": " -> ".join(edge)}
    yield from flagged("share_detected_without", of, tests.detected(settings.tau)[0])
    yield from flagged("share_significant_without", of, tests.significant(settings.alpha)[0])


def without_width(tests: Tests, settings: CstSettings) -> Iterator[Tally]:
    """Share of complainants with an interval of zero width, such as Wald's if both shares are 0 or 1.

    Such an interval claims certainty, and p is 0 or 1. No other interval does that.
    """
    at = settings.ks.index(settings.k)
    if settings.interval == "wald":
        yield from flagged("no_width_share", HEADLINE, flags(tests.low[at] == tests.high[at], tests.delta[at]))


def clipped(names: Sequence[str], outside: Bools) -> Iterator[Tally]:
    """Share of complainants with a value clipped before the distance computation, by attribute ``(c, a)``."""
    for name, beyond in zip(names, outside.T, strict=True):
        yield from alone(share("clipped_share", {"attribute": name}, beyond))


def flagged(measure: str, parameters: Parameters, met: Floats, headline: bool = False) -> Iterator[Tally]:
    """The share of 1 among 0 and 1, with those that are neither as units without a value; nothing if all are."""
    yield from alone(share(measure, parameters, met == 1, ~np.isnan(met), headline=headline))


# --------------------------------------------------------------------------------------------------------------------
# Null calibration of CST: permutes the labels and repeats the whole method.
#
# Labels are permuted among rows with the same categories, so that every stratum keeps its counts by group. The results
# then show chance and the method's own bias (the paper does not do this). Columns in reach of the protected attribute
# make no strata, since their effects are what the method looks for. Counterfactuals are regenerated by a causal model
# that is fitted to the permuted labels.


Pairs = dict[tuple[int, str], Pair]
"""By group and variant, the refusals around its complainants."""

Shares = dict[tuple[int, str, str], float]
"""By group, measure and variant."""


def draws(
    problem: Problem, settings: CstSettings, rng: np.random.Generator, ground: SearchSpace | None = None
) -> Iterator[Draws]:
    """Shares detected and significant at ``settings.k``, one value per permutation.

    Args:
        problem: rows with their labels. Where counterfactuals cannot be made again, only situation testing is run.
        settings: ``null_permutations``, ``null_complainants`` (those looked at; they are searched among all rows) and
            all that is tested. ``ks`` may be ``k`` alone.
        rng: permutes labels and draws complainants.
        ground: the rows under their own labels, laid out.
    """
    applicants = applicants_of(problem)
    strata = strata_of(looked_at(applicants.columns, settings, applicants.attribute_columns), applicants.reached)
    draw_pairs = [
        _pairs(problem, permuted(problem.group, strata, rng), settings, rng, ground)
        for _ in range(settings.null_permutations)
    ]
    _solve_tails([pair for pairs in draw_pairs for pair in pairs.values()], settings)
    draw_shares = [_shares(pairs, settings) for pairs in draw_pairs]
    main = ST if applicants.counterfactuals is None else CST
    for group, measure, variant in dict.fromkeys(key for shares in draw_shares for key in shares):
        values = np.array([shares.get((group, measure, variant), np.nan) for shares in draw_shares])
        if measure == "share_significant":
            yield Draws(group, measure, {"k": settings.k, "variant": variant}, values, reference="null")
        if variant == main:
            yield Draws(group, measure, HEADLINE, values, reference="null")


def strata_of(attributes: Columns, reached: Collection[str] = ()) -> Longs:
    """``(n,)`` number of each row's combination of categories, over the nominal columns but those ``reached``."""
    looked = zip(attributes.names, attributes.kinds, strict=True)
    nominal = np.array([kind not in NUMERIC and name not in reached for name, kind in looked])
    if not nominal.any():
        return np.zeros(len(attributes.values), np.int64)
    return np.unique(attributes.values[:, nominal], axis=0, return_inverse=True)[1]


def permuted(group: Ints, strata: Longs, rng: np.random.Generator) -> Ints:
    """Labels ``(n,)`` permuted within strata."""
    labels = np.empty_like(group)
    labels[np.argsort(strata, kind="stable")] = group[np.lexsort((rng.random(len(group)), strata))]
    return labels


def _pairs(
    problem: Problem, group: Ints, settings: CstSettings, rng: np.random.Generator, like: SearchSpace | None
) -> Pairs:
    """Run the pipeline under labels ``(n,)``."""
    some = {}
    for number in np.unique(group).tolist():
        if number != problem.reference:
            rows = np.flatnonzero(group == number)
            some[number] = np.sort(rng.choice(rows, min(len(rows), settings.null_complainants), replace=False))
    imagine, counterfactuals = applicants_of(problem).imagine, None
    if imagine is not None and some:
        # of everyone where the distance is scaled to the counterfactuals
        everyone = settings.scaling == "z_scores"
        rows = np.flatnonzero(group != problem.reference) if everyone else np.sort(np.concatenate(list(some.values())))
        counterfactuals = imagine(rows, group, None)
    ground = lay(problem, settings, group, counterfactuals, like)
    return {
        (number, variant): pair
        for number, row in some.items()
        for variant, pair in compare(ground, number, row).pairs.items()
        if variant != CENTRED and not np.isnan(pair.delta).all()
    }


def _solve_tails(pairs: Sequence[Pair], settings: CstSettings) -> None:
    """Solve the p of all distinct counts in one call, and keep them: a call for each costs more than its work."""
    if pairs:
        joined = Pair(*(np.concatenate([part.ravel() for part in parts]) for parts in zip(*pairs, strict=True)))
        p_values(joined, settings.interval, settings.tau)


def _shares(pairs: Pairs, settings: CstSettings) -> Shares:
    """What the tests under some labels find."""
    shares: Shares = {}
    for (number, variant), pair in pairs.items():
        tests = judge(pair, settings)
        shares[number, "share_detected", variant] = float(np.nanmean(tests.detected(settings.tau)))
        shares[number, "share_significant", variant] = float(np.nanmean(tests.significant(settings.alpha)))
    return shares


# --------------------------------------------------------------------------------------------------------------------
# Several protected attributes: who is detected under every one of them (multiple discrimination).
#
# Where an attribute crosses several columns, each of its groups is audited as a group of its own (intersectional);
# with it is the share of its members that are detected under each single attribute. These are tested at alpha divided
# by the number of attributes (specs of CST, 'Confidence').


@dataclass(frozen=True)
class Single:
    """What one attribute finds among ``c`` rows; NaN for a row of its reference group, or one not tested."""

    detected: Mapping[str, Floats]
    """``(len(ks), c)`` by variant."""
    significant: Mapping[str, Floats]
    """``(len(ks), c)`` by variant."""
    unfair: Floats | None
    """``(c,)`` whether refused but for the group."""


def tallies(singles: Sequence[SearchSpace], row: Longs, settings: CstSettings) -> Iterator[Tally]:
    """Shares of a crossed group's rows ``(c,)`` that are detected under every single attribute, and significant."""
    attribute_results = [_single(ground, row, settings, len(singles)) for ground in singles]
    if not attribute_results:
        return
    for variant in attribute_results[0].detected:
        if not all(variant in single.detected for single in attribute_results):
            continue
        detected = np.prod([single.detected[variant] for single in attribute_results], axis=0)
        significant = np.prod([single.significant[variant] for single in attribute_results], axis=0)
        for at, k in enumerate(settings.ks):
            yield from flagged("share_multiple", {"k": k, "variant": variant}, detected[at])
            yield from flagged("share_multiple_significant", {"k": k, "variant": variant}, significant[at])
    unfair = [single.unfair for single in attribute_results if single.unfair is not None]
    if len(unfair) == len(attribute_results):
        yield from flagged("share_multiple", {"variant": CF}, np.prod(unfair, axis=0))


def _single(ground: SearchSpace, row: Longs, settings: CstSettings, attributes: int) -> Single:
    """The rows tested together are the given ones, not the whole group under the single attribute."""
    pairs: dict[str, Pair] = {}
    unfair = None
    for group in np.unique(ground.group[row]):
        if group == ground.reference:
            continue
        positions = np.flatnonzero(ground.group[row] == group)
        compared = compare(ground, int(group), row[positions])
        for variant, pair in compared.pairs.items():
            wide = pairs.setdefault(variant, Pair(*np.full((4, pair.delta.shape[0], len(row)), np.nan)))
            for all_counts, part in zip(wide, pair, strict=True):
                all_counts[:, positions] = part
        if compared.unfair is not None:
            unfair = np.full(len(row), np.nan) if unfair is None else unfair
            unfair[positions] = flags(compared.unfair > 0, compared.unfair)
    tests_of_variant = {variant: judge(pair, settings) for variant, pair in pairs.items()}
    return Single(
        {variant: tests.detected(settings.tau) for variant, tests in tests_of_variant.items()},
        {variant: tests.significant(settings.alpha / attributes) for variant, tests in tests_of_variant.items()},
        unfair,
    )
