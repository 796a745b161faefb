"""Recourse with a rule lifted: hand-worked answers, a clear loop over a networkx graph, and laws."""

import math
from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.feasibility_graph.algorithm import DOWN, FREE, IMMUTABLE, UP, Rules
from tasks.methods.fgce.algorithm import ablation
from tasks.methods.fgce.algorithm.ablation import Matched, Query, Variant
from tasks.methods.fgce.settings import NOTHING, FgceSettings

QUICK = settings(deadline=None, max_examples=examples(50))

LEVELS = 4
"""The last column is a category in steps of a third; a transition rule may bind it."""


def instance(cells, strata, factual, rules, epsilon, strict=False):
    """Rows, their one question, and the rules as they are given."""
    encoded = np.array(cells, float)
    codes = np.rint(encoded[:, -1:] * (LEVELS - 1)).astype(np.int32)[:, : len(rules.transitions)]
    factual = np.array(factual, bool)
    variant = Variant(NOTHING, rules, codes, epsilon)
    groups = np.array(strata, np.int32).reshape(-1, 1)
    return encoded, groups, variant, (Query(factual, ~factual),), FgceSettings(strict=strict)


def costs(instance, **changed):
    encoded, strata, variant, asked, options = instance
    (found,) = ablation.search(encoded, strata, replace(variant, **changed), asked, (), options).costs
    return found


def freed(rules, column):
    """Rules and codes without the constraint on a column."""
    direction = rules.direction.copy()
    direction[column] = FREE
    last = column == len(direction) - 1
    return Rules(direction, () if last else rules.transitions)


def without(instance, column):
    rules = freed(instance[2].rules, column)
    return {"rules": rules, "codes": instance[2].codes[:, : len(rules.transitions)]}


def closed(moves):
    """The least transitive relation that holds some moves, and staying."""
    moves = moves.copy()
    for k in range(LEVELS):
        moves |= moves[:, k : k + 1] & moves[k]
    return moves


@st.composite
def instances(draw, transitive=False):
    n, p = draw(st.integers(1, 10)), draw(st.integers(1, 2))
    cells = np.array(draw(st.lists(st.integers(0, 4), min_size=n * p, max_size=n * p)), float).reshape(n, p) / 4
    levels = np.array(draw(st.lists(st.integers(0, LEVELS - 1), min_size=n, max_size=n))) / (LEVELS - 1)
    direction = draw(st.lists(st.sampled_from([FREE, UP, DOWN, IMMUTABLE]), min_size=p + 1, max_size=p + 1))
    moves = np.array(draw(st.lists(st.booleans(), min_size=LEVELS**2, max_size=LEVELS**2))).reshape(LEVELS, LEVELS)
    moves |= np.eye(LEVELS, dtype=bool)
    moves = closed(moves) if transitive else moves
    rules = Rules(np.array(direction, np.int8), ((0, moves),) if draw(st.booleans()) else ())
    return instance(
        np.column_stack([cells, levels]),
        draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)),
        draw(st.lists(st.booleans(), min_size=n, max_size=n)),
        rules,
        draw(st.sampled_from([0.26, 0.5, 0.8])),
        draw(st.booleans()),
    )


def permitted(rules, codes, here, there, i, j):
    """Whether a step breaks no rule, constraint by constraint."""
    for direction, delta in zip(rules.direction, there - here, strict=True):
        if (direction == IMMUTABLE and delta != 0) or (direction in (UP, DOWN) and direction * delta < 0):
            return False
    return all(matrix[codes[i, column], codes[j, column]] for column, matrix in rules.transitions)


def by_hand(instance, **changed):
    """Every row's cheapest candidate by a loop over pairs and networkx's descendants."""
    encoded, strata, variant, (asked,), options = instance
    variant = replace(variant, **changed)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(encoded)))
    for i, here in enumerate(encoded):
        for j, there in enumerate(encoded):
            distance = math.sqrt(sum((there - here) ** 2))
            near = distance < variant.epsilon if options.strict else distance <= variant.epsilon
            same = (strata[i] == strata[j]).all()
            if same and near and permitted(variant.rules, variant.codes, here, there, i, j):
                graph.add_edge(i, j)
    out = np.full(len(encoded), np.nan)
    for i in np.flatnonzero(asked.factual):
        reached = set(graph[i]) if math.isinf(variant.epsilon) else nx.descendants(graph, i)
        paid = [math.sqrt(sum((encoded[j] - encoded[i]) ** 2)) for j in reached if asked.candidate[j]]
        out[i] = min(paid, default=np.nan)
    return out


