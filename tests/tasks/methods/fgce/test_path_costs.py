"""Costs of paths: hand-worked graphs, networkx as reference, and laws."""

import networkx as nx
import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.feasibility_graph import algorithm
from tasks.methods.fgce.algorithm import costs as algorithm_costs
from tasks.numerics.problem import FeasibilityGraph


def graph_of(size, weights):
    """Graph and weights in its order of edges, from a dict of pairs."""
    pairs = sorted(weights)
    degrees = np.bincount([i for i, _ in pairs], minlength=size) if pairs else np.zeros(size, np.int64)
    graph = FeasibilityGraph(
        np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64),
        np.array([j for _, j in pairs], dtype=np.int32),
        np.ones(len(pairs)),
    )
    return graph, np.array([weights[pair] for pair in pairs], dtype=np.float64)


def nodes_of(*nodes):
    return np.array(nodes, dtype=np.int64)


@st.composite
def some_graph(draw):
    size = draw(st.integers(1, 10))
    nodes = st.integers(0, size - 1)
    pairs = st.tuples(nodes, nodes).filter(lambda pair: pair[0] != pair[1])
    weight = st.one_of(st.just(0.0), st.floats(1e-12, 1e8), st.integers(0, 3).map(float))
    weights = draw(st.dictionaries(pairs, weight, max_size=25))
    factuals, candidates = draw(st.lists(nodes, max_size=6)), draw(st.lists(nodes, max_size=6))
    return size, weights, nodes_of(*factuals), nodes_of(*candidates)


def by_networkx(size, weights, factuals, candidates, hops=False):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(size))
    graph.add_weighted_edges_from((i, j, 1 if hops else w) for (i, j), w in weights.items())
    found = {node: nx.single_source_dijkstra_path_length(graph, node) for node in set(factuals.tolist())}
    costs = [[found[i].get(j, np.inf) for j in candidates.tolist()] for i in factuals.tolist()]
    return np.array(costs, dtype=np.float64).reshape(len(factuals), len(candidates))


def test_costs_and_hops_by_hand():
    # 0 -> 1 -> 2 is cheaper than 0 -> 2, which is shorter; 3 leads in only; 4 is alone
    graph, weights = graph_of(5, {(0, 1): 1.0, (1, 2): 1.5, (0, 2): 4.0, (3, 0): 0.5})
    costs = algorithm_costs.path_costs(graph, weights, nodes_of(0, 3, 4), nodes_of(2, 3, 4))
    assert costs.tolist() == [[2.5, np.inf, np.inf], [3.0, 0.0, np.inf], [np.inf, np.inf, 0.0]]
    hops = algorithm_costs.hop_costs(graph, nodes_of(0, 3, 4), nodes_of(2, 3, 4))
    assert hops.tolist() == [[1.0, np.inf, np.inf], [2.0, 0.0, np.inf], [np.inf, np.inf, 0.0]]


def test_an_edge_of_weight_nothing_is_still_an_edge():
    graph, weights = graph_of(4, {(0, 1): 0.0, (1, 2): 0.0, (0, 2): 1.0, (2, 3): 2.0})
    assert algorithm_costs.path_costs(graph, weights, nodes_of(0), nodes_of(0, 1, 2, 3)).tolist() == [
        [0.0, 0.0, 0.0, 2.0]
    ]


def test_an_edge_of_infinite_weight_is_none():
    graph, weights = graph_of(3, {(0, 1): np.inf, (0, 2): 3.0, (2, 1): 4.0})
    assert algorithm_costs.path_costs(graph, weights, nodes_of(0), nodes_of(1, 2)).tolist() == [[7.0, 3.0]]


@given(some_graph())
@settings(deadline=None, max_examples=examples(300))
def test_costs_agree_with_networkx(case):
    size, weights, factuals, candidates = case
    graph, values = graph_of(size, weights)
    costs = algorithm_costs.path_costs(graph, values, factuals, candidates)
    assert costs.shape == (len(factuals), len(candidates))
    assert np.allclose(costs, by_networkx(*case), rtol=1e-12, atol=0)
    hops = algorithm_costs.hop_costs(graph, factuals, candidates)
    assert np.array_equal(hops, by_networkx(*case, hops=True))


