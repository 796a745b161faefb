"""Pairs of comparable applicants as a model explains them: matches, baselines, scores and the matching floor.

Each row is paired with the nearest training row of another group, under the model that explains it. Both share one
baseline: the mean input of the factual's own label and group (Popoola and Sheppard 2026, Principle 1). With two
baselines, a difference of means would look like a difference of reasons. The score is symmetric in the pair, but the
baseline is not.

The matching floor is ours. Members of a pair differ, so even a model of the financial features alone explains them
differently. The floor is the score of a logistic regression of the label on these features on the same pairs; only the
excess is due to the model.

Scope: one row and its match. Groups: ``tallies``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from schemas.errors import DataQualityError
from tasks.counterfactuals.algorithm.nearest import matching as nearest
from tasks.counterfactuals.algorithm.nearest.matching import Index, Matches, Matching
from tasks.methods.cec.algorithm import score as cec_score
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.explanation import Attributor, ModelView

NO_MODEL, NO_BASELINE, NO_DIRECTION = "no_model", "no_baseline", "no_direction"
"""Why a row has no score beside those of ``nearest``: no model explains it; the model learnt from nobody of its label
and group; its input, or its match's, is the baseline itself, as in a cell of a single member."""

BATCH = 16384
"""Pairs whose attributions are held at a time."""


@dataclass(frozen=True)
class View:
    """One model, and the rows that it learnt from laid out to be matched with."""

    model: Attributor
    cut: float
    """Logit from which it decides favourably."""
    index: Index
    weights: Floats
    """``(f,)`` of the regression on financial features alone, whose score is the floor."""


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
    return tuple(_view(explained, group, number, matching) for number in range(len(explained.models)))


def _view(explained: ModelView, group: Ints, number: int, matching: Matching) -> View:
    pool = explained.pools[number]
    at = nearest.standardise(explained.financial, explained.financial_names, pool, matching.winsorise)
    index = nearest.index(at, explained.label, group, pool, matching)
    return View(
        explained.models[number], explained.cut(number), index, reference_weights(at[pool], explained.label[pool])
    )


def reference_weights(financial: Floats, label: Bools) -> Floats:
    """Weights ``(f,)`` of a logistic regression of the label on standardised financial features ``(c, f)`` alone.

    Raises:
        DataQualityError: If all labels are the same.
    """
    if label.all() or not label.any():
        raise DataQualityError("all rows that a model learnt from have the same label; CEC needs rows of both labels")
    weights: Floats = LogisticRegression(solver="newton-cholesky").fit(financial, label).coef_[0]
    return weights


def score(explained: ModelView, seen: tuple[View, ...], rows: Longs, to: int) -> Scored:
    """Match ``(r,)`` rows with the group ``to`` and compare the explanations of each pair.

    Args:
        explained: Models and their inputs.
        seen: Its ``views``.
        rows: Rows that are not among those they may be matched with.
        to: The group to be matched with.

    Raises:
        DataQualityError: If an attribution is not a finite number.
        ValueError: If a row may be its own match.
    """
    matches = _unexplained(rows)
    compared = _nothing(len(rows), len(explained.features))
    reason = matches.reason.copy()
    for number, view in enumerate(seen):
        own = np.flatnonzero(explained.explainer[rows] == number)
        found = nearest.match(view.index, rows[own], to)
        matches.match[own], matches.distance[own], matches.reason[own] = found.match, found.distance, found.reason
        reason[own] = np.where(found.matched, NO_BASELINE, found.reason)
        for at, baseline_rows in _cells(view, rows, own[found.matched]):
            part = _compare(explained, view, rows[at], matches.match[at], baseline_rows)
            for each in fields(Compared):
                getattr(compared, each.name)[at] = getattr(part, each.name)
            reason[at] = np.where(np.isnan(part.cec), NO_DIRECTION, "")
    return Scored(matches, compared, reason)


def _unexplained(rows: Longs) -> Matches:
    n = len(rows)
    return Matches(rows, np.full(n, nearest.UNMATCHED), np.full(n, np.nan), np.full(n, NO_MODEL, dtype="<U32"))


def _nothing(rows: int, features: int) -> Compared:
    cec, floor, flip, incompleteness = np.full((4, rows), np.nan)
    return Compared(cec, floor, flip, incompleteness, np.full((rows, features), np.nan))


def _cells(view: View, rows: Longs, at: Longs) -> Iterator[tuple[Longs, Longs]]:
    """Places of rows with one label and group, a batch at a time, with the rows that their baseline is the mean of."""
    for (label, group), cell in view.index.cells.items():
        own = at[(view.index.label[rows[at]] == label) & (view.index.group[rows[at]] == group)]
        for start in range(0, len(own), BATCH):
            yield own[start : start + BATCH], cell.rows


def _compare(explained: ModelView, view: View, row: Longs, match: Longs, baseline_rows: Longs) -> Compared:
    """Pairs ``(b,)`` that share one baseline, the mean of some rows."""
    both = np.concatenate([row, match])
    x, baseline = explained.x[both], explained.x[baseline_rows].mean(axis=0)
    attributions = view.model.attribute(x, np.tile(baseline, (len(both), 1)))
    if not np.isfinite(attributions).all():
        raise DataQualityError(
            f"{view.model.name} gives attributions that are no finite numbers; check the model's inputs"
        )
    logit = view.model.logit(np.vstack([x, baseline]))
    one, other = np.split(cec_score.directions(attributions), 2)
    favourable = logit[:-1] >= view.cut if explained.favourable is None else explained.favourable[both]
    error = cec_score.incompleteness(attributions, logit[:-1] - logit[-1])
    return Compared(
        cec=cec_score.apart(one, other),
        floor=_floor(view, both, baseline_rows),
        flip=np.not_equal(*np.split(favourable, 2)).astype(np.float64),
        incompleteness=np.maximum(*np.split(error, 2)),
        parted=cec_score.divergence(one, other, explained.feature_of_column, len(explained.features)),
    )


def _floor(view: View, both: Longs, baseline_rows: Longs) -> Floats:
    """CEC of the reference on pairs ``(b,)``, whose members follow one another in ``both``, ``(2 b,)``.

    A linear model's integrated gradients are its weights times the way from the baseline.
    """
    financial = view.index.at
    attributions = view.weights * (financial[both] - financial[baseline_rows].mean(axis=0))
    return cec_score.apart(*np.split(cec_score.directions(attributions), 2))
