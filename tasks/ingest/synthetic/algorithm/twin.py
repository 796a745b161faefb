"""The synthetic twin of HMDA: people, causal model, discrimination, missing cells."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

from tasks.numerics.arrays import Bools, Floats, Ints, Longs

# --------------------------------------------------------------------------------------------------------------------
# Parameters of the twin: sizes, marginals, causal model, discrimination and missing cells.
#
# Marginals are round numbers near those of real rows: of 50,000 Texas applications of 2022 (race, age, purpose, income,
# home, loan, ratios, missing cells by decision) and of 800 applications of all states of 2010 to 2017 (actions, loan
# type, sex, ethnicity, co-applicants, growth of amounts). They are plausible, and no estimate of any population. The
# coefficients of the causal model are ours.


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
    other_outcomes = settings.withdrawn + settings.incomplete + settings.purchased
    _require(other_outcomes < 1, settings, "purchased", "a share that leaves room for decisions beside the other two")


def _require(condition: bool, settings: TwinSettings, name: str, expected: str) -> None:
    if not condition:
        raise ValueError(f"{name} of the twin is {getattr(settings, name)!r}; expected {expected}")


# --------------------------------------------------------------------------------------------------------------------
# Draws applicants, kinds of loan and lenders, which nothing else influences, groups included.


NOBODY = -1
"""Sex or age of a co-applicant whom there is none of."""
_SAME_SEX = 0.15
"""Share of the co-applicants who are of the applicant's sex."""
_PLACES = 60
"""Census tracts that applications come from."""


@dataclass(frozen=True)
class People:
    """Applicants; all arrays ``(n,)``, and groups as places in the tuples of ``settings``."""

    race: Ints
    hispanic: Bools
    sex: Ints
    age: Ints
    race_told: Bools
    sex_told: Bools
    cosex: Ints
    """``NOBODY`` without a co-applicant."""
    coage: Ints
    purpose: Ints
    kind: Ints
    """Of the loan: 0 conventional to 3 FSA or RHS."""
    subordinate: Bools
    occupancy: Ints
    lender: Ints
    place: Ints
    """The census tract, as a number from 0 to 59."""
    detail: Ints
    """A number from 0 to 9 that decides which of the detailed codes of 2018 a person gives, if any."""


def draw(settings: TwinSettings, n: int, rng: np.random.Generator) -> People:
    """Draw ``n`` applicants."""

    def of(shares: tuple[float, ...]) -> Ints:
        return np.searchsorted(np.cumsum(shares)[:-1], rng.random(n), side="right").astype(np.int32)

    def some(share: float) -> Bools:
        mask: Bools = rng.random(n) < share
        return mask

    def number(below: int) -> Ints:
        return rng.integers(below, size=n, dtype=np.int32)

    race, sex, age = of(settings.race_shares), some(settings.female).astype(np.int32), of(settings.age_shares)
    together = some(settings.coapplicants)
    return People(
        race=race,
        hispanic=some(settings.hispanic),
        sex=sex,
        age=age,
        race_told=~some(settings.race_untold),
        sex_told=~some(settings.sex_untold),
        cosex=np.where(together, np.where(some(_SAME_SEX), sex, 1 - sex), NOBODY).astype(np.int32),
        coage=np.where(together, np.clip(age + number(3) - 1, 0, len(AGES) - 1), NOBODY).astype(np.int32),
        purpose=of(settings.purpose_shares),
        kind=of(settings.type_shares),
        subordinate=some(settings.subordinate),
        occupancy=of(settings.occupancy_shares),
        lender=number(settings.lenders),
        place=number(_PLACES),
        detail=number(10),
    )


# --------------------------------------------------------------------------------------------------------------------
# Lenders and states of a national year: as many lenders as report one, with a long tail, each at home in a state.
#
# Sizes of lenders are those of a log-normal with the mean of 2022 (4,460 lenders, 16.08 million rows: CFPB, Summary of
# 2022 Data on Mortgage Lending) and the share of the 25 largest in 2021 (43.9 % of closed-end loans: CFPB). States have
# the rows that the CFPB's data browser counts for 2022.


