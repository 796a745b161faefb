"""How years stand and what a back-fill would run, after each thing that can happen to a year."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from datetime import datetime

import pytest
from conftest import REPOSITORY, environment, evenhand
from loans_by_year import ABSENT, AUDITED, LACKING, ONE_SIDED, WITHIN, write_years, year_of_loans, yearly_spec

from flows.operations.status import status
from flows.partitions import attempts as recording
from flows.partitions import forecast
from flows.partitions import forecast as forecasting
from flows.partitions.attempts import YearState, latest, recorded
from flows.partitions.forecast import forecast as forecast_values
from flows.partitions.year_audit import audit_year
from flows.runs.index import last_run
from flows.runs.signatures import protect
from schemas.errors import EvenhandError, IntegrityError
from schemas.terms import ExitCode
from tasks.lake.store import Lake
from tasks.pipeline.digests import FIRST_PARTY, Sources

STAGES = ["ingest", "preprocess", "score", "measure", "publish", "report"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory in which the year WITHIN was audited, and the years ONE_SIDED and ABSENT were tried."""
    path = tmp_path_factory.mktemp("status")
    write_years(path)
    audit_year(yearly_spec(path), WITHIN, Lake(path / "lake"))
    audit_year(yearly_spec(path), ONE_SIDED, Lake(path / "lake"))
    with pytest.raises(EvenhandError):
        audit_year(yearly_spec(path), ABSENT, Lake(path / "lake"))
    return path


@pytest.fixture
def lake(place):
    return Lake(place / "lake")


def states(year):
    return [stage.state.value for stage in year.stages]


def planned(place, lake, year, **overrides):
    (found,) = forecast_values(yearly_spec(place, **overrides), [year], lake)
    return found


def standing_of(lake, year):
    return next(found for found in status(lake) if found.year == year)


def test_a_finished_year_has_nothing_left(place, lake):
    found = planned(place, lake, WITHIN)
    assert [stage.stage for stage in found.stages] == STAGES
    assert states(found) == ["ok"] * len(STAGES)
    assert (found.cost.rows, found.cost.about, found.cost.seconds, found.cost.bytes) == (
        len(year_of_loans(WITHIN)),
        False,
        0,
        0,
    )
    told = standing_of(lake, WITHIN)
    assert (told.state, states(told), told.attempts) == ("within", ["ok"] * len(STAGES), 1)


def test_a_year_that_was_never_run_is_missing_and_costs_what_others_did(place, lake):
    found = planned(place, lake, LACKING)
    assert states(found) == ["missing"] * len(STAGES)
    assert found.stages[0].reason == "never run"
    assert [stage.reason for stage in found.stages[1:]] == ["after ingest"] * len(STAGES[1:])
    assert found.lacking == ("history",)
    donor, rows = last_run(lake, "yearly", WITHIN), found.cost.rows
    assert found.cost.about
    assert rows == pytest.approx(len(year_of_loans(LACKING)), rel=0.25)  # by bytes: its lines lack a column
    spent = sum(line["seconds"] for line in donor.lineage)
    assert found.cost.seconds == pytest.approx(spent * rows / donor.rows, abs=0.1)
    files = [lake.root / p for part in donor.partitions for p in (*(a.path for a in part.tables), *part.files)]
    assert found.cost.bytes == pytest.approx(sum(f.stat().st_size for f in files) * rows / donor.rows, abs=1)
    assert LACKING not in {year.year for year in status(lake)}


def test_without_an_earlier_run_the_file_and_the_shipped_table_tell(place, tmp_path):
    cost = planned(place, Lake(tmp_path / "lake"), WITHIN).cost
    assert cost.rows == pytest.approx(len(year_of_loans(WITHIN)), rel=0.05)  # by the length of its first lines
    assert cost.about
    assert cost.by_table
    assert cost.seconds > 0
    assert cost.bytes is None


def test_other_data_make_a_year_stale(place, lake, tmp_path):
    year_of_loans(WITHIN).iloc[:-30].to_csv(tmp_path / f"loans_{WITHIN}.csv", index=False)
    found = planned(tmp_path, lake, WITHIN)
    assert states(found) == ["stale input"] * len(STAGES)
    assert "the data are now sha256" in found.stages[0].reason


def test_another_spec_makes_the_stages_stale_that_depend_on_it(place, lake):
    found = planned(place, lake, WITHIN, bootstrap__draws="150")
    assert states(found) == ["ok", "ok", "ok", *["stale spec"] * 3]
    assert found.stages[3].reason == "the spec has changed: bootstrap"


