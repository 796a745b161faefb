"""Parts ``verdicts``, ``thresholds``, ``bootstrap``, ``disclosure`` and ``expected``: limits, levels, days.

The defaults are choices of this project (docs/verdicts.md): no statute or examiner's manual gives such a number.
"""

import math
import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from schemas.artifact import Artifact
from schemas.bounds import Strict
from schemas.questions import refuse_before
from schemas.terms import SMALLEST, Theory


def _can_be_kept(value: float) -> float:
    if value <= 0:
        raise ValueError(
            f"{value:g} is a limit that no fair lender can be shown to keep, as every interval has width; "
            "set one above 0, or null for none"
        )
    return value


def _below_parity(value: float) -> float:
    if not 0 < value < 1:
        raise ValueError(f"{value:g} is no ratio that can be kept and missed; set one above 0 and below 1, or null")
    return value


Effect = Annotated[float, AfterValidator(_can_be_kept), Field(lt=1), "above 0, below 1"]
Ratio = Annotated[float, AfterValidator(_below_parity), "above 0, below 1"]


class RecourseLimits(Strict):
    """Limits of the question ``path_to_approval``."""

    difference: Effect | None = Field(
        0.05, description="largest infeasible share above that of relabelled groups (FGCE); adds a breach, never a pass"
    )
    ratio: Ratio | None = Field(
        0.80, description="smallest ratio of mean recourse costs, reference group over group (RAGUEL)"
    )


class SimilarLimits(Strict):
    """The limit of similar applicants: the least of three numbers, and no less than a fourth.

    Two points are much where one application of a hundred is denied. A number in place of the mapping is ``points``
    alone.
    """

    points: Effect = Field(0.02, description="largest adjusted difference of denial; 0.02 is 2 percentage points")
    times: float | None = Field(0.5, gt=0, description="times the expected denials; null: not looked at")
    fifth: float | None = Field(0.2, gt=0, lt=1, description="times the expected approvals; null: not looked at")
    least: float = Field(0.005, ge=0, lt=1, description="the limit is no smaller")


class Limits(Strict):
    """Limits: the largest tolerated effect by question; null: the question is answered without a verdict."""

    similar_applicants: SimilarLimits | None = Field(
        SimilarLimits(), description="adjusted difference of denial; a number in place of the mapping is `points` alone"
    )
    causal_model: Effect | None = Field(0.05, description="mean difference of counterfactual situation testing")
    approval_rates: Ratio | None = Field(0.80, description="smallest ratio of approval rates, group over reference")
    path_to_approval: RecourseLimits | None = Field(RecourseLimits(), description="limits of FGCE and RAGUEL")
    model_reasons: Effect | None = Field(None, description="CEC score above that of pairs within the group")
    part: Effect | None = Field(0.05, description="adjusted difference of denial in a part of a group")
    rate_spread: float | None = Field(
        0.10,
        gt=0,
        le=100,
        description="difference of rate spread among similar borrowers, in percentage points (ours; no source has one)",
    )
    undecided: Effect | None = Field(0.05, description="excess of applications without a decision that is a finding")

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, raw: Any) -> Any:
        """Keys of earlier versions are refused; a number for similar applicants is ``points`` alone."""
        if not isinstance(raw, dict):
            return raw
        refuse_before(raw)
        points = raw.get("similar_applicants")
        if isinstance(points, int | float) and not isinstance(points, bool):
            return {**raw, "similar_applicants": {"points": points, "times": None, "fifth": None, "least": 0.0}}
        return raw


class Unseen(Strict):
    """Declared strength of columns that the table does not have, as partial R2 given the columns in it.

    A strength of 0 is ``columns_complete: true`` by another name, and is refused.
    """

    denial: float = Field(
        0.146, gt=0, lt=1, description="share of the unexplained variance of denial that they explain"
    )
    group: float = Field(
        0.072, gt=0, lt=1, description="share of the unexplained variance of membership that they explain"
    )

    @property
    def bias(self) -> float:
        """How far they move an effect, per se sqrt(df) of its linear fit (Cinelli and Hazlett 2020, section 4.1)."""
        return float((self.denial * self.group / (1 - self.group)) ** 0.5)


