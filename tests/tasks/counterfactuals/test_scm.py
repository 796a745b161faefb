"""The causal model: laws on random graphs, models whose counterfactuals are known, and the authors' frames."""

import gzip

import numpy as np
import pytest
from conftest import SHARED, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from sklearn.tree import DecisionTreeRegressor

from schemas.audit.causal import CausalGraph, Mechanism
from schemas.errors import DataQualityError, SpecError
from schemas.terms import Kind
from tasks.counterfactuals.algorithm import causal_model
from tasks.counterfactuals.algorithm.causal_model import Roots, Unimaginable
from tasks.counterfactuals.algorithm.mechanisms import REGRESSORS
from tasks.numerics.encoding import Columns

GOLDEN = SHARED / "golden" / "cst"
NUMBER, ORDERED, YES_NO, NAMED = Kind.CONTINUOUS, Kind.ORDINAL, Kind.BINARY, Kind.NOMINAL


def rng(seed=0):
    return np.random.default_rng(seed)


def numbers(**values):
    """Columns of numbers."""
    kinds = (NUMBER,) * len(values)
    return Columns(tuple(values), kinds, ((),) * len(values), np.column_stack(list(values.values())).astype(float))


def group(codes, name="A", labels=("reference", "other")):
    """One protected attribute."""
    return Roots((name,), np.asarray(codes, dtype=np.int32)[:, None], (labels,))


def imagine(graph, columns, roots, action, rows=None, seed=0):
    rows = np.arange(len(columns.values)) if rows is None else rows
    fitted = causal_model.fit(graph, columns, roots, rng(seed))
    return causal_model.counterfactuals(fitted, columns, roots, rows, action)


@st.composite
def worlds(draw):
    """A random graph over mixed columns, with data in which everything depends on what comes before."""
    n, seed = draw(st.integers(30, 60)), draw(st.integers(0, 1000))
    kinds = draw(st.lists(st.sampled_from([NUMBER, ORDERED, YES_NO, NAMED]), min_size=1, max_size=4))
    names = [f"x{i}" for i in range(len(kinds))]
    codes = np.concatenate([[0, 1, 2], rng(seed).integers(0, 3, n - 3)])
    merit, values, categories = codes.astype(float), [], []
    for i, kind in enumerate(kinds):
        merit = merit + rng(seed + i + 1).normal(size=n)
        size = {NUMBER: 0, YES_NO: 2}.get(kind, 3)
        values.append(merit.copy() if not size else np.digitize(merit, np.linspace(0, 2, size - 1)).astype(float))
        categories.append(tuple("abc"[:size]))
    order = ["A", *names]
    pairs = [(a, b) for j, b in enumerate(order) for a in order[:j]]
    edges = [pair for pair in pairs if draw(st.booleans())]
    columns = Columns(tuple(names), tuple(kinds), tuple(categories), np.column_stack(values))
    return CausalGraph(edges=edges), columns, group(codes, labels=("u", "v", "w"))


@given(worlds())
@settings(deadline=None, max_examples=examples(40))
def test_setting_everybody_to_their_own_group_changes_nothing(world):
    graph, columns, roots = world
    for g in range(3):
        rows = np.flatnonzero(roots.codes[:, 0] == g)
        assert np.array_equal(imagine(graph, columns, roots, {"A": g}, rows).values, columns.values[rows])


@given(worlds())
@settings(deadline=None, max_examples=examples(40))
def test_abduction_then_prediction_without_an_action_is_the_factual(world):
    """By the mechanisms themselves: nothing is kept because its causes stayed what they were."""
    graph, columns, roots = world
    fitted, rows = causal_model.fit(graph, columns, roots, rng()), np.arange(len(columns.values))
    state = np.column_stack([columns.values, roots.codes]).astype(float)
    noise = causal_model.abduct(fitted, state, rows)
    assert np.array_equal(causal_model.predict(fitted, state, causal_model.act(fitted, state, {}), noise)[0], state)
    for node in fitted.nodes:
        made = fitted.mechanisms[node.name].predict(node.encode(state), noise[node.name])
        assert made == pytest.approx(state[:, node.place], abs=1e-9)


