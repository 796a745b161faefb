"""Subsamples of the reference group: whose size they have, which rows they hold, and the nodes that are left."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.feasibility_graph import algorithm
from tasks.feasibility_graph.algorithm import IMMUTABLE, Rules
from tasks.methods.fgce.algorithm import ablation

QUICK = settings(deadline=None, max_examples=examples(50))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(0, 3), st.integers(0, 3))
@QUICK
def test_only_smaller_groups_are_matched_and_each_draw_is_a_set_of_reference_rows(group, reference, draws):
    numbers = np.array(group, np.int32)
    sizes = np.bincount(numbers, minlength=4)
    found = ablation.matched(numbers, 4, reference, draws, np.random.default_rng(1))
    smaller = [g for g in range(4) if 0 < sizes[g] < sizes[reference]]
    assert [each.group for each in found] == (smaller if draws else [])
    for each in found:
        assert len(each.rows) == draws
        for rows in each.rows:
            assert len(rows) == sizes[each.group]
            assert (np.diff(rows) > 0).all()
            assert (numbers[rows] == reference).all()


def test_a_group_as_large_as_the_reference_has_no_draw():
    group = np.repeat(np.arange(3, dtype=np.int32), (5, 5, 4))
    assert [each.group for each in ablation.matched(group, 3, 0, 2, np.random.default_rng(1))] == [2]


def test_draws_differ_and_do_not_depend_on_other_groups():
    group = np.repeat(np.arange(3, dtype=np.int32), (60, 20, 30))
    found, again = (
        ablation.matched(numbers, 3, 0, 2, np.random.default_rng(1))[0].rows
        for numbers in (group, np.append(group, np.full(9, 2, np.int32)))
    )
    assert [rows.tolist() for rows in found] == [rows.tolist() for rows in again]
    assert found[0].tolist() != found[1].tolist()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=15), st.data())
@QUICK
def test_thinned_nodes_are_those_of_the_rows_collapsed_alone(cells, data):
    encoded, rules = np.array(cells, float) / 2, Rules(np.array([0, 1, IMMUTABLE], np.int8))
    codes, strata = np.array(cells, np.int32)[:, :1], np.zeros((len(cells), 1), np.int32)
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, len(cells) - 1), min_size=1))))
    whole = algorithm.collapse(encoded, codes, strata, rules)
    left, nodes = ablation.thinned(whole, rows)
    alone = algorithm.collapse(encoded[rows], codes[rows], strata[rows], rules)
    assert left.encoded == pytest.approx(alone.encoded)
    assert left.codes.tolist() == alone.codes.tolist()
    assert left.node.tolist() == alone.node.tolist()
    assert left.multiplicity.tolist() == alone.multiplicity.tolist()
    assert nodes.tolist() == np.unique(whole.node[rows]).tolist()
    assert (np.diff(left.bucket) >= 0).all()
    assert np.unique(left.bucket, return_inverse=True)[1].tolist() == alone.bucket.tolist()
