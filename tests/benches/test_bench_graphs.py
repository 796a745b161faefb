"""The test of a causal graph as a whole, on lenders that follow the graph and on lenders that do not."""

import numpy as np
import pytest
from benches.graphs import GRAPH, WORLDS, drawn
from benches.graphs import tested as held

from schemas.audit.causal import CausalGraph
from tasks.counterfactuals.algorithm.causal_checks import compare_with_permuted, implied

FOLLOWS, DIRECT, HIDDEN, EXCHANGED = WORLDS


def test_the_graph_of_the_lenders_implies_something_and_the_saturated_one_nothing():
    columns, roots = drawn(FOLLOWS, 100, np.random.default_rng(1))
    assert len(implied(GRAPH, columns.names, roots.names)) == 26
    saturated = GRAPH.saturated(columns.names, roots.names)
    assert implied(saturated, columns.names, roots.names) == []
    test = compare_with_permuted(saturated, columns, roots, np.zeros(0), np.random.default_rng(1))
    assert (test.tests, test.contradicted) == (0, False)


@pytest.mark.long
def test_lenders_that_follow_the_graph_are_seldom_called_contradicted():
    tests = [held(FOLLOWS, 1000, seed) for seed in range(12)]
    assert sum(test.contradicted for test in tests) <= 1
    assert all(test.permutations == 0 for test in tests if not test.rejected), "nothing to compare"


@pytest.mark.slow
@pytest.mark.parametrize("planted", [HIDDEN, EXCHANGED], ids=["hidden", "exchanged"])
def test_lenders_that_contradict_it_are_found(planted):
    test = held(planted, 2500, 0)
    assert test.contradicted
    assert test.rejected > 0.1 * test.tests
    assert test.permutations == 20


@pytest.mark.long
def test_columns_exchanged_fit_no_better_than_permuted_ones_and_one_missing_edge_still_does():
    assert held(EXCHANGED, 1000, 0).as_good > 1
    missing = held(DIRECT, 2500, 0)
    assert missing.rejected == 1
    assert missing.as_good == 0
    assert not missing.contradicted, "one edge of many is missing, and the graph is far better than chance"


def test_an_order_of_one_tier_implies_nothing():
    graph = CausalGraph.model_validate({"order": [["race"], ["age", "score"]]})
    assert implied(graph, ("age", "score"), ("race",)) == []
