"""The part ``columns`` of the spec: how one column is read, encoded and allowed to change."""

import math
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, StrictBool, model_validator

from schemas.audit.source import Code
from schemas.blocks import NAME
from schemas.bounds import Ascending, Strict
from schemas.terms import Constraint, Kind, Role


def _several(value: object) -> object:
    """One role may stand for a list of it."""
    return (value,) if isinstance(value, str) else value


class Recourse(Strict):
    """How an applicant can change a column."""

    weight: float = Field(1.0, gt=0, description="how hard it is to change, beside the other columns' weights")
    step: float | None = Field(
        None,
        gt=0,
        description="smallest change, in the column's units; any amount if null, and of ordered categories one of them",
    )
    bounds: Ascending = Field(
        (None, None), description="values between which an offer has to lie, in the column's units"
    )

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds as numbers, infinite where there is none."""
        low, high = self.bounds
        return -math.inf if low is None else low, math.inf if high is None else high


class ColumnSpec(Strict):
    """How one column is read, encoded and allowed to change."""

    type: Kind
    role: Annotated[tuple[Role, ...], BeforeValidator(_several)] = Field(
        (Role.FEATURE,), min_length=1, description="what the column is for; a list where it is for several things"
    )
    constraint: Constraint = Constraint.FREE
    order: tuple[Code, ...] = Field((), description="categories of an ordinal or binary column, lowest first")
    transitions: dict[Code, tuple[Code, ...]] = Field({}, description="category -> categories it may change to")
    missing: tuple[Code, ...] = Field((), description="further texts that mean a missing value in this column")
    bins: StrictBool | Annotated[int, Field(ge=2, le=1000)] = Field(
        True, description="whether a continuous column is cut into equal-width bins, or into how many"
    )
    clip: bool = Field(True, description="whether a continuous column is clipped at its 1st and 99th percentile")
    bounds: Ascending = Field((None, None), description="values outside are quarantined")
    plausible: Ascending = Field((None, None), description="values outside are kept and counted")
    recourse: Recourse = Recourse()
    block: str | None = Field(
        None,
        pattern=NAME,
        description="block of control columns that it joins in the denial ladder, or `none`; by role and name if null",
    )
    scale: Literal["linear", "log"] = Field(
        "linear", description="whether a continuous column enters the denial ladder as its logarithm (money)"
    )
    label: str = ""

    @model_validator(mode="after")
    def _fits_its_type(self) -> Self:
        if Role.EXCLUDED in self.role and len(self.role) > 1:
            raise ValueError("an excluded column is left out, and so is for nothing else; give one role, or others")
        if {Role.MEDIATOR, Role.COVARIATE} <= set(self.role):
            raise ValueError("a mediator is moved by the protected attribute and a covariate is not; give one of them")
        if self.type is Kind.ORDINAL and len(self.order) < 2:
            raise ValueError("an ordinal column needs `order`, its categories from lowest to highest")
        if self.type is Kind.BINARY and self.order and len(self.order) != 2:
            raise ValueError(f"a binary column has two categories, `order` lists {len(self.order)}")
        if self.order and self.type in (Kind.CONTINUOUS, Kind.NOMINAL):
            raise ValueError(f"`order` belongs to ordinal and binary columns, not to {self.type}")
        if self.type is Kind.NOMINAL and self.constraint in (Constraint.UP, Constraint.DOWN):
            raise ValueError("a nominal column has no up or down; give it `order`, or `transitions`")
        for name in ("bounds", "plausible"):
            if getattr(self, name) != (None, None) and self.type is not Kind.CONTINUOUS:
                raise ValueError(f"`{name}` belongs to continuous columns, not to {self.type}")
        if self.scale == "log" and self.type is not Kind.CONTINUOUS:
            raise ValueError(f"`scale: log` belongs to continuous columns, not to {self.type}")
        if self.transitions and self.constraint is not Constraint.FREE:
            both = f"`transitions` and `constraint: {self.constraint}`"
            raise ValueError(f"{both} both say how the column may change; keep one of them")
        if self.transitions and self.type is Kind.CONTINUOUS:
            raise ValueError("`transitions` belongs to columns with categories")
        return self

    @model_validator(mode="after")
    def _recourse_fits_its_type(self) -> Self:
        if self.type is Kind.CONTINUOUS or self.recourse == Recourse(weight=self.recourse.weight):
            return self
        if self.type is Kind.NOMINAL or self.recourse.bounds != (None, None):
            raise ValueError(f"steps and bounds of recourse are numbers, which a {self.type} column does not hold")
        if self.recourse.step is not None and not self.recourse.step.is_integer():
            raise ValueError(f"a step is a number of categories, and {self.recourse.step:g} is no whole one")
        return self

    @property
    def used(self) -> bool:
        """Whether models and distances use it."""
        return Role.EXCLUDED not in self.role

    @property
    def kept(self) -> bool:
        """Whether it is read at all: an excluded column may still be a control of the denial ladder."""
        return self.used or self.block is not None
