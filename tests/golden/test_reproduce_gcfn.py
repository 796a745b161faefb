"""``evenhand reproduce gcfn``: tables and remarks, what is told of generators and predictors, and the COMPAS score."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from conftest import SHARED

from research import figures as research_figures
from research.figures import Cell, Figure, Verdict, compare, paper_spec
from research.gcfn import rivals, truth
from research.gcfn.experiments import EXPERIMENTS, FORMS, LAW_SCHOOL, Experiments
from research.gcfn.rivals import FROM, TO
from research.gcfn.truth import DEFAULT, FAIR, MEAN, PAPER, QUANTILES, SCORE, WHOLE_FILE, Summary
from research.reproduction import Asked, as_json, reproduce, summary
from schemas.errors import InfrastructureError, SpecError
from tasks.counterfactuals.algorithm.gan.networks import GanSettings
from tasks.ingest.synthetic.algorithm.lending import Synthetic, synthetic
from tasks.methods.gcfn.algorithm.predictors import PredictorSettings, Scales, train

COMPAS, STUDENTS = EXPERIMENTS["compas"].sources[0], LAW_SCHOOL.sources[0]
SMALL = GanSettings(networks=2, epochs=3, hidden=8, device="cpu")

needs_compas, needs_students = pytest.mark.data(COMPAS), pytest.mark.data(STUDENTS)


def test_of_an_error_less_agrees_and_more_differs():
    cell = Cell("mse", "g")
    figure = Figure("Table 3", False, cell, 0.1, 0.0, at_most=True)
    verdicts = {ours: compare("d", [figure], {cell: ours}, [])[0].verdict for ours in (0.0, 0.1, 0.11, float("nan"))}
    assert list(verdicts.values()) == [Verdict.AGREES, Verdict.AGREES, Verdict.DIFFERS, Verdict.DIFFERS]
    assert compare("d", [replace(figure, at_most=False)], {cell: 0.0}, [])[0].verdict is Verdict.DIFFERS
    assert as_json(compare("d", [figure], {cell: 0.0}, []))["lines"][0]["at_most"]


@pytest.fixture(scope="module")
def runs():
    return list(truth.runs(lambda rng: synthetic(Synthetic(rows=1_500, noise=0.5), rng), SMALL, 2))


@pytest.fixture(scope="module")
def compared(runs):
    return truth.compared(runs[0])


@pytest.mark.long
def test_every_figure_is_judged_or_has_a_reason(runs, compared):
    said = research_figures.read("gcfn")
    told = [*truth.cells(runs), *rivals.utilities_cells([compared, compared])]
    for dataset in EXPERIMENTS:
        figures = list(research_figures.figures(said, dataset))
        for figure in [*figures, *research_figures.beside(figures, () if dataset in ("compas", "adult") else told)]:
            fits = [remark for remark in research_figures.published_remarks(said, dataset) if remark.fits(figure, 0.5)]
            is_bound = figure.at_most or figure.source in ("Figure 5", "whole file", research_figures.ASKED)
            assert bool(fits) != bool(is_bound) or figure.source == research_figures.ASKED, figure
            assert {remark.verdict for remark in fits} <= {Verdict.INFORMATION}


def test_table_3_has_the_limits_of_the_paper():
    said = research_figures.read("gcfn")
    for dataset, limit in {"synthetic": 0.14, "law-sigmoid": 0.05, "law-sin": 0.08}.items():
        found = {
            f.cell.group: f.value
            for f in research_figures.figures(said, dataset)
            if f.source == "Table 3" and f.at_most
        }
        assert found == dict.fromkeys((PAPER, DEFAULT, QUANTILES), limit)


def test_runs_hold_a_fifth_out_and_draw_anew(runs):
    for run in runs:
        fitted, held = run.train.covariates[:, 0], run.test.covariates[:, 0]
        assert (len(fitted), len(held), len(set(fitted) & set(held))) == (1_200, 300, 0)
    assert not set(runs[0].train.covariates[:, 0]) & set(runs[1].train.covariates[:, 0])
    assert list(runs[0].generators) == [PAPER, DEFAULT, QUANTILES]
    for run in runs:
        paper, default = (run.generators[name].imagine(run.test.mediation()) for name in (PAPER, DEFAULT))
        assert len(paper) == len(default) == 2
        assert (paper != default).any()


def test_cells_of_table_3_are_means_over_runs_and_networks(runs):
    found, rows = truth.cells(runs), [run.test for run in runs]
    errors, factual, by_mean = [], [], []
    for run, test in zip(runs, rows, strict=True):
        imagined, other = run.generators[DEFAULT].imagine(test.mediation()), 1 - test.category
        apart = np.mean([(test.potential[a, i, 0] - test.mediators[i, 0]) ** 2 for i, a in enumerate(other)])
        for network in imagined:
            pairs = [(network[a, i, 0], test.potential[a, i, 0]) for i, a in enumerate(other)]
            errors.append(np.mean([(made - true) ** 2 for made, true in pairs]) / apart)
            factual.append(np.mean([(network[a, i, 0] - test.mediators[i, 0]) ** 2 for i, a in enumerate(other)]))
        by_mean.append(np.mean([(test.potential[a, i, 0] - test.mean[a, i, 0]) ** 2 for i, a in enumerate(other)]))
    assert found[Cell(truth.ERROR, DEFAULT)] == pytest.approx(np.mean(errors))
    assert found[Cell(f"{truth.ERROR}_worst_network", DEFAULT)] == pytest.approx(max(errors))
    assert found[Cell("mse_factual_generated", DEFAULT)] == pytest.approx(np.mean(factual))  # the effect is 1
    assert found[Cell(truth.ERROR, MEAN)] == pytest.approx(np.mean(by_mean))
    assert found[Cell("slope_on_true_noise", QUANTILES)] == pytest.approx(1, abs=0.1)
    for name in (PAPER, DEFAULT):
        assert found[Cell("slope_on_true_noise_worst_network", name)] < found[Cell("slope_on_true_noise", name)]


def test_models_are_compared_by_truth_and_by_generators(runs, compared):
    assert list(compared) == [f"GCFN, lambda {value}" for value in ("0", "0.1", "0.5", "1", "1.5", "2")]
    run = runs[0]
    fitted, held = run.train.mediation(), run.test.mediation()
    imagined, scales = run.generators[DEFAULT].imagine, Scales.of(fitted)
    given = scales.applicants(fitted, imagined(fitted), run.train.favourable)
    model = train(given, replace(PredictorSettings(device="cpu"), fairness=0.5))
    score = model.scores(scales.applicants(held, imagined(held), run.test.favourable))
    hits = [(one >= 0.5) == label for one, label in zip(score, run.test.favourable, strict=True)]
    told = compared[TO]
    assert told.accuracy == pytest.approx(np.mean(hits))
    moved = np.where(held.category == 0, run.test.potential[1, :, 0], run.test.potential[0, :, 0])
    others = replace(held, mediators=replace(held.mediators, values=moved[:, None]))
    elsewhere = model.scores(scales.applicants(others, imagined(held), run.test.favourable))
    assert told.cf_true == pytest.approx(np.mean((elsewhere - score) ** 2), rel=1e-5)
    assert told.cf_true < compared[FROM].cf_true


def test_systems_of_other_papers_are_measured_on_the_same_rows(runs):
    run = runs[0].at_most(600)
    assert len(run.train.category) == 600
    told = rivals.compared(run, ("cfua", "cfan")).summaries
    assert list(told) == ["CFUA", "CFAN"]
    assert (told["CFUA"].cf_true, told["CFUA"].cf_worst_generated) == (0, 0)
    assert 0 < told["CFAN"].cf_true < 0.001  # the noise of a regression, which is not quite that of the equation
    assert told["CFAN"].accuracy != told["CFUA"].accuracy


def swept(cf=(0.6, 0.5, 0.4, 0.3, 0.2, 0.1), accuracy=0.8):
    """The models of a sweep with such CF."""
    return {variant.name: Summary(accuracy - 0.001 * at, cf[at], 0.0) for at, variant in enumerate(truth.SWEEP)}


def test_directions_are_read_off_the_means():
    def of(models, runs=3):
        found = rivals.directions(models, runs).items()
        return {cell.quantity: value for cell, value in found if cell.group == FAIR}

    assert of(swept()) == {
        "accuracy_from_lambda_0_to_0.5": "falls",
        "cf_true_from_lambda_0_to_0.5": "falls",
        "mean_utility_from_lambda_0_to_0.5": "rises",
        "cf_true_along_lambda": "falls at every step",
    }
    other = of(swept(cf=(0.1, 0.1, 0.1, 0.1, 0.2, 0.1)))
    assert other["cf_true_from_lambda_0_to_0.5"] == "does not fall"
    assert other["mean_utility_from_lambda_0_to_0.5"] == "does not rise"
    assert other["cf_true_along_lambda"] == "does not fall at every step"
    assert of(swept(), runs=2)["mean_utility_from_lambda_0_to_0.5"] == "not run: fewer than 3 runs"


def test_utilities_by_hand():
    models = [{**swept(accuracy=0.8 + 0.01 * at), "CFUA": Summary(0.7, 0.0, 0.0)} for at in range(3)]
    found = rivals.utilities_cells(models)
    to = models[1][TO]  # the mean over the runs
    assert found[Cell("utility_gamma_0.5", TO)] == pytest.approx(to.accuracy - 0.5 * 0.4)
    ten = np.mean([to.accuracy - gamma * 0.4 for gamma in rivals.GAMMAS])
    assert found[Cell("mean_utility", TO)] == pytest.approx(ten)
    assert found[Cell("mean_utility_sd", TO)] == pytest.approx(0.01)
    assert found[Cell("largest_mean_utility", "all models")] == "GCFN, lambda 2"
    assert found[Cell("mean_utility_above", "GCFN over CFUA")] == pytest.approx(ten - 0.7)
    below = {
        name: found[Cell("mean_utility_below_by_more_than_one_sd", f"GCFN under {name}")] for name in ("CFUA", "CFAN")
    }
    assert below == {"CFUA": "yes", "CFAN": "not run"}
    by_gamma, by_lambda = rivals.drawings(models, ("Figure 10", "Figure 11"))
    assert [curve.name for curve in by_gamma.curves] == [FROM, TO, "CFUA"]
    assert by_gamma.curves[1].y[4] == pytest.approx(to.accuracy - 0.5 * 0.4)
    assert by_lambda.curves[0].y[2] == pytest.approx(ten)
    assert by_lambda.curves[1].y[2] == pytest.approx(ten - 0.01)


def test_a_cell_that_is_not_run_has_no_verdict():
    figure = Figure(research_figures.ASKED, False, Cell("mean_utility", TO), 0.8, 0.005)
    line = compare("d", [figure], {figure.cell: rivals.TOO_FEW}, [])[0]
    assert (line.verdict, line.obtained) == (Verdict.INFORMATION, "not run: fewer than 3 runs")
    assert compare("d", [figure], {figure.cell: "nothing"}, [])[0].verdict is Verdict.DIFFERS


def test_law_students_are_trained_in_as_many_steps():
    assert Experiments()._size().epochs == 300
    assert Experiments()._size(10_000 / 101_570).epochs == 30
    assert Experiments(networks=2, epochs=5)._size(0.1) == GanSettings(networks=2, epochs=1, device="cpu")
    assert set(Experiments.experiments) == {"synthetic", "adult", "compas", *FORMS}


def test_small_counts_of_the_differently_treated_are_withheld():
    def shown(differing, of=(20, 20, 20)):
        given = np.zeros(sum(of), dtype=bool)
        fair = np.concatenate([np.arange(n) < count for n, count in zip(of, differing, strict=True)])
        found = rivals._differently("s", np.repeat(np.arange(1.0, 1 + len(of)), of), given, fair)
        return {cell.group: value for cell, value in found}

    assert shown((7, 10, 5)) == {"s 1": "7 of 20", "s 2": "10 of 20", "s 3": "5 of 20"}
    # two of the third are few, and the total less the others would tell them
    assert shown((7, 10, 2)) == {"s 1": "withheld", "s 2": "10 of 20", "s 3": "withheld"}
    assert shown((10, 12, 18)) == {"s 1": "withheld", "s 2": "12 of 20", "s 3": "withheld"}
    assert shown((10, 0), of=(20, 3)) == {"s 1": "withheld", "s 2": "withheld"}


@needs_compas
def test_the_score_by_hand_and_who_is_treated_differently():
    spec = paper_spec("compas-race.yaml", {"source.path": str(SHARED / COMPAS)})
    defendants = truth.defendants(spec)
    assert (len(defendants.score), int(defendants.black.sum())) == (5_278, 3_175)
    assert defendants.mediation.covariates.names == ("age", "sex")
    assert defendants.mediation.mediators.names == ("priors_count", "c_charge_degree")
    found, _ = rivals.recidivism_cells(defendants, replace(SMALL, epochs=1), 2)
    offended, high = defendants.offended[defendants.black], defendants.score[defendants.black] >= 5
    true, false = int((high & offended).sum()), int((high & ~offended).sum())
    by_hand = {
        "accuracy": (true + int((~high & ~offended).sum())) / 3_175,
        "ppv": true / (true + false),
        "fpr": false / int((~offended).sum()),
        "fnr": int((~high & offended).sum()) / int(offended.sum()),
    }
    assert {name: found[Cell(name, SCORE + WHOLE_FILE)] for name in by_hand} == pytest.approx(by_hand)
    assert found[Cell("accuracy", SCORE)] == pytest.approx(by_hand["accuracy"], abs=0.05)
    assert 0.6 < found[Cell("accuracy", FAIR)] < 0.75
    shown = Counter()
    for cell, value in found.items():
        if cell.quantity == "treated_differently" and value != rivals.WITHHELD:
            shown[cell.group.rsplit(" ", 1)[0]] += int(value.split()[-1])
    assert 0.8 * 0.4 * 3_175 < shown["Black, priors from"] < 1.1 * 0.4 * 3_175


@needs_compas
def test_the_four_figures_of_the_score_agree_and_of_one_part_the_papers_do_not():
    lines = Experiments(networks=1, epochs=1, seeds=1).run("compas", SHARED).lines
    by = {(line.figure.source, line.figure.cell.group): line.verdict for line in lines}
    assert by[("whole file", SCORE + WHOLE_FILE)] is Verdict.AGREES
    assert by[("Table 2", SCORE)] is by[("Table 2", FAIR)] is Verdict.APART
    assert "against the reference, 4: differs 0, agrees 4" in summary(lines)
    assert Counter(line.verdict for line in lines)[Verdict.DIFFERS] == 0


@needs_students
def test_students_are_zeros_and_ones():
    spec = paper_spec("law-school-covariates.yaml", {"source.path": str(SHARED / STUDENTS)})
    students = truth.students(spec)
    found = (len(students.gender), int(students.resident.sum()), int(students.race.sum()))
    assert found == (21_790, 4_302, 18_284)
    assert int(students.gender.sum()) == 12_253


def test_sizes_and_files(tmp_path):
    with pytest.raises(SpecError, match="reproduce cec takes no --networks; reproduce gcfn does"):
        reproduce(Asked("cec", size={"networks": 2}), tmp_path)
    with pytest.raises(SpecError, match="reproduce gcfn takes no --folds; reproduce cec does"):
        reproduce(Asked("gcfn", size={"folds": 2}), tmp_path)
    with pytest.raises(InfrastructureError, match=r"with data/law_school/lsac_law_data_21791\.csv\.gz in it"):
        reproduce(Asked("gcfn", ["law-sin"]), tmp_path)
