"""Settings of counterfactual situation testing (CST)."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from schemas.audit.methods import Methods, MethodSettings
from schemas.audit.partition import Size
from schemas.errors import SpecError
from tasks.counterfactuals.settings import MatchingSettings, MediatorSettings


class CstSettings(MethodSettings):
    """Counterfactual situation testing (CST), with situation testing (ST) and counterfactual fairness (CF)."""

    paper: ClassVar[dict[str, Any]] = {
        "scaling": "z_scores",
        "clip": False,
        "ties": "descending",
        "duplicates": "kept",
        "decimals": 3,
        "interval": "wald",
        "null_permutations": 0,
        "null_draws": 0,
    }

    generator: Literal["scm", "nearest", "gan", "quantile"] = Field(
        "scm",
        description="source of the counterfactual: the structural causal model, the most similar real applicant of "
        "the reference group, or the generators of `gcfn` (`gan`, `quantile`)",
    )
    matching: MatchingSettings = Field(MatchingSettings(), description="of the generator `nearest`")
    graph: Literal["edges", "saturated"] = Field(
        "edges",
        description="the causal graph: the edges of `causal_graph`; or `saturated`, every edge that `causal_order` "
        "allows, for those who know the order of the columns and not the edges",
    )
    causal_order: tuple[tuple[str, ...], ...] = Field(
        (),
        description="of `graph: saturated`: tiers of columns, causes first, such as [[race], [age], [income], [loan, "
        "ratio]]; protected attributes are in the first, and every feature has one",
    )
    ks: tuple[Annotated[int, Field(ge=1, le=1000)], ...] = Field(
        (15, 30, 50, 100), min_length=1, description="numbers of neighbours in the control and in the test group"
    )
    k: int = Field(30, ge=1, le=1000, description="the one of `ks` that findings and evidence are about")
    tau: float = Field(
        0.0, ge=0, lt=1, description="difference of the two shares above which a complainant is detected"
    )
    taus: tuple[Annotated[float, Field(ge=0, lt=1)], ...] = Field(
        (0.0, 0.05, 0.1, 0.2), description="further differences for which the share detected is computed"
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
        "range",
        description="numbers over their range in all data, or as z-scores of factual and counterfactual data "
        "separately",
    )
    clip: bool = Field(True, description="whether numbers are clipped at their 1st and 99th percentile before scaling")
    maximum_distance: float | None = Field(None, gt=0, description="neighbours further away than this do not count")
    attributes: tuple[str, ...] = Field(
        (), description="columns that the distance looks at; all features but the protected attribute's if none"
    )
    ties: Literal["ascending", "descending"] = Field("ascending", description="order of rows at equal distance, by id")
    duplicates: Literal["removed", "kept"] = Field(
        "removed",
        description="what happens where exact duplicates push a complainant out of its own k + 1 nearest: left out "
        "all the same, or the control group has k + 1 members",
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
        description="permutations of the labels with which all is run again, for a comparison with chance; 0: none",
    )
    null_complainants: int = Field(
        1000, ge=1, le=1_000_000, description="most complainants of a group looked at per permutation"
    )
    null: Literal["propensity", "labels"] = Field(
        "propensity",
        description="what labels are permuted within for the p of `st_effect`: 30 strata of the propensity of the "
        "group (tests that labels do not matter among equals), or combinations of the categories that the attribute "
        "does not reach (tests that the attribute moves nothing at all)",
    )
    null_draws: int = Field(
        199,
        ge=0,
        le=100_000,
        description="most permutations behind the p of `st_effect`; p is at least 1 / (1 + draws), and the 20th that "
        "is as high is the last",
    )
    null_rows: int = Field(
        15_000, ge=1, description="rows of a group and its reference above which the p of `st_effect` is not computed"
    )
    sensitivity: bool = Field(
        True, description="whether all is computed again without each edge out of the protected attribute"
    )
    memory_mb: int = Field(256, ge=1, le=1_000_000, description="memory for neighbours held at a time, in MB")

    @model_validator(mode="before")
    @classmethod
    def _names_null(cls, value: object) -> object:
        """YAML reads the bare key `null` as no key at all."""
        if not isinstance(value, dict):
            return value
        return {"null" if name is None else name: setting for name, setting in value.items()}

    @field_validator("ks", "taus")
    @classmethod
    def _each_once(cls, value: tuple[float, ...], info: ValidationInfo) -> tuple[float, ...]:
        if len(set(value)) != len(value):
            raise ValueError(f"{info.field_name} names {list(value)}; name each only once")
        return value

    @model_validator(mode="after")
    def _has_an_order(self) -> Self:
        if (self.graph == "saturated") != bool(self.causal_order):
            raise ValueError(
                "`graph: saturated` and `causal_order` belong together: give the tiers of the columns, protected "
                "attributes first, such as [[race], [age], [income], [loan, ratio]]"
            )
        return self

    @model_validator(mode="after")
    def _knows_k(self) -> Self:
        if self.k not in self.ks:
            raise ValueError(f"k is {self.k}, and ks are {list(self.ks)}; k has to be one of them")
        return self

    def short(self) -> Self:
        """Findings and effects at the k and tau of the audit, without permuted labels and lifted arrows."""
        left_out = {"ks": (self.k,), "taus": (self.tau,), "null_permutations": 0, "sensitivity": False}
        return self.model_copy(update=left_out)

    @property
    def imagines_everybody(self) -> bool:
        """Whether distances use the counterfactuals of all applicants, not only those of the queried ones."""
        return self.scaling == "z_scores"

    def forecast_mb(self, size: Size) -> float:
        """Evidence of 48 bytes a neighbour three times over, 1.6 kB a row, and batches of 8 bytes a pair at work.

        Measured on Texas 2022 at 12,500 and 50,000 rows, and on Boston: within 8 %. Of rows beyond a pool, of whom half
        are complete, the tables alone are read, 0.4 kB each (2,000,000 drawn rows: within 10 %).
        """
        batches = min(self.memory_mb, size.asked * size.pool * 8e-6)
        at_work = min(size.rows, 2 * size.pool)
        of_rows = 1.6e-3 * at_work + 0.4e-3 * (size.rows - at_work)
        return 200 + batches + 144e-6 * size.asked * (self.k + 1) + of_rows

    def faults(self, methods: Methods) -> Iterator[SpecError]:
        """It trains no generators of mediators itself."""
        trained = methods.of(MediatorSettings)
        if self.generator in ("gan", "quantile") and (trained is None or trained.generator != self.generator):
            message = (
                f"{self.generator} takes the mediators that GCFN's generators imagine; "
                f"add `gcfn: {{generator: {self.generator}}}` to the methods"
            )
            yield SpecError(message, ("generator",))
