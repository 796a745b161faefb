"""``evenhand reproduce cec``: tables and remarks, what is joined for the nets, and one fold of German Credit."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from conftest import SHARED

from research import figures as research_figures
from research.cec import data, models
from research.cec.data import BASELINES
from research.cec.experiments import EXPERIMENTS, Experiments
from research.cec.models import Course
from research.figures import NOT_RUN, Cell, Figure, Verdict, compare, paper_spec
from research.reproduction import Asked, reproduce, summary
from schemas.errors import InfrastructureError, SpecError
from tasks.ingest.synthetic.algorithm.lending import SyntheticLending
from tasks.methods.cec.algorithm import mitigations
from tasks.methods.cec.algorithm.mitigations import Split
from tasks.methods.cec.algorithm.models import Bridge
from tasks.numerics.attributions import of_network
from tasks.numerics.networks.network import NetSettings, of_module
from tasks.numerics.networks.training import build

GERMAN = SHARED / EXPERIMENTS["german"].sources[0]

needs_german = pytest.mark.data(EXPERIMENTS["german"].sources[0])


def test_a_table_has_what_the_paper_prints_of_the_folds():
    table = {"source": "T", "quantities": ["f1", "cec"], "tolerances": {"cec": 0.1}, "repeats": 5}
    table |= {"rows": [["a", [1, 2]], ["b", [3, 4]]], "deviations": [[0.1, 0.2], [0.3, 0.4]]}
    said = {"table": [{"datasets": ["d"], **table}, {"datasets": ["other"]}]}
    found = [(f.cell.group, f.value, f.tolerance, f.spread.deviation) for f in research_figures.figures(said, "d")]
    assert found == [("a", 1.0, 0.0, 0.1), ("a", 2.0, 0.1, 0.2), ("b", 3.0, 0.0, 0.3), ("b", 4.0, 0.1, 0.4)]
    told = [Cell("f1", "a"), Cell("cec_floor", "a")]
    beside = [figure.cell for figure in research_figures.beside(research_figures.figures(said, "d"), told)]
    assert beside == [Cell("cec_floor", "a")]


@pytest.mark.parametrize("dataset", EXPERIMENTS)
def test_every_printed_deviation_gives_a_verdict_and_what_may_differ_has_a_reason(dataset):
    said = research_figures.read("cec")
    figures = list(research_figures.figures(said, dataset))
    table_2 = [figure for figure in figures if figure.source == "Table 2"]
    assert len(table_2) == 42
    assert all(figure.spread.is_known and figure.spread.repeats == 5 for figure in table_2)
    assert {figure.has_verdict for figure in table_2} == {dataset != "hmda"}
    remarks = research_figures.published_remarks(said, dataset)
    assert all(any(remark.fits(figure, NOT_RUN) for remark in remarks) for figure in table_2)
    told = {Cell(quantity, "told") for quantity in (*data.QUANTITIES, *data.UNPRINTED)}
    assert len(told) == sum(
        figure.value == research_figures.NOT_PRINTED for figure in research_figures.beside(figures, told)
    )
    assert {figure.cell.group for figure in figures} >= set(data.COLUMNS)
    assert set(BASELINES) == set(models.MITIGATION_OF)
    assert all(remark.verdict is Verdict.INFORMATION for remark in remarks)
    asked = [figure for figure in figures if figure.source == research_figures.ASKED]
    assert all(figure.at_most != figure.at_least for figure in asked)


def test_every_table_and_figure_of_the_paper_is_named_once_with_its_status():
    said = research_figures.read("cec")
    tables = {each["what"] for each in said["table"]}
    assert sorted(name for name in tables if name.startswith("Table")) == [f"Table {n}" for n in (1, 2, 3, 4)]
    figures = {each["what"]: each for each in said["figure"]}
    assert list(figures) == [f"Figure {n}" for n in range(1, 8)]
    assert all(("reason" in each) == (each["status"] == "nothing to reproduce") for each in figures.values())
    assert all(("drawn_by" in each) == (each["status"] == "drawn") for each in figures.values())


@pytest.fixture(scope="module")
def bridge():
    return Bridge(data.drawn(SyntheticLending(rows=300, financial=3, proxies=2, noise=1), seed=1))


@pytest.fixture(scope="module")
def fold(bridge):
    return next(mitigations.split(bridge.rows.population, 5, 0))


def nearest_by_loops(bridge, fold, row):
    """The training row of the other group and the same label that is nearest, by the training rows' scale."""
    people, financial = bridge.rows.population, bridge.rows.financial
    scale = financial[fold.train].std(axis=0)
    others = [
        i
        for i in fold.train
        if people.protected[i] != people.protected[row] and people.favourable[i] == people.favourable[row]
    ]
    return min(others, key=lambda i: float(np.sum(((financial[i] - financial[row]) / scale) ** 2)))


