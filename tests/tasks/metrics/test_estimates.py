"""Estimates in arrays: equal to the last bit to those made one by one, and drawn only where they are asked for."""

import math
from functools import partial

import numpy as np
import pytest

from tasks.metrics.algorithm.measures import Sample, Whole, estimates, estimates_given
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.statistics.intervals import Estimate, Interval, estimate, is_share, percentile_intervals, resample

DRAWS, LEVEL = 60, 0.95


def tallies(rng: np.random.Generator) -> list[tuple[Floats, Longs, bool]]:
    """Of every kind: shares and means, of one value or many, with and without units that have none."""
    out: list[tuple[Floats, Longs, bool]] = [(np.zeros(0), np.zeros(0, np.int64), True)]
    for sizes in ((1, 2, 2, 2), (3, 8, 40, 64), (65, 90, 130, 70)):
        for size in sizes:
            for missing in (False, True):
                numbers = np.unique(np.round(rng.normal(3, 2, size), 3))
                shares = np.array([0.0, 1.0])[: min(size, 2)] if rng.random() < 0.7 else np.array([1.0])
                for values in (numbers, shares):
                    values = np.append(values, np.nan) if missing else values
                    counts = rng.integers(0, 40, len(values)) + (rng.random(len(values)) < 0.5)
                    out += [(values, counts, share) for share in (True, False)]
    return [*out, (np.array([np.nan]), np.array([7]), True), (np.array([np.nan]), np.array([7]), False)]


def one_by_one(values: Floats, counts: Longs, share: bool, seed: int) -> Estimate:
    return estimate(values, counts, np.random.default_rng([3, seed]), DRAWS, LEVEL, share=share)


def bits(number: float) -> str:
    return "nan" if math.isnan(number) else float(number).hex()


def drawn(values: Floats, counts: Longs, seed: int) -> Floats:
    return resample(values, counts, np.random.default_rng([3, seed]), DRAWS)


def test_every_number_is_the_one_made_by_itself() -> None:
    every = tallies(np.random.default_rng(8))
    samples = [Sample(v, c, s, partial(drawn, v, c, i)) for i, (v, c, s) in enumerate(every)]
    kinds = set()
    for i, found in enumerate(estimates(samples, DRAWS, LEVEL)):
        values, counts, share = every[i]
        expected = one_by_one(values, counts, share, i)
        for name in ("value", "low", "high"):
            assert bits(getattr(found, name)) == bits(getattr(expected, name)), (i, name)
        for name in ("n", "defined", "events", "note", "fitted"):
            assert getattr(found, name) == getattr(expected, name), (i, name)
        assert found.replicates.tobytes() == expected.replicates.tobytes() or not found.defined
        assert np.isnan(found.replicates).sum() == np.isnan(expected.replicates).sum()
        kinds.add((found.events is None, found.defined > 0, bool(found.note), len(values) > 64))
    assert len(kinds) >= 6, "shares and means, with and without a spread, and of more than 64 values"


def test_quantiles_of_many_are_those_of_each() -> None:
    rng = np.random.default_rng(2)
    several = [rng.normal(size=size).round(2) for size in (0, 1, 2, 7, 7, 60, 60, 61, 200, 200)]
    several += [np.where(rng.random(60) < share, np.nan, rng.normal(size=60)) for share in (0.01, 0.05, 0.5)]
    for each, ends in zip(several, percentile_intervals(several, LEVEL), strict=True):
        finite = each[np.isfinite(each)]
        if len(finite) == 0 or len(finite) < 0.9 * len(each):
            assert np.isnan(ends).all()
        else:
            tail = (1 - LEVEL) / 2
            assert [*map(bits, ends)] == [*map(bits, np.quantile(finite, (tail, 1 - tail)))]


def test_resamples_of_a_share_are_drawn_when_they_are_asked_for_and_once() -> None:
    calls: list[int] = []

    def draw() -> Floats:
        calls.append(1)
        return np.full(DRAWS, 0.5)

    share = Sample(np.array([0.0, 1.0]), np.array([5, 5]), True, draw)
    (found,) = estimates([share], DRAWS, LEVEL)
    assert not calls
    assert found.replicates is found.replicates
    assert len(calls) == 1
    assert is_share(share.values)
    (found,) = estimates([share._replace(share=False)], DRAWS, LEVEL)
    assert len(calls) == 2
    assert found.events is None


@pytest.mark.parametrize(
    ("given", "ends"),
    [
        (Whole(9.0, 5, None, np.arange(1.0, 6.0), None), (1.1, 9.0)),
        (Whole(2.0, 5, None, np.zeros(0), None), (math.nan, math.nan)),
        (Whole(2.0, 5, 2, np.zeros(0), Interval(1.0, 3.0)), (1.0, 3.0)),
    ],
)
def test_an_aggregate_keeps_its_value_inside_its_interval(given: Whole, ends: tuple[float, float]) -> None:
    (found,) = estimates_given([given], LEVEL)
    assert (found.low, found.high) == pytest.approx(ends, nan_ok=True)
    assert found.defined == (5 if math.isfinite(given.value) else 0)
    assert found.events == given.events
