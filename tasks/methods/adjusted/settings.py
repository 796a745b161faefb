"""Settings of adjusted disparities."""

from typing import Any, ClassVar, Final, Literal

from pydantic import Field, field_validator

from schemas.audit.methods import MethodSettings
from schemas.audit.partition import Growth
from schemas.bounds import Strict

EFFECT: Final = "adjusted_effect"
"""The measure: without parameters that of the primary rung, by logit, over the group's own rows."""
OVERLAP: Final = "overlap_effect"
"""The overlap-weighted difference of the primary rung, reported with it."""
EXCHANGED: Final = "exchanged_effect"
"""What a given model does to a group by its own answer, with the attribute exchanged."""
PRICE: Final = "rate_spread_effect"
"""What similar borrowers of a group pay beyond the reference group, in percentage points."""
STANDARDISED: Final = "smd"
"""A difference of means in standard deviations, for information."""


class Comparators(Strict):
    """Comparator files: approved applicants who are no better than a denied one in any directed column."""

    columns: tuple[str, ...] | None = Field(
        None,
        description="directed columns that are compared; all columns with a direction (`constraint`, "
        "`verdicts.direction`) if null",
    )
    most: int = Field(10, ge=1, le=1000, description="comparators that are kept of each denied applicant")


class Alternatives(Strict):
    """The search for models as good as the fitted one that approve a group more nearly as often."""

    loss: float = Field(
        0.01, ge=0, lt=0.5, description="most that the AUC may fall below the base's. Declare it beforehand"
    )
    candidates: int = Field(300, ge=1, le=10_000, description="candidates that are tried")
    draws: int = Field(2_000, ge=200, le=100_000, description="resamples of the rows that tell the gain")
    splits: int = Field(
        5, ge=1, le=100, description="splits of the rows into three parts; the first tells the gain, all are counted"
    )


class AdjustedSettings(MethodSettings):
    """The denial ladder: which blocks of columns, which estimators, and how columns enter."""

    memory: ClassVar[Growth] = Growth(180, 1.4)

    by_default: ClassVar[bool] = True
    paper: ClassVar[dict[str, Any]] = {"terms": "none"}

    blocks: dict[str, tuple[str, ...]] = Field(
        {}, description="block -> control columns, in the order of the rungs; by role and name if left out"
    )
    primary: str | None = Field(
        None, description="the block whose rung is judged; the last one before `place` if null. Declare it beforehand"
    )
    estimators: tuple[Literal["logit", "lpm", "overlap", "aipw"], ...] = Field(
        ("logit", "lpm", "overlap", "aipw"), min_length=1, description="estimators of each rung"
    )
    judged: Literal["expected", "logit"] = Field(
        "expected",
        description="the estimate that is judged: observed less expected denials, or a logit with one odds ratio",
    )
    through: tuple[str, ...] | None = Field(
        None, description="controls that name the channel of an application; by name (branch, officer) if null"
    )
    cluster: str | None = Field(
        None,
        description="column whose values are clusters of dependent rows; if null the first of officer, underwriter, "
        "broker, branch, store, lender and tract that is read and has more than five values; `none`: independent rows",
    )
    cluster_bootstrap: bool = Field(False, description="wild cluster bootstrap with 999 draws, for few clusters")
    form: Literal["squared", "linear"] = Field(
        "squared", description="whether numbers enter with their squares, or alone as in textbooks"
    )
    terms: Literal["none", "selected"] = Field(
        "selected",
        description="whether hinges and products that predict denial or a group are added to the judged rung; none in "
        "the form `linear`",
    )
    cross: bool = Field(False, description="a further rung with the other protected attributes")
    splits: int = Field(
        20, ge=1, le=1000, description="splits of aipw; fewer where they have more than 200,000 rows together"
    )
    folds: int = Field(5, ge=2, le=50, description="folds of aipw")
    practice: Literal["auto", "always", "never"] = Field(
        "auto",
        description="whether applications are followed to ends, reasons, prices and places; auto: of HMDA",
    )
    minimum_events: int = Field(10, ge=1, le=1_000_000, description="fewest denials, and approvals, of a group")

    comparators: Comparators | None = Field(
        Comparators(), description="pairs of files to read next to each other; null makes none"
    )

    alternatives: Alternatives | None = Field(
        None, description="a search for less discriminatory alternatives to the fitted model; null makes none"
    )

    @field_validator("estimators")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            raise ValueError(f"each estimator is named once, got {', '.join(value)}")
        return value
