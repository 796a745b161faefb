"""The part ``recourse`` of a column in the spec: how hard it is to change, in which steps and how far (RAGUEL).

Scope: costs and ranges. Permitted directions of a column: its ``constraint``, which all methods respect.
"""

import math

from pydantic import Field

from schemas.bounds import Ascending, Strict


class Recourse(Strict):
    """How an applicant can change a column."""

    weight: float = Field(1.0, gt=0, description="how hard it is to change, beside the other columns' weights")
    step: float | None = Field(
        None,
        gt=0,
        description="smallest change, in the column's units; any amount if null, and of ordered categories one of them",
    )
    bounds: Ascending = Field(
        (None, None), description="values between which an offer has to lie, in the column's units"
    )

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds as numbers, infinite where there is none."""
        low, high = self.bounds
        return -math.inf if low is None else low, math.inf if high is None else high
