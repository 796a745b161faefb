"""What the audit of a partition is expected to take: by runs of this lake, else by the table that was measured."""

from itertools import pairwise

import pytest
from conftest import spec_of

from flows.partitions.year_plan import BEND, Past, expected_cost, grown

STEPS = ["ingest", "ablate", "detect cst"]
PAST = Past(1_000, {"ingest": 1.0, "ablate": 4.0, "detect cst": 10.0}, {"ingest": 500.0, "detect cst": 900.0})


@pytest.fixture
def spec(place):
    return spec_of(place)


def test_the_same_rows_take_the_same(spec):
    cost = expected_cost(spec, STEPS, 1_000, [PAST])
    assert (cost.cpu_seconds, cost.peak_mb, cost.measured_here) == (15.0, 900.0, True)


def test_growth_changes_at_the_bend():
    assert grown("ablate", 10_000, 20_000) == pytest.approx(2**1.1)
    assert grown("ablate", 20_000, 40_000) == pytest.approx(2**1.5)
    assert grown("ablate", 10_000, 40_000) == pytest.approx(2**1.1 * 2**1.5)
    assert grown("ablate", 40_000, 10_000) == pytest.approx(1 / (2**1.1 * 2**1.5))
    assert grown("detect fgce", 100, BEND) == 1.0


def test_more_rows_take_more(spec):
    costs = [expected_cost(spec, STEPS, rows, [PAST]) for rows in (100, 500, 5_000, 20_000, 80_000)]
    assert all(a.cpu_seconds < b.cpu_seconds and a.peak_mb < b.peak_mb for a, b in pairwise(costs))


def test_the_run_that_is_nearest_in_rows_tells(spec):
    large = Past(100_000, {**PAST.cpu_seconds, "detect cst": 7.0}, {})
    assert expected_cost(spec, ["detect cst"], 100_000, [PAST, large]).cpu_seconds == 7.0


def test_a_step_that_looks_at_a_sample_grows_no_more_beyond_it(spec):
    at = spec.sampling.graph_rows
    whole, sampled, more = (expected_cost(spec, ["ablate"], rows, [PAST]).cpu_seconds for rows in (at, at + 1, 40 * at))
    assert sampled == more == pytest.approx(5 * whole, rel=1e-3)  # drawn five times
    everybody = spec.model_copy(update={"sampling": None})
    assert expected_cost(everybody, ["ablate"], 40 * at, [PAST]).cpu_seconds > 10 * more


def test_without_a_run_the_table_tells_and_says_so(spec):
    cost = expected_cost(spec, STEPS, 8_805, [])
    assert (cost.cpu_seconds, cost.peak_mb, cost.measured_here) == (round(0.6 + 2.9 + 28.9, 1), 1270.0, False)
