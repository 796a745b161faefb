"""The raw ratio alone may breach with few people, and must not do so by chance more often than it says."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from schemas.terms import State, Theory
from tasks.metrics.algorithm.verdicts import Case, Counts, Limit, RatioOfShares, Rules, judge

LIMIT, OF_REFERENCE = 0.8, 1000


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 20, 29])
@pytest.mark.parametrize("share", [0.5, 0.77, 0.95])
def test_few_people_at_the_limit_breach_in_at_most_one_audit_of_twenty(n: int, share: float) -> None:
    """Exactly, over every outcome of the group; the score test alone does so in 0.24 with one applicant."""
    approved = round(share * OF_REFERENCE)
    p = [RatioOfShares(k, n, approved, OF_REFERENCE, few=True).below(LIMIT) for k in range(n + 1)]
    assert binom.pmf(np.arange(n + 1), n, LIMIT * share)[np.array(p) <= 0.05].sum() <= 0.05


def test_the_interval_ends_where_the_test_does() -> None:
    for known in (RatioOfShares(0, 30, 1500, 1940, few=True), RatioOfShares(3, 12, 40, 50, few=True)):
        for level in (0.05, 0.01):
            end = known.bound(level, upper=True)
            assert known.below(end * 1.001) < level < known.below(end * 0.999)
    assert math.isinf(RatioOfShares(4, 4, 40, 50, few=True).bound(0.05, upper=True))


def test_one_denied_applicant_is_no_breach_and_thirty_are() -> None:
    def state(n: int, fewest: int = 0) -> State:
        known = RatioOfShares(0, n, 950, 1000, few=True)
        of = Theory.APPROVAL_RATES, "outcomes", "approval_rate_ratio", "race", "Black", "white", "lender", "primary"
        case = Case(*of, 0.0, known, Limit(LIMIT, "at_least"), Counts(n, n, 1000, 50))
        (row,) = judge([case], Rules(fewest=fewest))
        return row.state

    assert (state(1), state(30)) == (State.INCONCLUSIVE, State.OUTSIDE)
    assert (state(7), state(7, fewest=8), state(8, fewest=8)) == (State.OUTSIDE, State.INCONCLUSIVE, State.OUTSIDE)
