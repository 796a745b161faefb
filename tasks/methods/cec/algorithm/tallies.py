"""Tallies of CEC for the rows of one group, matched with another: the values of each statistic over the rows.

A row without a score is NaN. Means are never compared with the reference group's: their pairs and floors differ.

Scope: means over rows, and the few other numbers. Scores: ``pairs``.
"""

from collections.abc import Iterator

import numpy as np

from tasks.methods.cec.algorithm import score
from tasks.methods.cec.algorithm.pairs import NO_DIRECTION, NO_MODEL, Scored
from tasks.methods.cec.algorithm.score import REGIMES
from tasks.methods.cec.settings import CecSettings
from tasks.numerics.arrays import Floats
from tasks.numerics.results import Aggregate, Tally
from tasks.numerics.statistics.distributions import Parameters, alone, counted, mean, share

QUANTILES = (0.5, 0.9, 0.99)
"""Of the distances between matches."""


def scores(scored: Scored, settings: CecSettings, of: Parameters, headline: bool) -> Iterator[Tally]:
    """The score beside its floor, flips, regimes, and who could not be matched or scored.

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
    regime = score.regimes(compared.cec, compared.flip, settings.theta)
    for number, name in enumerate(REGIMES):
        yield from alone(share("regime_share", {**of, "regime": name}, regime == number, regime >= 0))
    yield from alone(mean("match_distance", of, np.where(matched, scored.matches.distance, np.nan)))
    yield from alone(share("unmatched_share", of, ~matched, scored.reason != NO_MODEL))
    yield from alone(share("no_direction_share", of, scored.reason == NO_DIRECTION, matched))
    incomplete = compared.incompleteness > score.INCOMPLETE
    yield from alone(share("incomplete_share", of, incomplete, ~np.isnan(compared.incompleteness)))
    yield from alone(mean("completeness_error", of, compared.incompleteness))


def within(scored: Scored, own: Scored) -> Iterator[Tally]:
    """The score of the same rows with the nearest of their own group, and how far the score lies above it, row by row.

    Two applicants of one group also differ in features that are not financial, and their explanations with them. What
    is left above this is not owed to that. A group that is smaller than the reference group has fewer to choose from,
    so that its own matches lie further off: the score within it is rather too large than too small.
    """
    yield from alone(mean("cec_within_group", {}, own.compared.cec))
    yield from alone(mean("cec_above_within_group", {}, scored.compared.cec - own.compared.cec))


def theta_curve(scored: Scored, settings: CecSettings) -> Iterator[Tally]:
    """Shares of the four regimes at every step of theta from 0 to 1: no conclusion should hang on one theta."""
    compared, steps = scored.compared, settings.theta_steps
    if steps == 0:
        return
    thetas = np.arange(steps + 1) / steps
    counts = score.regime_counts(compared.cec, compared.flip, thetas)
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
        again = score.resampled_shares(parted, resamples, rng)
        for name, share, replicates in zip(names, score.shares_of(parted).tolist(), again.T, strict=True):
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
    drawn = np.zeros(0) if replicates is None else replicates
    return Aggregate(
        0, 0, measure, parameters, value, n, compared=False, events=events, reason=reason, replicates=drawn
    )
