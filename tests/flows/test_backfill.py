"""The back-fill as a user runs it: processes, a real Prefect server, a lake; sound years and years that are not."""

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from hashlib import sha256

import psutil
import pytest
from conftest import REPOSITORY, environment, evenhand, evenhand_process
from loans_by_year import (
    ABSENT,
    AUDITED,
    BREACH,
    LACKING,
    ONE_SIDED,
    WITHIN,
    write_years,
    year_of_loans,
    yearly_spec,
)
from told_runs import told_runs

from flows.backfill import rows
from flows.cli.backfill import _ended
from flows.partitions.attempts import SERIOUSNESS, Attempt, YearState, attempts, latest, recorded, worst
from flows.partitions.year_audit import audit_year
from flows.runs.index import last_run, read_manifest, runs_of
from flows.runs.signatures import protect
from schemas.errors import IntegrityError
from schemas.terms import ExitCode
from tasks.lake.store import Lake

pytestmark = pytest.mark.slow

YEARS = f"{WITHIN}-{ABSENT}"


def digests(lake):
    """Path -> sha256 of every Parquet file of a lake."""
    records = [json.loads(path.read_text()) for path in lake.glob("stages/*/*/partition.json")]
    return {artifact["path"]: artifact["sha256"] for record in records for artifact in record["tables"]}


