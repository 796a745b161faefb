"""Agreement of methods: figures by hand, codes by rule, and intervals that cover where the truth is simulated."""

import math
from dataclasses import replace

import numpy as np
import pytest
from conftest import fingerprint

from tasks.metrics.algorithm.agreement import (
    EXPLAINS,
    TWINS,
    TWINS_AS_INPUT,
    WORLDS,
    Pair,
    Speaker,
    World,
    codes,
    necessity,
    necessity_interval,
    not_asked,
    null_ratio,
    pattern,
    withheld,
)


def test_the_pattern_of_boston_as_a_reader_derives_it_by_hand() -> None:
    signs = {"cst_effect": "against", "infeasible_share_relabelled": "none_seen", "cec_above_own_group": "too_few"}
    signs |= {"approval_rate_ratio": "against", "own": "for"}
    found = pattern(signs)
    assert found.text == "approval- CST- FGCE0 CEC? own+"
    assert (found.able, found.against) == (4, ("approval_rate_ratio", "cst_effect"))
    assert found.silent == ("infeasible_share_relabelled", "own")


def test_a_method_that_was_not_asked_could_not_speak() -> None:
    signs = not_asked({"adjusted", "cst", "raguel", "cec"}) | {"cst_effect": "against", "adjusted_effect": "too_few"}
    line = pattern(signs)
    assert line.text == "adjusted? CST- FGCE/ GCFN/"
    assert (line.able, line.against, line.silent) == (1, ("cst_effect",), ())
    assert not not_asked({"adjusted", "cst", "fgce", "raguel", "cec", "gcfn"})


def test_figures_of_a_table_by_hand() -> None:
    """Specification, section 1.3: CEC and CST, and GCFN and CST, of Boston 1990."""
    pair = Pair(52, 90, 7, 48)
    assert pair.n == 197
    assert (round(pair.agreement, 2), round(pair.kappa, 2), round(pair.ac1, 2)) == (0.51, 0.16, 0.02)
    assert round(pair.jaccard, 2) == 0.35
    rare = Pair(2, 1, 35, 105)
    assert (round(rare.kappa, 2), round(rare.ac1, 2), round(rare.jaccard, 2)) == (0.06, 0.67, 0.05)


def test_a_table_of_flags() -> None:
    first, second = np.array([True, True, False, False, True]), np.array([True, False, True, False, True])
    assert Pair.of(first, second) == Pair(2, 1, 1, 1)
    assert Pair.of(second, first).cells == (2, 1, 1, 1)
    assert Pair.of(first, first).kappa == 1


def test_figures_that_are_not_defined_are_nan_and_no_zero() -> None:
    nobody, alike = Pair(0, 0, 0, 0), Pair(0, 0, 0, 9)
    assert all(
        map(math.isnan, (nobody.agreement, nobody.kappa, nobody.ac1, nobody.jaccard, alike.kappa, alike.jaccard))
    )
    assert alike.ac1 == 1
    for undefined in (*nobody.intervals(np.random.default_rng(1)), alike.intervals(np.random.default_rng(1))[0]):
        assert all(map(math.isnan, undefined))


@pytest.mark.parametrize(("share", "agreeing", "n"), [(0.3, 0.5, 200), (0.5, 0.0, 150), (0.2, 0.8, 200)])
def test_the_intervals_cover_the_kappa_and_the_ac1_that_was_drawn_from(share: float, agreeing: float, n: int) -> None:
    """The second flag is the first with probability ``agreeing``, else a new draw: its kappa is ``agreeing``."""
    rng, covered, runs = np.random.default_rng(50), np.zeros(2), 300
    chance = 2 * share * (1 - share)
    truth = np.array([agreeing, (1 - (1 - agreeing) * chance - chance) / (1 - chance)])
    for _ in range(runs):
        first = rng.random(n) < share
        second = np.where(rng.random(n) < agreeing, first, rng.random(n) < share)
        low, high = np.array(Pair.of(first, second).intervals(rng, 400)).T
        covered += (low <= truth) & (truth <= high)
    assert (covered / runs >= 0.91).all()
    assert (covered / runs <= 0.985).all()


