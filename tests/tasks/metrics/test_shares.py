"""Shares are declared, not guessed from values: what happens to be 0 or 1 need not stay there."""

import numpy as np
import pytest

from schemas.terms import Note
from tasks.methods.fgce.algorithm import detection
from tasks.metrics.algorithm.measures import Family, Measure, Plan, Statistic, summarise

PLAN = Plan({"race": "white"}, 300, 0.95, 1)


def measured(cheapest: np.ndarray) -> dict[str, Measure]:
    """Infeasible share and burden of one group whose factuals pay ``cheapest``, NaN without recourse."""
    statistics = [
        Statistic(Family("fgce", "lender", "race", t.measure, "{}"), "white", t.values, t.counts, False, share=t.share)
        for t in detection.costs(cheapest)
    ]
    return {m.family.measure: m for m in summarise(statistics, {}, PLAN)}


@pytest.mark.parametrize("cost", [0.0, 1.0])
def test_costs_that_are_all_alike_have_no_interval(cost: float) -> None:
    """Not that of a share, since the next cost may be any; and none without width, as if there were no doubt."""
    found = measured(np.full(40, cost))
    burden, share = found["burden"], found["infeasible_share"]
    assert (burden.value, burden.events, burden.note) == (cost, None, Note.NO_SPREAD)
    assert np.isnan([burden.low, burden.high]).all()
    assert (share.value, share.events) == (0.0, 0)
    assert (share.low, share.high) == (0.0, pytest.approx(1.96**2 / (40 + 1.96**2), rel=1e-4))  # Wilson's


def test_a_mean_of_zeros_and_ones_that_is_no_share_counts_no_events() -> None:
    found = measured(np.array([0.0] * 10 + [1.0] * 10 + [np.nan] * 5))
    assert found["burden"].events is None
    assert (found["burden"].value, found["burden"].n) == (0.5, 25)
    assert found["infeasible_share"].events == 5
