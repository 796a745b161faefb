"""Settings of the feasibility graph: a base of the settings of methods that search recourse on it."""

import math
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from schemas.audit.methods import MethodSettings


class GraphSettings(MethodSettings):
    """Radius of a feasible step, and limits on the number of edges."""

    epsilon: float | Literal["quantile", "no_singleton"] = Field(
        "quantile", description="radius of one feasible step in encoded units, or the rule that finds it"
    )
    epsilon_quantile: float = Field(0.99, gt=0, le=1, description="the quantile of the rule `quantile`")
    strict: bool = Field(
        False, description="whether a step must be shorter than epsilon (true) or may equal it (false)"
    )
    max_edges: int = Field(
        50_000_000, gt=0, le=1_000_000_000, description="above this many expected edges, keep the nearest only"
    )
    nearest: int = Field(
        30, gt=0, le=10_000, description="steps kept out of each row where `max_edges` would be passed"
    )

    @field_validator("epsilon")
    @classmethod
    def _radius_is_positive(cls, value: float | str, info: ValidationInfo) -> float | str:
        if isinstance(value, float) and not 0 < value < math.inf:
            raise ValueError(f"{info.field_name} is {value:g}; expected a positive number, or the name of a rule")
        return value
