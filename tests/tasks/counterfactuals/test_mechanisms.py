"""Mechanisms: abduction and prediction undo each other, distributions are the known ones, couplings keep promises."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest, norm, poisson
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from schemas.audit.causal import Mechanism
from tasks.counterfactuals.algorithm.mechanisms import (
    Count,
    Ordinal,
    fit_additive,
    fit_mechanism,
    gumbel_argmax,
    gumbel_noise,
    passed,
    quantile_score,
)

FORMS = {"linear": 0, "forest": 0, "boosting": 0, "count": 0, "ordinal": 4, "nominal": 4}


def rng(seed=3):
    return np.random.default_rng(seed)


class Odds:
    """A stand-in for a fitted classifier whose probabilities are known: row i of the table for causes i."""

    def __init__(self, table):
        self.table = np.asarray(table, dtype=float)
        self.classes_ = np.arange(self.table.shape[1])

    def predict_proba(self, causes):
        return self.table[causes[:, 0].astype(int)]


class Mean:
    """A stand-in for a fitted regressor: the cause is the mean."""

    def predict(self, causes):
        return causes[:, 0]


def sample(form, n=400):
    """Causes and values that a mechanism of the form can be fitted to."""
    causes = np.column_stack([rng().integers(0, 2, n), rng(4).normal(size=n)]).astype(float)
    merit = causes @ [1.0, 0.5] + rng(5).normal(size=n)
    if form == "count":
        return causes, rng(6).poisson(np.exp(0.3 * merit)).astype(float)
    return causes, np.digitize(merit, [-1.0, 0.0, 1.0]).astype(float) if FORMS[form] else merit


@pytest.mark.parametrize("form", FORMS)
def test_predicting_from_the_same_causes_gives_the_values_back(form):
    causes, values = sample(form)
    mechanism = fit_mechanism(form, Mechanism(), causes, values, FORMS[form], seed=1)
    noise = mechanism.abduct(causes, values, rng().random((len(values), mechanism.draws)))
    assert noise.shape == (len(values), 4 if form == "nominal" else 1)
    found = mechanism.predict(causes, noise)
    if FORMS[form] or form == "count":
        assert np.array_equal(found, values)
    else:
        assert found == pytest.approx(values, abs=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_another_cause_gives_other_values(form):
    causes, values = sample(form)
    mechanism = fit_mechanism(form, Mechanism(), causes, values, FORMS[form], seed=1)
    noise = mechanism.abduct(causes, values, rng().random((len(values), mechanism.draws)))
    moved = mechanism.predict(causes + np.array([0.0, 2.0]), noise) - values
    assert moved.mean() > 0.2
    if form != "nominal":
        # the effect is positive by construction; quantile coupling and pooled regressions carry it to everybody
        assert (moved >= -0.75).all()


@pytest.mark.parametrize("regressor", [Ridge(), DecisionTreeRegressor(max_depth=3)])
def test_any_regressor_can_carry_additive_noise(regressor):
    causes, values = sample("linear")
    mechanism = fit_additive(regressor, causes, values, seed=1)
    expected = type(regressor)(**regressor.get_params()).fit(causes, values).predict(causes)
    assert mechanism.abduct(causes, values, np.empty((len(values), 0)))[:, 0] == pytest.approx(values - expected)
    assert not hasattr(regressor, "n_features_in_"), "the regressor that was given stays unfitted"


def test_a_group_is_not_lost_beside_dollars():
    rng = np.random.default_rng(3)
    group, income = rng.integers(0, 2, 5000), rng.lognormal(11, 0.8, 5000)
    income[:5] = 5e7
    fitted = fit_mechanism(
        "linear", Mechanism(), np.column_stack([group, income]), 2 * income + 30 * group + rng.normal(0, 1, 5000), 0, 0
    )
    assert fitted.predict(np.array([[1.0, 0.0]]), np.zeros((1, 1))) == pytest.approx(
        30 + fitted.predict(np.array([[0.0, 0.0]]), np.zeros((1, 1))), abs=0.2
    )


def test_a_poisson_mean_of_two_groups_is_the_mean_of_each():
    # with one indicator the model is saturated: exp(intercept) and exp(intercept + effect) are the two group means
    causes, values = np.repeat([[0.0], [1.0]], 4, axis=0), np.array([1.0, 2, 3, 2, 5, 7, 6, 6])
    count = fit_mechanism("count", Mechanism(), causes, values, 0, seed=1)
    assert count.expected(np.array([[0.0], [1.0]])) == pytest.approx([2.0, 6.0], rel=1e-6)


def test_shares_of_two_groups_are_fitted_whether_rows_repeat_or_not():
    causes = np.repeat([[0.0], [1.0]], 5000, axis=0)
    # cumulative odds of the second group are those of the first, divided by e: a cumulative logit holds both
    codes = np.concatenate([np.repeat([0.0, 1, 2], [1000, 3000, 1000]), np.repeat([0.0, 1, 2], [421, 2556, 2023])])
    ordinal = fit_mechanism("ordinal", Mechanism(), causes, codes, 4, seed=1)
    # the fourth category never occurs; the library's penalty moves the rest by less than one in a thousand
    expected = [[0.2, 0.6, 0.2, 0.0], [0.0842, 0.5112, 0.4046, 0.0]]
    assert ordinal.probabilities(np.array([[0.0], [1.0]])) == pytest.approx(np.array(expected), abs=1e-3)


def test_a_category_that_is_the_only_one_stays():
    ordinal = fit_mechanism("ordinal", Mechanism(), np.arange(6.0)[:, None], np.ones(6), 3, seed=1)
    assert ordinal.probabilities(np.array([[9.0]])).tolist() == [[0.0, 1.0, 0.0]]


@given(st.floats(0.05, 200), st.floats(0, 0.999), st.integers(0, 300), st.floats(0.05, 200))
@settings(deadline=None, max_examples=examples(200))
def test_counts_couple_by_quantile(mean, uniform, value, other):
    """The clear loop: the smallest count whose cumulative probability passes the same quantile."""
    count, uniforms = Count(Mean()), np.array([[uniform]])
    score = count.abduct(np.array([[mean]]), np.array([float(value)]), uniforms)
    if not np.isfinite(score).all():
        assert poisson.pmf(value, mean) < 1e-250
        return
    assert count.predict(np.array([[mean]]), score)[0] == value
    level, by_hand = norm.cdf(score[0, 0]), 0
    if 1e-9 < level < 1 - 1e-9:
        while poisson.cdf(by_hand, other) <= level - 1e-12:
            by_hand += 1
        assert abs(count.predict(np.array([[other]]), score)[0] - by_hand) <= (
            abs(poisson.cdf(by_hand, other) - level) < 1e-9
        )


def test_a_count_far_out_keeps_its_digits():
    # P(X > 200) for a mean of 50 is 1e-60: as a quantile it would be 1, and every such count the same
    count, values = Count(Mean()), np.array([200.0, 201.0, 150.0])
    causes = np.full((3, 1), 50.0)
    score = count.abduct(causes, values, np.full((3, 1), 0.5))
    assert count.predict(causes, score).tolist() == values.tolist()
    assert score[1] > score[0] > score[2] > 10


def ordered_pair(draw, size):
    """Two distributions of which the second is stochastically at least the first."""
    weights = st.lists(st.floats(0.01, 1), min_size=size, max_size=size)
    first, second = np.array(draw(weights)), np.array(draw(weights))
    low, other = np.cumsum(first) / first.sum(), np.cumsum(second) / second.sum()
    return low, np.minimum(low, other)


@st.composite
def shifts(draw):
    size = draw(st.integers(2, 6))
    low, high = ordered_pair(draw, size)
    table = np.diff(np.vstack([low, high]), axis=1, prepend=0)
    uniforms = draw(st.lists(st.floats(0, 0.999), min_size=size, max_size=size))
    return np.clip(table, 0, None), np.array(uniforms)[:, None]


@given(shifts())
@settings(deadline=None, max_examples=examples(200))
def test_a_shift_upwards_never_lowers_an_ordinal_value(case):
    table, uniforms = case
    ordinal, size = Ordinal(Odds(table), table.shape[1]), table.shape[1]
    values, before = np.arange(size, dtype=float), np.zeros((size, 1))
    score = ordinal.abduct(before, values, uniforms)
    assert np.array_equal(ordinal.predict(before, score), values)
    assert (ordinal.predict(before + 1, score) >= values - 1e-9).all()


@given(shifts())
@settings(deadline=None)
def test_quantile_coupling_agrees_with_the_loop(case):
    table, uniforms = case
    ordinal = Ordinal(Odds(table), table.shape[1])
    scores = norm.ppf(np.clip(uniforms, 0.001, 0.999))
    level, found = norm.cdf(scores[:, 0]), ordinal.predict(np.ones((len(scores), 1)), scores)
    for u, category in zip(level, found, strict=True):
        cumulative = np.cumsum(table[1])
        if np.abs(cumulative - u).min() > 1e-9:
            assert category == min(sum(c < u for c in cumulative), table.shape[1] - 1)


@pytest.mark.parametrize("kind", ["quantile", "gumbel"])
def test_imagined_categories_have_the_distribution_of_the_other_causes(kind):
    """Consistency of the coupling: what was observed under p and carried over to q is distributed as q."""
    p, q = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.1, 0.3, 0.2, 0.4])
    n = 60_000
    observed = rng(1).choice(4, n, p=p).astype(float)
    if kind == "gumbel":
        noise = gumbel_noise(np.tile(p, (n, 1)), observed, rng(2).random((n, 4)))
        same, other = gumbel_argmax(np.tile(p, (n, 1)), noise), gumbel_argmax(np.tile(q, (n, 1)), noise)
        # the noise of every category is standard Gumbel again, as if nothing had been observed
        assert min(kstest(noise[:, j], "gumbel_r").pvalue for j in range(4)) > 0.001
    else:
        ordinal = Ordinal(Odds([p, q]), 4)
        noise = ordinal.abduct(np.zeros((n, 1)), observed, rng(2).random((n, 1)))
        same, other = ordinal.predict(np.zeros((n, 1)), noise), ordinal.predict(np.ones((n, 1)), noise)
        assert kstest(noise[:, 0], "norm").pvalue > 0.001
    assert np.array_equal(same, observed)
    assert chisquare(np.bincount(other.astype(int), minlength=4), q * n).pvalue > 0.001


@given(st.data())
@settings(deadline=None, max_examples=examples(100))
def test_gumbel_keeps_a_category_whose_odds_fell_against_none(data):
    """Counterfactual stability (Oberst and Sontag 2019, definition 3)."""
    size = data.draw(st.integers(2, 5))
    weights = st.lists(st.floats(0.01, 1), min_size=size, max_size=size)
    p, q = (np.array(data.draw(weights)) for _ in range(2))
    p, q = p / p.sum(), q / q.sum()
    stable = int(np.argmax(q / p))
    uniforms = rng(data.draw(st.integers(0, 99))).random((50, size))
    noise = gumbel_noise(np.tile(p, (50, 1)), np.full(50, float(stable)), uniforms)
    assert (gumbel_argmax(np.tile(q, (50, 1)), noise) == stable).all()


def test_a_value_without_probability_has_no_noise():
    with np.errstate(all="ignore"):
        ordinal = Ordinal(Odds([[0.5, 0.0, 0.5]]), 3)
        assert not np.isfinite(ordinal.abduct(np.zeros((1, 1)), np.array([1.0]), np.array([[0.3]]))).any()
        noise = gumbel_noise(np.array([[0.5, 0.0, 0.5]]), np.array([1.0]), np.array([[0.3, 0.4, 0.5]]))
        assert not np.isfinite(noise).all()


def test_a_score_by_hand():
    # P(X < x) = 0.2, P(X <= x) = 0.6: a quarter of the way is 0.3; from 0.7 to 0.9, nine tenths of the way is 0.88
    lower, upper = (np.array([0.2, 0.7]), np.array([0.6, 0.9])), (np.array([0.4, 0.1]), np.array([0.8, 0.3]))
    score = quantile_score(lower, upper, np.array([0.25, 0.9]))
    assert score == pytest.approx(norm.ppf([0.3, 0.88]), abs=1e-5)
    assert passed(score[:1], np.array([0.29, 0.31]), np.array([0.71, 0.69])).tolist() == [True, False]
