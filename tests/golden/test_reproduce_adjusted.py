"""``evenhand reproduce adjusted``: textbooks' figures and golden values of the ladder, to the printed digit."""

import sys
from collections import Counter
from importlib.metadata import distributions
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from conftest import SHARED
from numpy.testing import assert_allclose

from research import figures as research_figures
from research.adjusted import textbooks
from research.adjusted.experiments import EXPERIMENTS, NO_FILE, Experiments
from research.adjusted.textbooks import average_change, average_derivative, fit_binary
from research.figures import Verdict

COUNTS = {"loanapp": 37, "hmda": 41, "boston": 71, "texas": 25}
"""Figures of each data set."""
AUTHORS = "pysensemakr"
"""The library that has the file of Darfur."""


def with_files(dataset: str):
    """The data set as a parameter, marked with the files that it needs."""
    files = [str(file) for file in EXPERIMENTS[dataset].files(Path())]
    return pytest.param(dataset, marks=[pytest.mark.data(*files)] if files else [])


@pytest.mark.parametrize("dataset", [with_files(dataset) for dataset in COUNTS])
def test_every_figure_agrees(dataset):
    lines = Experiments().run(dataset, SHARED).lines
    assert [(line.figure.cell, line.obtained) for line in lines if line.verdict is not Verdict.AGREES] == []
    assert len(lines) == COUNTS[dataset]


def test_files_are_those_that_are_needed():
    assert tuple(EXPERIMENTS) == ("loanapp", "hmda", "darfur", "boston", "texas")
    needed = {name: [*experiment.files(Path("d"))] for name, experiment in EXPERIMENTS.items()}
    assert {name for name, files in needed.items() if files} == {"hmda", "texas"}
    assert all(file.is_relative_to("d") for files in needed.values() for file in files)


@pytest.mark.skipif(
    not [*distributions(name=AUTHORS)], reason="the library of the authors, of requirements-dev.lock, is not installed"
)
def test_villages_of_the_authors_package_agree(tmp_path):
    lines = Experiments().run("darfur", tmp_path).lines
    assert [(line.figure.cell, line.obtained) for line in lines if line.verdict is not Verdict.AGREES] == []
    assert len([line for line in lines if line.figure.source == "Cinelli and Hazlett"]) == 8


def test_villages_are_not_judged_without_their_file(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sensemakr", None)  # as if it were not installed
    lines = Experiments().run("darfur", tmp_path).lines
    assert Counter((line.verdict, line.why, line.obtained) for line in lines) == {
        (Verdict.INFORMATION, NO_FILE, None): len(lines)
    }
    assert len(lines) == 12


@pytest.mark.parametrize("dataset", EXPERIMENTS)
def test_every_figure_has_a_tolerance_or_is_a_count(dataset):
    figures = [*research_figures.figures(research_figures.read("adjusted"), dataset)]
    exact = {figure.cell.quantity for figure in figures if figure.tolerance == 0 and not figure.at_most}
    assert exact <= {"rows"}


@pytest.mark.parametrize(("link", "model"), [("logit", sm.Logit), ("probit", sm.Probit)])
def test_effects_of_logit_and_probit_are_those_of_statsmodels(link, model):
    sample = textbooks.loanapp().complete(["white", "obrat", "chist"])
    y, x = sample.column("approve"), sample.design(["white", "obrat", "chist"])
    ours, theirs = fit_binary(y, x, link), model(y, x).fit(disp=0, tol=1e-12)
    assert_allclose(ours.coefficients, theirs.params, rtol=1e-7)
    assert_allclose(ours.classical, theirs.cov_params(), rtol=1e-6)
    assert_allclose(ours.robust, model(y, x).fit(disp=0, tol=1e-12, cov_type="HC0").cov_params(), rtol=1e-6)
    change, derivative = theirs.get_margeff(dummy=True), theirs.get_margeff()
    assert_allclose(average_change(ours, x, 1), (change.margeff[0], change.margeff_se[0]), rtol=1e-6)
    assert_allclose(average_derivative(ours, x, 1), derivative.margeff[0], rtol=1e-6)


@pytest.mark.data(str(textbooks.AER_HMDA))
def test_bands_of_loan_to_value_hold_both_their_ends():
    sample = textbooks.aer_hmda(SHARED)
    ratio, medium, high = (sample.column(name) for name in ("lvrat", "medium", "high"))
    assert set(medium[np.isin(ratio, [0.80, 0.95])]) == {1.0}
    assert np.isin([0.80, 0.95], ratio).all()
    assert not np.any(medium * high)
