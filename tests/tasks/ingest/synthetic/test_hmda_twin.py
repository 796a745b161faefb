"""The twin of HMDA: laws of its counterfactuals, its mechanisms by hand, and marginals within sampling error."""

from dataclasses import fields, replace

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy.special import expit

from tasks.ingest.synthetic.algorithm import twin as algorithm_twin
from tasks.ingest.synthetic.algorithm.twin import (
    DEBT_BANDS,
    DENIED,
    MEDIATORS,
    NOT_ACCEPTED,
    ORIGINATED,
    PREAPPROVAL_DENIED,
    PREAPPROVED,
    RACES,
    WHITE,
    YEARS,
    TwinSettings,
    as_members,
    band,
    blocks,
    check,
    flip_shares,
    generate,
    otherwise,
)

BLACK = RACES.index("Black")
KINDS = ("none", "direct", "mediated")


def drawn(seed=0, **changes):
    return generate(TwinSettings(**{"rows": 3000, **changes}), np.random.default_rng(seed))


def race_flips(twin, group="Black"):
    return next(each for each in flip_shares(twin) if (each.attribute, each.group) == ("race", group))


def near(found, share, n):
    """Within five standard errors of a share."""
    return abs(found - share) < 5 * np.sqrt(share * (1 - share) / n) + 1e-12


@hypothesis_settings(max_examples=examples(30), deadline=None)
@given(st.sampled_from(KINDS), st.floats(0, 4), st.integers(0, 2**32 - 1), st.integers(*YEARS))
def test_as_members_of_their_own_groups_applicants_are_as_observed(kind, strength, seed, year):
    twin = drawn(seed, rows=200, discrimination=kind, strength=strength, year=year)
    same = as_members(twin, twin.people.race, twin.people.sex)
    assert (same.mediators == twin.world.mediators).all()
    assert (same.approved == twin.world.approved).all()
    back = algorithm_twin.publish(same.mediators, twin.settings.modern)
    assert all((getattr(back, f.name) == getattr(twin.published, f.name)).all() for f in fields(back))


@hypothesis_settings(max_examples=examples(30), deadline=None)
@given(st.sampled_from(KINDS[1:]), st.floats(0.1, 3), st.integers(0, 2**32 - 1))
def test_without_a_disadvantage_nobody_is_decided_on_otherwise(kind, strength, seed):
    """Nothing planted, no strength, or nobody disadvantaged: no mediator moves and no decision flips."""
    nobody = {"race_disadvantage": (0.0,) * 5, "sex_disadvantage": (0.0, 0.0)}
    for changes in ({"discrimination": "none"}, {"discrimination": kind, "strength": 0.0}, nobody):
        twin = drawn(seed, **{"rows": 200, "discrimination": kind, "strength": strength, **changes})
        for found in otherwise(twin):
            assert not found.flips.any()
            assert (found.world.mediators == twin.world.mediators).all()


def test_direct_discrimination_moves_no_mediator_and_mediated_no_rule():
    direct, mediated = (drawn(discrimination=kind) for kind in KINDS[1:])
    race, sex = direct.people.race, direct.people.sex
    white = np.full_like(race, WHITE)
    then = as_members(direct, white, sex)
    assert (then.mediators == direct.world.mediators).all()
    burden = np.array(direct.settings.race_disadvantage)[race]
    assert then.logit - direct.world.logit == pytest.approx(burden)
    # the direct effect of mediated discrimination: the same mediators under the same rule give the same logit
    rule = np.array(mediated.settings.rule)
    usual = algorithm_twin.usually(mediated.settings, mediated.people.purpose)
    for world in (mediated.world, as_members(mediated, white, sex)):
        by_rule = algorithm_twin.intercept(mediated.settings) + (world.mediators - usual) @ rule
        assert world.logit == pytest.approx(by_rule)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_more_strength_flips_the_same_decisions_and_more(kind):
    """Noise is the same at every strength: whoever is refused for the race at a lower one is at a higher one.

    The sexes have no disadvantage here: with more strength a Black woman is at last refused as a woman, too.
    """
    lost, shares = np.zeros(3000, bool), []
    for strength in (0.0, 0.3, 0.6, 1.2, 2.4):
        twin = drawn(discrimination=kind, strength=strength, sex_disadvantage=(0.0, 0.0))
        race = next(found for found in otherwise(twin) if found.attribute == "race")
        own = (twin.people.race == BLACK) & race.flips
        assert race.world.approved[own].all()
        assert not (lost & ~own).any()
        lost = own
        shares.append(race_flips(twin).share)
    assert shares[0] == 0
    assert shares == sorted(set(shares))