def test_matches_of_training_rows_are_those_of_plain_loops(bridge, fold):
    place = bridge.match(fold)
    for at in range(0, len(place), 7):
        assert fold.train[place[at]] == nearest_by_loops(bridge, fold, fold.train[at])


@pytest.mark.slow
def test_score_is_that_of_plain_loops(bridge, fold):
    net = build(fold.inputs.shape[1], NetSettings((8, 4)), np.random.default_rng(0)).eval()
    told, model, people = bridge.score(net, fold), of_network(of_module(net)), bridge.rows.population
    cec, flips = [], []
    for row in fold.test:
        match = nearest_by_loops(bridge, fold, row)
        cell = [
            i
            for i in fold.train
            if people.protected[i] == people.protected[row] and people.favourable[i] == people.favourable[row]
        ]
        both = fold.inputs[[row, match]]
        ig = model.attribute(both, np.tile(fold.inputs[cell].mean(axis=0), (2, 1)))
        one, other = ig / np.linalg.norm(ig, axis=1, keepdims=True)
        cec.append(float(np.linalg.norm(one - other) / 2))
        flips.append(len(set((model.logit(both) >= 0).tolist())) == 2)
    assert told["cec"] == pytest.approx(np.mean(cec), abs=1e-6)
    assert told["flip_percent"] == pytest.approx(100 * np.mean(flips))
    hidden = [apart > 0.3 and not flip for apart, flip in zip(cec, flips, strict=True)]
    assert told["regime_b_percent"] == pytest.approx(100 * np.mean(hidden))
    assert sum(told[f"regime_{name}_percent"] for name in "abcd") == pytest.approx(100)


@pytest.mark.long
def test_cells_are_means_over_folds_by_the_names_of_both_tables(bridge):
    told = models.outcomes(bridge.rows, models.variants(all_variants=False), Course(2))
    by_fold = [each.performance.f1 for each in told if each.variant.name == "pred"]
    spread = models.spreads(models.by_model(told))[Cell("f1", "unconstrained")]
    assert spread == (pytest.approx(np.std(by_fold, ddof=1)), 2)
    assert models.spreads(models.by_model(told[:2])) == {}
    assert [(outcome.fold, outcome.variant.name) for outcome in told] == [
        (0, "pred"),
        (0, "full"),
        (1, "pred"),
        (1, "full"),
    ]
    found = models.cells(models.by_model(told))
    mean = np.mean([told[1].consistency["cec"], told[3].consistency["cec"]])
    assert found[Cell("cec", "full")] == found[Cell("cec", "CEC model")] == pytest.approx(mean)
    collapsed = told[0].performance.collapsed + told[2].performance.collapsed
    assert found[Cell("collapsed_folds", "unconstrained")] == collapsed
    suffixed = models.cells(models.by_model(told, ", again"))
    assert Cell("cec", "CEC model, again") in suffixed
    assert Cell("cec", "CEC model") not in suffixed


def test_baselines_are_told_of_as_far_as_they_can_be(bridge):
    people, hits = bridge.rows.population, dict[str, list[float]]()
    for fold, _ in zip(mitigations.split(people, 5, 0), range(2), strict=False):
        fitted, held = fold.train, fold.test
        label, group = people.favourable, people.protected
        split = Split(fold.inputs[fitted], label[fitted], group[fitted], fold.inputs[held], group[held])
        for column in ("Hardt", "adversarial"):
            decided = models.MITIGATION_OF[column](split, models.SETTINGS).predicted
            right = (decided & label[held]).sum()
            hits.setdefault(column, []).append(2 * right / (decided.sum() + label[held].sum()))
    found = models.baselines_cells(models.mitigation_outcomes(bridge.rows, ("Hardt", "adversarial", "DIR"), Course(2)))
    for column, f1 in hits.items():
        assert found[Cell("f1", column)] == pytest.approx(np.mean(f1))
    assert 0 < found[Cell("cec", "adversarial")] < 1
    assert found[Cell("auc", "Hardt")] == models.NO_SCORES
    assert found[Cell("cec", "Hardt")] == found[Cell("regime_b_percent", "Hardt")] == models.NO_LOGIT
    assert Cell("cec_floor", "Hardt") not in found
    assert all(0 <= found[Cell(quantity, "DIR")] <= 100 for quantity in data.QUANTITIES)


def test_what_a_fold_lacks_has_no_mean(bridge):
    net = models.FoldOutcome(
        models.outcomes(bridge.rows, models.variants(all_variants=False), Course())[0].performance, {"cec": 0.2}
    )
    found = models.means([net, replace(net, consistency={})])
    assert found["f1"] == net.performance.f1
    assert "cec" not in found
    assert dict(models._figures([net, replace(net, consistency={})]))["cec"] == models.NO_LOGIT
    assert set(dict(models._figures([net, None])).values()) == {models.NO_MODEL}


