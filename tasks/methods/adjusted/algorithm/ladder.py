"""The ladder: every rung, group and estimator, and terms by double selection."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import norm

from tasks.methods.adjusted.algorithm import estimators
from tasks.methods.adjusted.algorithm.design import (
    MOST_COLUMNS,
    RARE,
    Applications,
    Control,
    Design,
    LeftOut,
    Rows,
    build_design,
    complete_rows,
    gram_of,
    independent,
    level_name,
    renumbered,
    standardised,
)
from tasks.methods.adjusted.algorithm.interactions import Interaction, interaction_rows
from tasks.methods.adjusted.algorithm.propensity import Support
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.numerics.arrays import Bools, Floats, Ints, Longs, first_columns_of, some_columns_of, some_rows_of, sums_of
from tasks.numerics.statistics.regression import (
    BLOCK,
    MANY,
    LogitFit,
    fit_logit,
    standard_error,
)

# --------------------------------------------------------------------------------------------------------------------
# Terms that may be added to a rung: hinges of numbers, and products across controls.
#
# A hinge is how far a number lies above, or below, one of its quantiles. Each term is a product of two factors, the
# first of which is 1 for a hinge alone, so that no matrix of all terms is ever held.


KNOTS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Quantiles of a number at which a hinge alone begins."""
PAIRED = ((0.5, 0.5), (0.75, 0.25))
"""Quantiles at which the hinges of a product begin: those above, and those below; each is one of the knots."""
MOST = 400
"""Most terms looked at; of more the products that vary most."""
AT_ONCE = 8
"""Terms with all rows in memory."""
ROUNDING = 1e-10
"""Of a variance that is a difference of moments, in units of the second one; some hundred times what was seen."""


@dataclass(frozen=True)
class Factor:
    """A column that terms are made of."""

    name: str
    control: int
    values: Floats
    """``(n,)``."""
    sort: str
    """``plain`` (a number or an indicator), ``knot`` (a hinge alone), or side and rank of a hinge in products."""

    @cached_property
    def is_indicator(self) -> bool:
        """Whether all values are 0 or 1."""
        return bool(((self.values == 0) | (self.values == 1)).all())


@dataclass(frozen=True)
class Terms:
    """Products of two factors each."""

    factors: Floats
    """``(f, n)``; the first is 1."""
    first: Ints
    """``(m,)`` a factor of each term."""
    second: Ints
    """``(m,)`` the other one."""
    names: tuple[str, ...]
    """``(f,)`` of the factors."""
    control: Ints
    """``(f,)`` which control a factor is of; -1 for the first."""

    def values(self, rows: Bools | Longs | slice, terms: Ints | slice = slice(None)) -> Floats:
        """``(rows, terms)``."""
        pairs = np.stack([self.first[terms], self.second[terms]])
        factor_numbers, places = np.unique(pairs, return_inverse=True)
        first_places, two = places.reshape(pairs.shape)
        if isinstance(rows, slice):
            factors = self.factors[:, rows][factor_numbers]
        else:
            factors = self.factors[np.ix_(factor_numbers, np.flatnonzero(rows) if rows.dtype == np.bool_ else rows)]
        products: Floats = factors[first_places]
        products *= factors[two]
        return products.T

    def name(self, term: int) -> str:
        """What a term is, in words."""
        first, second = self.names[self.first[term]], self.names[self.second[term]]
        return f"{first} x {second}" if first else second

    def in_products(self) -> tuple[Ints, Ints]:
        """``(k,)`` factors of terms that are no hinge alone, and ``(f,)`` the place of every factor among them."""
        products = self.first > 0
        numbers = np.unique(np.concatenate([self.first[products], self.second[products]]))
        numbers = numbers if len(numbers) else np.zeros(1, np.int32)  # where all terms are hinges
        place = np.zeros(len(self.factors), np.int32)
        place[numbers] = np.arange(len(numbers))
        return numbers, place

    @cached_property
    def levels(self) -> tuple[Longs, Longs]:
        """The indicators ``(l,)`` of the category that most terms are of, and ``(n,)`` which of them a row has.

        Rows with none have -1. No two indicators of a category are 1 on one row.
        """
        is_indicator = np.array([bool(((of == 0) | (of == 1)).all()) for of in self.factors]) & (self.control >= 0)
        used = np.bincount(np.append(self.first, self.second), minlength=len(self.factors))
        category, level = np.zeros(0, np.int64), np.full(self.factors.shape[1], -1)
        for control in np.unique(self.control[is_indicator]):
            indicators = np.flatnonzero(is_indicator & (self.control == control))
            if used[indicators].sum() > used[category].sum():
                numbers = np.arange(1, 1 + len(indicators)) @ self.factors[indicators]
                if self.factors[indicators].sum(axis=0).max() <= 1:  # steps of a number are no levels
                    category, level = indicators, numbers.astype(np.int64) - 1
        return category, level

    def kept(self, terms: Bools) -> "Terms":
        """Some of the terms."""
        return replace(self, first=self.first[terms], second=self.second[terms])


