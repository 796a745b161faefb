"""Reads the people of the RAGUEL paper's files by the stages of an audit, with the bounds of their recourse.

Scope: people before any classifier is fitted. Ranked lists of them: ``lists``.
"""

from dataclasses import dataclass

import numpy as np

from schemas.audit.column import ColumnSpec
from schemas.audit.spec import AuditSpec
from schemas.terms import Constraint, Kind
from tasks.numerics.arrays import Bools, Floats, Ints
from tasks.proof.plain import labelled

_WAYS = {Constraint.UP: 1.0, Constraint.DOWN: -1.0, Constraint.FREE: 0.0, Constraint.IMMUTABLE: 0.0}


@dataclass(frozen=True)
class People:
    """``n`` people with ``d`` attributes; of a category, its place in the order is the attribute."""

    names: tuple[str, ...]
    values: Floats
    """``(n, d)`` in the units of the file."""
    group: Ints
    """``(n,)``."""
    groups: tuple[str, ...]
    reference: int
    favourable: Bools
    """``(n,)`` the label."""
    changeable: Bools
    """``(d,)``."""
    weight: Floats
    """``(d,)`` recourse weights; not read where an attribute cannot be changed."""
    step: Floats
    """``(d,)`` in the units of the file."""
    direction: Floats
    """``(d,)`` 1 only up, -1 only down, 0 either way."""
    lower: Floats
    """``(d,)`` what nothing may be moved below: a bound of the spec, or the least value that anybody has."""
    upper: Floats
    """``(d,)`` likewise, above."""


def read(spec: AuditSpec) -> People:
    """Reads the people of an audit spec with a single protected attribute."""
    found = labelled(spec, "favourable")
    columns, grouped = found.columns, found.grouped
    specs = [spec.columns[name] for name in columns.names]
    low, high = np.array([each.recourse.limits for each in specs]).T
    return People(
        columns.names,
        columns.values,
        grouped.group,
        grouped.groups,
        grouped.reference,
        found.label,
        np.array([each.constraint is not Constraint.IMMUTABLE for each in specs]),
        np.array([each.recourse.weight for each in specs]),
        np.array([_step(each) for each in specs]),
        np.array([_WAYS[each.constraint] for each in specs]),
        np.maximum(low, columns.values.min(axis=0)),
        np.minimum(high, columns.values.max(axis=0)),
    )


def _step(column: ColumnSpec) -> float:
    """Of categories one of them, where the spec says nothing; of numbers any amount."""
    return column.recourse.step or (0.0 if column.type is Kind.CONTINUOUS else 1.0)
