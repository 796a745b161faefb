"""Planted lenders: intervals that cover the true effects, refits that widen those of CST, and a p that keeps its level.

Limits are the binomial 99 % points of what is promised; ``planted_situations.coverage`` with more repetitions gives
the figures of docs/methods/cst.md.
"""

import numpy as np
import pytest
from planted_situations import BETTER, DIRECT, MEDIATED, NOISE, SETTINGS, Lender, coverage, draw
from scipy.stats import binom

from tasks.methods.cst.algorithm.contrasts import ADJUSTED, RAW, Sides, designs_of, fit_side, sides_of
from tasks.methods.cst.algorithm.effects import MOST_COMPLAINANTS, Mover, resample, structural_variances
from tasks.numerics.problem import Counterfactuals

REPS = 40


@pytest.mark.long
@pytest.mark.parametrize("lender", [NOISE, MEDIATED, DIRECT, BETTER], ids=["noise", "mediated", "direct", "better"])
def test_intervals_cover_and_errors_are_of_the_right_size(lender):
    least = binom.ppf(0.01, REPS, 0.95) / REPS
    for name, (bias, sd, se, covered) in coverage(lender, 1500, REPS).items():
        assert covered >= least, name
        assert abs(bias) < 2.6 * sd / REPS**0.5 + 0.003, name
        assert 0.65 < se / sd < 1.55, name


def test_finances_that_differ_are_no_direct_effect():
    """Unadjusted, the same neighbours give several points, and denials in excess, with equal treatment."""
    raw, adjusted, shares = [], [], []
    for seed in range(20):
        drawn = draw(Lender(worse=0.5), 1500, seed)
        st, _ = drawn.effects(refitted=False)
        raw.append(st.contrast.raw @ drawn.denied)
        adjusted.append(st.value)
        shares.append([drawn.excess(st, numerator).value for numerator in (RAW, ADJUSTED)])
    assert np.mean(raw) > 0.03
    assert abs(np.mean(adjusted)) < 0.02
    counted, mended = np.mean(shares, axis=0)
    assert abs(mended) < 0.04 < 0.06 < counted


def test_refits_add_what_the_causal_model_is_worth():
    drawn = draw(MEDIATED, 1500, 1)
    (_, known), (_, refitted) = drawn.effects(refitted=False), drawn.effects()
    assert known.value == refitted.value
    structural = refitted.contrast.structural
    assert refitted.se**2 == pytest.approx(known.se**2 + structural)
    estimates = []
    for seed in range(60):
        again = np.random.default_rng(seed).integers(0, 1500, 1500)
        estimates.append(drawn.imagined(again)[:, :2].mean(axis=0))
    assert 0 < structural < 10 * np.var(estimates, axis=0).sum()


def test_structural_variance_by_hand():
    """A model that moves everybody by the mean of a sample: its variance is that of the mean, times the slope."""
    drawn = draw(DIRECT, 1500, 2)
    own, rng = np.flatnonzero(drawn.member), np.random.default_rng(0)
    noise = np.where(drawn.member, 0.0, rng.normal(size=1500))
    designs = designs_of(drawn.columns)[1:] * 2
    rows, denied = (own, np.flatnonzero(~drawn.member)), drawn.denied.astype(float)
    sides = Sides(*(fit_side(designs, drawn.values, each, denied) for each in rows))  # without the score, linear in x

    def moved(rows, mean):
        return drawn.values[rows] + [mean, 0, 0, 0]

    def again(rows, sample):
        return Counterfactuals(rows, moved(rows, noise[sample].sum() / 1500), None)

    mover = Mover.of(own, moved(own, noise.mean()), sides.other)
    (found,) = structural_variances(again, [mover], drawn.member.astype(np.int32), rng)
    slope = sides.other.coefficients[1] / drawn.values[:, 0].std()
    others = noise[~drawn.member]
    assert found == pytest.approx(slope**2 * len(others) * others.var() / 1500**2, rel=0.6)


def test_a_resample_keeps_every_label_and_the_shares():
    group = np.repeat(np.array([0, 1, 2], np.int32), [900, 99, 1])
    found = resample(group, 500, np.random.default_rng(0))
    assert np.bincount(group[found]).tolist() == [450, 50, 1]
    assert (np.diff(found) >= 0).all()
    assert len(np.unique(found)) < 500


def test_who_cannot_be_moved_again_counts_as_unchanged():
    drawn = draw(DIRECT, 1500, 3)
    own = np.flatnonzero(drawn.member)
    sides = sides_of(
        designs_of(drawn.columns), drawn.values, (own, np.flatnonzero(~drawn.member)), drawn.denied.astype(float)
    )
    mover = Mover.of(own, drawn.values[own], sides.other)
    everyone = Counterfactuals(own, drawn.values[own] + [1.0, 0, 0, 0], None)
    half = Counterfactuals(own[::2], everyone.values[::2], None)
    design, b = sides.other.design, sides.other.coefficients
    worth = (design.of(everyone.values) - design.of(mover.counterfactuals)) @ b
    assert mover.shift(everyone) == pytest.approx(worth.mean())
    assert mover.shift(half) == pytest.approx(worth[::2].sum() / len(own))
    many = Mover.of(np.arange(MOST_COMPLAINANTS + 5), np.zeros((MOST_COMPLAINANTS + 5, 4)), sides.other)
    assert len(many.some(np.random.default_rng(0)).row) == MOST_COMPLAINANTS


def test_both_decision_makers_see_the_same_resamples():
    drawn = draw(MEDIATED, 1500, 4)
    first, second = (drawn.effects(seed=7, settings=SETTINGS)[1] for _ in range(2))
    assert (first.value, first.se) == (second.value, second.se)
