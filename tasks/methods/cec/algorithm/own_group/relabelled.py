"""Randomization test of CEC above the own group: labels relabelled within strata of the propensity of the group.

Null: given the propensity stratum, labels do not matter for reasons. Members differ from the reference group in their
columns, so that even under the null the statistic is not 0: it is held against the mean of the draws.

Scope: labels and draws. The statistic: ``pairing``.
"""

from dataclasses import replace

import numpy as np

from tasks.methods.cec.algorithm.own_group.pairing import Ground
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.columns import Columns
from tasks.numerics.statistics.design import fitted
from tasks.numerics.statistics.propensity import Relabelling, propensity, strata

DECIMALS = 10
"""To which a propensity counts: the last digits of a matrix product are those of the machine."""


def without(columns: Columns, names: tuple[str, ...]) -> Columns:
    """The columns but some: a protected attribute's own would tell the group."""
    kept = [place for place, name in enumerate(columns.names) if name not in names]
    return replace(
        columns,
        names=tuple(columns.names[place] for place in kept),
        kinds=tuple(columns.kinds[place] for place in kept),
        categories=tuple(columns.categories[place] for place in kept),
        values=columns.values[:, kept],
    )


def strata_of(columns: Columns, member: Bools, rows: Longs) -> Longs:
    """Stratum of each of ``(r,)`` rows, by the propensity of the group given the columns, with squares.

    Args:
        columns: All ``n`` applicants; no column that the groups are made of.
        member: ``(n,)`` who is of the group.
        rows: Rows of the group and of the reference group.
    """
    own = columns.rows(rows)
    score = propensity(fitted(own).of(own.values), member[rows])
    return strata(np.round(score, DECIMALS))


def exchangeable(member: Bools, stratum: Longs) -> Bools:
    """``(r,)`` rows whose stratum holds both labels; of all others no label is ever exchanged."""
    there = np.bincount(stratum, minlength=1)
    inside = np.bincount(stratum, member, minlength=1)
    found: Bools = ((inside > 0) & (inside < there))[stratum]
    return found


def draws(ground: Ground, member: Bools, columns: Columns, count: int, rng: np.random.Generator) -> Floats:
    """The statistic under relabelled groups, ``(count,)``; none where no stratum holds both labels.

    Args:
        ground: The rows of the group and of the reference group.
        member: ``(n,)`` who is of the group.
        columns: All ``n`` applicants; no column that the groups are made of.
        count: Relabellings.
        rng: Draws them.
    """
    rows = np.flatnonzero(ground.among)
    stratum = strata_of(columns, member, rows)
    if not exchangeable(member[rows], stratum).any():
        return np.zeros(0)
    out, layout = np.empty(count), Relabelling.of(stratum)
    for draw in range(count):
        labels = np.zeros(len(member), dtype=bool)
        labels[rows] = layout.draw(member[rows], rng)
        out[draw] = ground.above(labels)
    return out