@given(some_graph())
@settings(deadline=None, max_examples=examples(100))
def test_laws(case):
    size, weights, _, _ = case
    graph, values = graph_of(size, weights)
    everyone = np.arange(size)
    costs = algorithm_costs.path_costs(graph, values, everyone, everyone)
    hops = algorithm_costs.hop_costs(graph, everyone, everyone)
    assert (np.diag(costs) == 0).all()
    assert (np.isfinite(costs) == np.isfinite(hops)).all()
    # no detour is cheaper: cost(i, k) <= cost(i, j) + cost(j, k)
    assert (costs[:, None, :] <= (costs[:, :, None] + costs[None, :, :]) * (1 + 1e-12)).all()
    assert (hops <= algorithm_costs.path_costs(graph, values + 1, everyone, everyone)).all()
    doubled = algorithm_costs.path_costs(graph, 2 * values, everyone, everyone)
    assert np.array_equal(doubled, 2 * costs)


@given(some_graph())
@settings(deadline=None, max_examples=examples(100))
def test_a_cost_is_finite_where_reach_says_so(case):
    size, weights, factuals, candidates = case
    graph, values = graph_of(size, weights)
    factual, candidate = np.isin(np.arange(size), factuals), np.isin(np.arange(size), candidates)
    reach = algorithm.reachable(graph, factual, candidate)
    for part in reach.active:
        costs = algorithm_costs.path_costs(graph, values, part.factuals, part.candidates)
        assert np.array_equal(np.isfinite(costs), part.reach())


def walks(weights, factuals, candidates):
    """Edges on a walk from a factual to a candidate, by networkx."""
    graph = nx.DiGraph(list(weights))
    graph.add_nodes_from([*factuals.tolist(), *candidates.tolist()])
    onward = set(factuals.tolist()).union(*(nx.descendants(graph, i) for i in factuals.tolist()))
    home = set(candidates.tolist()).union(*(nx.ancestors(graph, j) for j in candidates.tolist()))
    return {(i, j) for i, j in weights if i in onward and j in home}


@given(some_graph())
@settings(deadline=None, max_examples=examples(200))
def test_usable_edges_are_those_of_walks_and_the_rest_is_not_missed(case):
    size, weights, factuals, candidates = case
    graph, values = graph_of(size, weights)
    usable = algorithm_costs.usable_edges(graph, factuals, candidates)
    assert {pair for pair, use in zip(sorted(weights), usable, strict=True) if use} == walks(
        weights, factuals, candidates
    )
    without = algorithm_costs.path_costs(graph, np.where(usable, values, np.inf), factuals, candidates)
    assert np.array_equal(without, algorithm_costs.path_costs(graph, values, factuals, candidates))


def test_blocks_of_sources_change_nothing(monkeypatch):
    rng = np.random.default_rng(2)
    size = 80
    weights = {(int(i), int(j)): float(rng.random()) for i, j in rng.integers(0, size, (300, 2)) if i != j}
    graph, values = graph_of(size, weights)
    factuals, candidates = np.arange(0, size, 3), np.arange(0, size, 2)
    whole = algorithm_costs.path_costs(graph, values, factuals, candidates)
    monkeypatch.setattr(algorithm_costs, "PATHS_BLOCK", 4 * size)
    assert np.array_equal(algorithm_costs.path_costs(graph, values, factuals, candidates), whole)
    assert np.allclose(whole, by_networkx(size, weights, factuals, candidates), rtol=1e-12)


def test_no_nodes():
    graph, weights = graph_of(0, {})
    assert algorithm_costs.path_costs(graph, weights, nodes_of(), nodes_of()).shape == (0, 0)
    assert algorithm_costs.usable_edges(graph, nodes_of(), nodes_of()).shape == (0,)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -0.1], [1.0, np.nan]])
def test_weights_that_are_none(weights):
    graph, _ = graph_of(3, {(0, 1): 1.0, (1, 2): 1.0})
    with pytest.raises(ValueError, match="for each of 2 edges"):
        algorithm_costs.path_costs(graph, np.array(weights), nodes_of(0), nodes_of(2))
