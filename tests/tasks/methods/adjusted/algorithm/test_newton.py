"""The streamed logit against statsmodels and against itself in one piece."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from conftest import examples, fingerprint
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit
from split_rows import GROUPS, cuts, drawn, split

from tasks.methods.adjusted.algorithm.streamed import every, fit_logit, logit_effects


def standardised(seed=0, n=600):
    whole = drawn(seed, n)
    return replace(whole, x=whole.x / [1, 1, 1, 60_000, 1, 1, 1])


@settings(max_examples=examples(40), deadline=None)
@given(cuts=cuts, seed=st.integers(0, 1_000), clustered=st.booleans())
def test_any_split_gives_the_fit_and_the_effects_in_one_piece(cuts, seed, clustered):
    whole = drawn(seed)
    whole = whole if clustered else replace(whole, cluster=None)
    found = [fit_logit(batches, sample=3) for batches in (split(whole, cuts), split(whole, []))]
    assert found[0].converged
    assert found[0].passes == found[1].passes
    assert_allclose(found[0].coefficients, found[1].coefficients, rtol=1e-9, atol=1e-15)
    parts, one = (
        logit_effects(batches, found[1].coefficients, GROUPS) for batches in (split(whole, cuts), split(whole, []))
    )
    assert_allclose(parts.covariance, one.covariance, rtol=1e-7, atol=1e-22)
    for ours, theirs in zip(parts.over_members + parts.over_all, one.over_members + one.over_all, strict=True):
        assert_allclose((ours.value, ours.se), (theirs.value, theirs.se), rtol=1e-9)
    assert (parts.members, parts.n, parts.separated) == (one.members, one.n, False)


def test_it_is_the_logit_of_statsmodels():
    whole = standardised()
    ours, theirs = fit_logit(split(whole, [70, 300])), sm.Logit(whole.y, whole.x).fit(disp=0, tol=1e-12)
    assert_allclose(ours.coefficients, theirs.params, rtol=1e-8)
    told = logit_effects(split(replace(whole, cluster=None), [70, 300]), ours.coefficients, GROUPS)
    robust = sm.Logit(whole.y, whole.x).fit(disp=0, tol=1e-12, cov_type="HC0")
    assert_allclose(told.covariance, robust.cov_params(), rtol=1e-6)
    clustered = logit_effects(split(whole, [70, 300]), ours.coefficients, GROUPS)
    options = {"groups": whole.cluster, "use_correction": False}
    robust = sm.Logit(whole.y, whole.x).fit(disp=0, tol=1e-12, cov_type="cluster", cov_kwds=options)
    assert_allclose(clustered.covariance, robust.cov_params() * 17 / 16, rtol=1e-6)


def test_effects_are_changes_of_an_indicator_and_errors_those_of_the_delta_method():
    whole = replace(standardised(), cluster=None)
    b = fit_logit(split(whole, [])).coefficients
    told = logit_effects(split(whole, [9, 400]), b, GROUPS)

    def effect(b, column, rows):
        x = whole.x[rows].copy()
        x[:, GROUPS] = 0
        without = expit(x @ b)
        x[:, column] = 1
        return (expit(x @ b) - without).mean()

    for column, own, over_all, denial in zip(GROUPS, told.over_members, told.over_all, told.denial, strict=True):
        mine = whole.x[:, column] == 1
        assert denial == pytest.approx(whole.y[mine].mean())
        for said, rows in ((own, mine), (over_all, np.full(len(whole.y), True))):
            assert said.value == pytest.approx(effect(b, column, rows))
            steps = np.eye(len(b)) * 1e-6
            gradient = np.array([(effect(b + h, column, rows) - effect(b - h, column, rows)) / 2e-6 for h in steps])
            assert said.se == pytest.approx(np.sqrt(gradient @ told.covariance @ gradient), rel=1e-6)


def test_a_start_on_a_sample_saves_passes_over_all_rows():
    whole = standardised(n=40_000)
    cold, warm = fit_logit(split(whole, []), sample=1), fit_logit(split(whole, []), sample=40)
    assert_allclose(warm.coefficients, cold.coefficients, rtol=1e-9)
    assert warm.passes < cold.passes


@given(cuts=cuts, step=st.integers(1, 700))
def test_a_sample_is_the_same_rows_in_any_split(cuts, step):
    whole = drawn()
    few = every(split(whole, cuts), step)
    assert np.array_equal(few.x, whole.x[::step])
    assert np.array_equal(few.y, whole.y[::step])


def test_separated_outcomes_do_not_converge():
    whole = standardised()
    x = np.column_stack([whole.x, whole.y])
    assert not fit_logit(split(replace(whole, x=x), [80])).converged
    assert not fit_logit(split(replace(whole, y=np.ones(600)), [80])).converged


def in_batches(clustered):
    whole = standardised(3, 240)
    batches = split(whole if clustered else replace(whole, cluster=None), [50, 51, 180])
    fit = fit_logit(batches, sample=4)
    return {"fit": fit, "effects": logit_effects(batches, fit.coefficients, GROUPS), "some": every(batches, 7)}


RESULTS = {"clusters": lambda: in_batches(True), "rows": lambda: in_batches(False)}


@pytest.mark.parametrize("name", RESULTS)
def test_results_stay_what_they_are(name):
    """Kept from an earlier run: a streamed logit with its effects. A number that moves is seen."""
    assert fingerprint(RESULTS[name]()) == pytest.approx(HELD[name], rel=1e-9, abs=1e-5)


HELD = {
    "clusters": {"fit": 131.135432, "effects": 668.629825, "some": 3129.236667},
    "rows": {"fit": 131.135432, "effects": 673.888373, "some": 3129.236667},
}
