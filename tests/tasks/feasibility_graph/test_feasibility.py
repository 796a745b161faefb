"""The feasibility graph: hand-worked edges, the clear loop over pairs, and laws."""

from typing import NamedTuple

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import DataQualityError
from tasks.feasibility_graph import algorithm as feasibility
from tasks.feasibility_graph.algorithm import DOWN, FREE, IMMUTABLE, UP, Rules
from tasks.feasibility_graph.settings import GraphSettings

NO_CODES = np.zeros((0, 0), np.int32)
ALLOWED = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=bool)


class Rows(NamedTuple):
    """Rows before collapse, with their rules."""

    encoded: np.ndarray
    codes: np.ndarray
    strata: np.ndarray
    rules: Rules


def plain(encoded, direction):
    encoded = np.array(encoded, dtype=float)
    empty = np.zeros((len(encoded), 0), np.int32)
    return Rows(encoded, empty, empty, Rules(np.array(direction, np.int8)))


def distinct(rows):
    return feasibility.collapse(rows.encoded, rows.codes, rows.strata, rows.rules)


def edges_of(graph):
    source = np.repeat(np.arange(graph.size), np.diff(graph.indptr))
    return {(int(i), int(j)): float(d) for i, j, d in zip(source, graph.indices, graph.distances, strict=True)}


def build(rows, epsilon, **settings_):
    nodes = distinct(rows)
    return nodes, feasibility.build(nodes, rows.rules, epsilon, GraphSettings(**settings_))


def may_move(rows, i, j):
    """Whether row i may come to look like row j: the clear form."""
    if (rows.strata[i] != rows.strata[j]).any():
        return False
    for column, rule in enumerate(rows.rules.direction):
        delta = rows.encoded[j, column] - rows.encoded[i, column]
        broken = {FREE: False, UP: delta < 0, DOWN: delta > 0, IMMUTABLE: delta != 0}
        if broken[int(rule)]:
            return False
    return all(allowed[rows.codes[i, at], rows.codes[j, at]] for at, allowed in rows.rules.transitions)


def edges_by_hand(rows, node, epsilon, strict):
    """The clear loop over all pairs of rows, as edges between their nodes."""
    found = {}
    for i in range(len(rows.encoded)):
        for j in range(len(rows.encoded)):
            distance = float(np.sqrt(((rows.encoded[j] - rows.encoded[i]) ** 2).sum()))
            near = distance < epsilon if strict else distance <= epsilon
            if node[i] != node[j] and near and may_move(rows, i, j):
                found[int(node[i]), int(node[j])] = distance
    return found


@st.composite
def some_rows(draw):
    n, p = draw(st.integers(1, 14)), draw(st.integers(1, 4))
    # quarters: sums of squares are exact, so that distances equal to epsilon do occur
    cells = draw(st.lists(st.integers(0, 4), min_size=n * p, max_size=n * p))
    codes = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    strata = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    direction = draw(st.lists(st.sampled_from([FREE, UP, DOWN, IMMUTABLE]), min_size=p, max_size=p))
    with_rule = draw(st.booleans())
    return Rows(
        np.array(cells, float).reshape(n, p) / 4,
        np.array(codes, np.int32)[:, None],
        np.array(strata, np.int32)[:, None],
        Rules(np.array(direction, np.int8), ((0, ALLOWED),) if with_rule else ()),
    )


epsilons = st.sampled_from([0.0, 0.25, 0.5, 0.6, 1.0, 1.25, 3.0])


def test_directions_by_hand():
    rows = plain([[0.0, 0.0], [0.3, 0.0], [0.3, 0.4], [0.9, 0.0]], [UP, DOWN])
    _, built = build(rows, 0.5)
    # 0 -> 1 raises the first column; 2 -> 1 lowers the second; 0 -> 2 would raise the second; 3 is 0.6 from the next
    node = distinct(rows).node
    assert edges_of(built.graph) == {
        (node[0], node[1]): pytest.approx(0.3),
        (node[2], node[1]): pytest.approx(0.4),
    }
    assert (built.edges, built.isolated, built.capped, built.expected_edges) == (2, 1, False, 2)


def test_strict_leaves_out_the_edge_at_epsilon():
    rows = plain([[0.0], [0.5]], [FREE])
    assert build(rows, 0.5)[1].edges == 2
    assert build(rows, 0.5, strict=True)[1].edges == 0


def test_transition_rule_by_hand():
    rows = Rows(
        np.zeros((3, 1)),
        np.array([[0], [1], [2]], np.int32),
        np.zeros((3, 0), np.int32),
        Rules(np.array([FREE], np.int8), ((0, ALLOWED),)),
    )
    nodes, built = build(rows, 0.1)
    assert set(edges_of(built.graph)) == {tuple(nodes.node[[i, j]]) for i, j in [(0, 1), (1, 2), (2, 0)]}


def test_buckets_are_contiguous_and_equal_rows_share_a_node():
    rows = plain([[1, 0.5], [0, 0.5], [1, 0.5], [1, 0.2]], [IMMUTABLE, FREE])
    nodes = distinct(rows)
    assert nodes.node.tolist() == [2, 0, 2, 1]
    assert nodes.bucket.tolist() == [0, 1, 1]
    assert nodes.multiplicity.tolist() == [1, 1, 2]
    assert nodes.encoded.tolist() == [[0, 0.5], [1, 0.2], [1, 0.5]]


