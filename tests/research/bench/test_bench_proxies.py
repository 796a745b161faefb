"""Coverage of intervals by probabilities of race, in the small form of `evenhand bench proxies`."""

import pytest

from research.bench.proxies import HIGH, LENDERS, LOW, coverage

REPS = 200
ERROR = 3 * (0.95 * 0.05 / REPS) ** 0.5
"""Three standard errors of a share of 0.95."""


@pytest.mark.parametrize("lender", [LENDERS[1], LENDERS[4]], ids=lambda lender: lender.name)
def test_intervals_hold_the_truth_as_often_as_they_claim(lender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.bench.proxies.TRUTH_ROWS", 200_000)
    inside, bounded, _ = coverage(lender, "black", REPS)
    assert LOW - ERROR <= inside <= HIGH + ERROR
    assert bounded == 1


def test_where_the_neighbourhood_counts_the_interval_misses_and_the_bounds_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("research.bench.proxies.TRUTH_ROWS", 200_000)
    inside, bounded, error = coverage(LENDERS[-1], "black", 60)
    assert inside < 0.8
    assert bounded == 1
    assert error > 0.05
