"""Settings of the training of generators, frozen.

The defaults depart from the paper in three points; with the paper's own, ``PAPER``, the networks return little more
than the conditional mean on its synthetic data. Numeric mediators are standardised by mean and spread given covariates
and category, so that the individual part is as visible to the discriminator as the rest. The generators' loss does not
saturate. The learning rate falls in the last third of the epochs, so that the result depends less on when training
stops.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

from tasks.numerics.determinism import Device

Adversarial = Literal["non_saturating", "equation_8", "algorithm_1"]
"""What a generator minimises of the discriminator D at the true category A: -log(1 - D_A); log D_A; or, as Algorithm 1
prints it, log D_A + log(1 - D_A'), which is twice log D_A where there are two categories."""


@dataclass(frozen=True)
class GanSettings:
    """Section 5.1 and appendix 14.1, except where a field says otherwise."""

    networks: int = 10
    """Generators, and as many discriminators."""
    first: int = 0
    """Number of the first of them. Draws follow seed and number: ten are the same alone or together."""
    hidden: int = 64
    epochs: int = 300
    batch: int = 256
    learning_rate: float = 5e-4
    decay_from: float = 2 / 3
    """Share of the epochs after which the learning rate falls, linearly and nearly to 0. Ours; 1 for never."""
    alpha: float = 10.0
    """Weight of the reconstruction of the observed mediators. The paper gives no value."""
    adversarial: Adversarial = "non_saturating"
    among_alike: bool = True
    """Whether numeric mediators are standardised given covariates and category, and not among all. Ours."""
    seed: int = 0
    device: Device = "auto"
    """``auto`` takes CUDA where there is a device. What is drawn does not depend on it; the last digits do."""


PAPER: Final[dict[str, Any]] = {"alpha": 1.0, "adversarial": "algorithm_1", "among_alike": False, "decay_from": 1.0}
"""What the paper's networks do and the defaults do not: ``replace(settings, **PAPER)``."""

LOOKED_AT: Final = 2_048
"""Rows, new ones in each epoch, from which a history is taken."""

SLOPE: Final = 0.2
"""Of LeakyReLU below 0. The paper gives none."""
MOMENTUM: Final = 0.1
"""With which batch normalisation follows mean and variance; torch's own."""
