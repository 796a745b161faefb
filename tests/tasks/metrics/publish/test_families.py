"""Families of statistics: small ones are withheld, and those by which they could be had."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.metrics.algorithm.measures import Family, Statistic
from tasks.metrics.publish.algorithm.populations import complement, withheld
from tasks.metrics.publish.algorithm.profiles import POLICIES

FAMILY = Family("fgce", "lender", "race", "infeasible_share", "{}")


def test_a_mean_over_few_defined_units_is_withheld() -> None:
    family = replace(FAMILY, measure="burden")
    costs = Statistic(family, "Black", np.array([0.5, 0.6, np.nan]), np.array([2, 2, 56]), headline=True)
    assert withheld([costs], POLICIES["public"]) == {(family, "Black")}


def test_internal_withholds_nothing() -> None:
    few = Statistic(FAMILY, "Black", np.array([0.0, 1.0]), np.array([1, 1]), headline=True)
    assert withheld([few], POLICIES["internal"]) == set()


def test_few_undefined_units_are_withheld_under_strict() -> None:
    family = replace(FAMILY, measure="coverage")
    covered = Statistic(family, "Black", np.array([0.0, 1.0, np.nan]), np.array([27, 70, 3]), headline=False)
    assert withheld([covered], POLICIES["strict"]) == {(family, "Black")}


@pytest.mark.parametrize(("share", "gone"), [(True, True), (False, False)])
def test_a_mean_with_few_undefined_units_is_kept_unless_it_is_an_area_between_0_and_1(share: bool, gone: bool) -> None:
    """Of a mean nothing is printed but its n, all units included and rounded; areas have two denominators."""
    family = replace(FAMILY, measure="cec")
    scores = Statistic(family, "Black", np.array([0.25, 0.5, np.nan]), np.array([90, 110, 3]), False, share=share)
    assert withheld([scores], POLICIES["strict"]) == ({(family, "Black")} if gone else set())


def test_a_part_of_a_group_cannot_be_had_by_subtraction() -> None:
    parts = [
        Statistic(replace(FAMILY, subgroup=i), "white", np.array([0.0, 1.0]), np.array(counts), headline=False)
        for i, counts in ((0, [30, 25]), (1, [20, 20]), (2, [8, 4]), (3, [2, 1]))
    ]
    hidden = withheld(parts, POLICIES["public"])
    assert {family.subgroup for family, _ in hidden} == {2, 3}


@given(st.lists(st.integers(0, 40), min_size=2, max_size=8))
def test_no_single_cell_is_left_to_subtraction(numbers: list[int]) -> None:
    counts = np.array(numbers)
    gone = complement((counts > 0) & (counts < 5), counts)
    assert gone.sum() != 1
    assert gone[(counts > 0) & (counts < 5)].all()


def test_what_is_left_of_a_group_is_not_had_by_subtraction() -> None:
    """Six subgroups, five of them printed: the sixth holds three people."""

    def part(number: int, n: int) -> Statistic:
        family = replace(FAMILY, subgroup=number)
        return Statistic(family, "white", np.array([0.0, 1.0]), np.array([n - 9, 9]), headline=False)

    parts = [part(0, 103), *(part(number, 20) for number in range(1, 6))]
    hidden = withheld(parts, POLICIES["public"])
    assert {family.subgroup for family, _ in hidden} & set(range(1, 6))
    enough = [part(0, 110), *parts[1:]]
    assert withheld(enough, POLICIES["public"]) == set()


def test_a_share_is_not_to_be_had_from_the_others_that_add_up_to_one_with_it() -> None:
    family = Family("cec", "model", "race", "regime_share", "{}")
    shares = {"A": 60, "B": 30, "C": 3, "D": 12}
    made = [
        Statistic(
            replace(family, parameters=f'{{"regime": "{name}"}}'),
            "Black",
            np.array([0.0, 1.0]),
            np.array([105 - n, n]),
            False,
        )
        for name, n in shares.items()
    ]
    alone = {f.parameters for f, _ in withheld(made, POLICIES["strict"])}
    assert alone == {'{"regime": "C"}'}
    together = withheld(made, POLICIES["strict"], {"regime_share": ("regime",)})
    assert {f.parameters for f, _ in together} == {'{"regime": "C"}', '{"regime": "D"}'}
    assert withheld(made, POLICIES["public"], {"regime_share": ("regime",)}) == set()
