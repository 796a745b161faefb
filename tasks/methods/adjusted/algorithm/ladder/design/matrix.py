"""The design matrix of the whole ladder: intercept, group indicators, then the columns of each block in turn.

Columns that are combinations of those before them are left out once, so that a rung is the first columns of the last.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tasks.methods.adjusted.algorithm.ladder.applications import Applications, Control
from tasks.methods.adjusted.algorithm.ladder.design.coding import Coded, Form, code_control
from tasks.methods.adjusted.algorithm.ladder.design.rows import Rows
from tasks.numerics.arrays import Bools, Floats, Ints

COLLINEAR = 1e-10
"""A column whose square left beside the others is so small a share of its square is a combination of them."""

MOST_COLUMNS = 300
"""A rung with more columns has no logit: fixed effects of many lenders or counties are told by the linear fit."""


@dataclass(frozen=True)
class Design:
    """Outcome and columns of the ``n`` rows in use."""

    y: Floats
    """``(n,)`` 1 for denied."""
    x: Floats
    """``(n, p)`` intercept, group indicators, controls; of full rank."""
    group: Ints
    """``(n,)``."""
    reference: int
    indicators: dict[int, int]
    """Group -> its column."""
    names: tuple[str, ...]
    """``(p,)``."""
    control: tuple[int, ...]
    """``(p,)`` which control a column is of, counted over all blocks; -1 for intercept and indicators."""
    widths: tuple[int, ...]
    """Columns of each rung, rung 0 first."""
    dropped: tuple[tuple[str, ...], ...]
    """By rung: columns that its block would have added, each with ``(constant)``, ``(collinear)``, ``(fewer than 30
    rows, one decision)`` or ``(no level has 30 rows)``."""
    cluster: Ints | None
    """``(n,)`` from 0 without gaps."""
    terms: tuple[str, ...] = ()
    """Names of the last columns of the last rung, where terms were chosen for it."""
    partners: Mapping[int, int] = field(default_factory=dict)
    """Column that is a product -> the control of its other factor."""

    @property
    def first_control(self) -> int:
        """The column at which controls begin."""
        return 1 + len(self.indicators)

    def dropped_until(self, rung: int) -> tuple[str, ...]:
        """Columns left out on a rung and those below it."""
        return tuple(name for names in self.dropped[: rung + 1] for name in names)


def build_design(applications: Applications, rows: Rows, form: Form) -> Design:
    """Code the rows in use; the reference group is one of them."""
    used = rows.used
    group = applications.group[used]
    present = [g for g in range(len(applications.groups)) if g != applications.reference and (group == g).any()]
    columns = [np.ones((int(used.sum()), 1)), (group[:, None] == np.array(present, np.int32)).astype(np.float64)]
    names, control = ["intercept", *(applications.groups[g] for g in present)], [-1] * (1 + len(present))
    ends, number = [len(names)], 0
    without: list[list[str]] = [[]]
    for block in applications.blocks:
        without.append([])
        for each in block.controls:
            coded = code_control(each, applications.denied, used, form)
            varies: Bools = np.asarray(coded.columns.any(axis=0), np.bool_)
            without[-1] += _without(each, coded, varies)
            columns.append(coded.columns[:, varies])
            names += [name for name, kept in zip(coded.names, varies, strict=True) if kept]
            control += [number] * int(varies.sum())
            number += 1
        ends.append(len(names))
    x = np.hstack(columns)
    kept = independent(x)
    starts = [0, *ends[:-1]]
    return Design(
        y=applications.denied[used].astype(np.float64),
        x=x[:, kept],
        group=group,
        reference=applications.reference,
        indicators={g: 1 + place for place, g in enumerate(present)},
        names=tuple(name for name, keep in zip(names, kept, strict=True) if keep),
        control=tuple(place for place, keep in zip(control, kept, strict=True) if keep),
        widths=tuple(int(kept[:end].sum()) for end in ends),
        dropped=tuple(
            (*none, *(f"{names[j]} (collinear)" for j in range(start, end) if not kept[j]))
            for none, start, end in zip(without, starts, ends, strict=True)
        ),
        cluster=None if applications.cluster is None else renumbered(applications.cluster[used]),
    )


def independent(x: Floats) -> Bools:
    """``(p,)`` columns that are no combination of those before them, by elimination in the scaled cross products."""
    length = np.sqrt((x**2).sum(axis=0))
    scaled = x / np.where(length > 0, length, 1.0)
    left = scaled.T @ scaled
    del scaled
    kept = np.zeros(x.shape[1], np.bool_)
    for j in range(x.shape[1]):
        kept[j] = left[j, j] > COLLINEAR
        if kept[j]:
            left[j + 1 :, j + 1 :] -= np.outer(left[j + 1 :, j], left[j, j + 1 :]) / left[j, j]
    return kept


def _without(control: Control, coded: Coded, varies: Bools) -> list[str]:
    """What of a control gets no column, and why."""
    return list(coded.merged) if varies.any() or coded.merged else [f"{control.name} (constant)"]


def renumbered(cluster: Ints) -> Ints:
    """Clusters numbered from 0 without gaps."""
    return np.unique(cluster, return_inverse=True)[1].astype(np.int32)
