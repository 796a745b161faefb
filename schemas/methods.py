"""Settings of the methods: one frozen class each, with what the two profiles set differently.

``default`` is what we would defend; ``paper`` reproduces published figures. docs/methods.md lists the differences.
"""

import math
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from schemas.matching import MatchingSettings
from schemas.method import MethodSettings
from schemas.training import CecTraining


class FgceSettings(MethodSettings):
    """Feasible group counterfactual explanations (FGCE): graph, greedy selection and the size-matched reference."""

    paper: ClassVar[dict[str, Any]] = {
        "strict": True,
        "weights": "authors",
        "kauc": "needed",
        "size_matched_draws": 0,
        "exact": True,
        "exact_pairs": 10_000_000,
        "resolves": 0,
        "ablations": False,
        "ablation_draws": 0,
    }

    epsilon: float | Literal["quantile", "no_singleton"] = Field(
        "quantile",
        description="radius of one feasible step in encoded units, or the rule that finds it",
    )
    epsilon_quantile: float = Field(0.99, gt=0, le=1, description="the quantile of the rule `quantile`")
    strict: bool = Field(False, description="edge iff distance < epsilon (true) or <= epsilon (false)")
    max_edges: int = Field(
        50_000_000, gt=0, le=1_000_000_000, description="above this many expected edges, keep the nearest only"
    )
    nearest: int = Field(30, gt=0, le=10_000, description="out-edges kept per row once max_edges would be passed")
    cost: Literal["vector", "path", "hops"] = Field(
        "vector", description="L2 distance of the two, cheapest path between them, or steps on the shortest one"
    )
    weights: Literal["quotient", "product", "authors"] = Field(
        "quotient",
        description="edge weight of `path`: distance / density, density * distance (as printed), distance^2 / density",
    )
    bandwidth: float | Literal["scott", "authors", "cross_validated"] = Field(
        "scott", description="bandwidth of the density, in encoded units, or the rule that finds it"
    )
    face: tuple[Literal["vector", "path"], ...] = Field(
        ("vector",), description="costs by which each person's own optimum (FACE) is compared with the selection"
    )
    k: int = Field(10, gt=0, le=100, description="most counterfactuals selected per group")
    size_matched_draws: int = Field(
        40,
        ge=0,
        le=1000,
        description="subsamples of the reference group per other group; 0 for no size-matched reference",
    )
    kauc: Literal["all", "needed"] = Field(
        "all", description="limits on cost of kAUC: all of them, or from 0.7 of the dearest group's d0 at k0 (paper)"
    )
    shares: tuple[Annotated[float, Field(gt=0, le=1)], ...] = Field(
        (0.25, 0.5, 0.75, 1.0), description="shares of the coverable factuals for which the least cost is sought"
    )
    exact: bool = Field(
        False,
        description="whether least costs and Algorithm 1 are solved to the optimum, on every subsample and resample: "
        "hundreds of integer programmes each, minutes instead of seconds",
    )
    exact_pairs: int = Field(
        200_000,
        ge=0,
        le=1_000_000_000,
        description="pairs of factual and candidate up to which a group's optima are solved exactly",
    )
    solver: Literal["cbc", "highs"] = Field("cbc", description="solver of integer programmes")
    solver_seconds: float = Field(
        30.0, gt=0, le=86_400, description="time limit of one integer programme; then it is a bound"
    )
    resolves: int = Field(
        100,
        ge=0,
        le=10_000,
        description="resamples of a group for which what was solved is solved anew; 0: no interval",
    )
    ablations: bool = Field(True, description="whether recourse is searched again with each constraint lifted")
    ablation_draws: int = Field(
        5, ge=0, le=1000, description="as size_matched_draws, for the searches with a rule lifted and for connectivity"
    )

    @field_validator("face", "shares")
    @classmethod
    def _each_once(cls, value: tuple[str | float, ...], info: ValidationInfo) -> tuple[str | float, ...]:
        if len(set(value)) != len(value):
            raise ValueError(f"{info.field_name} names {list(value)}; name each only once")
        return value

    @field_validator("epsilon", "bandwidth")
    @classmethod
    def _positive(cls, value: float | str, info: ValidationInfo) -> float | str:
        if isinstance(value, float) and not 0 < value < math.inf:
            raise ValueError(f"{info.field_name} is {value:g}; expected a positive number, or the name of a rule")
        return value


