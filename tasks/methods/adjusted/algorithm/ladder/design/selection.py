"""Choice of terms by double selection: those that tell denial, and those that tell a group, beside the columns.

A product or a bend that the design lacks biases the difference only if it tells denial and group alike. Whatever tells
one of the two is added (Belloni, Chernozhukov and Hansen 2014, section 2.4), so that an error in one choice leaves
little. Chosen forwards by score tests that hold without equal variances, at 5 % over all terms of an equation
(Bonferroni), while each column of the rung keeps 10 denials, approvals and members of the group.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from tasks.methods.adjusted.algorithm.ladder.applications import Applications
from tasks.methods.adjusted.algorithm.ladder.design.matrix import MOST_COLUMNS, Design, independent
from tasks.methods.adjusted.algorithm.ladder.design.terms import Terms, added, terms_of
from tasks.numerics.arrays import Bools, Floats, Ints
from tasks.numerics.statistics.influence import standard_error
from tasks.numerics.statistics.logit import fit_logit

LEVEL = 0.05
"""Of all tests of an equation together."""
EVENTS = 10
"""Fewest denials, approvals and members for each column."""
MOST_ADDED = 20
SHARE = 10
"""Most of them that denial chooses before the groups, and that these choose, two of each at least."""
LOOKED_AT = 8
"""Terms of a step, the best under equal variances, whose errors are made without."""
NEW = 1e-4
"""Share of a term's square that has to be left beside the columns."""
CHUNK = 2048
"""Rows of which terms are held at a time."""
FACTOR_ROWS = 200_000
"""Rows of which factors are held a second time."""


@dataclass(frozen=True)
class Equation:
    """What terms are held against: an outcome with the columns that it is fitted on."""

    rows: Bools
    """``(n,)`` rows of the design."""
    x: Floats
    """``(m, p)`` columns."""
    kept: Bools
    """``(p,)`` those that are no combination of others on these rows."""
    residual: Floats
    """``(m,)``; the columns are orthogonal to it."""
    weight: Floats
    """``(m,)`` slope of the fitted values: p (1 - p) of a logit, 1 of a linear fit."""
    variance: float
    """Of a residual, in its weight."""
    cluster: Ints | None

    def of(self, part: Bools) -> "Equation":
        """Some of its rows, without a fit."""
        inside = part[self.rows]
        rows, x = self.rows & part, self.x[inside]
        return replace(self, rows=rows, x=x, residual=self.residual[inside], weight=self.weight[inside])


def with_terms(design: Design, applications: Applications, used: Bools, rung: int) -> Design:
    """The design up to a rung with the terms that were chosen; the design itself where none is.

    Denial is looked at before the groups and once more after them. Terms that would separate the logit are taken back;
    none is looked for where it is separated without them, as by a model that decides by the columns.

    Args:
        design: All rows and columns.
        applications: For the controls.
        used: ``(n,)`` rows of the design.
        rung: The judged one.
    """
    width = design.widths[rung]
    room = min(MOST_ADDED, _room(design.y) - width, MOST_COLUMNS - width)
    if room <= 0 or rung == 0 or fit_logit(design.x[:, :width], design.y).separated:
        return design
    terms = terms_of(design, applications, used, rung)
    if not len(terms.first):
        return design
    chosen = choose(_denial(design, rung), terms, min(room, SHARE))
    chosen = _of_groups(added(design, terms, chosen, rung), terms, chosen, rung, room)
    chosen += choose(_denial(added(design, terms, chosen, rung), rung), terms, room - len(chosen))
    return _fitted(design, terms, chosen, rung)


