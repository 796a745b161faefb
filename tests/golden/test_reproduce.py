"""What ``evenhand reproduce`` compares with: verdicts, the graph over rows, and the layout of the reference outputs."""

import hashlib
import math
from itertools import product

import networkx as nx
import numpy as np
import pytest
from conftest import SHARED
from hypothesis import given
from hypothesis import strategies as st

from research import figures as research_figures
from research.fgce import cells
from research.fgce.experiments import EXPERIMENTS
from research.figures import ALL, Cell, Figure, Remark, Verdict, compare
from schemas.tables.counterfactuals import FEASIBILITY_EDGES, FEASIBILITY_NODES

NAN = float("nan")
CELL = Cell("kauc", "male", (2.0,))


def said(value, *, reference, cell=CELL):
    return Figure("graph.json" if reference else "Table IX", reference, cell, value, 0.01)


def verdicts(figures, ours, remarks=()):
    return [line.verdict for line in compare("german", figures, {} if ours is None else {CELL: ours}, remarks)]


def test_a_remark_with_bounds_explains_nothing_beyond_them():
    paper = said(0.5, reference=False)
    bounded = remark(between=(0.6, 0.8))
    assert verdicts([paper], 0.7, [bounded]) == [Verdict.APART]
    assert verdicts([paper], 0.9, [bounded]) == [Verdict.DIFFERS]


def remark(**more):
    fields = {"group": "male", "at": None, "ours": None, "verdict": Verdict.INFORMATION, "why": "known"}
    return Remark(frozenset(["Table IX"]), frozenset(["kauc"]), **{**fields, **more})


def test_a_figure_agrees_within_its_tolerance_and_differs_beyond():
    assert verdicts([said(0.5, reference=True)], 0.509) == [Verdict.AGREES]
    assert verdicts([said(0.5, reference=True)], 0.511) == [Verdict.DIFFERS]
    assert verdicts([said("ab", reference=True)], "ab") == [Verdict.AGREES]
    assert verdicts([said("ab", reference=True)], "ac") == [Verdict.DIFFERS]


def test_undefined_agrees_with_undefined_alone():
    assert verdicts([said(NAN, reference=True)], NAN) == [Verdict.AGREES]
    assert verdicts([said(NAN, reference=True)], 0.0) == [Verdict.DIFFERS]
    assert verdicts([said(0.0, reference=True)], NAN) == [Verdict.DIFFERS]


def test_a_cell_that_was_not_filled_differs_whatever_is_remarked():
    assert verdicts([said(0.5, reference=False)], None, [remark()]) == [Verdict.DIFFERS]


def test_the_paper_prints_otherwise_only_where_the_reference_has_ours():
    paper, theirs = said(0.5, reference=False), said(0.7, reference=True)
    assert verdicts([paper, theirs], 0.7) == [Verdict.OTHERWISE, Verdict.AGREES]
    assert verdicts([paper, theirs], 0.9) == [Verdict.DIFFERS, Verdict.DIFFERS]
    assert verdicts([paper], 0.7) == [Verdict.DIFFERS]


def test_a_remark_holds_for_its_figure_and_its_value():
    paper = said(0.5, reference=False)
    assert verdicts([paper], 0.7, [remark()]) == [Verdict.APART]
    assert verdicts([paper], 0.7, [remark(ours=0.7)]) == [Verdict.APART]
    assert verdicts([paper], 0.8, [remark(ours=0.7)]) == [Verdict.DIFFERS]
    assert verdicts([paper], 0.7, [remark(at=(3.0,))]) == [Verdict.DIFFERS]
    assert verdicts([paper], 0.7, [remark(group="female")]) == [Verdict.DIFFERS]
    assert verdicts([said(0.5, reference=True)], 0.7, [remark()]) == [Verdict.DIFFERS]


@st.composite
def graphs(draw):
    """Nodes of rows, and edges between nodes; a group is a set of nodes."""
    size = draw(st.integers(2, 5))
    extra = draw(st.lists(st.integers(0, size - 1), max_size=6))
    node = draw(st.permutations([*range(size), *extra]))
    pairs = draw(st.sets(st.sampled_from([(a, b) for a, b in product(range(size), repeat=2) if a != b])))
    return np.array(node, dtype=np.int32), sorted(pairs)


@given(graphs())
def test_the_graph_over_rows_is_what_a_loop_makes_of_it(graph):
    node, pairs = graph
    group = (node % 2).astype(np.int32)
    nodes = FEASIBILITY_NODES.build(row_id=[str(i) for i in range(len(node))], node=node, draw=[0] * len(node))
    source, destination = zip(*pairs, strict=True) if pairs else ((), ())
    edges = FEASIBILITY_EDGES.build(source=source, destination=destination, distance=[0.0] * len(pairs))
    found = cells.cells(nodes, edges, group, ["even", "odd"])

    rows = range(len(node))
    plain = nx.DiGraph()
    plain.add_nodes_from(rows)
    plain.add_edges_from(
        (i, j) for i, j in product(rows, rows) if i != j and (node[i] == node[j] or (node[i], node[j]) in pairs)
    )
    content = np.array(sorted(plain.edges), dtype=np.int32).tobytes()
    assert found[Cell("edge_digest", ALL)] == hashlib.sha256(content).hexdigest()
    for name, members in ((ALL, rows), ("even", [i for i in rows if group[i] == 0])):
        part = plain.subgraph(members)
        assert found[Cell("nodes", name)] == len(part)
        assert found[Cell("edges", name)] == part.number_of_edges()
        assert found[Cell("weak_components", name)] == nx.number_weakly_connected_components(part)
        assert found[Cell("strong_components", name)] == nx.number_strongly_connected_components(part)


def test_published_tables_are_whole():
    """As many rows as points, as many figures as quantities; and 1 for what is never covered is no saturation point."""
    tables = research_figures.read("fgce")
    for name, experiment in EXPERIMENTS.items():
        figures = list(cells.figures(tables, name, experiment.groups))
        assert len(figures) == len({(f.source, f.cell) for f in figures}) == 170
        figures += cells.of_systems(tables, name)
        assert len(figures) == len({(f.source, f.cell) for f in figures})
        for remarked in research_figures.published_remarks(tables, name, experiment.groups):
            if remarked.sources != {research_figures.BESIDE}:
                known = remarked.between[0] if remarked.between else remarked.ours
                assert any(remarked.fits(f, f.value if known is None else float(known)) for f in figures), remarked
    point = Cell("dauc_saturation", "male", (0.1,))
    (figure,) = (f for f in cells.figures(tables, "german", ("female", "male")) if f.cell == point)
    assert math.isnan(figure.value)


@pytest.mark.data("golden/fgce")
def test_reference_outputs_are_read_with_their_conventions():
    by_cell = {f.cell: f for f in EXPERIMENTS["german"].reference(SHARED).figures()}
    assert by_cell[Cell("k0", "male")].value == 3
    assert by_cell[Cell("coverage", "male", (2.1, 2.0))].value == pytest.approx(4 / 9)
    assert math.isnan(by_cell[Cell("dauc_saturation", "male", (0.5,))].value)
    assert math.isnan(by_cell[Cell("least_cost", "male", (1.0, 2.0))].value)
    assert by_cell[Cell("smallest_cost", "male", (1.0,))].value == pytest.approx(2.4909, abs=1e-4)
    assert by_cell[Cell("edges", ALL)].tolerance == 0
