"""Draws of the rows as one: means with a range, groups by name, subgroups of one draw alone."""

import numpy as np
import pytest

from tasks.detection.stage import over_draws
from tasks.numerics.results import Aggregate, Detected, Evidence, Findings, Tally

NOBODY = np.zeros(0, np.int64)
NOTHING = Findings(NOBODY, NOBODY.astype(np.int32), np.zeros(0, dtype=str), np.zeros(0), np.zeros(0, dtype=str))
NO_EVIDENCE = Evidence(NOBODY, np.zeros(0, dtype=str), NOBODY.astype(np.int32), NOBODY, np.zeros(0))


def found(share, group=1, subgroup=0, **more):
    yes = round(100 * share)
    tally = Tally(group, subgroup, "share", {}, np.array([0.0, 1.0]), np.array([100 - yes, yes]), True, share=True)
    return Detected(NOTHING, NO_EVIDENCE, (tally,), (), tuple(more.get("aggregates", ())))


def test_the_mean_of_the_draws_stands_between_the_least_and_the_largest():
    draws = [(("w", "b"), found(0.2)), (("b", "w"), found(0.5, group=0)), (("w", "b"), found(0.35))]
    made = over_draws(draws[0], draws[1:])
    (only,) = made.aggregates
    assert made.tallies == ()
    assert only.value == pytest.approx(0.35)
    assert only.interval == pytest.approx((0.2, 0.5))
    assert (only.n, only.events, only.reason, only.headline, only.group) == (100, 20, "range", True, 1)


def test_subgroups_and_what_one_draw_has_alone_have_no_range():
    draws = [(("w", "b"), found(0.2, subgroup=1)), (("w", "b"), found(0.5, subgroup=1))]
    (only,) = over_draws(draws[0], draws[1:]).aggregates
    assert (only.value, only.interval, only.reason) == (0.2, None, "")
    (only,) = over_draws((("w", "b"), found(0.2)), [(("w", "c"), found(0.5))]).aggregates
    assert (only.value, only.interval) == (0.2, None)


def test_an_aggregate_loses_its_interval_and_keeps_its_reason():
    own = Aggregate(1, 0, "d0", {}, 2.0, 9, reason="a bound", replicates=np.ones(3))
    other = Aggregate(1, 0, "d0", {}, np.nan, 9)
    last = Aggregate(1, 0, "d0", {}, 4.0, 9)
    draws = [(("w", "b"), Detected(NOTHING, NO_EVIDENCE, (), (), (each,))) for each in (own, other, last)]
    (only,) = over_draws(draws[0], draws[1:]).aggregates
    assert (only.value, only.interval, only.reason) == (3.0, (2.0, 4.0), "a bound; range")
    assert len(only.replicates) == 0