class CstSettings(MethodSettings):
    """Counterfactual situation testing (CST); situation testing (ST) and counterfactual fairness (CF) beside it."""

    paper: ClassVar[dict[str, Any]] = {
        "scaling": "z_scores",
        "clip": False,
        "ties": "descending",
        "duplicates": "kept",
        "decimals": 3,
        "interval": "wald",
        "null_permutations": 0,
    }

    generator: Literal["scm", "nearest", "gan", "quantile"] = Field(
        "scm",
        description="what a complainant would have been: by the structural causal model; the most comparable real "
        "applicant of the reference group; or with the mediators that the generators of `gcfn` imagine (`gan`, "
        "`quantile`: as methods.gcfn.generator says)",
    )
    matching: MatchingSettings = Field(MatchingSettings(), description="of the generator `nearest`")
    ks: tuple[Annotated[int, Field(ge=1, le=1000)], ...] = Field(
        (15, 30, 50, 100), min_length=1, description="numbers of neighbours in the control and in the test group"
    )
    k: int = Field(30, ge=1, le=1000, description="the one of `ks` that findings and evidence are about")
    tau: float = Field(
        0.0, ge=0, lt=1, description="difference of the two shares above which a complainant is detected"
    )
    taus: tuple[Annotated[float, Field(ge=0, lt=1)], ...] = Field(
        (0.0, 0.05, 0.1, 0.2), description="differences for which the share detected is told, beside tau"
    )
    alpha: float = Field(0.05, gt=0, lt=0.5, description="level of the one-sided test of each complainant")
    interval: Literal["newcombe", "agresti_caffo", "wald"] = Field(
        "newcombe", description="interval of the difference of the two shares; p is made from the same one"
    )
    distance: Literal["overlap", "hvdm", "propensity"] = Field(
        "overlap",
        description="how like two applicants are: mean over attributes with 0 or 1 for categories; the same with "
        "heterogeneous value differences; or the difference of their propensity scores",
    )
    scaling: Literal["range", "z_scores"] = Field(
        "range", description="numbers over their range in all data, or as z-scores of factual and imagined data apart"
    )
    clip: bool = Field(True, description="whether numbers are clipped at their 1st and 99th percentile before scaling")
    maximum_distance: float | None = Field(None, gt=0, description="neighbours further away than this do not count")
    attributes: tuple[str, ...] = Field(
        (), description="columns that the distance looks at; all features but the protected attribute's if none"
    )
    ties: Literal["ascending", "descending"] = Field("ascending", description="order of rows at equal distance, by id")
    duplicates: Literal["removed", "kept"] = Field(
        "removed",
        description="whether a complainant who is not among its own k + 1 nearest, for exact duplicates, is still left "
        "out, or the control group has k + 1 members; and whether duplicates crowd a counterfactual out of its centre",
    )
    decimals: int | None = Field(
        None,
        ge=1,
        le=15,
        description="digits to which differences, their bounds and the normal quantile are rounded (paper: 3)",
    )
    null_permutations: int = Field(
        20,
        ge=0,
        le=1000,
        description="times that the labels are permuted to see what is found where there is nothing to find",
    )
    null_complainants: int = Field(
        1000, ge=1, le=1_000_000, description="most complainants of a group looked at per permutation"
    )
    sensitivity: bool = Field(
        True, description="whether all is computed again without each edge out of the protected attribute"
    )
    memory_mb: int = Field(256, ge=1, le=1_000_000, description="memory for neighbours held at a time, in MB")

    @field_validator("ks", "taus")
    @classmethod
    def _each_once(cls, value: tuple[float, ...], info: ValidationInfo) -> tuple[float, ...]:
        if len(set(value)) != len(value):
            raise ValueError(f"{info.field_name} names {list(value)}; name each only once")
        return value

    @model_validator(mode="after")
    def _knows_k(self) -> Self:
        if self.k not in self.ks:
            raise ValueError(f"k is {self.k}, and ks are {list(self.ks)}; k has to be one of them")
        return self


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
