"""Memory: what an audit may take, what its stages will need, and the refusal before anything is computed."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from flows import execution
from flows.concurrency import schedule
from flows.concurrency.schedule import Need, need_of
from schemas.audit.file import spec_text
from schemas.errors import InfrastructureError
from tasks.pipeline import resources as free
from tasks.pipeline.registry import read_spec
from tasks.plan import plan

STAGES = ("ingest", "detect", "detect", "measure")
TEXAS = Path(__file__).parents[3] / "data" / "audits" / "hmda-tx-2022.yaml"
NAMES = ("ingest", "detect cst", "detect cec", "measure")


def run(rows: int, *peaks: float) -> Any:
    """A finished run, with the peak of each of its stages."""
    return SimpleNamespace(
        rows=rows,
        partitions=[SimpleNamespace(stage=name) for name in STAGES],
        lineage=[{"peak_memory_mb": each} for each in peaks],
    )


def planned(cst_mb: float = 0.0) -> Any:
    """An audit whose method cst says what it needs for a row of each problem."""
    spec = SimpleNamespace(
        name="loans",
        source=SimpleNamespace(keep={}),
        methods=SimpleNamespace(
            named=lambda name: SimpleNamespace(forecast_mb=lambda of: of.rows * cst_mb if name == "cst" else 0.0)
        ),
        sampling=None,
    )
    silent = SimpleNamespace(forecast_mb=lambda of: 0.0)
    steps = [
        SimpleNamespace(name=name, settings=silent, unread=(), stage=stage(of))
        for name, of in zip(NAMES, STAGES, strict=True)
    ]
    return SimpleNamespace(spec=spec, steps=steps)


def stage(name: str) -> Any:
    """A stage that reads what the one before it writes; detections wait for none but ingest."""
    reads = {"ingest": [], "detect": ["rows"], "measure": ["tallies"]}[name]
    writes = {"ingest": "rows", "detect": "tallies", "measure": "measures"}[name]
    tables = [SimpleNamespace(name=each) for each in reads]
    return SimpleNamespace(name=name, reads=tables, writes=[SimpleNamespace(name=writes)])


def need(rows: int, *runs: Any, left: int = 0, cst_mb: float = 0.0, jobs: int = 1) -> Need | None:
    of = planned(cst_mb)
    return need_of(of, of.steps[left:], runs, rows, jobs)


@pytest.mark.parametrize(
    ("text", "mb"), [("3GB", 3000.0), ("800 MB", 800.0), ("1.5gb", 1500.0), ("1GiB", 2**30 / 1e6), ("5 mib", 5.24288)]
)
def test_a_size_has_a_unit(monkeypatch: pytest.MonkeyPatch, text: str, mb: float) -> None:
    monkeypatch.setenv("EVENHAND_MEMORY", text)
    assert free.allowed_mb() == pytest.approx(mb)


@pytest.mark.parametrize("text", ["3", "0GB", "GB", "-1GB", "3 TB", "much"])
def test_a_size_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("EVENHAND_MEMORY", text)
    with pytest.raises(InfrastructureError, match="EVENHAND_MEMORY"):
        free.allowed_mb()


def test_without_it_four_fifths_of_what_a_container_leaves(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.delenv("EVENHAND_MEMORY", raising=False)
    monkeypatch.setattr("tasks.lake.storage._GROUPS", tmp_path)
    machine = free.allowed_mb()
    (tmp_path / "memory.current").write_text("1000000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert free.allowed_mb() == pytest.approx(machine, rel=0.2)
    (tmp_path / "memory.max").write_text("11000000\n")
    assert free.allowed_mb() == pytest.approx(8.0)


def test_memory_grows_with_the_rows_beyond_what_a_process_holds_anyway() -> None:
    donor = run(10_000, 500, 1400, 900, 700)
    assert need(30_000, donor) == Need("detect cst", 400 + 3 * 1000, 30_000)
    assert need(30_000, donor, left=2) == Need("detect cec", 400 + 3 * 500, 30_000)
    assert need(5_000, donor) == Need("detect cst", 400 + 500, 5_000)


def test_the_run_that_is_nearest_in_rows_counts_and_one_too_far_away_tells_nothing() -> None:
    near, small = run(20_000, 500, 2400, 900, 700), run(2_000, 500, 1400, 900, 700)
    assert need(40_000, small, near) == Need("detect cst", 400 + 2 * 2000, 40_000)
    assert need(40_000, small) is None
    assert need(40_000) is None


def test_a_method_that_says_what_it_needs_is_believed_without_an_earlier_run() -> None:
    assert need(100_000, cst_mb=0.02) == Need("detect cst", 400 + 2000, 100_000)
    assert need(100_000, run(100_000, 500, 700, 900, 800), cst_mb=0.0001) == Need("detect cec", 900, 100_000)


def test_stages_that_may_run_side_by_side_are_added_up_and_no_others() -> None:
    donor = run(10_000, 500, 1400, 900, 2400)
    both = Need("detect cst", 2 * 400 + 3 * 1000 + 3 * 500, 30_000, ("detect cec",))
    assert need(30_000, run(10_000, 500, 1400, 900, 700), jobs=2) == both
    assert need(30_000, donor, jobs=2) == Need("measure", 2 * 400 + 3 * 2000, 30_000), "measure waits for both"
    assert need(30_000, donor, jobs=8, left=1) == need(30_000, donor, jobs=2)


def refused(monkeypatch: pytest.MonkeyPatch, allowed: str, *, force: bool = False, rows: int = 30_000) -> None:
    monkeypatch.setenv("EVENHAND_MEMORY", allowed)
    monkeypatch.setattr(schedule, "runs_of", lambda *_: [run(10_000, 500, 1400, 900, 700)])
    done: Any = [SimpleNamespace(tables=[SimpleNamespace(rows=rows)])]
    nothing: Any = None
    schedule.check_memory(nothing, planned(), done, force=force)


def test_what_does_not_fit_is_refused_with_the_stage_the_figure_and_what_to_change(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refused(monkeypatch, "3.5GB")
    with pytest.raises(InfrastructureError) as error:
        refused(monkeypatch, "3.3GB")
    said = str(error.value)
    for part in ("detect cst", "3.4 GB", "30,000 rows", "3.3 GB", "source.keep", "EVENHAND_MEMORY", "--force"):
        assert part in said
    with caplog.at_level(logging.WARNING, logger="evenhand"):
        refused(monkeypatch, "3.3GB", force=True)
    assert "detect cst will need about 3.4 GB" in caplog.text


def test_a_flow_asks_once_ingest_has_counted_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployed flow is started by no command that would have asked."""
    monkeypatch.setenv("EVENHAND_MEMORY", "3.3GB")
    monkeypatch.setattr(schedule, "runs_of", lambda *_: [run(100_000, 500, 4400, 900, 700)])
    counted = SimpleNamespace(rows=300_000)  # so many that people are not counted here
    ended: Any = SimpleNamespace(stage="ingest", tables=[counted], table=lambda _: counted)
    monkeypatch.setattr(execution, "held", lambda *_: [ended])
    of, nothing = planned(), cast("Any", SimpleNamespace(location="s3://elsewhere"))  # a disk of ours holds nothing
    with pytest.raises(InfrastructureError, match=r"detect cst will need about 12\.4 GB"):
        execution.check_ended(nothing, of, ended)
    execution.check_ended(nothing, of, ended, force=True)
    execution.check_ended(nothing, of, cast("Any", SimpleNamespace(stage="score")))


