"""Tallies of predictors by group: performance on held-out rows, and how far scores depend on the group.

The worst network over everybody counts for a predictor (equation 10), so that the numbers of the groups add up. Scope:
shares and means. Predictors: ``predictors``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.methods.gcfn.settings import GcfnPrediction
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.results import Aggregate, Tally
from tasks.numerics.statistics.distributions import Parameters, alone, share

CUT = 0.5
"""Score from which a predictor's decision is favourable."""

_AT_ONCE = 2_000_000
"""Rows drawn at a time."""


@dataclass(frozen=True)
class Predicted:
    """A predictor on ``n`` held-out rows."""

    model: str
    fairness: float
    """lambda; 0 where nothing is regularised."""
    scores: Floats
    """``(n,)`` probability of the favourable outcome."""
    imagined: Floats
    """``(s, k - 1, n)`` the same in the other categories, by network."""

    @property
    def favourable(self) -> Bools:
        """``(n,)`` its decisions."""
        return self.scores >= CUT

    @property
    def named(self) -> Parameters:
        """What tells it from the others."""
        return {"model": self.model, "lambda": self.fairness}

    @property
    def moved(self) -> Floats:
        """``(n,)`` mean square of the change of the score, under the network that is worst over all rows."""
        squared = np.square(self.imagined - self.scores).mean(axis=1)
        found: Floats = squared[squared.mean(axis=1).argmax()]
        return found


def rates(decided: Bools, label: Bools, of: Parameters) -> Iterator[Tally]:
    """Of decisions ``(n,)`` on rows of a group: accuracy, PPV, FPR and FNR; favourable is positive."""
    yield from alone(share("fair_accuracy", of, decided == label))
    yield from alone(share("fair_ppv", of, label, decided))
    yield from alone(share("fair_fpr", of, decided, ~label))
    yield from alone(share("fair_fnr", of, ~decided, label))


def tallies(
    found: Predicted, rows: Longs, label: Bools, given: Bools | None, settings: GcfnPrediction
) -> Iterator[Tally]:
    """Of one predictor and the rows of one group: rates, scores, and who is decided on otherwise.

    Args:
        found: The predictor.
        rows: ``(r,)`` the group among the held-out rows.
        label: ``(n,)`` outcomes of all held-out rows.
        given: ``(n,)`` decisions of the audited model, where there is one.
        settings: ``bins``.
    """
    of, decided, scores = found.named, found.favourable[rows], found.scores[rows]
    yield from rates(decided, label[rows], of)
    ends = np.arange(settings.bins + 1) / settings.bins
    place = np.minimum((scores * settings.bins).astype(np.int64), settings.bins - 1)
    for number, (low, high) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
        yield from alone(share("fair_score_share", {**of, "from": low, "to": high}, place == number))
    if given is not None:
        yield from alone(share("treated_differently_share", of, decided != given[rows]))


def aggregates(
    found: Sequence[Predicted],
    rows: Longs,
    label: Bools,
    gammas: Sequence[float],
    resamples: int,
    rng: np.random.Generator,
) -> Iterator[Aggregate]:
    """CF, its root on the scale of the score, and utility of every predictor on the rows of one group, resampled alike.

    Args:
        found: The predictors.
        rows: ``(r,)`` the group among the held-out rows.
        label: ``(n,)`` outcomes of all held-out rows.
        gammas: Weights of CF in the utility.
        resamples: Replicates.
        rng: Draws rows.
    """
    parts = [each for one in found for each in (one.favourable[rows] == label[rows], one.moved[rows])]
    values = np.column_stack(parts).astype(np.float64)
    again = np.vstack([_resampled(values, resamples, rng), values.mean(axis=0)])
    for number, one in enumerate(found):
        accuracy, moved = again[:, 2 * number], again[:, 2 * number + 1]
        yield _aggregate("fair_unfairness", one.named, moved, len(rows))
        yield _aggregate("fair_score_change", one.named, np.sqrt(moved), len(rows))
        for gamma in gammas:
            yield _aggregate("fair_utility", {**one.named, "gamma": gamma}, accuracy - gamma * moved, len(rows))


def refused(models: Sequence[tuple[str, float]], n: int, reason: str) -> Iterator[Aggregate]:
    """A group of ``n`` that nothing could be trained for: a row with the reason for each model, by name and lambda."""
    for name, fairness in models:
        of: Parameters = {"model": name, "lambda": fairness}
        yield Aggregate(0, 0, "fair_unfairness", of, np.nan, n, compared=False, reason=reason)


def _aggregate(measure: str, of: Parameters, values: Floats, n: int) -> Aggregate:
    """``values`` of the resamples, the sample's own last."""
    return Aggregate(0, 0, measure, of, float(values[-1]), n, compared=False, replicates=values[:-1])


def _resampled(values: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """``(resamples, q)`` means of ``(r, q)`` over as many rows drawn with replacement."""
    n = len(values)
    parts, left = [np.zeros((0, values.shape[1]))], resamples
    while left > 0:
        size = min(left, max(1, _AT_ONCE // n))
        drawn = rng.integers(0, n, (size, n)) + n * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        parts.append(counts @ values / n)
        left -= size
    return np.concatenate(parts)