@pytest.mark.parametrize(("first_share", "second_share", "n"), [(0.3, 0.5, 200), (0.1, 0.1, 150), (0.5, 0.8, 400)])
def test_flags_that_are_independent_agree_within_the_range_of_chance(
    first_share: float, second_share: float, n: int
) -> None:
    """In 95 % of tables, or a little more as counts are whole; flags that follow each other lie above it."""
    rng, inside, above, runs = np.random.default_rng(11), 0, 0, 400
    for _ in range(runs):
        first, second = rng.random(n) < first_share, rng.random(n) < second_share
        for rule, flags in (("independent", second), ("alike", np.where(rng.random(n) < 0.5, first, second))):
            pair = Pair.of(first, flags)
            low, high = pair.null(rng, 400)
            inside += rule == "independent" and low <= pair.agreement <= high
            above += rule == "alike" and pair.agreement > high
    assert 0.93 <= inside / runs <= 0.995
    assert above / runs > 0.9
    assert all(map(math.isnan, Pair(0, 0, 0, 0).null(rng)))
    assert Pair(0, 0, 9, 0).null(rng) == (0, 0)


def test_the_ratio_of_approvals_lies_in_its_range_where_labels_tell_nothing() -> None:
    rng, inside, outside, runs = np.random.default_rng(12), 0, 0, 400
    for _ in range(runs):
        for of_group in (0.2, 0.4):
            denied, denied_others = rng.binomial(200, of_group), rng.binomial(900, 0.2)
            low, high = null_ratio((200, denied, 900, denied_others), rng, 400)
            is_inside = low <= (1 - denied / 200) / (1 - denied_others / 900) <= high
            inside += of_group == 0.2 and is_inside
            outside += of_group == 0.4 and not is_inside
    assert 0.93 <= inside / runs <= 0.985
    assert outside / runs > 0.95
    assert all(map(math.isnan, null_ratio((5, 5, 5, 5), rng)))


def test_codes_are_rules_and_each_can_hold_alone() -> None:
    cst = Speaker("cst", "lender", denied_only=False, sign="against", prevalence=0.5, neighbours=30)
    same = Speaker("adjusted", "lender", denied_only=False, sign="none_seen", prevalence=0.5)
    assert codes(cst, same, 100, 30) == ()
    alone = {
        "unit": Speaker("raguel", "lender", denied_only=True, prevalence=0.5),
        "maker": Speaker("adjusted", "model", denied_only=False),
        "channel": Speaker("cec", "lender", denied_only=False, sign="none_seen"),
        "noise": Speaker("st", "lender", denied_only=False, p=0.2),
        "identified": Speaker("gcfn", "lender", denied_only=False, not_identified=0.25),
        "overlap": Speaker("st", "lender", denied_only=False, support=0.79),
        "prevalence": Speaker("gcfn", "lender", denied_only=False, prevalence=0.04),
    }
    for code, speaker in alone.items():
        assert codes(cst, speaker, 100, 30) == (code,)
        assert codes(speaker, cst, 100, 30) == (code,), "in whatever order"
    assert codes(cst, same, 29, 30) == ("size",)
    direct = Speaker("cst", "lender", denied_only=False, sign="none_seen", measure="st_effect")
    total = replace(direct, sign="against", measure="cst_effect")
    assert codes(total, direct, 100, 30) == codes(direct, total, 100, 30) == ("channel",)
    assert codes(replace(direct, sign="against"), replace(total, sign="none_seen"), 100, 30) == (), "not turned round"
    assert codes(Speaker("cst", "lender", denied_only=False, neighbours=15), same, 100, 30) == ("noise",)
    assert {*alone, "size"} == set(EXPLAINS)