@given(worlds(), st.integers(0, 2))
@settings(deadline=None, max_examples=examples(40))
def test_only_what_the_action_reaches_changes_and_each_row_by_itself(world, g):
    graph, columns, roots = world
    rows = np.arange(len(columns.values))
    fitted = causal_model.fit(graph, columns, roots, rng())
    whole = causal_model.counterfactuals(fitted, columns, roots, rows, {"A": g})
    part = causal_model.counterfactuals(fitted, columns, roots, rows[1::3], {"A": g})
    assert np.array_equal(part.values, whole.values[1::3])
    for name, place in zip(columns.names, range(len(columns.names)), strict=True):
        if name not in whole.noise:
            assert np.array_equal(whole.values[:, place], columns.values[:, place])
    assert list(whole.noise) == [node.name for node in fitted.nodes]


def test_the_worked_example():
    """X2 = a X1 + U2, X3 = b1 X1 + b2 X2 + U3; under do(X1 = x): X3 = b1 x + b2 (a x + U2) + U3."""
    a, b1, b2 = 2.0, -1.0, 0.5
    x1 = np.tile([0.0, 1.0], 6)
    # noise orthogonal to the causes, so that least squares finds the coefficients exactly
    u2, u3 = np.tile(np.repeat([1.0, -1.0, 0.0], 2), 2), np.repeat([1.0, -1.0], 6) * 3
    x2 = a * x1 + u2
    x3 = b1 * x1 + b2 * x2 + u3
    graph = CausalGraph(edges=[("X1", "X2"), ("X1", "X3"), ("X2", "X3")])
    for x in (0, 1):
        found = imagine(graph, numbers(X2=x2, X3=x3), group(x1, "X1", ("0", "1")), {"X1": x})
        assert found.values[:, 0] == pytest.approx(a * x + u2, abs=1e-12)
        assert found.values[:, 1] == pytest.approx(b1 * x + b2 * (a * x + u2) + u3, abs=1e-12)
        assert found.noise["X2"][:, 0] == pytest.approx(u2, abs=1e-12)
        assert found.noise["X3"][:, 0] == pytest.approx(u3, abs=1e-12)


def test_a_model_that_is_not_linear_gives_the_known_counterfactual(monkeypatch):
    """Y = X^2 + noise, X = 1 + A: a tree over the four causes is saturated, and its noise is exact."""
    codes, step = np.tile([0, 1], 8), np.repeat([0.0, 2.0], 8)
    x, u = 1 + codes + step, np.tile(np.repeat([0.25, -0.25], 2), 4)
    columns, roots = numbers(X=x, Y=x**2 + u), group(codes)
    monkeypatch.setitem(REGRESSORS, "forest", DecisionTreeRegressor())
    graph = CausalGraph(edges=[("A", "X"), ("X", "Y")], mechanisms={"Y": {"kind": "forest"}})
    fitted = causal_model.fit(graph, columns, roots, rng())
    found = causal_model.counterfactuals(fitted, columns, roots, np.flatnonzero(codes), {"A": 0})
    assert found.values[:, 1] == pytest.approx(((x - 1) ** 2 + u)[codes == 1], abs=1e-9)


def test_groups_each_have_their_own_effect_and_several_roots_can_be_set_at_once():
    race, sex = np.tile([0, 1, 2], 4), np.repeat([0, 1], 6)
    effect, x = np.array([0.0, -3.0, 5.0]), np.zeros(12)
    x = 10 + effect[race] + 2 * sex
    roots = Roots(("race", "sex"), np.column_stack([race, sex]).astype(np.int32), (("w", "b", "a"), ("m", "f")))
    graph = CausalGraph(edges=[("race", "x"), ("sex", "x")])
    fitted = causal_model.fit(graph, numbers(x=x), roots, rng())
    assert causal_model.terms(fitted)["x"] == pytest.approx({"intercept": 10, "race=b": -3, "race=a": 5, "sex=f": 2})
    found = causal_model.counterfactuals(fitted, numbers(x=x), roots, np.arange(12), {"race": 0, "sex": 0})
    assert found.values[:, 0] == pytest.approx(np.full(12, 10.0))


