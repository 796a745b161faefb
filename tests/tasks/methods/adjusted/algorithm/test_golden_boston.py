"""Golden values of the ladder on the Boston study (textbooks' form), to the printed digit."""

import numpy as np
import pytest
from boston_applications import boston_applications

from tasks.methods.adjusted.algorithm.design import build_design, complete_rows
from tasks.methods.adjusted.algorithm.estimators import Effect
from tasks.methods.adjusted.algorithm.ladder import Ladder, climb
from tasks.methods.adjusted.algorithm.propensity import aipw_effect, expected_denials, fit_propensity, pair_rows
from tasks.methods.adjusted.settings import AdjustedSettings

BLACK, HISPANIC = 1, 2

# rung, group: odds ratio; own effect, error; effect over all; LPM, error; robustness value; E-value
PRINTED = {
    (0, BLACK): ("4.828", ".2342", ".0341", ".2342", ".2342", ".0341", ".196", "6.63"),
    (1, BLACK): ("3.765", ".2033", ".0342", ".1781", ".1972", ".0339", ".167", "4.79"),
    (2, BLACK): ("3.556", ".1931", ".0343", ".1579", ".1833", ".0339", ".158", "4.37"),
    (3, BLACK): ("2.504", ".1326", ".0333", ".0955", ".1309", ".0321", ".118", "2.77"),
    (0, HISPANIC): ("3.105", ".1457", ".0411", ".1457", ".1457", ".0411", ".099", "4.66"),
    (1, HISPANIC): ("2.513", ".1234", ".0398", ".1082", ".1191", ".0402", ".082", "3.60"),
    (2, HISPANIC): ("2.567", ".1222", ".0381", ".1058", ".1171", ".0390", ".082", "3.56"),
    (3, HISPANIC): ("2.409", ".1068", ".0366", ".0904", ".1020", ".0375", ".074", "3.05"),
}


@pytest.fixture(scope="module")
def ladder() -> Ladder:
    settings = AdjustedSettings(form="linear", splits=2)
    return climb(boston_applications(), settings, 0.95, np.random.default_rng(0))


def one(ladder: Ladder, rung: int, group: int, estimator: str, over: str) -> Effect:
    found = [
        each
        for each in ladder.effects
        if (each.rung, each.group, each.estimator, each.average_over) == (rung, group, estimator, over)
    ]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(("rung", "group"), PRINTED)
def test_logit_and_linear_fit(ladder: Ladder, rung: int, group: int) -> None:
    own, every, linear = (
        one(ladder, rung, group, *which) for which in (("logit", "own"), ("logit", "all"), ("lpm", "all"))
    )
    obtained = (own.odds_ratio, own.value, own.se, every.value, linear.value, linear.se, linear.rv, own.e_value)
    for printed, value in zip(PRINTED[rung, group], obtained, strict=True):
        assert value == pytest.approx(float(printed), abs=0.501 * 10.0 ** -len(printed.split(".")[1]))


def test_rows(ladder: Ladder) -> None:
    assert ladder.used == 1984
    assert [(each.reason, each.group, each.rows, each.denied) for each in ladder.left_out] == [
        ("missing multi", 0, 4, 2),
        ("missing dep", HISPANIC, 1, 0),
    ]
    assert one(ladder, 3, BLACK, "logit", "own").n == 197
    assert one(ladder, 3, BLACK, "logit", "own").events == 64


def test_overlap_and_support(ladder: Ladder) -> None:
    assert one(ladder, 3, BLACK, "overlap", "overlap").value == pytest.approx(0.121, abs=0.0005)
    support = next(each for each in ladder.support if (each.rung, each.group) == (3, BLACK))
    assert support.inside == pytest.approx(0.92, abs=0.005)
    assert (support.column_raw, round(support.difference_raw, 3)) == ("chist", 0.575)
    assert support.difference_weighted < 1e-5


def test_aipw_agrees_with_the_printed_value_within_what_splits_move() -> None:
    """Printed .114 (.045) from other splits: medians of 20 splits move by .005 (here 100 splits)."""
    applications = boston_applications()
    design = build_design(applications, complete_rows(applications), "linear")
    propensity = fit_propensity(pair_rows(design, BLACK, 3))
    found = aipw_effect(propensity, expected_denials(design, 3, 5, 100, np.random.default_rng(0)), 0.95)
    assert found.value == pytest.approx(0.114, abs=0.004)
    assert found.se == pytest.approx(0.045, abs=0.003)


def test_support_of_hispanic_applicants_on_the_last_rung_is_judged_at_equal_sizes(ladder: Ladder) -> None:
    """As printed, 76 % of them have a propensity in [0.05, 0.95]; at equal sizes of both groups all but one do."""
    support = next(each for each in ladder.support if (each.rung, each.group) == (3, HISPANIC))
    assert support.inside == pytest.approx(0.76, abs=0.005)
    assert support.comparable == pytest.approx(109 / 110)
    assert one(ladder, 3, HISPANIC, "logit", "own").support == support.comparable
    assert one(ladder, 3, HISPANIC, "logit", "own").reason == ""
    assert one(ladder, 3, BLACK, "logit", "own").reason == ""
