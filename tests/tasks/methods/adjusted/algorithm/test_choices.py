"""The 48 choices: balanced, the audit's own first, each the estimate that it says it is."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from conftest import fingerprint

from research.bench.lenders import equal_files, honest_files, lacking_files, officer_files
from tasks.methods.adjusted.algorithm.choices import Choice, choices, grid
from tasks.methods.adjusted.algorithm.design import code_control
from tasks.methods.adjusted.algorithm.examined import Rules, examine
from tasks.methods.adjusted.algorithm.expected import LimitRule

RULES = Rules(LimitRule(0.02, 0.5, 0.2, 0.005))


def test_there_are_48_choices_and_every_pair_of_alternatives_is_equally_common() -> None:
    every = choices()
    assert len(every) == len(set(every)) == 48
    assert every[0] == Choice()
    names = ("form", "clipped", "through", "weighted", "estimator")
    for name in names:
        counts = [sum(getattr(c, name) == value for c in every) for value in {getattr(c, name) for c in every}]
        assert len(set(counts)) == 1
    for first, other in combinations(names, 2):
        pairs = [(getattr(c, first), getattr(c, other)) for c in every]
        assert len({pairs.count(pair) for pair in set(pairs)}) == 1


@pytest.mark.parametrize("draw", [honest_files, officer_files], ids=["honest", "officer"])
def test_the_first_choice_is_the_judged_effect_to_the_last_bit(draw) -> None:
    files = draw(np.random.default_rng(8), 2500).files
    (judged,) = examine(files, RULES, np.random.default_rng(0))
    own = grid(files, RULES)[0]
    assert (own.value, own.plain, own.at_limit) == (judged.effect.value, judged.judged.plain, judged.judged.at_limit)
    assert (own.limit, own.n) == (judged.judged.limit, judged.n)
    assert ("through" in judged.readings) == bool(files.through)


def test_the_targeted_and_the_weighted_choice_are_the_readings_of_the_examination() -> None:
    files = lacking_files(False, 0, 0.5, 0.0)(np.random.default_rng(8), 2500).files
    third = np.where((files.group == 0) & (np.arange(2500) % 4 == 0), 2, files.group).astype(np.int32)
    files = replace(files, groups=(*files.groups, "third"), group=third)
    judged = examine(files, RULES, np.random.default_rng(0))[0]
    made = {chosen.choice: chosen for chosen in grid(files, RULES) if chosen.group == judged.group}
    targeted, weighted = judged.readings["targeted"], judged.readings["weighted"]
    assert made[Choice(estimator="targeted")].value == pytest.approx(targeted.value, abs=1e-12)
    assert targeted.difference == pytest.approx(targeted.value - judged.effect.value)
    # without branches there is nothing to leave out, so that this choice differs by its weights alone
    own = made[Choice(through=False, weighted=True)]
    assert own.value == pytest.approx(weighted.value, abs=1e-12)
    assert own.plain.se == pytest.approx(weighted.error.se, rel=1e-9)


def test_choices_agree_where_nothing_hangs_on_them_and_find_planted_harm() -> None:
    drawn = equal_files(np.random.default_rng(1), 6000).files
    turned = np.random.default_rng(2).random(6000) < 0.15
    files = replace(drawn, denied=drawn.denied | (turned & (drawn.group == 1)))
    made = grid(files, RULES)
    assert len(made) == 48
    values = np.array([chosen.value for chosen in made])
    assert 0.08 < values.min() <= values.max() < 0.16
    assert np.ptp(values) < 0.02
    assert all(0.008 < chosen.plain.se < 0.02 for chosen in made)


def test_weights_of_one_change_nothing() -> None:
    files = equal_files(np.random.default_rng(1), 2000).files
    made = {chosen.choice: chosen for chosen in grid(files, RULES)}
    for estimator in ("expected", "logit", "targeted", "overlap"):
        # no file lacks a column and none has a branch: the two alternatives are the first one again
        whole, other = Choice(estimator=estimator), Choice(estimator=estimator, through=False, weighted=True)
        assert (made[whole].value, made[whole].plain.se) == (made[other].value, made[other].plain.se)


def test_the_form_unclipped_has_squares_and_keeps_far_numbers() -> None:
    files = equal_files(np.random.default_rng(1), 400).files
    values = files.controls[1].values.copy()
    values[0] = 10_000.0
    control, used = replace(files.controls[1], values=values), np.ones(400, np.bool_)
    whole, cut = (code_control(control, files.denied, used, form).columns for form in ("unclipped", "squared"))
    assert whole.shape == cut.shape == (400, 2)
    assert whole[0, 0] > 15 > cut[0, 0]


RESULTS = {
    "officers": lambda: grid(officer_files(np.random.default_rng(8), 900).files, RULES),
    "gaps": lambda: grid(lacking_files(False, 0, 0.5, 0.0)(np.random.default_rng(8), 900).files, RULES),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_stay_what_they_are(name):
    """Kept from an earlier run: all choices of two lenders. A number that moves is seen."""
    assert fingerprint(RESULTS[name]()) == pytest.approx(HELD[name], rel=1e-9, abs=1e-5)


HELD = {
    "officers": {
        "0": 183.432978,
        "1": 184.52246,
        "2": 185.395811,
        "3": 168.539195,
        "4": 183.773524,
        "5": 184.863007,
        "6": 185.736358,
        "7": 168.879742,
        "8": 180.729592,
        "9": 181.819074,
        "10": 182.714605,
        "11": 165.857989,
        "12": 183.148865,
        "13": 184.238347,
        "14": 185.166573,
        "15": 168.309957,
        "16": 183.489412,
        "17": 184.578894,
        "18": 185.50712,
        "19": 168.650503,
        "20": 180.702648,
        "21": 181.79213,
        "22": 182.735716,
        "23": 165.8791,
        "24": 179.403482,
        "25": 180.492964,
        "26": 181.418302,
        "27": 164.561686,
        "28": 179.744029,
        "29": 180.833511,
        "30": 181.758849,
        "31": 164.902232,
        "32": 176.770126,
        "33": 177.859608,
        "34": 178.778117,
        "35": 161.921501,
        "36": 186.170622,
        "37": 187.260104,
        "38": 188.201264,
        "39": 171.344648,
        "40": 186.511168,
        "41": 187.600651,
        "42": 188.54181,
        "43": 171.685194,
        "44": 183.57184,
        "45": 184.661322,
        "46": 185.653733,
        "47": 168.797117,
    },
    "gaps": {
        "0": 187.889523,
        "1": 186.272901,
        "2": 187.20116,
        "3": 173.210999,
        "4": 188.230069,
        "5": 186.613448,
        "6": 187.541706,
        "7": 173.551546,
        "8": 185.194163,
        "9": 183.325786,
        "10": 184.248874,
        "11": 170.487294,
        "12": 187.969913,
        "13": 186.539514,
        "14": 187.526125,
        "15": 173.283088,
        "16": 188.31046,
        "17": 186.880061,
        "18": 187.866671,
        "19": 173.623635,
        "20": 185.295422,
        "21": 183.540097,
        "22": 184.526541,
        "23": 170.594803,
        "24": 183.903035,
        "25": 182.293388,
        "26": 183.212509,
        "27": 169.215881,
        "28": 184.243582,
        "29": 182.633935,
        "30": 183.553055,
        "31": 169.556428,
        "32": 181.220059,
        "33": 179.398503,
        "34": 180.339967,
        "35": 166.511354,
        "36": 188.774797,
        "37": 187.380241,
        "38": 188.315689,
        "39": 174.075794,
        "40": 189.115343,
        "41": 187.720787,
        "42": 188.656236,
        "43": 174.416341,
        "44": 186.154142,
        "45": 184.457698,
        "46": 185.541775,
        "47": 171.473943,
    },
}
