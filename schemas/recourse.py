"""The part ``recourse`` of a column in the spec: how hard it is to change, in which steps and how far (RAGUEL).

In which direction a column may change, and whether at all, is its ``constraint``, which all methods keep.
"""

import math
from typing import Self

from pydantic import Field, model_validator

from schemas.source import Strict


class Recourse(Strict):
    """What an applicant can do about a column."""

    weight: float = Field(
        1.0, gt=0, allow_inf_nan=False, description="how hard it is to change, beside the other columns' weights"
    )
    step: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="smallest change, in the column's units; any amount if null, and of ordered categories one of them",
    )
    bounds: tuple[float | None, float | None] = Field(
        (None, None), description="values between which an offer has to lie, in the column's units"
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        low, high = self.limits
        if not low <= high:
            raise ValueError(f"bounds are {list(self.bounds)}; expected the lower one first")
        return self

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds as numbers, infinite where there is none."""
        low, high = self.bounds
        return -math.inf if low is None else low, math.inf if high is None else high
