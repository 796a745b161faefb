"""A substitute for integrated gradients, for models without a gradient: forests, boosted trees, black boxes.

The path from baseline to row is cut into equal steps. On each step features go to their next value one at a time, once
in the order of the columns and once in reverse. The gain of the logit is attributed to the feature that moves, averaged
over the two orders and summed over the steps.

* The gains of a step telescope, so attributions sum to ``f(x) - f(b)`` but for rounding: completeness always holds, and
  says nothing of their quality.
* Of a smooth model the limit for many steps is integrated gradients: both are Aumann-Shapley prices (Aumann and Shapley
  1974) on the diagonal. Of a model that jumps there is no gradient, and the height of a jump goes to the feature whose
  step crosses it; where two features cross in the same step, each order blames one of them, and they share.
* Within a step the average is the Shapley value where no more than two features interact; beyond, it depends on the
  order of the columns, by amounts that vanish with the steps where the model is smooth.
* The model is asked about points off the straight line, and about values between those of a category.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tasks.numerics.arrays import Floats

POINTS_AT_ONCE = 262_144
"""Points that the model is asked about at the same time."""

CLIP = 1e-3
"""How far probabilities are held from 0 and 1. A forest says 0 and 1, which have no log odds; and how far below one in
a thousand it would have gone, it cannot tell."""


@dataclass(frozen=True)
class Differences:
    """Attributions by differences of the logit along the path; ``steps (2 p - 1) + 1`` evaluations of each row."""

    score: Callable[[Floats], Floats]
    """From points ``(m, p)`` to logits ``(m,)``."""
    steps: int = 16
    name: ClassVar[str] = "path differences, a substitute for integrated gradients"
    exact: ClassVar[bool] = False

    def logit(self, x: Floats) -> Floats:
        """``(r,)`` logits of rows ``(r, p)``."""
        return self.score(x)

    def attribute(self, x: Floats, baseline: Floats) -> Floats:
        """``(r, p)`` attributions of rows ``(r, p)``, each from its own baseline ``(r, p)``; zero where they agree."""
        attributions = np.empty(x.shape)
        size = max(1, POINTS_AT_ONCE // (2 * self.steps * x.shape[1]))
        for start in range(0, len(x), size):
            part = slice(start, start + size)
            attributions[part] = self._attribute(x[part], baseline[part])
        return attributions

    def _attribute(self, x: Floats, baseline: Floats) -> Floats:
        at = np.linspace(0.0, 1.0, self.steps + 1)[:, None]
        path = baseline[:, None] + at * (x - baseline)[:, None]  # a feature that does not move stays to the last bit
        path[:, -1] = x
        ends = self._scores(path)
        before, after = path[:, :-1, None], path[:, 1:, None]
        first = np.tri(x.shape[1] - 1, x.shape[1], dtype=bool)  # row k: the first k + 1 features
        upwards = _between(ends[:, :-1], self._scores(np.where(first, after, before)), ends[:, 1:])
        downwards = _between(ends[:, 1:], self._scores(np.where(first, before, after)), ends[:, :-1])
        gains: Floats = (np.diff(upwards) - np.diff(downwards)).sum(axis=1) / 2
        return gains

    def _scores(self, points: Floats) -> Floats:
        """``(...)`` logits of points ``(..., p)``."""
        return self.score(points.reshape(-1, points.shape[-1])).reshape(points.shape[:-1])


def _between(one: Floats, inner: Floats, other: Floats) -> Floats:
    """``(r, steps, p + 1)`` logits as features go one after the other."""
    return np.concatenate([one[..., None], inner, other[..., None]], axis=-1)


def log_odds(probability: Floats) -> Floats:
    """Log odds of probabilities held between ``CLIP`` and ``1 - CLIP``; of the same shape."""
    inside = np.clip(probability, CLIP, 1 - CLIP)
    return np.log(inside / (1 - inside))
