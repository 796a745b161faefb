"""Partitions by their records: which are left, which stand, which are set aside; and what a year of them says."""

import os
from collections import deque
from dataclasses import asdict, replace

import pytest
from lenders_of_loans import LARGE, MIDDLE, SMALL, YEAR, write_lenders

from flows.operations.status import partition_status
from flows.partitions.attempts import Attempt, Recorder, YearState, latest, place_of, recorded, summed_up
from flows.partitions.partition_list import Listed, keep_listing, newest, seconds_left
from flows.partitions.year_audit import audit_partition, hand_over, next_to_start, take_divided
from flows.partitions.year_plan import Asked, Choice, Outlook, outlooks
from schemas.errors import SpecError
from schemas.terms import ExitCode
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec


@pytest.fixture
def spec(tmp_path):
    return read_spec(write_lenders(tmp_path).read_text(), "lenders.yaml", {}).spec


@pytest.fixture
def lake(tmp_path):
    return Lake(tmp_path / "lake")


def seen(spec, lake, *, force=False, **choice) -> Outlook:
    (found,), failed = outlooks(spec, [YEAR], lake, Choice(**choice), force=force)
    assert failed == []
    return found


def fail(spec, lake, message):
    found = seen(spec, lake)
    conditions = next(conditions for listed, conditions in found.to_do if listed.value == LARGE)
    with recorded(lake, spec.name, YEAR, LARGE, rows=1, conditions=conditions) as recorder:
        recorder.end(YearState.FAILED, ExitCode.DATA_QUALITY, message)


def test_all_comes_first_and_too_few_is_recorded_without_a_task(spec, lake):
    found = seen(spec, lake)
    assert [listed.value for listed, _ in found.to_do] == ["all", LARGE, MIDDLE]
    assert [(record.value, record.state) for record in found.settled] == [(SMALL, YearState.TOO_FEW)]
    assert seen(spec, lake).settled == found.settled  # the same record, not another one


def test_a_choice_takes_the_largest_or_those_named(spec, lake):
    assert [listed.value for listed, _ in seen(spec, lake, limit=1).to_do] == ["all", LARGE]
    assert [listed.value for listed, _ in seen(spec, lake, values=(MIDDLE,)).to_do] == [MIDDLE]
    with pytest.raises(SpecError, match=r"--by-value Bank Q: 2012 has no such partition; did you mean"):
        seen(spec, lake, values=("Bank Q",))
    with pytest.raises(SpecError, match="--limit 0: expected 1 partition or more"):
        seen(spec, lake, limit=0)


def test_what_failed_twice_alike_is_set_aside_and_forced(spec, lake):
    fail(spec, lake, "process 7 found no room")
    assert seen(spec, lake).set_aside == ()
    fail(spec, lake, "process 8 found no room")
    assert [record.value for record in seen(spec, lake).set_aside] == [LARGE]
    assert seen(spec, lake, force=True).set_aside == ()
    changed = spec.model_copy(update={"title": "another audit"})
    assert seen(changed, lake).set_aside == ()  # under other conditions it may succeed


def test_what_failed_twice_in_two_ways_is_tried_again(spec, lake):
    fail(spec, lake, "no room")
    fail(spec, lake, "no file")
    assert seen(spec, lake).set_aside == ()


def test_too_few_does_not_change_the_exit_code_and_a_failure_makes_it_five(lake):
    def record(state, code):
        words = {"audit": "a", "year": YEAR, "value": "v", "attempt": 1, "began": "", "pid": 1, "host": ""}
        return Attempt(**words, state=state, exit_code=code)

    few, within = record(YearState.TOO_FEW, 3), record(YearState.WITHIN, 0)
    assert summed_up([few, within])["exit_code"] == ExitCode.WITHIN
    assert summed_up([few])["exit_code"] == ExitCode.INCONCLUSIVE
    assert summed_up([within, record(YearState.FAILED, 4)])["exit_code"] == ExitCode.INFRASTRUCTURE


def test_values_that_share_a_slug_have_records_of_their_own(lake):
    assert place_of("A-B") != place_of("A B")
    for value in ("A-B", "A B"):
        with recorded(lake, "a", YEAR, value) as recorder:
            recorder.end(YearState.WITHIN, 0, value)
    assert {value: record.message for value, record in newest(lake, "a", YEAR).items()} == {"A-B": "A-B", "A B": "A B"}
    assert latest(lake, "a", YEAR) is None  # none is of the year as a whole


