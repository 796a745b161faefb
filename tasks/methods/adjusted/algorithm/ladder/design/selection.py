"""Choice of terms by double selection: those that tell denial, and those that tell a group, beside the columns.

A product or a bend that the design lacks biases the difference only if it tells denial and group alike. Whatever tells
one of the two is added (Belloni, Chernozhukov and Hansen 2014, section 2.4), so that an error in one choice leaves
little. Chosen forwards by score tests that hold without equal variances, at 5 % over all terms of an equation
(Bonferroni), while each column of the rung keeps 10 denials, approvals and members of the group.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from tasks.methods.adjusted.algorithm.ladder.applications import Applications
from tasks.methods.adjusted.algorithm.ladder.design.matrix import Design, independent
from tasks.methods.adjusted.algorithm.ladder.design.terms import Terms, added, terms_of
from tasks.numerics.arrays import Bools, Floats, Ints
from tasks.numerics.statistics.influence import standard_error
from tasks.numerics.statistics.logit import fit_logit

LEVEL = 0.05
"""Of all tests of an equation together."""
EVENTS = 10
"""Fewest denials, approvals and members for each column."""
MOST_ADDED = 20
LOOKED_AT = 8
"""Terms of a step, the best under equal variances, whose errors are made without."""
NEW = 1e-4
"""Share of a term's square that has to be left beside the columns."""
CHUNK = 8192
"""Rows of which terms are held at a time."""


@dataclass(frozen=True)
class Equation:
    """What terms are held against: an outcome with the columns that it is fitted on."""

    rows: Bools
    """``(n,)`` rows of the design."""
    x: Floats
    """``(m, p)`` columns, of full rank."""
    residual: Floats
    """``(m,)``; the columns are orthogonal to it."""
    weight: Floats
    """``(m,)`` slope of the fitted values: p (1 - p) of a logit, 1 of a linear fit."""
    variance: float
    """Of a residual, in its weight."""
    cluster: Ints | None


def with_terms(design: Design, applications: Applications, used: Bools, rung: int) -> Design:
    """The design up to a rung with the terms that were chosen; the design itself where none is.

    Denial is looked at before the groups and once more after them. Terms that would separate the logit are taken back.

    Args:
        design: All rows and columns.
        applications: For the controls.
        used: ``(n,)`` rows of the design.
        rung: The judged one.
    """
    width = design.widths[rung]
    room = min(MOST_ADDED, _room(design.y) - width)
    if room <= 0 or rung == 0:
        return design
    terms = terms_of(design, applications, used, rung)
    chosen: list[int] = []
    for group in (None, *design.indicators, None):
        if len(chosen) >= room or not len(terms.first):
            break
        wide = added(design, terms, chosen, rung)
        equation = _denial(wide, rung) if group is None else _membership(wide, rung, group)
        most = room if group is None else min(room, _room(wide.group[equation.rows] == group) - width)
        chosen += choose(equation, terms, most - len(chosen))
    return _fitted(design, terms, list(dict.fromkeys(chosen)), rung)


def choose(equation: Equation, terms: Terms, most: int) -> list[int]:
    """Terms in the order of choice, ``most`` at most: the largest score of those that pass, then the next beside it."""
    chosen: list[int] = []
    if most <= 0:
        return chosen
    gram, score = _products(equation, terms)
    p = equation.x.shape[1]
    beside = np.linalg.solve(gram[:p, :p], gram[:p, p:])
    left, size = gram[p:, p:] - gram[:p, p:].T @ beside, np.diag(gram[p:, p:]).copy()
    residual, columns, critical = equation.residual, equation.x, norm.isf(LEVEL / (2 * len(score)))
    while len(chosen) < most:
        own = np.diag(left)
        new = own > NEW * size
        t = np.where(new, np.abs(score) / np.sqrt(np.where(new, own, 1.0) * equation.variance), 0.0)
        best = np.argsort(-t, kind="stable")[:LOOKED_AT].astype(np.int32)
        orthogonal = _beside(columns, terms.values(equation.rows, best), equation.weight)
        errors = [standard_error(each * residual, equation.cluster) for each in orthogonal.T]
        robust = np.nan_to_num(np.where(new[best], np.abs(orthogonal.T @ residual) / np.maximum(errors, 1e-12), 0.0))
        place = int(robust.argmax())
        if robust[place] < critical:
            break
        k, column = int(best[place]), orthogonal[:, place]
        step = score[k] / left[k, k]
        residual = residual - equation.weight * column * step
        score, left = score - left[:, k] * step, left - np.outer(left[:, k], left[k]) / left[k, k]
        columns = np.column_stack([columns, column])
        chosen.append(k)
    return chosen


def _room(events: Floats | Bools) -> int:
    """Columns that outcomes of 0 and 1 have room for."""
    count = int(events.sum())
    return min(count, len(events) - count) // EVENTS


def _denial(design: Design, rung: int) -> Equation:
    """Denial by the logit of the rung; by a linear fit where that is separated."""
    return _equation(design, np.ones(len(design.y), np.bool_), design.x[:, : design.widths[rung]], design.y, logit=True)


def _membership(design: Design, rung: int, group: int) -> Equation:
    """Membership of a group against the reference group, by a linear fit on the controls."""
    rows: Bools = (design.group == group) | (design.group == design.reference)
    x = design.x[np.ix_(rows, np.r_[0, design.first_control : design.widths[rung]])]
    return _equation(design, rows, x, (design.group[rows] == group).astype(np.float64), logit=False)


def _equation(design: Design, rows: Bools, x: Floats, y: Floats, *, logit: bool) -> Equation:
    x = np.ascontiguousarray(x[:, independent(x)])
    cluster = None if design.cluster is None else np.unique(design.cluster[rows], return_inverse=True)[1]
    if logit:
        fit = fit_logit(x, y)
        if not fit.separated:
            return Equation(rows, x, y - fit.fitted, fit.fitted * (1 - fit.fitted), 1.0, cluster)
    residual = y - x @ np.linalg.solve(x.T @ x, x.T @ y)
    return Equation(rows, x, residual, np.ones(len(y)), float(np.mean(residual**2)), cluster)


def _products(equation: Equation, terms: Terms) -> tuple[Floats, Floats]:
    """Weighted cross products of columns and terms ``(p + m, p + m)``, and scores of the terms ``(m,)``."""
    width = equation.x.shape[1] + len(terms.first)
    gram, score = np.zeros((width, width)), np.zeros(len(terms.first))
    at = np.flatnonzero(equation.rows)
    for start in range(0, len(at), CHUNK):
        part = slice(start, start + CHUNK)
        values = terms.values(at[part])
        score += values.T @ equation.residual[part]
        both = np.hstack([equation.x[part], values]) * np.sqrt(equation.weight[part])[:, None]
        gram += both.T @ both
    return gram, score


def _beside(x: Floats, values: Floats, weight: Floats) -> Floats:
    """Terms ``(m, k)`` less what columns ``(m, p)`` tell of them, in the weights."""
    weighted = x * weight[:, None]
    found: Floats = values - x @ np.linalg.solve(x.T @ weighted, weighted.T @ values)
    return found


def _fitted(design: Design, terms: Terms, chosen: list[int], rung: int) -> Design:
    """The design with the terms, less the last ones while the logit is separated."""
    while chosen:
        wide = added(design, terms, chosen, rung)
        if independent(wide.x).all() and not fit_logit(wide.x, wide.y).separated:
            return wide
        if fit_logit(design.x[:, : design.widths[rung]], design.y).separated:
            return wide
        chosen = chosen[:-1]
    return design
