"""Parameters of the twin: sizes, marginals, causal model, discrimination and missing cells.

Marginals are round numbers near those of real rows: of 50,000 Texas applications of 2022 (race, age, purpose, income,
home, loan, ratios, missing cells by decision) and of 800 applications of all states of 2010 to 2017 (actions, loan
type, sex, ethnicity, co-applicants, growth of amounts). They are plausible, and no estimate of any population. The
coefficients of the causal model are ours.
"""

import math
from dataclasses import dataclass
from typing import Literal

YEARS = (2007, 2025)
"""First and last year that public data exist for."""
RACES = ("American Indian", "Asian", "Black", "Pacific Islander", "White")
"""In the order of the HMDA codes 1 to 5."""
WHITE = RACES.index("White")
SEXES = ("male", "female")
AGES = ("<25", "25-34", "35-44", "45-54", "55-64", "65-74", ">74")
PURPOSES = ("purchase", "improvement", "refinancing", "cash-out", "other")
MEDIATORS = ("log income", "log property value", "log loan amount", "debt to income", "loan to value")
"""What a group may move on its way to the decision, causes first; the ratios in percent."""

Discrimination = Literal["none", "direct", "mediated"]


@dataclass(frozen=True)
class TwinSettings:
    """What is drawn. Tuples of shares add up to 1."""

    rows: int = 10_000
    year: int = 2022
    discrimination: Discrimination = "none"
    """``direct`` lowers the logit of an approval; ``mediated`` moves the mediators, and leaves the rule alone."""
    strength: float = 1.0
    """Of ``direct``: logits; of ``mediated``: times ``mediator_shifts``. For a disadvantage of 1."""
    race_disadvantage: tuple[float, ...] = (1.0, 0.0, 1.0, 1.0, 0.0)
    """How much of it a race has to bear, in the order of ``RACES``."""
    sex_disadvantage: tuple[float, ...] = (0.0, 0.5)
    """The same of the sexes; a person bears the sum of both."""
    mediator_shifts: tuple[float, ...] = (-0.25, -0.15, 0.05, 4.0, 4.0)
    """What a disadvantage of 1 adds to each of ``MEDIATORS`` itself, beside what comes by way of earlier ones."""

    race_shares: tuple[float, ...] = (0.015, 0.08, 0.1, 0.005, 0.8)
    race_untold: float = 0.14
    """Share whose race, and as many whose ethnicity, is not provided; the person has one all the same."""
    hispanic: float = 0.12
    female: float = 0.34
    sex_untold: float = 0.07
    coapplicants: float = 0.45
    """Share with a co-applicant, who has the same race and ethnicity, and mostly the other sex."""
    age_shares: tuple[float, ...] = (0.035, 0.235, 0.28, 0.22, 0.135, 0.07, 0.025)
    lenders: int = 25

    purpose_shares: tuple[float, ...] = (0.6, 0.06, 0.11, 0.17, 0.06)
    type_shares: tuple[float, ...] = (0.7, 0.18, 0.09, 0.03)
    """Conventional, FHA, VA, FSA or RHS."""
    subordinate: float = 0.05
    """Share of subordinate liens."""
    occupancy_shares: tuple[float, ...] = (0.92, 0.02, 0.06)
    """Principal, second, investment."""

    withdrawn: float = 0.1
    incomplete: float = 0.03
    purchased: float = 0.13
    """Shares of the actions that are no decision on an application: 4, 5 and 6. All others are decided on."""
    denied: float = 0.25
    """Share of denials among the decisions on people without any disadvantage."""
    not_accepted: float = 0.05
    """Share of the approvals that are not taken up."""
    preapprovals: float = 0.02
    """Of home purchases, the share of the denials, and of the approvals not taken up, that are about a preapproval."""

    income: float = 100_000.0
    """Median, in dollars of 2022."""
    income_growth: float = 0.03
    """By year."""
    income_spread: float = 0.6
    """Standard deviation of the logarithm."""
    property_value: float = 345_000.0
    value_growth: float = 0.045
    """Of homes, and so of loans, by year."""
    value_on_income: float = 0.55
    """Of log income in log property value."""
    value_spread: float = 0.45
    loan_ratios: tuple[float, ...] = (0.85, 0.25, 0.6, 0.6, 0.25)
    """Median of the loan over the value, by purpose."""
    loan_spread: float = 0.3
    loan_to_value: tuple[float, ...] = (88.0, 68.0, 62.0, 66.0, 68.0)
    """Median of the combined ratio in percent, by purpose: an improvement comes on top of a first lien."""
    ratio_on_loan: float = 30.0
    """Percent of the combined ratio per unit of log loan over value."""
    ratio_spread: float = 8.0
    debt_to_income: float = 38.0
    """Median in percent."""
    debt_on_income: float = -8.0
    debt_on_loan: float = 8.0
    debt_spread: float = 8.0

    rule: tuple[float, ...] = (0.6, 0.0, 0.0, -0.11, -0.04)
    """Weights of ``MEDIATORS``, less their medians, in the logit of an approval."""

    missing: float = 1.0
    """Times the shares below; 0: every cell is filled."""
    missing_income: float = 0.02
    missing_value: float = 0.01
    missing_debt_to_income: float = 0.02
    missing_loan_to_value: float = 0.06
    """Shares among those who are not denied."""
    denied_missing: float = 5.0
    """How many times as often cells of the denied are missing; 1: missingness tells nothing of the decision."""
    exempt: float = 0.02
    """Share of rows of lenders that need not report ratios, value and prices (from 2018)."""

    @property
    def direct(self) -> float:
        """Logits that a disadvantage of 1 costs."""
        return self.strength if self.discrimination == "direct" else 0.0

    @property
    def shifts(self) -> tuple[float, ...]:
        """What a disadvantage of 1 adds to the mediators."""
        scale = self.strength if self.discrimination == "mediated" else 0.0
        return tuple(scale * shift for shift in self.mediator_shifts)

    @property
    def modern(self) -> bool:
        """Whether the year is reported by the rules of 2018: with age, ratios and property value."""
        return self.year >= 2018