def test_what_is_told_beside_is_counted_apart():
    figures = [Figure("Table 2", False, Cell("cec", "a"), 0.2, 0.1), *research_figures.beside([], [Cell("cec", "b")])]
    lines = compare("d", figures, {Cell("cec", "a"): 0.25, Cell("cec", "b"): 0.3}, [])
    assert "printed figures, 1: differs 0, agrees 1" in summary(lines)
    assert "shown with them, without a figure to compare with, 1" in summary(lines)
    assert "shown" not in summary(lines[:1])


@needs_german
def test_german_credit_has_integer_codes_and_gender_from_the_personal_status():
    rows, columns = data.of_spec(paper_spec("german-credit-gender.yaml", {"source.path": str(GERMAN)}))
    people = rows.population
    assert people.features.shape == (1000, 20)
    assert (int(people.favourable.sum()), int(people.protected.sum())) == (700, 310)
    assert (people.protected == (people.features[:, rows.features.index("Sex")] == 0)).all()
    assert set(rows.financial_names) == {
        "Credit-Amount", "Month-Duration", "Instalment-Rate", "Residence", "Age", "Existing-Credits", "Num-People",
    }  # fmt: skip
    hot = data.one_hot(rows, columns)
    purpose = hot.population.features[:, hot.feature_of_input == rows.features.index("Purpose")]
    assert (purpose.sum(axis=1) == 1).all()
    assert (purpose.argmax(axis=1) == people.features[:, rows.features.index("Purpose")]).all()
    assert (hot.financial == rows.financial).all()


@needs_german
@pytest.mark.long
def test_one_fold_of_german_credit_is_within_tolerance(monkeypatch):
    """Trained as an audit trains, with 9 nets of the 36 of Figure 6: what they do not tell is told to differ."""
    part = mitigations.lambda_grid((0.1, 0.5, 1.0))
    monkeypatch.setattr(mitigations, "lambda_grid", lambda: part)
    done = Experiments(folds=1, baseline=("DIR",), sparing=True).run("german", SHARED)
    counts = Counter(line.verdict for line in done.lines)
    assert counts[Verdict.AGREES] > 15
    differing = [line.figure.cell.group for line in done.lines if line.verdict is Verdict.DIFFERS]
    assert differing == ["lambda_EO 2", "lambda_EO 5", "lambda_EO 10"]
    by = {(line.figure.source, line.figure.cell): line for line in done.lines}
    for model in BASELINES[1:]:
        line = by["Table 2", Cell("cec", model)]
        assert (line.obtained, line.verdict, bool(line.why)) == (NOT_RUN, Verdict.INFORMATION, True)
    for model in ("unconstrained", "CEC model", "unconstrained, one-hot"):
        assert 0.2 < by[research_figures.BESIDE, Cell("cec_floor", model)].obtained < 0.3
        assert by[research_figures.BESIDE, Cell("collapsed_folds", model)].figure.value == research_figures.NOT_PRINTED
    assert by["Table 2", Cell("sp_gap", "DIR")].obtained < by["Table 2", Cell("sp_gap", "unconstrained")].obtained
    drawn = {each["drawn_by"] for each in research_figures.read("cec")["figure"] if each["status"] == "drawn"}
    assert drawn <= {drawing.name for drawing in done.drawings}


@needs_german
@pytest.mark.long
@pytest.mark.parametrize("dataset", EXPERIMENTS)
def test_the_quick_form_has_nothing_that_differs(dataset):
    lines = Experiments.in_a_minute().run(dataset, SHARED).lines
    assert [line for line in lines if line.verdict is Verdict.DIFFERS] == []


@needs_german
@pytest.mark.long
def test_the_remover_on_all_folds_of_german_credit_is_as_in_the_trial():
    """AUC, F1, SP and CEC of a trial within 0.02, regime B within 3 points."""
    rows, _ = data.of_spec(paper_spec("german-credit-gender.yaml", {"source.path": str(GERMAN)}))
    found = models.baselines_cells(models.mitigation_outcomes(rows, ("DIR",), Course(5)))
    trial = {"auc": 0.787, "f1": 0.834, "sp_gap": 0.042, "cec": 0.587}
    assert {name: found[Cell(name, "DIR")] for name in trial} == pytest.approx(trial, abs=0.02)
    assert found[Cell("regime_b_percent", "DIR")] == pytest.approx(66.5, abs=3)


def test_folds_and_files(tmp_path):
    with pytest.raises(SpecError, match="reproduce cst takes no --folds; reproduce cec does"):
        reproduce(Asked("cst", size={"folds": 2}), tmp_path)
    with pytest.raises(InfrastructureError, match=r"with data/german_credit/german\.data\.gz in it"):
        reproduce(Asked("cec", ["german"]), tmp_path)
