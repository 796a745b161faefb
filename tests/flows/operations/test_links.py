"""Retention and links: nothing outside the lake goes, no link is followed, and no strange entry ends the command."""

import json
import os
import shutil
import signal
import socket
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import evenhand
from lake_of_runs import lake_of_runs
from retained_runs import ONE, lake_of, make
from sealed_run import RUN, run_among_keys

from flows.runs.index import places_path, runs_of
from flows.runs.signatures import certify
from schemas.errors import SpecError
from tasks.lake.local_directory import clear, strange
from tasks.lake.store import Lake

LONG_AGO = time.time() - 100 * 24 * 3600


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake in which one folder of each kind may go."""
    lake = Lake(tmp_path / "place" / "lake")
    for path in ("stages/measure/old", "unfinished/detect-old", "parts"):
        (lake.root / path).mkdir(parents=True)
    for path in ("stages/measure/old/rows", "unfinished/detect-old/rows", "parts/old.json", "tmp/left"):
        (lake.root / path).write_bytes(b"rows")
    aged(lake.root)
    return lake


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of somebody else, with all that retention looks for in one of its own."""
    folder = tmp_path / "outside"
    (folder / "inner" / "deep").mkdir(parents=True)
    for name in ("report.html", "manifest.json", "partition.json", "free.lock", "inner/partition.json", "inner/deep/x"):
        (folder / name).write_text("mine")
    aged(folder)
    return folder


def aged(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (LONG_AGO, LONG_AGO), follow_symlinks=False)


def content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def gc(lake: Path, *more: str) -> dict[str, object]:
    done = evenhand("gc", "--keep", "1", "--lake", str(lake), "--json", *more)
    assert done.returncode == 0, (done.stdout, done.stderr)
    told: dict[str, object] = json.loads(done.stdout)
    return told


def named(told: dict[str, object]) -> set[str]:
    return {each["path"] for each in told["left_alone"]}  # type: ignore[attr-defined]


OWN = {"stages/measure/old", "unfinished/detect-old", "parts/old.json", "tmp/left"}


LINKS = (
    *("unfinished/link", "stages/link", "stages/measure/link", "parts/link", "tmp/link", "locks/link"),
    *("locks/link.lock", "reports/link", "restricted", "vintages"),
)


def test_a_link_to_a_folder_elsewhere_is_named_and_neither_followed_nor_removed(lake: Lake, outside: Path) -> None:
    before, links = content(outside), [lake.root / link for link in LINKS]
    for link in links:
        link.symlink_to(outside)
        os.utime(link, (LONG_AGO, LONG_AGO), follow_symlinks=False)
    listed = gc(lake.root)
    assert {each["path"] for each in listed["lake"]} == {str(lake.root / path) for path in OWN}  # type: ignore[attr-defined]
    assert named(listed) == {str(link) for link in links}
    went = gc(lake.root, "--yes")
    assert (went["lake"], went["left_alone"]) == (listed["lake"], listed["left_alone"])
    assert content(outside) == before
    assert all(link.is_symlink() for link in links)
    assert [path for path in OWN if (lake.root / path).exists()] == []
    told = evenhand("gc", "--keep", "1", "--lake", str(lake.root)).stdout
    assert [link for link in links if f"left alone: {link} is a link to {outside}" not in told] == []


@pytest.mark.parametrize("folder", ["stages", "unfinished", "parts", "tmp", "locks", "reports"])
def test_a_folder_of_the_lake_that_is_a_link_loses_nothing(lake: Lake, outside: Path, folder: str) -> None:
    if (lake.root / folder).is_dir():
        shutil.rmtree(lake.root / folder)
    (lake.root / folder).symlink_to(outside)
    before = content(outside)
    assert str(lake.root / folder) in named(gc(lake.root, "--yes"))
    after = content(outside)
    assert {name: after.get(name) for name in before} == before


def test_links_within_a_folder_that_goes_are_not_followed(lake: Lake, outside: Path) -> None:
    before = content(outside)
    old = lake.root / "stages" / "measure" / "old"
    (old / "folder").symlink_to(outside)
    (old / "partition.json").symlink_to(outside / "partition.json")
    (old / "loop").symlink_to(old / "loop")
    os.link(outside / "report.html", old / "hard")
    aged(lake.root)
    [listed] = [each for each in gc(lake.root)["lake"] if each["kind"] == "partition"]  # type: ignore[attr-defined]
    assert listed["bytes"] == len("rows") + len("mine"), "what links lead to is not counted"
    gc(lake.root, "--yes")
    assert not old.exists()
    assert content(outside) == before


