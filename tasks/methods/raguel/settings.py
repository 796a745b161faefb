"""Settings of RAGUEL: recourse costs, and rankings by them that represent every group fairly.

How hard each column is to change, and in which steps, is said with the column (``schemas.audit.column``).
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from schemas.audit.methods import MethodSettings
from schemas.audit.partition import Growth

Tolerance = Annotated[float, Field(gt=0, le=1)]


class RaguelSettings(MethodSettings):
    """Recourse-aware re-ranking (RAGUEL): distance of applicants from a favourable decision, and effects of offers."""

    memory: ClassVar[Growth] = Growth(175, 2.2)
    paper: ClassVar[dict[str, Any]] = {
        "rule": "strict",
        "direction": "both",
        "failure": "exit",
        "steps": False,
        "refits": 0,
    }

    listed: Literal["unfavourable", "all"] = Field(
        "unfavourable", description="who is ranked: those decided on unfavourably, or all (the paper's Table 6 fits it)"
    )
    target: Literal["boundary", "top"] = Field(
        "boundary",
        description="where recourse leads: to the boundary of the model; or, in a ranking without one, to a common "
        "target for all, the place of the applicant with the highest score",
    )
    source: Literal["exact", "ar", "mace", "nearest"] = Field(
        "exact",
        description="which system finds counterfactual points of a linear model: the least weighted distance, "
        "actionable recourse, the optimum of MACE, or the place of the nearest favoured applicant",
    )
    order: Literal["raguel", "fair_star", "foeir"] = Field(
        "raguel",
        description="which system ranks the whole list: Algorithm 1 with offers; FA*IR or FoEiR, which offer nothing",
    )
    rule: Literal["improve", "strict"] = Field(
        "improve",
        description="an offer counts if the ratio of costs is then at least 1 - delta (strict), or also if it is no "
        "lower than without the offer",
    )
    direction: Literal["worse_off", "both"] = Field(
        "worse_off", description="whether offers go to the group with the higher mean cost alone, or to any"
    )
    failure: Literal["skip", "exit"] = Field(
        "skip", description="where no offer helps: leave that rank unfair and go on, or copy the rest as it is"
    )
    tolerance: Tolerance = Field(
        1 / 3, description="share of a group's proper count by which its count in a part of the list may be off"
    )
    delta: float = Field(0.1, ge=0, le=1, description="how far below 1 the ratio of costs may be")
    probes: int = Field(200, ge=1, le=100_000, description="lower-ranked applicants that are tried for one rank")
    together: int = Field(3, ge=1, le=10, description="most columns that one offer changes")
    most: int | None = Field(
        None, ge=1, le=10_000, description="most columns in which a counterfactual point may differ; any number if null"
    )
    steps: bool = Field(
        True,
        description="whether counterfactual points lie whole steps away, as offers always do (paper: false)",
    )
    blocks: int = Field(10, ge=1, le=10_000, description="blocks of equal size that the list is cut into")
    block_column: str | None = Field(
        None,
        description="column whose bands, lowest first, give the blocks their sizes instead (such as rate brackets)",
    )
    reach: Literal["next", "any"] = Field(
        "next",
        description="whether applicants come into a block from the next one alone, or, in a second list, from any "
        "later one",
    )
    block_counts: tuple[Annotated[int, Field(ge=1, le=10_000)], ...] = Field(
        (5, 10, 15, 20, 25, 30, 35), description="numbers of blocks for which the ratio of costs is computed"
    )
    tolerances: tuple[Tolerance, ...] = Field(
        (1 / 2, 1 / 3, 1 / 5, 1 / 8), description="tolerances for which it is computed"
    )
    fewest: int = Field(
        30,
        ge=1,
        le=1_000_000,
        description="groups with fewer applicants in the list are left out (`too_few_in_category`)",
    )
    asked: int = Field(
        20,
        ge=1,
        le=10_000,
        description="nearest applicants whose place is tried as a counterfactual point, of a model that is not linear",
    )
    refits: int = Field(
        200,
        ge=0,
        le=10_000,
        description="resamples of rows on which the model and its threshold are refitted, for the interval of the "
        "ratio of recourse costs; 0: none",
    )
    alpha: float = Field(0.15, gt=0, lt=1, description="level of FA*IR")
    top: int = Field(1000, ge=1, le=100_000, description="ranks that FA*IR tests")

    @field_validator("block_counts", "tolerances")
    @classmethod
    def _each_once(cls, value: tuple[float, ...], info: ValidationInfo) -> tuple[float, ...]:
        if len(set(value)) != len(value):
            raise ValueError(f"{info.field_name} lists {list(value)}; list each only once")
        return value