def test_a_table_with_a_cell_of_few_people_goes_as_a_whole_and_one_with_nobody_stays() -> None:
    of_few, whole = Pair(10, 4, 20, 30), Pair(10, 0, 20, 34)
    assert withheld({("a", "b"): of_few}, {}, 64, 5) == {("a", "b"): "cell"}
    assert withheld({("a", "b"): whole}, {}, 64, 5) == {}
    assert withheld({("a", "b"): Pair(1, 1, 1, 1)}, {}, 4, 0) == {}


def test_a_table_goes_that_shares_a_margin_with_a_withheld_one() -> None:
    pairs = {("a", "b"): Pair(10, 4, 20, 30), ("a", "c"): Pair(7, 7, 25, 25), ("b", "c"): Pair(20, 10, 12, 22)}
    assert pairs["a", "b"].margins()[0] == pairs["a", "c"].margins()[0] == (14, 50)
    assert withheld(pairs, {}, 64, 4) == {}, "4 are enough"
    pairs["c", "d"] = Pair(20, 12, 12, 20)
    assert withheld(pairs, {}, 64, 5) == {("a", "b"): "cell", ("a", "c"): "margin", ("b", "c"): "margin"}


def test_a_table_goes_whose_difference_from_what_else_is_told_is_of_few_people() -> None:
    """The group has 64 members; c could not judge 3 of them, one of whom a flags."""
    pairs = {("a", "b"): Pair(10, 10, 20, 24), ("a", "c"): Pair(9, 10, 20, 22)}
    assert withheld({("a", "c"): pairs["a", "c"]}, {}, 64, 5) == {("a", "c"): "difference"}
    assert withheld(pairs, {}, 80, 5) == {("a", "c"): "difference"}
    assert withheld({("a", "c"): pairs["a", "c"]}, {"a": (20, 60)}, 80, 5) == {("a", "c"): "difference"}
    assert withheld({("a", "c"): pairs["a", "c"]}, {"a": (24, 60)}, 84, 5) == {}


def test_rates_in_twins_have_exact_intervals_and_as_many_worlds() -> None:
    assert World(5, 5).words() == "5 of 5 (0.48 to 1.00)"
    assert World(0, 10).words() == "0 of 10 (0.00 to 0.31)"
    assert {len(rates) for rates in (*TWINS.values(), *TWINS_AS_INPUT.values())} == {len(WORLDS)}
    never, always = (
        [{measure for measure, rates in TWINS.items() if rates[world].spoke == of(rates[world])} for world in range(3)]
        for of in (lambda rate: 0, lambda rate: rate.twins)
    )
    assert set(TWINS) - never[0] == {"recourse_cost_reference_over_group"}
    assert never[1] == {"infeasible_share_relabelled"}
    assert set(TWINS) - never[2] == {"cst_effect", "recourse_cost_reference_over_group"}
    assert always == [set(), {"adjusted_effect", "cst_effect", "st_effect"}, {"cst_effect"}]
    assert {tuple(rate.twins for rate in rates) for rates in TWINS.values()} == {(10, 5, 5)}


def test_necessity_is_a_share_of_the_control_groups_denials() -> None:
    found = necessity(np.array([0.5, 0.5, 0.2, 0.0]), np.array([0.25, 0.5, 0.4, 0.3]))
    assert found[:3].tolist() == [0.5, 0.0, 0.0]
    assert math.isnan(found[3])


def test_the_interval_of_necessity_covers_the_share_of_the_neighbours_populations() -> None:
    rng, covered, runs = np.random.default_rng(7), 0, 300
    for _ in range(runs):
        control, test = (rng.random(200) < share for share in (0.6, 0.3))
        low, high = necessity_interval(control.tolist(), test.tolist(), rng, 400)
        covered += low <= 0.5 <= high
    assert 0.90 <= covered / runs <= 0.985
    assert all(map(math.isnan, necessity_interval([False], [True], rng)))
    assert all(map(math.isnan, necessity_interval([], [True], rng)))