MEAN_ROWS = 3_605
"""Rows of a lender in the mean."""
SPREAD = 2.35
"""Standard deviation of the logarithm of a lender's rows."""
FEWEST_LENDERS = 2

# Code, FIPS code and thousands of rows in 2022; the three smallest territories are left out, NA is no state.
STATES = (
    ("CA", "06", 1560), ("TX", "48", 1388), ("FL", "12", 1387), ("NC", "37", 625), ("GA", "13", 603),
    ("PA", "42", 586), ("OH", "39", 566), ("NY", "36", 550), ("IL", "17", 495), ("AZ", "04", 473),
    ("MI", "26", 470), ("VA", "51", 456), ("WA", "53", 418), ("NJ", "34", 414), ("TN", "47", 403),
    ("CO", "08", 403), ("IN", "18", 354), ("MD", "24", 318), ("SC", "45", 313), ("MA", "25", 307),
    ("MO", "29", 291), ("WI", "55", 266), ("AL", "01", 253), ("MN", "27", 247), ("UT", "49", 228),
    ("OR", "41", 213), ("KY", "21", 203), ("NA", "", 196), ("LA", "22", 189), ("NV", "32", 181),
    ("OK", "40", 174), ("CT", "09", 163), ("AR", "05", 141), ("IA", "19", 138), ("MS", "28", 124),
    ("ID", "16", 117), ("KS", "20", 110), ("NM", "35", 91), ("NE", "31", 78), ("NH", "33", 71),
    ("ME", "23", 67), ("WV", "54", 65), ("DE", "10", 62), ("HI", "15", 58), ("RI", "44", 57), ("MT", "30", 48),
    ("SD", "46", 35), ("PR", "72", 32), ("AK", "02", 29), ("DC", "11", 28), ("WY", "56", 27), ("VT", "50", 26),
    ("ND", "38", 25),
)  # fmt: skip

LOCAL = ((1_000, 0.95), (20_000, 0.6))
"""Up to so many rows a lender has such a share of them in its home state, beside those of any state."""


def sizes(rows: int) -> Longs:
    """Rows of each lender ``(k,)``, the largest first; quantiles of the log-normal, which add up to ``rows``.

    Raises:
        ValueError: there are too few rows for two lenders.
    """
    lenders = max(round(rows / MEAN_ROWS), FEWEST_LENDERS)
    if rows < 2 * lenders:
        raise ValueError(f"{rows} rows are too few for {lenders} lenders")
    weights = np.exp(SPREAD * norm.ppf(1 - (np.arange(lenders) + 0.5) / lenders))
    ends = np.round(np.cumsum(weights) / weights.sum() * (rows - lenders)).astype(np.int64)
    lender_sizes: Longs = np.sort(np.diff(ends, prepend=0) + 1)[::-1]
    return lender_sizes


