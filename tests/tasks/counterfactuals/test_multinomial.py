"""The multinomial logit: distinct rows, and the fit to a resample from where the fit to all rows ended."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tasks.counterfactuals.algorithm.multinomial import distinct_rows, fit_classifier, refit_classifier


def weights(categories):
    return np.vstack(
        [np.linspace(0, 3e-5, categories), np.linspace(0, 1, categories), np.linspace(0, -0.5, categories)]
    )


@pytest.mark.parametrize("categories", [2, 3, 5])
def test_a_refit_is_the_fit_to_the_resample_alone(categories):
    generator = np.random.default_rng(categories)
    causes = np.column_stack([generator.normal(50_000, 20_000, 3000), generator.random((3000, 2)) < 0.3])
    index = causes @ weights(categories)
    codes = (index + generator.gumbel(size=index.shape)).argmax(axis=1).astype(float)
    rows = generator.integers(0, 3000, 1000)
    x, y = causes[rows], codes[rows]
    again = refit_classifier(fit_classifier(causes, codes), x, y)
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    exact = LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(scaled, y)
    assert again.predict_proba(x) == pytest.approx(exact.predict_proba(scaled), abs=1e-8)


@pytest.mark.parametrize("left", [(0, 1, 3), (1, 3), (3,)])
def test_a_resample_may_lack_categories(left):
    generator = np.random.default_rng(1)
    causes, codes = generator.normal(size=(400, 2)), generator.integers(0, 4, 400).astype(float)
    some = np.isin(codes, left)
    again = refit_classifier(fit_classifier(causes, codes), causes[some], codes[some])
    assert again.classes_.tolist() == list(left)
    alone = fit_classifier(causes[some], codes[some])
    assert again.predict_proba(causes) == pytest.approx(alone.predict_proba(causes), abs=1e-6)


def test_distinct_rows_are_those_of_a_sort_of_rows_however_many_columns_there_are():
    generator = np.random.default_rng(8)
    few = generator.integers(0, 3, (300, 60)) * np.array([1.0, -2.5, 1e9] * 20)
    few[150:] = few[generator.integers(0, 150, 150)]
    for values in (few, few[:, :2], (few > 0) * 1.0, generator.normal(size=(50, 9))):
        distinct, counts = distinct_rows(values)
        expected, expected_counts = np.unique(values, axis=0, return_counts=True)
        assert (distinct == expected).all()
        assert (counts == expected_counts).all()
