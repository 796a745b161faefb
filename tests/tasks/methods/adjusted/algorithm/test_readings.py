"""Other readings of the judged effect: files left out, undecided ones, places, bands."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import fingerprint
from scipy.special import expit
from scipy.stats import norm

from tasks.methods.adjusted.algorithm import ladder
from tasks.methods.adjusted.algorithm.design import Control
from tasks.methods.adjusted.algorithm.examined import Examined, Files, Rules, approval_error, examine
from tasks.methods.adjusted.algorithm.expected import LimitRule, effect_on, rule_of
from tasks.methods.adjusted.algorithm.parts import Split
from tasks.methods.adjusted.algorithm.readings import (
    allowance,
    p_of_dependence,
    undecided_rates,
    weights_of_complete,
    worst_of_missing,
    worst_of_undecided,
)

RULES = Rules(LimitRule(0.02, 0.5, 0.2, 0.005))


def lender(seed: int = 0, n: int = 4000, harm: float = 0.0) -> Files:
    rng = np.random.default_rng(seed)
    member = rng.random(n) < 0.3
    numbers = rng.standard_normal((n, 2))
    denied = rng.random(n) < expit(-1.2 + numbers @ [0.8, -0.5] + harm * member)
    controls = tuple(Control(f"x{place}", "number", column) for place, column in enumerate(numbers.T))
    return Files(denied, np.zeros(n, np.bool_), member.astype(np.int32), ("A", "B"), 0, controls)


def only(files: Files) -> Examined:
    (examined,) = examine(files, RULES, np.random.default_rng(0))
    return examined


def emptied(files: Files, rows: np.ndarray) -> Files:
    first = files.controls[0]
    return replace(files, controls=(replace(first, values=np.where(rows, np.nan, first.values)), *files.controls[1:]))


def test_files_emptied_by_decision_move_the_effect_and_their_weights_move_it_back():
    files = lender(harm=0.8)
    whole = only(files).effect.value
    rng = np.random.default_rng(1)
    gone = files.denied & (files.group == 1) & (rng.random(len(files.denied)) < 0.6)
    examined = only(emptied(files, gone))
    assert examined.depends
    assert examined.effect.value < whole - 0.08
    assert examined.readings["weighted"].value == pytest.approx(whole, abs=0.03)
    (left_out,) = examined.left_out
    assert (left_out.what, left_out.n, left_out.denied) == ("x0", int(gone.sum()), int(gone.sum()))
    assert left_out.share_denied == pytest.approx(0.6, abs=0.06)
    assert left_out.worst_low < examined.readings["weighted"].value < left_out.worst_high
    assert left_out.share_reference == left_out.n_reference / (files.group == 0).sum() == 0
    weighted = examined.readings["weighted"]
    half = norm.isf(0.025) * weighted.error.se
    assert [left_out.low, left_out.high] == pytest.approx([weighted.value - half, weighted.value + half])


def layered(seed: int) -> tuple[Files, float]:
    """Denied where two numbers are high at once, which go together in the group alone; what the rule denies of it."""
    rng = np.random.default_rng(seed)
    member = rng.random(6000) < 0.25
    first, second = rng.standard_normal((2, 6000))
    tie = np.where(member, 0.8, -0.2)
    second = tie * first + np.sqrt(1 - tie**2) * second
    chance = np.where((first > 0.5) & (second > 0.5), 0.85, 0.07)
    controls = Control("debt", "number", first), Control("loan", "number", second)
    group, none = member.astype(np.int32), np.zeros(6000, np.bool_)
    return Files(rng.random(6000) < chance, none, group, ("A", "B"), 0, controls), float(chance[member].mean())


@pytest.mark.parametrize("many", [ladder.MANY, 1_000], ids=["all rows", "chosen on a sample"])
def test_two_cut_offs_at_once_are_expected_of_the_group_in_which_they_meet(many, monkeypatch):
    for name, value in (("MANY", many), ("LOOKED_AT_ROWS", 3_000), ("LOOKED_AT_MEMBERS", 3_000)):
        monkeypatch.setattr(ladder, name, value)
    missed = []
    for seed in range(2, 6):
        files, truth = layered(seed)
        examined = examine(files, replace(RULES, parts=None), np.random.default_rng(0))[0]
        assert any("cut at" in term for term in examined.terms)
        missed.append(truth - examined.effect.expected)
    assert abs(np.mean(missed)) < 0.008  # by hinges and products alone 0.014


def test_random_gaps_leave_the_effect_and_depend_on_nothing():
    files = lender(2)
    rng = np.random.default_rng(5)
    examined = only(emptied(files, rng.random(len(files.denied)) < 0.1))
    assert not examined.depends
    assert examined.readings["weighted"].difference == pytest.approx(0, abs=0.01)


def test_denials_filed_as_withdrawn_are_an_excess_that_counts_as_denied():
    files = lender(3, harm=1.0)
    truth = only(files).effect.value
    rng = np.random.default_rng(2)
    undecided = files.denied & (files.group == 1) & (rng.random(len(files.denied)) < 0.6)
    examined = only(replace(files, denied=files.denied & ~undecided, undecided=undecided))
    assert examined.effect.value < truth / 2
    assert examined.excess.differs
    assert examined.excess.excess > 0.1
    assert examined.readings["undecided"].value == pytest.approx(truth, abs=0.02)


def test_applications_that_end_alike_without_a_decision_dilute_no_effect():
    files = lender(harm=1.5, n=8000)
    whole = only(files).effect.value
    ended = np.random.default_rng(3).random(len(files.denied)) < 0.3
    hidden = files.denied & (files.group == 1) & (np.random.default_rng(4).random(len(files.denied)) < 0.5)
    spoiled = replace(files, denied=files.denied & ~ended & ~hidden, undecided=ended | hidden)
    examined = only(spoiled)
    assert examined.effect.value < whole - 0.1
    assert examined.excess.as_denied == pytest.approx(whole, abs=0.02)  # 0.7 times it, undivided


def test_approvals_that_are_not_taken_are_an_excess_that_counts_as_approved():
    files = lender(7, n=6000)
    whole = only(files).effect.value
    member = files.group == 1
    ended = np.random.default_rng(8).random(len(files.denied)) < np.where(member & ~files.denied, 0.4, 0.03)
    examined = only(replace(files, denied=files.denied & ~ended, undecided=ended))
    assert examined.effect.value > whole + 0.05
    assert examined.readings["undecided_approved"].value == pytest.approx(whole, abs=0.02)
    gone = emptied(replace(files, denied=files.denied & ~ended, undecided=ended), ended)
    assert only(gone).readings["undecided_approved"].value == pytest.approx(whole, abs=0.03)


def test_the_error_of_a_ratio_of_approvals_is_that_of_two_shares():
    files = lender(1, n=600)
    ended = np.random.default_rng(2).random(600) < 0.2
    files = replace(files, denied=files.denied & ~ended, undecided=ended)
    decided, approved = ~ended, ~ended & ~files.denied
    variance = 0.0
    for group in (0, 1):
        n = int((decided & (files.group == group)).sum())
        rate = (approved & (files.group == group)).sum() / n
        variance += (1 - rate) / (n * rate)
    assert approval_error(files, 1).se == pytest.approx(np.sqrt(variance))
    branches = replace(files, cluster=np.arange(600, dtype=np.int32) // 2)
    assert approval_error(branches, 1).se == pytest.approx(np.sqrt(variance), rel=0.15)
    assert approval_error(branches, 1).df < np.inf
    assert np.isnan(approval_error(replace(files, denied=~ended & (files.group == 1)), 1).se)


def test_counts_alone_give_the_excess_of_undecided_applications_and_its_errors():
    effect = effect_on(
        rule_of(np.ones((400, 1)), np.tile([1.0, 0, 0, 0], 100), np.arange(400) < 300), np.arange(400) >= 300
    )
    excess = undecided_rates((30, 100), (30, 300), effect)
    variance = 0.3 * 0.7 / 100 + 0.1 * 0.9 / 300
    assert (excess.excess, excess.of_excess.se) == pytest.approx((0.2, np.sqrt(variance)))
    assert excess.as_denied == pytest.approx((0.7 * effect.value + 0.2) / 0.9)
    assert excess.as_approved == pytest.approx((0.7 * effect.value - 0.2 * effect.expected) / 0.9)
    assert excess.of_denied.se == pytest.approx(np.sqrt(variance + (effect.influence**2).sum()) / 0.9)


def test_undecided_files_without_columns_are_counted_all_the_same():
    files = lender(4)
    undecided = (files.group == 1) & (np.random.default_rng(3).random(len(files.denied)) < 0.2)
    files = emptied(replace(files, denied=files.denied & ~undecided, undecided=undecided), undecided)
    assert only(files).excess.excess == pytest.approx(0.2, abs=0.03)


def test_a_rule_about_places_goes_through_places_and_not_into_the_effect():
    rng = np.random.default_rng(6)
    n = 5000
    member = rng.random(n) < 0.3
    place = np.where(rng.random(n) < np.where(member, 0.7, 0.15), 1, 0)
    denied = rng.random(n) < expit(-1.6 + 1.4 * place)
    where = Control("zip", "category", place.astype(float), ("1", "2"))
    none = np.zeros(n, np.bool_)
    files = Files(denied, none, member.astype(np.int32), ("A", "B"), 0, (), (where,))
    examined = only(files)
    assert examined.effect.value > 0.1
    assert examined.readings["place"].value == pytest.approx(0, abs=0.05)
    assert -examined.readings["place"].difference > 5 * examined.readings["place"].of_difference.se


def test_a_rule_that_gets_stricter_is_no_effect_inside_the_quarters():
    files = lender(5, n=6000)
    rng = np.random.default_rng(6)
    late = np.where(files.group == 1, rng.choice(4, 6000, p=[0.1, 0.2, 0.3, 0.4]), rng.choice(4, 6000))
    denied = rng.random(6000) < expit(-2 + 0.8 * late + files.controls[0].values)
    quarter = Split("month (quarter)", tuple("1234"), late.astype(np.int32), time=True)
    product = Split("product", ("a", "b"), (rng.random(6000) < 0.5).astype(np.int32))
    examined = only(replace(files, denied=denied, splits=(quarter, product)))
    assert examined.effect.value > 0.05
    assert abs(examined.readings["time"].value) < 0.03
    assert max(abs(part.value) for part in examined.parts if part.column == "product") < 0.04
    blind = only(replace(files, denied=denied, splits=(replace(quarter, time=False), product)))
    assert "time" not in blind.readings
    assert min(part.value for part in blind.parts if part.column == "product") > 0.04
    branch = Split("branch", tuple("1234"), late.astype(np.int32), office=True)
    few = only(replace(files, denied=denied, splits=(branch, product)))
    assert few.readings["office"].value == pytest.approx(examined.readings["time"].value, abs=1e-9)
    assert [part.value for part in few.parts if part.column == "product"] == pytest.approx(
        [part.value for part in examined.parts if part.column == "product"]
    )


def test_a_carrier_tells_the_group_and_the_effect_that_goes_through_it():
    files = lender(7)
    member = files.group == 1
    shifted = replace(files.controls[0], values=files.controls[0].values + 2.5 * member)
    rng = np.random.default_rng(8)
    denied = rng.random(len(member)) < expit(-2.0 + 0.8 * shifted.values)
    carriers = only(replace(files, denied=denied, controls=(shifted, *files.controls[1:]))).carriers
    assert carriers["x0"].auc > 0.9
    assert carriers["x0"].low > 0.1
    assert carriers["x1"].auc < 0.6
    assert abs(carriers["x1"].value) < 0.02


def test_groups_that_lie_alike_in_bands_need_no_allowance_and_others_do():
    rng = np.random.default_rng(9)
    n = 20000
    member = rng.random(n) < 0.3
    allowances = []
    for shift in (0.0, 0.6):
        z = rng.standard_normal(n) + shift * member
        code = np.digitize(z, norm.ppf([0.3, 0.7])).astype(np.int32)
        y = (rng.random(n) < expit(-1.5 + 1.5 * z)).astype(float)
        x = np.column_stack([np.ones(n), code == 1, code == 2]).astype(float)
        rule = rule_of(x, y, ~member)
        slopes = np.array([0.0, *rule.coefficients[1:]])
        allowances.append((allowance(code, rule, member, slopes), effect_on(rule, member).value))
    assert abs(allowances[0][0]) < 0.004
    bias = allowances[1][1]
    assert 0.4 * bias < allowances[1][0] < 1.6 * bias


def test_weights_give_complete_files_the_size_of_their_side_and_decision():
    complete = np.array([1, 1, 0, 0, 1, 1], np.bool_)
    outcome = np.array([0, 0, 0, 1, 1, 0])
    weight = weights_of_complete(complete, outcome, [np.array([1, 1, 1, 1, 1, 0], np.bool_)])
    assert weight.tolist() == [1.5, 1.5, 1.5, 2.0, 2.0, 1.0]


def test_dependence_is_pearsons_chi_square():
    from scipy.stats import chi2_contingency

    rng = np.random.default_rng(0)
    complete, outcome = rng.random(300) < 0.8, (rng.random(300) < 0.4).astype(np.int32)
    table = [[np.sum((complete == c) & (outcome == y)) for y in (0, 1)] for c in (False, True)]
    every = np.ones(300, np.bool_)
    assert p_of_dependence(complete, outcome, every) == pytest.approx(chi2_contingency(table, correction=False).pvalue)
    assert p_of_dependence(every, outcome, every) == 1.0


def test_worst_cases_hold_whatever_the_files_hide():
    assert worst_of_missing(0.1, 0.2, 0.5) == pytest.approx((-0.02, 0.18))
    assert worst_of_undecided(0.1, 0.2, 0.3) == pytest.approx((0.02, 0.22))


def test_a_group_with_too_few_denials_has_a_reason_and_no_effect():
    files = lender(10)
    examined = only(replace(files, denied=files.denied & (files.group == 0)))
    assert examined.effect is None
    assert examined.reason.startswith("too_few_events")


def test_a_split_over_rows_that_are_left_out_is_aligned_with_the_rest():
    files = lender(11)
    code = np.arange(len(files.denied), dtype=np.int32) % 3
    files = replace(files, splits=(Split("third", ("a", "b", "c"), code),))
    examined = only(emptied(files, code == 2))
    assert {part.level for part in examined.parts if part.column == "third"} == {"a", "b"}


def test_missing_that_hangs_on_the_decision_has_the_p_of_a_table():
    """Of 40 and 60 files 10 and 30 are complete: chi-square (10 - 16)^2 (1/16 + 1/24 + 1/24 + 1/36) = 6.25."""
    outcome = np.repeat([0, 1], [40, 60]).astype(np.int32)
    complete = np.r_[np.arange(40) < 10, np.arange(60) < 30]
    rows = np.ones(100, bool)
    assert p_of_dependence(complete, outcome, rows) == pytest.approx(0.012419, abs=1e-6)
    assert p_of_dependence(complete, outcome * 2, rows) == pytest.approx(0.012419, abs=1e-6), "nobody has the second"
    for given in ((rows, outcome, rows), (complete, outcome * 0, rows), (complete, outcome, complete)):
        assert p_of_dependence(*given) == 1.0


def test_complete_files_stand_for_those_of_their_side_and_decision():
    complete, outcome = np.array([1, 0, 1, 1, 0, 0], bool), np.array([0, 0, 1, 1, 1, 0], np.int32)
    sides = [np.arange(6) < 5, np.arange(6) == 5]
    assert weights_of_complete(complete, outcome, sides) == pytest.approx([2, 2, 1.5, 1.5, 1.5, 1])


def test_worst_cases_by_hand():
    assert worst_of_missing(0.1, 0.2, 0.3) == pytest.approx((0.08 - 0.14, 0.08 + 0.06))
    assert worst_of_undecided(0.1, 0.2, 0.3) == pytest.approx((0.08 - 0.06, 0.08 + 0.14))


def spoiled(seed, n=1200):
    """A lender with gaps, a category, undecided applications, branches, bands and three groups."""
    files, rng = lender(seed, n, 0.7), np.random.default_rng(seed)
    group = np.where((files.group == 1) & (rng.random(n) < 0.4), 2, files.group).astype(np.int32)
    first, second = files.controls
    kind = Control("kind", "category", rng.integers(0, 3, n).astype(float), ("x", "y", "z"))
    gaps = replace(first, values=np.where(rng.random(n) < 0.1, np.nan, first.values))
    undecided = rng.random(n) < 0.1
    return replace(
        files,
        denied=files.denied & ~undecided,
        undecided=undecided,
        group=group,
        groups=("A", "B", "C"),
        controls=(gaps, replace(second, values=np.exp(second.values)), kind),
        cluster=rng.integers(0, 25, n).astype(np.int32),
    )


def tiny(files):
    """The last group with three members."""
    last = np.flatnonzero(files.group == 2)[3:]
    return replace(files, group=np.where(np.isin(np.arange(len(files.group)), last), -1, files.group).astype(np.int32))


RESULTS = {
    "two groups": lambda: vars(only(lender(4, 900, 0.5))),
    "rare denials": lambda: vars(
        only(replace(lender(5, 900), denied=lender(5, 900).denied & (np.arange(900) % 12 == 0)))
    ),
    "three groups": lambda: [vars(each) for each in examine(spoiled(6), RULES, np.random.default_rng(1))],
    "a tiny group": lambda: [vars(each) for each in examine(tiny(spoiled(7)), RULES, np.random.default_rng(1))],
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_stay_what_they_are(name):
    """Kept from an earlier run: every field of an examination. A number that moves is seen."""
    assert fingerprint(RESULTS[name]()) == pytest.approx(HELD[name], rel=1e-9, abs=1e-5)


HELD = {
    "two groups": {
        "group": 5.615121,
        "n": 11.118639,
        "events": 10.11614,
        "n_reference": 12.08523,
        "events_reference": 10.867912,
        "reason": 1.0,
        "effect": 21701.584765,
        "judged": 111.176477,
        "explained": 3.229534,
        "no_noise": 1.0,
        "readings": 87.706162,
        "excess": 3.60269,
        "left_out": 0.0,
        "depends": 1.0,
        "terms": 0.0,
        "odds": 11580.916764,
        "parts": 339.920517,
        "carriers": 85.648672,
    },
    "rare denials": {
        "group": 5.615121,
        "n": 11.239996,
        "events": 6.70711,
        "n_reference": 12.034906,
        "events_reference": 8.378384,
        "reason": 1.0,
        "effect": 21935.1161,
        "judged": 108.027808,
        "explained": 3.972487,
        "no_noise": 1.0,
        "readings": 82.999428,
        "excess": 3.60269,
        "left_out": 0.0,
        "depends": 1.0,
        "terms": 0.0,
        "odds": 11805.903949,
        "parts": 0.0,
        "carriers": 85.640307,
    },
    "three groups": {"0": 198.823429, "1": 37098.457562},
    "a tiny group": {"0": 198.816417, "1": 21607.274983},
}
