"""Average effects of group indicators in a logit, with sandwich errors, in one pass over batches.

Scope: effects as discrete changes of an indicator, over the group's own members and over all rows; delta method.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from tasks.methods.adjusted.algorithm.ladder.linear import sandwich
from tasks.methods.adjusted.algorithm.scale.batches import Batch, Batches, Meat
from tasks.methods.adjusted.algorithm.scale.gram import inverse
from tasks.numerics.arrays import Floats

BEYOND = 1e-8
"""A fitted probability so near to 0 or 1 is a sign of separation."""


@dataclass(frozen=True)
class Average:
    """An average effect and its standard error."""

    value: float
    se: float


@dataclass(frozen=True)
class LogitEffects:
    """What one pass at the estimate tells, groups in the order of their columns."""

    covariance: Floats
    """``(p, p)`` sandwich (HC0); with clusters of scores summed by cluster, times G / (G - 1)."""
    own: tuple[Average, ...]
    """Averaged over the group's members, against the reference group."""
    over_all: tuple[Average, ...]
    """Averaged over all rows: everyone in the group against everyone in the reference group."""
    denial: tuple[float, ...]
    """Mean fitted probability of each group's members."""
    members: tuple[int, ...]
    n: int
    separated: bool
    """Whether a fitted probability is within 1e-8 of 0 or 1."""


class _Sums:
    """Sums for one group: differences of probabilities and their gradients."""

    def __init__(self, columns: int) -> None:
        self.members, self.denial, self.own, self.over_all = 0, 0.0, 0.0, 0.0
        self.own_gradient: Floats = np.zeros(columns)
        self.all_gradient: Floats = np.zeros(columns)


def logit_effects(batches: Batches, coefficients: Floats, groups: Sequence[int]) -> LogitEffects:
    """Sandwich covariance and average effects at the estimate.

    Args:
        batches: Rows with an outcome of 0 or 1.
        coefficients: ``(p,)`` estimate.
        groups: Places of the group indicators in the design; a row is in one group at most.
    """
    p, n, separated = len(coefficients), 0, False
    sums, meat, information = [_Sums(p) for _ in groups], Meat(p), np.zeros((p, p))
    for batch in batches():
        linear = batch.x @ coefficients
        fitted = expit(linear)
        half = batch.x * np.sqrt(_slope(fitted))[:, None]
        information += half.T @ half
        meat.add(batch.x, batch.y - fitted, batch.cluster)
        separated |= bool(np.any((fitted < BEYOND) | (fitted > 1 - BEYOND)))
        n += len(linear)
        _add(sums, batch, linear, coefficients, list(groups))
    covariance = sandwich(inverse(information), meat.robust)
    return LogitEffects(
        covariance,
        tuple(_average(each.own, each.own_gradient, each.members, covariance) for each in sums),
        tuple(_average(each.over_all, each.all_gradient, n, covariance) for each in sums),
        tuple(each.denial / each.members if each.members else np.nan for each in sums),
        tuple(each.members for each in sums),
        n,
        separated,
    )


def _add(sums: Sequence[_Sums], batch: Batch, linear: Floats, coefficients: Floats, groups: list[int]) -> None:
    """Add a batch: each row as it would be in the reference group, and in each group."""
    base = linear - batch.x[:, groups] @ coefficients[groups]
    without = expit(base)
    for of, column in zip(sums, groups, strict=True):
        inside = expit(base + coefficients[column])
        change, slopes = inside - without, _slope(inside) - _slope(without)
        mine = batch.x[:, column] == 1
        of.members += int(mine.sum())
        of.denial += float(inside[mine].sum())
        of.own += float(change[mine].sum())
        of.over_all += float(change.sum())
        of.own_gradient += _gradient(batch.x[mine], slopes[mine], _slope(inside[mine]), groups, column)
        of.all_gradient += _gradient(batch.x, slopes, _slope(inside), groups, column)


def _gradient(x: Floats, slopes: Floats, inside: Floats, groups: list[int], column: int) -> Floats:
    """``(p,)`` derivative of the summed differences; of the indicators only the group's own has one."""
    found: Floats = x.T @ slopes
    found[groups] = 0.0
    found[column] = inside.sum()
    return found


def _slope(fitted: Floats) -> Floats:
    return fitted * (1 - fitted)


def _average(total: float, gradient: Floats, rows: int, covariance: Floats) -> Average:
    if rows == 0:
        return Average(np.nan, np.nan)
    return Average(total / rows, float(np.sqrt(gradient @ covariance @ gradient)) / rows)
