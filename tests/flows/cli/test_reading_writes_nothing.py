"""Commands that read write nothing: on a read-only mount they work, and elsewhere no file, time or folder changes."""

import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from audited_loans import audited
from conftest import REPOSITORY, environment, evenhand
from lake_of_runs import NEW, lake_of_runs

from flows.supervision.file_modes import fix
from tasks.lake.store import Lake, open_lake

GROUP = "audited_loans"

READING = (
    ("runs",),
    ("show", NEW),
    ("measures", NEW),
    ("sql", "SELECT count(*) FROM published_verdicts"),
    ("log",),
    ("log", "head"),
    ("log", "verify"),
    ("review", NEW),
    ("verdicts", NEW),
)
Tree = dict[str, tuple[int, int, int]]


def tree(lake: Path) -> Tree:
    """Size, inode and time of change of every file and folder: a probe that is gone changes its folder."""
    paths = (lake, *lake.rglob("*"))
    return {str(path): (path.lstat().st_size, path.lstat().st_ino, path.lstat().st_ctime_ns) for path in paths}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake as a copy has it: without the folders of drafts and locks."""
    made = lake_of_runs(tmp_path / "lake")
    for name in ("tmp", "locks"):
        shutil.rmtree(made.root / name)
    return made


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_command_that_reads_leaves_a_lake_as_it_was(lake: Lake, words: tuple[str, ...]) -> None:
    before = tree(lake.root)
    done = evenhand(*words, "--lake", lake.location)
    assert done.returncode in (0, 6 if words == ("log", "verify") else 0), done.stderr
    assert tree(lake.root) == before


def _read_only(place: Path, *commands: str) -> "subprocess.CompletedProcess[str]":
    """Run commands of a shell where a folder is mounted for reading alone, in a mount namespace of their own."""
    mount = f"mount --bind {place} {place} && mount -o remount,ro,bind {place}"
    script = " && ".join([mount, f"! touch {place}/probe 2>/dev/null", *commands])
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", script], cwd=REPOSITORY, env=environment(None), capture_output=True, text=True
    )


@pytest.mark.slow
def test_on_a_read_only_mount_all_that_read_work(tmp_path_factory: pytest.TempPathFactory) -> None:
    place, run = audited(tmp_path_factory)
    lake, python = place / "lake", f"{sys.executable} -m flows.cli"
    if shutil.which("unshare") is None or _read_only(lake, "true").returncode:
        pytest.skip("this user may not mount")
    words = [f"verify {run}", "log verify", "show", "runs", f"measures {run}", "sql 'SELECT 1'"]
    words += [f"report {run} --check", f"stages {run}", f"disclose {run}"]
    commands = [f"{python} {word} --lake {lake} > /dev/null" for word in words]
    done = _read_only(lake, *commands)
    assert done.returncode == 0, done.stderr
    refused = _read_only(lake, f"{python} note {run} text --as Ann --lake {lake}")
    assert refused.returncode == 5
    assert "Read-only file system" in refused.stderr


@pytest.mark.slow
def test_a_server_of_a_read_only_lake_answers(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake").root
    if shutil.which("unshare") is None or _read_only(lake, "true").returncode:
        pytest.skip("this user may not mount")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    mount = f"mount --bind {lake} {lake} && mount -o remount,ro,bind {lake}"
    serve = f"exec {sys.executable} -m flows.cli serve --port {port} --lake {lake}"
    process = subprocess.Popen(
        ["unshare", "-m", "sh", "-c", f"{mount} && {serve}"],
        cwd=REPOSITORY, env=environment(None), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(address) as answer:
            assert answer.status == 200
    finally:
        process.terminate()
        process.communicate()


_OTHER = ("setpriv", "--inh-caps=-all", "--bounding-set=-all")
"""Begins a command that is another user to files of ``nobody``: root without the right to pass over modes."""
_NOBODY = 65534
_DRIVER = """
import json, os, sys
from pathlib import Path
import in_process
done = [in_process.run(words, dict(os.environ), Path.cwd()) for words in json.loads(sys.argv[1])]
print(json.dumps([[one.returncode, one.stderr] for one in done]))
"""


@pytest.fixture
def foreign(tmp_path: Path) -> Callable[[Path], Path]:
    """Gives a lake to another user, and everybody the right to read it."""
    if os.geteuid() or shutil.which("setpriv") is None or subprocess.run([*_OTHER, "true"]).returncode:
        pytest.skip("only root may become another user")

    def given(lake: Path) -> Path:
        copied = shutil.copytree(lake, tmp_path / "foreign")
        for path in (copied, *copied.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
            os.chown(path, _NOBODY, _NOBODY)
        refused = subprocess.run([*_OTHER, "touch", str(copied / "probe")], capture_output=True)
        assert refused.returncode, "this user is not kept out"
        return copied

    return given


@pytest.mark.slow
def test_another_user_with_read_rights_reads_and_writes_nothing(
    tmp_path_factory: pytest.TempPathFactory, foreign: Callable[[Path], Path]
) -> None:
    place, run = audited(tmp_path_factory)
    lake = foreign(place / "lake")
    words = [["verify", run], ["log", "verify"], ["show"], ["runs"], ["measures", run], ["report", run, "--check"]]
    words += [["sql", "SELECT count(*) FROM published_measures"], ["note", run, "a text", "--as", "Ann Lee"]]
    before = tree(lake)
    paths = {"PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'tests/material'}"}
    commands = json.dumps([[*word, "--lake", str(lake)] for word in words])
    done = subprocess.run(
        [*_OTHER, sys.executable, "-P", "-c", _DRIVER, commands],
        cwd=REPOSITORY, env=environment(None) | paths, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *read, noted = json.loads(done.stdout)
    assert [(code, error) for code, error in read if code] == []
    assert (noted[0], "Permission denied" in noted[1]) == (5, True), noted
    assert tree(lake) == before


@pytest.mark.slow
def test_a_server_of_another_users_lake_answers_and_writes_nothing(
    tmp_path: Path, foreign: Callable[[Path], Path]
) -> None:
    lake = foreign(lake_of_runs(tmp_path / "lake").root)
    before = tree(lake)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*_OTHER, sys.executable, "-m", "flows.cli", "serve", "--port", str(port), "--lake", str(lake)]
    process = subprocess.Popen(command, cwd=REPOSITORY, env=environment(None), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(address) as answer:
            assert answer.status == 200
        with opener.open(f"http://127.0.0.1:{port}/runs/{NEW}") as answer:
            assert answer.status == 200
    finally:
        process.terminate()
        process.communicate()
    assert tree(lake) == before


def test_modes_are_never_changed_outside_of_the_lake(tmp_path: Path) -> None:
    lake, outside = Lake(tmp_path / "lake"), tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    for path in (outside, outside / "file", lake.root / "runs"):
        path.chmod(0o777)
    (lake.root / "runs/link").symlink_to(outside)
    (lake.root / "tmp/file").symlink_to(outside / "file")
    os.mkfifo(lake.root / "tmp/pipe", 0o666)
    (lake.root / "tmp/pipe").chmod(0o666)
    shutil.rmtree(lake.root / "reports")
    (lake.root / "reports").symlink_to(outside)
    before = [path.lstat().st_mode for path in (outside, outside / "file", lake.root / "tmp/pipe")]
    assert fix(open_lake(lake.root)) >= 1
    assert (lake.root / "runs").stat().st_mode & 0o077 == 0
    assert [path.lstat().st_mode for path in (outside, outside / "file", lake.root / "tmp/pipe")] == before
