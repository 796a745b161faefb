"""Causal model of an application: from disadvantage and noise to five mediators, and from these to a decision.

With D the disadvantage, t_j its effect on mediator j, and u normal noise::

    log income          = a_1 + t_1 D + s_1 u_1
    log property value  = a_2 + b (log income - a_1) + t_2 D + s_2 u_2
    log loan amount     = log property value + a_3[purpose] + t_3 D + s_3 u_3
    debt to income      = a_4 + c (log income - a_1) + e (log loan - usual) + t_4 D + s_4 u_4
    loan to value       = a_5[purpose] + f (log loan - log value - a_3[purpose]) + t_5 D + s_5 u_5
    approved            = 1[ w_0 + w'(mediators - usual) - direct D + logistic noise > 0 ]

Every mechanism is additive in its noise, so that the same noise with another disadvantage is the counterfactual. The
rule knows the exact values, before they are rounded for publication. Without a disadvantage the logit is normal, and
w_0 follows from the share of denials that is asked for.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from tasks.ingest.synthetic.twin.algorithm.people import People
from tasks.ingest.synthetic.twin.algorithm.settings import MEDIATORS, TwinSettings
from tasks.numerics.arrays import Bools, Floats, Ints

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


def draw(n: int, rng: np.random.Generator) -> Noise:
    """Noise of ``n`` people."""
    return Noise(rng.standard_normal((n, len(MEDIATORS))), rng.logistic(size=n))


def disadvantage(settings: TwinSettings, race: Ints, sex: Ints) -> Floats:
    """``(n,)`` D of people of some races and sexes."""
    found: Floats = np.array(settings.race_disadvantage)[race] + np.array(settings.sex_disadvantage)[sex]
    return found


def world(settings: TwinSettings, people: People, noise: Noise, burdened: Floats) -> World:
    """Mediators and decisions of people with a disadvantage ``(n,)``, which need not be their own."""
    usual = usually(settings, people.purpose)
    mediators = usual + deviations(settings, noise.mediators, burdened)
    logit = intercept(settings) + (mediators - usual) @ np.array(settings.rule) - settings.direct * burdened
    return World(mediators, logit, logit + noise.decision > 0)


def usually(settings: TwinSettings, purpose: Ints) -> Floats:
    """``(n, 5)`` medians of the mediators where nobody is disadvantaged, by purpose."""
    years = settings.year - _BASE
    income = np.log(settings.income) + years * np.log1p(settings.income_growth)
    value = np.log(settings.property_value) + years * np.log1p(settings.value_growth)
    loan = value + np.log(settings.loan_ratios)
    found = np.empty((len(purpose), len(MEDIATORS)))
    found[:, INCOME], found[:, VALUE], found[:, LOAN] = income, value, loan[purpose]
    found[:, DEBT], found[:, RATIO] = settings.debt_to_income, np.array(settings.loan_to_value)[purpose]
    return found


def deviations(settings: TwinSettings, noise: Floats, burdened: Floats) -> Floats:
    """``(n, 5)`` how far mediators lie from what is usual, of noise ``(n, 5)`` and a disadvantage ``(n,)``."""
    own = noise * _spreads(settings) + burdened[:, None] * np.array(settings.shifts)
    income = own[:, INCOME]
    value = settings.value_on_income * income + own[:, VALUE]
    loan = value + own[:, LOAN]
    debt = settings.debt_on_income * income + settings.debt_on_loan * loan + own[:, DEBT]
    ratio = settings.ratio_on_loan * (loan - value) + own[:, RATIO]
    return np.column_stack([income, value, loan, debt, ratio])


def _spreads(settings: TwinSettings) -> Floats:
    """``(5,)`` standard deviations of the mediators' own noise."""
    spreads = ("income_spread", "value_spread", "loan_spread", "debt_spread", "ratio_spread")
    return np.array([getattr(settings, name) for name in spreads])


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
