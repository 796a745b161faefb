"""What the audit of a partition is expected to take: by runs of this lake, else by the table that was measured."""

from dataclasses import replace
from itertools import pairwise

import pytest
from conftest import spec_of

from flows.partitions import year_plan
from flows.partitions.year_plan import BEND, BY_GROUP, Measured, Past, expected_cost, expected_steps, group_count, grown
from schemas.audit.partition import By

STEPS = ["ingest", "ablate", "detect cst"]
PAST = Past(1_000, {"ingest": 1.0, "ablate": 4.0, "detect cst": 10.0}, {"ingest": 500.0, "detect cst": 900.0})


@pytest.fixture
def spec(place):
    return spec_of(place)


def test_the_same_rows_take_the_same(spec):
    cost = expected_cost(spec, STEPS, 1_000, [PAST])
    assert (cost.cpu_seconds, cost.peak_mb, cost.measured_here) == (15.0, 900.0, True)


def test_a_step_without_a_run_takes_what_the_table_has_and_the_others_what_they_took(spec):
    steps = expected_steps(spec, ["publish", *STEPS], 1_000, [PAST])
    assert steps[1:] == [1.0, 4.0, 10.0]
    assert 0 < steps[0] < 60
    assert sum(steps) == pytest.approx(expected_cost(spec, ["publish", *STEPS], 1_000, [PAST]).cpu_seconds, abs=0.1)


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


