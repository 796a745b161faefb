"""Recourse-aware group unfairness elimination in rankings (RAGUEL; Haldar, Cunningham and Ferhatosmanoglu 2022).

Applicants with unfavourable decisions are ranked by recourse cost: the distance to a favourable decision. If one group
ranks lower, the list is re-ranked so that each part of it has its share of every group. Single applicants of the
worse-off group get offers: this modification, for that rank.

Scope: findings of each applicant, in the list of Algorithm 1. Lists: ``ranking`` and ``lists``. Statistics of groups:
``tallies`` and ``aggregates``, called by the stage that makes the lists.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tasks.methods.raguel.settings import RaguelSettings
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.problem import Problem
from tasks.numerics.results import Detected, Evidence, Findings

KEPT, CHANGED, OFFERED, NOT_TESTED = "rank_kept", "rank_changed", "offered_recourse", "not_tested"
"""Verdicts: who has an offer, who changes places because others have one, and who could not be ranked."""

NEAREST: Final = "nearest_candidate"
"""Role in the evidence: the applicant at the counterfactual point, where there is no boundary."""


@dataclass(frozen=True)
class Ranks:
    """Ranks of applicants in a list by recourse cost, before and after re-ranking."""

    row: Longs
    """``(m,)`` the rows that were to be ranked, ascending."""
    cost: Floats
    """``(m,)`` recourse cost before; NaN where refused."""
    rank: Floats
    """``(m,)`` place before, from 1; NaN where refused."""
    rank_after: Floats
    """``(m,)`` place after."""
    offered: Bools
    """``(m,)`` whether there is an offer."""
    refusal: NDArray[np.str_]
    """``(m,)`` empty, or the reason (``schemas.terms.Refusal``)."""
    candidate: Longs
    """``(m,)`` the row at the counterfactual point; -1 where no row is."""


def units(problem: Problem) -> Bools:
    """Who gets a finding, ``(n,)``: everybody who was to be ranked."""
    mask = np.zeros(len(problem.group), np.bool_)
    if isinstance(problem.method_data, Ranks):
        mask[problem.method_data.row] = True
    return mask


def detect(problem: Problem, settings: RaguelSettings, rng: np.random.Generator) -> Detected:  # noqa: ARG001 as all
    """What became of every applicant in the list of Algorithm 1.

    Args:
        problem: One decision maker and one protected attribute, ``own`` is ``Ranks``; no row has a finding without.
        settings: Not read: the list was made before.
        rng: Not read: nothing is left to chance.

    Returns:
        Findings by ascending row, with the recourse cost as their statistic, and the applicant at its target.
    """
    rows, numbers, names = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, dtype=str)
    none = Ranks(rows, numbers, numbers, numbers, np.zeros(0, np.bool_), names, rows)
    places = problem.method_data if isinstance(problem.method_data, Ranks) else none
    refused = places.refusal != ""
    cases = [refused, places.offered, places.rank != places.rank_after]
    findings = Findings(
        row=places.row,
        subgroup=np.zeros(len(places.row), np.int32),
        verdict=np.select(cases, [NOT_TESTED, OFFERED, CHANGED], KEPT),
        statistic=places.cost,
        refusal=places.refusal,
    )
    at = np.flatnonzero(places.candidate >= 0)
    evidence = Evidence(
        row=places.row[at],
        role=np.full(len(at), NEAREST),
        rank=np.ones(len(at), np.int32),
        other=places.candidate[at],
        value=places.cost[at],
    )
    return Detected(findings, evidence, (), ())