def test_a_category_between_the_attribute_and_a_number_carries_the_effect():
    """A -> C -> Y: as many must change category as the shares say, and Y by the effect of the change."""
    n = 20_000
    codes = rng(1).integers(0, 2, n)
    c = np.where(rng(2).random(n) < np.where(codes == 1, 0.8, 0.3), 1.0, 0.0)
    y = 4 * c + rng(3).normal(size=n)
    for kind in (YES_NO, NAMED):
        columns = Columns(("c", "y"), (kind, NUMBER), (("no", "yes"), ()), np.column_stack([c, y]))
        rows = np.flatnonzero(codes)
        graph = CausalGraph(edges=[("A", "c"), ("c", "y")])
        found = imagine(graph, columns, group(codes), {"A": 0}, rows)
        assert found.values[:, 0].mean() == pytest.approx(0.3, abs=0.02)
        # more cannot change than the shares differ by: both couplings of two categories are monotone
        assert (found.values[:, 0] <= c[rows]).all()
        assert found.values[:, 1] - y[rows] == pytest.approx(4 * (found.values[:, 0] - c[rows]), abs=0.2)


def test_rounding_bounds_and_their_count():
    graph = CausalGraph(
        edges=[("A", "x"), ("x", "y")],
        mechanisms={"x": {"factual_decimals": 0, "decimals": 1, "bounds": (1, None)}, "y": {}},
    )
    x = np.array([1.2, 3.4, 2.0, 4.0])
    found = imagine(graph, numbers(x=x, y=np.round(x)), group([0, 0, 1, 1]), {"A": 1})
    # rounded: 1 3 | 2 4, so the effect is 1
    assert found.values.tolist() == [[2, 2], [4, 4], [2, 2], [4, 4]]
    down = imagine(graph, numbers(x=x, y=np.round(x)), group([1, 1, 0, 0]), {"A": 0})
    assert down.values[:, 0].tolist() == [2, 4, 2, 4]
    below = imagine(graph, numbers(x=x, y=np.round(x)), group([0, 0, 1, 1]), {"A": 0})
    assert below.values[:, 0].tolist() == [1, 3, 1, 3]
    bounded = CausalGraph(edges=graph.edges, mechanisms={"x": {"bounds": (1.5, 3.5)}})
    clipped = imagine(bounded, numbers(x=x, y=x), group([0, 0, 1, 1]), {"A": 0})
    # the means are 2.3 and 3: without bounds 1.2 3.4 | 1.3 3.3; and what was clipped goes on to its effects
    assert clipped.clipped == {"x": 2, "y": 0}
    assert clipped.values.ravel() == pytest.approx(np.repeat([1.5, 3.4, 1.5, 3.3], 2))


def test_rows_that_cannot_be_imagined_are_refused_with_a_reason():
    codes, count = np.tile([0, 1], 10), np.arange(20.0)
    count[[3, 5]] = -1, 2.5
    other = np.zeros(20)
    other[7] = np.nan
    graph = CausalGraph(edges=[("A", "x"), ("x", "y")], mechanisms={"x": {"kind": "count"}})
    found = imagine(graph, numbers(x=count, y=other, z=np.full(20, np.nan)), group(codes), {"A": 0})
    assert dict(zip(found.refused.tolist(), found.reason.tolist(), strict=True)) == {
        3: Unimaginable.NOT_A_COUNT,
        5: Unimaginable.NOT_A_COUNT,
        7: Unimaginable.MISSING_VALUE,
    }
    assert sorted([*found.row, *found.refused]) == list(range(20))
    assert np.isfinite(found.values[:, :2]).all()


def test_a_category_that_the_fit_has_not_met_is_refused():
    codes, colour = np.tile([0, 1], 6), np.tile([0.0, 0, 1, 1], 3)
    graph = CausalGraph(edges=[("A", "c"), ("c", "y")])
    columns = Columns(("c", "y"), (NAMED, NUMBER), (("r", "g", "b"), ()), np.column_stack([colour, colour]))
    fitted = causal_model.fit(graph, columns, group(codes), rng())
    columns.values[4, 0] = 2
    found = causal_model.counterfactuals(fitted, columns, group(codes), np.arange(12), {"A": 0})
    assert (found.refused.tolist(), found.reason.tolist()) == ([4], [Unimaginable.UNSEEN_CATEGORY])


def test_a_value_that_the_mechanism_holds_impossible_is_refused():
    codes, count = np.tile([0, 1], 10), np.ones(20)
    graph = CausalGraph(edges=[("A", "x")], mechanisms={"x": {"kind": "count"}})
    fitted = causal_model.fit(graph, numbers(x=count), group(codes), rng())
    count[2] = 1000
    found = causal_model.counterfactuals(fitted, numbers(x=count), group(codes), np.arange(20), {"A": 1})
    assert (found.refused.tolist(), found.reason.tolist()) == ([2], [Unimaginable.IMPROBABLE_VALUE])


