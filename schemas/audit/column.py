"""Columns of the audit spec, and blocks of control columns by name."""

import math
import re
from collections.abc import Iterable
from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, StrictBool, model_validator

from schemas.blocks import is_place
from schemas.bounds import Ascending, Code, Strict
from schemas.terms import Constraint, Kind, Role

# --------------------------------------------------------------------------------------------------------------------
# Control blocks of the denial ladder: the block that a column belongs to by its name and role.
#
# Names are those of the Boston study of 1990 and of public HMDA, as filed and as this project writes them. A column of
# another name is in a block by its role. Columns that the decision sets, and columns that say who an applicant is, are
# in no block. Source: FFIEC and CFPB filing guides; bad controls: Angrist and Pischke, Mostly Harmless Econometrics,
# 3.2.3.


NAME: Final = r"^[A-Za-z][A-Za-z0-9_-]{0,31}$"
"""Of a block: rungs are named by their blocks, joined by +."""
NO_BLOCK: Final = "none"
"""Of a column that is on no rung, and of the rung that adjusts for nothing."""
CROSS: Final = "cross"
"""The rung of the other protected attributes."""
TERMS, FINANCES, HISTORY, OTHER, PLACE = ORDER = ("terms", "finances", "history", "other", "place")
"""Blocks in the order of the rungs; a block of another name comes before ``place``."""

_NAMES: Final = {
    TERMS: (
        *("loanamt", "loanprc", "term", "multi", "cosign"),
        *("loan_amount", "property_value", "loan_to_value_ratio", "combined_loan_to_value_ratio", "ltv_ratio"),
        *("loan_type", "loan_purpose", "lien_status", "occupancy_type", "owner_occupancy", "occupancy", "loan_term"),
        *("construction_method", "property_type", "total_units", "derived_loan_product_type", "preapproval"),
        *("derived_dwelling_category", "conforming_loan_limit", "open_end_line_of_credit", "reverse_mortgage"),
        *("business_or_commercial_purpose", "negative_amortization", "interest_only_payment", "balloon_payment"),
        *("other_nonamortizing_features", "intro_rate_period", "prepayment_penalty_term"),
        *("manufactured_home_secured_property_type", "manufactured_home_land_property_interest"),
        *("multifamily_affordable_units", "submission_of_application", "initially_payable_to_institution"),
    ),
    FINANCES: (
        *("appinc", "hrat", "obrat", "unem", "dep", "self", "sch"),
        *("income", "applicant_income", "debt_to_income_ratio"),
    ),
    HISTORY: (
        *("chist", "pubrec", "mortno", "mortlat1", "mortlat2"),
        *("aus", "applicant_credit_score_type", "co_applicant_credit_score_type"),
    ),
    PLACE: (
        *("lei", "lender_id", "respondent_id", "agency_code", "minority_population", "ffiec_median_family_income"),
        *("month", "application_month"),  # others by the words of their names: ``schemas.blocks``
    ),
}

LENDER: Final = ("lei", "lender_id", "respondent_id")
"""Names of the column that says whose application it is."""
_SET_BY_DECISION: Final = frozenset(
    (
        *("action_taken", "denial_reason", "purchaser_type", "rate_spread", "interest_rate", "hoepa_status"),
        *("total_loan_costs", "total_points_and_fees", "origination_charges", "discount_points", "lender_credits"),
    )
)
_PERSONAL: Final = frozenset(
    (
        *("race", "ethnicity", "sex", "gender", "age", "religion", "nationality", "national_origin"),
        *("married", "marital", "marital_status", "male", "female", "black", "white", "hispan", "hispanic"),
    )
)
_ABOUT_A_PERSON: Final = re.compile(r"^(applicant|co_applicant|derived)_(race|ethnicity|sex|age)(_|$)")
_KINDS: Final = (
    ("origin", re.compile(r"race|ethnic|black|white|hispan|national|religion")),
    ("sex", re.compile(r"sex|gender|male")),
    ("age", re.compile(r"(^|_)age(_|$)")),
    ("marital", re.compile(r"marri|marital")),
)
"""What a column about a person is about."""
_FLAG: Final = re.compile(r"_(is_)?missing$|_na$|^missing_")
"""Of a column that says whether another has a value."""
_POSITION: Final = re.compile(r"_\d+(?=_|$)")
"""Of several columns of one kind: ``denial_reason_2``, ``aus-1``."""


def _plain(name: str) -> str:
    """A name without case, position and unit."""
    plain = _POSITION.sub("", name.lower().replace("-", "_"))
    return plain.removesuffix("_raw").removesuffix("_usd").removesuffix("_000s")


_BLOCK_OF: Final = {name: block for block, names in _NAMES.items() for name in names}


