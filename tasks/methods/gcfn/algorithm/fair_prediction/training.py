"""Training by cross-entropy and the worst of the generators (equation 10; Algorithm 1, lines 20 to 26).

Algorithm 1 prints the likelihood with the sign of an ascent and descends; the loss here is its negative.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from schemas.errors import DataQualityError
from tasks.methods.gcfn.algorithm.fair_prediction.inputs import Applicants
from tasks.methods.gcfn.algorithm.fair_prediction.settings import PredictorSettings, Worst
from tasks.numerics.arrays import Floats
from tasks.numerics.determinism import INITIAL, chosen_device, draws, one_thread
from tasks.numerics.networks.perceptron import (
    perceptron,
    probabilities,
    require_both_labels,
    require_finite,
    unbound,
)


@dataclass(frozen=True)
class Predictor:
    """A trained net on the CPU, and how its training went."""

    net: nn.Sequential
    """Linear layers and ReLU, one logit."""
    history: Floats
    """``(epochs, 2)`` mean over the batches of cross-entropy and of the worst generator's term, NaN if left out."""

    def scores(self, applicants: Applicants) -> Floats:
        """Probability of the label, ``(n,)``."""
        return probabilities(self.net, np.hstack([applicants.covariates, applicants.mediators]))

    def imagined_scores(self, applicants: Applicants) -> Floats:
        """The same in the other categories, ``(s, k - 1, n)``."""
        s, others, n, _ = applicants.imagined.shape
        found = [
            probabilities(self.net, np.hstack([applicants.covariates, values]))
            for network in applicants.imagined
            for values in network
        ]
        return np.array(found).reshape(s, others, n)


def train(applicants: Applicants, settings: PredictorSettings) -> Predictor:
    """Minimise cross-entropy + lambda max_j E (h(x, m) - h(x, m_j))^2 by Adam.

    Args:
        applicants: Training rows.
        settings: Of the run.

    Raises:
        DataQualityError: If labels are of one kind only, no counterfactual mediators are there to be regularised by, or
            the loss is no longer finite.
    """
    _check(applicants, settings)
    device = chosen_device(settings.device)
    widths = (applicants.covariates.shape[1] + applicants.mediators.shape[1], *settings.hidden, 1)
    net = perceptron(widths, settings.lipschitz, draws(settings.seed, INITIAL)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), settings.learning_rate, fused=True)
    table = _Table.of(applicants, settings.fairness > 0, device)
    history = []
    with one_thread():
        for epoch in range(settings.epochs):
            order = torch.from_numpy(draws(settings.seed, epoch).permutation(len(applicants.label))).to(device)
            terms = [_step(net, optimizer, table.part(part), settings) for part in torch.split(order, settings.batch)]
            history.append(torch.stack(terms).mean(0).double().cpu().numpy())
            require_finite(net, epoch)
    return Predictor(unbound(net), np.array(history).reshape(-1, 2))


def regularisation(scores: Tensor, imagined: Tensor, worst: Worst) -> Tensor:
    """The term of the worst of the generators (equations 9 and 70).

    Args:
        scores: ``(r,)`` probabilities.
        imagined: ``(s, k - 1, r)`` those in the other categories, over which the mean is taken.
        worst: Whether the worst generator is that of all rows, or of each row by itself.
    """
    moved = (scores - imagined).square().mean(1)
    return moved.mean(1).max() if worst == "batch" else moved.max(0).values.mean()


@dataclass(frozen=True)
class _Table:
    """Rows on the device."""

    covariates: Tensor
    mediators: Tensor
    imagined: Tensor | None
    """``(s, k - 1, n, d)``; None where they play no part."""
    label: Tensor

    @classmethod
    def of(cls, applicants: Applicants, regularised: bool, device: torch.device) -> "_Table":
        covariates, mediators, label = (
            torch.from_numpy(part).float().to(device)
            for part in (applicants.covariates, applicants.mediators, applicants.label.astype(np.float32))
        )
        return cls(
            covariates, mediators, torch.from_numpy(applicants.imagined).to(device) if regularised else None, label
        )

    def part(self, rows: Tensor) -> "_Table":
        imagined = None if self.imagined is None else self.imagined[:, :, rows]
        return _Table(self.covariates[rows], self.mediators[rows], imagined, self.label[rows])


def _step(net: nn.Sequential, optimizer: torch.optim.Adam, rows: _Table, settings: PredictorSettings) -> Tensor:
    """One step; cross-entropy and regularisation of the batch, ``(2,)``."""
    optimizer.zero_grad()
    logits = net(torch.cat([rows.covariates, rows.mediators], 1)).squeeze(1)
    loss = predicted = functional.binary_cross_entropy_with_logits(logits, rows.label)
    moved = torch.full_like(predicted, torch.nan)
    if rows.imagined is not None:
        covariates = rows.covariates.expand(*rows.imagined.shape[:2], -1, -1)
        imagined = net(torch.cat([covariates, rows.imagined], 3)).squeeze(3)
        moved = regularisation(torch.sigmoid(logits), torch.sigmoid(imagined), settings.worst)
        loss = predicted + settings.fairness * moved
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return torch.stack([predicted.detach(), moved.detach()])


def _check(applicants: Applicants, settings: PredictorSettings) -> None:
    """Refuse rows that are unusable for the training."""
    require_both_labels(applicants.label)
    if settings.fairness > 0 and not applicants.imagined.shape[0]:
        raise DataQualityError("no counterfactual mediators are given to be fair by; train generators, or set lambda 0")
