"""Nearest-neighbour counterfactuals: matching with and without replacement."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from schemas.errors import DataQualityError
from tasks.counterfactuals.settings import MatchingSettings
from tasks.numerics import encoding
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.encoding import Columns, Places
from tasks.numerics.problem import Counterfactuals

# --------------------------------------------------------------------------------------------------------------------
# Greedy matching without replacement: the nearest pair first, then the nearest of the remaining rows, and so on.
#
# An optimal assignment (the Hungarian method) may give a person a worse match than a free one nearby, and its table of
# distances does not fit 20,000 rows. In the greedy matching a row is passed over only for a nearer pair. Pairs that are
# each other's nearest are matched in any order, so that whole rounds of them are matched at once.


def match(rows: Floats, candidates: Places) -> tuple[Longs, Floats]:
    """Match ``(r, f)`` rows with candidates, each used at most once.

    Ties go to the place whose lowest row is lower, and at one place to the lower row.

    Returns:
        Number of each row's candidate, -1 where all were taken, and its distance, NaN there; ``(r,)`` both.
    """
    asking = encoding.gather(rows)
    matches, distance = np.full(len(rows), -1, np.int64), np.full(len(rows), np.nan)
    asking_left, offered_left = asking.count, candidates.count
    while asking_left.any() and offered_left.any():
        open_places, theirs = np.flatnonzero(asking_left), np.flatnonzero(offered_left)
        to, each_others_nearest_away = encoding.nearest(
            cKDTree(candidates.at[theirs]), candidates.first[theirs], asking.at[open_places]
        )
        nearest_places = np.unique(to)
        back, _ = encoding.nearest(
            cKDTree(asking.at[open_places]), asking.first[open_places], candidates.at[theirs[nearest_places]]
        )
        mutual = back[np.searchsorted(nearest_places, to)] == np.arange(len(open_places))
        places, candidate_places, away = open_places[mutual], theirs[to[mutual]], each_others_nearest_away[mutual]
        size = np.minimum(asking_left[places], offered_left[candidate_places])
        matched_rows = asking.order[_runs(asking.start[places] + asking.count[places] - asking_left[places], size)]
        matched_candidates = candidates.order[
            _runs(
                candidates.start[candidate_places]
                + candidates.count[candidate_places]
                - offered_left[candidate_places],
                size,
            )
        ]
        matches[matched_rows], distance[matched_rows] = matched_candidates, np.repeat(away, size)
        asking_left[places] -= size
        offered_left[candidate_places] -= size
    return matches, distance


def _runs(start: Longs, size: Longs) -> Longs:
    """The numbers ``start, start + 1, ...`` of each run, one run after the other."""
    ends = np.cumsum(size)
    return np.repeat(start - ends + size, size) + np.arange(ends[-1])


# --------------------------------------------------------------------------------------------------------------------
# Counterfactuals that are real applicants: the most comparable member of another group with the same outcome.
#
# Label-stratified nearest neighbours (Popoola and Sheppard 2026, Algorithm 1): Euclidean distance on standardised
# financial features, searched among the rows of one label and one group at a time. It needs no causal graph and makes
# no causal claim: a match is a similar person, not what this person would have been.
#
# Scope: standardisation and matching with replacement. Matching without: ``without_replacement``.


UNMATCHED = -1
"""Match of a row that has none."""

EMPTY_CELL, TOO_FAR, TAKEN = "no_candidate", "too_far", "candidates_taken"
"""Why a row has no match: nobody of that group has its label, the nearest is beyond the limit, or all are taken."""


@dataclass(frozen=True)
class Matching:
    """How rows are matched."""

    winsorise: tuple[float, float] | None = (0.01, 0.99)
    """Quantiles of the pool at which features are clipped (paper: not at all): a few absurd values of public data would
    otherwise be the scale of everybody."""
    maximum_distance: float | None = None
    """Standard deviations beyond which nobody is comparable; exactly that far still is."""
    replacement: bool = True
    """Whether one row may be the match of several."""
    k: int = 1
    """Nearest rows whose scores an applicant's score is the mean of; the match is the nearest alone."""

    @classmethod
    def of(cls, settings: MatchingSettings) -> "Matching":
        """The settings of the audit spec."""
        k = getattr(settings, "k", 1)
        return cls(settings.winsorise, settings.maximum_distance, settings.replacement, k)


