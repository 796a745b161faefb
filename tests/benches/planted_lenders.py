"""Simulated lenders with known true effects, as a reference for the states and intervals of an audit.

Applicants have an income, an amount, a score, loan to value, debt to income, years of work and a purpose. Numbers are
standard normal among the reference group; all but the amount share a factor. A group moves its own income and score
(mediated; the score by way of the income, too), or differs in loan to value, debt to income and years without having
caused it (confounded). Denial follows a logit that is linear in all of them, plus a term for the group.

True effects: ``direct``, the chance of denial with the group's term less that without, over the group's own rows;
``total``, the chance as it is less that of the same applicant with the income and score of the reference group and
without the term; their difference is what goes through income and score, at the lender's terms for the reference group;
``ratio``, the chance of approval over that of the reference group.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from tasks.numerics.arrays import Bools, Floats, Ints

NUMBERS = ("income", "score", "amount", "ltv", "dti", "years")
PURPOSES = ("improvement", "purchase", "refinance")
PURPOSE_SHARES = (0.15, 0.5, 0.35)
MEDIATED, CONFOUNDED = ("income", "score"), ("ltv", "dti", "years")
EDGES = (("race", "income"), ("race", "score"), ("income", "score"))
"""What is caused by what."""
GROUPS = ("white", "Black", "Hispanic", "not provided")
SHARES = (0.66, 0.17, 0.12, 0.05)
_BETTER = np.array([1.0, 1.0, 1.0, -1.0, -1.0, 1.0])
"""Sign of each number in the factor that they share: more income, less debt."""
_INCOME_OF_FACTOR, _SCORE_OF_INCOME, _SCORE_OF_FACTOR = 0.5, 0.3, 0.4
_POPULATION = 300_000


@dataclass(frozen=True)
class Lender:
    """How a lender decides: log odds of denial for one standard deviation of each number, and for each purpose."""

    slopes: tuple[float, ...]
    """By ``NUMBERS``."""
    purposes: tuple[float, ...]
    """By ``PURPOSES``."""
    denied: float = 0.22
    """Share denied of the reference group."""


@dataclass(frozen=True)
class Scenario:
    """What is planted, by group in the order of ``groups``; the first one is the reference group."""

    name: str
    log_odds: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    """What the lender adds for a member."""
    mediated: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    """Standard deviations by which a member's income and score are worse, because of the group."""
    confounded: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    """The same of loan to value, debt to income and years, which the group does not cause."""
    groups: tuple[str, ...] = GROUPS
    shares: tuple[float, ...] = SHARES
    without: tuple[str, ...] = ()
    """Numbers by which the lender decided and which the file lacks."""

    def of(self, log_odds: float) -> "Scenario":
        """The same scenario with this term in place of every nonzero one."""
        return replace(self, log_odds=tuple(log_odds if group_log_odds else 0.0 for group_log_odds in self.log_odds))


@dataclass(frozen=True)
class Truth:
    """True effects on one group."""

    direct: float
    total: float
    ratio: float


@dataclass(frozen=True)
class Applied:
    """``n`` applicants and what is known of them."""

    scenario: Scenario
    group: Ints
    """``(n,)`` number of each row's group."""
    z: Floats
    """``(n, 6)`` numbers, standardised, by ``NUMBERS``."""
    purpose: Ints
    """``(n,)``."""
    denied: Bools
    chance: Floats
    """``(n,)`` of being denied."""
    direct: Floats
    """``(n,)`` points of it that the group's term adds."""
    total: Floats
    """``(n,)`` points of it that the group adds, by the term and by what it moves."""

    @property
    def values(self) -> Floats:
        """``(n, 6)`` numbers in users' units: thousands of dollars, points, percent and years."""
        income, score, amount, ltv, dti, years = self.z.T
        units = (90 + 20 * income, 700 + 55 * score, np.exp(5.4 + 0.6 * amount), 78 + 14 * ltv, 36 + 8 * dti)
        return np.column_stack([*units, 14 + 3 * years])

    def truth(self, group: int) -> Truth:
        """The effects on the members drawn; the ratio is one of chances."""
        in_group, reference = self.group == group, self.group == 0
        ratio = (1 - self.chance[in_group].mean()) / (1 - self.chance[reference].mean())
        return Truth(float(self.direct[in_group].mean()), float(self.total[in_group].mean()), float(ratio))


