"""Settings of the methods: one frozen class each, with what the two profiles set differently.

``default`` is what we would defend; ``paper`` reproduces published figures. docs/methods.md lists the differences.
"""

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field


class FgceSettings(BaseModel):
    """Feasible group counterfactual explanations (FGCE): graph, greedy selection and the size-matched reference."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    paper: ClassVar[dict[str, Any]] = {
        "strict": True,
        "size_matched_draws": 0,
    }

    epsilon: float | Literal["quantile", "no_singleton"] = Field(
        "quantile",
        description="radius of one feasible step in encoded units, or the rule that finds it",
    )
    epsilon_quantile: float = Field(0.99, gt=0, le=1, description="the quantile of the rule `quantile`")
    strict: bool = Field(False, description="edge iff distance < epsilon (true) or <= epsilon (false)")
    max_edges: int = Field(50_000_000, gt=0, description="above this many expected edges, keep the nearest only")
    nearest: int = Field(30, gt=0, description="out-edges kept per row once max_edges would be passed")
    k: int = Field(10, gt=0, description="most counterfactuals selected per group")
    size_matched_draws: int = Field(
        40, ge=0, description="subsamples of the reference group per other group; fewer than 40 cannot give p < 0.05"
    )