def test_mechanisms_by_hand():
    """One person a year, from the equations in the docstring of the causal model."""
    settings = TwinSettings(rows=6, year=2024, discrimination="mediated", strength=2.0)
    twin = generate(settings, np.random.default_rng(3))
    for i in range(6):
        u = twin.noise.mediators[i]
        d = settings.race_disadvantage[twin.people.race[i]] + settings.sex_disadvantage[twin.people.sex[i]]
        purpose = twin.people.purpose[i]
        median_income, median_value = np.log(100_000 * 1.03**2), np.log(345_000 * 1.045**2)
        income = median_income + 0.6 * u[0] - 0.5 * d
        value = median_value + 0.55 * (income - median_income) + 0.45 * u[1] - 0.3 * d
        ratio = np.log(settings.loan_ratios[purpose])
        loan = value + ratio + 0.3 * u[2] + 0.1 * d
        debt = 38 - 8 * (income - median_income) + 8 * (loan - median_value - ratio) + 8 * u[3] + 8 * d
        to_value = settings.loan_to_value[purpose] + 30 * (loan - value - ratio) + 8 * u[4] + 8 * d
        by_hand = [income, value, loan, debt, to_value]
        assert twin.world.mediators[i] == pytest.approx(by_hand)
        usual = [median_income, median_value, median_value + ratio, 38, settings.loan_to_value[purpose]]
        logit = algorithm_twin.intercept(settings) + np.dot(settings.rule, np.array(by_hand) - usual)
        assert twin.world.logit[i] == pytest.approx(logit)
        assert twin.world.approved[i] == (logit + twin.noise.decision[i] > 0)


def test_marginals_are_those_asked_for():
    n = 40_000
    twin = drawn(rows=n, discrimination="direct", race_disadvantage=(0.0,) * 5, sex_disadvantage=(0.0, 0.0))
    asked, who = twin.settings, twin.people
    for array, shares in (
        (who.race, asked.race_shares),
        (who.age, asked.age_shares),
        (who.purpose, asked.purpose_shares),
        (who.kind, asked.type_shares),
        (who.occupancy, asked.occupancy_shares),
    ):
        found = np.bincount(array, minlength=len(shares)) / n
        assert all(near(a, b, n) for a, b in zip(found, shares, strict=True))
    for array, share in (
        (who.hispanic, asked.hispanic),
        (who.sex == 1, asked.female),
        (~who.race_told, asked.race_untold),
        (who.cosex >= 0, asked.coapplicants),
        (who.subordinate, asked.subordinate),
        (twin.action == 4, asked.withdrawn),
        (twin.action == 5, asked.incomplete),
        (twin.action == 6, asked.purchased),
        (~twin.world.approved, asked.denied),
        (twin.world.mediators[:, algorithm_twin.INCOME] > np.log(asked.income), 0.5),
        (twin.world.mediators[:, algorithm_twin.VALUE] > np.log(asked.property_value), 0.5),
        (twin.world.mediators[:, algorithm_twin.DEBT] > asked.debt_to_income, 0.5),
    ):
        assert near(array.mean(), share, n)


@pytest.mark.parametrize("denied", [0.05, 0.25, 0.6])
def test_the_intercept_denies_as_many_as_asked_for(denied):
    settings = TwinSettings(denied=denied)
    usual = algorithm_twin.usually(settings, np.zeros(200_000, int))
    noise = np.random.default_rng(0).standard_normal((200_000, len(MEDIATORS)))
    logit = algorithm_twin.deviations(settings, noise, np.zeros(200_000)) @ np.array(settings.rule)
    assert expit(-(algorithm_twin.intercept(settings) + logit)).mean() == pytest.approx(denied, abs=0.003)
    assert np.isfinite(usual).all()


