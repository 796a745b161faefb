"""Computes the paper's worked example: four applicants, a boundary at which the duration is twice the amount, t = 1/3.

The amount is in thousands of dollars and moves by 50 dollars, the duration is in years and moves by whole ones.
"""

from collections.abc import Mapping

import numpy as np

from tasks.counterfactuals.algorithm.recourse import targets
from tasks.counterfactuals.algorithm.recourse.actions import make_actions
from tasks.counterfactuals.algorithm.recourse.targets import Boundary
from tasks.methods.raguel.algorithm.ranking.records import make_records
from tasks.methods.raguel.algorithm.ranking.representation import representation
from tasks.methods.raguel.algorithm.ranking.reranking import Reranking, rerank
from tasks.proof.lines import Cell, Value

NAMES = ("A", "B", "C", "D")
APPLICANTS = ((3.5, 6.0), (2.0, 1.0), (4.0, 4.0), (5.0, 4.0))
"""Loan amount and duration."""
_MEN, _WOMEN = 0, 1


def cells() -> Mapping[Cell, Value]:
    """Returns costs and counterfactual points of the four, and their places after Algorithm 1."""
    values = np.array(APPLICANTS)
    group = np.array([_MEN, _MEN, _WOMEN, _WOMEN], np.int32)
    actions, boundary = make_actions([0.5, 1.0], step=[0.05, 1.0]), Boundary(np.array([2.0, -1.0]), 0.0)
    found = targets.to_boundary(values, boundary, actions)
    records = make_records(values, found, group, actions, boundary)
    ended = rerank(records, representation(group, 2, _MEN), Reranking())
    columns = {
        "cost": found.cost,
        "counterfactual_loan_amount": found.point[:, 0],
        "counterfactual_loan_duration": found.point[:, 1],
        "rank": ended.rank_before,
        "loan_amount_after": ended.values[:, 0],
        "loan_duration_after": ended.values[:, 1],
        "cost_after": ended.cost,
        "rank_after": ended.rank,
    }
    return {
        Cell(quantity, name): float(value)
        for quantity, column in columns.items()
        for name, value in zip(NAMES, column, strict=True)
    }
