"""The `paper` profile against what the authors' own code gave: graph, components, reach and greedy choices.

German credit in full, and the authors' integer-coded Adult cut to 2,000 rows. The authors keep equal rows as nodes of
their own and link them both ways; ours share a node and are expanded here before the comparison.
"""

import hashlib
import json
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import SHARED

from tasks.feasibility_graph import algorithm
from tasks.feasibility_graph import algorithm as feasibility
from tasks.feasibility_graph.settings import GraphSettings
from tasks.methods.fgce.algorithm import recourse
from tasks.methods.fgce.algorithm.costs import Vector

GOLDEN = SHARED / "golden" / "fgce"

pytestmark = pytest.mark.data("golden/fgce")

STRATA = {"old_GermanCredit": ["Sex"], "old_Adult_sub2000": ["sex", "race_0", "race_1", "race_2", "race_3", "race_4"]}


def load(name, *parts):
    return json.loads((GOLDEN / name / f"{'_'.join(parts)}.json").read_text())


def credit_history(matrix, names):
    """Codes of the credit history and the moves that the authors' code allows."""
    history = [names.index(f"Credit-History_{level}") for level in range(5)]
    allowed = np.ones((5, 5), dtype=bool)
    allowed[:3, 3:] = False
    allowed[3, 4] = False
    return matrix[:, history].argmax(axis=1)[:, None].astype(np.int32), ((0, allowed),)


@pytest.fixture(scope="module", params=list(STRATA))
def paper(request):
    """One data set through our code with the constraints that the authors' code really enforces."""
    name = request.param
    stored, print_ = np.load(GOLDEN / name / "matrix.npz"), load(name, "fingerprint")
    matrix, names = stored["X"], print_["features"]
    direction = np.zeros(len(names), dtype=np.int8)
    for column, (mutable, sign) in print_["constraints"].items():
        direction[names.index(column)] = sign if mutable else feasibility.IMMUTABLE
    codes, transitions = np.zeros((len(matrix), 0), np.int32), ()
    if "Credit-History_0" in names:
        codes, transitions = credit_history(matrix, names)
    strata = np.unique(matrix[:, [names.index(column) for column in STRATA[name]]], axis=0, return_inverse=True)[1]
    rules = feasibility.Rules(direction, transitions)
    distinct = feasibility.collapse(matrix, codes, strata.reshape(-1, 1).astype(np.int32), rules)
    settings = GraphSettings(epsilon=print_["epsilon"], **GraphSettings.paper)
    built = feasibility.build(distinct, rules, print_["epsilon"], settings)
    group = matrix[:, names.index(print_["group_identifier"])]
    return SimpleNamespace(name=name, stored=stored, matrix=matrix, distinct=distinct, built=built, group=group)


def row_pairs(distinct, graph):
    """Edges between rows: those of their nodes, and equal rows both ways; sorted."""
    rows = [np.flatnonzero(distinct.node == node) for node in range(graph.size)]
    source = np.repeat(np.arange(graph.size), np.diff(graph.indptr))
    pairs = [(i, j) for a, b in zip(source, graph.indices, strict=True) for i in rows[a] for j in rows[b]]
    pairs += [(i, j) for same in rows for i in same for j in same if i != j]
    return np.array(sorted(pairs), dtype=np.int32)


def test_edges_and_their_digest(paper):
    expected = load(paper.name, "graph")
    pairs = row_pairs(paper.distinct, paper.built.graph)
    assert len(paper.distinct.node) == expected["nodes"]
    assert len(pairs) == expected["edges"]
    assert hashlib.sha256(np.ascontiguousarray(pairs).tobytes()).hexdigest() == expected["edges_sha256"]
    assert not paper.built.capped


def test_edge_distances(paper):
    stored = np.load(GOLDEN / paper.name / "edges.npz")
    graph, node = paper.built.graph, paper.distinct.node
    source = np.repeat(np.arange(graph.size), np.diff(graph.indptr))
    ours = dict(zip(zip(source.tolist(), graph.indices.tolist(), strict=True), graph.distances, strict=True))
    for (i, j), distance in zip(stored["E"], stored["dist"], strict=True):
        assert distance == pytest.approx(ours.get((node[i], node[j]), 0.0), abs=1e-12)


def of_group(paper, value):
    """Induced graph of a group, with the holdout's factuals and candidates."""
    rows = np.flatnonzero(paper.group == value)
    nodes, first, local = np.unique(paper.distinct.node[rows], return_index=True, return_inverse=True)
    weight = np.bincount(local[np.isin(rows, paper.stored["FN"])], minlength=len(nodes))
    candidate = np.bincount(local[np.isin(rows, paper.stored["candidates"])], minlength=len(nodes)) > 0
    graph = algorithm.induced(paper.built.graph, nodes.astype(np.int64))
    reach = algorithm.reachable(graph, weight > 0, candidate)
    return SimpleNamespace(
        rows=rows, local=local, points=paper.matrix[rows[first]], weight=weight, graph=graph, reach=reach
    )


def test_components_per_group(paper):
    for value, expected in load(paper.name, "graph")["groups"].items():
        group = of_group(paper, float(value))
        weak, strong = algorithm.components(group.graph)
        assert len(group.rows) == expected["nodes"]
        assert (weak.max() + 1, strong.max() + 1) == (expected["wcc"], expected["scc"])
        assert sorted(np.bincount(weak[group.local]), reverse=True) == expected["wcc_sizes"]
        assert int(group.weight.sum()) == expected["FN"]


def test_reachable_candidates_and_cheapest(paper):
    candidates = np.zeros(len(paper.matrix), dtype=bool)
    candidates[paper.stored["candidates"]] = True
    for value, expected in load(paper.name, "reachability").items():
        group = of_group(paper, float(value))
        offers = recourse.price(group.reach, Vector(group.points), group.weight, np.zeros(0))
        cheapest = dict(zip(offers.factual, offers.cheapest, strict=True))
        copies = np.bincount(group.local, candidates[group.rows], minlength=group.graph.size)
        counts = {
            node: int(copies[part.candidates[reached]].sum())
            for part in group.reach.active
            for node, reached in zip(part.factuals, part.reach(), strict=True)
        }
        local = dict(zip(group.rows, group.local, strict=True))
        found = {row: counts.get(local[row], 0) for row in paper.stored["FN"] if row in local}
        assert {str(row): n for row, n in found.items() if n} == expected["reach_counts"]
        for row, cost in expected["min_dist"].items():
            assert cheapest[local[int(row)]] == pytest.approx(cost, abs=1e-4)


def test_greedy_coverage_and_choices(paper):
    table = load(paper.name, "coverage_kd")["table"]
    grid = np.unique([float(key.split("|")[0]) for key in table])
    most = max(int(key.split("|")[1]) for key in table)
    for value, reached in load(paper.name, "reachability").items():
        group = of_group(paper, float(value))
        offers = recourse.price(group.reach, Vector(group.points), group.weight, grid)
        chosen = recourse.greedy(offers, most)
        by_level = chosen.covered(offers.weight)
        for key, row in table.items():
            level, k = int(np.searchsorted(grid, float(key.split("|")[0]))), int(key.split("|")[1])
            picks = chosen.picks[level, :k]
            covered = by_level[level, k - 1]
            share = 100 * covered / reached["n_coverable"] if reached["n_coverable"] else 0.0
            assert share == pytest.approx(row[value]["coverage"], abs=1e-9), key
            local = dict(zip(group.rows, group.local, strict=True))
            assert picks[picks >= 0].tolist() == [local[row_] for row_ in row[value]["selected"]], key
