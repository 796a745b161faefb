"""``evenhand reproduce fgce``: FACE, AReS and GLOBE-CE on the data of the paper, without the detection before them."""

import pytest
from conftest import SHARED

from research.fgce import cells, systems
from research.fgce.experiments import EXPERIMENTS
from research.fgce.systems import Request
from research.figures import Cell
from tasks.in_memory import tables_through

COMPAS = SHARED / EXPERIMENTS["compas"].sources[0]

pytestmark = pytest.mark.data(EXPERIMENTS["compas"].sources[0])


@pytest.fixture(scope="module")
def asked():
    spec = EXPERIMENTS["compas"].read(SHARED)
    tables = tables_through(spec, "connect")
    return Request(cells.problem_of(tables, spec), tables, cells.fgce_settings(spec))


@pytest.fixture(scope="module")
def obtained(asked):
    return systems.obtained("compas", asked, systems.Systems(frozenset(systems.KNOWN), 200, 482))


def test_nobodys_own_optimum_is_dearer_and_full_coverage_takes_k0(obtained):
    cells, drawings = obtained
    for kind in ("vector", "path"):
        assert all(cells[Cell("mean_cost_over_face", "all", (kind, float(k)))] >= 1 for k in systems.KS)
        rows = [cells[Cell("rows_covered", "all", (kind, float(k)))] for k in systems.KS]
        assert rows == sorted(rows)
        assert rows[-2:] == [219, 220]
    assert [drawing.name for drawing in drawings] == ["fgce-and-face-by-k", "fgce-over-face-by-k"]


def test_table_six_is_whole_and_fgce_serves_nine_in_ten(obtained):
    cells, _ = obtained
    for name in (*systems.NAMES.values(), "FGCE"):
        at = {cell.at for cell in cells if cell.quantity == "feasible_share" and cell.group == name}
        assert at == {(e, r) for e in ("0.3", "none") for r in ("nothing", "age", "prc", "every constraint")}
    assert cells[Cell("feasible_share", "FGCE", ("0.3", "nothing"))] == pytest.approx(0.9, abs=0.02)


def test_what_is_possible_is_valid_and_more_of_it_without_rules(obtained):
    cells, _ = obtained
    for name in systems.NAMES.values():
        valid = cells[Cell("valid_share", name)]
        for epsilon in ("0.3", "none"):
            under, free = (cells[Cell("feasible_share", name, (epsilon, r))] for r in ("nothing", "every constraint"))
            assert under <= free <= valid
        assert cells[Cell("feasible_share", name, ("none", "every constraint"))] == valid
    assert cells[Cell("valid_share", "GLOBE-CE")] >= 0.99


def test_connectivity_at_the_papers_epsilon_is_that_of_its_table(asked):
    shown = cells.connected(asked.problem, asked.tables, asked.settings, asked.epsilon)
    assert [shown.cells[Cell("components_by_epsilon", group, (0.3,))] for group in ("Female", "Male")] == [19, 37]
    assert len(shown.drawings) == 4
