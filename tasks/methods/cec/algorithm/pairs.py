"""Pairs of comparable applicants, their CEC scores, and tallies."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from schemas.errors import DataQualityError
from tasks.counterfactuals.algorithm import nearest
from tasks.counterfactuals.algorithm.nearest import Index, Matches, Matching
from tasks.methods.cec.settings import CecSettings
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.problem import Attributor, ModelView
from tasks.numerics.results import Aggregate, Tally
from tasks.numerics.statistics.intervals import Parameters, alone, counted, mean, share

# --------------------------------------------------------------------------------------------------------------------
# Computes the CEC score, the distance of the directions of two explanations, and its regimes with the decisions.
#
# Popoola and Sheppard (2026), sections on the CEC metric and on its regimes. An attribution is reduced to its
# direction, g = IG / (|IG| + 1e-8), so that only the balance of the reasons counts. The distance of two directions is
# |g - g~| / 2, in [0, 1]. Both directions share one baseline (Principle 1).
#
# Scope: arithmetic on pairs of attributions. Choice of pairs: ``pairs``.


EPSILON = 1e-8
"""Added to the length of an attribution; one that is no longer has no direction."""

INCOMPLETE = 1e-3
"""Error of completeness, as in ``incompleteness``, that an attribution should not exceed."""

ROUNDING = 1e-12
"""Error of completeness up to which an attribution is exact: the rest is of rounding, and each processor rounds its own
way."""

REGIMES = ("A", "B", "C", "D")
"""Same prediction and reasons; same prediction, different reasons (hidden); different prediction; both differ."""

NO_REGIME = -1

DRAWN_AT_ONCE = 16
"""Resamples summed in one product."""


def directions(attributions: Floats) -> Floats:
    """Attributions ``(r, p)`` as directions ``(r, p)``: NaN in rows that have none, their input being the baseline."""
    length = np.linalg.norm(attributions, axis=1, keepdims=True)
    return np.where(length > EPSILON, attributions / (length + EPSILON), np.nan)


def apart(first: Floats, other: Floats) -> Floats:
    """CEC of each pair of directions ``(r, p)``: ``(r,)`` in [0, 1], NaN where one of the two has no direction."""
    scores: Floats = np.minimum(np.linalg.norm(first - other, axis=1) / 2, 1.0)
    return scores


def divergence(first: Floats, other: Floats, feature_of_column: Ints, features: int) -> Floats:
    """Where the directions of each pair part: the sum of |g_j - g~_j| over the columns of each feature.

    Args:
        first: ``(r, p)`` directions.
        other: ``(r, p)`` directions.
        feature_of_column: ``(p,)`` feature of each column.
        features: Number of features ``m``.

    Returns:
        ``(r, m)``, NaN where one of the two has no direction.
    """
    belongs = feature_of_column[:, None] == np.arange(features)
    parted: Floats = np.abs(first - other) @ belongs.astype(np.float64)
    return parted


def incompleteness(attributions: Floats, change: Floats) -> Floats:
    """How far attributions ``(r, p)`` are from adding up to the change of the logit from the baseline, ``(r,)``.

    |sum IG - change| / max(1, |change|), ``(r,)``: absolute for small changes and relative for large ones. An error of
    rounding alone is 0.
    """
    error = np.abs(attributions.sum(axis=1) - change) / np.maximum(1.0, np.abs(change))
    return np.where(error <= ROUNDING, 0.0, error)


def regimes(cec: Floats, flip: Floats, theta: float) -> Longs:
    """Number in ``REGIMES`` of each pair, ``(r,)``; ``NO_REGIME`` where the score or the flip is NaN.

    Args:
        cec: ``(r,)`` scores.
        flip: ``(r,)`` whether the predictions differ, as 0 and 1.
        theta: Score up to which reasons count as the same.
    """
    scored = ~np.isnan(cec) & ~np.isnan(flip)
    return np.where(scored, 2 * (flip == 1) + (cec > theta), NO_REGIME).astype(np.int64)


def regime_counts(cec: Floats, flip: Floats, thetas: Floats) -> Longs:
    """Pairs in each regime for every theta at once, ``(t, 4)``: scores are sorted once and thetas looked up in them."""
    out = np.empty((len(thetas), len(REGIMES)), np.int64)
    for flipped in (0, 1):
        scores = np.sort(cec[(flip == flipped) & ~np.isnan(cec)])
        same = np.searchsorted(scores, thetas, side="right")
        out[:, 2 * flipped], out[:, 2 * flipped + 1] = same, len(scores) - same
    return out


def largest(parted: Floats, most: int) -> Longs:
    """The features in which each pair parts most, ``(r, most)`` or fewer: largest first, of equals the lowest."""
    return np.argsort(-parted, axis=1, kind="stable")[:, :most]


def shares_of(parted: Floats) -> Floats:
    """Share of each feature ``(m,)`` in the mean divergence of ``(r, m)``; NaN where no pair diverges."""
    total = parted[~np.isnan(parted).any(axis=1)].sum(axis=0)
    return total / total.sum() if total.sum() > 0 else np.full(len(total), np.nan)


def resampled_shares(parted: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """``shares_of`` on bootstrap samples of the pairs, ``(draws, m)``."""
    complete_rows = parted[~np.isnan(parted).any(axis=1)]
    if not complete_rows.any():
        return np.full((draws, parted.shape[1]), np.nan)
    n, total = len(complete_rows), np.empty((draws, parted.shape[1]))
    for start in range(0, draws, DRAWN_AT_ONCE):
        size = min(DRAWN_AT_ONCE, draws - start)
        times = np.array([np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(size)], np.float64)
        total[start : start + size] = times @ complete_rows
    with np.errstate(invalid="ignore"):
        shares: Floats = total / total.sum(axis=1, keepdims=True)
    return shares


# --------------------------------------------------------------------------------------------------------------------
# Pairs of comparable applicants as a model explains them: matches, baselines, scores and the matching floor.
#
# Each row is paired with the nearest training row of another group, under the model that explains it. Both share one
# baseline: the mean input of the factual's own label and group (Popoola and Sheppard 2026, Principle 1). With two
# baselines, a difference of means would look like a difference of reasons. The score is symmetric in the pair, but the
# baseline is not.
#
# The matching floor is ours. Members of a pair differ, so even a model of the financial features alone explains them
# differently. The floor is the score of a logistic regression of the label on these features on the same pairs; only
# the excess is due to the model.
#
# Scope: one row and its match. Groups: ``tallies``.


NO_MODEL, NO_BASELINE, NO_DIRECTION = "no_model", "no_baseline", "no_direction"
"""Why a row has no score beside those of ``nearest``: no model explains it; the model learnt from nobody of its label
and group; its input, or its match's, is the baseline itself, as in a cell of a single member."""

