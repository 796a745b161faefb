"""Fair predictors inside an audit: who is compared on which rows, what is said of each, and the trade-off."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.gcfn import GcfnPrediction
from schemas.terms import Kind
from tasks.algorithms.columns import Columns
from tasks.algorithms.fair_prediction.measures import rates as plain_rates
from tasks.algorithms.fair_prediction.measures import unfairness
from tasks.algorithms.gcfn_predicted import Predicted, aggregates, rates, refused, tallies
from tasks.algorithms.gcfn_predictors import Lending, predicted, split, variants
from tasks.algorithms.mediated_lending import Synthetic, synthetic

FEW = GcfnPrediction(lambdas=(0.0, 5.0), epochs=8, hidden=(16,), gammas=(0.5,), bins=5)


def lending(n=1_500, seed=0):
    """The right counterfactuals from one network, and means of people alike from another."""
    rows = synthetic(Synthetic(rows=n, noise=0.3, beta_3=2.0), np.random.default_rng(seed))
    mean = rows.mean.copy()
    mean[rows.category, np.arange(n)] = rows.mediators
    return Lending(rows.mediation(), np.stack([rows.potential, mean]), rows.favourable)


def scored(seed=0, n=80, networks=3, others=2):
    rng = np.random.default_rng(seed)
    return Predicted("GCFN", 0.5, rng.random(n), rng.random((networks, others, n)))


def value(tally):
    known = ~np.isnan(tally.values)
    return tally.values[known] @ tally.counts[known] / tally.counts[known].sum()


@pytest.fixture(scope="module")
def trained():
    return lending(), {(p.model, p.fairness): p for p in predicted(lending(), FEW, "cpu", 0)}


def test_everyone_is_compared_once(trained):
    of, found = trained
    assert list(found) == [("unconstrained", 0), ("CFUA", 0), ("CFAN", 0), ("GCFN", 5)]
    _, test = split(of.rows, of.label, FEW.test, 0)
    assert {len(p.scores) for p in found.values()} == {len(test)}
    assert {p.imagined.shape for p in found.values()} == {(2, 1, len(test))}


def test_regularisation_moves_scores_less_and_baselines_do_not_move(trained):
    _, found = trained
    free, fair = found["unconstrained", 0].moved.mean(), found["GCFN", 5].moved.mean()
    assert fair < free / 2
    assert found["CFUA", 0].moved.max() == 0
    assert found["CFAN", 0].moved.max() == 0


def test_it_is_the_same_every_time(trained):
    of, found = trained
    for one in predicted(of, FEW, "cpu", 0):
        assert (one.scores == found[one.model, one.fairness].scores).all()
        assert (one.imagined == found[one.model, one.fairness].imagined).all()


def test_who_would_see_nothing_is_left_out():
    of = lending(200).rows
    nobody = replace(of, covariates=Columns((), (), (), np.zeros((200, 0))))
    nominal = Columns(("job",), (Kind.NOMINAL,), (("x", "y"),), (of.mediators.values > 0).astype(float))
    assert "CFUA" not in {v.name for v in variants(nobody, FEW)}
    assert "CFAN" not in {v.name for v in variants(replace(of, mediators=nominal), FEW)}
    told = Lending(
        replace(nobody, mediators=nominal), np.stack([nominal.values, 1 - nominal.values])[None], of.category > 0
    )
    assert [p.model for p in predicted(told, replace_epochs(1), "cpu", 0)] == ["unconstrained", "GCFN"]


def replace_epochs(epochs):
    return FEW.model_copy(update={"epochs": epochs})


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1_000), st.sampled_from([0.1, 0.2, 0.5]))
def test_the_split_keeps_outcomes_of_categories_and_parts_nobody(seed, share):
    rng = np.random.default_rng(seed)
    of = lending(200).rows
    of, label = replace(of, category=rng.integers(2, size=200)), rng.random(200) < 0.7
    learnt, test = split(of, label, share, seed)
    assert sorted([*learnt, *test]) == list(range(200))
    for category in range(2):
        for outcome in (False, True):
            cell = np.flatnonzero((of.category == category) & (label == outcome))
            assert len(np.intersect1d(cell, test)) == max(1, round(round(share * 200) * len(cell) / 200))


def test_rates_are_those_of_the_plain_form():
    rng = np.random.default_rng(0)
    decided, label = rng.random(50) < 0.4, rng.random(50) < 0.5
    found, plain = {t.measure: value(t) for t in rates(decided, label, {})}, plain_rates(label, decided)
    assert found == pytest.approx({f"fair_{name}": getattr(plain, name) for name in ("accuracy", "ppv", "fpr", "fnr")})


def test_a_rate_of_nobody_is_not_told():
    label = np.ones(5, dtype=bool)
    assert {t.measure for t in rates(~label, label, {})} == {"fair_accuracy", "fair_fnr"}


@pytest.mark.parametrize("seed", range(3))
def test_what_is_said_of_a_group(seed):
    found, rng = scored(seed), np.random.default_rng(seed)
    label, given, rows = rng.random(80) < 0.5, rng.random(80) < 0.5, np.arange(10, 60)
    told = list(tallies(found, rows, label, given, FEW))
    assert all(t.parameters["model"] == "GCFN" and t.parameters["lambda"] == 0.5 for t in told)
    shares = {t.parameters["from"]: value(t) for t in told if t.measure == "fair_score_share"}
    counts, _ = np.histogram(found.scores[rows], 5, (0, 1))
    assert list(shares.values()) == pytest.approx(counts / 50)
    (other,) = (value(t) for t in told if t.measure == "treated_differently_share")
    assert other == pytest.approx(((found.scores[rows] >= 0.5) != given[rows]).mean())
    assert not any(t.measure == "treated_differently_share" for t in tallies(found, rows, label, None, FEW))


def test_unfairness_and_utility_are_under_the_network_that_is_worst_over_everybody():
    found, label = scored(), np.random.default_rng(1).random(80) < 0.5
    found.imagined[1, :, :60] = 1 - found.scores[:60].round()  # as far as can be, and not in every group
    worst = int(unfairness(found.scores, found.imagined).argmax())
    assert worst == 1
    rows, total = [np.arange(30), np.arange(30, 80)], 0.0
    for own in rows:
        told = list(aggregates([found], own, label, (0.5, 1.0), 50, np.random.default_rng(0)))
        moved = np.square(found.imagined[worst][:, own] - found.scores[own]).mean()
        accuracy = (found.favourable[own] == label[own]).mean()
        assert [a.value for a in told] == pytest.approx([moved, moved**0.5, accuracy - 0.5 * moved, accuracy - moved])
        assert {a.n for a in told} == {len(own)}
        total += moved * len(own) / 80
    assert total == pytest.approx(unfairness(found.scores, found.imagined).max())


def test_replicates_are_means_of_rows_drawn_with_replacement_and_follow_the_seed():
    found, label = scored(n=40), np.ones(40, dtype=bool)

    def replicates(seed, resamples=400):
        return next(aggregates([found], np.arange(40), label, (), resamples, np.random.default_rng(seed))).replicates

    drawn = replicates(0)
    assert drawn.shape == (400,)
    assert drawn.mean() == pytest.approx(found.moved.mean(), abs=4 * found.moved.std() / np.sqrt(40 * 400))
    assert drawn.std() == pytest.approx(found.moved.std() / np.sqrt(40), rel=0.15)
    assert (drawn == replicates(0)).all()
    assert (drawn != replicates(1)).any()
    assert replicates(0, 0).shape == (0,)


def test_a_group_that_nothing_was_trained_for_is_a_row_for_each_model():
    told = list(refused([("CFUA", 0.0), ("GCFN", 0.5)], 7, "too few"))
    assert [(a.parameters["model"], a.parameters["lambda"]) for a in told] == [("CFUA", 0.0), ("GCFN", 0.5)]
    assert all(np.isnan(a.value) and a.n == 7 and a.reason == "too few" for a in told)
