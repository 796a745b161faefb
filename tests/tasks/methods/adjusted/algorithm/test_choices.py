"""The 48 choices: balanced, the audit's own first, each the estimate that it says it is."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

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