def terms_of(design: Design, applications: Applications, used: Bools, rung: int) -> Terms:
    """All terms of the controls up to a rung that have 30 rows or more and vary.

    Args:
        design: Rows and columns, numbers with their squares.
        applications: For the values of the controls, by which hinges are named.
        used: ``(n,)`` rows of the design.
        rung: Whose controls are looked at.
    """
    factors = list(_every_factor(design, applications, used, rung))
    pairs = [(0, k) for k, factor in enumerate(factors) if factor.sort == "knot"]
    pairs += [
        (i, j)
        for i, first in enumerate(factors)
        for j, other in enumerate(factors[i + 1 :], i + 1)
        if i and first.control != other.control and _meet(first, other)
    ]
    first, second = np.array(pairs, np.int32).reshape(-1, 2).T
    names, controls = tuple(factor.name for factor in factors), np.array([factor.control for factor in factors])
    columns = np.empty((len(factors), len(design.y)))
    for place in reversed(range(len(factors))):  # each goes as it is copied: never all of them twice
        columns[place] = factors.pop().values
    terms = Terms(columns, first, second, names, controls)
    count, spread, error = _spreads(terms)
    alone, common = terms.first == 0, count >= RARE
    spread = _exact(terms, spread, common & (spread <= error))
    fit = common & (spread > 0)
    if fit.sum() > MOST:
        last = np.sort(np.where(fit, np.where(alone, np.inf, spread), -1.0))[-MOST]
        spread = _exact(terms, spread, fit & ~alone & (np.abs(spread - last) <= error + error.max()))
        order = np.argsort(-np.where(fit, np.where(alone, np.inf, spread), -1.0), kind="stable")
        fit[order[MOST:]] = False
    return terms.kept(fit)


def _spreads(terms: Terms) -> tuple[Floats, Floats, Floats]:
    """``(m,)`` rows on which each term is not 0, its standard deviation by its moments, and how far that may be off.

    The moments of all products are cross products of the factors and of their squares: a tenth of the time that the
    products themselves take.
    """
    numbers, place = terms.in_products()
    rows = terms.factors.shape[1]
    sums = np.zeros((3, len(numbers), len(numbers)))
    for start in range(0, rows, CHUNK):
        factors = terms.factors[numbers, start : start + CHUNK]
        present = (factors != 0).astype(np.float32)
        sums += [present @ present.T, factors @ factors.T, factors**2 @ (factors**2).T]
    count, mean, square = sums[:, place[terms.first], place[terms.second]]
    for term in np.flatnonzero(terms.first == 0):
        values = terms.factors[terms.second[term]]
        count[term], mean[term], square[term] = np.count_nonzero(values), values.sum(), values @ values
    mean, square = mean / rows, square / rows
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    return count, spread, ROUNDING * square / np.maximum(spread, np.sqrt(ROUNDING * square) + 1e-300)


def _exact(terms: Terms, spread: Floats, chosen: Bools) -> Floats:
    """The spreads with those of some terms by their values, where rounding may decide."""
    spread, which = spread.copy(), np.flatnonzero(chosen).astype(np.int32)
    for start in range(0, len(which), AT_ONCE):
        part = which[start : start + AT_ONCE]
        spread[part] = terms.values(slice(None), part).std(axis=0)
    return spread


