"""Settings of counterfactual explanation consistency (CEC), and of the nets that are trained for it inside an audit.

Scope: what a user chooses, and what is compared. Settings of one training run:
``tasks.numerics.networks.network``.
"""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from schemas.audit.methods import MethodSettings
from schemas.audit.partition import Growth
from tasks.counterfactuals.settings import MatchingSettings

Mitigation = Literal[
    "threshold_optimizer", "adversarial", "grid_search", "exponentiated_gradient", "disparate_impact_remover"
]


class CecTraining(MethodSettings):
    """Nets that are trained on the audit's rows in cross-validation, and held against each other."""

    paper: ClassVar[dict[str, Any]] = {"steps": 32, "pair_share": 1.0}

    attributes: tuple[str, ...] = Field(
        (), description="protected attributes whose groups nets are trained for; all that cross no columns if none"
    )
    folds: int = Field(5, ge=2, le=20, description="folds of the cross-validation")
    rows: int | None = Field(
        None, ge=50, description="most rows of a group and the reference group together that are used; all if null"
    )
    epochs: int = Field(30, ge=1, le=10_000, description="passes over the training rows")
    batch: int = Field(64, ge=2, le=1_000_000, description="rows of a batch")
    learning_rate: float = Field(3e-4, gt=0, description="step size of Adam")
    hidden: tuple[Annotated[int, Field(ge=1, le=4096)], ...] = Field(
        (128, 64), min_length=1, description="units of each hidden layer"
    )
    activation: Literal["relu", "softplus", "silu"] = Field("relu", description="activation of the hidden layers")
    dropout: float = Field(0.2, ge=0, lt=1, description="share of hidden units that are dropped in training")
    lambda_eo: float = Field(1.0, ge=0, le=1e6, description="weight of the gaps between groups in error rates")
    lambda_cec: float = Field(1.0, ge=0, le=1e6, description="weight of the inconsistency of reasons")
    steps: int = Field(8, ge=1, le=1000, description="midpoints of each path of attributions (paper: T = 32)")
    pair_share: float = Field(0.5, gt=0, le=1, description="share of each batch whose pairs are explained (paper: 1)")
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="where nets are trained; auto: on a CUDA device if there is one, which moves last digits"
    )
    ablation: bool = Field(True, description="whether nets with only one of the two added terms are trained too")
    grid: tuple[Annotated[float, Field(gt=0, le=1e6)], ...] = Field(
        (), description="values that both lambdas take, in all pairs (paper: 0.1, 0.5, 1, 2, 5 and 10); none: no grid"
    )
    mitigations: tuple[Mitigation, ...] = Field(
        ("threshold_optimizer", "adversarial", "grid_search", "disparate_impact_remover"),
        description="mitigations trained on the same rows; `exponentiated_gradient` takes longer than all others "
        "together",
    )
    fits: int = Field(10, ge=2, le=1000, description="most nets that a reduction fits: grid_search and the gradient")

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        for name in ("attributes", "grid", "mitigations"):
            value = getattr(self, name)
            if len(set(value)) != len(value):
                raise ValueError(f"{name} lists {list(value)}; list each only once")
        return self


class CecSettings(MatchingSettings):
    """Counterfactual explanation consistency (CEC): whether a model has the same reasons for comparable applicants."""

    memory: ClassVar[Growth] = Growth(235, 8.5, "asked", 1.5)
    paper: ClassVar[dict[str, Any]] = {"winsorise": None, "relabelled_draws": 0}
    trained: ClassVar[dict[str, type[MethodSettings]]] = {"training": CecTraining}

    k: int = Field(
        1,
        ge=1,
        le=1000,
        description="nearest applicants of the other group over whom an applicant's CEC and its floor are means; "
        "match, flip and features are of the nearest (paper: 1)",
    )
    theta: float = Field(
        0.3, ge=0, le=1, description="CEC up to which two explanations count as the same (the paper states none)"
    )
    theta_steps: int = Field(
        100,
        ge=0,
        le=1000,
        description="steps of theta from 0 to 1 for which the shares of the four regimes are computed; 0: none",
    )
    pairs: Literal["reference", "both_ways", "all"] = Field(
        "both_ways",
        description="further pairs of groups that are matched: none, the reference group with each group, or every "
        "group with every other",
    )

    substitute: bool = Field(
        False, description="whether differences along the path may replace the gradient of a model without one (trees)"
    )
    relabelled_draws: int = Field(
        99,
        ge=0,
        le=9999,
        description="relabellings of the groups against which `cec_above_own_group` is tested; 0: none. Only for "
        "models with attributions in closed form",
    )
    refits: int = Field(
        0,
        ge=0,
        le=1000,
        description="times that rows are resampled and the model is fitted again, for the interval of CEC above the "
        "own group (20 will do); 0: none",
    )
    training: CecTraining | None = Field(
        None, description="nets that are trained with and without consistent reasons; none if null: training is long"
    )

    @model_validator(mode="after")
    def _tested_with_the_nearest(self) -> Self:
        if self.k > 1 and (self.relabelled_draws or self.refits or not self.replacement):
            raise ValueError(
                f"k is {self.k}; relabellings and refits compare with the nearest applicant alone, and each takes one "
                "without replacement: set relabelled_draws: 0, refits: 0 and replacement: true, or k: 1"
            )
        return self

    @field_validator("refits")
    @classmethod
    def _have_a_spread(cls, value: int) -> int:
        if value == 1:
            raise ValueError("one refit has no spread; ask for 2 or more (20), or for none")
        return value
