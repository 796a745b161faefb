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

    @property
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
    widths = of.widths
    denied = {g: np.flatnonzero(of.denied & (of.group == g)) for g in groups}
    approved = {g: _some(np.flatnonzero(~of.denied & (of.group == g)), APPROVED_AT_MOST, rng) for g in groups}
    sample = {g: _some(rows, DENIED_AT_MOST, rng) for g, rows in denied.items()}
    pairs = [(int(g), reference) for g in groups if g != reference]
    pairs += [(reference, reference), *((reference, int(g)) for g in groups if g != reference)]
    for group, to_group in pairs:
        if reference not in denied or not len(sample[group]):
            continue
        pool = of.qualities[approved[to_group]]
        number, nearest, distances = [], [], []
        for row in sample[group]:
            no_better = np.flatnonzero((pool <= of.qualities[row]).all(axis=1))
            distance = (np.abs(pool[no_better] - of.qualities[row]) / widths).mean(axis=1)
            # no farther than the last that is kept: to order these alone is several times as fast
            last = np.partition(distance, most - 1)[most - 1] if 0 < most < len(distance) else np.inf
            near = np.flatnonzero(distance <= last)
            order = near[np.argsort(distance[near], kind="stable")[:most]]
            number.append(len(no_better))
            nearest.append(approved[to_group][no_better[order]])
            distances.append(distance[order])
        counts = np.array(number, np.int64)
        yield Comparison(group, to_group, sample[group], len(denied[group]), counts, tuple(nearest), tuple(distances))


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
    widths, free = of.widths, np.ones(len(references), np.bool_)
    pool, chosen = of.qualities[references], []
    for row in rng.permutation(members):
        no_better = np.flatnonzero(free & (pool <= of.qualities[row]).all(axis=1))
        if len(no_better):
            distance = (np.abs(pool[no_better] - of.qualities[row]) / widths).mean(axis=1)
            nearest = no_better[distance.argmin()]
            free[nearest] = False
            chosen.append((row, references[nearest]))
    member, other = of.denied[np.array(chosen, np.int64).reshape(-1, 2)].T
    return Pairs(group, len(chosen), int(np.sum(member & ~other)), int(np.sum(other & ~member)))


def _some(rows: Longs, most: int, rng: np.random.Generator) -> Longs:
    """The rows, or a sample of them in their order."""
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))