@given(instances(), st.booleans())
@QUICK
def test_agrees_with_the_clear_loop(instance, far):
    epsilon = math.inf if far else instance[2].epsilon
    assert costs(instance, epsilon=epsilon) == pytest.approx(by_hand(instance, epsilon=epsilon), nan_ok=True)
    for column in range(instance[0].shape[1]):
        lifted = without(instance, column) | {"epsilon": epsilon}
        assert costs(instance, **lifted) == pytest.approx(by_hand(instance, **lifted), nan_ok=True)


@given(instances(), st.booleans(), st.data())
@QUICK
def test_a_draw_is_the_search_on_its_rows_alone(instance, far, data):
    """Two questions at once, each as by the clear loop over the graph that the drawn rows induce."""
    encoded, strata, variant, (asked,), options = instance
    variant = replace(variant, epsilon=math.inf) if far else variant
    answer = np.array(data.draw(st.lists(st.booleans(), min_size=len(encoded), max_size=len(encoded))))
    other = Query(answer, ~answer)
    subsets = st.sets(st.integers(0, len(encoded) - 1), min_size=1)
    rows = [np.array(sorted(drawn)) for drawn in data.draw(st.lists(subsets, min_size=2, max_size=3))]
    found = ablation.search(encoded, strata, variant, (asked, other), [Matched(1, tuple(rows))], options)
    assert found.subsamples[0].shape == (2, len(rows), 2)
    for number, question in enumerate((asked, other)):
        for draw, own in enumerate(rows):
            part = replace(variant, codes=variant.codes[own])
            paid = by_hand((encoded[own], strata[own], part, (question.of(own),), options))[question.factual[own]]
            known = paid[~np.isnan(paid)]
            share = np.isnan(paid).mean() if len(paid) else np.nan
            burden = known.mean() if len(known) else np.nan
            assert found.subsamples[0][number, draw] == pytest.approx([share, burden], nan_ok=True)


@given(instances())
@QUICK
def test_what_no_step_can_change_may_as_well_be_immutable(instance):
    encoded, strata, variant, asked, options = instance
    bound = ablation.binding(variant, encoded)
    for column, (was, now) in enumerate(zip(variant.rules.direction, bound.rules.direction, strict=True)):
        steps = np.abs(encoded[:, None, column] - encoded[None, :, column])
        fixed = not ((steps > 0) & (steps <= variant.epsilon)).any()
        assert now == (IMMUTABLE if fixed else was)
    found = ablation.search(encoded, strata, bound, asked, (), options).costs
    assert found[0] == pytest.approx(by_hand(instance), nan_ok=True)


def no_dearer(before, after):
    """Whether nobody pays more; having no recourse is dearest."""
    return (np.nan_to_num(after, nan=np.inf) <= np.nan_to_num(before, nan=np.inf)).all()


@given(instances())
@QUICK
def test_lifting_a_constraint_makes_nobody_worse_off(instance):
    given_, every = costs(instance), instance[2].rules
    for column in range(instance[0].shape[1]):
        every = freed(every, column)
        assert no_dearer(given_, costs(instance, **without(instance, column)))
    none = np.zeros((len(instance[0]), 0), np.int32)
    assert no_dearer(given_, costs(instance, rules=every, codes=none))


@given(instances(transitive=True))
@QUICK
def test_without_epsilon_nobody_is_worse_off_where_transitions_are_transitive(instance):
    near, wider, far = (costs(instance, epsilon=e) for e in (instance[2].epsilon, 1.0, math.inf))
    assert no_dearer(near, wider)
    assert no_dearer(wider, far)


@given(instances())
@QUICK
def test_protected_groups_are_never_crossed(instance):
    encoded, strata, _, (asked,), _ = instance
    nothing = {"rules": Rules(np.zeros(encoded.shape[1], np.int8)), "codes": np.zeros((len(encoded), 0), np.int32)}
    found = costs(instance, **nothing, epsilon=math.inf)
    for group in (0, 1):
        own = strata[:, 0] == group
        served = ~np.isnan(found[own & asked.factual])
        assert (served == (own & asked.candidate).any()).all()


def line():
    """Income up, age immutable: rows 0 and 1 refused, 2 to 4 approved; row 4 belongs to another group."""
    cells = [[0.0, 0.0], [0.5, 0.0], [0.25, 0.0], [0.5, 1.0], [0.5, 0.0]]
    rules = Rules(np.array([UP, IMMUTABLE], np.int8))
    return instance(cells, [0, 0, 0, 0, 1], [1, 1, 0, 0, 0], rules, 0.3)


