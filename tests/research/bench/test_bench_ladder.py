"""``evenhand bench ladder``: what its processes time is the work itself, and its table has the targets."""

from types import SimpleNamespace

import pytest
from threadpoolctl import threadpool_limits

from research.bench import ladder, timed_ladder
from research.bench.listing import bench_of

ROWS = "4000"


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """As every stage has it; a second thread of linear algebra waits at full speed."""
    with threadpool_limits(1):
        yield


def test_one_lender_converges_and_the_other_is_separated():
    newton, limit, firth = (timed_ladder.fit(how, ROWS) for how in ("newton", "limit", "firth"))
    assert newton["columns"] == limit["columns"] == firth["columns"] > 25
    assert 4 <= newton["passes"] <= 9
    assert newton["passes"] < limit["passes"]
    assert firth["passes"] > 10


def test_the_judged_effect_has_parts_and_leaves_rows_out():
    told = timed_ladder.judged(ROWS)
    assert told["parts"] > 20
    assert told["peak_mb"] >= told["before_mb"]
    files = timed_ladder.drawn(4000)
    assert 0 < files.undecided.sum() < 500
    applications = timed_ladder.applications_of(files)
    assert len(applications.denied) == 4000 - files.undecided.sum()
    assert [len(block.controls) for block in applications.blocks] == [5, 4]


def test_fixed_effects_are_columns_of_the_fit_and_not_of_memory():
    told = timed_ladder.places("20000")
    assert told["columns"] > 50
    assert told["effects"] == len(timed_ladder.GROUPS) - 1


@pytest.mark.parametrize(
    ("cpu_s", "met"), [(5.0, ["met", "met"]), (7.0, ["missed", "met"]), (20.0, ["missed", "missed"])]
)
def test_the_table_has_a_target_for_the_ladder_and_for_the_judged_effect(monkeypatch, cpu_s, met):
    def run(what, *about):
        told = {"rows": int(about[-1]), "cpu_s": cpu_s, "seconds": cpu_s, "peak_mb": 900.0, "passes": 6, "columns": 31}
        return told | {"effects": 60, "parts": 250, "before_mb": 400.0}

    monkeypatch.setattr(ladder, "_run", run)
    lines = list(ladder._lines(SimpleNamespace(limit=10**9)))
    assert [line["met"] for line in lines if line["cpu_s"] and "CPU" in (line["target"] or "")] == met
    assert [line["rows"] for line in lines] == [40_000] * 3 + [48_700] + [2_000_000] * 3
    assert lines[-1]["met"] == "met"
    assert bench_of("ladder") is ladder.BENCH
