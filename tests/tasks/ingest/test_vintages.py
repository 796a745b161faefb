"""Vintages: a delivered file becomes one, whole or not at all; which are held, and which is the newest."""

import gzip
import json
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from conftest import REPOSITORY, SHARED

from schemas.audit.source import Source
from schemas.errors import DataQualityError, InfrastructureError, IntegrityError, SpecError
from schemas.vintages import Vintage
from tasks.ingest.hmda import source
from tasks.ingest.hmda.source import digest_of_rows
from tasks.ingest.synthetic.algorithm.twin import TwinSettings
from tasks.ingest.synthetic.twin_files import write
from tasks.ingest.vintages import store
from tasks.ingest.vintages.store import add, file_of, newest, vintages
from tasks.lake.store import Lake, sha256_of

MAY = date(2023, 5, 1)
KEY = {"year": 2022, "dataset": "snapshot", "geography": "nationwide", "frozen": MAY}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Synthetic rows as the publisher would deliver them: two editions of 2022, and a file of 2012."""
    place = tmp_path_factory.mktemp("files")
    for name, year, seed in (("first", 2022, 1), ("second", 2022, 2), ("third", 2022, 3), ("old", 2012, 4)):
        written = write(place / "written", TwinSettings(rows=200, year=year), seed)
        shutil.move(written.rows, place / name)
    with zipfile.ZipFile(place / "zipped", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(place / "first", "2022_public_lar.txt")
    (place / "packed").write_bytes(gzip.compress((place / "second").read_bytes()))
    return place


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def below(lake: Lake) -> list[str]:
    """All files of the lake that are no locks."""
    files = (path.relative_to(lake.root).as_posix() for path in lake.root.rglob("*") if path.is_file())
    return sorted(path for path in files if not path.startswith("locks/"))


@pytest.mark.parametrize("name", ["first", "zipped"])
def test_a_file_becomes_a_vintage_with_all_its_rows(files: Path, lake: Lake, name: str) -> None:
    made = add(lake, files / name, **KEY)
    assert made.sha256 == sha256_of(files / name)
    assert (made.layout, made.rows + made.refused, made.source) == ("public_lar", 200, name)
    assert made.bytes == (files / name).stat().st_size
    assert made.folder == f"vintages/2022/snapshot/nationwide/2023-05-01/{made.sha256[:12]}"
    kept = {"lenders.parquet", "refusals.parquet", "schema_report.json", "vintage.json", "partition.json"}
    found = {path.removeprefix(f"{made.folder}/") for path in below(lake)}
    assert {path for path in found if not path.startswith("applications/state=")} == kept
    assert "applications/state=TX/part-0.parquet" in found
    assert vintages(lake) == [made] == vintages(Lake(lake.root), 2022)
    applications = pq.read_table(file_of(lake, made), partitioning=None)
    assert applications.num_rows == made.rows
    assert set(applications["activity_year"].to_pylist()) == {2022}
    assert json.loads((lake.root / made.folder / "schema_report.json").read_text())["rows_in"] == 200


@pytest.mark.data("data/hmda_lar_2024_travis_cu", "data/hmda_lar_2010_2017_labels")
def test_real_files_become_vintages(lake: Lake) -> None:
    """A lender's rows of 2024 from the data browser, and a slice of 2012."""
    data = SHARED / "data"
    lender = data / "hmda_lar_2024_travis_cu" / "travis_cu_2024_hmda.csv"
    key = {"dataset": "data-browser", "geography": "549300GAX7IKJUKCJE72", "frozen": date(2025, 6, 1)}
    made = add(lake, lender, year=2024, **key)
    assert (made.layout, made.rows + made.refused) == ("data_browser", 1_442)
    old = data / "hmda_lar_2010_2017_labels" / "hmda_lar_2012_raw_rand_lm100.csv"
    made = add(lake, old, year=2012, dataset="historic", geography="nationwide", frozen=date(2013, 9, 1))
    assert (made.layout, made.rows + made.refused) == ("historic_slice", 100)
    assert [v.year for v in vintages(lake)] == [2012, 2024]


def test_the_delivered_file_is_kept_where_that_is_asked_for(files: Path, lake: Lake) -> None:
    made = add(lake, files / "zipped", **KEY, keep_raw=True)
    assert sha256_of(lake.root / made.folder / "delivered-zipped") == made.sha256