def test_by_hand():
    only = line()
    assert costs(only)[:2] == pytest.approx([0.25, np.nan], nan_ok=True)
    assert costs(only, **without(only, 0))[:2] == pytest.approx([0.25, 0.25])
    # age may change, but no step of 0.3 does so
    assert costs(only, **without(only, 1))[:2] == pytest.approx([0.25, np.nan], nan_ok=True)
    assert costs(only, **without(only, 1), epsilon=math.inf)[:2] == pytest.approx([0.25, 1.0])
    assert np.isnan(costs(only)[2:]).all()


def test_a_chain_of_transitions_that_are_not_transitive_is_not_one_step():
    bad_fair_good = np.eye(LEVELS, dtype=bool)
    bad_fair_good[[0, 1], [1, 2]] = True
    rules = Rules(np.array([FREE], np.int8), ((0, bad_fair_good),))
    chain = instance([[0.0], [1 / 3], [2 / 3]], [0] * 3, [1, 1, 0], rules, 0.4)
    assert costs(chain)[:2] == pytest.approx([2 / 3, 1 / 3])
    assert costs(chain, epsilon=math.inf)[:2] == pytest.approx([np.nan, 1 / 3], nan_ok=True)


def test_variants_name_what_is_lifted():
    _, _, given_, _, _ = line()
    lifted = {"income": (freed(given_.rules, 0), given_.codes), "age": (freed(given_.rules, 1), given_.codes)}
    every = Rules(np.zeros(2, np.int8))
    found = ablation.variants(given_, lifted, every)
    assert [(v.without, v.epsilon) for v in found] == [
        ("nothing", 0.3),
        ("income", 0.3),
        ("age", 0.3),
        ("epsilon", math.inf),
        ("every constraint", 0.3),
        ("every constraint and epsilon", math.inf),
    ]
    assert found[0] is given_
    assert found[3].rules is given_.rules
    assert [v.rules.direction.tolist() for v in found] == [[1, 2], [0, 2], [1, 0], [1, 2], [0, 0], [0, 0]]
    assert [v.without for v in ablation.variants(given_, {}, every)] == ["nothing", "epsilon"]


def test_a_graph_that_was_cut_down_says_so():
    cells = np.linspace(0, 1, 12)[:, None]
    encoded, strata, variant, asked, _ = instance(cells, [0] * 12, [1] * 6 + [0] * 6, Rules(np.zeros(1, np.int8)), 1.0)
    cut = ablation.search(encoded, strata, variant, asked, (), FgceSettings(max_edges=10, nearest=2))
    assert variant.parameters(cut.nearest) == {"without": "nothing", "nearest": 2}
    whole = ablation.search(encoded, strata, variant, asked, (), FgceSettings())
    assert variant.parameters(whole.nearest) == {"without": "nothing"}


def test_variants_that_lift_what_does_not_bind_are_alike():
    encoded, _, given_, _, _ = line()
    income = replace(given_, without="income", rules=freed(given_.rules, 0))
    age = replace(given_, without="age", rules=freed(given_.rules, 1))
    bound, first, second = (ablation.binding(v, encoded) for v in (given_, income, age))
    assert ablation.alike(bound, second)
    assert second.without == "age"
    assert not ablation.alike(bound, first)
    assert not ablation.alike(bound, ablation.binding(replace(given_, epsilon=math.inf), encoded))
    moves = replace(given_, rules=Rules(given_.rules.direction, ((0, np.eye(2, dtype=bool)),)))
    assert not ablation.alike(given_, moves)
    assert ablation.alike(moves, moves)


def test_draws_name_what_was_lifted_and_whose_size_it_is():
    share, burden = ablation.draws({"without": "age"}, np.array([[0.5, 0.25], [1.0, np.nan]]), 3)
    assert (share.measure, share.group, share.values.tolist()) == (ablation.SHARE, 3, [0.5, 1.0])
    assert (burden.measure, burden.parameters) == (ablation.BURDEN, {"without": "age"})
    assert burden.values == pytest.approx([0.25, np.nan], nan_ok=True)


def test_tallies_count_rows_by_group():
    paid = np.array([0.5, np.nan, 0.5, 0.25, np.nan])
    found = list(ablation.tallies({"without": "age"}, paid, np.array([0, 0, 0, 2, 2], np.int32), 3))
    assert [(t.group, t.measure) for t in found] == [(g, m) for g in (0, 2) for m in (ablation.SHARE, ablation.BURDEN)]
    assert [t.counts.tolist() for t in found] == [[2, 1], [2, 1], [1, 1], [1, 1]]
    assert found[1].values == pytest.approx([0.5, np.nan], nan_ok=True)
    assert all(t.parameters == {"without": "age"} and not t.headline and not t.compared for t in found)
    assert [t.share for t in found] == [True, False] * 2
    assert all((a < b) or math.isnan(b) for t in found for a, b in pairwise(t.values))