def same_terms(
    terms: Terms, chosen: Sequence[int], design: Design, applications: Applications, used: Bools, rung: int
) -> Terms:
    """Terms that were chosen on some of the rows, on all rows of a design, in single precision; in their order."""
    pairs = np.stack([terms.first[chosen], terms.second[chosen]])
    numbers, places = np.unique(pairs, return_inverse=True)
    controls = [control for block in applications.blocks[:rung] for control in block.controls]
    factors, names = np.empty((len(numbers), len(design.y)), np.float32), []
    for of in np.unique(terms.control[numbers]):  # of other controls no factor is made
        numbered = zip(
            np.flatnonzero(terms.control == of),
            _factors(design, int(of), controls[of], used) if of >= 0 else [_one(design)],
            strict=True,
        )
        for number, factor in numbered:
            if (row := np.searchsorted(numbers, number)) < len(numbers) and numbers[row] == number:
                factors[row] = factor.values
                names.append(factor.name)
    first, second = places.reshape(pairs.shape).astype(np.int32)
    values: Any = factors
    return Terms(values, first, second, tuple(names), terms.control[numbers])


def _every_factor(design: Design, applications: Applications, used: Bools, rung: int) -> Iterator[Factor]:
    """The factor 1, and those of all controls up to a rung, in the same order for all rows and for some."""
    yield _one(design)
    controls = [control for block in applications.blocks[:rung] for control in block.controls]
    for number, control in enumerate(controls):
        yield from _factors(design, number, control, used)


def _one(design: Design) -> Factor:
    return Factor("", -1, np.ones(len(design.y)), "one")


def _meet(first: Factor, other: Factor) -> bool:
    """Whether two factors make a product: plain ones, hinges of one rank, a hinge at the median with a level."""
    if "knot" in (first.sort, other.sort):
        return False
    if "plain" in (first.sort, other.sort):
        hinge, plain = (first, other) if other.sort == "plain" else (other, first)
        return hinge.sort == "plain" or (hinge.sort == "above 0" and plain.is_indicator)
    return first.sort[-1] == other.sort[-1]


def _factors(design: Design, number: int, control: Control, used: Bools) -> Iterator[Factor]:
    """The factors of one control: its own columns but squares, the base of a category, and hinges of a number."""
    at = [j for j, of in enumerate(design.control) if of == number]
    squared = f"{control.name} squared"
    for j in at:
        if design.names[j] != squared:
            yield Factor(design.names[j], number, design.matrix[:, j], "plain")
    if control.kind == "category":
        if len(at) > 1:
            levels, counts = np.unique(control.values[used], return_counts=True)
            name = level_name(control, float(levels[counts.argmax()]))
            yield Factor(name, number, 1 - np.sum([design.matrix[:, j] for j in at], axis=0), "plain")
    elif squared in (design.names[j] for j in at):
        z = design.matrix[:, at[0]]
        # all quantiles at once: of many rows most of the time goes into them
        knots, named = (dict(zip(KNOTS, np.quantile(of, KNOTS), strict=True)) for of in (z, control.values[used]))
        for share in KNOTS:
            name = f"{control.name} above {named[share]:.3g}"
            yield Factor(name, number, np.maximum(z - knots[share], 0), "knot")
        for rank, (above, below) in enumerate(PAIRED):
            over, under = np.maximum(z - knots[above], 0), np.maximum(knots[below] - z, 0)
            yield Factor(f"{control.name} above {named[above]:.3g}", number, over, f"above {rank}")
            yield Factor(f"{control.name} below {named[below]:.3g}", number, under, f"below {rank}")


def added(design: Design, terms: Terms, chosen: list[int], rung: int) -> Design:
    """The design up to a rung with terms as its last columns. A hinge is a column of its control, a product of both.

    A term stands there less what the controls and the terms before it tell of it, which changes no effect: coefficients
    stay of the size of one, and separation is found by theirs. Groups are not taken out: no control may depend on them.
    """
    width = design.widths[rung]
    if not chosen:
        return design
    packed, x = None, design.x
    if design.packed is not None:
        packed = design.packed.beside(_beside(design, terms, chosen, width))
    elif len(design.y) > BLOCK:
        x = np.empty((len(design.x), width + len(chosen)))
        x[:, :width] = design.x[:, :width]
        x[:, width:] = _beside(design, terms, chosen, width).T
    else:
        # standardised residuals of the terms, given the controls and the terms before
        basis, columns = np.linalg.qr(design.x[:, np.r_[0, design.first_control : width]])[0], []
        for term in terms.values(slice(None), np.array(chosen, np.int32)).T:
            residual = term - basis @ (basis.T @ term)
            columns.append(standardised(residual - basis @ (basis.T @ residual)))
            basis = np.column_stack([basis, columns[-1] / np.sqrt(len(residual))])
        x = np.hstack([design.x[:, :width], np.column_stack(columns)])
    first, second = terms.control[terms.first[chosen]], terms.control[terms.second[chosen]]
    return replace(
        design,
        x=x,
        names=(*design.names[:width], *(terms.name(k) for k in chosen)),
        control=(*design.control[:width], *(int(term) for term in second)),
        widths=(*design.widths[:rung], width + len(chosen)),
        partners={width + place: int(term) for place, term in enumerate(first) if term >= 0},
        terms=tuple(terms.name(k) for k in chosen),
        levels=None,
        placed=design.placed[:0],
        packed=packed,
    )


