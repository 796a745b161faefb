"""``evenhand note``, ``signoff``, ``review`` and ``report`` as people use them: a run from draft to approval."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from conftest import evenhand, loans
from sealed_run import RUN, sealed_run

from flows.runs.index import read_manifest
from tasks.lake import log
from tasks.lake.store import Lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with one run, on which the tests below work in their order."""
    place = tmp_path_factory.mktemp("review")
    loans().to_csv(place / "loans.csv", index=False)
    return sealed_run(place)


def said(lake: Lake, *words: str, code: int = 0) -> str:
    done = evenhand(*words, "--lake", lake.location)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def day(later: int) -> str:
    return (datetime.now(UTC).date() + timedelta(days=later)).isoformat()


def test_a_run_is_noted_read_and_remedied(lake: Lake) -> None:
    assert "note by Ann Lee (name as given, not verified), entry 2" in said(lake, "note", RUN, "ask", "--as", "Ann Lee")
    assert "read by Bob" in said(lake, "note", RUN, "--as", "Bob", "--read")
    assert "the log has it already that Bob read it today" in said(lake, "note", RUN, "--as", "Bob", "--read")
    words = ("note", RUN, "retrain", "--as", "Ann Lee", "--owner", "Bob")
    assert "give --owner and --due together" in said(lake, *words, code=2)
    assert "remediation by Ann Lee" in said(lake, *words, "--due", day(30))
    assert f"4\topen\t{day(30)}\tBob\t{RUN}\tretrain" in said(lake, "review", RUN)
    assert "is no open remediation" in said(lake, "note", RUN, "--as", "Bob", "--done", "2", code=2)
    assert "--as is empty" in said(lake, "note", RUN, "x", code=2)


def test_what_is_overdue_ends_with_5_where_asked(lake: Lake) -> None:
    log.append(lake, "remediation", run=RUN, by="Ann", text="late", owner="Cy", due="2026-01-31")
    assert "overdue" in said(lake, "review", "--strict", code=5)
    said(lake, "review", RUN, "--strict", code=5)
    assert "remediation done by Cy" in said(lake, "note", RUN, "model 7", "--as", "Cy", "--done", "5")
    assert "overdue" not in said(lake, "review", RUN, "--strict").replace("overdue\t", "")
    assert "Cy until 2026-01-31: late" in said(lake, "log", "--run", RUN)
    assert "done, entry 5: model 7" in said(lake, "log", "--run", RUN)


def test_a_report_made_after_the_sign_off_shows_it_and_the_manifest_stays(lake: Lake, tmp_path: Path) -> None:
    before = read_manifest(lake, RUN)
    said(lake, "signoff", RUN, "--as", "Ann Lee", "--role", "prepared")
    [row] = json.loads(said(lake, "review", "--json"))["runs"]
    assert (row["state"], row["open"]) == ("prepared", 1)
    assert "No report shows entry 7 yet" in said(lake, "review", RUN)
    told = said(lake, "report", RUN, "--out", str(tmp_path / "out"))
    assert "the report in the lake stays the draft that was signed. Draft, prepared. Prepared by: Ann Lee" in told
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"Log: 7:{log.digest_at(lake, 7)}." in page
    assert [each["role"] for each in json.loads((tmp_path / "out" / "report.json").read_text())["signatures"]] == [
        "prepared"
    ]
    assert "No report shows" not in said(lake, "review", RUN)
    said(lake, "signoff", RUN, "--as", "Bob Ray", "--role", "approved")
    assert "No report shows entry 9 yet, the newest is the one made later (entry 8)" in said(lake, "review", RUN)
    said(lake, "report", RUN, "--out", str(tmp_path / "again"))
    assert "· approved" in (tmp_path / "again" / "report.html").read_text()
    assert read_manifest(lake, RUN) == before
    said(lake, "verify", RUN)
    said(lake, "log", "verify")


def test_what_the_log_does_not_take_is_told_with_its_exit_code(lake: Lake) -> None:
    assert "control characters (\\x1b)" in said(lake, "note", RUN, "a\x1b[2Jb", "--as", "Ann Lee", code=2)
    words = ("signoff", RUN, "--as", "Ann Lee", "--role", "prepared")
    assert "is signed as prepared by Ann Lee already" in said(lake, *words, code=2)
    path = lake.root / log.path_of(2)
    sound = path.read_bytes()
    path.write_bytes(sound.replace(b"Ann Lee", b"Eve Lee"))
    try:
        assert "cannot be gone on with" in said(lake, "note", RUN, "x", "--as", "Ann Lee", code=6)
        assert "cannot be gone on with" in said(lake, *words[:-1], "reviewed", code=6)
    finally:
        path.write_bytes(sound)


def test_json_has_the_whole_review(lake: Lake) -> None:
    told = json.loads(said(lake, "review", RUN, "--json"))
    assert (told["state"], told["overdue"], len(told["remediations"])) == ("approved", 0, 1)
    assert told["head"] == f"{log.head(lake).n}:{log.head(lake).sha256}"
    assert [each["event"] for each in told["entries"]][:3] == ["run published", "note", "read"]
    assert told["remarks"] == ["Ann Lee, Bob Ray: name as given, not verified."]