BATCH = 16384
"""Pairs with attributions in memory at a time."""


@dataclass(frozen=True)
class View:
    """One model, and the rows that it learnt from laid out to be matched with."""

    model: Attributor
    cut: float
    """Logit from which it decides favourably."""
    index: Index
    weights: Floats
    """``(f,)`` of the regression on financial features alone; its score is the floor."""


@dataclass(frozen=True)
class Compared:
    """Results of each pair, ``(r,)``; NaN where there is no pair or, except for ``flip``, no direction."""

    cec: Floats
    """In [0, 1]."""
    floor: Floats
    """CEC of the reference on the same pair; NaN as well where the reference has no direction."""
    flip: Floats
    """Whether the predictions differ, as 0 and 1."""
    incompleteness: Floats
    """Error of completeness, the larger one of the two members; NaN where there is no pair."""
    parted: Floats
    """``(r, m)`` divergence by feature."""


@dataclass(frozen=True)
class Scored:
    """Rows of one group matched with another group and scored."""

    matches: Matches
    compared: Compared
    reason: NDArray[np.str_]
    """``(r,)`` why there is no score; empty where there is one."""

    @property
    def above_floor(self) -> Floats:
        """``(r,)`` CEC less that of the reference on the same pair."""
        return self.compared.cec - self.compared.floor


