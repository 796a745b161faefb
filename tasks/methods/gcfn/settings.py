"""Settings of the generative counterfactual fairness network (GCFN), and of the fair predictor trained inside an audit.

Its generators are those of ``tasks.counterfactuals.settings``. Scope: what a user
chooses. Settings of one predictor: ``tasks.methods.gcfn.algorithm.predictors``.
"""

from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from schemas.audit.methods import MethodSettings
from schemas.audit.partition import Growth
from tasks.counterfactuals.settings import MediatorSettings, Rate, Units, Weight


class GcfnPrediction(MethodSettings):
    """Predictors of the outcome with and without the regularisation, held against each other on held-out rows."""

    paper: ClassVar[dict[str, Any]] = {"lipschitz": 1.0}

    lambdas: tuple[Weight, ...] = Field(
        (0.0, 0.1, 0.5, 1.0, 1.5, 2.0), min_length=1, description="weights of the worst generator's term"
    )
    test: float = Field(0.2, gt=0, lt=1, description="share of the rows that predictors are measured on")
    hidden: tuple[Units, ...] = Field((64,), min_length=1, description="units of each hidden layer")
    epochs: int = Field(30, ge=1, le=10_000, description="passes over the training rows")
    batch: int = Field(256, ge=1, le=1_000_000, description="rows of a batch")
    learning_rate: Rate = Field(5e-3, description="step size of Adam")
    lipschitz: float | None = Field(
        None, gt=0, description="how fast the logit may change with standardised inputs (paper: 1); no bound if null"
    )
    worst: Literal["batch", "row"] = Field(
        "batch", description="whose worst generator counts: a batch's, or each row's"
    )
    gammas: tuple[Weight, ...] = Field(
        (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0), description="weights of unfairness in the utility"
    )
    bins: int = Field(20, ge=2, le=200, description="equal intervals by which scores are counted")

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        for name in ("lambdas", "gammas"):
            value = getattr(self, name)
            if len(set(value)) != len(value):
                raise ValueError(f"{name} lists {list(value)}; list each only once")
        return self


class GcfnSettings(MediatorSettings):
    """Generative counterfactual fairness network (GCFN): mediators as they would have been, and what then follows."""

    memory: ClassVar[Growth] = Growth(190, 4.6)
    paper: ClassVar[dict[str, Any]] = {
        "alpha": 1.0,
        "adversarial": "algorithm_1",
        "among_alike": False,
        "decay_from": 1.0,
    }
    trained: ClassVar[dict[str, type[MethodSettings]]] = {"prediction": GcfnPrediction}

    wide: float = Field(
        0.25,
        gt=0,
        description="spread of the networks, in deviations of a mediator, above which a person is not identified",
    )
    quantile: float = Field(
        0.95, gt=0, lt=1, description="quantile of the score's change that is reported next to its mean"
    )
    refits: int = Field(
        0,
        ge=0,
        le=1000,
        description="resamples on which one generator is trained again, for the interval of `share_changed`; 20 will "
        "do, at twice the time of ten networks; 0: none",
    )
    prediction: GcfnPrediction | None = Field(
        None, description="predictors that are trained to be fair by these mediators; none if null: it takes minutes"
    )

    @field_validator("refits")
    @classmethod
    def _have_a_spread(cls, value: int) -> int:
        if value == 1:
            raise ValueError("one refit has no spread; ask for 2 or more (20), or for none")
        return value

    @property
    def several(self) -> bool:
        """Whether several generators are trained; their spread shows which applicants are not identified."""
        return self.generator == "gan" and self.networks > 1