def set_by_decision(name: str) -> bool:
    """Whether HMDA fills the column by the decision or after it, so that it cannot be a control."""
    return _plain(name) in _SET_BY_DECISION


def is_personal(name: str) -> bool:
    """Whether the column describes the applicant (race, sex, age, marital status) and not the application."""
    plain = _plain(name)
    return plain in _PERSONAL or bool(_ABOUT_A_PERSON.match(plain))


def is_observed(name: str) -> bool:
    """Whether the column records how a lender learnt an applicant's race, ethnicity or sex."""
    return is_personal(name) and _plain(name).endswith("_observed")


def kind_of(name: str) -> str:
    """What a column about a person is about, such as ``origin`` (race and ethnicity); empty where it is not known."""
    return next((kind for kind, pattern in _KINDS if pattern.search(_plain(name))), "")


def is_flag(name: str) -> bool:
    """Whether the column flags, by its name, that another one has a value."""
    return bool(_FLAG.search(_plain(name)))


def block_of(name: str, roles: Iterable[Role]) -> str | None:
    """The block of a column for which the audit spec names none; None if it is on no rung."""
    if set_by_decision(name) or is_personal(name) or is_flag(name):
        return None
    by_words = PLACE if is_place(name) else FINANCES if Role.FINANCIAL in roles else OTHER
    return _BLOCK_OF.get(_plain(name)) or by_words


def in_order(blocks: Iterable[str]) -> list[str]:
    """Names of blocks in the order of the rungs; ``place`` is last."""
    names = list(dict.fromkeys(blocks))
    rank = {TERMS: 0, FINANCES: 1, HISTORY: 2, PLACE: 5}
    return sorted(names, key=lambda name: (rank.get(name, 4 if name == OTHER else 3), names.index(name)))


# --------------------------------------------------------------------------------------------------------------------
# The part ``columns`` of the spec: how one column is read, encoded and allowed to change.


def _several(value: object) -> object:
    """A role may be given as one value or as a list of values."""
    return (value,) if isinstance(value, str) else value


class Recourse(Strict):
    """How an applicant can change a column."""

    weight: float = Field(1.0, gt=0, description="how hard it is to change, relative to the weights of other columns")
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

    type: Kind = Field(description="what values the column holds")
    role: Annotated[tuple[Role, ...], BeforeValidator(_several)] = Field(
        (Role.FEATURE,),
        min_length=1,
        description="one role or a list. `financial`: CEC matches applicants by it. `mediator` and `covariate`: GCFN "
        "takes it as caused, or not caused, by the protected attribute. `excluded`: left out",
    )
    constraint: Constraint = Field(
        Constraint.FREE,
        description="how an applicant may change it; `up` and `down` need an order, so not for `nominal`",
    )
    order: tuple[Code, ...] = Field(
        (),
        description="categories from lowest to highest: required for `ordinal`, two for `binary`. Other values refuse "
        "the row (`unknown_category`)",
    )
    transitions: dict[Code, tuple[Code, ...]] = Field(
        {}, description="category -> categories it may change to; a category without an entry may become any other"
    )
    missing: tuple[Code, ...] = Field((), description="further texts that mean a missing value in this column")
    bins: StrictBool | Annotated[int, Field(ge=2, le=1000)] = Field(
        True,
        description="whether a continuous column is cut into bins of equal width, or into how many; true makes "
        "log2(distinct values) + 1",
    )
    clip: bool = Field(True, description="whether a continuous column is clipped at its 1st and 99th percentile")
    bounds: Ascending = Field(
        (None, None),
        description="of a continuous column: rows with values outside are refused (`failed_expectation`), the lower "
        "one first",
    )
    plausible: Ascending = Field(
        (None, None), description="of a continuous column: values outside are kept and counted in the report"
    )
    recourse: Recourse = Recourse()
    block: str | None = Field(
        None,
        pattern=NAME,
        description="block of control columns that it joins in the denial ladder, or `none`; by role and name if null",
    )
    scale: Literal["linear", "log"] = Field(
        "linear",
        description="whether a continuous column enters the denial ladder as its logarithm, as money should; values "
        "of 0 and below then count as missing",
    )
    label: str = Field("", description="name in the report; the column's name if empty")

    @model_validator(mode="after")
    def _fits_its_type(self) -> Self:
        if Role.EXCLUDED in self.role and len(self.role) > 1:
            raise ValueError("an excluded column is left out, and so is for nothing else; give one role, or others")
        if {Role.MEDIATOR, Role.COVARIATE} <= set(self.role):
            raise ValueError("a mediator depends on the protected attribute and a covariate does not; give one of them")
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
            conflicting_keys = f"`transitions` and `constraint: {self.constraint}`"
            raise ValueError(f"{conflicting_keys} both say how the column may change; keep one of them")
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
