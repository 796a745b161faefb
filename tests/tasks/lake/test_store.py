"""The lake: nothing half-written is ever read, and what was altered is named."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import REPOSITORY

from schemas.errors import InfrastructureError, IntegrityError
from schemas.terms import ExitCode
from tasks.lake.store import Lake

TABLE = pa.table({"x": [1, 2, 3]})


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def test_published_is_found_again_in_another_process_of_the_lake(lake: Lake) -> None:
    written = lake.publish("score", "k", {"t": TABLE}, {"note.txt": b"x"}, {"seconds": 1})
    found = Lake(lake.root).find("score", "k")
    assert found is not None
    assert found.reused
    assert found.tables == written.tables
    assert lake.read(found.table("t")).equals(TABLE)
    assert lake.lineage(found) == {"seconds": 1}


def test_the_same_table_has_the_same_digest(lake: Lake) -> None:
    one = lake.publish("score", "a", {"t": TABLE}, {}, {"seconds": 1})
    two = lake.publish("score", "b", {"t": TABLE}, {}, {"seconds": 2})
    assert one.table("t").sha256 == two.table("t").sha256


@pytest.mark.parametrize("harm", ["truncated", "altered", "removed"])
@pytest.mark.parametrize("name", ["t.parquet", "lineage.json"])
def test_a_harmed_file_is_named_with_the_next_step(lake: Lake, harm: str, name: str) -> None:
    lake.publish("score", "k", {"t": TABLE}, {}, {})
    file = lake.root / "stages" / "score" / "k" / name
    content = file.read_bytes()
    if harm == "removed":
        file.unlink()
    else:
        file.write_bytes(content[: len(content) // 2] if harm == "truncated" else content[:-1] + b"?")
    with pytest.raises(IntegrityError, match=f"{name} is missing or is not the file that was written") as error:
        Lake(lake.root).find("score", "k")
    assert "run the audit again" in str(error.value)
    assert error.value.exit_code == ExitCode.INTEGRITY


def test_a_directory_without_its_record_does_not_exist(lake: Lake) -> None:
    home = lake.root / "stages" / "score" / "k"
    home.mkdir(parents=True)
    (home / "t.parquet").write_bytes(b"half")
    assert lake.find("score", "k") is None
    lake.publish("score", "k", {"t": TABLE}, {}, {})
    assert lake.find("score", "k") is not None


def test_a_lake_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match=r"cannot be written .*--lake") as error:
        Lake(tmp_path / "file" / "lake")
    assert error.value.exit_code == ExitCode.INFRASTRUCTURE


def test_a_read_only_lake_is_named(lake: Lake) -> None:
    if os.geteuid() == 0:
        pytest.skip("the superuser may write anywhere")
    (lake.root / "tmp").chmod(0o500)
    with pytest.raises(InfrastructureError, match="cannot be written"):
        Lake(lake.root)


def test_a_write_that_would_not_fit_is_refused_before_it_begins(lake: Lake) -> None:
    with pytest.raises(InfrastructureError, match=r"MB free and the graph needs up to"):
        lake.require_space(2**60, "the graph")


def test_a_disk_that_fills_up_leaves_nothing_behind(tmp_path: Path) -> None:
    """On a real file system of 80 MB: the check passes, the write does not fit what others took meanwhile."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("mounting a small file system is not allowed here")
    try:
        lake = Lake(disk / "lake")
        lake.require_space(2**20, "a table")
        (disk / "others").write_bytes(b"x" * (78 * 2**20))
        lake.require_space = lambda *_: None  # type: ignore[method-assign]  # as if the space went after the check
        with pytest.raises(InfrastructureError, match="is full; free some space"):
            lake.publish("score", "k", {"t": pa.table({"x": [os.urandom(64).hex() for _ in range(60_000)]})}, {}, {})
        assert lake.find("score", "k") is None
        assert not list((lake.root / "tmp").iterdir())
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_writer_killed_between_write_and_name_leaves_no_partition(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from pathlib import Path
import pyarrow as pa
import tasks.lake.store as store
lake = store.Lake(Path(sys.argv[1]))
store._flush = lambda path: os.kill(os.getpid(), signal.SIGKILL)
lake.publish("score", "k", {"t": pa.table({"x": [1]})}, {}, {})
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=REPOSITORY, check=False)
    assert done.returncode == -9
    assert list((tmp_path / "tmp").iterdir())
    lake = Lake(tmp_path)
    assert lake.find("score", "k") is None
    lake.publish("score", "k", {"t": TABLE}, {}, {})
    assert not list((tmp_path / "tmp").iterdir())


def test_files_in_folders_are_published_found_and_checked(lake: Lake) -> None:
    files = {"report.html": b"first", "pages/approval-rates.html": b"gap", "evidence/gap.html": b"evidence"}
    written = lake.publish("report", "k", {"t": TABLE}, files, {})
    assert {written.within(path) for path in written.files} == {*files, "lineage.json"}
    found = Lake(lake.root).find("report", "k")
    assert found is not None
    for path, digest in found.files.items():
        assert lake.check(path, digest).read_bytes() == files.get(found.within(path), b"{}")
    (lake.root / "stages/report/k/pages/approval-rates.html").write_bytes(b"other")
    with pytest.raises(IntegrityError, match=r"pages/approval-rates\.html is missing or is not the file"):
        Lake(lake.root).find("report", "k")
