"""Comparator files: for each denied applicant, the approved ones of a group who are no better in any directed column.

Examiners read such files next to each other (FFIEC, Interagency Fair Lending Examination Procedures, 2009, part III.C;
the task's specification of lending, section 6). That a denied member has such a file shows nothing by itself: denied
reference applicants have them as well. So the same search is made for these, among approved applicants of their own
group and among approved members.

Pairs that are matched without a look at decisions allow a test besides, and say how much a hidden difference inside of
them would have to do (Rosenbaum 2002, Observational Studies, section 4.3.2).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numba
import numpy as np

from tasks.numerics.arrays import Bools, Floats, Ints, Longs

DENIED_AT_MOST, APPROVED_AT_MOST = 2_000, 200_000
"""Of more denied applicants, or approved ones, of a group a seeded sample is searched."""
PAIRED_AT_MOST = 2_000, 20_000
"""Of more members, or reference applicants, a seeded sample is paired."""


@dataclass(frozen=True)
class Candidates:
    """Applicants with a value in every directed column."""

    qualities: Floats
    """``(n, c)`` values of the directed columns, turned so that more is better for the applicant."""
    denied: Bools
    """``(n,)``."""
    group: Ints
    """``(n,)`` number of the group."""

    @cached_property
    def widths(self) -> Floats:
        """``(c,)`` standard deviations; a constant column adds no distance."""
        spread = self.qualities.std(axis=0) if len(self.qualities) else np.zeros(self.qualities.shape[1])
        return np.where(spread > 0, spread, np.inf)


@dataclass(frozen=True)
class Comparison:
    """The denied applicants of one group, and their comparators of one group."""

    group: int
    """Group of the denied applicants."""
    to_group: int
    """Group of the approved ones."""
    denied: Longs
    """``(d,)`` rows of the denied applicants who were searched for."""
    of: int
    """Denied applicants of the group, of whom ``denied`` may be a sample."""
    number: Longs
    """``(d,)`` comparators of each."""
    nearest: tuple[Longs, ...]
    """For each denied applicant rows of the nearest comparators, the nearest first."""
    distances: tuple[Floats, ...]
    """For each of them the mean over columns of the difference, in standard deviations of the column."""

    @property
    def matched(self) -> int:
        """Denied applicants with a comparator."""
        return int(np.count_nonzero(self.number))


def compare(of: Candidates, reference: int, most: int, rng: np.random.Generator) -> Iterator[Comparison]:
    """Each group's denied members with approved reference applicants, and the control comparisons.

    Args:
        of: the applicants.
        reference: number of the reference group.
        most: comparators that are kept of each denied applicant.
        rng: draws the samples of large groups.

    Yields:
        Of each group with a denied member the comparison with the reference group; of denied reference applicants the
        ones with the reference group and with each other group.
    """
    groups = np.unique(of.group)
    denied = {g: np.flatnonzero(of.denied & (of.group == g)) for g in groups}
    approved = {g: _some(np.flatnonzero(~of.denied & (of.group == g)), APPROVED_AT_MOST, rng) for g in groups}
    sample = {g: _some(rows, DENIED_AT_MOST, rng) for g, rows in denied.items()}
    pairs = [(int(g), reference) for g in groups if g != reference]
    pairs += [(reference, reference), *((reference, int(g)) for g in groups if g != reference)]

    @lru_cache(maxsize=1)  # most pairs are with the reference group
    def pool_of(group: int) -> _Pool:
        return _Pool.of(of, approved[group])

    for group, to_group in pairs:
        if reference not in denied or not len(sample[group]):
            continue
        pool = pool_of(to_group)
        places, distances = pool.nearest(of.qualities[sample[group]], most, once=False)
        filled = [row >= 0 for row in places]
        yield Comparison(
            group,
            to_group,
            sample[group],
            len(denied[group]),
            pool.no_better(of.qualities[sample[group]]),
            tuple(approved[to_group][row[some]] for row, some in zip(places, filled, strict=True)),
            tuple(row[some] for row, some in zip(distances, filled, strict=True)),
        )


@dataclass(frozen=True)
class Pairs:
    """Pairs of a member and a reference applicant who is no better in any directed column."""

    group: int
    n: int
    member_denied: int
    """Pairs of which the member alone was denied."""
    other_denied: int
    """Pairs of which the reference applicant alone was denied."""


def pair(of: Candidates, group: int, reference: int, rng: np.random.Generator) -> Pairs:
    """Pairs of one group, matched without a look at decisions: in random order each member takes the nearest one left.

    An applicant who is no better should be denied at least as often: a test of equal odds errs on the safe side.
    """
    members = _some(np.flatnonzero(of.group == group), PAIRED_AT_MOST[0], rng)
    references = _some(np.flatnonzero(of.group == reference), PAIRED_AT_MOST[1], rng)
    members = rng.permutation(members)
    places = _Pool.of(of, references).nearest(of.qualities[members], 1, once=True)[0][:, 0]
    member, other = of.denied[members[places >= 0]], of.denied[references[places[places >= 0]]]
    return Pairs(group, len(member), int(np.sum(member & ~other)), int(np.sum(other & ~member)))


def _some(rows: Longs, most: int, rng: np.random.Generator) -> Longs:
    """The rows, or a sample of them in their order."""
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


# --------------------------------------------------------------------------------------------------------------------
# The search. Of applicants who are no better the nearest has the highest mean of standardised values: the search goes
# down from there, and ends where nobody can be nearer.


ROUNDING = 1e-9
"""By which a distance may differ from a difference of means, for a mean of 1."""
TOGETHER = 2_048
"""Applicants of the pool who are counted at once."""


@dataclass(frozen=True)
class _Pool:
    """Applicants who are searched, by their mean of standardised values, the highest first."""

    qualities: Floats
    """``(n, c)``."""
    place: Longs
    """``(n,)`` of each among those that the pool was made of."""
    mean: Floats
    """``(n,)``."""
    widths: Floats
    """``(c,)``."""

    @classmethod
    def of(cls, candidates: Candidates, rows: Longs) -> "_Pool":
        """These applicants."""
        qualities, widths = candidates.qualities[rows], candidates.widths
        mean = (qualities / widths).mean(axis=1)
        order = np.argsort(-mean, kind="stable")
        return cls(qualities[order], order, mean[order], widths)

    def nearest(self, sought: Floats, most: int, *, once: bool) -> tuple[Longs, Floats]:
        """``(q, most)`` places of the nearest who are no better, -1 where there is none, and their distances.

        Of equally near ones the first. Where each is taken ``once``, in the order of ``sought``.
        """
        mean = (sought / self.widths).mean(axis=1)
        slack = ROUNDING * (1 + float(np.abs(self.mean).max(initial=0)))
        return _nearest(self.qualities, self.place, self.mean, self.widths, sought, mean, slack, most, once)  # type: ignore[no-any-return]

    def no_better(self, sought: Floats) -> Longs:
        """``(q,)`` how many are no better in any column."""
        limits = np.empty(sought.shape, np.int32)
        for number, levels in enumerate(self._ranks[1]):
            limits[:, number] = np.searchsorted(levels, sought[:, number], side="right") - 1
        return _count(self._ranks[0], limits)  # type: ignore[no-any-return]

    @cached_property
    def _ranks(self) -> tuple[Ints, tuple[Floats, ...]]:
        """``(c, n)`` the rank of each value among those of its column, and these in their order."""
        ranked = [np.unique(column, return_inverse=True) for column in self.qualities.T]
        ranks = np.empty(self.qualities.T.shape, np.int32)
        for number, (_, of_column) in enumerate(ranked):
            ranks[number] = of_column
        return ranks, tuple(levels for levels, _ in ranked)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _nearest(
    pool: Floats,
    place: Longs,
    mean: Floats,
    widths: Floats,
    sought: Floats,
    sought_mean: Floats,
    slack: float,
    most: int,
    once: bool,
) -> tuple[Longs, Floats]:
    columns = pool.shape[1]
    places, distances = np.full((len(sought), most), -1), np.full((len(sought), most), np.inf)
    free = np.ones(len(pool), np.bool_)
    for j in range(len(sought) if most > 0 else 0):
        near, away, nearest = places[j], distances[j], -1
        for i in range(np.searchsorted(-mean, -(sought_mean[j] + slack)), len(pool)):
            if sought_mean[j] - mean[i] > away[most - 1] + slack:
                break
            distance, no_better = 0.0, free[i]
            for k in range(columns):
                no_better = no_better and pool[i, k] <= sought[j, k]
                distance += abs(pool[i, k] - sought[j, k]) / widths[k]
            distance /= columns
            last = most - 1
            if not no_better or distance > away[last] or (distance == away[last] and place[i] > near[last] >= 0):
                continue
            while last > 0 and (
                distance < away[last - 1] or (distance == away[last - 1] and place[i] < near[last - 1])
            ):
                near[last], away[last] = near[last - 1], away[last - 1]
                last -= 1
            near[last], away[last], nearest = place[i], distance, i
        if once and nearest >= 0:
            free[nearest] = False
    return places, distances


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _count(ranks: Ints, limits: Ints) -> Longs:
    total, no_better = np.zeros(len(limits), np.int64), np.empty(TOGETHER, np.int32)
    for start in range(0, ranks.shape[1], TOGETHER):
        width = min(TOGETHER, ranks.shape[1] - start)
        for j in range(len(limits)):
            no_better[:width] = 1
            for k in range(len(ranks)):
                column, limit = ranks[k][start : start + width], limits[j, k]
                for i in range(width):
                    no_better[i] &= column[i] <= limit
            total[j] += no_better[:width].sum()
    return total
