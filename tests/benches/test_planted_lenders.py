"""Planted lenders: what is called their truth is the truth of the draws, and each scenario plants what it names."""

from dataclasses import replace

import numpy as np
import pytest
from benches.planted_lenders import (
    CONFOUNDED,
    MEDIATED,
    NUMBERS,
    Lender,
    Scenario,
    at_limit,
    draw,
    intercept,
    overlap_weighted,
    population,
)
from scipy.special import expit, logit

from tasks.numerics.statistics.regression import fit_logit

LENDER = Lender((-0.4, -0.9, 0.1, 0.5, 0.5, -0.3), (0.2, 0.0, 0.4), denied=0.25)
HARMED = 1


def only(value):
    return (0.0, value, 0.0, 0.0)


def drawn(rows=40_000, seed=5, **planted):
    return draw(LENDER, Scenario("", **planted), rows, np.random.default_rng(seed))


def test_the_reference_group_is_denied_as_often_as_asked():
    applied = drawn(200_000)
    assert applied.denied[applied.group == 0].mean() == pytest.approx(0.25, abs=0.005)


def test_numbers_of_the_reference_group_are_standard_and_those_of_a_moved_group_moved():
    applied = drawn(100_000, mediated=only(0.6), confounded=(0.0, 0.0, 0.4, 0.0))
    means = {number: applied.z[applied.group == number].mean(axis=0) for number in range(3)}
    np.testing.assert_allclose(means[0], 0, atol=0.02)
    np.testing.assert_allclose(applied.z[applied.group == 0].std(axis=0), 1, atol=0.02)
    worse = {"income": -1, "score": -1, "ltv": 1, "dti": 1, "years": -1}
    for at, name in enumerate(NUMBERS):
        assert means[1][at] == pytest.approx(0.6 * worse.get(name, 0) * (name in MEDIATED), abs=0.03)
        assert means[2][at] == pytest.approx(0.4 * worse.get(name, 0) * (name in CONFOUNDED), abs=0.04)


def test_direct_effects_are_the_logit_with_the_term_less_that_without():
    """A clear loop over a few applicants."""
    applied = drawn(300, log_odds=only(0.5), mediated=only(-0.4))
    for row in range(300):
        index = intercept(LENDER) + sum(b * z for b, z in zip(LENDER.slopes, applied.z[row], strict=True))
        index += LENDER.purposes[applied.purpose[row]]
        term = 0.5 if applied.group[row] == HARMED else 0.0
        assert applied.chance[row] == pytest.approx(expit(index + term))
        assert applied.direct[row] == pytest.approx(expit(index + term) - expit(index))


def test_total_effects_are_what_another_group_would_have_met():
    """The same draws with everybody of the reference group: the same applicants, unmoved and without the term."""
    planted = {"log_odds": only(0.5), "mediated": only(0.6)}
    applied, apart = drawn(**planted), drawn()
    own = applied.group == HARMED
    np.testing.assert_array_equal(applied.group, apart.group)
    np.testing.assert_allclose(applied.total, applied.chance - apart.chance, atol=1e-12)
    assert applied.truth(HARMED).total == pytest.approx((applied.chance - apart.chance)[own].mean())
    flipped = applied.denied[own].mean() - apart.denied[own].mean()
    assert flipped == pytest.approx(applied.truth(HARMED).total, abs=0.02)


def test_the_effect_where_groups_overlap_is_that_of_a_fitted_propensity():
    """Weighted by a logit of membership that is fitted to other draws, over both groups' rows by e (1 - e)."""
    scenario = Scenario("", log_odds=only(0.8), mediated=only(1.0), confounded=only(0.3))
    applied = draw(LENDER, scenario, 60_000, np.random.default_rng(8))
    pair = applied.group <= HARMED
    member, z = applied.group[pair] == HARMED, np.column_stack([np.ones(pair.sum()), applied.z[pair]])
    e = fit_logit(z, member.astype(float)).fitted
    odds = logit(applied.chance[pair]) - 0.8 * member
    effect = expit(odds + 0.8) - expit(odds)
    found = overlap_weighted(LENDER, scenario)
    assert found[HARMED] == pytest.approx(np.average(effect, weights=e * (1 - e)), abs=0.001)
    assert abs(found[HARMED] - population(LENDER, scenario)[HARMED].direct) > 0.005  # another estimand
    assert found[0] == found[2] == 0


@pytest.mark.parametrize(
    ("planted", "direct", "total", "ratio"),
    [
        ({}, 0, 0, 1),
        ({"confounded": only(0.6)}, 0, 0, -1),
        ({"mediated": only(0.6)}, 0, 1, -1),
        ({"log_odds": only(0.5)}, 1, 1, -1),
    ],
)
def test_a_scenario_plants_what_it_names(planted, direct, total, ratio):
    true = population(LENDER, Scenario("", **planted))[HARMED]
    assert (true.direct > 0.03, true.total > 0.03) == (bool(direct), bool(total))
    assert true.direct == 0 if not direct else true.direct > 0
    assert true.total == 0 if not total else true.total >= true.direct
    assert true.ratio == pytest.approx(1, abs=0.01) if ratio == 1 else true.ratio < 0.95


def test_an_effect_can_be_put_at_a_limit():
    true = population(LENDER, at_limit(LENDER, Scenario("", log_odds=(0.0, 1.0, 1.0, 0.0)), 0.02))
    assert [each.direct for each in true] == pytest.approx([0, 0.02, 0.02, 0], abs=2e-4)


def test_draws_hang_on_the_generator_alone():
    one, same, other = drawn(500), drawn(500), drawn(500, seed=6)
    np.testing.assert_array_equal(one.denied, same.denied)
    assert (one.denied != other.denied).any()
    assert replace(one.scenario, name="x") != one.scenario
