"""Evidence of CST, made piece by piece: the rows that sorting all of it at once gives."""

import numpy as np
import pytest
from test_cst import chosen, evidence_of, random_problem

from tasks.methods.cst.algorithm import detection
from tasks.methods.cst.algorithm import detection as cst
from tasks.methods.cst.algorithm.detection import CONTROL, TEST
from tasks.methods.cst.algorithm.situations import NOBODY, applicants_of, compare, lay
from tasks.numerics.problem import Problem


def all_at_once(problem: Problem, settings: cst.CstSettings) -> list[tuple[int, bool, int, int, float]]:
    """Row, whether of the test group, rank, other row and distance: of every group, sorted together."""
    ground, out = lay(problem, settings, problem.group, applicants_of(problem).counterfactuals), []
    for group in (1, 2):
        found = compare(ground, group, np.flatnonzero(problem.group == group))
        for test, side, rows in ((False, found.control, found.row), (True, found.test, found.row[found.tested])):
            for row, others, far in zip(rows, *side.members, strict=True):
                known = np.flatnonzero(others != NOBODY)
                out += [(row, test, rank + 1, others[rank], far[rank]) for rank in known]
    return sorted(out)


@pytest.mark.parametrize("piece", [1, 40, 10**9])
def test_pieces_one_after_the_other_are_the_whole_in_order(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    problem = random_problem(5, n=90, dependence=1.0, refused_rows=(3, 8, 9))
    problem.group[::3] = np.where(problem.group[::3] == 1, 2, problem.group[::3])
    monkeypatch.setattr(detection, "PIECE", piece)
    detected, settings = cst.detect(problem, chosen(), np.random.default_rng(0)), chosen()
    pieces, evidence = list(detected.evidence.pieces()), evidence_of(detected)
    told = zip(evidence.row, evidence.role == TEST, evidence.rank, evidence.other, evidence.value, strict=True)
    assert [*told] == all_at_once(problem, settings)
    assert set(evidence.role) == {CONTROL, TEST}
    complainants = int((problem.group != 0).sum())
    assert len(pieces) == (1 if piece > 10**6 else -(-complainants // max(1, piece // (2 * (settings.k + 1)))))


def test_without_complainants_there_is_one_empty_piece() -> None:
    problem = random_problem(5)
    problem.group[:] = 0
    (piece,) = cst.detect(problem, chosen(), np.random.default_rng(0)).evidence.pieces()
    assert len(piece.row) == 0