def views(explained: ModelView, group: Ints, matching: Matching) -> tuple[View, ...]:
    """The models of a problem, each with the rows that it learnt from.

    Args:
        explained: Models and their inputs.
        group: ``(n,)`` groups.
        matching: How rows are matched.

    Raises:
        DataQualityError: If a financial feature is constant or not finite, or a model learnt from one label alone.
    """
    model_views = []
    for number, pool in enumerate(explained.pools):
        key = "view", number, matching.winsorise
        if key not in explained.shared:
            at = nearest.standardise(explained.financial, explained.financial_names, pool, matching.winsorise)
            explained.shared[key] = at, reference_weights(at[pool], explained.label[pool])
        at, weights = explained.shared[key]
        index = nearest.index(at, explained.label, group, pool, matching)
        model_views.append(View(explained.models[number], explained.cut(number), index, weights))
    return tuple(model_views)


def reference_weights(financial: Floats, label: Bools) -> Floats:
    """Weights ``(f,)`` of a logistic regression of the label on standardised financial features ``(c, f)`` alone.

    Raises:
        DataQualityError: If all labels are the same.
    """
    if label.all() or not label.any():
        raise DataQualityError("all rows that a model learnt from have the same label; CEC needs rows of both labels")
    weights: Floats = LogisticRegression(solver="newton-cholesky").fit(financial, label).coef_[0]
    return weights


def score_pairs(explained: ModelView, model_views: tuple[View, ...], rows: Longs, to: int) -> Scored:
    """Match ``(r,)`` rows with the group ``to`` and compare the explanations of each pair.

    The score and its floor are means over the ``matching.k`` nearest rows; all else is of the nearest alone.

    Args:
        explained: Models and their inputs.
        model_views: Its ``views``.
        rows: Rows that are not among those they may be matched with.
        to: The group to be matched with.

    Raises:
        DataQualityError: If an attribution is not a finite number.
        ValueError: If a row may be its own match.
    """
    n = len(rows)
    matches = Matches(rows, np.full(n, nearest.UNMATCHED), np.full(n, np.nan), np.full(n, NO_MODEL, dtype="<U32"))
    cec, floor, flip, incompleteness = np.full((4, n), np.nan)
    compared = Compared(cec, floor, flip, incompleteness, np.full((n, len(explained.features)), np.nan))
    reason = matches.reason.copy()
    for number, view in enumerate(model_views):
        positions = np.flatnonzero(explained.explainer[rows] == number)
        matching = nearest.match_nearest(view.index, rows[positions], to)
        matches.match[positions], matches.distance[positions], matches.reason[positions] = (
            matching.match,
            matching.distance,
            matching.reason,
        )
        reason[positions] = np.where(matching.matched, NO_BASELINE, matching.reason)
        several = np.full((n, view.index.matching.k), nearest.UNMATCHED)
        if view.index.matching.k > 1:
            several[positions] = nearest.match_several(view.index, rows[positions], to)
        for at, baseline_rows in _cells(view, rows, positions[matching.matched]):
            part = _compare(explained, view, rows[at], matches.match[at], baseline_rows)
            if view.index.matching.k > 1:
                part = _averaged(part, explained, view, rows[at], several[at], baseline_rows)
            for measure in fields(Compared):
                getattr(compared, measure.name)[at] = getattr(part, measure.name)
            reason[at] = np.where(np.isnan(part.cec), NO_DIRECTION, "")
    return Scored(matches, compared, reason)