PAIRS = (Pair(52, 90, 7, 48), Pair(2, 1, 35, 105), Pair(0, 0, 0, 9), Pair(3, 0, 0, 0), Pair(5, 5, 5, 5))
SPEAKERS = (
    Speaker("cst", "lender", True, "against", "cst_effect", 0.5, 30, 0.05, 0.2, 0.8),
    Speaker("cec", "model", False, "none_seen", "cec", 0.04, 29, 0.06, 0.21, 0.79),
    Speaker("adjusted", "lender", False, "none_seen", "adjusted_effect", 0.96),
    Speaker("gcfn", "lender", False, "for", "share_changed", 0.05),
)
RESULTS = {
    "figures": lambda: [(p.n, p.agreement, p.kappa, p.ac1, p.jaccard, p.margins(), p.prevalences()) for p in PAIRS],
    "intervals": lambda: [p.intervals(np.random.default_rng(2), 50) for p in PAIRS],
    "null": lambda: [
        null_ratio((90, 30, 400, 60), np.random.default_rng(1), 60),
        null_ratio((3, 1, 4, 4), np.random.default_rng(1), 9),
    ],
    "codes": lambda: [codes(a, b, n, 30) for a in SPEAKERS for b in SPEAKERS for n in (29, 30)],
    "necessity": lambda: necessity(np.array([0.0, 0.2, 0.5, 0.5]), np.array([0.1, 0.1, 0.6, 0.0])),
    "necessity intervals": lambda: [
        necessity_interval([True, False] * 9, [True, False, False] * k, np.random.default_rng(1), 60) for k in (0, 5)
    ],
    "withheld": lambda: [
        [
            *withheld(
                {("a", "b"): PAIRS[0], ("a", "c"): PAIRS[1], ("b", "c"): PAIRS[4]}, {"a": (142, 55)}, 200, k
            ).items()
        ]
        for k in (0, 3, 6, 10)
    ],
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_stay_what_they_are(name):
    """Kept from an earlier run: figures of agreement and codes. A number that moves is seen."""
    assert fingerprint(RESULTS[name]()) == pytest.approx(HELD[name], rel=1e-9, abs=1e-5)


HELD = {
    "figures": {"0": 208.197, "1": 201.342149, "2": 182.315704, "3": 184.130124, "4": 189.854562},
    "intervals": {"0": 57.924431, "1": 63.624309, "2": 80.402101, "3": 80.402101, "4": 51.900917},
    "null": {"0": 29.432916, "1": 36.457542},
    "codes": {
        "0": 13.986032,
        "1": 0.0,
        "2": 108.550782,
        "3": 94.680305,
        "4": 52.680664,
        "5": 38.298196,
        "6": 29.194037,
        "7": 13.801207,
        "8": 108.550782,
        "9": 94.680305,
        "10": 70.12734,
        "11": 52.244927,
        "12": 84.95853,
        "13": 70.190099,
        "14": 94.801788,
        "15": 83.96811,
        "16": 52.680664,
        "17": 38.298196,
        "18": 84.95853,
        "19": 70.190099,
        "20": 28.157284,
        "21": 12.919988,
        "22": 38.580639,
        "23": 27.488194,
        "24": 29.194037,
        "25": 13.801207,
        "26": 94.801788,
        "27": 83.96811,
        "28": 38.580639,
        "29": 27.488194,
        "30": 13.986032,
        "31": 0.0,
    },
    "necessity": {"0": 7.621406, "1": 4.931826, "2": 1.0, "3": 5.615121},
    "necessity intervals": {"0": 36.457542, "1": 21.702266},
    "withheld": {"0": 0.0, "1": 53.821243, "2": 165.142218, "3": 162.89104},
}
