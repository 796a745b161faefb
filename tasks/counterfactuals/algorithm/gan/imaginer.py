"""Trained generators in use: counterfactual mediators of applicants in every category, once per network."""

from dataclasses import dataclass

import numpy as np
import torch

from tasks.counterfactuals.algorithm.gan.mixed import Encoder
from tasks.counterfactuals.algorithm.gan.networks import Generators, chosen, softened
from tasks.numerics.arrays import Floats
from tasks.numerics.determinism import one_thread
from tasks.numerics.mediation import Mediation

_AT_ONCE = 8_192
"""Rows; ten networks hold 20 MB of hidden units for as many."""


@dataclass(frozen=True)
class Imaginer:
    """``s`` generators with the scales that they were trained on."""

    encoder: Encoder
    generators: Generators
    """On the CPU, in eval mode."""

    def imagine(self, rows: Mediation) -> Floats:
        """Mediators ``(s, k, n, p)`` laid out as ``Columns.values``, what was observed in a row's own category.

        A row's counterfactuals do not depend on the other rows.

        Raises:
            DataQualityError: If categories or columns are not those of the training.
        """
        parts = [np.arange(first, min(first + _AT_ONCE, len(rows))) for first in range(0, len(rows), _AT_ONCE)]
        with torch.no_grad(), one_thread():
            return np.concatenate([self._imagined(rows.rows(part)) for part in parts], axis=2)

    def _imagined(self, rows: Mediation) -> Floats:
        encoded, heads = self.encoder.encode(rows), self.encoder.heads
        member = np.arange(len(rows.categories))[:, None] == encoded.category
        covariates, category, mediators = (
            torch.from_numpy(np.ascontiguousarray(part)).float().expand(len(self.generators.first), -1, -1)
            for part in (encoded.covariates.T, member, encoded.mediators.T)
        )
        made = chosen(softened(self.generators(covariates, category, mediators), heads), heads)
        return self.encoder.decode(made.double().numpy(), rows)