def test_years_at_the_same_time_share_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_MEMORY", "3GB")
    years: Any = [
        SimpleNamespace(year=year, need=Need("detect cst", mb, 1000) if mb else None)
        for year, mb in ((2019, 2000.0), (2020, None), (2021, 1500.0), (2022, 900.0))
    ]
    schedule.check_years(years, 1, force=False)
    with pytest.raises(InfrastructureError, match=r"2019: stage detect cst .* fewer --workers.*2 years at a time"):
        schedule.check_years(years, 2, force=False)
    schedule.check_years(years[2:], 2, force=False)
    schedule.check_years([], 2, force=False)


def test_a_year_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows count as far as they are known."""
    of = planned()
    assert need_of(of, of.steps, [run(10, 1, 2, 3, 4)], None) is None
    found = need_of(of, of.steps, [run(10_000, 500, 1400, 900, 700)], 10_000)
    assert found == Need("detect cst", 1400, 10_000)


def test_a_first_run_is_forecast_by_what_its_stages_say_of_themselves() -> None:
    """Texas, 50,000 rows: each stage within a third of what it took in a process of its own (MB beyond imports)."""
    took = {"score": 401, "connect": 652, "ablate": 737, "rerank": 578, "detect fgce": 811, "detect cst": 851}
    took |= {"mediate": 728, "detect cec": 660, "detect gcfn": 421, "measure": 924, "publish": 864}
    given = {"source.path": str(TEXAS), "methods.cst.k": "50", "sampling": "null"}  # a plan reads no row
    texas = plan(read_spec(spec_text(TEXAS), str(TEXAS), given).spec)
    said = {step.name: need_of(texas, [step], [], 50_000) for step in texas.steps}
    for name, mb in took.items():
        assert said[name].mb - 400 == pytest.approx(mb, rel=1 / 3), name
    assert need_of(texas, texas.steps, [], 400_000, 2).mb > need_of(texas, texas.steps, [], 400_000).mb > 4_000
