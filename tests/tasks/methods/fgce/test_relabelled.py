"""Relabelled draws: shares against a search in loops, labels that keep their strata, and what a test of them finds."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import spec_of
from hypothesis import given
from hypothesis import strategies as st
from relabelled_lenders import audited, judged, lender

from schemas.audit.spec import Protected
from schemas.tables.applications import ENCODINGS
from tasks.feasibility_graph.settings import GraphSettings
from tasks.in_memory import call_plainly
from tasks.methods.fgce.ablate import searches
from tasks.methods.fgce.ablate import stage as ablate
from tasks.methods.fgce.ablate.searches import Grouped, Shared
from tasks.methods.fgce.algorithm import connectivity
from tasks.methods.fgce.algorithm.ablation import Query
from tasks.methods.fgce.algorithm.connectivity import DIFFERENCE, MEAN, Backwards, Labels
from tasks.numerics.problem import FeasibilityGraph
from tasks.numerics.statistics import regression
from tasks.plan import plan


def graph_of(edges: set[tuple[int, int]], size: int) -> FeasibilityGraph:
    ordered = sorted(edges)
    source = np.array([a for a, _ in ordered], np.int64)
    target = np.array([b for _, b in ordered], np.int32)
    return FeasibilityGraph(np.searchsorted(source, np.arange(size + 1)).astype(np.int64), target, np.ones(len(target)))


def in_loops(edges: set[tuple[int, int]], node: list[int], rows: set[int], asked: Query) -> float:
    """Infeasible share of some rows, by walking from every factual one."""
    present = {node[row] for row in rows}
    good = {node[row] for row in rows if asked.candidate[row]}
    refused = [not _walks({node[row]}, edges, present) & good for row in rows if asked.factual[row]]
    return float(np.mean(refused)) if refused else float("nan")


def _walks(reached: set[int], edges: set[tuple[int, int]], present: set[int]) -> set[int]:
    while True:
        more = reached | {b for a, b in edges if a in reached and b in present}
        if more == reached:
            return reached
        reached = more


def test_a_way_that_leads_through_an_outsider_is_none() -> None:
    """0 -> 1 -> 2 and 2 is approved: without row 1 nobody gets there; row 3 stands where row 2 does."""
    graph = Backwards.of(graph_of({(0, 1), (1, 2)}, 3), np.array([0, 1, 2, 2], np.int32))
    asked = Query(np.array([True, False, False, True]), np.array([False, False, True, False]))
    member = np.array([[1, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 0]], bool)
    found = connectivity.shares(graph, Labels(member, 0), asked)
    assert found == pytest.approx([0, 1 / 2, 1, np.nan], nan_ok=True)


@given(st.data())
def test_shares_are_those_of_a_search_in_loops(data: st.DataObject) -> None:
    size, n = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 12))
    nodes = st.integers(0, size - 1)
    edges = {(a, b) for a, b in data.draw(st.sets(st.tuples(nodes, nodes), max_size=15)) if a != b}
    node = data.draw(st.lists(nodes, min_size=n, max_size=n))
    factual = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    sets = data.draw(st.lists(st.sets(st.integers(0, n - 1)), min_size=1, max_size=5))
    sets = (sets * 70)[:70]  # more than a word holds
    member = np.array([[row in each for row in range(n)] for each in sets])
    asked = Query(factual, ~factual)
    found = connectivity.shares(Backwards.of(graph_of(edges, size), np.array(node, np.int32)), Labels(member, 0), asked)
    assert found == pytest.approx([in_loops(edges, node, each, asked) for each in sets], nan_ok=True)


def test_every_draw_has_as_many_of_each_stratum() -> None:
    lent = lender(3)
    rows = connectivity.design(lent.encoded, np.zeros((900, 0), np.int32))
    found = connectivity.labels(rows, lent.member, 50, np.random.default_rng(0))
    stratum = regression.strata(regression.propensity(rows, lent.member))
    wanted = np.bincount(stratum[lent.member], minlength=30)
    assert (found.member[0] == lent.member).all()
    assert all((np.bincount(stratum[each], minlength=30) == wanted).all() for each in found.member)
    assert len({each.tobytes() for each in found.member}) == 51
    assert found.member[1:].mean(axis=0)[lent.member].mean() < 0.5  # not all draws are the group itself


def test_a_group_that_is_like_nobody_else_is_drawn_as_it_is() -> None:
    encoded = np.column_stack([np.repeat([0.0, 1.0], 50), np.tile([0.2, 0.7], 50)])
    member = np.arange(100) >= 50
    found = connectivity.labels(
        connectivity.design(encoded, np.zeros((100, 0), np.int32)), member, 20, np.random.default_rng(1)
    )
    assert (found.member == member).all()
    assert found.alone == 50
    difference, mean = connectivity.relabelled_aggregates(1, np.full(21, 0.25), found.alone, 12)
    assert (difference.value, mean.value) == (0, 0.25)
    assert difference.inference is not None
    assert difference.inference.p == 1
    assert "50 applicants of the group are like nobody of the reference group" in difference.reason


def test_the_propensity_looks_at_squares_strata_and_no_constant() -> None:
    encoded = np.column_stack([np.full(6, 0.5), [0, 0, 0, 1, 1, 1], [0, 0.5, 1, 0, 0.5, 1]])
    strata = np.array([[0, 1, 2, 0, 1, 2]], np.int32).T
    assert connectivity.design(encoded, strata).shape == (6, 1 + 2 + 1 + 2)
    assert connectivity.design(encoded[:, :1], strata[:, :0]).shape == (6, 1)


def test_p_counts_the_group_itself_and_draws_without_factuals_are_none() -> None:
    difference, mean = connectivity.relabelled_aggregates(2, np.array([0.5, 0.5, 0.1, np.nan, 0.3]), 0, 8)
    assert mean.value == pytest.approx(0.3)
    assert difference.value == pytest.approx(0.2)
    assert difference.inference is not None
    assert difference.inference.p == pytest.approx((1 + 1) / (1 + 3))
    nothing, _ = connectivity.relabelled_aggregates(2, np.array([0.5, np.nan]), 0, 8)
    assert np.isnan(nothing.value)
    assert nothing.reason


def test_no_discrimination_and_worse_finances_is_seldom_a_breach() -> None:
    """40 lenders: p <= 0.025 and more than 0.05 above the draws; the binomial 99 % point of 5 % is 6."""
    found = []
    for seed in range(40):
        lent = lender(seed)
        found.append(judged(audited(lent, 39, seed), int(lent.denied.sum())))
    value, p = np.array(found).T
    assert abs(value.mean()) < 0.02
    assert ((p <= 0.025) & (value > 0.05)).sum() <= 6


def test_a_group_that_is_denied_at_random_in_a_corner_of_its_own_is_found() -> None:
    """All who are good and of the group are denied: nobody of the group can reach one of its own who is not."""
    lent = lender(5, worse=0.2)
    denied = lent.denied | (lent.member & (lent.encoded[:, 0] > 0.4))
    value, p = judged(audited(type(lent)(lent.encoded, lent.member, denied), 199), int(denied.sum()))
    assert p <= 0.025
    assert value > 0.05


def produced(place: Path, **overrides: str) -> dict[tuple[str, str, str], dict[str, object]]:
    """Aggregates of the stage, by decision maker, group and measure."""
    spec = spec_of(place, methods__fgce__ablations="false", **overrides)
    before = call_plainly(plan(spec).steps[:4])
    tables = [pa.concat_tables(before[table.name]) for table in ablate.ablate.reads]
    rows = ablate.ablate.function(*tables, settings=ablate.ablate_settings(spec)).tables["aggregates"].to_pylist()
    return {(row["decision_maker"], row["group"], row["measure"]): row for row in rows}


def test_what_is_held_against_the_draws_is_what_detect_finds(place: Path) -> None:
    cheap = {"methods__fgce__size_matched_draws": "0", "methods__fgce__resolves": "0", "methods__fgce__k": "1"}
    spec = spec_of(place, methods__fgce__ablations="false", **cheap)
    names = ("ingest", "preprocess", "score", "connect", "detect fgce")
    found = call_plainly([step for step in plan(spec).steps if step.name in names])
    shares = pa.concat_tables(found["tallies"]).to_pandas().query("subgroup == 0 and measure == 'infeasible_share'")
    own = shares.assign(total=shares["value"] * shares["count"]).groupby(["decision_maker", "group"])[
        ["total", "count"]
    ]
    rows = produced(place, **cheap, methods__fgce__relabelled_draws="20")
    compared = 0
    for (maker, group), row in own.sum().iterrows():
        if group != "white":
            drawn = rows[maker, group, MEAN]["value"] + rows[maker, group, DIFFERENCE]["value"]
            assert drawn == pytest.approx(row["total"] / row["count"])
            assert 1 / 21 <= rows[maker, group, DIFFERENCE]["p"] <= 1
            assert rows[maker, group, DIFFERENCE]["low"] is None
            compared += 1
    assert compared == 4
    assert not any(group == "white" for _, group, _ in rows)


def test_without_draws_and_without_ablations_there_is_no_stage(place: Path) -> None:
    off = {"methods__fgce__ablations": "false", "methods__fgce__relabelled_draws": "0"}
    assert ablate.ablate_settings(spec_of(place, **off)) is None
    assert ablate.ablate_settings(spec_of(place, profile="paper")) is None


def test_groups_for_whom_nothing_can_be_drawn_are_refused_and_others_are_not() -> None:
    """Black applicants are all approved, Asian ones all denied, one Hispanic one is; white ones are the reference."""
    group = np.repeat(np.arange(4, dtype=np.int32), [5, 6, 1, 20])
    denied = np.array([False] * 5 + [True] * 6 + [True] + [True, False] * 10)
    found = searches.aggregates(*arranged(group, ("Black", "Asian", "Hispanic", "white"), denied, "white"))
    by_group = {each.group: each for _, part, _ in found for each in part if each.measure == DIFFERENCE}
    assert by_group[0].reason == connectivity.NO_FACTUAL
    assert np.isnan(by_group[0].value)
    assert by_group[0].inference is None
    assert all(np.isfinite(by_group[each].value) for each in (1, 2))
    assert set(by_group) == {0, 1, 2}


def test_without_a_reference_group_nothing_is_drawn() -> None:
    group = np.zeros(9, np.int32)
    found = searches.aggregates(*arranged(group, ("Black",), np.arange(9) < 4, "white"))
    assert {each.reason for _, part, _ in found for each in part} == {connectivity.NOBODY_ELSE}


def arranged(
    group: np.ndarray, groups: tuple[str, ...], denied: np.ndarray, reference: str
) -> tuple[Shared, list[Grouped], dict[str, Query], pa.Table, int]:
    """Arguments of ``relabelling.aggregates``: one column, in which everybody is near everybody."""
    encodings = ENCODINGS.build(
        encoded=["income"],
        feature=["income"],
        **{"feature_index": [0], "kind": ["continuous"], "category": [None], "categories": [None]},
        **{"low": [0.0], "high": [1.0], "bins": [None], "clipped": [0], "implausible": [0], "roles": [""]},
        **{"constraint": ["free"], "transitions": [None]},
    )
    encoded = np.linspace(0, 1, len(group))[:, None] * 0.5
    shared = Shared(encoded, encodings, 0.2, GraphSettings(), 9, 1)
    protected = Protected.model_validate({"name": "race", "columns": ["race"], "groups": {}, "reference": reference})
    return shared, [Grouped(protected, group, groups)], {"lender": Query(denied, ~denied)}, encodings, 0
