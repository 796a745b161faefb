"""Runs are in the order of the lake's log, whatever the clock said when they were published."""

from dataclasses import replace
from pathlib import Path

from lake_of_runs import NEW, OLD, OTHER, lake_of_runs

from flows.operations.retention import Keeping, leaving
from flows.runs.index import last_run, listed, runs_of, standing
from tasks.lake import log


def test_the_log_decides_where_a_clock_was_set_back(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    assert [run.run for run in runs_of(lake, "loans")] == [OLD, NEW], "by the clock, without a log"
    log.append(lake, "run published", run=NEW)
    log.append(lake, "note", run=NEW, by="A. Nalyst", text="no order")
    log.append(lake, "run published", run=OLD)  # of which the manifest says an earlier time
    assert [run.run for run in runs_of(lake, "loans")] == [NEW, OLD]
    last = last_run(lake, "loans", 2023)
    assert last is not None
    assert last.run == OLD
    first, second = runs_of(lake, "loans")
    kept = standing([replace(first, protected=True), second])
    assert kept is not None
    assert kept.run == NEW, "a protected run stands"


def test_an_entry_is_read_once_and_a_new_one_is_seen(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    log.append(lake, "run published", run=NEW)
    before = log.published(lake)
    assert NEW in before
    log.append(lake, "run published", run=NEW)
    assert log.published(lake)[NEW] > before[NEW]


def test_what_is_listed_and_what_is_removed_go_by_the_log_too(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    log.append(lake, "run published", run=NEW)
    log.append(lake, "run published", run=OLD)
    assert [each.run for each in listed(lake, "loans")] == [OLD, NEW]
    assert [run.run for run in leaving(lake, runs_of(lake), Keeping(1))] == [NEW]


def test_runs_of_before_the_log_are_in_the_order_of_the_clock_and_before_all_others(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    log.append(lake, "note", run=NEW, by="A. Nalyst", text="begins the log, which enters the runs by their names")
    assert [each.run for each in listed(lake)] == [NEW, OTHER, OLD]
    log.append(lake, "run published", run=OLD)
    assert [each.run for each in listed(lake)] == [OLD, NEW, OTHER]
