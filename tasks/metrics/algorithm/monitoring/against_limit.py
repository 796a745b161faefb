"""A year against its limit, with the years before it: the band, the state that is read from it, and the words."""

import math
from collections.abc import Sequence

import numpy as np

from schemas.terms import State
from tasks.metrics.algorithm.monitoring.confidence_sequence import (
    Band,
    bonferroni,
    confidence_sequence,
    false_breach,
    single_year,
)
from tasks.metrics.algorithm.monitoring.monitored import Monitored
from tasks.metrics.algorithm.monitoring.years import MonitoringRule, YearEstimate, limit_words, shown, worked

EIGHT = 8
"""Years over which the cost of looking at each alone is told."""


def held(years: Sequence[YearEstimate], rule: MonitoringRule, groups: int, first_breach: int | None) -> Monitored:
    """The last of these comparable years.

    Args:
        years: a sequence from its start, each with an estimate.
        rule: confidence sequence, bonferroni or none.
        groups: judged groups of the theory, which share alpha.
        first_breach: the first year before it in breach, if there was one.
    """
    one = years[-1]
    spent = rule.rule == "bonferroni" and len(years) > (rule.years or 0)
    if spent:
        reason = f"the plan was for {rule.years or 0} years, and its alpha is spent"
        return Monitored(one, State.INSUFFICIENT_EVIDENCE, reason, first_breach=first_breach)
    band = _band(years, rule, groups)
    state, words = _state(one, band)
    first = one.year if state is State.BREACH and first_breach is None else first_breach
    pooled, low, high = (shown(end, one.scale) for end in band[:3])
    reason = "; ".join([words, *_qualified(one, band, rule, first)])
    return Monitored(one, state, reason, pooled, low, high, first)


def gap(one: YearEstimate) -> Monitored:
    """A year without an estimate: no pass, and no number."""
    state = State.INSUFFICIENT_EVIDENCE if one.ran else State.NOT_RUN
    return Monitored(one, state, one.gap or "no estimate with a standard error")


def _band(years: Sequence[YearEstimate], rule: MonitoringRule, groups: int) -> Band:
    one = years[-1]
    if rule.rule == "none":
        return single_year(one.estimate, one.variance, one.bias, rule.alpha / groups)
    if rule.rule == "bonferroni":
        return bonferroni(one.estimate, one.variance, one.bias, rule.alpha / groups, rule.years or 1)
    e, v, b = (np.array([getattr(each, name) for each in years]) for name in ("estimate", "variance", "bias"))
    return confidence_sequence(e, v, b, 2 * rule.alpha / groups)


def _state(one: YearEstimate, band: Band) -> tuple[State, str]:
    if math.isnan(one.limit):
        return State.NO_LIMIT, "nobody said what is too much"
    limit, at_most = worked(one.limit, one.scale), one.side == "at_most"
    side = limit_words(one)
    if band.low > limit if at_most else band.high < limit:
        return State.BREACH, f"the whole band lies beyond the limit ({side})"
    if band.high <= limit if at_most else band.low >= limit:
        return State.WITHIN, f"the whole band keeps the limit ({side})"
    return State.INSUFFICIENT_EVIDENCE, f"the band lies on both sides of the limit ({side})"


def _qualified(one: YearEstimate, band: Band, rule: MonitoringRule, first: int | None) -> list[str]:
    """What else must be said of a band."""
    out = [f"beyond the limit for the first time in {first}"] if first is not None else []
    if one.bias:
        out.append("widened on both sides for what the lender saw and the columns lack")
    if band.tau2:
        out.append(f"years differ by more than sampling: {band.tau2:.2g} is added to the variance of each")
    if rule.rule == "none":
        chance = false_breach(rule.alpha, EIGHT)
        out.append(
            f"each year alone: an honest lender is in breach in some year of {EIGHT} with probability {chance:.2f}"
        )
    if rule.rule == "bonferroni":
        out.append(f"each year alone at 1/{rule.years} of alpha")
    return out
