"""Rows of the league: figures of published rows, p beyond its printed bound, ratios on their logarithm."""

import math

import pytest
from scipy.stats import norm

from schemas.terms import Theory
from tasks.metrics.league.rows import WITHHELD, Census, Entrant, Figure, of_measure, of_verdict, standings

MEASURE = {
    **{"measure": "denial_rate_ratio", "reference_group": "white", "value": 2.0, "low": 1.5, "high": 2.7, "n": 90},
    **{"note": "", "state": "no_limit", "reason": "no limit is set"},
}
VERDICT = {
    **{"theory": Theory.APPROVAL_RATES, "role": "primary"},
    **{"value": 0.7, "low": 0.6, "high": 0.81, "plain_low": 0.58, "plain_high": 0.84, "se": 0.09, "scale": "log"},
    **{"bias": 0.0, "limit": 0.8, "side": "at_least", "p_breach": 0.07, "robustness": None, "detectable": 0.65},
    **{"n": 90, "state": "inconclusive", "reason": "r", "withheld": False},
}


def table(*figures, everybody=None):
    return standings([(Entrant(f"L{n}"), each) for n, each in enumerate(figures)], everybody)


def test_a_measure_has_the_error_of_its_interval_on_its_scale():
    found = of_measure(MEASURE, covers=True)
    assert found.logarithmic
    assert found.se == pytest.approx((math.log(2.7) - math.log(1.5)) / (2 * norm.isf(0.025)))
    assert found.detectable == pytest.approx(math.exp(-(norm.isf(0.025) + norm.isf(0.2)) * found.se))
    assert of_measure({**MEASURE, "note": "range"}, covers=True).se is None
    assert of_measure(MEASURE, covers=False).se is None
    assert of_measure({**MEASURE, "low": 0.0}, covers=True).se is None


def test_withheld_rows_have_no_numbers():
    assert of_measure({**MEASURE, "value": None, "n": None}, covers=True) == WITHHELD
    found = of_verdict({**VERDICT, "withheld": True})
    assert found.withheld
    assert (found.value, found.n, found.p) == (None, None, None)


def test_a_rate_of_few_people_is_its_counts():
    few = {"value": None, "reason": "3 of 7 denied", "n": 7, "state": "not_run", "se": None, "detectable": None}
    assert of_verdict({**VERDICT, **few}).counts == "3 of 7 denied"
    assert of_measure({**MEASURE, "value": None, "n": 7, "reason": "3 of 7"}, covers=True).counts == "3 of 7"
    assert of_verdict(VERDICT).counts == ""
    assert of_verdict({**VERDICT, **few, "withheld": True}).counts == ""
    assert Census(1, without_value=3).outside is None
    assert Census(1, 0, 0, 0, 3, withholds=False).words.endswith("3 rows belong to none.")
    assert Census(1, 0, 0, 0, 3).words.endswith("A few rows belong to none.")


def test_ratios_are_pooled_on_their_logarithm():
    made = [of_verdict({**VERDICT, "value": v}) for v in (0.6, 0.7, 0.8, 0.9, 1.0)]
    found = table(*made)
    assert found.logarithmic
    assert all(line.pooled_low < line.pooled < line.pooled_high for line in found.lines)
    assert math.log(found.lines[0].pooled / found.lines[0].pooled_low) == pytest.approx(
        math.log(found.lines[0].pooled_high / found.lines[0].pooled)
    )


def test_a_printed_thousandth_is_told_by_estimate_error_and_bias():
    of = {
        "theory": Theory.SIMILAR_APPLICANTS,
        "se": 0.05,
        "limit": 0.02,
        "side": "at_most",
        "scale": "linear",
        "p_breach": 0.001,
    }
    ends = {"value": 0.32, "plain_low": 0.222, "plain_high": 0.418, "low": 0.23, "high": 0.4}
    found = table(of_verdict({**VERDICT, **of, **ends}), of_verdict({**VERDICT, **of, **ends, "bias": 0.1}))
    assert found.lines[0].p == pytest.approx(norm.sf(6), rel=0.05)
    assert found.lines[1].p == pytest.approx(norm.sf(4), rel=0.05)
    exact = of_verdict({**VERDICT, **of, **ends, "p_breach": 0.004})
    assert table(exact, exact).lines[0].p == 0.004


def test_screened_needs_both_q_and_the_verdict_interval():
    far = {
        "theory": Theory.SIMILAR_APPLICANTS,
        "value": 0.32,
        "se": 0.05,
        "low": 0.2,
        "high": 0.4,
        "p_breach": 0.001,
        "side": "at_most",
        "limit": 0.02,
    }
    beyond = of_verdict({**VERDICT, **far, "scale": "linear", "plain_low": 0.22, "plain_high": 0.42})
    across = of_verdict({**VERDICT, **far, "low": 0.01, "scale": "linear", "plain_low": 0.22, "plain_high": 0.42})
    assert [line.screened for line in table(beyond, across).lines] == [True, False]


def test_what_has_no_error_is_neither_pooled_nor_tested_and_comes_last():
    made = [Figure(value=0.5, n=50), *(of_verdict({**VERDICT, "value": v}) for v in (0.9, 0.6))]
    found = table(*made, everybody=Figure(value=0.4))
    assert [line.entrant.value for line in found.lines] == ["L2", "L1", "L0"]
    assert found.lines[-1].pooled is None
    assert found.lines[-1].difference == pytest.approx(0.1)
    assert found.tested == 2
