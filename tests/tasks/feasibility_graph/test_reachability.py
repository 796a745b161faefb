"""Reach inside induced graphs: hand-worked paths, a plain search as reference, and laws."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.feasibility_graph import algorithm
from tasks.numerics.problem import FeasibilityGraph


def graph_of(size, pairs):
    pairs = sorted(set(pairs))
    degrees = np.bincount([i for i, _ in pairs], minlength=size) if pairs else np.zeros(size, np.int64)
    return FeasibilityGraph(
        np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64),
        np.array([j for _, j in pairs], dtype=np.int32),
        np.arange(len(pairs), dtype=float),
    )


def mask(size, nodes):
    out = np.zeros(size, dtype=bool)
    out[list(nodes)] = True
    return out


def pairs_found(reach):
    return {
        (int(part.factuals[i]), int(part.candidates[j])) for part in reach.active for i, j in np.argwhere(part.reach())
    }


def pairs_by_hand(pairs, factuals, candidates):
    """One plain search per factual."""
    found = set()
    for factual in factuals:
        seen, waiting = {factual}, [factual]
        while waiting:
            node = waiting.pop()
            for _, j in (pair for pair in pairs if pair[0] == node and pair[1] not in seen):
                seen.add(j)
                waiting.append(j)
        found |= {(factual, node) for node in seen & set(candidates)}
    return found


@st.composite
def some_graph(draw):
    size = draw(st.integers(1, 12))
    nodes = st.integers(0, size - 1)
    pairs = draw(st.sets(st.tuples(nodes, nodes).filter(lambda pair: pair[0] != pair[1]), max_size=25))
    return size, pairs, draw(st.sets(nodes)), draw(st.sets(nodes))


def test_paths_cycles_and_identical_rows_by_hand():
    # 0 -> 1 -> 2 <-> 3, 4 -> 3, 5 alone; a factual and a candidate share node 5
    graph = graph_of(6, [(0, 1), (1, 2), (2, 3), (3, 2), (4, 3)])
    reach = algorithm.reachable(graph, mask(6, [0, 3, 5]), mask(6, [2, 4, 5]))
    assert pairs_found(reach) == {(0, 2), (3, 2), (5, 5)}
    assert len(reach.active) == 2
    assert len(set(reach.component[:5])) == 1


def test_induced_graph_cuts_paths_through_other_nodes():
    graph = graph_of(4, [(0, 1), (1, 3), (0, 2)])
    inside = algorithm.induced(graph, np.array([0, 2, 3]))
    assert inside.indptr.tolist() == [0, 1, 1, 1]
    assert inside.indices.tolist() == [1]
    assert inside.distances.tolist() == [1.0]  # edges are numbered 0 -> 1, 0 -> 2, 1 -> 3 here
    assert not pairs_found(algorithm.reachable(inside, mask(3, [0]), mask(3, [2])))


@given(some_graph())
@settings(deadline=None, max_examples=examples(300))
def test_reach_agrees_with_a_plain_search(case):
    size, pairs, factuals, candidates = case
    reach = algorithm.reachable(graph_of(size, pairs), mask(size, factuals), mask(size, candidates))
    assert pairs_found(reach) == pairs_by_hand(pairs, factuals, candidates)
    for part in reach.active:
        assert (np.diff(part.factuals) > 0).all()
        assert (np.diff(part.candidates) > 0).all()
        assert (reach.component[part.factuals] == part.label).all()


@given(some_graph(), st.data())
@settings(deadline=None, max_examples=examples(100))
def test_induced_agrees_with_the_pairs_inside(case, data):
    size, pairs, _, _ = case
    nodes = sorted(data.draw(st.sets(st.integers(0, size - 1))))
    inside = algorithm.induced(graph_of(size, pairs), np.array(nodes, dtype=np.int64))
    source = np.repeat(np.arange(len(nodes)), np.diff(inside.indptr))
    ours = {(nodes[i], nodes[j]) for i, j in zip(source, inside.indices, strict=True)}
    assert ours == {(i, j) for i, j in pairs if i in nodes and j in nodes}


@pytest.mark.parametrize("density", [0.5, 1.2, 4.0])
def test_more_candidates_than_one_word_holds(density):
    # long chains, large strong components and several words of candidates, beyond what Hypothesis tries
    rng = np.random.default_rng(7)
    size = 400
    pairs = {(int(i), int(j)) for i, j in rng.integers(0, size, (int(density * size), 2)) if i != j}
    factuals, candidates = set(range(0, size, 3)), set(range(0, size, 2))
    reach = algorithm.reachable(graph_of(size, pairs), mask(size, factuals), mask(size, candidates))
    assert pairs_found(reach) == pairs_by_hand(pairs, factuals, candidates)


def test_strong_components_are_numbered_sinks_first():
    rng = np.random.default_rng(3)
    for _ in range(50):
        size = 60
        graph = graph_of(size, {(int(i), int(j)) for i, j in rng.integers(0, size, (90, 2)) if i != j})
        _, strong = algorithm.components(graph)
        assert (np.repeat(strong, np.diff(graph.indptr)) >= strong[graph.indices]).all()


def test_no_nodes():
    empty = graph_of(0, [])
    assert algorithm.reachable(empty, np.zeros(0, bool), np.zeros(0, bool)).active == ()