def _cells(view: View, rows: Longs, at: Longs) -> Iterator[tuple[Longs, Longs]]:
    """Places of rows with one label and group, a batch at a time, with the rows that their baseline is the mean of."""
    for (label, group), cell in view.index.cells.items():
        cell_positions = at[(view.index.label[rows[at]] == label) & (view.index.group[rows[at]] == group)]
        for start in range(0, len(cell_positions), BATCH):
            yield cell_positions[start : start + BATCH], cell.rows


def _compare(explained: ModelView, view: View, row: Longs, match: Longs, baseline_rows: Longs) -> Compared:
    """Pairs ``(b,)`` that share one baseline, the mean of some rows."""
    pair_rows = np.concatenate([row, match])
    x, baseline = explained.x[pair_rows], explained.x[baseline_rows].mean(axis=0)
    attributions = view.model.attribute(x, np.tile(baseline, (len(pair_rows), 1)))
    if not np.isfinite(attributions).all():
        raise DataQualityError(
            f"{view.model.name} gives attributions that are no finite numbers; check the model's inputs"
        )
    logit = view.model.logit(np.vstack([x, baseline]))
    first, other = np.split(directions(attributions), 2)
    favourable = logit[:-1] >= view.cut if explained.favourable is None else explained.favourable[pair_rows]
    error = incompleteness(attributions, logit[:-1] - logit[-1])
    # The reference: a linear model's integrated gradients are its weights times the way from the baseline.
    financial = view.index.at
    linear = view.weights * (financial[pair_rows] - financial[baseline_rows].mean(axis=0))
    return Compared(
        cec=apart(first, other),
        floor=apart(*np.split(directions(linear), 2)),
        flip=np.not_equal(*np.split(favourable, 2)).astype(np.float64),
        incompleteness=np.maximum(*np.split(error, 2)),
        parted=divergence(first, other, explained.feature_of_column, len(explained.features)),
    )


def _averaged(
    part: Compared, explained: ModelView, view: View, row: Longs, several: Longs, baseline_rows: Longs
) -> Compared:
    """The same pairs with score and floor as means over several matches ``(b, k)``; those without a score count not."""
    compared = [
        _compare(explained, view, row, np.where(match == nearest.UNMATCHED, row, match), baseline_rows)
        for match in several.T
    ]
    absent = several.T == nearest.UNMATCHED
    scores, floors = (
        np.ma.masked_invalid(np.where(absent, np.nan, [getattr(pair, name) for pair in compared]))
        for name in ("cec", "floor")
    )
    return replace(part, cec=scores.mean(axis=0).filled(np.nan), floor=floors.mean(axis=0).filled(np.nan))


# --------------------------------------------------------------------------------------------------------------------
# Tallies of CEC for the rows of one group, matched with another: the values of each statistic over the rows.
#
# A row without a score is NaN. Means are never compared with the reference group's: their pairs and floors differ.
#
# Scope: means over rows, and the few other numbers. Scores: ``pairs``.


QUANTILES = (0.5, 0.9, 0.99)
"""Of the distances between matches."""


def scores(scored: Scored, settings: CecSettings, of: Parameters, headline: bool) -> Iterator[Tally]:
    """Tallies of the score and its floor, flips, regimes, and rows without a match or a score.

    Args:
        scored: The rows of a group.
        settings: ``theta``.
        of: Parameters that all measures are to have.
        headline: Whether this is what findings are about.
    """
    compared, matched = scored.compared, scored.matches.matched
    yield from alone(mean("cec", of, compared.cec, headline=headline))
    yield from alone(mean("cec_floor", of, compared.floor))
    yield from alone(mean("cec_above_floor", of, scored.above_floor))
    yield from alone(share("flip_share", of, compared.flip == 1, ~np.isnan(compared.flip)))
    regime = regimes(compared.cec, compared.flip, settings.theta)
    for number, name in enumerate(REGIMES):
        yield from alone(share("regime_share", {**of, "regime": name}, regime == number, regime >= 0))
    yield from alone(mean("match_distance", of, np.where(matched, scored.matches.distance, np.nan)))
    yield from alone(share("unmatched_share", of, ~matched, scored.reason != NO_MODEL))
    yield from alone(share("no_direction_share", of, scored.reason == NO_DIRECTION, matched))
    incomplete = compared.incompleteness > INCOMPLETE
    yield from alone(share("incomplete_share", of, incomplete, ~np.isnan(compared.incompleteness)))
    yield from alone(mean("completeness_error", of, compared.incompleteness))