@pytest.mark.parametrize(
    ("edges", "mechanisms", "message"),
    [
        ([("A", "incom")], {}, "'incom' is no column of the causal model; did you mean 'income'"),
        ([("income", "A")], {}, "income -> A: 'A' is a protected attribute and nothing may cause it"),
        ([("A", "city")], {"city": {"kind": "linear"}}, "'city' is nominal and cannot .* 'linear'; take 'nominal'"),
        ([("A", "income")], {"income": {"kind": "ordinal"}}, "'income' is continuous .* 'ordinal'; take 'linear' or"),
        ([("A", "city")], {"city": {"decimals": 2}}, "'city' is nominal: bounds and decimals belong to numbers"),
    ],
)
def test_a_graph_that_does_not_fit_the_columns(edges, mechanisms, message):
    columns = Columns(("income", "city"), (NUMBER, NAMED), ((), ("x", "y")), np.zeros((4, 2)))
    with pytest.raises(SpecError, match=message) as error:
        causal_model.fit(CausalGraph(edges=edges, mechanisms=mechanisms), columns, group([0, 1, 0, 1]), rng())
    assert error.value.location[0] == "causal_graph"


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ({"edges": [("a", "b"), ("b", "c"), ("c", "a")]}, "cycle: .* -> .*; remove one edge"),
        ({"edges": [("a", "a")]}, "cycle: a -> a"),
        ({"edges": [("a", "bank")], "mechanisms": {"bnk": {}}}, "no edge leads to 'bnk'.*; did you mean 'bank'"),
        ({"edges": [("a", "b")], "mechanisms": {"a": {}}}, "no edge leads to 'a'"),
        ({"edges": [("a", "b")], "mechanisms": {"b": {"bounds": (2, 1)}}}, "lower one first"),
        ({"edges": [("a", "b")], "mechanisms": {"b": {"kind": "nominal", "decimals": 1}}}, "belong to numbers"),
        ({"edges": [("a", "b")], "mechanisms": {"b": {"kind": "count", "noise_decimals": 1}}}, "additive noise"),
        ({"edges": [("a", "b")], "mechanisms": {"b": {"kind": "linera"}}}, "linear"),
    ],
)
def test_a_graph_that_is_not_usable(graph, message):
    with pytest.raises(ValidationError, match=message):
        CausalGraph(**graph)


def test_an_edge_or_a_node_can_be_left_out():
    graph = CausalGraph(edges=[("A", "x"), ("A", "y"), ("x", "y")], mechanisms={"x": {"decimals": 1}, "y": {}})
    assert graph.parents("y") == ("A", "x")
    less = graph.without(("A", "x"))
    assert (less.edges, list(less.mechanisms)) == ((("A", "y"), ("x", "y")), ["y"])
    assert graph.without_node("y") == CausalGraph(edges=[("A", "x")], mechanisms={"x": Mechanism(decimals=1)})
    with pytest.raises(ValueError, match="no edge y -> x"):
        graph.without(("y", "x"))


@pytest.mark.parametrize(
    ("action", "message"),
    [({"B": 0}, "no protected"), ({"A": 2}, "no applicant .* 'none'"), ({"A": 9}, "no applicant")],
)
def test_an_action_needs_an_attribute_and_a_group_with_rows(action, message):
    columns, roots = numbers(x=np.arange(4.0)), group([0, 1, 0, 1], labels=("u", "v", "none"))
    fitted = causal_model.fit(CausalGraph(edges=[("A", "x")]), columns, roots, rng())
    with pytest.raises(SpecError, match=message):
        causal_model.counterfactuals(fitted, columns, roots, np.arange(4), action)


def test_without_any_usable_row_there_is_no_model():
    with pytest.raises(DataQualityError, match="no row has a value"):
        causal_model.fit(CausalGraph(edges=[("A", "x")]), numbers(x=np.full(3, np.nan)), group([0, 1, 0]), rng())


def golden(name, *columns):
    with gzip.open(GOLDEN / f"{name}.csv.gz", "rt") as file:
        header = file.readline().strip().split(",")
        table = np.genfromtxt(file, delimiter=",", dtype=str)
    return [table[:, header.index(column)] for column in columns]