STRANGE: dict[str, Callable[[Path], object]] = {
    "loop": lambda path: path.symlink_to(path),
    "dangling": lambda path: path.symlink_to("/nowhere/at/all"),
    "own folder": lambda path: path.symlink_to(path.parents[1] / "runs"),
    "pipe": os.mkfifo,
    "socket": lambda path: bound(path),
}


def bound(path: Path) -> None:
    """A socket at a path that may be too long for one: bound by its name in its folder."""
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize("folder", ["stages", "stages/measure", "unfinished", "tmp", "locks", "parts"])
def test_what_is_no_file_and_no_folder_is_named_and_all_else_goes(lake: Lake, folder: str) -> None:
    strange_paths = {kind: lake.root / folder / f"{kind}.lock" for kind in STRANGE}
    for kind, path in strange_paths.items():
        STRANGE[kind](path)
    told = gc(lake.root, "--yes")
    assert named(told) == {str(path) for path in strange_paths.values()}
    assert all(os.path.lexists(path) for path in strange_paths.values())
    assert {each["path"] for each in told["lake"]} == {str(lake.root / path) for path in OWN}  # type: ignore[attr-defined]


def test_commands_that_read_pass_over_what_is_no_file(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    commands = (["status", "--json"], ["runs"], ["sql", "SELECT * FROM stage_runs ORDER BY ALL"])
    before = [evenhand(*command, "--lake", str(lake.root)) for command in commands]
    for folder in ("runs", "stages", "reports", "unfinished", "tmp", "locks", "locks/alive", "parts", "log", "alerts"):
        (lake.root / folder).mkdir(exist_ok=True)
        for kind, made in STRANGE.items():
            made(lake.root / folder / f"{kind}.lock")
    after = [evenhand(*command, "--lake", str(lake.root)) for command in commands]
    assert [done.returncode for done in after] == [done.returncode for done in before] == [0, 0, 0]
    assert [done.stdout for done in after[1:]] == [done.stdout for done in before[1:]]


def _link(path: Path) -> None:
    """A link to the same content elsewhere: the bytes are right, and the place is not the lake's."""
    elsewhere = Path(tempfile.mkdtemp()) / path.name
    shutil.move(path, elsewhere)
    path.symlink_to(elsewhere)


NO_FILES: dict[str, Callable[[Path], object]] = {
    "link": _link,
    "loop": lambda path: (path.unlink(), path.symlink_to(path)),
    "pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "device": lambda path: (path.unlink(), os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))),
}
"""Takes the place of a file of the lake; the device is /dev/zero, which has no end."""
_SECONDS = 60


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sealed")
    lake = run_among_keys(place, ("machine",), "eve")
    certify(lake, RUN)
    return place


@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize("which", ["runs/*/manifest.json", "stages/measure/*/*.parquet", "log/000001.json"])
def test_a_file_of_the_lake_that_is_none_is_named_by_verify_and_holds_nobody_up(
    sealed: Path, tmp_path: Path, kind: str, which: str
) -> None:
    place = shutil.copytree(sealed, tmp_path / "place")
    path = min((place / "lake").glob(which))
    try:
        NO_FILES[kind](path)
    except PermissionError:
        pytest.skip("only root may make a device")
    command = ("log", "verify") if "log" in which else ("verify", RUN)
    for words in (command, ("runs",), ("show", RUN)):
        signal.alarm(_SECONDS)  # what reads a pipe, or a device to its end, never comes back
        try:
            done = evenhand(*words, "--lake", str(place / "lake"))
        finally:
            signal.alarm(0)
        assert "fault of ours" not in done.stderr, done.stderr
        if words == command:
            assert (done.returncode, path.name in done.stderr) == (6, True), done.stderr


def test_a_lake_whose_own_path_is_a_link_is_cleared_and_its_real_paths_are_listed(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(lake.root.parent)
    told = gc(tmp_path / "way" / "lake", "--yes")
    assert {each["path"] for each in told["lake"]} == {str(lake.root / path) for path in OWN}  # type: ignore[attr-defined]
    assert [path for path in OWN if (lake.root / path).exists()] == []


@pytest.mark.parametrize("name", ["stages", "runs", "tmp", "locks"])
def test_a_lake_whose_folder_leads_nowhere_is_named(lake: Lake, name: str) -> None:
    shutil.rmtree(lake.root / name)
    (lake.root / name).symlink_to("/nowhere/at/all")
    for command in (["gc", "--keep", "1", "--yes"], ["status"], ["runs"]):
        done = evenhand(*command, "--lake", str(lake.root))
        assert done.returncode == 2, done
        assert f"{lake.root / name} is a link to /nowhere/at/all, which is not there" in " ".join(done.stderr.split())


def test_a_folder_that_cannot_be_read_is_named(lake: Lake, request: pytest.FixtureRequest) -> None:
    hidden = lake.root / "stages" / "hidden"
    (hidden / "key").mkdir(parents=True)
    hidden.chmod(0)
    request.addfinalizer(lambda: hidden.chmod(0o700))
    told = gc(lake.root, "--yes")
    assert {each["path"] for each in told["lake"]} >= {str(lake.root / path) for path in OWN}  # type: ignore[attr-defined]
    if os.geteuid() != 0:  # the superuser reads every folder
        assert named(told) == {str(hidden)}


def test_a_run_behind_a_link_stays_with_all_that_it_names(tmp_path: Path) -> None:
    with lake_of([ONE, ONE, ONE]) as lake:
        shutil.move(lake.root / "runs" / "run0", tmp_path / "run0")
        (lake.root / "runs" / "run0").symlink_to(tmp_path / "run0")
        before = content(tmp_path)
        told = gc(lake.root, "--yes", "--below-minimum", "a test")
        gone = {(each["kind"], each["name"]) for each in told["lake"]}  # type: ignore[attr-defined]
        assert gone == {("report", "run1"), ("run", "run1")}
        assert named(told) == {str(lake.root / "runs" / "run0")}
        assert content(tmp_path) == before
        assert [run.run for run in runs_of(lake)] == ["run0", "run2"]


def test_the_record_of_where_files_lie_goes_with_its_run() -> None:
    with lake_of([ONE, ONE]) as lake:
        for run in ("run0", "run1"):
            lake.write_file(places_path(run), b"{}")
        told = gc(lake.root, "--yes", "--below-minimum", "a test")
        assert ("places", str(lake.root / places_path("run0"))) in {(e["kind"], e["path"]) for e in told["lake"]}  # type: ignore[attr-defined]
        assert [path.name for path in (lake.root / "places").iterdir()] == ["run1.json"]


def test_nothing_is_removed_while_a_run_is_behind_a_link_that_leads_nowhere() -> None:
    with lake_of([ONE]) as lake:
        make(lake, "run1", ONE, 1)
        (lake.root / "runs" / "run9").symlink_to("/nowhere/at/all")
        done = evenhand("gc", "--keep", "1", "--yes", "--below-minimum", "a test", "--lake", str(lake.root))
        assert done.returncode == 6
        assert f"{lake.root / 'runs' / 'run9'} cannot be read" in " ".join(done.stderr.split())
        assert len(runs_of(lake)) == 2


def test_a_partition_is_not_written_over_a_link(lake: Lake, outside: Path) -> None:
    before = content(outside)
    (lake.root / "stages" / "measure" / "key").symlink_to(outside)
    with pytest.raises(SpecError, match=r"stages/measure/key is a link to .*remove the link .*key, and run again"):
        lake.publish("measure", "key", {}, {"page": b"x"}, {})
    (lake.root / "tmp" / "measure-other").symlink_to(outside)
    with pytest.raises(SpecError, match="tmp/measure-other is a link"):
        lake.publish("measure", "other", {}, {"page": b"x"}, {})
    assert content(outside) == before


def test_scratch_behind_a_link_is_not_cleared(lake: Lake, outside: Path) -> None:
    before = content(outside)
    (lake.root / "unfinished" / "link").symlink_to(outside)
    lake.storage.remove("unfinished/link")
    lake.storage.remove("unfinished/link/inner")
    assert content(outside) == before


@pytest.mark.parametrize(("path", "why"), [("stages/measure", ""), ("stages/absent/key", ""), ("..", "lies outside")])
def test_a_path_lies_in_the_lake_or_it_is_said_why_not(lake: Lake, path: str, why: str) -> None:
    found = strange(lake.root, lake.root.parent if path == ".." else lake.root / path)
    assert why in found if why else found == ""


def test_what_is_cleared_may_be_absent(lake: Lake) -> None:
    clear(lake.root, lake.root / "tmp" / "absent")
    clear(lake.root, lake.root / "unfinished" / "detect-old")
    assert not (lake.root / "unfinished" / "detect-old").exists()
