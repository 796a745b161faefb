"""Confounders as strong as a column in the data, or 2 or 3 times so (Cinelli and Hazlett 2020, section 4.4).

A declared column is all its columns of the design together: number and square, or the indicators of its categories.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tasks.methods.adjusted.algorithm.sensitivity.robustness import Confounder, Estimate, adjusted
from tasks.numerics.arrays import Floats

TIMES = (1, 2, 3)


class Fit(Protocol):
    """What is needed of a least squares fit."""

    @property
    def coefficients(self) -> Floats:
        """``(p,)``."""
        ...

    @property
    def classical(self) -> Floats:
        """``(p, p)`` covariance under equal variances."""
        ...

    @property
    def df(self) -> int:
        """Residual degrees of freedom."""
        ...


@dataclass(frozen=True)
class Benchmark:
    """What a confounder ``times`` as strong as a column would leave of the effect."""

    column: str
    times: int
    confounder: Confounder | None
    """None where no column can be so strong: it would explain more than all of the group."""
    effect: Estimate | None


def strength(fit: Fit, columns: Sequence[int]) -> float:
    """Partial R^2 of columns of the design together, from their Wald statistic W: W / (W + df)."""
    at = np.asarray(columns)
    of = fit.coefficients[at]
    wald = float(of @ np.linalg.solve(fit.classical[np.ix_(at, at)], of))
    return wald / (wald + fit.df)


def strengths(outcome: Fit, membership: Fit, group: int, named: Mapping[str, Sequence[int]]) -> dict[str, Confounder]:
    """What each declared column explains of what is left of the outcome and of membership.

    Args:
        outcome: Fit of the outcome on the whole design.
        membership: Fit of the group's indicator on the other columns of the design, in the same order.
        group: The indicator's place in the design.
        named: Declared column -> places of its columns in the design.
    """
    return {
        name: Confounder(strength(outcome, places), strength(membership, [at - (at > group) for at in places]))
        for name, places in named.items()
        if len(places)
    }


def benchmarks(estimate: Estimate, columns: Mapping[str, Confounder]) -> tuple[Benchmark, ...]:
    """The effect beside confounders once, twice and three times as strong as each column."""
    return tuple(_benchmark(estimate, name, of, times) for name, of in columns.items() for times in TIMES)


def _benchmark(estimate: Estimate, name: str, column: Confounder, times: int) -> Benchmark:
    confounder = times_as_strong(column, times)
    return Benchmark(name, times, confounder, None if confounder is None else adjusted(estimate, confounder))


def times_as_strong(column: Confounder, times: float) -> Confounder | None:
    """A confounder ``times`` as strong as a column, which is partialled out of the group's indicator beforehand.

    It explains ``times`` as much of the group as the column does, and of the outcome, both beside the other columns.
    Its strength with the outcome is bounded by 1, which it reaches beside a column that tells every decision.
    None where its strength with the group would be 1 or more.
    """
    left = 1 - column.group
    group = times * column.group / left
    shared = times * column.group**2 / ((1 - times * column.group) * left) if times * column.group < 1 else 1.0
    if group >= 1 or shared >= 1:
        return None
    eta = (times**0.5 + shared**0.5) / (1 - shared) ** 0.5
    unexplained = 1 - column.outcome
    outcome = eta**2 * column.outcome / unexplained if unexplained > 0 else 1.0
    return Confounder(min(1.0, outcome), group)
