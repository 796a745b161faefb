"""Plain comparisons: figures of solas-ai 0.6.0 on one table, signs, undefined ratios, chi-square as by hand."""

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from tasks.methods.adjusted.algorithm.practice import (
    approved_by_score,
    holm,
    impact_ratio,
    mix_test,
    odds_ratio,
    share_of,
    standardised_difference,
)

ROW = np.arange(600)
BLACK = ROW % 3 == 0
SCORE = ((ROW * 7919) % 1009) / 1009 - 0.12 * BLACK
SOLAS_BY_QUANTILE = {
    0.1: 0.181818181818182,
    0.2: 0.553191489361702,
    0.5: 0.803738317757009,
    0.8: 0.865671641791045,
    0.9: 0.872340425531915,
}
"""Share approved -> ratio, by ``adverse_impact_ratio_by_quantile`` of solas-ai 0.6.0 on the same scores."""


def counts_of(event):
    return tuple(int(mask.sum()) for mask in (event & BLACK, BLACK, event & ~BLACK, ~BLACK))


def test_ratio_odds_and_standardised_difference_are_those_of_solas():
    approved = SCORE > 0.35
    assert impact_ratio(counts_of(approved), 0.95).value == pytest.approx(0.838461538461538, abs=1e-9)
    assert odds_ratio(counts_of(approved), 0.95).value == pytest.approx(0.644970414201183, abs=1e-9)
    smd = standardised_difference(SCORE, BLACK, ~BLACK, 0.95)
    assert smd.value == pytest.approx(-0.38062915730124601, abs=1e-9)


@pytest.mark.parametrize(("share", "theirs"), SOLAS_BY_QUANTILE.items())
def test_ratios_by_quantile_of_the_score_are_those_of_solas(share, theirs):
    assert impact_ratio(counts_of(approved_by_score(SCORE, share)), 0.95).value == pytest.approx(theirs, abs=1e-9)


def test_exchanged_groups_change_the_sign_of_a_standardised_difference_alone():
    own, other = (standardised_difference(SCORE, *masks, 0.95) for masks in ((BLACK, ~BLACK), (~BLACK, BLACK)))
    assert own.value == -other.value
    assert (own.low, own.high) == pytest.approx((-other.high, -other.low))


def test_few_or_equal_values_have_no_standardised_difference():
    few = np.where(ROW < 20, SCORE, np.nan)
    assert standardised_difference(few, BLACK, ~BLACK, 0.95).reason.startswith("too_few_values")
    assert standardised_difference(np.ones(600), BLACK, ~BLACK, 0.95).reason.startswith("no_spread")


def test_a_score_that_many_share_approves_all_of_them():
    tied = np.array([1.0] * 6 + [0.0] * 4)
    assert approved_by_score(tied, 0.3).sum() == 6


def test_empty_cells_make_no_ratio():
    assert odds_ratio((0, 10, 5, 10), 0.95).reason.startswith("undefined")
    assert impact_ratio((5, 10, 0, 10), 0.95).reason.startswith("undefined")


def test_a_mix_is_tested_by_chi_square_with_rare_reasons_together():
    own, reference = {"1": 58, "3": 2, "4": 6, "9": 7}, {"1": 91, "3": 9, "4": 6, "9": 16}
    table = [[58, 7, 2 + 6], [91, 16, 9 + 6]]
    p, why = mix_test(own, reference)
    assert (p, why) == (pytest.approx(chi2_contingency(table, correction=False).pvalue), "")
    assert mix_test({"1": 30}, {"1": 90})[1].startswith("too_few_reasons")
    assert mix_test({}, {"1": 90})[1].startswith("no_denials")


def test_holm_leaves_tests_out_that_were_not_made():
    assert holm([0.01, float("nan"), 0.04])[0] == pytest.approx(0.02)
    assert np.isnan(holm([0.01, float("nan")])[1])


def test_a_difference_of_shares_has_the_sign_of_the_group_less_the_reference():
    share = share_of(30, 100, (10, 100), 0.95)
    assert share.difference == pytest.approx(0.2)
    assert 0 < share.difference_low < 0.2 < share.difference_high