def test_status_counts_partitions_and_expects_time_by_the_nearest_in_rows(lake):
    keep_listing(lake, "a", YEAR, "lender", [Listed(str(n), n, n, "") for n in (100, 200, 300)])
    with recorded(lake, "a", YEAR, "300", rows=300) as recorder:
        recorder.tell(run="r", computed=1)
        recorder.end(YearState.OUTSIDE, 1)
    with recorded(lake, "a", YEAR, "100", rows=100) as recorder:
        recorder.end(YearState.FAILED, 5, "no room")
        (year,) = partition_status(lake)
    assert year.states == {"outside": 1, "failed": 1, "not begun": 1}
    assert (year.done, year.total, year.partitions[0].message) == (1, 3, "no room")
    done = [latest(lake, "a", YEAR, "300").model_copy(update={"seconds": 40.0})]
    assert seconds_left(done, [100, 250], 2) == 40.0
    assert seconds_left([], [100], 1) is None
    assert seconds_left(done, [], 1) == 0.0


@pytest.fixture
def divided(spec, lake, monkeypatch):
    """The partition of every row, whose stages are tasks, and its first stage at work."""
    monkeypatch.setenv("EVENHAND_SUB_FLOW_ROWS", "60")
    every, conditions = seen(spec, lake).to_do[0]
    plain = {"spec": spec.model_dump(mode="json"), "listed": asdict(every), "conditions": conditions}
    partition_task = Asked(**plain, year=YEAR, lake=lake.location, force=False, jobs=1)
    (parts,) = take_divided(deque([partition_task]), 2)
    first = next_to_start(deque(), [parts])
    first.began()
    return parts, first


def test_a_record_begins_with_the_first_stage_and_its_audit_goes_on_with_it(spec, lake, divided, monkeypatch):
    parts, stage_task = divided
    (year,) = partition_status(lake)
    assert (year.partitions[0].value, year.partitions[0].state) == ("all", "running")
    began, at_stages = latest(lake, spec.name, YEAR, "all"), [parts]
    assert (began.stage, began.attempt, began.rows) == ("ingest", 1, parts.year_task.listed["rows"])
    remaining = deque()
    while at_stages:
        stage_task.call().run()
        stage_task.ended(0.1)
        hand_over(remaining, at_stages)
        if at_stages:
            stage_task = next_to_start(remaining, at_stages)
            stage_task.began()
    (partition_task,) = remaining
    assert partition_task.goes_on == 1
    assert not partition_task.begun()
    main = os.getpid()
    monkeypatch.setattr("os.getpid", lambda: main + 1)  # a worker
    listed = Listed(**partition_task.listed)
    ended = audit_partition(spec, YEAR, listed, lake, partition_task.conditions, goes_on=partition_task.goes_on)
    monkeypatch.undo()
    assert partition_task.begun()
    assert partition_task.ended() == ended
    assert (ended.attempt, ended.began, ended.state.value) == (1, began.began, "within")
    assert ended.computed == len(ended.stages) == len(began.stages)
    further = audit_partition(spec, YEAR, listed, lake, partition_task.conditions, goes_on=1)  # which has ended
    assert (further.attempt, further.computed) == (2, 0)


def test_what_the_back_fill_leaves_at_a_stage_is_interrupted_and_the_next_attempt_counts_its_own(spec, lake, divided):
    parts, first = divided
    first.call().run()
    first.ended(0.1)
    parts.release()  # as where its process dies
    died = latest(lake, spec.name, YEAR, "all")
    assert (died.state, died.computed) == (YearState.INTERRUPTED, 1)
    again = replace(parts.year_task, before=died.attempt)
    assert not again.begun()
    (resumed,) = take_divided(deque([again]), 2)
    stage_task = next_to_start(deque(), [resumed])
    stage_task.began()
    assert stage_task.held_before
    stage_task.call().run()
    stage_task.ended(0.1)
    assert again.begun()
    assert take_divided(deque([again]), 2) == []  # another back-fill leaves it to a worker, which waits
    resumed.release()
    last = latest(lake, spec.name, YEAR, "all")
    assert (last.attempt, last.computed) == (2, 0)


def test_the_seconds_of_an_attempt_that_goes_on_count_from_its_beginning(spec, lake):
    with lake.lock(f"year-{spec.name}-{YEAR}"):
        recorder = Recorder(lake, spec.name, YEAR)
        recorder.tell(began="2020-01-01T00:00:00+00:00")
        assert Recorder(lake, spec.name, YEAR, goes_on=1).end(YearState.WITHIN, 0).seconds > 1e8
