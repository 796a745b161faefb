"""Rows of the logit: odds ratio, and the average marginal effect over the group's own members and over all rows."""

import numpy as np
from scipy.special import expit

from tasks.methods.adjusted.algorithm.ladder.effect import Effect, Fit
from tasks.methods.adjusted.algorithm.ladder.effects import change, effect_of
from tasks.methods.adjusted.algorithm.ladder.estimators.rung import INDEPENDENT, Over, Rung
from tasks.methods.adjusted.algorithm.ladder.firth import FirthFit, fit_firth, profile_interval
from tasks.methods.adjusted.algorithm.sensitivity.e_values import e_value_of_effect
from tasks.numerics.arrays import Floats
from tasks.numerics.statistics.influence import Estimate
from tasks.numerics.statistics.logit import LogitFit, fit_logit

OVER: tuple[Over, ...] = ("own", "all")


def logit_rows(rung: Rung, start: Floats | None) -> tuple[dict[int, list[Effect]], Floats | None]:
    """Effects of each group from one logit of all groups; from Firth's penalised fit where that is separated.

    Args:
        rung: Its rows and columns.
        start: Coefficients of the rung below.

    Returns:
        Rows by group, and coefficients to start the next rung from.
    """
    if rung.too_wide:
        return {
            g: [rung.row(g, "logit", over, Estimate(reason=rung.too_wide)) for over in OVER] for g in rung.groups
        }, None
    x, y = rung.x, rung.design.y
    first = None if start is None else np.concatenate([start, np.zeros(x.shape[1] - len(start))])
    fit = fit_logit(x, y, first)
    if fit.separated:
        return _firth_rows(rung, fit), None
    return {g: _rows(rung, g, fit) for g in rung.groups}, fit.coefficients


def _rows(rung: Rung, group: int, fit: LogitFit) -> list[Effect]:
    """Own and all-row effects of a maximum likelihood fit."""
    found = []
    for over in OVER:
        changed = change(fit.coefficients, _averaged(rung, group, over), rung.design.indicators[group], rung.indicators)
        estimate = effect_of(changed, fit, rung.x, rung.design.y, rung.level, rung.design.cluster)
        found.append(_row(rung, group, over, estimate, changed.on, fit.coefficients, "newton"))
    return found


def _firth_rows(rung: Rung, separated: LogitFit) -> dict[int, list[Effect]]:
    """Effects of the penalised fit; their intervals are the effects at the ends of the profile interval."""
    x, y = rung.x, rung.design.y
    reason = f"separated: {separated.separated}; Firth's penalised fit with profile intervals"
    if rung.design.cluster is not None:
        reason += f", {INDEPENDENT}"
    fit = fit_firth(x, y)
    if not fit.converged:
        none = Estimate(reason=f"{reason}; it did not converge")
        return {g: [rung.row(g, "logit", over, none, fit="firth") for over in OVER] for g in rung.groups}
    return {g: _firth_row(rung, g, fit, reason) for g in rung.groups}


def _firth_row(rung: Rung, group: int, fit: FirthFit, reason: str) -> list[Effect]:
    """Own and all-row effects of one group; no standard error, which a separated fit has not.

    A profile without an end reaches to the largest difference that two probabilities can have.
    """
    design, column = rung.design, rung.design.indicators[group]
    ends = profile_interval(rung.x, design.y, fit, column, rung.level)
    found = []
    for over in OVER:
        rows = _averaged(rung, group, over)
        value, low, high = (
            none if b is None else change(b, rows, column, rung.indicators).effect
            for b, none in ((fit.coefficients, np.nan), (ends.low, -1.0), (ends.high, 1.0))
        )
        denial = float(expit(rows @ fit.coefficients).mean()) if over == "own" else np.nan
        estimate = Estimate(value, low, high, np.nan, reason)
        found.append(_row(rung, group, over, estimate, denial, fit.coefficients, "firth"))
    return found


def _averaged(rung: Rung, group: int, over: Over) -> Floats:
    """The design rows that an effect is averaged over."""
    return rung.x[rung.design.group == group] if over == "own" else rung.x


def _row(
    rung: Rung, group: int, over: Over, estimate: Estimate, denial: float, coefficients: Floats, fit: Fit
) -> Effect:
    """One row of the logit, with its odds ratio and E-values at the group's own share ``denial``."""
    needed = e_value_of_effect(denial, estimate.value, estimate.low, estimate.high)
    return rung.row(
        *(group, "logit", over, estimate),
        odds_ratio=float(np.exp(coefficients[rung.design.indicators[group]])),
        e_value=needed.value,
        e_value_near=needed.near_end,
        fit=fit,
    )
