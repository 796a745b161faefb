"""From one file of rows to files by state: the same to an audit, and whole or not at all."""

import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from conftest import REPOSITORY
from first_vintages import as_first_version

from schemas.audit.source import Source
from schemas.errors import InfrastructureError, IntegrityError
from schemas.vintages import Vintage, words_of
from tasks.ingest.hmda import source as hmda_source
from tasks.ingest.synthetic.algorithm.twin import TwinSettings
from tasks.ingest.synthetic.twin_files import write
from tasks.ingest.vintages import store
from tasks.ingest.vintages.store import add, file_of, repack, vintages
from tasks.lake.store import Lake

KEY = {"year": 2022, "dataset": "snapshot", "geography": "nationwide", "frozen": date(2023, 5, 1)}
COLUMNS = ["lender_id", "state_code", "action_taken", "income_usd", "derived_race"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Vintage]:
    """A lake with a vintage of version 1."""
    place = tmp_path_factory.mktemp("first")
    lake = Lake(place / "lake")
    file = write(place / "written", TwinSettings(rows=300), 1).rows
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines[:50], "broken\n", *lines[50:]]))
    return lake.root, as_first_version(lake, add(lake, file, **KEY, keep_raw=True))


@pytest.fixture
def held(made: tuple[Path, Vintage], tmp_path: Path) -> tuple[Lake, Vintage]:
    """A copy of it."""
    shutil.copytree(made[0], tmp_path / "lake")
    return Lake(tmp_path / "lake"), made[1]


def source_of(rows: Path) -> Source:
    return Source(kind="hmda", path=str(rows), year=2022)


def below(lake: Lake) -> list[str]:
    files = (path.relative_to(lake.root).as_posix() for path in lake.root.rglob("*") if path.is_file())
    return sorted(path for path in files if not path.startswith("locks/"))


def test_both_versions_are_the_same_to_an_audit(held: tuple[Lake, Vintage]) -> None:
    lake, first = held
    source = source_of(file_of(lake, first))
    before = hmda_source.digest(source), hmda_source.header(source), hmda_source.read(source, COLUMNS)
    second = repack(lake, first)
    assert second is not None
    assert (second.version, second.model_copy(update={"version": 1, "rows_sha256": first.rows_sha256})) == (2, first)
    rows = file_of(Lake(lake.root), second)
    assert words_of(str(rows)) == "snapshot, nationwide, frozen 2023-05-01 (" + first.sha256[:12] + ")"
    assert (rows.is_dir(), rows.name) == (True, "applications")
    source = source_of(rows)
    digest, header, read = hmda_source.digest(source), hmda_source.header(source), hmda_source.read(source, COLUMNS)
    assert (digest, header) == before[:2]
    assert (read.source_row, list(read.unread)) == (before[2].source_row, list(before[2].unread))
    assert read.table == before[2].table
    former = source_of(lake.root / first.folder / "applications.parquet")  # as the manifest of an earlier run names it
    assert (hmda_source.digest(former), hmda_source.header(former)) == before[:2]
    assert vintages(Lake(lake.root)) == [second]


def test_the_files_of_the_first_version_go_and_the_delivered_file_stays(held: tuple[Lake, Vintage]) -> None:
    lake, first = held
    second = repack(lake, first)
    assert second is not None
    found = {path.removeprefix(f"{first.folder}/") for path in below(lake)}
    assert {path for path in found if "/state=" not in path} == {
        "partition.json", "sorted/lenders.parquet", "sorted/refusals.parquet", "sorted/schema_report.json",
        "sorted/vintage.json", "sorted/delivered-hmda_twin_2022_public_lar.txt",
    }  # fmt: skip
    assert repack(lake, second) is None
    assert file_of(Lake(lake.root), second).is_dir()


KILLED = """
import os, signal, sys
from pathlib import Path
from tasks.ingest.vintages import sorting, store
from tasks.lake.local_directory import Directory
from tasks.lake.store import Lake
from tasks.ingest.vintages.store import vintages

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

place, name = {"dealt out": (sorting, "_write"), "sorted": (store, "write_lenders"), "moved": (Directory, "write"),
               "recorded": (store, "_discard_unnamed")}[sys.argv[2]]
setattr(place, name, die)
lake = Lake(Path(sys.argv[1]))
store.repack(lake, vintages(lake)[0])
"""


@pytest.mark.slow
@pytest.mark.parametrize("when", ["dealt out", "sorted", "moved", "recorded"])
def test_a_repack_that_is_killed_leaves_one_version_readable(held: tuple[Lake, Vintage], when: str) -> None:
    lake, first = held
    words = [sys.executable, "-c", KILLED, str(lake.root), when]
    assert subprocess.run(words, cwd=REPOSITORY, check=False).returncode == -9
    (found,) = vintages(Lake(lake.root))
    assert found.version == (2 if when == "recorded" else 1)
    assert len(hmda_source.read(source_of(file_of(Lake(lake.root), found)), COLUMNS).source_row) == first.rows
    repack(Lake(lake.root), found)
    (second,) = vintages(Lake(lake.root))
    assert second.version == 2
    assert file_of(Lake(lake.root), second).is_dir()
    assert list((lake.root / "tmp").iterdir()) == []
    assert not (lake.root / first.folder / "applications.parquet").exists()


def test_a_disk_that_fails_leaves_the_first_version(
    held: tuple[Lake, Vintage], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, first = held
    before = below(lake)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write_lenders", full)
    with pytest.raises(InfrastructureError, match="is full; free some space"):
        repack(lake, first)
    assert below(lake) == before
    assert vintages(lake) == [first]


def test_altered_rows_are_not_repacked(held: tuple[Lake, Vintage]) -> None:
    lake, first = held
    file = lake.root / first.folder / "applications.parquet"
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(IntegrityError, match=r"is not the one that was written \(applications\.parquet\)"):
        repack(Lake(lake.root), first)


def test_a_file_that_is_not_the_vintages_among_its_rows_is_named(held: tuple[Lake, Vintage]) -> None:
    lake, first = held
    second = repack(lake, first)
    assert second is not None
    state = file_of(lake, second) / "state=CA"
    (state / "part-9.parquet").write_bytes((state / "part-0.parquet").read_bytes())
    with pytest.raises(IntegrityError, match=r"\(sorted/applications/state=CA/part-9\.parquet\)"):
        file_of(Lake(lake.root), second)


def test_a_lake_at_a_uri_is_repacked_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No version 1 is made there by this release, so that nothing has to be done; and nothing is lost by asking."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    lake = Lake("memory://repack-test/lake")
    made = add(lake, write(tmp_path / "written", TwinSettings(rows=50), 1).rows, **KEY)
    assert repack(lake, made) is None
    assert file_of(Lake("memory://repack-test/lake"), made).is_dir()
