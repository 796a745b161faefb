"""One corrupt file of a lake: it is skipped, counted and named, and takes nothing else away."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import evenhand
from lake_of_runs import NEW, OLD, OTHER, lake_of_runs
from receivers import alerts_file, mail_receiver, web_receiver

from flows.operations import lake_records
from flows.operations import overview as overviewing
from flows.operations.metrics import LakeCollector
from flows.outcome import alerts
from flows.outcome.alerts import Alert, Outcome
from flows.outcome.ending import Ending, Name
from flows.partitions.attempts import YearState, recorded
from flows.runs.index import listed
from flows.runs.signatures import certify
from flows.supervision.failed_audits import Ended, note_failure
from flows.supervision.presence import at_work, unreadable
from flows.supervision.presence import recorded as present
from schemas.errors import IntegrityError
from schemas.terms import ExitCode
from tasks.lake import log
from tasks.lake.store import Lake

CUT = '{"audit": "loa'
FILES = {
    lake_records.RUN: f"runs/{OLD}/manifest.json",
    lake_records.ATTEMPT: "backfills/history/2019/0001.json",
    lake_records.LISTED: "backfills/lenders/2020/listing.json",
    lake_records.ALERT: "alerts/zzz.json",
    lake_records.FAILURE: "failures/odd.json",
    lake_records.LOG: "log/000002.json",
    lake_records.PRESENCE: "locks/alive/x.json",
}
BREACH = Ending(Name.OUTSIDE, "loans 2023", "2 of 6 outside the limit", run=NEW)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Three runs in the log, a year that failed, an alert that did not arrive and a failure."""
    made = lake_of_runs(tmp_path / "lake")
    for run in (OTHER, OLD, NEW):
        certify(made, run)
    with recorded(made, "history", 2020) as recorder:
        recorder.end(YearState.FAILED, ExitCode.INFRASTRUCTURE, "no room")
    lost = Alert(time="2026-01-03T10:00:00Z", rule="outside", to="desk", ending=BREACH, outcome=Outcome.NOT_DELIVERED)
    alerts.write(made, lost.model_copy(update={"reason": "the relay refused it"}))
    note_failure(made, "loans", "2023", Ended.FAILED, "Spec")
    return made


def damage(lake: Lake, kind: str, content: str = CUT) -> Path:
    file = lake.root / FILES[kind]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    return file


def gauges(lake: Lake) -> dict[str, float]:
    return {
        f"{sample.name}{sample.labels.get('kind', '')}{sample.labels.get('state', '')}": sample.value
        for metric in LakeCollector(lake).collect()
        for sample in metric.samples
    }


def test_a_sound_lake_has_none(lake: Lake) -> None:
    with at_work(lake, "command-1"):
        assert lake_records.unreadable(lake) == ()
    assert lake_records.without(lake, ()) is lake


@pytest.mark.parametrize("content", [CUT, "", "null", "[1]", "5", "\x00", "{}", "[" * 100_000])
@pytest.mark.parametrize("kind", lake_records.KINDS)
def test_every_kind_is_found_whatever_is_in_the_file(lake: Lake, kind: str, content: str) -> None:
    file = damage(lake, kind, content)
    [found] = lake_records.unreadable(lake)
    assert (found.kind, found.path) == (kind, FILES[kind])
    assert str(file) in found.reason
    left = lake_records.unreadable(lake_records.without(lake, [found]))
    assert [each.kind for each in left] == [lake_records.PRESENCE] * (kind == lake_records.PRESENCE), (
        "locks are on the machine"
    )


@pytest.mark.parametrize("kind", lake_records.KINDS)
def test_status_names_the_file_and_shows_all_the_rest(lake: Lake, kind: str) -> None:
    file = damage(lake, kind)
    done = evenhand("status", "--lake", lake.location)
    assert done.returncode == ExitCode.INTEGRITY, done.stderr
    assert "records that cannot be read, and are left out above: 1\n" in done.stdout
    assert f"  cannot be read: {file} " in done.stdout
    for words in ("years of cards", "years of loans", "years of history", "no room", "disk: "):
        assert words in done.stdout
    assert "the relay refused it" in done.stdout
    said = json.loads(evenhand("status", "--lake", lake.location, "--json", "--review").stdout)
    [named] = said["unreadable"]
    assert (named["kind"], named["path"]) == (kind, FILES[kind])


