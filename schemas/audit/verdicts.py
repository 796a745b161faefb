"""The part ``verdicts`` of the spec: what the states of an audit are judged by."""

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from schemas.audit.limits import Limits, Monitoring, Unseen
from schemas.bounds import Strict
from schemas.terms import Theory

GATE = (Theory.DIRECT, Theory.TOTAL, Theory.OUTCOME)
"""Theories that decide the exit code where the spec names none; and ``own`` where it has thresholds."""


class Verdicts(Strict):
    """Settings of the states of an audit."""

    alpha: float = Field(0.05, gt=0, le=0.2, description="one-sided level, familywise within a theory")
    limits: Limits = Limits()
    minimum_n: int = Field(30, ge=2, description="fewest applications of a group for a verdict")
    minimum_events: int = Field(10, ge=1, description="fewest denials, and fewest approvals, of a group for a verdict")
    gate: tuple[Theory, ...] | None = Field(
        None, min_length=1, description="theories that decide the exit code; direct, total and outcome if null"
    )
    across: Literal["theory", "theories"] = Field(
        "theory", description="whether comparisons are counted within a theory, or over all of them"
    )
    decision_makers: tuple[Literal["lender", "model"], ...] | None = Field(
        None, min_length=1, description="whose decisions are judged; the lender's where methods look at them, if null"
    )
    columns_complete: bool | Literal["CHECK"] | None = Field(
        None,
        description="whether the table holds every column that the lender decided by; if it is not said, no",
    )
    unseen: Unseen = Field(Unseen(), description="strength of the columns that the table lacks, where it lacks some")
    frame: str = Field(
        "us-2026", max_length=200, description="legal frame that the report names beside the theories; decides nothing"
    )
    monitoring: Monitoring = Monitoring()
    direction: dict[str, Literal["up", "down", "none"]] = Field(
        {},
        description="column -> whether more of it is better for the applicant (up), worse (down), or neither (none); "
        "its `constraint` if left out. Used for one check: whether favourable and unfavourable are exchanged",
    )

    @field_validator("limits", mode="before")
    @classmethod
    def _no_limits(cls, value: Any) -> Any:
        return dict.fromkeys(Limits.model_fields) if value is None else value

    @model_validator(mode="after")
    def _once(self) -> Self:
        for name in ("gate", "decision_makers"):
            said = getattr(self, name)
            if said is not None and len(set(said)) != len(said):
                raise ValueError(f"{name} names {[str(each) for each in said]}; name each only once")
        return self

    @property
    def complete(self) -> bool:
        """Whether the table is said to hold every column that the lender decided by; not said is no."""
        return self.columns_complete is True
