"""Thresholds, rounding and digits of profiles, by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.metrics.publish.algorithm.profiles import (
    POLICIES,
    End,
    certain,
    extreme,
    learned,
    p_value,
    ranged,
    rounded,
    share,
    significant,
    small,
)

PUBLIC, STRICT, OFFICIAL, INTERNAL = (POLICIES[name] for name in ("public", "strict", "official", "internal"))


@pytest.mark.parametrize(
    ("name", "smallest", "base"),
    [("internal", 0, 1), ("published", 0, 1), ("public", 5, 1), ("strict", 8, 5), ("official", 11, 10)],
)
def test_profiles_have_the_thresholds_and_bases_of_the_specification(name: str, smallest: int, base: int) -> None:
    assert (POLICIES[name].smallest, POLICIES[name].round_to) == (smallest, base)
    assert [n for n in range(30) if small(POLICIES[name], n)] == list(range(1, smallest))


def test_numerators_count_under_strict_and_official_only() -> None:
    assert not small(PUBLIC, 50, 3)
    assert small(STRICT, 50, 3)
    assert small(STRICT, 50, 47)
    assert not small(OFFICIAL, 50, 0)


@given(count=st.integers(0, 300), name=st.sampled_from(["public", "strict", "official"]), step=st.integers(0, 3))
def test_what_is_learned_is_all_counts_that_are_printed_alike(count: int, name: str, step: int) -> None:
    policy = POLICIES[name]
    base = policy.bases[min(step, len(policy.bases) - 1)]
    for never_small in (False, True):
        if never_small and 0 < count < policy.smallest:
            continue
        alike = [x for x in range(400) if rounded(policy, x, base) == rounded(policy, count, base)]
        if never_small:
            alike = [x for x in alike if not 0 < x < policy.smallest]
        assert learned(policy, count, base, never_small) == (alike[0], alike[-1])


@pytest.mark.parametrize(("n", "limit"), [(5, 0.75), (8, 0.8), (10, 0.8), (12, 0.9), (20, 0.9), (21, 0.95), (99, 0.95)])
def test_the_limit_near_one_leaves_room_for_somebody(n: int, limit: float) -> None:
    assert certain(n) == limit
    assert n - 1 > limit * n
    assert certain(4) is None
    assert certain(100) is None


def test_a_group_in_which_everybody_was_denied_is_printed_as_one_in_which_nearly_all_were() -> None:
    everybody, nearly = ranged(PUBLIC, 30, 30, adverse=True), ranged(PUBLIC, 30, 29, adverse=True)
    assert everybody == nearly
    assert everybody is not None
    assert (everybody.text, everybody.rest, everybody.span) == ("more than 95 %", True, (0, 1))
    assert ranged(PUBLIC, 30, 28, adverse=True) is None
    assert ranged(PUBLIC, 30, 30, adverse=False) is None
    assert ranged(PUBLIC, 100, 100, adverse=True) is None
    assert ranged(INTERNAL, 30, 30, adverse=True) is None


def test_few_with_or_without_an_event_are_a_range_under_strict() -> None:
    below = ranged(STRICT, 300, 3, adverse=False)
    assert below is not None
    assert (below.text, below.rest, below.span) == ("below 0.03", False, (1, 7))
    above = ranged(STRICT, 300, 295, adverse=False)
    assert above is not None
    assert (above.text, above.rest, above.span) == ("above 0.97", True, (1, 7))
    assert ranged(STRICT, 300, 0, adverse=False) is None
    assert ranged(STRICT, 300, 8, adverse=False) is None
    assert ranged(PUBLIC, 300, 3, adverse=False) is None
    all_denied, nearly = ranged(STRICT, 60, 60, adverse=True), ranged(STRICT, 60, 54, adverse=True)
    assert all_denied == nearly
    assert all_denied is not None
    assert all_denied.span == (0, 7)


@given(n=st.integers(8, 500), data=st.data())
def test_a_range_holds_of_the_share_and_of_every_share_that_it_stands_for(n: int, data: st.DataObject) -> None:
    events = data.draw(st.integers(0, n))
    each = ranged(STRICT, n, events, adverse=False)
    if each is None:
        assert not 0 < events < 8
        return
    word, limit = each.text.split()
    printed = rounded(STRICT, n)
    share_of = [x / printed for x in range(each.span.low, each.span.high + 1)]
    held = [1 - x for x in share_of] if each.rest else share_of
    assert all(x < float(limit) + 1e-9 if word == "below" else x > float(limit) - 1e-9 for x in held)


def test_shares_have_as_many_decimals_as_n_has_digits() -> None:
    assert [share(10, 120), share(1, 7), share(120, 1440), share(15, 10)] == [0.083, 0.1, 0.0833, 1.0]


def test_other_numbers_have_three_digits_and_p_has_two() -> None:
    assert significant(PUBLIC, 123456.0) == 123000.0
    assert significant(STRICT, 0.0123456) == 0.0123
    assert significant(INTERNAL, 0.0123456) == 0.0123456
    assert math.isnan(significant(PUBLIC, math.nan))
    assert p_value(PUBLIC, 0.012345) == 0.012
    assert p_value(PUBLIC, 0.00012) == 0.001
    assert p_value(INTERNAL, 0.00012) == 0.00012
    assert p_value(PUBLIC, 1.0) == 1.0


def test_a_value_of_one_person_is_a_quantile_of_sixty_or_withheld() -> None:
    values = np.arange(60, dtype=np.float64)
    assert extreme(PUBLIC, values, End.LARGEST) == 56.0  # 56.05 to three digits is 56.1 by half up, 56 by its bits
    assert extreme(PUBLIC, values, End.SMALLEST) == 2.95
    assert math.isnan(extreme(PUBLIC, values[:59], End.LARGEST))
    assert extreme(INTERNAL, values[:3], End.LARGEST) == 2.0
    assert math.isnan(extreme(PUBLIC, values[:0], End.LARGEST))