def within(scored: Scored, own_scores: Scored) -> Iterator[Tally]:
    """The score of the same rows with the nearest row of their group, and the difference from it for each row.

    Two applicants of one group also differ in features that are not financial, and their explanations with them. What
    is left above this is not owed to that. A group that is smaller than the reference group has fewer to choose from,
    so that its own matches lie further off: the score within it is rather too large than too small.
    """
    yield from alone(mean("cec_within_group", {}, own_scores.compared.cec))
    yield from alone(mean("cec_above_within_group", {}, scored.compared.cec - own_scores.compared.cec))


def theta_curve(scored: Scored, settings: CecSettings) -> Iterator[Tally]:
    """Shares of the four regimes at every step of theta from 0 to 1: no conclusion should hang on one theta."""
    compared, steps = scored.compared, settings.theta_steps
    if steps == 0:
        return
    thetas = np.arange(steps + 1) / steps
    counts = regime_counts(compared.cec, compared.flip, thetas)
    missing = len(compared.cec) - int(counts[0].sum())
    for theta, inside in zip(thetas.tolist(), counts.tolist(), strict=True):
        for name, count in zip(REGIMES, inside, strict=True):
            at: Parameters = {"regime": name, "theta": theta}
            yield from alone(counted("regime_share_at", at, sum(inside) - count, count, missing))


def features(scored: Scored, names: tuple[str, ...]) -> Iterator[Tally]:
    """By feature how far the two explanations of a pair part in it, on average."""
    for name, parted in zip(names, scored.compared.parted.T, strict=True):
        yield from alone(mean("attribution_divergence", {"feature": name}, parted))


def aggregates(scored: Scored, names: tuple[str, ...], resamples: int, rng: np.random.Generator) -> Iterator[Aggregate]:
    """Share of each feature in the divergence, how far apart matches are, and how often a match is used.

    Args:
        scored: The rows of a group.
        names: Features.
        resamples: Times that pairs are drawn anew for the shares of features; the others have no interval.
        rng: Draws them.
    """
    parted, distance = scored.compared.parted, scored.matches.distance[scored.matches.matched]
    n = int((~np.isnan(scored.compared.cec)).sum())
    if n:
        again = resampled_shares(parted, resamples, rng)
        for name, share, replicates in zip(names, shares_of(parted).tolist(), again.T, strict=True):
            reason = "" if np.isfinite(share) else "no two explanations differ"
            at = {"feature": name}
            yield _aggregate("attribution_share", at, share, n, reason=reason, replicates=replicates)
    if len(distance):
        for quantile in QUANTILES:
            value = float(np.quantile(distance, quantile))
            yield _aggregate("match_distance_quantile", {"quantile": quantile}, value, len(distance))
        reuse = scored.matches.reuse
        yield _aggregate("match_reuse", {}, float(reuse.mean()), len(distance))
        yield _aggregate("match_reuse_largest", {}, float(reuse.max()), len(distance), events=int(reuse.max()))


def _aggregate(
    measure: str,
    parameters: Parameters,
    value: float,
    n: int,
    *,
    events: int | None = None,
    reason: str = "",
    replicates: Floats | None = None,
) -> Aggregate:
    resampled_values = np.zeros(0) if replicates is None else replicates
    return Aggregate(
        0, 0, measure, parameters, value, n, compared=False, events=events, reason=reason, replicates=resampled_values
    )
