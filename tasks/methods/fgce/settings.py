"""Names of the ablations that lift no constraint of a single feature."""

import math
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ValidationInfo, field_validator

from schemas.audit.partition import Growth
from tasks.feasibility_graph.settings import GraphSettings

# --------------------------------------------------------------------------------------------------------------------
# Names of the ablations that lift no constraint of a single feature.


NOTHING, EPSILON = "nothing", "epsilon"
EVERY, EVERY_AND_EPSILON = "every constraint", "every constraint and epsilon"
NAMES = (NOTHING, EPSILON, EVERY, EVERY_AND_EPSILON)


# --------------------------------------------------------------------------------------------------------------------
# Settings of feasible group counterfactual explanations (FGCE), with what the two profiles set differently.
#
# ``default`` is what we would defend; ``paper`` reproduces published figures. docs/methods/fgce.md lists the
# differences.


class FgceSettings(GraphSettings):
    """Feasible group counterfactual explanations (FGCE): graph, greedy selection and the size-matched reference."""

    memory: ClassVar[Growth] = Growth(380, 9, "graph")
    by_default: ClassVar[bool] = True
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
        "relabelled_draws": 0,
    }

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
        description="most subsamples of the reference group per other group, for its infeasible share and burden; 0 "
        "for no size-matched reference",
    )
    first_draws: int = Field(
        10,
        ge=2,
        le=1000,
        description="subsamples for every measure; more are drawn for the share, or the burden, unless it lies outside "
        "the range of these by more than a tenth of itself",
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
    solver: Literal["cbc"] = Field("cbc", description="solver of integer programmes")
    solver_seconds: float = Field(
        30.0, gt=0, le=86_400, description="time limit of one integer programme; then it is a bound"
    )
    resolves: int = Field(
        25,
        ge=0,
        le=10_000,
        description="resamples of a group for which what was solved is solved anew, to show whether it hangs on few "
        "rows; 0: no ends",
    )
    curves: bool = Field(
        True,
        description="whether coverage, its areas and costs are computed at every k, d and c, and for parts of groups",
    )
    ablations: bool = Field(True, description="whether recourse is searched again with each constraint lifted")
    ablation_draws: int = Field(
        5, ge=0, le=1000, description="as size_matched_draws, for the searches with a rule lifted and for connectivity"
    )
    relabelled_draws: int = Field(
        199,
        ge=0,
        le=100_000,
        description="times that labels are drawn again within propensity strata, for the p of the infeasible share; "
        "0: none",
    )

    @field_validator("face", "shares")
    @classmethod
    def _each_once(cls, value: tuple[str | float, ...], info: ValidationInfo) -> tuple[str | float, ...]:
        if len(set(value)) != len(value):
            raise ValueError(f"{info.field_name} names {list(value)}; name each only once")
        return value

    @field_validator("bandwidth")
    @classmethod
    def _bandwidth_is_positive(cls, value: float | str, info: ValidationInfo) -> float | str:
        if isinstance(value, float) and not 0 < value < math.inf:
            raise ValueError(f"{info.field_name} is {value:g}; expected a positive number, or the name of a rule")
        return value

    def of_draws(self) -> Self:
        """Nothing is solved again: the range of an optimum is over the draws."""
        return self.model_copy(update={"resolves": 0})

    def repeated(self) -> Self:
        """Values alone: no curve, no reference at a group's size, and nothing solved again."""
        return self.model_copy(update={"curves": False, "size_matched_draws": 0, "resolves": 0})

    def short(self) -> Self:
        """The share without a route, its p and costs: no curve, no reference at a group's size, no rule lifted."""
        left_out = {"curves": False, "size_matched_draws": 0, "resolves": 0, "ablations": False, "ablation_draws": 0}
        return self.model_copy(update=left_out)

    def takes_long(self) -> str:
        """Of optima alone."""
        if not self.exact:
            return ""
        return (
            f"fgce.exact: hundreds of integer programmes, of at most {self.solver_seconds:g} s each; "
            "detect fgce may say nothing for minutes"
        )