def test_a_second_delivery_of_a_file_makes_no_second_vintage(
    files: Path, lake: Lake, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = add(lake, files / "first", **KEY)
    before = {path: (lake.root / path).stat().st_mtime_ns for path in below(lake)}
    renamed = tmp_path / "another name.csv"
    shutil.copy(files / "first", renamed)
    for other in ({}, {"frozen": date(2024, 1, 1)}, {"dataset": "one-year"}, {"geography": "TX"}):
        assert add(lake, renamed, **{**KEY, **other}) == made
    assert {path: (lake.root / path).stat().st_mtime_ns for path in below(lake)} == before
    assert f"another name.csv was delivered before, and is held as {made}" in caplog.text


def test_two_that_add_one_file_at_once_make_one_vintage(files: Path, lake: Lake) -> None:
    lakes = [Lake(lake.root) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda one: add(one, files / "first", **KEY), lakes))
    assert made[0] == made[1]
    assert vintages(lake) == made[:1]


def test_what_is_held_is_converted_again_on_request_only(files: Path, lake: Lake) -> None:
    made = add(lake, files / "first", **KEY)
    again = add(lake, files / "first", **KEY, replace=True)
    assert vintages(lake) == [again]
    assert again.added > made.added
    redated = add(lake, files / "first", **{**KEY, "frozen": date(2023, 5, 2)}, replace=True)
    assert vintages(lake) == [redated]
    assert file_of(lake, redated).is_dir()
    assert not (lake.root / made.folder).exists()


def test_the_digest_of_a_vintage_is_that_of_what_was_delivered_and_of_what_converted_it(
    files: Path, lake: Lake, tmp_path: Path
) -> None:
    rows = file_of(lake, add(lake, files / "first", **KEY))
    elsewhere = Lake(tmp_path / "other")
    other = file_of(elsewhere, add(elsewhere, files / "first", **KEY))
    _turned_round(other)
    assert digest_of_rows(rows) != digest_of_rows(other)
    assert digest_of(rows) == digest_of(other)
    second = file_of(lake, add(lake, files / "second", **{**KEY, "frozen": date(2024, 5, 1)}))
    assert digest_of(second) != digest_of(rows)
    record = other.with_name("vintage.json")
    said = json.loads(record.read_bytes())
    record.write_text(json.dumps({**said, "converter": "of yesterday"}))
    assert digest_of(other) != digest_of(rows)
    record.write_text(json.dumps({**said, "rows_sha256": "0" * 64}))  # these are not the rows that were written
    assert digest_of(other) == digest_of_rows(other)


def digest_of(rows: Path) -> str:
    return source.digest(Source(kind="hmda", path=str(rows)))


def _turned_round(rows: Path) -> None:
    """The same rows in another order, with the record that they would have had."""
    for file in rows.rglob("*.parquet"):
        table = pq.read_table(file, partitioning=None)
        pq.write_table(table.take(list(reversed(range(table.num_rows)))), file)
    record = rows.with_name("vintage.json")
    record.write_text(json.dumps({**json.loads(record.read_bytes()), "rows_sha256": digest_of_rows(rows)}))


