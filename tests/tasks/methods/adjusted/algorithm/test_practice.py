"""Plain comparisons: figures of solas-ai 0.6.0 on one table, signs, undefined ratios, chi-square as by hand."""

import numpy as np
import pytest
from conftest import fingerprint
from scipy.stats import chi2_contingency

from tasks.methods.adjusted.algorithm.practice import (
    approved_by_score,
    holm,
    impact_ratios,
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


def impact_ratio(counts, level):
    return impact_ratios([counts], level)[0]


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


SOLAS_EXAMPLE = {
    # group: approved, people, the same of its reference; adverse impact ratio; odds ratio; pooled SMD of the score
    "Black": ((141, 340, 1854, 3623), 0.810398819722064, 0.676058284952269, 0.2921451779202927),
    "Asian": ((243, 327, 1854, 3623), 1.452168878596241, 2.760228848821082, -0.7096008677558952),
    "Native American": ((9, 20, 1854, 3623), 0.879368932038835, 0.780670785525154, 0.2877621925866193),
    "Hispanic": ((167, 508, 2072, 3808), 0.604171100234092, 0.410319410319410, 0.4382509437760054),
    "Female": ((414, 1034, 808, 1622), 0.803746864048107, 0.672700415202811, 0.1733036658608066),
}
"""Of the mortgages in the notebook of calculations of solas-ai 0.6.0, by the package: the best half is approved."""
SOLAS_MOMENTS = {
    "Black": (0.04748592234411765, 0.0018036325476394864),
    "Asian": (0.04516462534862386, 0.0030857247650564225),
    "Native American": (0.04748728935, 0.002713356501928063),
    "Hispanic": (0.047666742744094485, 0.002001495317976802),
    "Female": (0.04726822974371373, 0.0020455561804888747),
    "White": (0.04683256139138835, 0.0022727187710210477),
    "Non-Hispanic": (0.046634410712447484, 0.0023987869962734513),
    "Male": (0.046873380542540075, 0.002415047051490521),
}
"""Mean and standard deviation of the predicted rate in each group there."""
SOLAS_QUANTILES = {
    # the best tenth is approved
    (13, 340, 317, 3623): 0.43699202078307664,
    (91, 327, 317, 3623): 3.1805535457606187,
    (1, 20, 317, 3623): 0.5714511041009463,
    (15, 508, 409, 3808): 0.2749167356525422,
    (66, 1034, 153, 1622): 0.6766791823112223,
}


def values_with(n, mean, deviation):
    """``n`` values with that mean and standard deviation."""
    grid = np.linspace(-1, 1, n)
    return mean + deviation * (grid - grid.mean()) / grid.std(ddof=1)


@pytest.mark.parametrize("group", SOLAS_EXAMPLE)
def test_the_example_of_solas_has_its_figures(group):
    counts, ratio, odds, standardised = SOLAS_EXAMPLE[group]
    assert impact_ratio(counts, 0.95).value == pytest.approx(ratio, abs=1e-9)
    assert odds_ratio(counts, 0.95).value == pytest.approx(odds, abs=1e-9)
    other = {"Hispanic": "Non-Hispanic", "Female": "Male"}.get(group, "White")
    values = [values_with(n, *SOLAS_MOMENTS[name]) for n, name in ((counts[1], group), (counts[3], other))]
    members = np.repeat([True, False], [counts[1], counts[3]])
    found = standardised_difference(np.concatenate(values), members, ~members, 0.95)
    assert found.value == pytest.approx(standardised, abs=1e-9)


@pytest.mark.parametrize(("counts", "ratio"), SOLAS_QUANTILES.items())
def test_the_best_tenth_of_the_example_has_the_ratios_of_solas(counts, ratio):
    assert impact_ratio(counts, 0.95).value == pytest.approx(ratio, abs=1e-9)


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


RESULTS = {
    "shares": lambda: [share_of(9, 30, (20, 90), 0.9), share_of(0, 30, (90, 90), 0.95), share_of(3, 9, None, 0.9)],
    "nobody": lambda: [share_of(0, 0, (1, 2), 0.95), share_of(1, 2, (0, 0), 0.95), share_of(0, 0, None, 0.95).value],
    "mixes": lambda: [
        mix_test({"debt": 30, "history": 20, "other": 2}, {"debt": 60, "history": 90, "collateral": 3}),
        mix_test({"debt": 30}, {"debt": 10}),
        mix_test({}, {"debt": 10}),
        mix_test({"debt": 5, "history": 5}, {"debt": 5, "history": 5}),
    ],
    "differences": lambda: [
        standardised_difference(SCORE, BLACK, ~BLACK, 0.9),
        standardised_difference(SCORE, ROW < 9, ROW > 9, 0.95),
        standardised_difference(SCORE, ROW < 10, ROW >= 10, 0.95),
        standardised_difference(np.ones(600), BLACK, ~BLACK, 0.95),
        standardised_difference(np.where(ROW % 7 == 0, np.nan, SCORE), BLACK, ~BLACK, 0.95),
    ],
    "ratios": lambda: [
        of((a, 40, b, 90), 0.9) for of in (impact_ratio, odds_ratio) for a in (0, 9, 40) for b in (0, 30)
    ],
    "no group": lambda: [
        of(counts, 0.9) for of in (impact_ratio, odds_ratio) for counts in ((0, 0, 3, 9), (2, 4, 0, 0))
    ],
    "holm": lambda: [holm([0.01, np.nan, 0.04, 0.03]), holm([]), holm([0.9, 0.8])],
    "by score": lambda: [np.flatnonzero(approved_by_score(np.round(SCORE, 1), share)) for share in (0.1, 0.5, 0.9)],
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_stay_what_they_are(name):
    """Kept from an earlier run: every field of plain comparisons, empty ones included. A number that moves is seen."""
    assert fingerprint(RESULTS[name]()) == pytest.approx(HELD[name], rel=1e-9, abs=1e-5)


HELD = {
    "shares": {"0": 91.660883, "1": 50.775871, "2": 113.753296},
    "nobody": {"0": 99.741204, "1": 109.427959, "2": 7.621406},
    "mixes": {"0": 15.978427, "1": 32.431677, "2": 32.486002, "3": 20.934543},
    "differences": {"0": 56.797995, "1": 105.214512, "2": 69.560811, "3": 111.240253, "4": 56.658781},
    "ratios": {
        "0": 113.124642,
        "1": 99.271276,
        "2": 122.147708,
        "3": 123.841286,
        "4": 124.124856,
        "5": 132.889676,
        "6": 116.691496,
        "7": 131.090538,
        "8": 125.714563,
        "9": 123.095655,
        "10": 127.691711,
        "11": 142.090753,
    },
    "no group": {"0": 108.04907, "1": 107.145567, "2": 111.615925, "3": 110.712421},
    "holm": {"0": 46.742536, "1": 0.0, "2": 29.491448},
    "by score": {"0": 1438.213241, "1": 6936.7447, "2": 12215.67011},
}