def test_actions_follow_decisions_and_preapprovals_are_of_purchases():
    twin = drawn(preapprovals=0.5)
    assert np.isin(twin.action[twin.decided & twin.world.approved], (ORIGINATED, NOT_ACCEPTED, PREAPPROVED)).all()
    assert np.isin(twin.action[twin.decided & ~twin.world.approved], (DENIED, PREAPPROVAL_DENIED)).all()
    early = np.isin(twin.action, (PREAPPROVAL_DENIED, PREAPPROVED))
    assert early.any()
    assert (twin.people.purpose[early] == 0).all()


def test_cells_of_the_denied_are_missing_more_often_by_as_much_as_asked():
    twin = drawn(rows=60_000, exempt=0.0)
    denied = np.isin(twin.action, (DENIED, PREAPPROVAL_DENIED))
    for name in ("income", "property_value", "debt_to_income"):
        gaps = getattr(twin.unreported, name)
        assert gaps[denied].mean() / gaps[~denied].mean() == pytest.approx(5.0, rel=0.25)
    innocent = drawn(rows=60_000, denied_missing=1.0, missing_income=0.2).unreported.income
    assert near(innocent[denied].mean(), 0.2, denied.sum())
    full = drawn(missing=0.0, exempt=0.0).unreported
    assert not any(getattr(full, f.name).any() for f in fields(full))
    assert not drawn(year=2012, exempt=1.0).unreported.exempt.any()
    assert drawn(exempt=1.0).unreported.exempt.all()


def test_what_is_published():
    said = algorithm_twin.publish(np.log([[1.0, 1.0, 1.0, 1.0, 1.0]]), modern=True)
    assert said.income[0] == 1
    mediators = np.array([[np.log(61_499.0), np.log(349_999.0), np.log(350_000.0), 43.99, 79.12345]])
    modern, before = (algorithm_twin.publish(mediators, modern) for modern in (True, False))
    assert (modern.income[0], modern.property_value[0], modern.loan_amount[0]) == (61, 345_000, 355_000)
    assert (before.loan_amount[0], modern.loan_to_value[0]) == (350_000, 79.123)
    for percent, shown in ((19.99, "<20%"), (20, "20%-<30%"), (35.9, "30%-<36%"), (36, "36"), (49.9, "49")):
        assert DEBT_BANDS[band(np.array([percent]))[0]] == shown
    assert [DEBT_BANDS[i] for i in band(np.array([50.0, 60.0, 60.01]))] == ["50%-60%", "50%-60%", ">60%"]


def test_a_seed_is_a_twin_and_blocks_are_the_whole_where_one_is_enough():
    one, again, other = (drawn(seed) for seed in (1, 1, 2))
    assert (one.world.mediators == again.world.mediators).all()
    assert (one.action == again.action).all()
    assert (one.world.mediators != other.world.mediators).any()
    (block,) = blocks(one.settings, np.random.default_rng(1))
    assert (block.world.mediators == one.world.mediators).all()


def test_many_rows_come_in_blocks(monkeypatch):
    monkeypatch.setattr("tasks.ingest.synthetic.algorithm.twin.BLOCK", 1000)
    sizes = [len(twin.action) for twin in blocks(TwinSettings(rows=2500), np.random.default_rng(0))]
    assert sizes == [1000, 1000, 500]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rows": 0}, "rows of the twin is 0; expected at least one"),
        ({"year": 2026}, "year of the twin is 2026; expected a year from 2007 to 2025"),
        ({"race_shares": (0.5, 0.5)}, "race_shares of the twin is .* expected 5 numbers"),
        ({"type_shares": (0.5, 0.1, 0.1, 0.1)}, "shares that add up to 1"),
        ({"denied": 1.0}, "denied of the twin is 1.0; expected a share between 0 and 1"),
        ({"strength": -1.0}, "strength of the twin is -1.0; expected a number from 0"),
        ({"withdrawn": 0.9, "purchased": 0.2}, "leaves room for decisions"),
    ],
)
def test_parameters_that_cannot_be_are_named(changes, said):
    with pytest.raises(ValueError, match=said):
        check(replace(TwinSettings(), **changes))
