"""Settings of the training of a predictor, and of the models that are compared, frozen."""

from dataclasses import dataclass
from typing import Final, Literal

from tasks.numerics.determinism import Device

SWEEP: Final = (0.0, 0.1, 0.5, 1.0, 1.5, 2.0)
"""Values of lambda along the trade-off (appendix 15.4)."""

Worst = Literal["batch", "row"]
Sees = Literal["mediators", "covariates", "noise"]


@dataclass(frozen=True)
class PredictorSettings:
    """Section 5.1 and appendix 14.1; what is not said there is ours."""

    hidden: tuple[int, ...] = (64,)
    """Widths of the hidden layers, ReLU between them. Not in the paper."""
    epochs: int = 30
    batch: int = 256
    learning_rate: float = 5e-3
    fairness: float = 0.5
    """lambda, the weight of the worst generator's regularisation term; 0 leaves the term out."""
    worst: Worst = "batch"
    """Whether the worst generator is that of a batch, near equation 10, or of each row by itself."""
    lipschitz: float | None = None
    """How fast the logit may change by standardised inputs, kept by spectral normalisation; None for no bound."""
    seed: int = 0
    device: Device = "auto"


@dataclass(frozen=True)
class Variant:
    """A model of a comparison."""

    name: str
    sees: Sees
    """Besides covariates: mediators, nothing, or the noise behind the mediators."""
    fairness: float


UNCONSTRAINED: Final = Variant("unconstrained", "mediators", 0.0)
CFUA: Final = Variant("CFUA", "covariates", 0.0)
"""Counterfactual fairness by leaving out what the category influences (Kusner et al. 2017)."""
CFAN: Final = Variant("CFAN", "noise", 0.0)
"""The same, with the additive noise abducted from the mediators (Kusner et al. 2017)."""


def sweep(values: tuple[float, ...] = SWEEP) -> tuple[Variant, ...]:
    """A model for each weight of the regularisation."""
    return tuple(Variant(f"GCFN, lambda {value:g}", "mediators", value) for value in values)
