"""Settings of counterfactual explanation consistency (CEC)."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from schemas.audit.methods.base import MethodSettings
from schemas.audit.methods.cec_training import CecTraining
from schemas.audit.methods.matching import MatchingSettings


class CecSettings(MatchingSettings):
    """Counterfactual explanation consistency (CEC): whether a model has the same reasons for comparable applicants."""

    paper: ClassVar[dict[str, Any]] = {"winsorise": None}
    trained: ClassVar[dict[str, type[MethodSettings]]] = {"training": CecTraining}

    theta: float = Field(
        0.3, ge=0, le=1, description="CEC up to which two explanations count as the same (the paper states none)"
    )
    theta_steps: int = Field(
        100,
        ge=0,
        le=1000,
        description="shares of the four regimes are told for this many steps of theta from 0 to 1; 0: none",
    )
    pairs: Literal["reference", "both_ways", "all"] = Field(
        "both_ways",
        description="which groups are matched beside each group with the reference group: none, the reference group "
        "with each group, or every group with every other",
    )

    substitute: bool = Field(
        False, description="whether differences along the path may stand in for a model that has no gradient (trees)"
    )
    training: CecTraining | None = Field(
        None, description="nets that are trained with and without consistent reasons; none if null: training is long"
    )