def draw(lender: Lender, scenario: Scenario, rows: int, rng: np.random.Generator) -> Applied:
    """Applicants of a scenario, and the lender's decisions."""
    group = rng.choice(len(scenario.groups), rows, p=scenario.shares).astype(np.int32)
    z, purpose = _finances(rows, rng), rng.choice(len(PURPOSES), rows, p=PURPOSE_SHARES).astype(np.int32)
    unmoved = z + _moved(np.array(scenario.confounded)[group], CONFOUNDED)
    shifted = unmoved + _moved(np.array(scenario.mediated)[group], MEDIATED)
    term = np.array(scenario.log_odds)[group]
    index, elsewhere = (intercept(lender) + _index(lender, finances, purpose) for finances in (shifted, unmoved))
    chance = expit(index + term)
    denied = rng.random(rows) < chance
    return Applied(scenario, group, shifted, purpose, denied, chance, chance - expit(index), chance - expit(elsewhere))


@functools.cache
def population(lender: Lender, scenario: Scenario) -> tuple[Truth, ...]:
    """The true effects on each group, the reference group's first, over 300,000 applicants."""
    applied = draw(lender, scenario, _POPULATION, np.random.default_rng(1))
    return tuple(applied.truth(group) for group in range(len(scenario.groups)))


@functools.cache
def overlap_weighted(lender: Lender, scenario: Scenario) -> tuple[float, ...]:
    """The direct effect on each group where it and the reference group overlap, over 300,000 applicants.

    Members are weighted by 1 - e, e the chance of being a member and not of the reference group. All groups share one
    covariance of their numbers, so that e is a logit that is linear in them (linear discriminant).
    """
    applied = draw(lender, scenario, _POPULATION, np.random.default_rng(1))
    means = np.array([applied.z[applied.group == group].mean(axis=0) for group in range(len(scenario.groups))])
    inverse = np.linalg.inv(np.cov((applied.z - means[applied.group]).T))
    effects = []
    for group, share in enumerate(scenario.shares):
        in_group, apart = applied.group == group, means[group] - means[0]
        index = (applied.z[in_group] - (means[group] + means[0]) / 2) @ inverse @ apart + math.log(
            share / scenario.shares[0]
        )
        effects.append(float(np.average(applied.direct[in_group], weights=expit(-index))))
    return tuple(effects)


@functools.cache
def at_limit(lender: Lender, scenario: Scenario, limit: float) -> Scenario:
    """The scenario with the log odds at which the direct effect on the first affected group equals the limit."""
    group = next(number for number, group_log_odds in enumerate(scenario.log_odds) if group_log_odds)
    effect: Callable[[float], float] = lambda term: population(lender, scenario.of(term))[group].direct - limit  # noqa: E731
    return scenario.of(float(brentq(effect, 1e-6, 2.0, xtol=1e-5)))


@functools.cache
def intercept(lender: Lender) -> float:
    """The intercept with which the reference group is denied as often as it is to be."""
    rng = np.random.default_rng(0)
    z = _finances(_POPULATION, rng)
    purpose = rng.choice(len(PURPOSES), _POPULATION, p=PURPOSE_SHARES).astype(np.int32)
    index = _index(lender, z, purpose)
    return float(brentq(lambda a: expit(a + index).mean() - lender.denied, -10.0, 10.0))


def _finances(rows: int, rng: np.random.Generator) -> Floats:
    """``(rows, 6)`` numbers of the reference group, each with a variance of 1."""
    load = _INCOME_OF_FACTOR
    factor, own = rng.normal(size=rows), rng.normal(size=(rows, len(NUMBERS)))
    z = load * factor[:, None] * _BETTER + math.sqrt(1 - load**2) * own
    left = 1 - _SCORE_OF_INCOME**2 - _SCORE_OF_FACTOR**2 - 2 * _SCORE_OF_INCOME * _SCORE_OF_FACTOR * load
    z[:, 1] = _SCORE_OF_INCOME * z[:, 0] + _SCORE_OF_FACTOR * factor + math.sqrt(left) * own[:, 1]
    z[:, 2] = own[:, 2]
    found: Floats = z
    return found


def _moved(worse: Floats, which: tuple[str, ...]) -> Floats:
    """``(n, 6)`` changes of some numbers, towards denial."""
    chosen = np.array([name in which for name in NUMBERS])
    found: Floats = -worse[:, None] * _BETTER * chosen
    return found


def _index(lender: Lender, z: Floats, purpose: Ints) -> Floats:
    linear_index: Floats = z @ np.array(lender.slopes) + np.array(lender.purposes)[purpose]
    return linear_index