class Monitoring(Strict):
    """How years are held against the limits one after the other."""

    rule: Literal["confidence_sequence", "bonferroni", "none"] = Field(
        "confidence_sequence",
        description="one interval that may be looked at after every year; the level shared by a fixed number of "
        "`years`; or each year alone",
    )
    years: int | None = Field(None, ge=1, le=100, description="number of years of the plan, for `bonferroni`")

    @model_validator(mode="after")
    def _years_of_bonferroni(self) -> Self:
        if (self.rule == "bonferroni") != (self.years is not None):
            raise ValueError("`years` belongs to `rule: bonferroni`, which needs it; give both, or neither")
        return self


class PartSettings(Strict):
    """Which parts of a group are looked at."""

    minimum_n: int = Field(50, ge=10, description="fewest members, and fewest reference applications, of a part")
    by: Literal["all"] | tuple[str, ...] = Field(
        "all", description="columns that divide a group into parts; [] turns it off, and no group is then within"
    )
    draws: int = Field(1000, ge=200, le=100_000, description="draws of the largest effect in a part")


GATE = (Theory.SIMILAR_APPLICANTS, Theory.CAUSAL_MODEL, Theory.APPROVAL_RATES)
"""Questions that decide the exit code where the spec names none; and ``own_limits`` where it has thresholds."""


class Verdicts(Strict):
    """Settings of the states of an audit."""

    alpha: float = Field(0.05, gt=0, le=0.2, description="one-sided level of all comparisons of a question together")
    limits: Limits = Field(Limits(), description="largest tolerated effect by question; null: no limits at all")
    minimum_n: int = Field(30, ge=2, description="fewest applications of a group for a verdict")
    minimum_events: int = Field(10, ge=1, description="fewest denials, and fewest approvals, of a group for a verdict")
    gate: tuple[Theory, ...] | None = Field(
        None,
        min_length=1,
        description="questions that decide the exit code; similar_applicants, causal_model and approval_rates if null",
    )
    across: Literal["theory", "theories"] = Field(
        "theory", description="whether comparisons are counted within a theory, or over all of them"
    )
    decision_makers: tuple[Literal["lender", "model"], ...] | None = Field(
        None, min_length=1, description="whose decisions are judged; if null, the lender's where methods look at them"
    )
    columns_complete: bool | Literal["CHECK"] | None = Field(
        None,
        description="whether the table holds every column that the lender decided by; null and `CHECK` mean false",
    )
    unseen: Unseen = Field(Unseen(), description="assumed strength of the columns that the table does not hold")
    parts: PartSettings = PartSettings()
    copies: Literal["once", "keep"] = Field(
        "once", description="whether one of several equal rows is audited where chance makes far fewer, or all are"
    )
    undecided: Literal["bound", "ignore"] = Field(
        "bound", description="whether applications without a decision bound the effect on similar applicants"
    )
    frame: str = Field(
        "us-2026",
        max_length=200,
        description="legal frame that the report names next to the questions; it decides nothing",
    )
    monitoring: Monitoring = Monitoring()
    direction: dict[str, Literal["up", "down", "none"]] = Field(
        {},
        description="column -> whether more of it is better for the applicant (up), worse (down), or neither (none); "
        "its `constraint` if left out. Used for one check: whether favourable and unfavourable are exchanged",
    )

    @field_validator("gate", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            refuse_before(key for key in value if isinstance(key, str))
        return value

    @field_validator("limits", mode="before")
    @classmethod
    def _no_limits(cls, value: Any) -> Any:
        return dict.fromkeys(Limits.model_fields) if value is None else value

    @model_validator(mode="after")
    def _once(self) -> Self:
        for name in ("gate", "decision_makers"):
            declared = getattr(self, name)
            if declared is not None and len(set(declared)) != len(declared):
                raise ValueError(f"{name} names {[str(entry) for entry in declared]}; name each only once")
        return self

    @property
    def complete(self) -> bool:
        """Whether the table is declared to hold every column that the lender decided by; without a declaration: no."""
        return self.columns_complete is True


class Threshold(Strict):
    """A limit fixed before the run. The whole interval must lie on one side for a verdict."""

    measure: str = Field(description="name of a measure, as `evenhand measures` prints it")
    method: str | None = Field(
        None, description="only for measures of this method; `outcomes` stands for approvals and denials"
    )
    decision_maker: Literal["model", "lender"] | None = Field(None, description="only for this decision maker")
    parameters: dict[str, float | str] = Field(
        {}, description="only for measures with these parameters; if none, for the one without any where there is one"
    )
    minimum: float | None = Field(None, description="smallest value allowed; give one of the two at least")
    maximum: float | None = Field(None, description="largest value allowed")

    @model_validator(mode="after")
    def _one_side_at_least(self) -> Self:
        if self.minimum is None and self.maximum is None:
            raise ValueError("a threshold needs a minimum or a maximum")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum:g} is above maximum {self.maximum:g}: no value can keep both")
        return self