def test_other_code_makes_the_stages_stale_that_it_reaches(place, lake, tmp_path, monkeypatch):
    for package in FIRST_PARTY:
        shutil.copytree(REPOSITORY / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "tasks" / "metrics" / "stage.py").open("a") as file:
        file.write("changed = True\n")
    other = Sources(tmp_path)
    monkeypatch.setattr("tasks.pipeline.digests.sources", lambda: other)
    found = planned(place, lake, WITHIN)
    assert states(found) == ["ok", "ok", "ok", *["stale code"] * 3]
    told = standing_of(lake, WITHIN)
    assert (told.state, states(told)) == ("stale", states(found))


def test_another_library_makes_a_year_stale(place, lake, monkeypatch):
    monkeypatch.setattr("tasks.pipeline.stage.versions", lambda: {"numpy": "0.1"})
    monkeypatch.setattr(forecast, "versions", lambda: {"numpy": "0.1"})
    found = planned(place, lake, WITHIN)
    assert states(found) == ["stale code"] * len(STAGES)
    assert "numpy" in found.stages[0].reason


def test_a_run_whose_spec_this_version_does_not_know_says_so(place, tmp_path):
    shutil.copytree(place / "lake", tmp_path / "lake")
    (file,) = (tmp_path / "lake").glob(f"runs/yearly-{WITHIN}-*/manifest.json")
    manifest = json.loads(file.read_text())
    manifest["spec"]["bootstrap"]["smoothed"] = True
    del manifest["sha256"]
    sealed = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    file.write_text(json.dumps({**manifest, "sha256": sealed}))
    told = standing_of(Lake(tmp_path / "lake"), WITHIN)
    assert told.message == "not to be audited again as things are: its spec is not one of this version"


def test_a_year_with_nothing_to_compare_is_inconclusive_and_no_pass(place, lake):
    told = standing_of(lake, ONE_SIDED)
    assert (told.state, states(told)) == ("inconclusive", ["inconclusive", *["missing"] * len(STAGES[1:])])
    assert "nothing to compare" in told.message
    assert states(planned(place, lake, ONE_SIDED)) == ["inconclusive", *["missing"] * len(STAGES[1:])]


def test_a_year_that_cannot_be_read_is_failed_and_blocks(place, lake):
    assert standing_of(lake, ABSENT).state == "failed"
    found = planned(place, lake, ABSENT)
    assert (found.exit_code, found.stages) == (ExitCode.INFRASTRUCTURE, ())
    assert f"loans_{ABSENT}.csv" in found.blocked


def test_a_year_at_work_is_running_while_its_lock_is_held_and_not_after(place, tmp_path):
    lake = Lake(tmp_path / "lake")
    with recorded(lake, "yearly", WITHIN) as recorder:
        recorder.tell(stages=tuple(STAGES), stage="score")
        told = standing_of(lake, WITHIN)
        assert (told.state, states(told)) == ("running", ["ok", "ok", "running", *["missing"] * 3])
    told = standing_of(lake, WITHIN)  # nobody wrote how it ended
    assert (told.state, states(told)) == ("interrupted", ["ok", "ok", "failed", *["missing"] * 3])
    assert latest(lake, "yearly", WITHIN).state is YearState.INTERRUPTED


def test_a_protected_year_is_planned_as_left_alone(place, lake):
    run = last_run(lake, "yearly", WITHIN).run
    protect(lake, run, True)
    try:
        found = planned(place, lake, WITHIN, bootstrap__draws="150")
        assert (found.protected, found.is_left(force=False), found.is_left(force=True)) == (run, False, True)
        assert standing_of(lake, WITHIN).protected
    finally:
        protect(lake, run, False)


def test_a_plan_writes_nothing(place, lake):
    before = {path: path.stat().st_mtime_ns for path in lake.root.rglob("*") if path.is_file()}
    forecasting.forecast(yearly_spec(place), [*AUDITED, ABSENT], lake)
    after = {path: path.stat().st_mtime_ns for path in lake.root.rglob("*") if path.is_file()}
    assert after == before


def test_the_commands_print_tables_and_json(place):
    words = (str(place / "yearly.yaml"), "--years", f"{WITHIN},{ONE_SIDED}", "--lake", str(place / "lake"))
    told = json.loads(evenhand("plan", *words, "--json").stdout)
    assert [year["stages"][0]["state"] for year in told] == ["ok", "inconclusive"]
    shown = evenhand("plan", *words)
    assert shown.returncode == 0
    assert "stage by stage" in shown.stdout
    matrix = evenhand("status", "--lake", str(place / "lake"))
    assert matrix.returncode == 0
    assert "inconclusive" in matrix.stdout
    bad = evenhand("plan", str(place / "yearly.yaml"), "--years", "2012..2014", "--lake", str(place / "lake"))
    assert (bad.returncode, "no range such as 2010-2024" in " ".join(bad.stderr.split())) == (2, True)