def test_a_file_that_changes_while_it_is_read_becomes_no_vintage(
    files: Path, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path(shutil.copy(files / "first", tmp_path / "growing"))

    take_in = store.take_in

    def grows(name: Path, *more_arguments: Any) -> store.TakenIn:
        taken = take_in(name, *more_arguments)
        with name.open("ab") as more:
            more.write(b"x")
        return taken

    monkeypatch.setattr(store, "take_in", grows)
    with pytest.raises(InfrastructureError, match="growing changed while it was read; add it again"):
        add(lake, file, **KEY)
    assert vintages(lake) == []


def test_columns_that_a_vintage_does_not_keep_are_told(
    files: Path, lake: Lake, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, *others = (files / "first").read_text().splitlines()
    file = tmp_path / "more"
    file.write_text("\n".join([f"{first}|approved", *(f"{row}|1" for row in others), ""]))
    add(lake, file, **KEY)
    assert (
        f"its layout has no column approved, and a vintage keeps none; an audit of these takes source.path: {file}"
        in (caplog.text)
    )


def test_rows_of_another_year_are_refused(files: Path, lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(DataQualityError, match=r"first holds 200 rows of 2022 and not 2021, as declared: give --year"):
        add(lake, files / "first", **{**KEY, "year": 2021})
    assert vintages(lake) == []
    assert below(lake) == []
    made = add(lake, files / "first", **KEY)
    with pytest.raises(DataQualityError, match=f"declared as 2021 and is held as {made}".replace("(", r"\(")[:-1]):
        add(lake, files / "first", **{**KEY, "year": 2021})


def test_rows_of_several_years_are_refused(files: Path, lake: Lake, tmp_path: Path) -> None:
    other = write(tmp_path, TwinSettings(rows=50, year=2021), 5).rows
    mixed = tmp_path / "mixed"
    mixed.write_bytes((files / "first").read_bytes() + other.read_bytes().split(b"\n", 1)[1])
    with pytest.raises(DataQualityError, match="mixed holds 50 rows of 2021 and 200 rows of 2022, and a vintage is of"):
        add(lake, mixed, **KEY)
    assert below(lake) == []


def test_a_file_that_does_not_say_its_year_is_taken_at_ones_word(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "few").write_text(
        "action_taken,income,debt_to_income_ratio,property_value\n1,80,36,255000\n3,40,>60%,105000\n"
    )
    made = add(lake, tmp_path / "few", **KEY)
    assert (made.year, made.rows, made.refused) == (2022, 2, 0)


@pytest.mark.parametrize("content", [b"", b"no,hmda,at,all\n1,2,3,4\n", b"<html>sorry</html>", b"PK\x03\x04 cut"])
def test_what_is_no_hmda_leaves_nothing(lake: Lake, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DataQualityError, match="file"):
        add(lake, tmp_path / "file", **KEY)
    assert below(lake) == []


def test_words_that_name_nothing_are_refused_before_the_file_is_read(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no kind of data set 'snapshots'; did you mean 'snapshot'"):
        add(lake, tmp_path / "none", **{**KEY, "dataset": "snapshots"})
    with pytest.raises(SpecError, match=r"no place '\.\./elsewhere'"):
        add(lake, tmp_path / "none", **{**KEY, "geography": "../elsewhere"})
    for year in (1900, 2024):
        with pytest.raises(SpecError, match=f"a vintage of {year} cannot have been frozen on 2023-05-01"):
            add(lake, tmp_path / "none", **{**KEY, "year": year})
    with pytest.raises(InfrastructureError, match="none' cannot be read"):
        add(lake, tmp_path / "none", **KEY)


@pytest.fixture(scope="module")
def held(files: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, dict[str, Vintage]]:
    """A lake with three editions of 2022, a later twin of it, and 2012."""
    lake = Lake(tmp_path_factory.mktemp("held") / "lake")
    made = {
        "second": add(lake, files / "second", **{**KEY, "dataset": "one-year", "frozen": date(2024, 5, 1)}),
        "first": add(lake, files / "first", **KEY),
        "packed": add(lake, files / "packed", **KEY),
        "twin": add(lake, files / "third", **{**KEY, "dataset": "twin", "frozen": date(2030, 1, 1)}),
        "old": add(lake, files / "old", **{**KEY, "year": 2012, "dataset": "historic", "frozen": date(2013, 9, 1)}),
    }
    return lake, made


def test_vintages_come_in_order(held: tuple[Lake, dict[str, Vintage]]) -> None:
    lake, made = held
    names = {vintage.sha256: name for name, vintage in made.items()}
    assert [names[v.sha256] for v in vintages(lake)] == ["old", "second", "first", "packed", "twin"]
    assert vintages(lake, 2012) == [made["old"]]
    assert vintages(lake, 1999) == []


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ({}, "second"),
        ({"dataset": "snapshot"}, "packed"),
        ({"frozen": MAY}, "packed"),
        ({"dataset": "twin"}, "twin"),
        ({"frozen": date(2030, 1, 1)}, "twin"),
        ({"geography": "nationwide"}, "second"),
        ({"geography": "TX"}, None),
        ({"dataset": "snapshot", "frozen": date(2024, 5, 1)}, None),
    ],
)
def test_the_newest_is_the_last_frozen_and_then_the_last_that_came(
    held: tuple[Lake, dict[str, Vintage]], wanted: dict[str, object], name: str | None
) -> None:
    lake, made = held
    assert newest(lake, 2022, **wanted) == (made[name] if name else None)


def test_of_several_places_one_has_to_be_named(files: Path, lake: Lake) -> None:
    add(lake, files / "first", **KEY)
    texas = add(lake, files / "second", **{**KEY, "geography": "TX", "frozen": date(2024, 5, 1)})
    with pytest.raises(SpecError, match=r"2022 of TX and of nationwide; say which is meant with source\.vintage"):
        newest(lake, 2022)
    assert newest(lake, 2022, geography="TX") == texas


ONE_STATE = "applications/state=TX/part-0.parquet"


def test_an_altered_vintage_is_named_with_the_next_step(files: Path, lake: Lake) -> None:
    made = add(lake, files / "first", **KEY)
    for name in (ONE_STATE, "lenders.parquet", "vintage.json", "partition.json"):
        file = lake.root / made.folder / name
        whole = file.read_bytes()
        file.write_bytes(whole[:-1])
        with pytest.raises(
            IntegrityError, match=f"{made.folder} lacks a file, or holds one .* add the delivered file again"
        ) as caught:
            file_of(Lake(lake.root), vintages(Lake(lake.root))[0])
        assert (f"({name})" in str(caught.value)) == (name != "partition.json")
        file.write_bytes(whole)
    assert file_of(Lake(lake.root), vintages(Lake(lake.root))[0]).is_dir()


KILLED = """
import os, signal, sys
from datetime import date
from pathlib import Path
from tasks.pipeline.validation import expectations  # every child finds it loaded
from tasks.ingest.vintages import store as delivery; from tasks.ingest.vintages import store as drafts; from tasks.ingest.vintages import store
from tasks.lake.local_directory import Directory
from tasks.lake.store import Lake

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

WHEN = {"read": (store, "take_in"), "converted": (delivery, "report_on"), "flushed": (drafts, "flush"),
        "named": (Directory, "publish")}
for when, (place, name) in WHEN.items():
    child = os.fork()
    if child == 0:
        setattr(place, name, die)
        store.add(Lake(Path(sys.argv[1]) / when), Path(sys.argv[2]), year=2022, dataset="snapshot",
                  geography="nationwide", frozen=date(2023, 5, 1))
        os._exit(0)
    print(when, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""  # noqa: E501


@pytest.fixture(scope="module")
def killed(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake for each moment at which a process of its own was killed."""
    lakes = tmp_path_factory.mktemp("killed")
    words = [sys.executable, "-c", KILLED, str(lakes), str(files / "zipped")]
    done = subprocess.run(words, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["read", "-9", "converted", "-9", "flushed", "-9", "named", "-9"], done.stderr
    return lakes


@pytest.mark.parametrize("when", ["read", "converted", "flushed", "named"])
def test_a_process_that_is_killed_leaves_nothing_that_a_reader_sees(files: Path, killed: Path, when: str) -> None:
    lake = Lake(killed / when)
    assert list((lake.root / "tmp").iterdir())
    assert vintages(lake) == []
    assert newest(lake, 2022) is None
    made = add(lake, files / "zipped", **KEY)
    assert vintages(lake) == [made]
    assert list((lake.root / "tmp").iterdir()) == []


def test_a_disk_that_is_too_small_is_refused_first(files: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(lake.root)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10_000))
    with pytest.raises(InfrastructureError, match="MB free and first needs up to"):
        add(lake, files / "first", **KEY)
    assert below(lake) == []


def test_a_lake_at_a_uri_holds_vintages_too(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the file system of fsspec that lies in memory: no rename there, no local path."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    lake = Lake("memory://vintages-test/lake")
    made = add(lake, files / "first", **KEY)
    assert vintages(lake) == [made]
    assert add(lake, files / "first", **KEY) == made
    assert pq.read_table(file_of(lake, made), partitioning=None).num_rows == made.rows
    again = add(lake, files / "first", **KEY, replace=True)
    assert vintages(Lake("memory://vintages-test/lake")) == [again]
    assert file_of(lake, again).is_dir()
    rows = file_of(lake, again)
    assert digest_of(rows) != digest_of_rows(rows)  # its record lies beside the copy


def test_a_vintage_is_named_for_people() -> None:
    said = {"sha256": "0123456789ab" + "0" * 52, "layout": "x", "rows": 1, "refused": 0, "bytes": 1, "source": "x"}
    vintage = Vintage(**KEY, **said, added="2023-06-01")
    assert str(vintage) == "2022 snapshot of nationwide, frozen 2023-05-01 (0123456789ab)"
