"""``evenhand data``: fetched from a real server on the loopback, taken in, listed, described; refused with a reason."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import Result
from conftest import REPOSITORY, environment
from first_vintages import as_first_version
from publisher import Published, Publisher, Trouble, cut, publisher, status
from typer.testing import CliRunner

from flows.cli.main import app
from flows.partitions.editions import Edition, fetch
from schemas.errors import EvenhandError
from schemas.terms import ExitCode
from tasks.ingest.synthetic.algorithm.twin import TwinSettings
from tasks.ingest.synthetic.twin_files import write
from tasks.ingest.vintages.store import vintages
from tasks.lake.store import Lake, sha256_of

SNAPSHOT = "/static-data/snapshot/2022/2022_public_lar_csv.zip"
WASHINGTON = "/v2/data-browser-api/view/csv?states=DC&years=2022&actions_taken=1,2,3,4,5,6,7,8"
COMMANDS = ("list", "fetch", "add", "repack", "describe", "twin")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A synthetic file of 2022."""
    return write(tmp_path_factory.mktemp("rows"), TwinSettings(rows=200), 1).rows


@pytest.fixture(scope="module")
def zipped(rows: Path) -> bytes:
    """The same as the publisher packs it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(rows, "2022_public_lar_csv.csv")
    return packed.getvalue()


@pytest.fixture
def server(zipped: bytes) -> Iterator[Publisher]:
    with publisher() as running:
        running.files[SNAPSHOT] = Published(zipped)
        yield running


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def data(*words: object) -> Result:
    return CliRunner().invoke(app, ["data", *map(str, words)])


def said(*words: object) -> object:
    """What a command that goes well prints as JSON."""
    result = data(*words, "--json")
    assert result.exit_code == 0, result.output or result.exception
    return json.loads(result.stdout)


def refused(*words: object) -> EvenhandError:
    """The error of a command that goes no further."""
    error = data(*words).exception
    assert isinstance(error, EvenhandError), error
    return error


def fetched(server: Publisher, lake: Path, *words: object) -> tuple[object, ...]:
    return ("fetch", "--year", 2022, "--base-url", server.url, "--lake", lake, *words)


def test_an_edition_is_fetched_and_held(server: Publisher, lake: Path, zipped: bytes) -> None:
    result = data(*fetched(server, lake), "--json")
    assert result.exit_code == 0, result.output
    assert "warning: 200 rows came and about 16,080,210 are published of 2022" in result.stderr
    vintage = json.loads(result.stdout)
    assert (vintage["year"], vintage["dataset"], vintage["geography"]) == (2022, "snapshot", "nationwide")
    assert (vintage["frozen"], vintage["source"]) == ("2023-05-01", f"{server.url}{SNAPSHOT}")
    assert (vintage["rows"] + vintage["refused"], vintage["published_rows"]) == (200, 16_080_210)
    assert vintage["bytes"] == len(zipped)
    listed = said("list", "--lake", lake, "--year", 2022)
    assert isinstance(listed, dict)
    assert listed["held"] == [vintage]
    assert not list((lake / "unfinished").iterdir())
    assert not list((lake / "vintages").rglob("*.zip"))
    other_digest = refused(*fetched(server, lake, "--sha256", "0" * 64))
    assert other_digest.exit_code == ExitCode.INTEGRITY, "what is held is not taken for another file"


def test_what_is_held_is_not_fetched_again_unless_asked_for(server: Publisher, lake: Path) -> None:
    first = said(*fetched(server, lake))
    assert said(*fetched(server, lake)) == first
    assert len(server.asked) == 1
    again = said(*fetched(server, lake, "--again"))
    assert len(server.asked) == 2
    assert isinstance(first, dict)
    assert isinstance(again, dict)
    assert {**again, "added": ""} == {**first, "added": ""}
    assert [v.added for v in vintages(Lake(lake))] == [again["added"]]


def test_of_two_that_fetch_one_edition_at_once_one_asks(server: Publisher, lake: Path) -> None:
    edition = Edition(2022, "snapshot", "nationwide", base_url=server.url)
    lakes = [Lake(lake) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda one: fetch(one, edition), lakes))
    assert made[0] == made[1]
    assert len(server.asked) == 1


def test_a_changed_file_of_the_same_address_becomes_a_second_vintage(
    server: Publisher, lake: Path, tmp_path: Path
) -> None:
    said(*fetched(server, lake))
    later = write(tmp_path / "later", TwinSettings(rows=210), 2).rows
    server.files[SNAPSHOT] = Published(later.read_bytes(), etag='"2"')
    said(*fetched(server, lake, "--frozen", "2024-05-01"))
    assert [(str(v.frozen), v.rows + v.refused) for v in vintages(Lake(lake))] == [
        ("2023-05-01", 200),
        ("2024-05-01", 210),
    ]


def test_a_connection_that_drops_is_gone_on_with(server: Publisher, lake: Path, zipped: bytes) -> None:
    server.files[SNAPSHOT].troubles = [cut(len(zipped) // 2)]
    said(*fetched(server, lake))
    assert server.ranges() == [None, f"bytes={len(zipped) // 2}-"]


def _written(lake: Path) -> int:
    """Bytes of a download that are on disk."""
    return sum(part.stat().st_size for part in lake.glob("unfinished/*/*.part"))


def test_a_fetch_that_is_killed_is_gone_on_with(server: Publisher, lake: Path, zipped: bytes) -> None:
    """Kill -9 while the server is silent half-way; the next call asks for the other half."""
    half, killed = len(zipped) // 2, threading.Event()

    def fall_silent(handler, published: Published) -> bool:  # type: ignore[no-untyped-def]
        cut(half)(handler, published)
        handler.wfile.flush()
        killed.wait(240)
        return True

    server.files[SNAPSHOT].troubles = [fall_silent]
    words = [sys.executable, "-m", "flows.cli", "data", *map(str, fetched(server, lake, "--json"))]
    process = subprocess.Popen(words, cwd=REPOSITORY, env=environment(None))
    until = time.monotonic() + 240
    while not (list(lake.glob("unfinished/*/*.part.json")) and _written(lake)):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    killed.set()
    assert vintages(Lake(lake)) == []
    vintage = said(*fetched(server, lake))
    assert isinstance(vintage, dict)
    assert vintage["rows"] + vintage["refused"] == 200
    first, second = server.ranges()
    assert first is None
    assert second is not None


def test_what_came_whole_is_not_fetched_again_after_a_kill(
    server: Publisher, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tasks.ingest.vintages.store.take_in", stopped)
        data(*fetched(server, lake))
    assert vintages(Lake(lake)) == []
    said(*fetched(server, lake))
    assert len(server.asked) == 1


PAGE = status(200, b"<html><title>Sorry</title>", "text/html")


@pytest.mark.parametrize(
    ("of", "troubles", "code", "message"),
    [
        (slice(None), [PAGE], ExitCode.INFRASTRUCTURE, r"web page \('Sorry'\)"),
        (slice(-400), [], ExitCode.DATA_QUALITY, "damaged or cut short"),
        (slice(4, 5), [], ExitCode.DATA_QUALITY, "no header of HMDA"),
    ],
)
def test_what_is_no_edition_is_refused_and_leaves_nothing(
    server: Publisher, lake: Path, zipped: bytes, of: slice, troubles: list[Trouble], code: ExitCode, message: str
) -> None:
    server.files[SNAPSHOT] = Published(zipped[of], troubles=troubles)
    error = refused(*fetched(server, lake))
    assert error.exit_code == code
    assert re.search(message, str(error))
    assert vintages(Lake(lake)) == []
    assert not list(lake.glob("unfinished/*/*"))


def test_a_file_of_another_year_under_the_address_is_refused(server: Publisher, lake: Path, tmp_path: Path) -> None:
    other = write(tmp_path, TwinSettings(rows=50, year=2021), 5).rows
    server.files[SNAPSHOT] = Published(other.read_bytes())
    error = refused(*fetched(server, lake))
    assert error.exit_code == ExitCode.DATA_QUALITY
    assert "holds 50 rows of 2021 and not 2022, as declared" in str(error)
    assert vintages(Lake(lake)) == []


def test_a_digest_that_is_not_the_one_given_is_refused(server: Publisher, lake: Path) -> None:
    error = refused(*fetched(server, lake, "--sha256", "0" * 64))
    assert error.exit_code == ExitCode.INTEGRITY
    assert vintages(Lake(lake)) == []


def test_a_state_comes_from_the_data_browser_with_the_day_of_the_server(
    server: Publisher, lake: Path, tmp_path: Path
) -> None:
    body = write(tmp_path, TwinSettings(rows=60), 5).rows.read_bytes().replace(b"|", b",")
    body = body.replace(b"combined_loan_to_value_ratio", b"loan_to_value_ratio")
    server.files[WASHINGTON] = Published(body, kind="text/csv", chunked=True, modified="Tue, 06 Feb 2024 07:00:00 GMT")
    vintage = said(*fetched(server, lake, "--kind", "data-browser", "--geo", "DC"))
    assert isinstance(vintage, dict)
    assert (vintage["geography"], vintage["frozen"], vintage["layout"]) == ("DC", "2024-02-06", "data_browser")


def test_a_query_that_is_not_taken_ends_as_a_mistake_of_the_command_line(server: Publisher, lake: Path) -> None:
    body = b'{"errorType":"provide-atleast-msamds-or-states"}'
    server.files[WASHINGTON] = Published(b"", troubles=[status(400, body, "application/json")])
    error = refused(*fetched(server, lake, "--kind", "data-browser", "--geo", "DC"))
    assert error.exit_code == ExitCode.USAGE


def test_a_dry_run_asks_nobody(server: Publisher, lake: Path) -> None:
    plan = said(*fetched(server, lake, "--dry-run"))
    assert isinstance(plan, dict)
    assert plan["url"] == f"{server.url}{SNAPSHOT}"
    assert (plan["rows"], plan["frozen"], plan["held"]) == (16_080_210, "2023-05-01", None)
    assert 0 < plan["download_bytes"] < plan["raw_bytes"] < plan["disk_bytes"]
    assert "16,080,210" in data(*fetched(server, lake, "--dry-run")).stdout
    assert server.asked == []


def test_without_a_network_it_says_so_at_once(lake: Path) -> None:
    began = time.monotonic()
    error = refused("fetch", "--year", 2022, "--base-url", "http://127.0.0.1:9", "--lake", lake)
    assert error.exit_code == ExitCode.INFRASTRUCTURE
    assert "no way to 127.0.0.1" in str(error)
    assert "data add FILE" in str(error)
    assert time.monotonic() - began < 5


def test_an_unknown_freeze_date_has_to_be_given(server: Publisher, lake: Path) -> None:
    error = refused(*fetched(server, lake, "--kind", "one-year"))
    assert error.exit_code == ExitCode.USAGE
    assert "--frozen YYYY-MM-DD" in str(error)


def test_a_file_at_hand_is_added_once(rows: Path, lake: Path, tmp_path: Path) -> None:
    key = ("--year", 2022, "--frozen", "2023-05-01", "--lake", lake)
    first = said("add", rows, *key, "--kind", "twin")
    assert isinstance(first, dict)
    assert (first["source"], first["sha256"]) == (rows.name, sha256_of(rows))
    assert said("add", rows, *key) == first
    shown = data("list", "--lake", lake, "--year", 2022).stdout
    assert first["sha256"][:12] in shown


def test_a_file_is_described_with_what_it_lacks(rows: Path) -> None:
    described = said("describe", rows)
    assert isinstance(described, dict)
    assert (described["layout"], described["rows_in"], described["years"]) == ("public_lar", 200, {"2022": 200})
    assert isinstance(described["findings"], list)
    shown = data("describe", rows).stdout
    assert "public_lar" in shown
    lacks = [f["what"] for f in described["findings"] if f["kind"] == "lacking_column"]
    assert len(lacks) > 1
    assert shown.count("lacking_column") == 1  # all of them in one line
    assert f"{len(lacks)} columns of the canonical table" in " ".join(shown.split())


def test_a_twin_is_written_and_can_be_added(lake: Path, tmp_path: Path) -> None:
    written = said("twin", tmp_path, "--year", 2012, "--rows", 100, "--discrimination", "direct", "--strength", 0.5)
    assert isinstance(written, dict)
    assert written["rows"] == 100
    assert Path(written["truth"]).is_file()
    key = ("--year", 2012, "--kind", "twin", "--frozen", "2013-01-01", "--lake", lake)
    vintage = said("add", written["file"], *key)
    assert isinstance(vintage, dict)
    assert (vintage["layout"], vintage["rows"] + vintage["refused"]) == ("historic_codes", 100)


def test_several_files_are_added_at_once_each_of_the_year_that_it_says(lake: Path, tmp_path: Path) -> None:
    files = [write(tmp_path / str(year), TwinSettings(rows=40, year=year), 3).rows for year in (2012, 2022)]
    os.utime(files[0], (time.time(), 1_400_000_000))
    added = said("add", *files, "--kind", "twin", "--lake", lake)
    assert isinstance(added, list)
    assert [(each["year"], each["rows"] + each["refused"]) for each in added] == [(2012, 40), (2022, 40)]
    assert added[0]["frozen"] == "2014-05-13", "the file's own date"
    assert [v.year for v in vintages(Lake(lake))] == [2012, 2022]


def test_the_freeze_date_is_the_published_one_where_there_is_one(rows: Path, lake: Path) -> None:
    added = said("add", rows, "--geo", "TX", "--lake", lake)
    assert isinstance(added, dict)
    assert (added["year"], added["frozen"]) == (2022, "2023-05-01")


def test_a_file_of_two_years_or_of_none_is_answered(rows: Path, lake: Path, tmp_path: Path) -> None:
    text = rows.read_text().splitlines()
    both = tmp_path / "both.csv"
    both.write_text("\n".join([*text, text[1].replace("2022", "2021", 1)]) + "\n")
    error = refused("add", both, "--lake", lake)
    assert error.exit_code == ExitCode.DATA_QUALITY
    assert "both.csv holds rows of 2021, 2022" in str(error)
    silent = tmp_path / "silent.csv"
    silent.write_text("\n".join("|".join(line.split("|")[1:]) for line in text) + "\n")
    error = refused("add", silent, "--lake", lake)
    assert error.exit_code == ExitCode.USAGE
    assert "silent.csv does not contain the year of its rows; give it with --year" in str(error)
    assert refused("add", tmp_path / "nowhere.csv", "--lake", lake).exit_code == ExitCode.INFRASTRUCTURE
    assert vintages(Lake(lake)) == []


def test_a_list_makes_no_lake(lake: Path) -> None:
    assert "held: nothing" in data("list", "--lake", lake, "--year", 2024).stdout
    assert not lake.exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example(command: str) -> None:
    shown = data(command, "--help").stdout
    assert f"Example: evenhand data {command}" in shown
    assert "--json" in shown


def test_a_year_in_one_file_is_sorted_and_then_nothing_is_left_to_do(rows: Path, lake: Path) -> None:
    (before,) = [said("add", rows, "--frozen", "2023-05-01", "--geo", "nationwide", "--lake", lake)]
    assert before["version"] == 2
    as_first_version(Lake(lake), *vintages(Lake(lake)))
    assert [line["version"] for line in said("list", "--lake", lake, "--year", 2022)["held"]] == [1]
    (after,) = said("repack", "--year", 2022, "--lake", lake)
    assert after == before
    assert said("repack", "--year", 2022, "--lake", lake) == []
    again = data("repack", "--year", 2022, "--lake", lake)
    assert again.exit_code == 0
    assert "is sorted already: nothing to do" in again.output


def test_a_year_that_is_not_held_is_not_sorted(lake: Path) -> None:
    result = data("repack", "--year", 2022, "--lake", lake)
    assert isinstance(result.exception, EvenhandError)
    assert "holds no vintage of 2022; `evenhand data list` prints its years" in str(result.exception)
    assert not lake.exists()
