"""The mean of a paired difference: exact cases, laws, and how often its bounds miss over all samples."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from paired_coverage import agresti_min, extremes, missed, samples, score, square_and_add, tango
from scipy.optimize import brentq
from scipy.stats import binom

from tasks.numerics.statistics.intervals import HALF, LEAST, Changes, above, below, error, lower, upper

LEVELS = st.sampled_from([0.001, 0.01, 0.025, 0.05, 0.2, 0.5])


@st.composite
def changes(draw):
    n = draw(st.integers(1, 2_000))
    raised = draw(st.integers(0, n))
    return Changes(raised, draw(st.integers(0, n - raised)), n)


@pytest.mark.parametrize("n", [1, 30, 133, 10_000])
def test_where_nobody_changes_it_reaches_to_the_share_that_shows_nobody_so_seldom(n):
    of = Changes(0, 0, n)
    assert upper(of, 0.05) == pytest.approx(1 - 0.05 ** (1 / n), rel=1e-9)
    assert lower(of, 0.05) == -upper(of, 0.05)
    assert error(of) > 0
    assert (of.mean, above(of, 0.0), below(of, 0.0)) == (0.0, HALF, HALF)
    if 0.98**n < HALF:
        assert below(of, 0.02) == pytest.approx(max(0.98**n, LEAST), rel=1e-9)


def by_definition(events, n, level):
    """Exact limits of a share: those at which so many, or so few, are as rare as the level."""
    low = brentq(lambda p: binom.sf(events - 1, n, p) - level, 0, 1) if events else 0.0
    return low, brentq(lambda p: binom.cdf(events, n, p) - level, 0, 1) if events < n else 1.0


def test_where_all_change_to_one_side_a_pass_needs_the_exact_bound_of_the_share():
    assert upper(Changes(12, 0, 200), 0.05) == pytest.approx(by_definition(12, 200, 0.05)[1], rel=1e-9)
    assert lower(Changes(12, 0, 200), 0.05) < by_definition(12, 200, 0.05)[0], "those who were not seen count too"


def test_a_worked_example():
    # 9 of 200 one way and 3 the other; the correlation of the cells is -sqrt(9 3 / (191 197)) = -0.02679
    of, along = Changes(9, 3, 200), 0.026787
    (low_9, high_9), (low_3, high_3) = (by_definition(each, 200, 0.05) for each in (9, 3))
    up, down = high_9 - 0.045, 0.015 - low_3
    assert upper(of, 0.05) == pytest.approx(0.03 + np.sqrt(up**2 + 2 * along * up * down + down**2), abs=1e-7)
    up, down = 0.045 - low_9, high_3 - 0.015
    assert lower(of, 0.05) == pytest.approx(0.03 - np.sqrt(up**2 + 2 * along * up * down + down**2), abs=1e-7)
    assert (lower(of, 0.05), upper(of, 0.05)) == (pytest.approx(-0.0020, abs=5e-5), pytest.approx(0.0643, abs=5e-5))


@settings(deadline=None, max_examples=examples(200))
@given(of=changes(), level=LEVELS)
def test_it_has_width_holds_the_mean_turns_round_and_narrows_with_the_level(of, level):
    low, high = lower(of, level), upper(of, level)
    assert -1 <= low < high <= 1
    assert low <= of.mean <= high
    assert (lower(of.turned, level), upper(of.turned, level)) == (-high, -low)
    assert lower(of, level / 2) <= low
    assert high <= upper(of, level / 2)
    assert error(of) > 0


@settings(deadline=None, max_examples=examples(200))
@given(of=changes(), level=LEVELS, limit=st.floats(-0.5, 0.5))
def test_a_bound_lies_beyond_a_limit_exactly_where_the_p_is_below_its_level(of, level, limit):
    assume(min(abs(lower(of, level) - limit), abs(upper(of, level) - limit)) > 1e-9)
    assert (lower(of, level) > limit) == (above(of, limit) < level)
    assert (upper(of, level) < limit) == (below(of, limit) < level)
    assert above(of, limit) + below(of, limit) == pytest.approx(1.0)


def test_p_falls_as_more_change():
    found = [above(Changes(raised, 5, 400), 0.02) for raised in range(0, 60, 5)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 0.9
    assert found[-1] < 1e-6


@pytest.mark.parametrize(
    ("n", "share", "side"), [(30, 0.05, 1.0), (100, 0.02, 1.0), (100, 0.2, 0.75), (300, 0.05, 0.5)]
)
def test_it_covers_and_misses_on_either_side_as_seldom_as_it_says(n, share, side):
    found = missed(square_and_add, n, share, side)
    assert found.covered >= 0.95
    assert max(found.too_low, found.too_high) <= 0.05


def test_what_was_not_taken_passes_a_harm_too_often():
    """One chance in five, or fourteen, to pass a group whose effect lies at the limit."""
    sizes = {"sizes": (100,), "steps": 8}
    assert extremes(square_and_add, **sizes).too_low <= 0.05
    assert extremes(agresti_min, **sizes).too_low > 0.1
    assert extremes(tango, **sizes).too_low > 0.05


def test_the_probabilities_of_all_samples_add_up():
    assert sum(chance for *_, chance in samples(50, 0.1, 0.04)) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("counts", [(10, 0), (2, 0), (7, 4), (3, 9)])
def test_the_score_that_was_not_taken_is_at_the_likeliest_shares(counts):
    up, down, n, mean = *counts, 100, 0.05
    grid = np.linspace(1e-9, 0.4, 400_001)  # share of the one side; the other is larger by the mean
    likely = up * np.log(grid + mean) + down * np.log(grid) + (n - up - down) * np.log(1 - 2 * grid - mean)
    share = grid[likely.argmax()]
    wanted = (up - down - n * mean) / np.sqrt(n * (2 * share + mean - mean**2))
    assert score(up, down, n, mean) == pytest.approx(wanted, abs=1e-4)


def test_an_error_is_as_wide_as_its_interval():
    of = Changes(9, 3, 200)
    assert error(of) == pytest.approx((upper(of, 0.025) - lower(of, 0.025)) / 3.919928, rel=1e-6)
    assert (of.mean, of.turned) == (0.03, Changes(3, 9, 200))
    assert above(of, -0.9) == LEAST
    assert above(of, 0.9) == pytest.approx(1 - LEAST)
    for limit in (-0.01, 0.0, 0.01):
        assert lower(of, above(of, limit)) == pytest.approx(limit, abs=1e-9)
        assert below(of, -limit) == pytest.approx(above(of.turned, limit))
    assert upper(of, 1 - above(of, 0.08)) == pytest.approx(0.08, abs=1e-9)
