"""A disk that is small and fills: asked for before, and told by the names of lake and stage when it runs out."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import environment, evenhand, evenhand_process
from few_loans import few_loans

from flows.concurrency.schedule import check_years_on_disk, free_mb, telling_full_disk
from schemas.errors import InfrastructureError
from schemas.terms import ExitCode
from tasks.lake.store import Lake

SIZE_MB = 80


@contextmanager
def disk(place: Path, mb: int) -> Iterator[Path]:
    """A file system of its own in memory."""
    words = ["mount", "-t", "tmpfs", "-o", f"size={mb}m", "tmpfs", str(place)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system may be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with disk(tmp_path_factory.mktemp("disk"), SIZE_MB) as place:
        yield place


def filled(ballast: Path) -> None:
    """Write until the disk is full."""
    with ballast.open("wb", buffering=0) as file:
        while file.write(b"0" * 2**20):
            pass


def test_years_that_would_not_fit_together_are_refused_before(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake = Lake(small_disk / "lake")
    check_years_on_disk(lake, [5_000_000, None, 5_000_000], force=False)
    with pytest.raises(InfrastructureError, match=r"lake has 8\d MB left and 2 years needs about 94 MB; free some"):
        check_years_on_disk(lake, [15_000_000, 15_000_000], force=False)
    check_years_on_disk(lake, [15_000_000, 15_000_000], force=True)
    assert "it goes on, as --force is given" in caplog.text


def test_a_disk_that_fills_while_a_stage_writes_is_told_and_nothing_is_left(small_disk: Path) -> None:
    lake = Lake(small_disk / "lake")
    ballast = small_disk / "ballast"
    with pytest.raises(OSError, match="No space left"):
        filled(ballast)
    try:
        words = r"lake has 0 MB left and stage detect cst needs more; nothing of it was kept: free some"
        with pytest.raises(InfrastructureError, match=words), telling_full_disk(lake, "stage detect cst"):
            lake.write_file("runs/a/manifest.json", b"0" * 2**20)
        with pytest.raises(InfrastructureError, match=words), telling_full_disk(lake, "stage detect cst"):
            (small_disk / "rows").write_bytes(b"0" * 2**21)
        assert not (lake.root / "runs" / "a" / "manifest.json").exists()
        assert list((lake.root / "tmp").iterdir()) == []
    finally:
        ballast.unlink()
        (small_disk / "rows").unlink(missing_ok=True)
    assert free_mb(lake) > SIZE_MB - 2


@pytest.mark.parametrize("mb", [1, 5, 20, 50])
def test_a_disk_too_small_for_any_audit_is_named_before_a_server_starts(tmp_path: Path, mb: int) -> None:
    spec = few_loans(tmp_path)
    (tmp_path / "disk").mkdir()
    with disk(tmp_path / "disk", mb) as small:
        done = evenhand("audit", str(spec), "--lake", str(small / "lake"), cwd=tmp_path)
        assert done.returncode == ExitCode.INFRASTRUCTURE
        assert f"the disk of {small / 'lake'} has " in done.stderr
        assert "an audit needs up to 64 MB; free some, or give another directory with --lake" in done.stderr
        assert not (small / "lake" / "prefect").exists()


@pytest.mark.long
def test_a_disk_that_fills_in_an_audit_is_named_and_the_same_command_goes_on(tmp_path: Path) -> None:
    spec = few_loans(tmp_path)
    (tmp_path / "disk").mkdir()
    with disk(tmp_path / "disk", 100) as small:
        words = ["audit", str(spec), "--lake", str(small / "lake")]
        process = subprocess.Popen(
            [sys.executable, "-m", "flows.cli", *words], env=environment(None), stderr=subprocess.PIPE, text=True
        )
        until = time.monotonic() + 300
        while not list(small.glob("lake/stages/preprocess/*/partition.json")):  # the second stage is over
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.01)
        with pytest.raises(OSError, match="No space left"):
            filled(small / "ballast")
        _, said = process.communicate()
        assert process.returncode == ExitCode.INFRASTRUCTURE, said
        assert str(small) in said
        assert "is full" in said or " MB free" in said or " MB left" in said
        assert "fault of ours" not in said
        (small / "ballast").unlink()
        assert evenhand_process(*words).returncode == ExitCode.INCONCLUSIVE
        assert evenhand("verify", "--all", "--lake", str(small / "lake")).returncode == 0


def test_another_error_is_left_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), telling_full_disk(Lake(tmp_path / "lake"), "stage score"):
        (tmp_path / "absent").read_text()