@dataclass(frozen=True)
class Index:
    """``n`` rows laid out to be matched with the rows of a pool."""

    at: Floats
    """``(n, f)`` standardised financial features."""
    label: Bools
    group: Ints
    cells: Mapping[tuple[bool, int], "Cell"]
    """The rows of the pool by label and group; cells that nobody is in are missing."""
    matching: Matching


@dataclass(frozen=True)
class Cell:
    """The rows of a pool with one label in one group."""

    rows: Longs
    """``(c,)`` ascending."""
    places: Places
    tree: cKDTree


@dataclass(frozen=True)
class Matches:
    """The matches of some rows with one group."""

    row: Longs
    """``(r,)`` the rows, as they were asked for."""
    match: Longs
    """``(r,)`` rows of the pool, or ``UNMATCHED``."""
    distance: Floats
    """``(r,)`` in standard deviations; NaN where nobody was there to measure, known where somebody was too far."""
    reason: NDArray[np.str_]
    """``(r,)`` why there is no match; empty where there is one."""

    @property
    def matched(self) -> Bools:
        """``(r,)``."""
        is_matched: Bools = self.match != UNMATCHED
        return is_matched

    @property
    def reuse(self) -> Longs:
        """How many rows each row that is a match at all is the match of, by ascending match."""
        return np.unique(self.match[self.matched], return_counts=True)[1].astype(np.int64)


def standardise(
    financial: Floats, names: tuple[str, ...], pool: Bools, quantiles: tuple[float, float] | None
) -> Floats:
    """Financial features ``(n, f)`` as numbers of standard deviations from the mean of the pool.

    Args:
        financial: ``(n, f)`` in the user's units.
        names: Of the features.
        pool: ``(n,)`` rows that quantiles, means and population standard deviations are taken of.
        quantiles: At which features are clipped, None for not at all. A feature that is nearly always the same, so
            that clipping would leave nothing of it, is not clipped.

    Raises:
        DataQualityError: If the pool is empty, a value is missing or infinite, or a feature is constant in the pool.
    """
    if not pool.any():
        raise DataQualityError("no row may serve as a match; applicants are matched with rows that a model learnt from")
    for name, values in zip(names, financial.T, strict=True):
        if not np.isfinite(values).all():
            message = f"financial feature {name!r} has missing or infinite values; declare what they mean, refuse such"
            raise DataQualityError(f"{message} rows, or leave it out of the financial features")
        if np.ptp(values[pool]) == 0:
            message = f"financial feature {name!r} is constant among the rows to be matched with"
            raise DataQualityError(f"{message}, so it cannot match applicants; leave it out of the financial features")
    inside = financial
    if quantiles is not None:
        low, high = np.quantile(financial[pool], quantiles, axis=0, method="inverted_cdf")
        has_spread = low < high
        inside = np.clip(financial, np.where(has_spread, low, -np.inf), np.where(has_spread, high, np.inf))
    standardised: Floats = (inside - inside[pool].mean(axis=0)) / inside[pool].std(axis=0)
    return standardised


def index(at: Floats, label: Bools, group: Ints, pool: Bools, matching: Matching) -> Index:
    """Lay rows out to be matched.

    Args:
        at: ``(n, f)`` standardised financial features.
        label: ``(n,)`` true outcomes.
        group: ``(n,)`` groups.
        pool: ``(n,)`` rows that may be a match.
        matching: How rows are matched.
    """
    cells = {}
    for of in np.unique(group[pool]).tolist():
        for outcome in (False, True):
            rows = np.flatnonzero(pool & (group == of) & (label == outcome))
            if len(rows):
                places = encoding.gather(at[rows])
                cells[outcome, of] = Cell(rows, places, cKDTree(places.at))
    return Index(at, label, group, cells, matching)


