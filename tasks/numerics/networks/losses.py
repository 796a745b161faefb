"""The three terms that training minimises (Algorithm 2): prediction, equalised odds, consistency of explanations.

Batches are prepared as weights of rows: a missing cell, or a row without a match, has weight 0 and is no special case.
Every term is a plain product of arrays.
"""

import numpy as np
import torch
from torch import Tensor

from tasks.numerics.arrays import Bools, Floats

_NO_DIRECTION = 1e-8
"""Added to the length of an attribution vector before dividing by it (section 4.4)."""


def odds_contrasts(favourable: Bools, protected: Bools, batch: int) -> Floats:
    """Weights ``(2, n)`` whose products with scores, batch by batch, are the gaps in true and false positive rates.

    A row counts ``1 / size`` of its cell in its batch, with a minus in the protected group. The gap of a label whose
    rows in a batch are of one group only has weights of 0.

    Args:
        favourable: ``(n,)`` labels, in the order of the batches.
        protected: ``(n,)`` group of each row.
        batch: Rows per batch; the last one may be smaller.
    """
    number = np.arange(len(favourable)) // batch
    cell = number * 4 + favourable * 2 + protected
    sizes = np.bincount(cell, minlength=(number[-1] + 1) * 4)
    both = (sizes[cell] > 0) & (sizes[cell ^ 1] > 0)
    weight = np.where(both, np.where(protected, -1.0, 1.0) / sizes[cell], 0.0)
    return np.stack([weight * favourable, weight * ~favourable])


def equalised_odds(scores: Tensor, contrasts: Tensor) -> Tensor:
    """(TPR gap)^2 + (FPR gap)^2 with soft rates: means over cells of sigmoid(logit), ``scores`` ``(r,)``."""
    return (contrasts @ torch.sigmoid(scores)).square().sum()


def pair_weights(matched: Bools, batch: int, share: float) -> Floats:
    """Weights ``(n,)`` of the pairs: in each batch ``1 / number`` for the matched among its first rows, else 0.

    Args:
        matched: ``(n,)`` rows that have a match, in the order of the batches, which is random.
        batch: Rows per batch.
        share: Share of each batch that is looked at, from its first row on.
    """
    number, place = np.divmod(np.arange(len(matched)), batch)
    chosen = matched & (place < pairs_looked_at(batch, share))
    sizes = np.bincount(number, chosen)
    return np.where(chosen, 1.0 / np.maximum(sizes, 1)[number], 0.0)


def pairs_looked_at(batch: int, share: float) -> int:
    """Rows of a batch whose pairs are explained: the share of it, rounded up."""
    return int(np.ceil(batch * share))


def directions(attributions: Tensor) -> Tensor:
    """Attribution vectors ``(r, d)`` over their length plus 1e-8; nothing stays nothing.

    To torch a length of 0 has a derivative of 0.
    """
    length: Tensor = torch.linalg.vector_norm(attributions, dim=1, keepdim=True)
    return attributions / (length + _NO_DIRECTION)


def inconsistency(factual: Tensor, counterfactual: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean of (|g - g~| / 2)^2 over pairs of attributions ``(r, d)``, weights ``(r,)`` that sum to 1.

    The square is summed and never rooted: a root has no derivative where two explanations agree.
    """
    apart = directions(factual) - directions(counterfactual)
    return weights @ apart.square().sum(1) / 4
