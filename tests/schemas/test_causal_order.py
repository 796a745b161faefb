"""The order of the columns as a form of the causal graph: its edges, and faults that name the column."""

import pytest
from conftest import SPEC, spec_of
from hypothesis import given
from hypothesis import strategies as st

from schemas.audit.causal import CausalGraph
from schemas.errors import SpecError
from tasks.pipeline.registry import checked, read_spec

ORDERED = SPEC.replace("causal_graph: {edges: [[race, income], [race, history], [income, amount]]}\n", "")
ORDER = "[[race], [purpose], [income, history], [amount]]"


def ordered(place, order=ORDER, **overrides):
    return spec_of(place, ORDERED, methods__cst__graph="saturated", methods__cst__causal_order=order, **overrides)


def test_an_order_makes_every_edge_from_one_tier_to_a_later_one(place):
    spec = ordered(place)
    edges = {
        *(("race", "purpose"), ("race", "income"), ("race", "history"), ("race", "amount"), ("purpose", "income")),
        *(("purpose", "history"), ("purpose", "amount"), ("income", "amount"), ("history", "amount")),
    }
    assert set(spec.causal_graph.edges) == edges
    assert checked(spec.model_dump(mode="json"), "again") == spec


@pytest.mark.parametrize(
    ("order", "fault"),
    [
        ("[[race], [purpose], [incom, history], [income, amount]]", "unknown column 'incom'; did you mean 'income'"),
        ("[[race], [purpose, amount], [income, history], [amount]]", "'amount' is in more than one tier"),
        ("[[purpose], [race], [income, history], [amount]]", "'race' is a protected attribute, which no column causes"),
        ("[[purpose], [income, history], [amount]]", "the protected attribute 'race' is missing"),
        ("[[race], [income], [amount]]", "purpose, history: missing from the order"),
        (
            "[[race], [purpose], [income], [amount]]",
            "'methods.cst.causal_order=[[race], [purpose], [income], [amount, h",
        ),
        ("[[race], [purpose], [income, history], [amount], [approved]]", "'approved' is the decision"),
        ("[]", "`graph: saturated` and `causal_order` belong together"),
    ],
)
def test_a_fault_of_the_order_names_the_column(place, order, fault):
    with pytest.raises(SpecError) as error:
        ordered(place, order)
    assert fault in str(error.value)
    assert "methods.cst" in str(error.value)
    assert "cycle" not in str(error.value)


@pytest.mark.parametrize(("role", "last"), [("", "[amount, area]"), (", role: excluded", "[amount]")])
def test_a_feature_that_is_set_joins_the_last_tier_as_a_guess(place, role, last):
    text = ORDERED.replace("cst: {", f"cst: {{graph: saturated, causal_order: {ORDER}, ")
    added = {"columns.area": f"{{type: continuous{role}}}"}
    spec = read_spec(text, "s.yaml", {"source.path": str(place / "loans.csv"), **added}).spec
    assert str(list(spec.causal_graph.order[-1])).replace("'", "") == last
    assert spec.unconfirmed == (("methods.cst.causal_order",) if not role else ())
    own = {"methods.cst.causal_order": ORDER.replace("[purpose]", "[purpose, area]"), "columns.area": "{type: binary}"}
    spec = read_spec(text, "s.yaml", {"source.path": str(place / "loans.csv"), **own}).spec
    assert (spec.causal_graph.order[1], spec.unconfirmed) == (("purpose", "area"), ())


def test_an_edge_against_the_order_is_refused(place):
    with pytest.raises(SpecError, match="amount -> income goes against the causal order"):
        ordered(place, causal_graph="{edges: [[amount, income]]}")


def test_a_mechanism_of_a_column_that_nothing_causes_is_refused(place):
    with pytest.raises(SpecError, match="'purpose' is in the first tier"):
        ordered(place, "[[race, purpose], [income, history], [amount]]", causal_graph="{mechanisms: {purpose: {}}}")


NAMES = ("v", "w", "x", "y")


@given(st.lists(st.sampled_from([(a, b) for i, a in enumerate(NAMES) for b in NAMES[i + 1 :]]), unique=True))
def test_the_saturated_graph_keeps_the_edges_of_a_graph_and_leaves_out_none_that_its_tiers_allow(edges):
    graph = CausalGraph(edges=tuple(edges) or (("A", "v"),))
    saturated = graph.saturated(NAMES, ("A",))
    assert {edge for edge in graph.edges if edge[0] != "A"} <= set(saturated.edges)
    assert {("A", name) for name in NAMES} <= set(saturated.edges)
    tiers = {name: i for i, tier in enumerate(saturated.order) for name in tier}
    assert set(saturated.edges) == {(a, b) for a in tiers for b in tiers if tiers[a] < tiers[b]}


def test_a_spec_of_the_yaml_reads_the_order():
    spec = read_spec(ORDERED.replace("cst: {", f"cst: {{graph: saturated, causal_order: {ORDER}, "), "s.yaml").spec
    assert spec.causal_graph.order[2] == ("income", "history")


def test_mechanisms_wait_for_edges_where_the_method_that_gives_an_order_is_off(place):
    spec = ordered(place, causal_graph="{mechanisms: {income: {kind: linear}}}")
    off = checked(spec.model_dump(mode="json") | {"methods": {}, "causal_graph": {"mechanisms": {"income": {}}}}, "off")
    assert not off.causal_graph.edges
