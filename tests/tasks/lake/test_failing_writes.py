"""Writes that fail: whatever call does, readers see nothing half made, and the same command ends with the same files.

One lake takes all faults of a command in turn, each in the run that goes on from the fault before. A run that got past
its fault has made later calls, too: the lake is then put back to what that run began with.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, repeat
from pathlib import Path

import pytest
from failing_writes import AUDIT, KILLED, KINDS, SOUND, Ended, Forks
from few_loans import few_loans

from schemas.terms import ExitCode
from tasks.ingest.synthetic.algorithm.twin import TwinSettings
from tasks.ingest.synthetic.twin_files import write
from tasks.ingest.vintages.store import vintages
from tasks.lake.log import entries
from tasks.lake.store import Lake

Faults = list[tuple[str, str]]
"""Call that fails, and how."""
_WORDS = {
    "ENOSPC": "is full",
    "EIO": "Input/output error",
    "EINTR": "Interrupted system call",
}
"""Of the message: the cause."""


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    opened = Forks()
    yield opened
    opened.close()


@dataclass(frozen=True)
class Quiet:
    """A folder in which nothing failed, and what its audit wrote."""

    place: Path
    calls: tuple[str, ...]


@pytest.fixture(scope="module")
def quiet(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Quiet:
    place = tmp_path_factory.mktemp("quiet")
    few_loans(place)
    ended = forks.run([AUDIT], place)
    assert ended.code == 0, ended.said
    return Quiet(place, ended.calls)


def tables(place: Path) -> dict[str, str]:
    """Path of each table -> its digest, of all partitions; and the names of files of reports."""
    lake = Lake(place / "lake")
    found = {}
    for record in lake.storage.glob("stages/*/*/partition.json"):
        _, stage, key, _ = record.split("/")
        partition = lake.find(stage, key)
        assert partition is not None
        found |= {artifact.path: artifact.sha256 for artifact in partition.tables}
    return found | dict.fromkeys(lake.storage.below("reports"), "")


def shaken(
    forks: Forks, place: Path, words: list[str], faults: Faults, expected: dict[str, str] | None = None
) -> list[str]:
    """Let a command meet one fault after another, each in the lake that the one before left; what was wrong.

    Whenever an audit comes to its end, its tables are the expected ones.
    """
    wrong = []
    lake, before, next_before = place / "lake", place / "before", place / "next"
    ended = None
    for call, kind in faults:
        if ended is not None and ended.code == 0:  # it has made all later calls
            _copy(before, lake)
        _copy(lake, next_before)
        ended = forks.run(words, place, call, kind)
        if ended.met:
            _move(next_before, before)
        elif before.exists():  # the run before failed after this call had taken effect, such as a rename
            _copy(before, lake)
            ended = forks.run(words, place, call, kind)
        wrong += [f"{call} {kind}: {fault}" for fault in _faults_of(ended, call, kind)]
        if ended.code == 0 and expected is not None and tables(place) != expected:
            wrong.append(f"{call} {kind}: the audit ends with other tables")
        sound = forks.run([SOUND], place)
        if sound.code:
            wrong.append(f"{call} {kind}: readers see {sound.said[-2000:]!r}")
    return wrong


def _faults_of(ended: Ended, call: str, kind: str) -> Iterator[str]:
    """What is wrong with how a command ended whose call failed."""
    if not ended.met:
        yield "not met"
    elif kind == "kill":
        if ended.code != KILLED:
            yield f"ended with {ended.code}"
    elif ended.code == 0:
        if (kind, call.split()[0]) != ("EINTR", "write"):  # Python writes again what a signal interrupted
            yield "was passed over"
    elif ended.code != ExitCode.INFRASTRUCTURE:
        yield f"ended with {ended.code}: {ended.said[-2000:]}"
    elif _WORDS[kind] not in ended.said or "fault of ours" in ended.said:
        yield f"tells {ended.said!r}"


def _copy(folder: Path, to: Path) -> None:
    shutil.rmtree(to, ignore_errors=True)
    if folder.exists():
        shutil.copytree(folder, to)


def _move(folder: Path, to: Path) -> None:
    shutil.rmtree(to, ignore_errors=True)
    if folder.exists():
        folder.rename(to)


def check_audit(forks: Forks, quiet: Quiet, place: Path, faults: list[tuple[str, str]]) -> None:
    few_loans(place)
    expected = tables(quiet.place)
    assert shaken(forks, place, [AUDIT], faults, expected) == []
    ended = forks.run([AUDIT], place)
    assert ended.code == 0, ended.said
    assert tables(place) == expected
    assert {entry.event for entry in entries(Lake(place / "lake"))} == {"run published"}
    for words in (["verify", "--all"], ["log", "verify"]):
        assert forks.run(words, place).code == 0


@pytest.mark.slow
def test_an_audit_goes_on_after_faults_of_every_kind(forks: Forks, quiet: Quiet, tmp_path: Path) -> None:
    calls = quiet.calls[10::20]
    check_audit(forks, quiet, tmp_path, [(call, KINDS[n % len(KINDS)]) for n, call in enumerate(calls)])


@pytest.mark.long
def test_an_audit_goes_on_after_every_fault(forks: Forks, quiet: Quiet, tmp_path: Path) -> None:
    check_audit(forks, quiet, tmp_path, [(call, kind) for call in quiet.calls for kind in KINDS])


def check_mark(forks: Forks, lake: Path, place: Path, words: list[str], kinds: Iterable[tuple[str, ...]]) -> None:
    """Let each call of a command fail in a fresh copy of a lake, with the kinds of that call."""
    run = next((lake / "lake" / "runs").iterdir()).name
    whole = [words[0], run, *words[1:]]
    shutil.copytree(lake, place / "quiet")
    calls = forks.run(whole, place / "quiet").calls
    assert len(calls) >= 4
    for n, (call, of_call) in enumerate(zip(calls, kinds, strict=False)):
        for kind in of_call:
            one = place / f"{n}-{kind}"
            shutil.copytree(lake, one)
            assert shaken(forks, one, whole, [(call, kind)]) == []
            assert forks.run(whole, one).code == 0
            assert forks.run(["log", "verify"], one).code == 0


@pytest.mark.slow
def test_a_protection_goes_on_after_a_fault_of_each_call(forks: Forks, quiet: Quiet, tmp_path: Path) -> None:
    check_mark(forks, quiet.place, tmp_path, ["protect"], cycle([(kind,) for kind in KINDS]))


@pytest.mark.long
@pytest.mark.parametrize("words", [["protect"], ["note", "a text", "--as", "Ann Lee"]])
def test_a_mark_and_an_entry_go_on_after_every_fault(
    forks: Forks, quiet: Quiet, tmp_path: Path, words: list[str]
) -> None:
    check_mark(forks, quiet.place, tmp_path, words, repeat(KINDS))


def check_release(forks: Forks, lake: Path, place: Path, faults: Callable[[Sequence[str]], Faults]) -> None:
    """Let calls of a release fail, each in a fresh copy of a lake: nothing half made has the name of the folder."""
    run = next((lake / "lake" / "runs").iterdir()).name
    quiet = shutil.copytree(lake, place / "quiet")
    left_alone = forks.run(["release", run, "--to", f"{quiet}/out"], quiet)
    assert left_alone.code == 0, left_alone.said
    names = sorted(path.relative_to(quiet) for path in (quiet / "out").rglob("*"))
    for n, (call, kind) in enumerate(faults(left_alone.calls)):
        one = shutil.copytree(lake, place / f"fault-{n}")
        words = ["release", run, "--to", f"{one}/out"]
        assert shaken(forks, one, words, [(call, kind)]) == []
        if not (one / "out").exists():
            again = forks.run(words, one)
            assert again.code == 0, (call, kind, again.said)
        assert sorted(path.relative_to(one) for path in (one / "out").rglob("*")) == names, (call, kind)
        for check in (["verify", f"{one}/out"], ["log", "verify"]):
            checked = forks.run(check, one)
            assert checked.code == 0, (call, kind, checked.said)
        shutil.rmtree(one)


@pytest.mark.slow
def test_a_release_goes_on_after_faults_of_every_kind(forks: Forks, quiet: Quiet, tmp_path: Path) -> None:
    def few(calls: Sequence[str]) -> Faults:
        return list(zip(calls[len(calls) // 8 :: len(calls) // 4], KINDS, strict=False))

    check_release(forks, quiet.place, tmp_path, few)


@pytest.mark.long
def test_a_release_goes_on_after_every_fault(forks: Forks, quiet: Quiet, tmp_path: Path) -> None:
    check_release(forks, quiet.place, tmp_path, lambda calls: [(call, kind) for call in calls for kind in KINDS])


def check_vintage(forks: Forks, place: Path, every: int) -> None:
    """Let calls of the taking in of a file fail, each in a new lake; the same command then goes on."""
    file = write(place / "written", TwinSettings(rows=40, year=2022), 3).rows
    words = ["data", "add", str(file), "--year", "2022", "--frozen", "2023-05-01", "--kind", "snapshot", "--geo=CA"]
    (place / "quiet").mkdir()
    left_alone = forks.run(words, place / "quiet")
    assert left_alone.code == 0, left_alone.said
    expected = [(one.sha256, one.rows_sha256) for one in vintages(Lake(place / "quiet" / "lake"))]
    wrong = []
    for n, call in enumerate(left_alone.calls[every // 2 :: every]):
        shutil.rmtree(place / "lake", ignore_errors=True)
        wrong += shaken(forks, place, words, [(call, KINDS[n % len(KINDS)])])
        again = forks.run(words, place)
        held = [(one.sha256, one.rows_sha256) for one in vintages(Lake(place / "lake"))]
        if again.code or held != expected:
            wrong.append(f"{call}: the same command ends with {again.code} and {held}: {again.said[-500:]}")
    assert wrong == []


@pytest.mark.slow
def test_a_vintage_is_whole_after_faults(forks: Forks, tmp_path: Path) -> None:
    check_vintage(forks, tmp_path, 20)


@pytest.mark.long
def test_a_vintage_is_whole_after_every_fault(forks: Forks, tmp_path: Path) -> None:
    check_vintage(forks, tmp_path, 1)