def test_a_signature_that_was_altered_takes_nothing_else_away(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(*_: object) -> None:
        raise IntegrityError("entry 4 has a signature that is not of it: it was altered")

    monkeypatch.setattr(overviewing, "outstanding", altered)
    for words in ((), ("--review",), ("--json", "--review")):
        done = evenhand("status", *words, "--lake", lake.location)
        assert done.returncode == ExitCode.INTEGRITY, done.stderr
        for told in ("entry 4 has a signature", "the relay refused it", "no room"):
            assert told in done.stdout


def test_a_log_whose_chain_is_broken_is_named_and_gives_no_review(lake: Lake) -> None:
    path = lake.root / log.path_of(1)
    path.write_bytes(path.read_bytes().replace(b'"time": "2', b'"time": "1'))
    done = evenhand("status", "--review", "--lake", lake.location)
    assert done.returncode == ExitCode.INTEGRITY, done.stderr
    assert "000002.json does not follow the entry before it" in done.stdout
    assert "valid runs that nobody approved" not in done.stdout


def test_at_most_five_files_are_printed_and_json_has_all(lake: Lake) -> None:
    for number in range(8):
        (lake.root / "alerts" / f"z{number}.json").write_text(CUT)
    done = evenhand("status", "--lake", lake.location)
    assert done.stdout.count("  cannot be read: ") == 6
    assert "  cannot be read: 3 more; --json names all" in done.stdout
    assert len(json.loads(evenhand("status", "--lake", lake.location, "--json").stdout)["unreadable"]) == 8


@pytest.mark.parametrize("kind", lake_records.KINDS)
def test_metrics_count_it_and_tell_all_the_rest(lake: Lake, kind: str) -> None:
    sound = gauges(lake)
    damage(lake, kind)
    found = gauges(lake)
    assert found.keys() == sound.keys() or kind == lake_records.RUN
    assert {name for name in found if "records_unreadable" in name and found[name]} == {
        f"evenhand_records_unreadable{kind}"
    }
    assert found["evenhand_runs_unreadable"] == (kind == lake_records.RUN)
    assert found["evenhand_runs_totaloutside"] == sound["evenhand_runs_totaloutside"] == 1
    assert found["evenhand_runs_totalfailed"] == sound["evenhand_runs_totalfailed"]


def test_a_manifest_that_is_restored_is_told_again(lake: Lake) -> None:
    file = lake.root / FILES[lake_records.RUN]
    sound, collector = file.read_bytes(), LakeCollector(lake)

    def amiss() -> float:
        values = {s.name: s.value for m in collector.collect() for s in m.samples if s.name.endswith("runs_unreadable")}
        return values["evenhand_runs_unreadable"]

    file.write_text(CUT)
    assert amiss() == 1
    file.write_bytes(sound)
    assert amiss() == 0


def test_alerts_lists_and_sends_the_others_and_names_the_file(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = damage(lake, lake_records.ALERT)
    done = evenhand("alerts", "--lake", lake.location)
    assert done.returncode == ExitCode.INTEGRITY
    assert "the relay refused it" in done.stdout
    assert f"{file} is no record of an alert" in done.stderr
    with mail_receiver() as mail, web_receiver() as web:
        monkeypatch.setenv("EVENHAND_ALERTS", str(alerts_file(tmp_path / "alerts.yaml", mail, web)))
        done = evenhand("alerts", "send", "--lake", lake.location)
    assert done.returncode == ExitCode.INTEGRITY, done.stderr
    assert str(file) in done.stderr
    assert mail.subjects() == ["Evenhand: outside the limit in loans 2023"]


def test_runs_lists_the_others_and_names_the_file(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    file = damage(lake, lake_records.RUN)
    assert {each.run for each in listed(lake)} == {NEW, OTHER}
    assert str(file) in caplog.text


@pytest.mark.parametrize(
    "content",
    [
        "null",
        "[]",
        '{"run": "a"}',
        '{"run": 5, "host": "h", "pid": 1, "started": "s", "name": "x"}',
        '{"run": "a", "host": "h", "pid": "1", "started": "s", "name": "x"}',
        '{"run": "a", "host": "h", "pid": 1, "started": "s", "name": "../../x"}',
        '{"run": "a", "host": "h", "pid": 1, "started": "s", "name": "x", "outcome": ["COMPLETED"]}',
        '{"run": "a", "host": "h", "pid": 1, "started": "s", "name": "x", "more": 1}',
    ],
)
def test_a_record_of_presence_that_is_none_is_passed_over(lake: Lake, content: str) -> None:
    file = damage(lake, lake_records.PRESENCE, content)
    with at_work(lake, "command-1"):
        assert [each.run for each in present(lake)] == ["command-1"]
    assert unreadable(lake) == [file]


def test_a_record_of_presence_is_never_seen_half_written(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    write: Callable[..., int] = Path.write_text

    def slow(path: Path, *words: str, **how: str) -> int:
        seen.append(path.suffix)
        return write(path, *words, **how)

    monkeypatch.setattr(Path, "write_text", slow)
    with at_work(lake, "command-1"):
        assert seen == [".draft"]
        assert [each.run for each in present(lake)] == ["command-1"]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser reads every file")
def test_a_file_without_the_right_to_read_it_is_named(lake: Lake) -> None:
    damage(lake, lake_records.ALERT).chmod(0)
    [found] = lake_records.unreadable(lake)
    assert "cannot be read (Permission denied)" in found.reason