def _beside(design: Design, terms: Terms, chosen: list[int], width: int) -> Floats:
    """``(terms, n)`` the same residuals of many rows, by cross products in place of a basis.

    What the columns tell of all terms is taken out at once, in two passes for what rounding leaves.
    """
    x = some_columns_of(design.matrix, np.arange(width))
    gram = gram_of(x)
    of_groups = slice(1, design.first_control)
    gram[of_groups], gram[:, of_groups] = 0.0, 0.0
    bread = np.linalg.pinv(gram, hermitian=True)
    residuals = np.empty((len(chosen), len(x)))
    for place, number in enumerate(chosen):
        residuals[place] = terms.values(slice(None), np.array([number], np.int32))[:, 0]
    for _ in range(2):
        shares = bread @ sums_of(x, residuals.T)
        for start in range(0, len(x), BLOCK):
            rows = slice(start, start + BLOCK)
            residuals[:, rows] -= (some_rows_of(x, rows) @ shares).T
    for place, residual in enumerate(residuals):
        before = residuals[:place]
        for _ in range(2):
            residual -= (before @ residual / len(residual)) @ before
        residual[:] = standardised(residual)
    return residuals


# --------------------------------------------------------------------------------------------------------------------
# Selects terms by double selection: terms that predict denial or membership of a group, given the columns.
#
# A product or a bend that the design lacks biases the difference only if it tells denial and group alike. Whatever
# tells one of the two is added (Belloni, Chernozhukov and Hansen 2014, section 2.4), so that an error in one choice
# leaves little. Chosen forwards by score tests that hold without equal variances, at 5 % over all terms of an equation
# (Bonferroni), while each column of the rung keeps 10 denials, approvals and members of the group.


LEVEL = 0.05
"""Of all tests of an equation together."""
EVENTS = 10
"""Fewest denials, approvals and members for each column."""
MOST_ADDED = 20
SHARE = 10
"""Most of them that denial chooses before the groups, and that these choose, two of each at least."""
LOOKED_AT = 8
"""Terms of a step, the best under equal variances, before their robust errors are computed."""
NEW = 1e-4
"""Share of a term's square that has to be left beside the columns."""
CHUNK = 2048
"""Rows with terms in memory at a time."""
FACTOR_ROWS = 16_384
"""Rows with factors in memory a second time."""
LOOKED_AT_ROWS, LOOKED_AT_MEMBERS = 60_000, 20_000
"""Rows of the reference group, and of each other group, by which the terms of more than ``MANY`` rows are chosen."""


@dataclass(frozen=True)
class Equation:
    """What terms are held against: an outcome with the columns that it is fitted on."""

    rows: Bools
    """``(n,)`` rows of the design."""
    x: Floats
    """``(m, p)`` columns."""
    independent: Bools
    """``(p,)`` columns that are no combination of others on these rows."""
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


