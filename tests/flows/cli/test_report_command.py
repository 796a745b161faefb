"""``evenhand report`` as a user runs it: what is written where, checks against budgets, exit codes and messages."""

import errno
import hashlib
import json
import os
import sys
from pathlib import Path

import pytest
from conftest import evenhand
from sealed_run import RUN, sealed_run

from flows.runs.index import made_later

PAGE = '<html><head></head><body class="decide"><main><h2 id="x">word</h2>{}</main></body></html>'
WRITTEN = ["measures.parquet", "measures.xlsx", "pages/approval-rates.html", "report.html", "report.json"]


@pytest.fixture
def lake(place: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    page = PAGE.format("").encode()
    files = {"report.html": page, "pages/approval-rates.html": page, "report.json": b"{}", "measures.xlsx": b"PK"}
    monkeypatch.setattr("tasks.reporting.pages.files", lambda _: files)
    return str(sealed_run(place).root)


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def listed(lake: str) -> list[str]:
    file = Path(lake) / made_later(RUN)
    return sorted(each["file"] for each in json.loads(file.read_text())["files"]) if file.is_file() else []


def test_all_files_go_to_a_directory_that_only_the_owner_reads(lake: str, place: Path) -> None:
    done = evenhand("report", RUN, "--lake", lake, "--out", str(place / "out"))
    assert done.returncode == 0, done.stderr
    assert names(place / "out") == WRITTEN == listed(lake)
    assert {str(place / "out" / name) for name in WRITTEN} == set(done.stdout.split())
    modes = {path.stat().st_mode & 0o777 for path in (place / "out").rglob("*")}
    assert modes == {0o600, 0o700}
    assert evenhand("verify", RUN, "--lake", lake).returncode == 0


def test_the_latest_run_goes_to_a_directory_of_its_name(lake: str, tmp_path: Path) -> None:
    done = evenhand("report", "--lake", lake, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert names(tmp_path / RUN) == WRITTEN


def test_check_and_single_write_no_other_file(lake: str, place: Path) -> None:
    here = place / "here"
    here.mkdir()
    assert evenhand("report", RUN, "--lake", lake, "--check", cwd=here).returncode in (0, 1)
    assert names(here) == listed(lake) == []
    done = evenhand("report", RUN, "--lake", lake, "--single", str(here / "one.html"), cwd=here)
    assert done.returncode == 0, done.stderr
    assert names(here) == listed(lake) == ["one.html"]
    assert (here / "one.html").read_text().count('<h2 id="') == 2


def test_a_joined_page_never_takes_the_place_or_the_name_of_a_file_of_the_report(lake: str, place: Path) -> None:
    out, other = place / "out", place / "other"
    for name in ("report.html", "pages/../report.html", "pages/approval-rates.html", "report.pdf"):
        done = evenhand("report", RUN, "--lake", lake, "--out", str(out), "--single", str(out / name))
        assert (done.returncode, "another file of the report" in done.stderr) == (2, True)
    assert not out.exists()
    done = evenhand("report", RUN, "--lake", lake, "--out", str(out), "--single", str(other / "report.html"))
    assert done.returncode == 0, done.stderr
    assert names(out) == WRITTEN
    assert names(other) == ["report.html"]
    assert listed(lake) == sorted([*WRITTEN, "single.html"])
    made = json.loads((Path(lake) / made_later(RUN)).read_text())["files"]
    digest = hashlib.sha256((out / "report.html").read_bytes()).hexdigest()
    assert [each["sha256"] for each in made if each["file"] == "report.html"] == [digest]


def test_no_file_is_written_through_a_link_into_the_lake(lake: str, place: Path) -> None:
    (place / "out").mkdir()
    sealed = Path(lake) / "runs" / RUN / "manifest.json"
    (place / "out" / "report.html").symlink_to(sealed)
    assert evenhand("report", RUN, "--lake", lake, "--out", str(place / "out")).returncode == 2
    assert names(place / "out") == ["report.html"]
    assert evenhand("verify", RUN, "--lake", lake).returncode == 0


def test_the_workbook_alone(lake: str, place: Path) -> None:
    assert evenhand("report", RUN, "--lake", lake, "--xlsx", "--out", str(place / "out")).returncode == 0
    assert names(place / "out") == ["measures.xlsx"]


def test_check_prints_a_line_a_file_and_ends_with_1_over_a_budget(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    long = PAGE.format("word " * 350).encode()
    monkeypatch.setattr("tasks.reporting.pages.files", lambda _: {"report.html": long, "report.json": b"{}"})
    done = evenhand("report", RUN, "--lake", lake, "--check")
    assert done.returncode == 1, done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith("report.html")]
    assert "351 of 350" in line
    assert "words" in line.split("\t")[-1]
    told = json.loads(evenhand("report", RUN, "--lake", lake, "--check", "--json").stdout)
    assert [row["file"] for row in told["checked"]] == ["report.html", "report.json", "measures.parquet", "all files"]


def test_without_weasyprint_all_else_is_written_and_it_ends_with_5(
    lake: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    done = evenhand("report", RUN, "--lake", lake, "--pdf", "--out", str(place / "out"))
    assert (done.returncode, names(place / "out")) == (5, WRITTEN)
    assert "pip install 'evenhand[pdf]'" in done.stderr


def test_an_unknown_run_a_folder_of_the_lake_and_one_that_cannot_be_written_are_named(lake: str, place: Path) -> None:
    unknown = evenhand("report", "loans-2023-0", "--lake", lake, "--check")
    assert unknown.returncode == 2
    assert "holds no run 'loans-2023-0'" in unknown.stderr
    for option, value in (("--out", f"{lake}/reports/{RUN}"), ("--single", f"{lake}/one.html")):
        inside = evenhand("report", RUN, "--lake", lake, option, value)
        assert (inside.returncode, "runs of a lake are sealed" in inside.stderr) == (2, True)
    blocked = evenhand("report", RUN, "--lake", lake, "--out", str(place / "loans.csv"))
    assert blocked.returncode == 5
    assert "cannot be written" in blocked.stderr


def test_a_disk_that_is_full_leaves_the_page_that_was_there(
    lake: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    out = place / "out"
    out.mkdir()
    (out / "report.html").write_text("before")
    monkeypatch.setattr(os, "fsync", full)
    done = evenhand("report", RUN, "--lake", lake, "--out", str(out))
    assert (done.returncode, "report.html cannot be written (No space left on device)" in done.stderr) == (5, True)
    assert [(path.name, path.read_text()) for path in out.iterdir()] == [("report.html", "before")]


def test_the_help_names_every_option_of_its_examples() -> None:
    told = evenhand("report", "--help").stdout
    words = told.split("Example: ")[1].replace(",", " ").split()
    assert [word for word in words if word.startswith("--") and told.count(word) < 2] == []


def test_its_own_pages_of_a_run_without_verdicts_are_within_their_budgets(place: Path) -> None:
    lake = str(sealed_run(place).root)
    done = evenhand("report", RUN, "--lake", lake, "--out", str(place / "out"), "--check")
    assert done.returncode == 0, done.stderr + done.stdout
    assert {"report.html", "method.html", "pages/quality.html", "measures.xlsx"} < {*names(place / "out")}
    assert evenhand("verify", RUN, "--lake", lake).returncode == 0
