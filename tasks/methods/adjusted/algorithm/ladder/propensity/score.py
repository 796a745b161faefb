"""The propensity score: probability that an applicant is of the group rather than of the reference group.

Rosenbaum and Rubin (1983), by a logit of the controls of a rung.
"""

from dataclasses import dataclass

import numpy as np

from tasks.methods.adjusted.algorithm.ladder.design.matrix import Design, independent, renumbered
from tasks.numerics.arrays import Bools, Floats, Ints
from tasks.numerics.statistics.logit import LogitFit, fit_logit

RIDGE = 0.1
"""Penalty of nuisance fits where maximum likelihood has no maximum, or may have none on part of the rows."""


@dataclass(frozen=True)
class Pair:
    """The ``m`` rows of a group and of the reference group, with the controls of one rung."""

    rows: Bools
    """``(n,)`` which rows of the design they are."""
    y: Floats
    """``(m,)`` 1 for denied."""
    member: Bools
    """``(m,)`` of the group."""
    x: Floats
    """``(m, q)`` intercept and controls; of full rank."""
    names: tuple[str, ...]
    """``(q,)``."""
    cluster: Ints | None


@dataclass(frozen=True)
class Propensity:
    """A pair with its fitted propensity."""

    pair: Pair
    fit: LogitFit
    """Of membership on the controls."""
    separated: str
    """The sign of separation that made the fit a penalised one; else empty."""

    @property
    def e(self) -> Floats:
        """``(m,)`` propensities."""
        return self.fit.fitted


def pair_rows(design: Design, group: int, rung: int) -> Pair:
    """The rows and controls of a group and the reference group on a rung."""
    rows = (design.group == group) | (design.group == design.reference)
    columns = np.r_[0, design.first_control : design.widths[rung]]
    x = design.x[np.ix_(rows, columns)]
    kept = independent(x)
    names = tuple(design.names[column] for column in columns[kept])
    cluster = None if design.cluster is None else renumbered(design.cluster[rows])
    return Pair(rows, design.y[rows], design.group[rows] == group, np.ascontiguousarray(x[:, kept]), names, cluster)


def fit_propensity(pair: Pair) -> Propensity:
    """Fit membership; by a ridge logit where controls tell the two groups apart."""
    member = pair.member.astype(np.float64)
    fit = fit_logit(pair.x, member)
    if not fit.separated:
        return Propensity(pair, fit, "")
    return Propensity(pair, fit_logit(pair.x, member, ridge=RIDGE), fit.separated)