def with_terms(
    design: Design, applications: Applications, used: Bools, rung: int, fit: LogitFit | None = None
) -> tuple[Design, LogitFit]:
    """The design up to a rung with the terms that were chosen, and its fit; the design itself where none is.

    Denial is looked at before the groups and once more after them. Terms that would separate the logit are taken back;
    none is looked for where it is separated without them, as by a model that decides by the columns.

    Args:
        design: All rows and columns.
        applications: For the controls.
        used: ``(n,)`` rows of the design.
        rung: The judged one.
        fit: Of its columns, if it is known.
    """
    width = design.widths[rung]
    room = min(MOST_ADDED, _room(design.y) - width, MOST_COLUMNS - width)
    fit = fit or fit_logit(first_columns_of(design.matrix, width), design.y)
    if room <= 0 or rung == 0 or fit.separated:
        return design, fit
    few, of_few, used_few = some_rows(design, applications, used)
    terms = terms_of(few, of_few, used_few, rung)
    if not len(terms.first):
        return design, fit
    chosen = choose(_denial(few, rung), terms, min(room, SHARE))
    chosen = of_groups(added(few, terms, chosen, rung), terms, chosen, rung, room)
    chosen += choose(_denial(added(few, terms, chosen, rung), rung), terms, room - len(chosen))
    if few is not design and chosen:
        terms, chosen = same_terms(terms, chosen, design, applications, used, rung), list(range(len(chosen)))
    while chosen:
        wide = added(design, terms, chosen, rung)
        if independent(wide.matrix).all() and not (of_wide := fit_logit(wide.matrix, wide.y)).separated:
            return wide, of_wide
        chosen = chosen[:-1]
    return design, fit