@dataclass(frozen=True)
class Nation:
    """Which lender and which state a row may have."""

    lenders: Floats
    """``(k,)`` ends of the lenders' shares of all rows."""
    states: Floats
    """``(52,)`` ends of the states' shares."""
    home: Ints
    """``(k,)`` place of each lender's home in ``STATES``."""
    local: Floats
    """``(k,)`` share of its rows that are drawn at home."""

    @classmethod
    def of(cls, rows: int, rng: np.random.Generator) -> Self:
        """Lenders of a year of so many rows, homes drawn by the rows of states; errors as of ``sizes``."""
        size, states = sizes(rows), _ends(np.array([state[2] for state in STATES], dtype=np.float64))
        home = np.searchsorted(states, rng.random(len(size)), side="right").astype(np.int32)
        local = np.select([size <= most for most, _ in LOCAL], [share for _, share in LOCAL], 0.0)
        return cls(_ends(size.astype(np.float64)), states, home, local)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Lender and place of the state in ``STATES`` of ``n`` rows, each ``(n,)``."""
        lender = np.searchsorted(self.lenders, rng.random(n), side="right").astype(np.int32)
        anywhere = np.searchsorted(self.states, rng.random(n), side="right").astype(np.int32)
        at_home = rng.random(n) < self.local[lender]
        return lender, np.where(at_home, self.home[lender], anywhere).astype(np.int32)


def _ends(weights: Floats) -> Floats:
    """Ends of shares within 0 to 1; without the last, so that no draw lies beyond."""
    ends: Floats = np.cumsum(weights)[:-1] / weights.sum()
    return ends


# --------------------------------------------------------------------------------------------------------------------
# Causal model of an application: from disadvantage and noise to five mediators, and from these to a decision.
#
# With D the disadvantage, t_j its effect on mediator j, and u normal noise::
#
#     log income          = a_1 + t_1 D + s_1 u_1
#     log property value  = a_2 + b (log income - a_1) + t_2 D + s_2 u_2
#     log loan amount     = log property value + a_3[purpose] + t_3 D + s_3 u_3
#     debt to income      = a_4 + c (log income - a_1) + e (log loan - usual) + t_4 D + s_4 u_4
#     loan to value       = a_5[purpose] + f (log loan - log value - a_3[purpose]) + t_5 D + s_5 u_5
#     approved            = 1[ w_0 + w'(mediators - usual) - direct D + logistic noise > 0 ]
#
# Every mechanism is additive in its noise, so that the same noise with another disadvantage is the counterfactual. The
# rule knows the exact values, before they are rounded for publication. Without a disadvantage the logit is normal, and
# w_0 follows from the share of denials that is asked for.


INCOME, VALUE, LOAN, DEBT, RATIO = range(len(MEDIATORS))
"""Columns of the mediators."""

_BASE = 2022
_NODES = 61
"""Of Gauss-Hermite quadrature over the logit."""


@dataclass(frozen=True)
class Noise:
    """What makes a person and is not the group."""

    mediators: Floats
    """``(n, 5)`` standard normal."""
    decision: Floats
    """``(n,)`` logistic."""


@dataclass(frozen=True)
class World:
    """What comes of some noise under some disadvantage."""

    mediators: Floats
    """``(n, 5)`` in the order and units of ``MEDIATORS``."""
    logit: Floats
    """``(n,)`` of an approval, the noise of the decision left out."""
    approved: Bools
    """``(n,)`` what is, or would have been, decided."""


def causal_draw(n: int, rng: np.random.Generator) -> Noise:
    """Noise of ``n`` people."""
    return Noise(rng.standard_normal((n, len(MEDIATORS))), rng.logistic(size=n))


def disadvantage(settings: TwinSettings, race: Ints, sex: Ints) -> Floats:
    """``(n,)`` D of people of some races and sexes."""
    burden: Floats = np.array(settings.race_disadvantage)[race] + np.array(settings.sex_disadvantage)[sex]
    return burden


def world(settings: TwinSettings, people: People, noise: Noise, burdened: Floats) -> World:
    """Mediators and decisions of people with a disadvantage ``(n,)``, which need not be their own."""
    usual = usually(settings, people.purpose)
    mediators = usual + deviations(settings, noise.mediators, burdened)
    logit = intercept(settings) + (mediators - usual) @ np.array(settings.rule) - settings.direct * burdened
    return World(mediators, logit, logit + noise.decision > 0)


def usually(settings: TwinSettings, purpose: Ints) -> Floats:
    """``(n, 5)`` medians of the mediators without any disadvantage, by purpose."""
    years = settings.year - _BASE
    income = np.log(settings.income) + years * np.log1p(settings.income_growth)
    value = np.log(settings.property_value) + years * np.log1p(settings.value_growth)
    loan = value + np.log(settings.loan_ratios)
    mediators = np.empty((len(purpose), len(MEDIATORS)))
    mediators[:, INCOME], mediators[:, VALUE], mediators[:, LOAN] = income, value, loan[purpose]
    mediators[:, DEBT], mediators[:, RATIO] = settings.debt_to_income, np.array(settings.loan_to_value)[purpose]
    return mediators


def deviations(settings: TwinSettings, noise: Floats, burdened: Floats) -> Floats:
    """``(n, 5)`` how far mediators lie from what is usual, of noise ``(n, 5)`` and a disadvantage ``(n,)``."""
    spreads = ("income_spread", "value_spread", "loan_spread", "debt_spread", "ratio_spread")
    scaled_noise = noise * np.array([getattr(settings, name) for name in spreads])
    shifts = scaled_noise + burdened[:, None] * np.array(settings.shifts)
    income = shifts[:, INCOME]
    value = settings.value_on_income * income + shifts[:, VALUE]
    loan = value + shifts[:, LOAN]
    debt = settings.debt_on_income * income + settings.debt_on_loan * loan + shifts[:, DEBT]
    ratio = settings.ratio_on_loan * (loan - value) + shifts[:, RATIO]
    return np.column_stack([income, value, loan, debt, ratio])


@lru_cache
def intercept(settings: TwinSettings) -> float:
    """w_0, with which the stated share of those without any disadvantage is denied."""
    by_noise = deviations(settings, np.eye(len(MEDIATORS)), np.zeros(len(MEDIATORS))) @ np.array(settings.rule)
    spread = float(np.linalg.norm(by_noise))  # mediators are linear in noise, so that the logit is normal
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)

    def too_many_denied(at: float) -> float:
        return float(weights @ expit(-at - spread * nodes) / weights.sum()) - settings.denied

    bound = 40.0 + 10 * spread
    return float(brentq(too_many_denied, -bound, bound))


# --------------------------------------------------------------------------------------------------------------------
# Amounts as published: rounded to the middle of a band, or the band alone (Regulation C, since 2018).
#
# Before, loans and incomes were published to a thousand dollars, and neither home nor ratios.


DEBT_BANDS = ("<20%", "20%-<30%", "30%-<36%", *map(str, range(36, 50)), "50%-60%", ">60%")
"""Debt to income as published, lowest first."""
_STARTS = np.array([20, 30, 36, *range(37, 51)], np.float64)
"""Where each band but the first begins; the last begins above 60."""
_BAND = 10_000
_MOST_DEBT = 60.0
_RATIOS = (1.0, 130.0)
"""Loan to value of which none lies outside."""


@dataclass(frozen=True)
class Published:
    """Amounts as they are published; all arrays ``(n,)``."""

    income: Longs
    """Thousands of dollars."""
    property_value: Longs
    """Dollars."""
    loan_amount: Longs
    """Dollars."""
    debt_to_income: Longs
    """Place in ``DEBT_BANDS``."""
    loan_to_value: Floats
    """Percent, to three decimals."""


def publish(mediators: Floats, modern: bool) -> Published:
    """The published form of mediators ``(n, 5)``; of a year before 2018 loans are to a thousand dollars."""
    amount = np.exp(mediators[:, LOAN])
    ratio: Floats = np.clip(mediators[:, RATIO], *_RATIOS)
    return Published(
        income=np.maximum(1, np.rint(np.exp(mediators[:, INCOME]) / 1000)).astype(np.int64),
        property_value=_middle(np.exp(mediators[:, VALUE])),
        loan_amount=_middle(amount) if modern else np.maximum(1, np.rint(amount / 1000)).astype(np.int64) * 1000,
        debt_to_income=band(mediators[:, DEBT]),
        loan_to_value=ratio.round(3),
    )


def band(percent: Floats) -> Longs:
    """``(n,)`` places in ``DEBT_BANDS`` of ratios in percent: 60 is the last of the band before the last."""
    inside = np.searchsorted(_STARTS, percent, side="right")
    band_index: NDArray[np.int64] = np.where(percent > _MOST_DEBT, len(DEBT_BANDS) - 1, inside).astype(np.int64)
    return band_index


def _middle(dollars: Floats) -> Longs:
    """The middle of the band of 10,000 dollars that an amount lies in."""
    midpoint: NDArray[np.int64] = (np.floor(dollars / _BAND) * _BAND + _BAND // 2).astype(np.int64)
    return midpoint


# --------------------------------------------------------------------------------------------------------------------
# Missing and exempt cells of the twin: in real data, more of the denied have missing cells.
#
# A home that was never appraised, or an income that was never verified, belongs to an application that did not get far.
# ``denied_missing`` says how many times as often that is so among the denied; with 1 the gaps are innocent.


@dataclass(frozen=True)
class Unreported:
    """Cells without a value; all arrays ``(n,)``."""

    income: Bools
    property_value: Bools
    """Whose loan to value is missing, too."""
    debt_to_income: Bools
    loan_to_value: Bools
    exempt: Bools
    """Value, ratios and prices are not reported, and the layout says so."""


def unreported_draw(settings: TwinSettings, denied: Bools, rng: np.random.Generator) -> Unreported:
    """Draw gaps for people with denials ``(n,)``; no share exceeds 1."""
    times = settings.missing * np.where(denied, settings.denied_missing, 1.0)

    def gaps(share: float) -> Bools:
        mask: Bools = rng.random(len(denied)) < share * times
        return mask

    value = gaps(settings.missing_value)
    income, debt = gaps(settings.missing_income), gaps(settings.missing_debt_to_income)
    ratio = value | gaps(settings.missing_loan_to_value)
    exempt = (rng.random(len(denied)) < settings.exempt) & settings.modern
    return Unreported(income, value & ~exempt, debt & ~exempt, ratio & ~exempt, exempt)


# --------------------------------------------------------------------------------------------------------------------
# Draws a twin in blocks, of any size: people, outcomes of their applications, and what is reported of them.


BLOCK = 100_000
"""Rows that are drawn at a time: some 200 MB, whatever the number of rows."""

ORIGINATED, NOT_ACCEPTED, DENIED, WITHDRAWN, INCOMPLETE, PURCHASED, PREAPPROVAL_DENIED, PREAPPROVED = range(1, 9)
"""Codes of the action taken."""
PURCHASE = PURPOSES.index("purchase")


@dataclass(frozen=True)
class Twin:
    """One block of rows and what is known of them."""

    settings: TwinSettings
    people: People
    noise: Noise
    world: World
    """What came about; of rows without a decision (4, 5, 6), what would have been decided."""
    action: Ints
    """``(n,)`` code of the action taken."""
    published: Published
    unreported: Unreported

    @property
    def decided(self) -> Bools:
        """``(n,)`` whether the application was decided on."""
        return ~np.isin(self.action, (WITHDRAWN, INCOMPLETE, PURCHASED))


def blocks(settings: TwinSettings, rng: np.random.Generator) -> Iterator[Twin]:
    """All rows in blocks of at most ``BLOCK``: the first rows of a longer twin are not those of a shorter one.

    Raises:
        ValueError: A parameter is not what it has to be.
    """
    check(settings)
    for start in range(0, settings.rows, BLOCK):
        yield _block(settings, min(BLOCK, settings.rows - start), rng)


def generate(settings: TwinSettings, rng: np.random.Generator) -> Twin:
    """All rows at once, for what has to be held in memory anyway: the rows of ``blocks`` where one block is enough.

    Raises:
        ValueError: A parameter is not what it has to be.
    """
    check(settings)
    return _block(settings, settings.rows, rng)


def _block(settings: TwinSettings, n: int, rng: np.random.Generator) -> Twin:
    persons, noise = draw(settings, n, rng), causal_draw(n, rng)
    happened = world(settings, persons, noise, disadvantage(settings, persons.race, persons.sex))
    action = _actions(settings, happened.approved, persons.purpose == PURCHASE, rng)
    denied = np.isin(action, (DENIED, PREAPPROVAL_DENIED))
    published = publish(happened.mediators, settings.modern)
    return Twin(settings, persons, noise, happened, action, published, unreported_draw(settings, denied, rng))


def _actions(settings: TwinSettings, approved: Bools, purchase: Bools, rng: np.random.Generator) -> Ints:
    """``(n,)`` codes: some applications never get a decision, regardless of what it would have been.

    A preapproval is asked for before a home is bought, and for nothing else.
    """
    n = len(approved)
    ends = np.cumsum([settings.withdrawn, settings.incomplete, settings.purchased])
    fate = np.searchsorted(ends, rng.random(n), side="right")
    early, declined = purchase & (rng.random(n) < settings.preapprovals), rng.random(n) < settings.not_accepted
    yes = np.where(declined, np.where(early, PREAPPROVED, NOT_ACCEPTED), ORIGINATED)
    no = np.where(early, PREAPPROVAL_DENIED, DENIED)
    decided = np.where(approved, yes, no)
    return np.choose(fate, [WITHDRAWN, INCOMPLETE, PURCHASED, decided]).astype(np.int32)


# --------------------------------------------------------------------------------------------------------------------
# True counterfactuals of the twin: the same people, noise and purposes, as members of another group.
#
# No audit can observe it. Here it is known, so that what a method finds can be held against it.


@dataclass(frozen=True)
class Otherwise:
    """Everybody as a member of another group of one attribute."""

    attribute: str
    """``race`` or ``sex``."""
    group: Ints
    """``(n,)`` the own group, as a place in ``names``."""
    to: Ints
    """``(n,)`` the group that a person is imagined in."""
    names: tuple[str, ...]
    world: World
    published: Published
    flips: Bools
    """``(n,)`` whether the decision would have been another one; of rows that were decided on."""


def as_members(twin: Twin, race: Ints, sex: Ints) -> World:
    """Mediators and decisions of the same people, had they been of some races and sexes ``(n,)``."""
    return world(twin.settings, twin.people, twin.noise, disadvantage(twin.settings, race, sex))


def otherwise(twin: Twin) -> Iterator[Otherwise]:
    """Everybody in the other group: of race, as white, and the white as Black; of sex, as the other one."""
    race, sex = twin.people.race, twin.people.sex
    to_race = np.where(race == WHITE, RACES.index("Black"), WHITE).astype(np.int32)
    yield _found(twin, "race", race, to_race, RACES, as_members(twin, to_race, sex))
    to_sex = (1 - sex).astype(np.int32)
    yield _found(twin, "sex", sex, to_sex, SEXES, as_members(twin, race, to_sex))


def _found(twin: Twin, attribute: str, group: Ints, to: Ints, names: tuple[str, ...], then: World) -> Otherwise:
    flips = (then.approved != twin.world.approved) & twin.decided
    published = publish(then.mediators, twin.settings.modern)
    return Otherwise(attribute, group, to, names, then, published, flips)


@dataclass(frozen=True)
class FlipShare:
    """How many decisions on a group hang on the group."""

    attribute: str
    group: str
    decisions: int
    flips: int

    @property
    def share(self) -> float:
        """Flips among the decisions; NaN where there are none."""
        return self.flips / self.decisions if self.decisions else float("nan")


def flip_shares(twin: Twin) -> list[FlipShare]:
    """The true share of decisions that would have been different, by attribute and group with members."""
    out = []
    for counterfactual in otherwise(twin):
        for group in np.unique(counterfactual.group).tolist():
            in_group = (counterfactual.group == group) & twin.decided
            out.append(
                FlipShare(
                    counterfactual.attribute,
                    counterfactual.names[group],
                    int(in_group.sum()),
                    int((counterfactual.flips & in_group).sum()),
                )
            )
    return out
