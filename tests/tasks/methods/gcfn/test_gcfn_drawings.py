"""What is told and drawn of Adult and of who is treated differently, by hand, and that every cell has a reason."""

import numpy as np
import pytest

from research import figures as research_figures
from research.figures import Cell
from research.gcfn import rivals
from research.gcfn.experiments import Experiments
from research.gcfn.rivals import DENSITIES, TRADED, Imagined, IncomesScored, Rivals
from research.gcfn.truth import FAIR, SWEEP, TITLES, Summary


def scored(apart, accuracy=0.8, cf=0.1):
    """Ten women with a score of 0.1, and ten men of whom this many have 0.9."""
    women = np.full(10, 0.1)
    return IncomesScored(accuracy, cf, women, np.where(np.arange(10) < apart, 0.9, 0.1))


def along(areas):
    """Weights with these areas, CF falling."""
    weights = sorted({*DENSITIES, *TRADED})
    found = dict(zip(weights, (scored(apart, cf=0.2 - 0.01 * at) for at, apart in enumerate(areas)), strict=True))
    return {cell.quantity: value for cell, value in rivals.incomes_cells(found).items() if cell.group == FAIR}


def test_a_density_integrates_to_one_and_the_area_is_that_between_two():
    found = rivals.density(np.array([0.0, 0.01, 0.5, 1.0]))
    assert (found.sum() / rivals.BINS, found[0], found[-1]) == (pytest.approx(1), rivals.BINS / 2, rivals.BINS / 4)
    assert scored(0).area == 0
    assert scored(10).area == pytest.approx(2)
    assert scored(5).area == pytest.approx(1)


def test_directions_of_adult():
    assert along([10, 9, 8, 7, 6, 5, 4, 3, 2, 1]) == {
        "accuracy_from_lambda_0_to_1": "falls or stays",
        "cf_worst_generated_from_lambda_0_to_1": "falls",
        "area_between_densities_along_lambda": "falls at every step",
        "area_between_densities_from_lambda_0_to_1000": "falls",
    }
    assert (
        along([10, 9, 8, 7, 6, 5, 4, 2, 3, 1])["area_between_densities_along_lambda"] == "does not fall at every step"
    )
    assert along([5, 9, 8, 7, 6, 5, 4, 3, 2, 5])["area_between_densities_from_lambda_0_to_1000"] == "does not fall"
    better = {weight: scored(1, accuracy=0.8 + 0.01 * weight) for weight in (*DENSITIES, *TRADED)}
    found = rivals.incomes_cells(better)
    assert found[Cell("accuracy_from_lambda_0_to_1", FAIR)] == "rises"
    assert found[Cell("cf_worst_generated_from_lambda_0_to_1", FAIR)] == "does not fall"
    assert found[Cell("mean_score_difference", f"{FAIR}, lambda 0")] == pytest.approx(0.08)


def test_adult_is_drawn_by_sex_and_weight():
    densities, traded = rivals.incomes_drawings({weight: scored(3) for weight in (*DENSITIES, *TRADED)})
    assert [curve.name for curve in densities.curves[:2]] == ["women, lambda 0", "men, lambda 0"]
    assert len(densities.curves) == 2 * len(DENSITIES)
    assert densities.curves[1].y[22] == pytest.approx(0.3 * rivals.BINS)
    assert [curve.y for curve in traded.curves] == [(0.8,) * 5, (0.1,) * 5]


def test_counts_that_are_withheld_are_not_drawn():
    found = {
        Cell("treated_differently", "Black, score 1"): "7 of 20",
        Cell("treated_differently", "Black, score 2"): "withheld",
        Cell("treated_differently", "Black, priors from 0"): "3 of 40",
        Cell("treated_differently", "white, score 1"): "1 of 2",
        Cell("treated_differently", "white, priors from 0"): "1 of 2",
        Cell("accuracy", "GCFN"): 0.7,
    }
    drawn = {each.name: each for each in rivals.recidivism_drawings(found)}
    counts, everybody = drawn["treated-differently-black-score"].curves
    assert (counts.x, counts.y[0], everybody.y[0]) == ((1.0, 2.0), 7.0, 20.0)
    assert np.isnan([counts.y[1], everybody.y[1]]).all()
    assert drawn["treated-differently-black-priors"].curves[0].y == (3.0,)


def test_every_cell_beside_the_figures_has_a_reason():
    said, imagined = research_figures.read("gcfn"), Imagined(0.01, 1.0, 0.5, 0.001)
    names = [variant.name for variant in SWEEP] + [rivals.hscic_title(weight) for weight in rivals.HSCIC_SWEEP]
    told = {name: Summary(0.8 - 0.01 * at, 0.2 - 0.01 * at, 0.0) for at, name in enumerate([*names, *TITLES.values()])}
    of_runs = {**rivals.utilities_cells([told] * 3), **rivals.cells([Rivals({}, {"mCEVAE": imagined})])}
    adult = rivals.incomes_cells({weight: scored(1) for weight in (*DENSITIES, *TRADED)})
    for dataset, found in {"synthetic": of_runs, "law-sin": of_runs, "law-sigmoid": of_runs, "adult": adult}.items():
        figures, remarks = (
            list(research_figures.figures(said, dataset)),
            research_figures.published_remarks(said, dataset),
        )
        beside = [
            figure for figure in research_figures.beside(figures, found) if figure.source == research_figures.BESIDE
        ]
        assert [f.cell for f in beside if not any(remark.fits(f, 0.5) for remark in remarks)] == []
        assert {figure.cell for figure in figures if figure.source == research_figures.ASKED} - set(found) <= {
            Cell("elbo_change_over_last_ten_epochs", name) for name in ("DCEVAE", "ADVAE")
        }


def test_every_drawing_is_named_by_a_figure_and_each_cannot_has_a_reason():
    figures = research_figures.read("gcfn")["figure"]
    drawn = {
        (name, dataset) for each in figures for name in [each.get("drawn_by")] for dataset in each["datasets"] if name
    }
    told = {name: Summary(0.8, 0.1, 0.0) for name in [variant.name for variant in SWEEP]}
    ours = {(each.name, "synthetic") for each in rivals.drawings([told] * 2, ("Figure 10", "Figure 11"))}
    ours |= {(each.name, "adult") for each in rivals.incomes_drawings({w: scored(3) for w in (*DENSITIES, *TRADED)})}
    ours |= {
        (f"treated-differently-{race}-{by}", "compas") for race in ("black", "white") for by in ("score", "priors")
    }
    assert {each for each in drawn if not each[1].startswith("law")} == ours
    assert all(each["reason"] for each in figures if each["status"] == "cannot")
    assert {dataset for each in figures for dataset in each["datasets"]} == set(Experiments.experiments)
