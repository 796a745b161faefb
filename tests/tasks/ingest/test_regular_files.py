"""What is no regular file is refused before it is opened: nothing hangs, and nothing is read without end."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from conftest import REPOSITORY, SPEC, spec_of

from flows.cli.draft.commands import draft
from flows.cli.draft.drafting import Choices
from flows.cli.draft.reading import File
from flows.runs.given import placed
from schemas.audit.file import SpecFile
from schemas.audit.model import Model
from schemas.errors import InfrastructureError, SpecError
from tasks.ingest.hmda.layouts import opened
from tasks.ingest.stage import ingest_settings
from tasks.ingest.vintages import store
from tasks.lake.store import Lake
from tasks.scoring import stage as score


def _loop(path: Path) -> None:
    path.symlink_to(path.with_name("other"))
    path.with_name("other").symlink_to(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "fifo": (os.mkfifo, "a pipe (FIFO)"),
    "directory": (Path.mkdir, "a directory"),
    "loop": (_loop, "a symbolic link that leads to itself"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "a device"),
    "socket": (_socket, "a socket"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_refused_by_whoever_opens_one(
    place: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)  # a socket's path has few characters
    path, (make, told) = Path("x"), KINDS[kind]
    make(path)
    spec, lake = spec_of(place), Lake(str(place / "lake"))
    model = Model.model_validate({"kind": "file", "file": {"path": "x"}})
    refused: list[Callable[[], object]] = [
        lambda: draft(File(path), Choices()),
        lambda: opened(path, place),
        lambda: ingest_settings(spec_of(place, source__path="x")),
        lambda: ingest_settings(spec_of(place, source="{kind: parquet, path: x}")),
        lambda: ingest_settings(spec_of(place, source="{kind: hmda, path: x}")),
        lambda: score.score_settings(spec.model_copy(update={"model": model})),
        lambda: store.add(lake, path, year=2022, dataset="snapshot", geography="TX", frozen=date(2023, 5, 1)),
    ]
    for call in refused:
        with pytest.raises(SpecError) as error:
            call()
        assert str(error.value) == f"'x' is not a file, but {told}; give the path of a regular file"


@pytest.mark.parametrize(
    "words",
    [["init", "x"], ["audit", "audit.yaml"], ["data", "add", "x", "--year", "2022", "--frozen", "2023-05-01"]],
    ids=["init", "audit", "data add"],
)
def test_a_fifo_hangs_no_command(tmp_path: Path, words: list[str]) -> None:
    os.mkfifo(tmp_path / "x")
    (tmp_path / "audit.yaml").write_text(SPEC.replace("loans.csv", "x"))
    how = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 300, "check": False}
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "EVENHAND_LAKE": str(tmp_path / "lake")}
    ended = subprocess.run([sys.executable, "-m", "flows.cli", *words], env=environment, **how)  # type: ignore[call-overload]
    assert ended.returncode == 2, ended.stderr
    assert "'x' is not a file, but a pipe (FIFO)" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("name", "told"),
    [("a\0b", "a name that no file can have"), ("x" * 5000, "a name longer than any file has")],
    ids=["null", "long"],
)
def test_a_name_that_no_file_has_is_refused(place: Path, name: str, told: str) -> None:
    with pytest.raises(SpecError, match=f"is not a file, but {told}"):
        ingest_settings(spec_of(place, source__path=json.dumps(name)))
    read = placed(SpecFile(spec_of(place, source__path=json.dumps(name)), "x.yaml"), place)  # looks for it, too
    assert read.spec.source.paths == (str(place / name),)


def test_a_lake_of_a_link_to_itself_is_said_to_be(tmp_path: Path) -> None:
    _loop(tmp_path / "x")
    with pytest.raises(InfrastructureError, match="symbolic links"):
        Lake(tmp_path / "x")