MOST_DRAWS: Final = 100_000
_SHOWN: Final = 10**18
"""Largest number that a message tells."""
_A_DAY: Final = 39_000_000
"""Draws of the measures of the bundled audit that a day is enough for: 2.2 ms each, measured on one core."""


class Bootstrap(Strict):
    """How intervals are made."""

    draws: int = Field(
        1000,
        ge=100,
        description="resamples for intervals of means, at most 100,000; 5 at least have to lie outside the level",
    )
    level: float = Field(0.95, ge=0.5, le=0.999, description="level of all intervals")
    minimum_n: int = Field(30, ge=2, le=1_000_000, description="fewer units than this: inconclusive")

    @field_validator("draws")
    @classmethod
    def _can_be_drawn(cls, value: int) -> int:
        if value > MOST_DRAWS:
            if value > _SHOWN:
                raise ValueError(f"so many draws never end; at most {MOST_DRAWS:,}")
            took = "" if value < _A_DAY else f" would take about {value / _A_DAY:,.0f} days"
            raise ValueError(f"{value:,} draws{took or ' are too many'}; at most {MOST_DRAWS:,}")
        return value

    @model_validator(mode="after")
    def _reaches_its_level(self) -> Self:
        beyond = self.draws * (1 - self.level)
        if beyond < 5 - 1e-9:
            least = math.ceil(5 / (1 - self.level) - 1e-9)
            raise ValueError(
                f"of {self.draws:,} draws {beyond:.2g} lie outside level {self.level:g}, and an interval needs 5; "
                f"set draws to {least:,}, or a lower level"
            )
        return self


class Expected(Strict):
    """When a run of the audit is due, so that one which never came is noticed."""

    every: Literal["day", "week", "month", "quarter", "year"] = Field(
        description="period that a run is due for, by the calendar and UTC; a week ends on Sunday"
    )
    by: str = Field(
        "1 day", description="days after the end of the period in which the run may come, such as `10 days`"
    )

    @field_validator("by")
    @classmethod
    def _is_days(cls, value: str) -> str:
        if not re.fullmatch(r"\d{1,3} days?", value, re.ASCII):
            raise ValueError(f"expected days after the end of the period, such as `10 days`, got {value[:40]!r}")
        return value

    @property
    def days(self) -> int:
        """Whole days after the end of the period in which the run may come."""
        return int(self.by.split()[0])


class Earlier(Strict):
    """An earlier run that is published, and what it hands on to later runs over the same rows."""

    run: str = Field(min_length=1, description="id of the run; in a spec, the id stands in place of the mapping")
    tables: tuple[Artifact, ...] = Field((), description="looked up in the lake when an audit starts")

    @model_validator(mode="before")
    @classmethod
    def _named(cls, raw: Any) -> Any:
        """A run id alone will do."""
        return {"run": raw} if isinstance(raw, str) else raw


class Disclosure(Strict):
    """What is withheld from everything published."""

    profile: Literal["internal", "published", "public", "strict", "official"] = Field(
        "strict",
        description="`internal`: nothing is withheld, not for publication. `published`: for rows that anyone may "
        "download (default for public HMDA). `public`: counts of 1 to 4 are withheld. `strict`: 1 to 7, "
        "and counts are rounded to 5. `official`: 1 to 10, and counts are rounded to 10",
    )
    beside: tuple[Earlier, ...] = Field(
        (),
        description="ids of earlier published runs over the same rows; protected runs of the lake are included "
        "without being named",
    )

    @property
    def smallest(self) -> int:
        """Fewest people that the profile reports on."""
        return SMALLEST[self.profile]
