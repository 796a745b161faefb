"""Settings of the autoencoder. Only the kind of the penalty is from the three papers; sizes and weights are ours."""

from dataclasses import dataclass
from typing import Literal

Latent = Literal["one", "two"]
"""Whether the noise is that of the mediators alone, or of the covariates as well, in a part of its own (DCEVAE)."""

Independence = Literal["mmd", "total_correlation", "adversary"]
"""What keeps the noise of the mediators independent of the category: the maximum mean discrepancy between categories
(mCEVAE), the total correlation of noise, category and the other noise (DCEVAE), or a net that guesses the category from
the noise (ADVAE)."""


@dataclass(frozen=True)
class VariationalSettings:
    """One autoencoder."""

    latent: Latent
    penalty: Independence
    weight: float
    """Of the penalty, beside the evidence lower bound in nats."""
    hidden: int = 64
    dimensions: int = 2
    """Of each part of the noise."""
    epochs: int = 60
    batch: int = 256
    learning_rate: float = 2e-3
    decay_from: float = 0.3
    """Share of the epochs after which the learning rate falls, linearly and nearly to 0."""
    least_spread: float = 0.02
    """Of what is decoded, in deviations: without a floor its likelihood grows without end."""
    seed: int = 0
