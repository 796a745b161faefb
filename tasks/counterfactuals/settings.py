"""Settings of matching: how the most comparable real applicant of another group is chosen."""

from typing import Self

from pydantic import Field, model_validator

from schemas.audit.methods import MethodSettings


class MatchingSettings(MethodSettings):
    """Label-stratified nearest neighbours (Popoola and Sheppard 2026, Algorithm 1)."""

    winsorise: tuple[float, float] | None = Field(
        (0.01, 0.99), description="quantiles of the training rows at which financial features are clipped for matching"
    )
    maximum_distance: float | None = Field(
        None, gt=0, description="standard deviations beyond which nobody is comparable (paper: tau)"
    )
    replacement: bool = Field(True, description="whether one applicant may be the match of several")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        value = self.winsorise
        if value is not None and not 0 <= value[0] < value[1] <= 1:
            raise ValueError(f"winsorise is {list(value)}; expected two quantiles, the lower first, or null")
        return self


def matching_of(settings: MethodSettings) -> MatchingSettings:
    """How a method that is given nearest neighbours has them matched, as its setting ``matching`` says."""
    return getattr(settings, "matching", MatchingSettings())
