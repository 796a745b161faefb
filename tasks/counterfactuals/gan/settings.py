"""Settings of generators of mediators: the base of the settings of each method that trains its own.

Adversarial generators (``gan``) are the paper's method. The map of conditional quantiles (``quantile``) is exact where
every mediator is continuous and keeps its rank. Scope: what a user chooses. Settings of the networks:
``tasks.counterfactuals.algorithm.gan.settings``.
"""

from typing import Annotated, Literal

from pydantic import Field

from schemas.audit.methods import MethodSettings

Units = Annotated[int, Field(ge=1, le=4096)]
Weight = Annotated[float, Field(ge=0, le=1e6)]
Rate = Annotated[float, Field(gt=0)]


class MediatorSettings(MethodSettings):
    """What imagines mediators as they would have been in the other groups, and how it learns."""

    generator: Literal["gan", "quantile"] = Field(
        "gan", description="adversarial networks, or quantiles of continuous mediators given the covariates"
    )
    networks: int = Field(10, ge=1, le=100, description="generators; where they part, nobody is identified")
    epochs: int = Field(300, ge=1, le=10_000, description="passes over the training rows")
    batch: int = Field(
        256, ge=2, le=1_000_000, description="rows of a batch, and the fewest that a group may have to be learnt from"
    )
    hidden: Units = Field(64, description="units of the hidden layer of generator and discriminator")
    learning_rate: Rate = Field(5e-4, description="step size of Adam")
    decay_from: float = Field(
        2 / 3, gt=0, le=1, description="share of the epochs after which it falls to nearly 0 (paper: 1, never)"
    )
    alpha: Weight = Field(10.0, description="weight of the reconstruction of observed mediators (paper: not told)")
    adversarial: Literal["non_saturating", "equation_8", "algorithm_1"] = Field(
        "non_saturating", description="what generators minimise of the discriminators (paper: algorithm_1)"
    )
    among_alike: bool = Field(
        True, description="whether numbers are standardised among people alike, and not among all (paper: among all)"
    )
    rows: int | None = Field(
        None, ge=100, description="most rows that generators learn from, drawn by group; all if null"
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto",
        description="where networks are trained; auto: on a CUDA device if there is one, which moves last digits",
    )