_LENGTHS = {
    "race_disadvantage": len(RACES), "sex_disadvantage": len(SEXES), "mediator_shifts": len(MEDIATORS),
    "loan_ratios": len(PURPOSES), "loan_to_value": len(PURPOSES), "rule": len(MEDIATORS),
}  # fmt: skip
_PARTS = {
    "race_shares": len(RACES), "age_shares": len(AGES), "purpose_shares": len(PURPOSES), "type_shares": 4,
    "occupancy_shares": 3,
}  # fmt: skip
_SHARES = (
    "race_untold", "hispanic", "female", "sex_untold", "coapplicants", "subordinate", "withdrawn", "incomplete",
    "purchased", "denied", "not_accepted", "preapprovals", "missing_income", "missing_value", "missing_debt_to_income",
    "missing_loan_to_value", "exempt",
)  # fmt: skip
_NOT_NEGATIVE = (
    "strength", "missing", "denied_missing", "income_spread", "value_spread", "loan_spread", "ratio_spread",
    "debt_spread",
)  # fmt: skip


def check(settings: TwinSettings) -> None:
    """Hold parameters against what they have to be.

    Raises:
        ValueError: One of them is not; it is named.
    """
    for name, size in (_LENGTHS | _PARTS).items():
        _require(len(getattr(settings, name)) == size, settings, name, f"{size} numbers")
    for name in _PARTS:
        values = getattr(settings, name)
        _require(min(values) >= 0 and math.isclose(sum(values), 1), settings, name, "shares that add up to 1")
    for name in _SHARES:
        _require(0 <= getattr(settings, name) <= 1, settings, name, "a share from 0 to 1")
    for name in _NOT_NEGATIVE:
        _require(0 <= getattr(settings, name) < math.inf, settings, name, "a number from 0")
    _require(0 < settings.denied < 1, settings, "denied", "a share between 0 and 1")
    _require(settings.rows >= 1 and settings.lenders >= 1, settings, "rows", "at least one, and one of lenders")
    _require(YEARS[0] <= settings.year <= YEARS[1], settings, "year", f"a year from {YEARS[0]} to {YEARS[1]}")
    others = settings.withdrawn + settings.incomplete + settings.purchased
    _require(others < 1, settings, "purchased", "a share that leaves room for decisions beside the other two")


def _require(kept: bool, settings: TwinSettings, name: str, expected: str) -> None:
    if not kept:
        raise ValueError(f"{name} of the twin is {getattr(settings, name)!r}; expected {expected}")
