"""A predictor of covariates and abducted noise, and the mediators that the autoencoder imagines.

The noise of an applicant is the mean of the encoder's posterior. The decoder gives the mediators of another category,
with the noise kept. Categories are decoded as one number each, of which the largest counts.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

from schemas.errors import DataQualityError
from tasks.baselines.algorithm.predictors.kind import FairSystem, FittingSettings
from tasks.baselines.algorithm.predictors.training import Scale, fit
from tasks.baselines.algorithm.predictors.variational.networks import Autoencoder
from tasks.baselines.algorithm.predictors.variational.settings import VariationalSettings
from tasks.baselines.algorithm.predictors.variational.training import EncodedRows, train
from tasks.counterfactuals.algorithm.conditional.moments import inputs_of
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.mediation import Mediation, require_seen
from tasks.numerics.networks.perceptron import probabilities

MCEVAE: Final = VariationalSettings("one", "mmd", 10.0)
DCEVAE: Final = VariationalSettings("two", "total_correlation", 1.0)
ADVAE: Final = VariationalSettings("one", "adversary", 1.0)


@dataclass(frozen=True)
class Abducting:
    """An autoencoder, and a net of covariates and noise."""

    template: Mediation
    scales: tuple[Scale, Scale]
    """Of covariates and of mediators."""
    autoencoder: Autoencoder
    history: Floats
    """``(epochs,)`` evidence lower bound."""
    net: nn.Sequential

    def scores(self, rows: Mediation) -> Floats:
        """Probability of the label, ``(n,)``.

        Raises:
            DataQualityError: Columns or categories are not those of the training.
        """
        require_seen(rows, self.template)
        return probabilities(self.net, _seen(self.autoencoder, _encoded(rows, self.scales)))

    def imagine(self, rows: Mediation) -> Floats:
        """Mediators ``(1, k, n, p)`` in the user's units, what was observed in a row's own category.

        Raises:
            DataQualityError: Columns or categories are not those of the training.
        """
        require_seen(rows, self.template)
        encoded, k = _encoded(rows, self.scales), len(rows.categories)
        with torch.no_grad():
            noise = self.autoencoder.noise(encoded.covariates, encoded.category, encoded.mediators).mean
            decoded = [self.autoencoder.decoded(encoded.covariates, to, noise) for to in _everybody(len(rows), k)]
        imagined = np.stack([_columns(self.scales[1].undo(values.double().numpy()), rows) for values in decoded])
        imagined[rows.category, np.arange(len(rows))] = rows.mediators.values
        return imagined[None]


def variational(kind: VariationalSettings) -> FairSystem:
    """The system of an autoencoder; ``fairness`` of its fitting sets the weight of the penalty."""

    def system(rows: Mediation, label: Bools, settings: FittingSettings) -> Abducting:
        """Trains autoencoder and net."""
        return _fitted(rows, label, settings, kind)

    return system


def _fitted(rows: Mediation, label: Bools, settings: FittingSettings, kind: VariationalSettings) -> Abducting:
    if not rows.mediators.names:
        raise DataQualityError("an autoencoder needs a mediator; give the role to what the category may influence")
    weight = kind.weight if settings.fairness is None else settings.fairness
    told = replace(kind, weight=weight, seed=settings.seed, batch=settings.batch, epochs=2 * settings.epochs)
    scales = Scale.of(inputs_of(rows.covariates)), Scale.of(inputs_of(rows.mediators))
    encoded = _encoded(rows, scales)
    autoencoder, history = train(encoded, told)
    net = fit(_seen(autoencoder, encoded), label, settings)
    return Abducting(rows.template, scales, autoencoder, history, net)


def _encoded(rows: Mediation, scales: tuple[Scale, Scale]) -> EncodedRows:
    parts = zip(scales, (rows.covariates, rows.mediators), strict=True)
    covariates, mediators = (torch.from_numpy(scale.apply(inputs_of(part))).float() for scale, part in parts)
    category = torch.from_numpy(np.eye(len(rows.categories), dtype=np.float32)[rows.category])
    return EncodedRows(covariates, category, mediators)


def _seen(autoencoder: Autoencoder, rows: EncodedRows) -> Floats:
    """``(n, c + q)`` covariates and the mean of the mediators' noise: what the net sees."""
    with torch.no_grad():
        noise = autoencoder.noise(rows.covariates, rows.category, rows.mediators).mean
        return torch.cat([rows.covariates, noise], 1).double().numpy()


def _everybody(n: int, categories: int) -> list[Tensor]:
    """For each category, ``(n, k)``: everybody of it."""
    return [torch.eye(categories)[to].expand(n, -1) for to in range(categories)]


def _columns(inputs: Floats, rows: Mediation) -> Floats:
    """``(n, p)`` mediators from decoded inputs ``(n, d)``: of a column with categories that of the largest input."""
    found, at = [], 0
    for known in rows.mediators.categories:
        width = max(1, len(known))
        part = inputs[:, at : at + width]
        found.append(part.argmax(1).astype(np.float64) if known else part[:, 0])
        at += width
    return np.column_stack(found)