@pytest.mark.data("golden/cst")
def test_the_authors_loan_frame_is_made_again_to_the_last_digit():
    """Residuals and counterfactual values rounded to cents, for everybody; the salary as rounded goes on."""
    names = ("AnnualSalary", "AccountBalance")
    *values, gender = (column.astype(float) for column in golden("loan_factual", *names, "Gender"))
    cents = {"decimals": 2, "noise_decimals": 2}
    edges = [("Gender", "AnnualSalary"), ("Gender", "AccountBalance"), ("AnnualSalary", "AccountBalance")]
    graph = CausalGraph(edges=edges, mechanisms=dict.fromkeys(names, cents))
    columns, roots = numbers(**dict(zip(names, values, strict=True))), group(gender, "Gender", ("male", "female"))
    fitted = causal_model.fit(graph, columns, roots, rng())
    found = causal_model.counterfactuals(fitted, columns, roots, np.arange(len(gender)), {"Gender": 0})
    assert np.array_equal(found.values.T, np.array(golden("loan_counterfactual", *names), dtype=float))
    salary, balance = (list(causal_model.terms(fitted)[name].values()) for name in names)
    assert salary == pytest.approx([100655.3, -15796.4], abs=0.05)
    assert balance == pytest.approx([121.1, -1182.8, 0.29890], rel=5e-4)


def law():
    """Columns and protected attributes of the law school data, and the graph of the authors."""
    lsat, ugpa, gender, race = golden("law_race_factual", "LSAT", "UGPA", "Gender", "Race")
    codes = np.column_stack([gender == "Female", race == "NonWhite"]).astype(np.int32)
    roots = Roots(("Gender", "Race"), codes, (("Male", "Female"), ("White", "NonWhite")))
    columns = numbers(LSAT=lsat.astype(float), UGPA=ugpa.astype(float))
    lsat_rule = {"factual_decimals": 0, "decimals": 3, "bounds": (10, 48)}
    rules = {"LSAT": lsat_rule, "UGPA": {"decimals": 3, "bounds": (0, 4)}}
    return columns, roots, CausalGraph(edges=[(a, x) for a in roots.names for x in columns.names], mechanisms=rules)


@pytest.mark.data("golden/cst")
def test_the_authors_law_school_frame_is_made_again_to_the_last_digit():
    columns, roots, graph = law()
    fitted = causal_model.fit(graph, columns, roots, rng())
    found = causal_model.counterfactuals(fitted, columns, roots, np.arange(len(roots.codes)), {"Race": 0})
    assert np.array_equal(found.values.T, np.array(golden("law_race_counterfactual", "LSAT", "UGPA"), dtype=float))
    assert list(causal_model.terms(fitted)["LSAT"].values()) == pytest.approx([37.7848, -0.6087, -4.6386], abs=5e-5)
    assert list(causal_model.terms(fitted)["UGPA"].values()) == pytest.approx([3.2071, 0.1252, -0.2190], abs=1e-4)


@pytest.mark.data("golden/cst")
def test_the_crossed_attribute_of_the_law_school_is_one_root():
    columns, roots, graph = law()
    crossed = group(roots.codes.prod(axis=1), "GenderRace", ("all others", "Female-NonWhite"))
    graph = CausalGraph(edges=[("GenderRace", name) for name in columns.names], mechanisms=graph.mechanisms)
    terms = causal_model.terms(causal_model.fit(graph, columns, crossed, rng()))
    assert list(terms["LSAT"].values()) == pytest.approx([37.1893, -4.9602], abs=5e-5)
    assert list(terms["UGPA"].values()) == pytest.approx([3.2389, -0.1468], abs=1e-4)


@pytest.mark.data("golden/cst")
def test_the_poisson_equation_that_the_paper_prints():
    columns, roots, _ = law()
    edges = [("Gender", "LSAT"), ("Race", "LSAT")]
    graph = CausalGraph(edges=edges, mechanisms={"LSAT": {"kind": "count", "factual_decimals": 0}})
    fitted = causal_model.fit(graph, columns, roots, rng())
    assert list(causal_model.terms(fitted)["LSAT"].values()) == pytest.approx([3.63205, -0.01658, -0.13213], abs=5e-6)