@pytest.fixture(scope="module")
def finished(tmp_path_factory, server):
    """A back-fill over all five years, two at a time: its directory and what it printed."""
    place = tmp_path_factory.mktemp("yearly")
    spec = write_years(place)
    arguments = ("--years", YEARS, "--lake", str(place / "lake"), "--workers", "2", "--json")
    done = evenhand_process("backfill", str(spec), *arguments, server=server)
    return place, done


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of the finished lake that a test may change."""
    place, _ = finished
    shutil.copytree(place / "lake", tmp_path / "lake")
    return place, Lake(tmp_path / "lake")


def test_every_year_ends_in_its_own_way_and_the_worst_decides(finished):
    _, done = finished
    assert done.returncode == ExitCode.INFRASTRUCTURE, done.stderr
    said = {year["year"]: year for year in json.loads(done.stdout)["years"]}
    assert {year: record["state"] for year, record in said.items()} == {
        WITHIN: "within",
        LACKING: "within",
        ONE_SIDED: "inconclusive",
        BREACH: "outside",
        ABSENT: "failed",
    }
    assert "are favourable, so there is nothing to compare" in said[ONE_SIDED]["message"]
    assert said[ONE_SIDED]["run"] is None  # nothing that could be taken for a result
    assert f"loans_{ABSENT}.csv" in said[ABSENT]["message"]
    assert said[LACKING]["lacking"] == ["history"]
    assert all(said[year]["seconds"] > 0 and said[year]["source_sha256"] for year in AUDITED)


def test_a_back_fill_is_read_from_the_server_alone(finished, server):
    place, done = finished
    (run,) = told_runs(server, place / "lake")
    assert (run.name, run.type, run.state) == (f"yearly {YEARS}", "FAILED", "Infrastructure")
    assert run.message.startswith(f"5 years: 2 within, 1 inconclusive, 1 outside, 1 failed; {ABSENT}: no file at ")
    audits = {f"run:{year['run']}" for year in json.loads(done.stdout)["years"] if year["run"]}
    assert {"dataset:yearly", f"year:{WITHIN}", f"year:{ABSENT}", "state:infrastructure", *audits} <= {*run.tags}
    assert {f"yearly {year}" for year in range(WITHIN, ABSENT + 1)} < {*run.tasks}, "the others track sub-flow runs"
    assert run.lines[-1] == (logging.ERROR, f"Infrastructure: {run.message}")
    shown = {row["year"]: row for row in json.loads(run.artifacts["years"])}
    assert [*shown] == [*range(WITHIN, ABSENT + 1)]
    assert [row["state"] for row in shown.values()] == ["within", "within", "inconclusive", "outside", "failed"]
    assert run.artifacts["progress"] == 100
    assert not [row_id for row_id in year_of_loans(BREACH)["id"] if row_id in json.dumps(run.artifacts)]


def test_every_attempt_is_recorded_in_the_lake(finished):
    place, done = finished
    told = json.loads(done.stdout)["years"]
    records = attempts(Lake(place / "lake"), "yearly")
    assert [record.model_dump(mode="json") for record in records] == told
    assert {record.attempt for record in records} == {1}


def test_the_table_of_years_says_what_each_year_read(finished):
    place, done = finished
    told = {year["year"]: Attempt.model_validate(year) for year in json.loads(done.stdout)["years"]}
    run = last_run(Lake(place / "lake"), "yearly", WITHIN).run
    assert told[WITHIN].read == read_manifest(Lake(place / "lake"), run)["read"]
    digest = sha256((place / f"loans_{WITHIN}.csv").read_bytes()).hexdigest()[:12]
    count = f"{len(year_of_loans(WITHIN))} rows"
    words = f"loans_{WITHIN}.csv, sha256 {digest}, {count}, year not in the rows"
    assert [row["read"] for row in rows([told[WITHIN]])] == [words] == [_ended(told[WITHIN])["read"]]
    assert _ended(told[ABSENT])["read"] == ""


def test_the_record_of_an_earlier_version_tells_the_digest(copied):
    _, lake = copied
    (path,) = lake.root.glob(f"backfills/yearly/{WITHIN}/*.json")
    record = json.loads(path.read_text())
    del record["read"]
    path.write_text(json.dumps(record))
    assert latest(lake, "yearly", WITHIN).source_words == record["source_sha256"][:12]


def test_the_report_of_a_year_says_what_the_year_lacks(finished):
    place, done = finished
    runs = {year["year"]: year["run"] for year in json.loads(done.stdout)["years"]}
    sentence = f"The data of {LACKING} do not have history, which the audit asks for."
    for page in ("report.html", "pages/quality.html"):
        pages = {year: (place / "lake" / "reports" / runs[year] / page).read_text() for year in (WITHIN, LACKING)}
        assert sentence in pages[LACKING], page
        assert "which the audit asks for" not in pages[WITHIN], page


def test_a_back_fill_that_is_done_computes_nothing_and_starts_no_prefect(copied):
    place, lake = copied
    code = (
        "import sys; sys.argv = ['evenhand', *sys.argv[1:]]\n"
        "from flows.cli.main import main\n"
        "try:\n    main()\nfinally:\n    assert 'prefect' not in sys.modules, 'prefect was started'\n"
    )
    words = ["backfill", str(place / "yearly.yaml"), "--years", ",".join(map(str, AUDITED)), "--lake", lake.location]
    again = subprocess.run(
        [sys.executable, "-c", code, *words, "--json"],
        env=environment(None),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert again.returncode == ExitCode.OUTSIDE, again.stderr
    assert [year["computed"] for year in json.loads(again.stdout)["years"]] == [0, 0, 0]
    assert latest(lake, "yearly", WITHIN).attempt == 2


def start(spec, lake, server, years):
    """A back-fill that is about to be disturbed."""
    return subprocess.Popen(
        [sys.executable, "-m", "flows.cli", "backfill", str(spec), "--years", years, "--lake", str(lake)],
        env=environment(server),
        cwd=REPOSITORY,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def wait_for(condition, process=None):
    until = time.monotonic() + 240
    while not condition():
        assert process is None or process.poll() is None, "the back-fill ended before it could be killed"
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.long
def test_kill_9_half_way_is_resumed_and_comes_to_the_same(finished, tmp_path, server):
    place, _ = finished
    home = tmp_path / "lake"
    years = f"{WITHIN},{BREACH}"
    process = start(place / "yearly.yaml", home, server, years)
    wait_for(lambda: list(home.glob(f"runs/yearly-{WITHIN}-*/manifest.json")), process)
    wait_for(lambda: list(home.glob("stages/ingest/*/partition.json"))[1:], process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    lake = Lake(home)
    wait_for(lambda: latest(lake, "yearly", BREACH).state is not YearState.RUNNING)  # its worker ends with it
    broken = latest(lake, "yearly", BREACH)
    assert broken.state is YearState.INTERRUPTED
    assert "died during" in broken.message
    told = json.loads(evenhand("status", "--lake", str(home), "--json").stdout)
    assert {year["year"]: year["state"] for year in told["years"]} == {WITHIN: "within", BREACH: "interrupted"}
    kept = {path: (home / path).stat().st_mtime_ns for path in digests(home)}
    assert 0 < len(kept) < len(digests(place / "lake"))
    done = evenhand_process(
        "backfill", str(place / "yearly.yaml"), "--years", years, "--lake", str(home), server=server
    )
    assert done.returncode == ExitCode.OUTSIDE, done.stderr
    assert {path: (home / path).stat().st_mtime_ns for path in kept} == kept  # nothing was computed twice
    reference = digests(place / "lake")
    assert all(reference[path] == digest for path, digest in digests(home).items())
    undisturbed = {run.year: (run.run, run.state) for run in runs_of(Lake(place / "lake"))}
    assert {run.year: (run.run, run.state) for run in runs_of(lake)} == {
        year: undisturbed[year] for year in (WITHIN, BREACH)
    }


@pytest.mark.long
def test_a_year_whose_worker_is_killed_is_taken_up_once_more(finished, tmp_path, server):
    place, _ = finished
    home = tmp_path / "lake"
    process = start(place / "yearly.yaml", home, server, str(WITHIN))
    wait_for(lambda: list(home.glob("stages/ingest/*/partition.json")), process)
    worker = latest(Lake(home), "yearly", WITHIN).pid
    assert worker != process.pid
    os.kill(worker, signal.SIGKILL)
    assert process.wait(timeout=240) == ExitCode.WITHIN
    assert [record.state for record in attempts(Lake(home))] == [YearState.RUNNING, YearState.WITHIN]


@pytest.mark.long
def test_without_a_server_the_embedded_api_serves_and_that_of_a_killed_run_is_ended(finished, tmp_path):
    place, _ = finished
    home = tmp_path / "lake"
    for stage in ("ingest", "preprocess", "score"):
        shutil.copytree(place / "lake" / "stages" / stage, home / "stages" / stage)
    orphan = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    record = home / "locks" / "embedded-api.json"
    record.parent.mkdir()
    record.write_text(json.dumps({"pid": orphan.pid, "began": psutil.Process(orphan.pid).create_time()}))
    done = evenhand_process("backfill", str(place / "yearly.yaml"), "--years", str(WITHIN), "--lake", str(home))
    assert done.returncode == ExitCode.WITHIN, done.stderr
    assert latest(Lake(home), "yearly", WITHIN).computed == 3
    assert orphan.wait(timeout=60) == -signal.SIGTERM
    assert not record.exists()


def test_a_protected_year_is_left_alone_unless_forced(copied, tmp_path):
    place, lake = copied
    for year in AUDITED:
        shutil.copy(place / f"loans_{year}.csv", tmp_path)
    spec, published = yearly_spec(tmp_path), last_run(lake, "yearly", BREACH)
    protect(lake, published.run, True)
    year_of_loans(BREACH).iloc[:-20].to_csv(tmp_path / f"loans_{BREACH}.csv", index=False)
    record = audit_year(spec, BREACH, lake)
    assert (record.run, record.state, record.computed) == (published.run, YearState.OUTSIDE, 0)
    assert record.read == read_manifest(lake, published.run)["read"]
    assert "--force" in record.message
    forced = audit_year(spec, BREACH, lake, force=True)
    assert forced.run != published.run
    assert forced.source_sha256 != published.source_sha256
    assert last_run(lake, "yearly", BREACH).run == published.run  # it stays the one that counts
    protect(lake, published.run, False)
    assert last_run(lake, "yearly", BREACH).run == forced.run


def test_a_protected_run_of_which_a_file_was_altered_does_not_pass(copied):
    place, lake = copied
    published = last_run(lake, "yearly", WITHIN)
    protect(lake, published.run, True)
    victim = next(p.tables[0].path for p in published.partitions if p.stage == "score")
    (lake.root / victim).write_bytes(b"altered")
    with pytest.raises(IntegrityError, match="not as they were written"):
        audit_year(yearly_spec(place), WITHIN, lake)
    assert latest(lake, "yearly", WITHIN).exit_code == ExitCode.INTEGRITY


def test_an_altered_file_stops_its_year_with_its_own_code(copied):
    place, lake = copied
    victim = next((lake.root / "stages" / "score").glob("*/models.parquet"))
    victim.write_bytes(b"altered")
    spec, codes = yearly_spec(place), []
    for year in AUDITED:
        try:
            codes.append(audit_year(spec, year, lake).exit_code)
        except IntegrityError:
            codes.append(latest(lake, "yearly", year).exit_code)
    assert codes.count(ExitCode.INTEGRITY) == 1  # the others are as they were
    assert worst(codes) is ExitCode.INTEGRITY


def test_the_exit_code_is_that_of_the_most_serious_year():
    assert set(SERIOUSNESS) == set(ExitCode)
    assert worst([0, 0]) is ExitCode.WITHIN
    assert worst([0, 3]) is ExitCode.INCONCLUSIVE
    assert worst([3, 1, 0]) is ExitCode.OUTSIDE
    assert worst([1, 4, 3]) is ExitCode.DATA_QUALITY
    assert worst([4, 5, 1]) is ExitCode.INFRASTRUCTURE
    assert worst([5, 6, 4]) is ExitCode.INTEGRITY
    assert worst([]) is ExitCode.INCONCLUSIVE  # nothing was found, which is no pass
    assert worst([0, None]) is ExitCode.INFRASTRUCTURE  # nobody knows how a year ended


def test_an_error_of_ours_is_recorded_before_it_goes_on(tmp_path):
    lake = Lake(tmp_path / "lake")
    with pytest.raises(ZeroDivisionError), recorded(lake, "yearly", WITHIN):
        _ = 1 // 0
    record = latest(lake, "yearly", WITHIN)
    assert (record.state, record.exit_code) == (YearState.FAILED, ExitCode.INFRASTRUCTURE)
    assert "ZeroDivisionError in test_backfill.py" in record.message
    assert "by zero" not in record.message, "words of errors that are not ours may hold values of rows"
    assert len(list((tmp_path / "lake" / "tmp").glob("crash-*.txt"))) == 1
