"""Losses of generators and discriminators (equations 4, 7 and 8; Algorithm 1, lines 10 and 16), by network.

Losses are sums over networks of means over rows, so the gradients of networks are independent.
"""

import torch
from torch import Tensor
from torch.nn import functional

from tasks.counterfactuals.algorithm.gan.settings import Adversarial


def mixed_in(shown: Tensor, member: Tensor, mediators: Tensor) -> Tensor:
    """G~: what was observed in the place of each row's own category (equation 5), ``(s, k, d, r)``.

    Args:
        shown: ``(s, k, d, r)`` what was generated.
        member: ``(s, k, r)`` one-hot category, as truth values.
        mediators: ``(s, d, r)`` what was observed.
    """
    return torch.where(member[:, :, None], mediators[:, None], shown)


def reconstruction(soft: Tensor, member: Tensor, mediators: Tensor) -> Tensor:
    """Mean over rows of ||m - G(x, a, m)_A||^2 (equation 4), ``(s,)``."""
    missed = (soft - mediators[:, None]).square().sum(2)
    return (missed * member).sum((1, 2)) / member.shape[2]


def told_apart(logits: Tensor, category: Tensor) -> Tensor:
    """-log D_A by row (equation 7 with its sign turned), ``(s, r)``: the loss of the discriminators."""
    return functional.cross_entropy(logits, category, reduction="none")


def adversarial(logits: Tensor, member: Tensor, category: Tensor, kind: Adversarial) -> Tensor:
    """What the generators minimise of the discriminators, summed over networks.

    Args:
        logits: ``(s, k, r)``.
        member: ``(s, k, r)`` one-hot category, as truth values.
        category: ``(s, r)`` the same as numbers.
        kind: Which of the losses.
    """
    if kind == "non_saturating":
        others = logits.masked_fill(member, -torch.inf).logsumexp(1)
        return (logits.logsumexp(1) - others).mean(1).sum()
    return (-2 if kind == "algorithm_1" else -1) * told_apart(logits, category).mean(1).sum()