def some_rows(design: Design, applications: Applications, used: Bools) -> tuple[Design, Applications, Bools]:
    """Of more than ``MANY`` rows every so many-th of each group, to choose terms by; else all rows."""
    if len(design.y) <= MANY:
        return design, applications, used
    parts = []
    for group in (design.reference, *design.indicators):
        rows = np.flatnonzero(design.group == group)
        most = LOOKED_AT_ROWS if group == design.reference else LOOKED_AT_MEMBERS
        parts.append(rows[:: 1 + len(rows) // most])
    rows = np.sort(np.concatenate(parts))
    at = np.flatnonzero(used)[rows]
    blocks = tuple(
        replace(block, controls=tuple(replace(control, values=control.values[at]) for control in block.controls))
        for block in applications.blocks
    )
    cluster = None if applications.cluster is None else applications.cluster[at]
    few = replace(
        applications, denied=applications.denied[at], group=applications.group[at], blocks=blocks, cluster=cluster
    )
    of_design = None if design.cluster is None else renumbered(design.cluster[rows])
    x, y = design.matrix[rows], design.y[rows]
    some = replace(design, x=x, y=y, group=design.group[rows], cluster=of_design, levels=None, packed=None)
    return some, few, np.ones(len(rows), np.bool_)


def of_groups(design: Design, terms: Terms, chosen: list[int], rung: int, room: int) -> list[int]:
    """The terms chosen for denial, then the terms that predict each group. The reference rows are summed once."""
    every = _membership(design, rung, None)
    sums = {
        label: _products(every.of(design.group == label), terms) for label in (design.reference, *design.indicators)
    }
    del every
    of_each, term_numbers = max(2, SHARE // len(design.indicators)), list(chosen)
    for group in design.indicators:
        equation = _membership(design, rung, group)
        group_room = _room(design.group[equation.rows] == group) - design.widths[rung]
        gram = sums[group] + sums[design.reference]
        group_terms = choose(equation, terms, min(of_each, group_room, room - len(term_numbers)), gram)
        term_numbers += [k for k in group_terms if k not in term_numbers]
    return term_numbers


def choose(equation: Equation, terms: Terms, most: int, gram: Floats | None = None) -> list[int]:
    """At most ``most`` terms in the order of choice: the largest significant score, then the next one given it.

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
    column_mask = np.append(equation.independent, np.ones(len(terms.first), np.bool_))
    gram, columns, p = (
        gram[np.ix_(column_mask, column_mask)],
        _columns(equation.x, equation.independent),
        int(equation.independent.sum()),
    )
    score = _scores(equation, terms)
    beside = np.linalg.solve(gram[:p, :p], gram[:p, p:])
    residual_gram, size = gram[p:, p:] - gram[:p, p:].T @ beside, np.diag(gram[p:, p:]).copy()
    residual, critical = equation.residual, norm.isf(LEVEL / (2 * len(score)))
    # what is left of the chosen terms is at right angles, in the weights, to the columns and to each other
    orthogonals, sizes = np.empty((most, len(residual))), np.empty(most)
    while len(chosen) < most:
        residual_size = np.diag(residual_gram)
        new = residual_size > NEW * size
        t = np.where(new, np.abs(score) / np.sqrt(np.where(new, residual_size, 1.0) * equation.variance), 0.0)
        best = np.argsort(-t, kind="stable")[:LOOKED_AT].astype(np.int32)
        # residuals of the terms ``(m, k)`` after a weighted regression on the columns ``(m, p)``
        before, values = orthogonals[: len(chosen)], terms.values(equation.rows, best)
        weighted = values * equation.weight[:, None]
        orthogonal = values - columns @ np.linalg.solve(gram[:p, :p], columns.T @ weighted)
        orthogonal -= before.T @ (before @ weighted / sizes[: len(chosen), None])
        errors = [standard_error(column * residual, equation.cluster) for column in orthogonal.T]
        robust = np.nan_to_num(np.where(new[best], np.abs(orthogonal.T @ residual) / np.maximum(errors, 1e-12), 0.0))
        place = int(robust.argmax())
        if robust[place] < critical:
            break
        k, column = int(best[place]), orthogonal[:, place]
        step = score[k] / residual_gram[k, k]
        residual = residual - equation.weight * column * step
        score, residual_gram = (
            score - residual_gram[:, k] * step,
            residual_gram - np.outer(residual_gram[:, k], residual_gram[k]) / residual_gram[k, k],
        )
        orthogonals[len(chosen)], sizes[len(chosen)] = column, equation.weight @ column**2
        chosen.append(k)
    return chosen


def _room(events: Floats | Bools) -> int:
    """Columns that outcomes of 0 and 1 have room for."""
    count = int(events.sum())
    return min(count, len(events) - count) // EVENTS


def _denial(design: Design, rung: int) -> Equation:
    """Denial by the logit of the rung; by a linear fit where terms separate it."""
    return equation_of(
        design, np.ones(len(design.y), np.bool_), design.x[:, : design.widths[rung]], design.y, logit=True
    )


def _membership(design: Design, rung: int, group: int | None) -> Equation:
    """Membership of a group against the reference group, by a linear fit on the controls; all rows without a group."""
    rows: Bools = (design.group == group) | (design.group == design.reference) | (group is None)
    x = design.x[np.ix_(rows, np.r_[0, design.first_control : design.widths[rung]])]
    return equation_of(design, rows, x, (design.group[rows] == group).astype(np.float64), logit=False)


def equation_of(design: Design, rows: Bools, x: Floats, y: Floats, *, logit: bool) -> Equation:
    """What terms are held against on some rows of a design: the residuals of a fit of ``y`` on ``x``."""
    column_mask, cluster = independent(x), None
    independent_x = np.ascontiguousarray(_columns(x, column_mask))
    if design.cluster is not None:
        cluster = np.unique(design.cluster[rows], return_inverse=True)[1].astype(np.int32)
    if logit:
        fit = fit_logit(independent_x, y)
        if not fit.separated:
            return Equation(rows, x, column_mask, y - fit.fitted, fit.fitted * (1 - fit.fitted), 1.0, cluster)
    residual = y - independent_x @ np.linalg.solve(independent_x.T @ independent_x, independent_x.T @ y)
    return Equation(rows, x, column_mask, residual, np.ones(len(y)), float(np.mean(residual**2)), cluster)


def _columns(x: Floats, column_mask: Bools) -> Floats:
    """The columns of the mask; no second array where that is all of them."""
    return x if column_mask.all() else x[:, column_mask]


def _products(equation: Equation, terms: Terms) -> Floats:
    """``(p + m, p + m)`` weighted cross products of columns and terms.

    Rows go by the levels of the category that most terms are of: on those of one level the terms of others are 0.
    """
    width, at = equation.x.shape[1], np.flatnonzero(equation.rows)
    gram, (category, level) = np.zeros((width + len(terms.first),) * 2), terms.levels
    order = np.argsort(level[at], kind="stable")
    for of_level in np.split(order, np.flatnonzero(np.diff(level[at[order]])) + 1):
        absent = np.zeros(len(terms.factors), np.bool_)
        absent[category] = np.arange(len(category)) != level[at[of_level[0]]]
        present = np.flatnonzero(~(absent[terms.first] | absent[terms.second])).astype(np.int32)
        columns = np.append(np.arange(width), width + present)
        sums = np.zeros((len(columns),) * 2)
        for start in range(0, len(of_level), CHUNK):
            part = of_level[start : start + CHUNK]
            weighted_columns = np.vstack([equation.x[part].T, terms.values(at[part], present).T])
            weighted_columns *= np.sqrt(equation.weight[part])
            sums += weighted_columns @ weighted_columns.T
        gram[np.ix_(columns, columns)] += sums
    return gram


def _scores(equation: Equation, terms: Terms) -> Floats:
    """``(m,)`` sums of term times residual."""
    at, alone = np.flatnonzero(equation.rows), terms.first == 0
    numbers, place = terms.in_products()
    sums, scores = np.zeros((len(numbers), len(numbers))), np.zeros(len(terms.first))
    for start in range(0, len(at), FACTOR_ROWS):
        part = slice(start, start + FACTOR_ROWS)
        residual, rows = equation.residual[part], at[part]
        factors = terms.factors[:, rows]
        sums += (factors[numbers] * residual) @ factors[numbers].T
        scores[alone] += factors[terms.second[alone]] @ residual
    scores[~alone] = sums[place[terms.first[~alone]], place[terms.second[~alone]]]
    return scores


# --------------------------------------------------------------------------------------------------------------------
# The ladder: every rung, group and estimator of one decision maker and protected attribute.
#
# All rungs use the same rows, those that are complete on the last one. Groups with too few denials or approvals are
# refused by name; so is everything where the reference group has too few.


OVER: dict[estimators.Estimator, tuple[estimators.Over, ...]] = {
    "logit": ("own", "all"),
    "lpm": ("all",),
    "overlap": ("overlap",),
    "aipw": ("own",),
    "expected": ("own",),
}
"""Rows of each estimator."""


@dataclass(frozen=True)
class Ladder:
    """Results of the ladder."""

    effects: tuple[estimators.Effect, ...]
    """By rung, group, estimator in the order of the settings; every group but the reference has a row of each."""
    support: tuple[Support, ...]
    interactions: tuple[Interaction, ...]
    """On the judged rung."""
    left_out: tuple[LeftOut, ...]
    used: int
    """Rows of every rung; with those left out, all rows."""

    def extended(self, effects: Iterable[estimators.Effect]) -> "Ladder":
        """The ladder with further effects."""
        return replace(self, effects=(*self.effects, *effects))


def climb(applications: Applications, settings: AdjustedSettings, level: float, rng: np.random.Generator) -> Ladder:
    """Adjusted effects on every rung.

    Args:
        applications: Decisions, groups and blocks of controls.
        settings: Estimators, form, folds and the fewest events.
        level: Of the intervals, 0.95 for 95 %.
        rng: Draws folds and bootstrap weights.

    Where ``settings.primary`` is no block, because the data lack its columns, nothing is judged instead: that rung
    stands above the others without a number.
    """
    judged_rung = primary_rung(applications, settings)
    rows = complete_rows(applications)
    refused = {group: refusal(applications, rows, group, settings.minimum_events) for group in others(applications)}
    groups = tuple(group for group, reason in refused.items() if not reason)
    is_large = rows.used.sum() > BLOCK and not settings.cluster_bootstrap  # which needs every column
    in_judged = estimators.PLACE in names(applications, judged_rung or 0)
    absorbed = estimators.PLACE if is_large and not in_judged else ""
    is_packed = rows.used.sum() > MANY and not settings.cluster_bootstrap
    design = build_design(applications, rows, settings.form, absorbed, packed=is_packed) if groups else None
    chosen, plain, judged_fit = design, None, None
    if design is not None and judged_rung is not None:
        plain = judged_fit = fit_logit(first_columns_of(design.matrix, design.widths[judged_rung]), design.y)
    if design is not None and judged_rung is not None and settings.terms == "selected" and settings.form == "squared":
        chosen, judged_fit = with_terms(design, applications, rows.used, judged_rung, plain)
        width = design.matrix.shape[1]
        if chosen.packed is not None and design.widths[judged_rung] == width:
            design = replace(design, packed=chosen.packed.having(np.arange(width)))  # one matrix for both
    effects: list[estimators.Effect] = []
    support: list[Support] = []
    start: Floats | None = None
    for number in range(len(applications.blocks) + 1):
        effects_of_group: dict[int, list[estimators.Effect]] = {}
        of = chosen if number == judged_rung else design
        if of is not None and design is not None:
            rung = estimators.Rung(
                *(number, names(applications, number), of, level, rows.counts, rows.events, groups),
                fit=judged_fit if number == judged_rung and len(of.y) > BLOCK else None,
            )
            effects_of_group, start, supported = _climb_rung(rung, applications, settings, start, rng)
            support += supported
            start = None if start is None else start[: design.widths[number]]
        for group, reason in refused.items():
            effects += effects_of_group.get(group) or _refused(applications, rows, settings, number, group, reason)
    if judged_rung is None:
        reason = f"no_primary: these data have no column of the block {settings.primary!r}, which was to be judged"
        for group in refused:
            effects += _refused(applications, rows, settings, len(applications.blocks) + 1, group, reason)
    tests: tuple[Interaction, ...] = ()
    if design is not None and judged_rung is not None and plain is not None:
        tests = interaction_rows(applications, rows.used, design, judged_rung, plain, groups, level)
    return Ladder(tuple(effects), tuple(support), tests, rows.left_out, int(rows.used.sum()))


def primary_rung(applications: Applications, settings: AdjustedSettings) -> int | None:
    """The rung that is judged: that of ``settings.primary``, else the last one before ``place``.

    None where there is no block of that name: what is judged is never chosen after looking.
    """
    blocks = names(applications, len(applications.blocks))
    if settings.primary is not None:
        return 1 + blocks.index(settings.primary) if settings.primary in blocks else None
    return blocks.index(estimators.PLACE) if estimators.PLACE in blocks else len(blocks)


def others(applications: Applications) -> tuple[int, ...]:
    """All groups but the reference."""
    return tuple(group for group in range(len(applications.groups)) if group != applications.reference)


def refusal(applications: Applications, rows: Rows, group: int, fewest: int, of_group: int | None = None) -> str:
    """Why a group has no adjusted effect; empty where it has.

    Args:
        applications: of all groups.
        rows: that are complete.
        group: that is compared.
        fewest: denials, and approvals, that both groups need.
        of_group: those that the group needs, where it needs fewer.
    """
    needed = {group: fewest if of_group is None else of_group, applications.reference: fewest}
    for compared_group, events in needed.items():
        name = applications.groups[compared_group]
        if rows.counts[compared_group] == 0:
            return f"no_rows: {name} has no complete rows"
        if rows.fewest(compared_group) < events:
            return f"too_few_events: {name} has fewer than {events} denials or approvals"  # counts may be withheld
    return ""


def names(applications: Applications, rung: int) -> tuple[str, ...]:
    """Names of the blocks up to a rung."""
    return tuple(block.name for block in applications.blocks[:rung])


def _climb_rung(
    rung: estimators.Rung,
    applications: Applications,
    settings: AdjustedSettings,
    start: Floats | None,
    rng: np.random.Generator,
) -> tuple[dict[int, list[estimators.Effect]], Floats | None, tuple[Support, ...]]:
    """Effects by group, coefficients for the next rung, and support."""
    scores, support = estimators.propensities(rung)
    rung = estimators.with_support(rung, support)
    effects_by_estimator: dict[tuple[int, estimators.Estimator], list[estimators.Effect]] = {}
    if "logit" in settings.estimators:
        by_group, start = estimators.logit_rows(rung, start)
        effects_by_estimator |= {(group, "logit"): rows for group, rows in by_group.items()}
    if "lpm" in settings.estimators:
        controls = tuple(control.name for block in applications.blocks for control in block.controls)
        linear = estimators.linear_rows(rung, controls, rng, bootstrap=settings.cluster_bootstrap)
        effects_by_estimator |= {(group, "lpm"): rows for group, rows in linear.items()}
    effects_by_estimator |= estimators.weighted_rows(
        rung, scores, settings.estimators, settings.folds, settings.splits, rng
    )
    ordered = {
        group: [row for estimator in settings.estimators for row in effects_by_estimator[group, estimator]]
        for group in rung.groups
    }
    return ordered, start, support


def _refused(
    applications: Applications, rows: Rows, settings: AdjustedSettings, number: int, group: int, reason: str
) -> list[estimators.Effect]:
    """The rows of a group without a number, on one rung."""
    n, events = int(rows.counts[group]), int(rows.events[group])
    blocks, nan = names(applications, number), math.nan
    if number > len(applications.blocks):
        blocks = (*blocks, str(settings.primary))
    return [
        estimators.Effect(number, blocks, group, estimator, over, nan, nan, nan, nan, n=n, events=events, reason=reason)
        for estimator in settings.estimators
        for over in OVER[estimator]
    ]