def _of_groups(design: Design, terms: Terms, chosen: list[int], rung: int, room: int) -> list[int]:
    """The terms chosen for denial, and after them those that tell each group; the reference rows are summed once."""
    every = _membership(design, rung, None)
    sums = {
        label: _products(every.of(design.group == label), terms) for label in (design.reference, *design.indicators)
    }
    of_each, found = max(2, SHARE // len(design.indicators)), list(chosen)
    for group in design.indicators:
        equation = _membership(design, rung, group)
        held = _room(design.group[equation.rows] == group) - design.widths[rung]
        gram = sums[group] + sums[design.reference]
        more = choose(equation, terms, min(of_each, held, room - len(found)), gram)
        found += [k for k in more if k not in found]
    return found


def choose(equation: Equation, terms: Terms, most: int, gram: Floats | None = None) -> list[int]:
    """Terms in the order of choice, ``most`` at most: the largest score of those that pass, then the next beside it.

    Args:
        equation: What terms are held against.
        terms: All of them.
        most: No choice is made if it is 0 or less.
        gram: Their cross products with the columns, if they are known: of all columns, dependent ones too.
    """
    chosen: list[int] = []
    if most <= 0:
        return chosen
    gram = _products(equation, terms) if gram is None else gram
    kept = np.append(equation.kept, np.ones(len(terms.first), np.bool_))
    gram, columns, p = gram[np.ix_(kept, kept)], _columns(equation.x, equation.kept), int(equation.kept.sum())
    score = _scores(equation, terms)
    beside = np.linalg.solve(gram[:p, :p], gram[:p, p:])
    left, size = gram[p:, p:] - gram[:p, p:].T @ beside, np.diag(gram[p:, p:]).copy()
    residual, critical = equation.residual, norm.isf(LEVEL / (2 * len(score)))
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
    """Denial by the logit of the rung; by a linear fit where terms separate it."""
    return _equation(design, np.ones(len(design.y), np.bool_), design.x[:, : design.widths[rung]], design.y, logit=True)


def _membership(design: Design, rung: int, group: int | None) -> Equation:
    """Membership of a group against the reference group, by a linear fit on the controls; all rows without a group."""
    rows: Bools = (design.group == group) | (design.group == design.reference) | (group is None)
    x = design.x[np.ix_(rows, np.r_[0, design.first_control : design.widths[rung]])]
    return _equation(design, rows, x, (design.group[rows] == group).astype(np.float64), logit=False)


def _equation(design: Design, rows: Bools, x: Floats, y: Floats, *, logit: bool) -> Equation:
    kept, cluster = independent(x), None
    own = np.ascontiguousarray(_columns(x, kept))
    if design.cluster is not None:
        cluster = np.unique(design.cluster[rows], return_inverse=True)[1].astype(np.int32)
    if logit:
        fit = fit_logit(own, y)
        if not fit.separated:
            return Equation(rows, x, kept, y - fit.fitted, fit.fitted * (1 - fit.fitted), 1.0, cluster)
    residual = y - own @ np.linalg.solve(own.T @ own, own.T @ y)
    return Equation(rows, x, kept, residual, np.ones(len(y)), float(np.mean(residual**2)), cluster)


def _columns(x: Floats, kept: Bools) -> Floats:
    """Those that are kept; no second array where all are."""
    return x if kept.all() else x[:, kept]


def _products(equation: Equation, terms: Terms) -> Floats:
    """``(p + m, p + m)`` weighted cross products of columns and terms."""
    width = equation.x.shape[1] + len(terms.first)
    gram, at = np.zeros((width, width)), np.flatnonzero(equation.rows)
    for start in range(0, len(at), CHUNK):
        part = slice(start, start + CHUNK)
        both = np.vstack([equation.x[part].T, terms.values(at[part]).T])
        both *= np.sqrt(equation.weight[part])
        gram += both @ both.T
    return gram


def _scores(equation: Equation, terms: Terms) -> Floats:
    """``(m,)`` sums of term times residual."""
    at = np.flatnonzero(equation.rows)
    sums = np.zeros((len(terms.factors), len(terms.factors)))
    for start in range(0, len(at), FACTOR_ROWS):
        part = slice(start, start + FACTOR_ROWS)
        factors = terms.factors[:, at[part]]
        sums += (factors * equation.residual[part]) @ factors.T
    found: Floats = sums[terms.first, terms.second]
    return found


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
        chosen = chosen[:-1]
    return design
