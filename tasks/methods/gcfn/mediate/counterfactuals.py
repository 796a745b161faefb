"""Applicants moved into another group: who they are, what networks imagine, and what the model then decides.

Here belong arrays by network. The tables that they become are in ``mediators``, and what is said of groups in
``tallies``.
"""

from dataclasses import dataclass, replace

import numpy as np

from tasks.counterfactuals.algorithm.diagnostics import checks
from tasks.counterfactuals.algorithm.diagnostics.quality import spread
from tasks.counterfactuals.gan.ensembles import Case
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.columns import Columns
from tasks.scoring.decider import Decide


@dataclass(frozen=True)
class Reassigned:
    """Applicants as members of one category."""

    to: int
    """Number of the category."""
    at: Longs
    """``(m,)`` who they are, among the rows of the case."""
    values: Floats
    """``(s, m, p)`` their mediators by network."""
    spread: Floats
    """``(m,)``; NaN for a single network."""
    network: Longs
    """``(m,)`` the network whose answer is the most typical."""

    @classmethod
    def of(cls, case: Case, imagined: Floats, to: int) -> "Reassigned":
        """Whoever is to be imagined as a member of a category."""
        rows, group = case.rows, int(case.categories.groups[to])
        at = np.flatnonzero(case.categories.asked(group)[case.categories.rows])
        deviation, values = rows.mediators.values.std(axis=0), imagined[:, to, at]
        chosen = rows.rows(at)
        apart = spread(values[:, None], chosen, deviation) if len(values) > 1 else np.full(len(at), np.nan)
        return cls(to, at, values, apart, checks.typical(values, chosen, deviation))


@dataclass(frozen=True)
class ReassignedDecisions:
    """What the model decides on applicants as they are, and as networks imagine them."""

    favourable: Bools
    """``(m,)`` as they are."""
    score: Floats
    """``(m,)`` as they are."""
    flips: Bools
    """``(s, m)`` whether the decision is another one."""
    change: Floats
    """``(s, m)`` score then less score now."""

    @classmethod
    def of(cls, case: Case, moved: Reassigned, decide: Decide) -> "ReassignedDecisions":
        """Ask the model about applicants, and about what every network imagines of them."""
        rows = case.categories.rows[moved.at]
        favourable, score = decide(case.columns.rows(rows), rows)
        then = [decide(_as_members(case, moved, values), rows) for values in moved.values]
        flips = np.array([decision != favourable for decision, _ in then])
        return cls(favourable, score, flips, np.array([found - score for _, found in then]))


def _as_members(case: Case, moved: Reassigned, mediators: Floats) -> Columns:
    """Applicants with other mediators, and with what is commonest in the category in the attribute's own columns."""
    rows, group = case.categories.rows[moved.at], case.categories.groups[moved.to]
    values = case.columns.values[rows]
    for name in case.protected.columns:
        if name in case.columns.names:
            place = case.columns.names.index(name)
            known, counts = np.unique(case.columns.values[case.grouped.group == group, place], return_counts=True)
            values[:, place] = known[counts.argmax()]
    values[:, case.places] = mediators
    return replace(case.columns, values=values)
