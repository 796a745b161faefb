"""FGCE's mean cost beside everyone's own optimum: hand-worked means, and the law that no optimum is dearer."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from research.fgce import systems
from tasks.methods.fgce.algorithm.covering import Part
from tasks.methods.fgce.algorithm.solver import Solver

INF = np.inf
SOLVER = Solver(10.0)


def parts(*costs, weights=None):
    tables = [np.array(cost, float) for cost in costs]
    rows = weights or [np.ones(len(cost), np.int64) for cost in tables]
    return [Part(cost, np.asarray(own, np.int64)) for cost, own in zip(tables, rows, strict=True)]


def test_means_are_over_the_rows_that_k_candidates_cover():
    """One candidate serves both rows at 3 and 4; each row has one of its own at 1."""
    found = systems.by_k(parts([[3, 1, INF], [4, INF, 1]]), [1, 2], SOLVER)
    assert (found[0].rows, found[0].fgce, found[0].face, found[0].ratio) == (2, 3.5, 1.0, 3.5)
    assert (found[1].rows, found[1].fgce, found[1].face, found[1].ratio) == (2, 1.0, 1.0, 1.0)


def test_a_row_that_is_not_covered_counts_in_neither_mean():
    """One candidate for two parts: the part with more rows is served, and the optimum of the other is left out."""
    (found,) = systems.by_k(parts([[2, 5], [3, 1]], [[0.5]], weights=[[2, 1], [1]]), [1], SOLVER)
    assert found.rows == 3
    assert found.fgce == pytest.approx((2 * 2 + 3) / 3)
    assert found.face == pytest.approx((2 * 2 + 1) / 3)


def test_nobody_who_is_coverable_gives_no_curve():
    assert systems.by_k(parts([[INF]]), [1], SOLVER) == []
    assert systems.face_drawings({"vector": []}) == ()


def test_a_curve_is_drawn_as_a_share_of_its_largest():
    found = {"vector": systems.by_k(parts([[3, 1, INF], [4, INF, 1]]), [1, 2], SOLVER)}
    scaled, ratios = systems.face_drawings(found)
    assert {curve.name: curve.y for curve in scaled.curves} == {
        "FGCE, L2 distance": (1.0, 1 / 3.5),
        "FACE, L2 distance": (1.0, 1.0),
    }
    assert ratios.curves[0].y == (3.5, 1.0)


@settings(deadline=None, max_examples=examples(40))
@given(
    st.lists(
        st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, INF]), min_size=3, max_size=3), min_size=1, max_size=4),
        min_size=1,
        max_size=3,
    )
)
def test_nobodys_own_optimum_is_dearer(costs):
    table = parts(*costs)
    coverable = sum(part.rows for part in table)
    found = systems.by_k(table, range(1, 1 + max(coverable, 1)), SOLVER)
    assert bool(found) == bool(coverable)
    for each in found:
        assert each.fgce >= each.face - 1e-12
    assert [each.rows for each in found] == sorted(each.rows for each in found)
    if found:
        assert found[-1].rows == coverable