def test_a_reader_that_hangs_up_is_no_breach(place):
    end, pipe = os.pipe()
    os.close(end)
    words = [sys.executable, "-m", "flows.cli", "status", "--lake", str(place / "lake")]
    told = subprocess.run(
        words, env=environment(None), cwd=REPOSITORY, stdout=pipe, stderr=subprocess.PIPE, check=False
    )
    os.close(pipe)
    assert told.returncode == 141, told.stderr


def test_a_year_that_ends_while_it_is_looked_at_was_not_interrupted(place, tmp_path, monkeypatch):
    lake, look = Lake(tmp_path / "lake"), recording.held
    year = recorded(lake, "yearly", WITHIN)
    recorder = year.__enter__()
    assert latest(lake, "yearly", WITHIN).state is YearState.RUNNING

    def ends_first(lock):
        monkeypatch.undo()
        recorder.end(YearState.WITHIN, ExitCode.WITHIN)
        year.__exit__(None, None, None)
        return look(lock)

    monkeypatch.setattr(recording, "held", ends_first)
    assert latest(lake, "yearly", WITHIN).state is YearState.WITHIN


def test_the_protected_run_or_else_that_of_the_present_data_is_the_one_whose_standing_is_told(place, tmp_path):
    lake, year = Lake(shutil.copytree(place / "lake", tmp_path / "lake")), year_of_loans(WITHIN)
    year.to_csv(tmp_path / f"loans_{WITHIN}.csv", index=False)
    published = audit_year(yearly_spec(tmp_path), WITHIN, lake).run
    year.iloc[:-20].to_csv(tmp_path / f"loans_{WITHIN}.csv", index=False)
    protect(lake, published, True)
    later = audit_year(yearly_spec(tmp_path), WITHIN, lake, force=True)
    assert later.run != published
    for _ in range(2):
        found = standing_of(lake, WITHIN)
        assert (found.run, found.protected, found.state) == (published, True, "within")
        assert states(found) == ["ok"] * len(STAGES)
        audit_year(yearly_spec(tmp_path), WITHIN, lake)  # left alone
    protect(lake, published, False)
    year.to_csv(tmp_path / f"loans_{WITHIN}.csv", index=False)  # the former data came back
    again = audit_year(yearly_spec(tmp_path), WITHIN, lake)
    found = standing_of(lake, WITHIN)
    assert (found.run, found.protected, found.state) == (again.run, False, "within")
    assert states(found) == ["ok"] * len(STAGES)


def test_the_last_attempt_is_told_though_the_clock_was_set_back(place, tmp_path, monkeypatch):
    shutil.copytree(place / "lake", tmp_path / "lake")
    lake = Lake(tmp_path / "lake")

    class SetBack(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2020, 1, 1, tzinfo=tz)

    monkeypatch.setattr("flows.partitions.attempts.datetime", SetBack)
    with pytest.raises(EvenhandError), recorded(lake, "yearly", WITHIN):
        raise IntegrityError("a vintage was altered")
    found = standing_of(lake, WITHIN)
    assert (found.state, found.message) == ("failed", "a vintage was altered")
    audit_year(yearly_spec(place), WITHIN, lake)
    assert standing_of(lake, WITHIN).state == "within", "the next attempt found the run"
    with recorded(lake, "yearly", WITHIN) as recorder:
        recorder.tell(after=0)
        recorder.end(YearState.FAILED, ExitCode.INFRASTRUCTURE, "before the run was published")
    assert standing_of(lake, WITHIN).state == "within"


def test_a_year_without_anybody_to_compare_blocks_as_inconclusive(tmp_path):
    frame = year_of_loans(WITHIN)
    frame[frame["race"] != "w"].to_csv(tmp_path / f"loans_{WITHIN}.csv", index=False)
    found = planned(tmp_path, Lake(tmp_path / "lake"), WITHIN)
    assert found.blocked
    assert found.exit_code == ExitCode.INCONCLUSIVE  # as a back-fill would end


def test_a_record_that_nobody_wrote_is_named_with_the_next_step(place, tmp_path):
    lake = Lake(tmp_path / "lake")
    lake.write_file(f"backfills/yearly/{WITHIN}/0001.json", b"{}")
    with pytest.raises(IntegrityError, match=r"0001.json is not a record that this version wrote; .* remove it"):
        status(lake)