def test_a_step_that_compares_with_a_pool_costs_the_same_of_all_larger_partitions(spec):
    at = spec.sampling.pool_rows
    half, whole, more = (
        expected_cost(spec, ["detect cst"], rows, [PAST]).cpu_seconds for rows in (at // 2, at, 9 * at)
    )
    assert half < whole == more


RUNS = (
    Past(1_000, {"ingest": 0.5, "detect cst": 8.0}, {"detect cst": 600.0}),
    Past(9_000, {"ingest": 0.6, "ablate": 3.0, "detect cst": 24.0}, {"ablate": 1_000.0, "detect cst": 700.0}),
)
SHORT = (replace(RUNS[0], cpu_seconds={"ingest": 0.5, "detect cst": 2.0}),)
TABLE = Measured(yardstick_seconds=1.0, groups=4, runs=SHORT, full_runs=RUNS)


@pytest.fixture
def half_as_fast(monkeypatch):
    monkeypatch.setattr(year_plan, "yardstick_seconds", lambda: 2.0)


@pytest.mark.usefixtures("half_as_fast")
def test_without_a_run_the_table_tells_by_groups_and_by_the_speed_of_the_machine(spec):
    cost = expected_cost(spec, STEPS, 9_000, [], TABLE)
    of_groups = group_count(spec) / 4
    assert cost.cpu_seconds == pytest.approx(2 * (0.6 + 3.0 + of_groups * 24.0), abs=0.1)
    assert (cost.peak_mb, cost.measured_here) == (1_000.0, False)


@pytest.mark.usefixtures("half_as_fast")
def test_what_a_step_takes_of_any_number_of_groups_is_not_scaled_by_them(spec):
    fixed = replace(TABLE, groups=2 * group_count(spec), fixed={"detect cst": 6.0})
    assert expected_cost(spec, ["detect cst"], 9_000, [], fixed).cpu_seconds == pytest.approx(2 * (6.0 + 18.0 / 2))
    tiny = replace(fixed, full_runs=(Past(1_000, {"detect cst": 4.0}, {"detect cst": 600.0}),))
    assert expected_cost(spec, ["detect cst"], 1_000, [], tiny).cpu_seconds == 2 * 4.0  # no more than it took


@pytest.mark.usefixtures("half_as_fast")
def test_between_two_sizes_of_the_table_a_step_lies_on_the_line_of_their_logarithms(spec):
    small, middle, large = (expected_cost(spec, ["detect cst"], rows, [], TABLE) for rows in (1_000, 3_000, 9_000))
    assert middle.cpu_seconds == pytest.approx((small.cpu_seconds * large.cpu_seconds) ** 0.5, abs=0.1)
    assert small.cpu_seconds < middle.cpu_seconds < large.cpu_seconds


@pytest.mark.usefixtures("half_as_fast")
def test_beyond_the_table_a_step_goes_on_as_between_the_last_two_sizes_and_never_falls(spec):
    ratio = expected_cost(spec, ["detect cst"], 18_000, [], TABLE).cpu_seconds
    assert ratio / expected_cost(spec, ["detect cst"], 9_000, [], TABLE).cpu_seconds == pytest.approx(2**0.5, rel=0.01)
    falling = replace(TABLE, full_runs=(RUNS[0], replace(RUNS[1], cpu_seconds={"detect cst": 4.0})))
    beyond, last = (expected_cost(spec, ["detect cst"], rows, [], falling).cpu_seconds for rows in (18_000, 9_000))
    assert beyond == last


@pytest.mark.usefixtures("half_as_fast")
def test_memory_lies_on_the_line_through_the_sizes_of_the_table(spec):
    peaks = [expected_cost(spec, STEPS, rows, [], TABLE).peak_mb for rows in (1_000, 5_000, 9_000, 17_000)]
    assert peaks == [600.0, 800.0, 1_000.0, 1_400.0]


@pytest.mark.usefixtures("half_as_fast")
def test_memory_lies_on_the_line_through_runs_of_the_lake_that_are_far_apart(spec):
    runs = [replace(PAST, usable=rows, peak_mb={"ingest": mb}) for rows, mb in ((1_000, 500.0), (9_000, 900.0))]
    peaks = [expected_cost(spec, ["ingest"], rows, runs, TABLE).peak_mb for rows in (5_000, 9_000, 29_000)]
    assert peaks == [700.0, 900.0, 1_900.0]
    near = [runs[0], replace(runs[1], usable=1_400)]  # a difference of small runs would say 10 GB of 100,000 rows
    of_table = TABLE.full_runs[1].peak_mb["detect cst"] - TABLE.full_runs[0].peak_mb["detect cst"]
    expected = expected_cost(
        spec, ["detect cst"], 9_400, [replace(n, peak_mb={"detect cst": 600.0}) for n in near], TABLE
    )
    assert expected.peak_mb == pytest.approx(600.0 + of_table, rel=0.01)


@pytest.mark.usefixtures("half_as_fast")
def test_memory_far_beyond_the_largest_run_grows_as_in_the_table(spec):
    runs = [Past(rows, {}, {"detect cst": mb}) for rows, mb in ((100, 500.0), (1_000, 900.0))]
    assert expected_cost(spec, ["detect cst"], 4_000, runs, TABLE).peak_mb == pytest.approx(
        900 + 3_000 * 400 / 900, 0.01
    )
    of_table = (700.0 - 600.0) / 8_000
    assert expected_cost(spec, ["detect cst"], 9_000, runs, TABLE).peak_mb == pytest.approx(
        900 + 8_000 * of_table, 0.01
    )


@pytest.mark.usefixtures("half_as_fast")
def test_beyond_the_runs_of_the_lake_a_step_grows_as_in_the_table_and_by_its_exponent_without(spec):
    own = Past(1_000, {"detect cst": 5.0, "ablate": 1.0}, {})
    assert expected_cost(spec, ["detect cst"], 9_000, [own], TABLE).cpu_seconds == pytest.approx(5.0 * 24.0 / 8.0)
    empty = replace(TABLE, runs=(), full_runs=(Past(1_000, {}, {"ablate": 1.0}),))
    grows = expected_cost(spec, ["ablate"], 9_000, [own], empty).cpu_seconds
    assert grows == pytest.approx(grown("ablate", 1_000, 9_000), abs=0.1)


def test_between_two_runs_of_the_lake_a_step_lies_on_the_line_of_their_logarithms(spec):
    large = replace(PAST, usable=4_000, cpu_seconds={"detect cst": 40.0})
    assert expected_cost(spec, ["detect cst"], 2_000, [PAST, large]).cpu_seconds == 20.0


@pytest.mark.usefixtures("half_as_fast")
def test_a_partition_with_a_short_report_costs_what_such_ones_did(spec):
    by_lender = spec.model_copy(update={"by": By(column="lender")})
    costs = [expected_cost(of, ["detect cst"], 1_000, [], TABLE).cpu_seconds for of in (by_lender, spec)]
    assert costs[1] == pytest.approx(4 * costs[0], abs=0.1)


@pytest.mark.usefixtures("half_as_fast")
def test_a_run_of_the_lake_goes_before_the_table(spec):
    assert expected_cost(spec, STEPS, 1_000, [PAST], TABLE).cpu_seconds == 15.0


def test_the_shipped_table_has_all_that_a_plan_needs():
    table = Measured.shipped()
    for runs in (table.runs, table.full_runs):
        assert sum(bool(run.peak_mb) for run in runs) >= 3
        assert sum("follow" in run.cpu_seconds for run in runs) >= 3
    assert 0.5 < table.usable_share < 1
    assert 0.001 < table.yardstick_seconds < 1
    assert {"detect fgce", "detect cst", "detect gcfn", "adjust", "publish", "report"} <= set(table.runs[0].cpu_seconds)
    assert {"adjust", "follow", "measure"} <= set(table.fixed) <= BY_GROUP
