"""Settings of matching, and of the GAN that generates mediators."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from schemas.audit.methods import MethodSettings

# --------------------------------------------------------------------------------------------------------------------
# Settings of matching: how the most comparable real applicant of another group is chosen.


class MatchingSettings(MethodSettings):
    """Label-stratified nearest neighbours (Popoola and Sheppard 2026, Algorithm 1)."""

    winsorise: tuple[float, float] | None = Field(
        (0.01, 0.99), description="quantiles of the training rows at which financial features are clipped for matching"
    )
    maximum_distance: float | None = Field(
        None, gt=0, description="standard deviations beyond which no applicant is comparable (paper: tau)"
    )
    replacement: bool = Field(True, description="whether one applicant may be the match of several")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        value = self.winsorise
        if value is not None and not 0 <= value[0] < value[1] <= 1:
            raise ValueError(f"winsorise is {list(value)}; expected two quantiles, the lower first, or null")
        return self


def matching_of(settings: MethodSettings) -> MatchingSettings:
    """Settings of nearest-neighbour matching, from the setting ``matching`` of a method that uses it."""
    return getattr(settings, "matching", MatchingSettings())


# --------------------------------------------------------------------------------------------------------------------
# Settings of generators of mediators: the base of the settings of each method that trains its own.
#
# Adversarial generators (``gan``) are the paper's method. The map of conditional quantiles (``quantile``) is exact
# where every mediator is continuous and keeps its rank. Scope: what a user chooses. Settings of the networks:
# ``tasks.counterfactuals.algorithm.gan.networks``.


Units = Annotated[int, Field(ge=1, le=4096)]
Weight = Annotated[float, Field(ge=0, le=1e6)]
Rate = Annotated[float, Field(gt=0)]


class MediatorSettings(MethodSettings):
    """The generator of counterfactual mediators in the other groups, and its training."""

    generator: Literal["gan", "quantile"] = Field(
        "gan", description="adversarial networks, or quantiles of continuous mediators given the covariates"
    )
    networks: int = Field(
        10,
        ge=1,
        le=100,
        description="generators that are trained; where they disagree, the applicant is not identified",
    )
    epochs: int = Field(300, ge=1, le=10_000, description="passes over the training rows")
    batch: int = Field(
        256, ge=2, le=1_000_000, description="rows of a batch, and the fewest that a group may have to be learnt from"
    )
    hidden: Units = Field(64, description="units of the hidden layer of generator and discriminator")
    learning_rate: Rate = Field(5e-4, description="step size of Adam")
    decay_from: float = Field(
        2 / 3, gt=0, le=1, description="share of the epochs after which it falls to nearly 0 (paper: 1, never)"
    )
    alpha: Weight = Field(
        10.0, description="weight of the reconstruction of observed mediators (the paper does not give it)"
    )
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