def match_nearest(index: Index, rows: Longs, to: int) -> Matches:
    """The most comparable member of the group ``to`` with the same label, for each of ``(r,)`` distinct rows.

    Of several equally near the lowest row counts. The group may be the rows' own, if none of them is in the pool.

    Raises:
        ValueError: If a row may be its own match.
    """
    if any(np.isin(rows, cell.rows).any() for (_, of), cell in index.cells.items() if of == to):
        raise ValueError(f"rows of group {to} that are in the pool would be their own matches")
    matches, distance = np.full(len(rows), UNMATCHED, np.int64), np.full(len(rows), np.nan)
    reason = np.full(len(rows), EMPTY_CELL, dtype="<U32")
    for outcome in (False, True):
        places, cell = np.flatnonzero(index.label[rows] == outcome), index.cells.get((outcome, to))
        if cell is not None and len(places):
            matches[places], distance[places] = _matched(index, rows[places], cell)
            reason[places] = np.where(matches[places] == UNMATCHED, TAKEN, "")
    if index.matching.maximum_distance is not None:
        far = distance > index.matching.maximum_distance
        matches[far], reason[far] = UNMATCHED, TOO_FAR
    return Matches(rows, matches, distance, reason)


def match_several(index: Index, rows: Longs, to: int) -> Longs:
    """The ``matching.k`` most comparable members of the group ``to`` with the same label, for each of ``(r,)`` rows.

    Returns:
        ``(r, k)`` rows of the pool, the nearest first; ``UNMATCHED`` where a cell has fewer or they are too far. Of
        several equally near any comes first, the same in every call.
    """
    most, furthest = index.matching.k, index.matching.maximum_distance
    several = np.full((len(rows), most), UNMATCHED, np.int64)
    for outcome in (False, True):
        positions, cell = np.flatnonzero(index.label[rows] == outcome), index.cells.get((outcome, to))
        if cell is None or not len(positions):
            continue
        # The k nearest rows lie in the k nearest places, each of which has one row or more.
        shown = np.arange(1, min(most, len(cell.places.start)) + 1)
        away, place = cell.tree.query(index.at[rows[positions]], k=shown)
        count = cell.places.count[place]
        ends, line = count.cumsum(axis=1), np.arange(len(positions))
        for rank in range(most):
            at = (ends <= rank).sum(axis=1)
            has_row = at < len(shown)
            at = np.minimum(at, len(shown) - 1)
            within = np.where(has_row, rank - (ends - count)[line, at], 0)
            row = cell.rows[cell.places.order[cell.places.start[place[line, at]] + within]]
            near = has_row if furthest is None else has_row & (away[line, at] <= furthest)
            several[positions, rank] = np.where(near, row, UNMATCHED)
    return several


def counterfactuals(matches: Matches, columns: Columns, favourable: Bools | None) -> Counterfactuals:
    """Matches as counterfactuals for any method that takes them: the whole application of the match, and its decision.

    Args:
        matches: Of distinct rows.
        columns: All ``n`` applications.
        favourable: ``(n,)`` decisions, None where they are not to be told.
    """
    order = np.flatnonzero(matches.matched)
    order = order[np.argsort(matches.row[order])]
    match = matches.match[order]
    decided = None if favourable is None else favourable[match]
    return Counterfactuals(matches.row[order], columns.values[match], decided)


def _matched(index: Index, rows: Longs, cell: Cell) -> tuple[Longs, Floats]:
    """Matches in one cell: rows, or ``UNMATCHED`` where all are taken, and their distances."""
    if index.matching.replacement:
        place, distance = encoding.nearest(cell.tree, cell.places.first, index.at[rows])
        return cell.rows[cell.places.first[place]], distance
    chosen, distance = match(index.at[rows], cell.places)
    return np.where(chosen < 0, UNMATCHED, cell.rows[chosen]), distance
