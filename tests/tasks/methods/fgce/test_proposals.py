"""Whether proposals are possible: hand-worked answers, and a clear loop over a networkx graph."""

import math

import networkx as nx
import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.feasibility_graph.algorithm import DOWN, FREE, IMMUTABLE, UP, Rules
from tasks.methods.fgce.algorithm.ablation import Proposed, Variant, possible
from tasks.methods.fgce.settings import FgceSettings

QUICK = settings(deadline=None, max_examples=examples(40))

SETTINGS = FgceSettings()


def asked(rows, points, applicant, direction, epsilon, strata=None):
    """Answers for some rows and proposals; ``strata`` is of the rows."""
    encoded = np.array([*rows, *points], float)
    own = np.zeros(len(rows), np.int32) if strata is None else np.array(strata, np.int32)
    both = np.concatenate([own, own[applicant]])[:, None]
    variant = Variant("", Rules(np.array(direction, np.int8)), np.zeros((len(encoded), 0), np.int32), epsilon)
    return possible(Proposed(encoded, both, np.array(applicant)), variant, SETTINGS).tolist()


def test_a_chain_of_rows_leads_to_a_proposal_and_a_gap_does_not():
    rows = [[0.0], [0.25], [0.5]]
    assert asked(rows, [[0.75]], [0], [FREE], 0.3) == [True]
    assert asked([rows[0], rows[2]], [[0.75]], [0], [FREE], 0.3) == [False]
    assert asked([rows[0], rows[2]], [[0.75]], [0], [FREE], math.inf) == [True]


def test_a_rule_forbids_a_proposal_with_and_without_epsilon():
    for epsilon in (0.3, math.inf):
        assert asked([[0.5]], [[0.25]], [0], [UP], epsilon) == [False]
        assert asked([[0.5]], [[0.25]], [0], [DOWN], epsilon) == [True]
        assert asked([[0.5]], [[0.25]], [0], [IMMUTABLE], epsilon) == [False]
        assert asked([[0.5]], [[0.5]], [0], [IMMUTABLE], epsilon) == [True]


def test_nobody_goes_by_another_ones_proposal():
    """The proposal at 0.25 would join 0 and 0.5, but nobody is there."""
    assert asked([[0.0], [0.5]], [[0.25], [0.5]], [0, 0], [UP], 0.3) == [True, False]


def test_strata_are_not_crossed():
    rows, points = [[0.0], [0.25], [0.5]], [[0.75]]
    assert asked(rows, points, [0], [FREE], 0.3, strata=[0, 1, 0]) == [False]
    assert asked(rows, points, [0], [FREE], 0.3, strata=[0, 0, 0]) == [True]


@QUICK
@given(
    rows=st.lists(st.tuples(*[st.integers(0, 4)] * 2), min_size=1, max_size=8),
    points=st.lists(st.tuples(*[st.integers(0, 4)] * 2), min_size=1, max_size=4),
    direction=st.tuples(*[st.sampled_from([FREE, UP, DOWN, IMMUTABLE])] * 2),
    epsilon=st.sampled_from([0.3, 0.6, math.inf]),
)
def test_answers_are_those_of_a_loop(rows, points, direction, epsilon):
    rows, points = np.array(rows) / 4, np.array(points) / 4
    applicant = [at % len(rows) for at in range(len(points))]

    def step(one, other):
        delta = other - one
        ruled = zip(delta, direction, strict=True)
        return np.sqrt((delta**2).sum()) <= epsilon and all(d == 0 if r == IMMUTABLE else d * r >= 0 for d, r in ruled)

    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(rows)))
    graph.add_edges_from((i, j) for i in range(len(rows)) for j in range(len(rows)) if step(rows[i], rows[j]))
    expected = [
        any(step(rows[j], point) for j in nx.descendants(graph, own) | {own})
        for own, point in zip(applicant, points, strict=True)
    ]
    assert asked(rows, points, applicant, direction, epsilon) == pytest.approx(expected)