@given(some_rows(), epsilons, st.booleans())
@settings(deadline=None, max_examples=examples(150))
def test_edges_agree_with_the_clear_loop(rows, epsilon, strict):
    nodes, built = build(rows, epsilon, strict=strict)
    by_hand = edges_by_hand(rows, nodes.node, epsilon, strict)
    ours = edges_of(built.graph)
    assert ours.keys() == by_hand.keys()
    assert all(ours[pair] == pytest.approx(by_hand[pair], abs=1e-12) for pair in ours)
    assert all(
        (np.diff(built.graph.indices[a:b]) > 0).all()
        for a, b in zip(built.graph.indptr[:-1], built.graph.indptr[1:], strict=True)
    )
    touched = {node for pair in ours for node in pair}
    assert built.isolated == len(nodes.bucket) - len(touched)


@given(some_rows(), epsilons, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=examples(80))
def test_copies_and_order_of_rows_change_nothing(rows, epsilon, random):
    order = [*range(len(rows.encoded)), random.randrange(len(rows.encoded))]
    random.shuffle(order)
    again = Rows(rows.encoded[order], rows.codes[order], rows.strata[order], rows.rules)
    (nodes, built), (renumbered, rebuilt) = build(rows, epsilon), build(again, epsilon)
    assert nodes.node[order].tolist() == renumbered.node.tolist()
    assert edges_of(built.graph) == edges_of(rebuilt.graph)


@given(some_rows(), epsilons, epsilons)
@settings(deadline=None, max_examples=examples(80))
def test_a_larger_epsilon_keeps_every_edge(rows, one, other):
    small, large = (edges_of(build(rows, epsilon)[1].graph) for epsilon in sorted((one, other)))
    assert small.items() <= large.items()


@given(some_rows(), epsilons, st.integers(1, 3))
@settings(deadline=None, max_examples=examples(100))
def test_the_cap_keeps_the_nearest_out_edges(rows, epsilon, nearest):
    nodes, whole = build(rows, epsilon)
    if whole.edges < 2:
        return
    _, built = build(rows, epsilon, max_edges=1, nearest=nearest)
    kept = edges_of(built.graph)
    assert built.capped
    assert built.expected_edges == whole.edges
    assert kept.items() <= edges_of(whole.graph).items()
    for i in range(len(nodes.bucket)):
        out = sorted((d, j) for (a, j), d in edges_of(whole.graph).items() if a == i)
        assert sorted((d, j) for (a, j), d in kept.items() if a == i) == out[:nearest]


def nearest_by_hand(rows, node):
    """Distance of each node to the nearest one joined to it either way, inf where there is none."""
    best = np.full(node.max() + 1, np.inf)
    for (i, j), distance in edges_by_hand(rows, node, np.inf, strict=False).items():
        best[i], best[j] = min(best[i], distance), min(best[j], distance)
    return best


@given(some_rows(), st.booleans())
@settings(deadline=None, max_examples=examples(100))
def test_epsilon_rules_agree_with_the_clear_loop(rows, strict):
    nodes = distinct(rows)
    nearest = nearest_by_hand(rows, nodes.node)
    joined = nearest[np.isfinite(nearest)]
    for rule, share in (("quantile", 0.5), ("no_singleton", 1.0)):
        options = GraphSettings(epsilon=rule, epsilon_quantile=0.5, strict=strict)
        epsilon = feasibility.choose_epsilon(nodes, rows.rules, options)
        expected = np.quantile(joined, share) if len(joined) else 0.0
        assert epsilon.value == pytest.approx(expected, abs=1e-12)
        assert epsilon.without_neighbour == np.isinf(nearest).sum()
    # with the largest value only rows without any feasible neighbour stay alone
    assert feasibility.build(nodes, rows.rules, epsilon.value, options).isolated == epsilon.without_neighbour


def test_epsilon_as_given_and_without_any_neighbour():
    rows = plain([[0.0], [1.0]], [IMMUTABLE])
    nodes = distinct(rows)
    given_ = feasibility.choose_epsilon(nodes, rows.rules, GraphSettings(epsilon=0.3))
    assert (given_.value, given_.rule, given_.without_neighbour) == (0.3, "given", 2)
    found = feasibility.choose_epsilon(nodes, rows.rules, GraphSettings())
    assert (found.value, found.rule, found.without_neighbour) == (0.0, "quantile", 2)
    assert build(rows, found.value)[1].isolated == 2


def test_what_is_refused():
    with pytest.raises(DataQualityError, match="not finite"):
        distinct(plain([[np.nan]], [FREE]))
    with pytest.raises(ValueError, match="rows differ"):
        feasibility.collapse(np.zeros((2, 1)), NO_CODES, np.zeros((2, 0), np.int32), Rules(np.zeros(1, np.int8)))
    rows = Rows(
        np.zeros((1, 1)),
        np.array([[3]], np.int32),
        np.zeros((1, 0), np.int32),
        Rules(np.zeros(1, np.int8), ((0, ALLOWED),)),
    )
    with pytest.raises(DataQualityError, match="codes column 0"):
        build(rows, 1.0)


def test_no_rows():
    nodes, built = build(plain(np.zeros((0, 2)), [FREE, UP]), 1.0)
    assert (len(nodes.bucket), built.edges, built.isolated) == (0, 0, 0)
