"""Paired comparison of models: intervals that cover a known difference, equal models, ties, dominance, margins."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from tasks.metrics.compare.algorithm import (
    CANNOT_TELL,
    COMPARABLE,
    DOMINATED,
    FOLDS,
    NOT_DOMINATED,
    QUANTITIES,
    WORSE,
    OutOfFold,
    People,
    comparable,
    difference,
    dominance,
    performance,
    resampled,
)

CELLS = (120, 60, 180, 90)
"""Rows of each cell: label * 2 + group."""
N = sum(CELLS)
CELL = np.repeat(np.arange(4), CELLS)
PEOPLE = People(np.zeros((N, 1)), CELL >= 2, CELL % 2 == 1, np.zeros((N, 0)))
FOLD = np.tile(np.arange(N) % FOLDS, (1, 1))


def model(decided, scores=None, cec=None):
    """A model with one repeat, or with several in rows."""
    rows = np.atleast_2d(np.asarray(decided, np.float64))
    return OutOfFold(rows, None if scores is None else np.atleast_2d(scores), np.repeat(FOLD, len(rows), axis=0), cec)


def planted(rng, shares, same=0.6):
    """Two models that approve with these shares of each cell, and decide alike on most rows."""
    lot, other = rng.random(N), rng.random(N)
    second = np.where(rng.random(N) < same, lot, other)
    return [draws < np.array(of)[CELL] for draws, of in zip((lot, second), shares, strict=True)]


def truths(shares):
    """The true quantities of a model with these shares."""
    n = np.array(CELLS, float)
    f = np.array(shares)
    reference, group = ((f[at] * n[at] + f[at + 2] * n[at + 2]) / (n[at] + n[at + 2]) for at in (0, 1))
    right = np.array([1 - f[0], 1 - f[1], f[2], f[3]])
    halves = [(right[at : at + 2] @ n[at : at + 2]) / n[at : at + 2].sum() for at in (0, 2)]
    eo = max(abs(f[2] - f[3]), abs(f[0] - f[1]))
    return {"accuracy": right @ n / N, "balanced_accuracy": sum(halves) / 2, "approval_ratio": group / reference} | {
        "sp_gap": reference - group,
        "eo_gap": eo,
    }


FIRST, SECOND = (0.3, 0.15, 0.85, 0.65), (0.28, 0.22, 0.80, 0.78)


def test_paired_intervals_cover_the_known_difference_of_two_models():
    rng, runs = np.random.default_rng(4), 200
    true = {name: truths(SECOND)[name] - value for name, value in truths(FIRST).items()}
    covered, widths, unpaired = dict.fromkeys(true, 0), [], []
    for _ in range(runs):
        decided = [model(rows) for rows in planted(rng, (FIRST, SECOND))]
        both = resampled(PEOPLE, decided, rng, 200)
        for name, value in true.items():
            found = difference(both, name, 0, 1)
            covered[name] += found.low <= value <= found.high
        gap = difference(both, "sp_gap", 0, 1)
        widths.append(gap.high - gap.low)
        unpaired.append(3.92 * np.sqrt(both.draws["sp_gap"].var(axis=1).sum()))
    assert min(covered.values()) >= 180, covered
    assert np.mean(widths) < 0.75 * np.mean(unpaired), "pairing is worth its name"


def test_repeats_of_the_folds_widen_the_interval_by_their_variance():
    """Fits of one model differ by as much as rows do: 95 % cover a new fit, and fewer without the spread."""
    rng, runs, covered, alone = np.random.default_rng(9), 100, 0, 0
    base = np.array(FIRST)
    for _ in range(runs):
        fits = base + rng.normal(0, 0.03, (5, 1)) * np.array([0, 1, 0, 1])
        lot = rng.random(N)
        first = model(np.tile(lot < base[CELL], (5, 1)))
        second = model([lot < np.clip(shares, 0, 1)[CELL] for shares in fits])
        both = resampled(PEOPLE, [first, second], rng, 150)
        found = difference(both, "sp_gap", 0, 1)
        of_new = truths(base + rng.normal(0, 0.03) * np.array([0, 1, 0, 1]))["sp_gap"] - truths(base)["sp_gap"]
        covered += found.low <= of_new <= found.high
        drawn = both.draws["sp_gap"][1] - both.draws["sp_gap"][0]
        alone += np.quantile(drawn, 0.025) <= of_new <= np.quantile(drawn, 0.975)
    assert covered / runs >= 0.90
    assert alone / runs < 0.85


def test_equal_models_differ_by_exactly_nothing_and_the_order_of_models_changes_nothing():
    rng = np.random.default_rng(1)
    first, second = planted(rng, (FIRST, SECOND))
    scores = rng.random((1, N))
    models = [model(first, scores), model(first, scores), model(second, scores)]
    both = resampled(PEOPLE, models, np.random.default_rng(2), 300)
    for name in set(QUANTITIES) - {"flips", "cec"}:
        found = difference(both, name, 0, 1)
        assert (found.value, found.low, found.high, found.p) == (0, 0, 0, 1), name
    other = resampled(PEOPLE, [models[0], models[2], models[1]], np.random.default_rng(2), 300)
    for name in set(QUANTITIES) - {"flips", "cec"}:
        assert difference(both, name, 0, 2) == difference(other, name, 0, 1)


def test_quantities_are_those_of_the_libraries():
    rng = np.random.default_rng(3)
    first, second = planted(rng, (FIRST, SECOND))
    scores = np.round(rng.random(N) + first, 1)
    both = resampled(PEOPLE, [model(first), model(second, scores)], rng, 50)
    point = {name: both.points[name][1, 0] for name in set(QUANTITIES) - {"flips", "cec"}}
    known = performance(PEOPLE.label, PEOPLE.protected, second, None)
    assert point["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(PEOPLE.label, second))
    assert (point["eo_gap"], abs(point["sp_gap"])) == pytest.approx((known.eo_gap, known.sp_gap))
    assert point["decisions_changed"] == pytest.approx((first != second).mean())
    folds = [roc_auc_score(PEOPLE.label[FOLD[0] == at], scores[FOLD[0] == at]) for at in range(FOLDS)]
    assert point["auc"] == pytest.approx(np.mean(folds))
    assert np.isnan(difference(both, "auc", 0, 1).value), "a model without scores has no AUC"


def test_flips_are_those_of_the_nearest_reference_applicant_and_cover_their_true_difference():
    """Who is like a member is drawn once; the truth is the chance that two independent decisions differ."""
    rng, runs = np.random.default_rng(12), 100
    people = replace(PEOPLE, financial=rng.normal(size=(N, 2)))
    n, covered = np.array(CELLS, float), 0

    def flips(shares):
        f = np.array(shares)
        differ = [f[at + 1] * (1 - f[at]) + (1 - f[at + 1]) * f[at] for at in (0, 2)]
        return (differ[0] * n[1] + differ[1] * n[3]) / (n[1] + n[3])

    for _ in range(runs):
        first, second = ([rng.random(N) < np.array(of)[CELL] for _ in range(5)] for of in (FIRST, SECOND))
        found = difference(resampled(people, [model(first), model(second)], rng, 150), "flips", 0, 1)
        covered += found.low <= flips(SECOND) - flips(FIRST) <= found.high
    assert covered >= 90
    same = resampled(people, [model(CELL >= 2)] * 2, rng, 20)
    assert same.points["flips"][0, 0] == 0, "who has the same outcome is decided alike"
    assert np.isnan(difference(resampled(PEOPLE, [model(CELL >= 2)] * 2, rng, 20), "flips", 0, 1).value)


def test_intervals_of_consistency_cover_the_known_difference_of_two_models():
    """Scores of five repeats hang together, a tenth of the members has none, and reference applicants never have."""
    rng, runs, covered, halves = np.random.default_rng(13), 200, 0, []
    decided = np.tile(rng.random(N) < 0.5, (5, 1))

    def scored(mean, lot):
        """CEC by repeat: what an applicant has in all of them, and noise of each."""
        scores = np.clip(mean + 0.1 * lot + 0.05 * rng.normal(size=(5, N)), 0, 1)
        return np.where((CELL % 2 == 1) & (rng.random(N) < 0.9), scores, np.nan)

    for _ in range(runs):
        lot = rng.normal(size=N)
        first, second = (model(decided, cec=scored(mean, lot)) for mean in (0.45, 0.5))
        found = difference(resampled(PEOPLE, [first, second], rng, 200), "cec", 0, 1)
        covered += found.low <= 0.05 <= found.high
        halves.append((found.high - found.low) / 2)
    assert covered >= 180
    assert np.mean(halves) < 0.05, "the difference is seen"
    same = difference(resampled(PEOPLE, [first, first], rng, 50), "cec", 0, 1)
    assert (same.value, same.low, same.high, same.p) == (0, 0, 0, 1)
    unexplained = resampled(PEOPLE, [first, model(decided)], rng, 20)
    assert np.isnan(difference(unexplained, "cec", 0, 1).value)


def test_a_drawn_decision_counts_by_its_probability():
    half = model(np.full(N, 0.5))
    both = resampled(PEOPLE, [half, half], np.random.default_rng(0), 20)
    assert both.points["accuracy"][0, 0] == 0.5
    assert both.points["sp_gap"][0, 0] == 0


def test_three_states_of_dominance():
    rng = np.random.default_rng(6)
    worse = (0.6, 0.1, 0.7, 0.4)
    models = [model(rows) for rows in (*planted(rng, (FIRST, worse), 0.9),)]
    both = resampled(PEOPLE, models, rng, 300)
    assert [dominance(both, at) for at in (0, 1)] == [NOT_DOMINATED, DOMINATED]
    alike = [model(rows) for rows in planted(rng, (FIRST, FIRST), 0.5)]
    assert {dominance(resampled(PEOPLE, alike, rng, 300), at) for at in (0, 1)} == {CANNOT_TELL}


def test_comparable_performance_is_shown_and_not_assumed():
    rng, runs = np.random.default_rng(8), 60
    first, second = planted(rng, (FIRST, FIRST), 0.995)
    assert comparable(resampled(PEOPLE, [model(first), model(second)], rng, 200), 0, 1, "accuracy", 0.05) == COMPARABLE
    margin = truths(FIRST)["accuracy"] - truths(SECOND)["accuracy"]
    states = [
        comparable(
            resampled(PEOPLE, [model(d) for d in planted(rng, (FIRST, SECOND))], rng, 100), 0, 1, "accuracy", margin
        )
        for _ in range(runs)
    ]
    assert states.count(COMPARABLE) <= 7, "a model that is worse by the whole margin passes in 5 % of comparisons"
    assert states.count(CANNOT_TELL) > 40
    bad = resampled(PEOPLE, [model(first), model(~first)], rng, 200)
    assert comparable(bad, 0, 1, "accuracy", 0.01) == WORSE
    assert comparable(bad, 0, 1, "auc", 0.01) == CANNOT_TELL
