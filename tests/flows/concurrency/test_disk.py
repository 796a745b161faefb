"""A disk that is small and fills: asked for before, and told by the names of lake and stage when it runs out."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.concurrency.schedule import check_years_on_disk, free_mb, telling_full_disk
from schemas.errors import InfrastructureError
from tasks.lake.store import Lake

SIZE_MB = 80


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file system of its own in memory."""
    place = tmp_path_factory.mktemp("disk")
    words = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "tmpfs", str(place)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system may be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


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


def test_another_error_is_left_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), telling_full_disk(Lake(tmp_path / "lake"), "stage score"):
        (tmp_path / "absent").read_text()
