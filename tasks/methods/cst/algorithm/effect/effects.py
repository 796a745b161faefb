"""Effects of one group from arrays: situation testing (direct) and CST (total), each with its standard error.

Scope: applicants, labels, decisions and counterfactuals in, two effects out; no problem, no settings of an audit beside
those of the search. Aggregates of an audit: ``aggregates``.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from schemas.terms import Refusal
from tasks.methods.cst.algorithm.effect.contrast import Contrast, Lists, Sides, contrast, designs_of, sides_of
from tasks.methods.cst.algorithm.effect.refits import Mover, structural_variances
from tasks.methods.cst.algorithm.neighbours import distance
from tasks.methods.cst.algorithm.neighbours.distance import Space
from tasks.methods.cst.algorithm.neighbours.search import index, nearest
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.columns import Columns
from tasks.numerics.problem import Counterfactuals

TOO_FEW_FOR_ADJUSTMENT = "too_few_for_adjustment"
"""Reason of a refusal: fewer than 10 rows for each column of the regression, on either side."""

TOO_FEW_COMPLAINANTS = str(Refusal.TOO_FEW_NEIGHBOURS)
"""Reason of a refusal: fewer than 2 k complainants, who are each other's only neighbours."""


class EffectOf(NamedTuple):
    """An effect in shares of decisions: 0.05 is five more denials per 100 applicants."""

    value: float
    se: float
    complainants: int
    contrast: Contrast | None
    """The weights; None where the effect is refused."""
    reason: str = ""

    @classmethod
    def refused(cls, complainants: int, reason: str) -> "EffectOf":
        """No effect, and why."""
        return cls(np.nan, np.nan, complainants, None, reason)

    @classmethod
    def of(cls, found: Contrast, denied: Floats, variance: Floats) -> "EffectOf":
        """The effect of a contrast on decisions ``(n,)`` with noise ``(n,)``."""
        return cls(found.value(denied), found.se(variance), found.complainants, found)


def effects(
    columns: Columns,
    group_member: Bools,
    denied: Bools,
    counterfactual_values: Floats | None,
    settings: CstSettings,
    again: Callable[[Longs], Floats] | None = None,
    rng: np.random.Generator | None = None,
) -> tuple[EffectOf, EffectOf | None]:
    """The effect of situation testing and that of CST on one group against everybody else.

    Args:
        columns: ``n`` applicants, with the columns that equals are alike in; the protected one is not among them.
        group_member: ``(n,)`` members of the group; all others are its reference.
        denied: ``(n,)`` unfavourable decisions.
        counterfactual_values: ``(m, p)`` the members as members of the reference group, by ascending row; None for
            situation testing alone.
        settings: ``k``, the distance and its scaling.
        again: The same ``(m, p)`` by a causal model that is fitted to a sample of rows ``(r,)``; None if the model is
            known, or there is none.
        rng: Draws the samples for ``again``.

    Returns:
        ``st`` and ``cst``; the latter None without counterfactuals.
    """
    row, others = np.flatnonzero(group_member), np.flatnonzero(~group_member)
    made = counterfactual_values is not None
    if len(row) < 2 * settings.k or len(others) < settings.k:
        refused = EffectOf.refused(len(row), TOO_FEW_COMPLAINANTS)
        return refused, refused if made else None
    y = denied.astype(np.float64)
    sides = sides_of(designs_of(columns), columns.values, (row, others), y)
    if sides is None:
        refused = EffectOf.refused(len(row), TOO_FEW_FOR_ADJUSTMENT)
        return refused, refused if made else None
    scale = distance.fit(columns, settings, ~denied, group_member)
    space = distance.place(columns, scale)
    variance = sides.variance(len(y))
    control = nearest(index(space, row), space.rows(row), settings.k, settings, exclude=row).rows
    st = _listed(sides, columns.values, Lists(row, control, _around(space, others, space.rows(row), settings)))
    if counterfactual_values is None:
        return EffectOf.of(st, y, variance), None
    there = distance.place(Columns(columns.names, columns.kinds, columns.categories, counterfactual_values), scale)
    lists = Lists(row, control, _around(space, others, there, settings), counterfactual_values)
    cst = _listed(sides, columns.values, lists)
    if again is not None:
        mover = Mover.of(row, counterfactual_values, sides.other)
        cst = _with_refits(cst, mover, again, group_member, rng or np.random.default_rng(0))
    return EffectOf.of(st, y, variance), EffectOf.of(cst, y, variance)


def _around(space: Space, others: Longs, centres: Space, settings: CstSettings) -> Longs:
    return nearest(index(space, others), centres, settings.k, settings).rows


def _listed(sides: Sides, values: Floats, lists: Lists) -> Contrast:
    """The contrast of the complainants who have ``k`` neighbours on both sides."""
    full = (lists.control >= 0).all(axis=1) & (lists.test >= 0).all(axis=1)
    moved = None if lists.moved is None else lists.moved[full]
    return contrast(sides, values, Lists(lists.row[full], lists.control[full], lists.test[full], moved))


def _with_refits(
    cst: Contrast, mover: Mover, again: Callable[[Longs], Floats], member: Bools, rng: np.random.Generator
) -> Contrast:
    def made(rows: Longs, sample: Longs) -> Counterfactuals:
        chosen = np.searchsorted(mover.row, rows)
        return Counterfactuals(rows, again(sample)[chosen], None)

    (structural,) = structural_variances(made, [mover], member.astype(np.int32), rng)
    return cst.estimated(structural)
