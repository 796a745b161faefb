"""Retention: selects the runs to keep and deletes what no kept run needs."""

import os
import shutil
import stat
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath

from flows.operations.lake_records import LOG, RUN, Unreadable, unreadable, without
from flows.operations.metrics import keep_figures
from flows.runs.index import Run, former_reports, in_order, is_protected, places_path, runs_of
from flows.supervision.crash_files import CRASH_FILES
from flows.supervision.presence import alone, clear_leftovers, held, leftovers, remove_free_locks, touched
from schemas.artifact import Partition
from schemas.errors import IntegrityError, SpecError
from schemas.vintages import Vintage, folder_of
from tasks.lake import log
from tasks.lake.local_directory import strange
from tasks.lake.log import signer
from tasks.lake.store import Lake

# --------------------------------------------------------------------------------------------------------------------
# Records without which nobody can say what a lake needs: where one cannot be read, retention removes nothing.
#
# A manifest names the files of its run; an entry of the log may be the sign-off that keeps a run.


_NAMED = 5
"""Records in a message."""


def damage(lake: Lake) -> tuple[Unreadable, ...]:
    """Manifests and entries of the log that cannot be read, and manifests that are no files any more."""
    records = [*unreadable(lake, (RUN, LOG))]
    # A run without a manifest counts as removed. Distinguish it from one whose manifest is a link into nowhere or a
    # folder, and from one whose folder cannot be read.
    for folder in sorted((lake.root / "runs").iterdir()):
        manifest = folder / "manifest.json"
        path = manifest.relative_to(lake.root).as_posix()
        try:
            names = os.listdir(folder) if folder.is_symlink() or folder.is_dir() else ()  # noqa: PTH208 names alone
        except OSError as error:
            why = f"{folder} cannot be read ({error.strerror})"
            records.append(Unreadable(RUN, path, f"{why}; make it readable, or remove it if it holds no run"))
            continue
        if manifest.name in names and not manifest.is_file():
            why = f"{manifest} is no file; restore it from a copy, or run that audit again"
            records.append(Unreadable(RUN, path, why))
    return tuple(records)


def refuse(unreadable_records: Sequence[Unreadable]) -> None:
    """Refuse a removal where something cannot be read.

    Raises:
        IntegrityError: nobody can say what the lake needs.
    """
    if unreadable_records:
        named = "\n".join(record.reason for record in unreadable_records[:_NAMED])
        remainder = (
            f"\nand {len(unreadable_records) - _NAMED} more: evenhand status --json"
            if len(unreadable_records) > _NAMED
            else ""
        )
        raise IntegrityError(
            f"nothing was removed, since it is unknown what the unreadable records need:\n{named}{remainder}"
        )


# --------------------------------------------------------------------------------------------------------------------
# What retention leaves alone: links, pipes and folders that cannot be read, in the folders that it clears.
#
# A link is never followed. What does not lie in the lake itself is named and stays, whoever put it there.


_DEPTHS = {
    "runs": 1,
    "reports": 1,
    "restricted": 1,
    "places": 1,
    "stages": 2,
    "unfinished": 1,
    "parts": 1,
    "tmp": 1,
    "locks": 2,
    "uploads": 1,
    "vintages": 5,
}
"""Folders of a lake that retention clears, and how deep below them it removes whole entries."""


@dataclass(frozen=True)
class LeftAlone:
    """A path that retention does not remove."""

    path: Path
    why: str


def left_alone(lake: Lake, leaving: Sequence[Run]) -> list[LeftAlone]:
    """Every such path, in order, including reports next to the lake that an earlier version wrote for leaving runs."""
    paths = [left for name, depth in _DEPTHS.items() for left in _strange(lake.root, lake.root / name, depth)]
    former = former_reports(lake)
    outside = [Path(former.where(run.run)) for run in leaving if former.exists(run.run)]
    return [*paths, *(LeftAlone(path, f"{strange(lake.root, path)}; remove it yourself") for path in outside)]


def _strange(root: Path, path: Path, depth: int) -> Iterator[LeftAlone]:
    if why := strange(root, path):
        yield LeftAlone(path, why)
    elif path.is_dir():
        try:
            names = sorted(os.listdir(path))  # noqa: PTH208 names alone
        except OSError as error:
            yield LeftAlone(path, f"{path} cannot be read ({error.strerror})")
            return
        for name in names if depth else ():
            yield from _strange(root, path / name, depth - 1)


# --------------------------------------------------------------------------------------------------------------------
# Retention of a lake: selects the runs to keep, and deletes what no kept run needs.
#
# Protected and signed-off runs stay. So do runs younger than the minimum age that the lake's settings ask for, unless
# somebody gives a reason, which goes into the log.
#
# The list of removals, with reasons and bytes, comes first. Deletion is a second step, which works off a list made
# while nobody else uses the lake. Nothing is removed through a link: ``left_alone``. Manifests are deleted before the
# files that they name, and folders of runs last. So an interrupted deletion leaves no run without its files, and the
# next one finishes it.


@dataclass(frozen=True)
class Keeping:
    """Rules of retention."""

    runs: int
    """The newest so many runs of every audit and year, and of each of its partitions."""
    vintages: int | None = None
    """The newest so many vintages of every year, dataset and geography; all of them if None."""
    days: float = 14
    """What an unfinished run has worked out, for so many days after it last wrote something; crash files and tables
    that a browser sent too."""
    younger: float = 0
    """Runs that ended within so many days stay as well."""
    minimum_days: float = 0
    """No younger run goes, whatever the other rules say."""
    below_minimum: str = ""
    """Why younger runs may go all the same; goes into the log. Empty: they may not."""


@dataclass(frozen=True)
class Removal:
    """A file or folder to delete, or deleted."""

    kind: str
    name: str
    bytes: int
    why: str
    path: Path


def removals(lake: Lake, keeping: Keeping) -> list[Removal]:
    """The removals, in the order of deletion; no partition and no vintage while it is unknown which are needed.

    Each is a file or a folder in the lake itself: what a link leads to is left alone.

    Raises:
        SpecError: the lake lies on an object store, whose own rules say what it keeps.
        IntegrityError: the manifest of a protected run is gone, so that nobody can say what it needs.
    """
    hidden = damage(lake)
    visible_lake = without(lake, hidden)
    runs = runs_of(visible_lake)
    gone = leaving(visible_lake, runs, keeping)
    remaining_runs = [run for run in runs if run not in gone]
    whys = {run.run: f"not among the newest {keeping.runs} of its audit and year" for run in gone} | _stopped(lake)
    vintages, days = None if hidden else keeping.vintages, keeping.days
    found = [
        *(
            _removal(kind, run, path, "its run goes")
            for run in whys
            for kind, path in (
                ("report", lake.root / "reports" / run),
                ("file pack", lake.root / "restricted" / run),
                ("places", lake.root / places_path(run)),
            )
            if os.path.lexists(path)
        ),
        *(() if hidden else _partitions(lake, remaining_runs, gone, days)),
        *_outdated(lake, "unfinished", "unfinished/*", days, f"nothing was added for {days:g} days"),
        *(_removal("draft", path.name, path, "its writer is gone") for path in leftovers(lake)),
        *_outdated(lake, "crash file", f"tmp/{CRASH_FILES}", days, f"written more than {days:g} days ago"),
        *(
            removal
            for removal in _outdated(lake, "upload", "uploads/*", days, f"unused for {days:g} days")
            if not held(removal.path / "work.lock")
        ),
        # Counts and digests of partitions, which are computed again on demand.
        *_outdated(lake, "counts", "parts/*", days, f"of partitions, counted more than {days:g} days ago"),
        *(_vintages(lake, remaining_runs, vintages) if vintages is not None else ()),
        *(_removal("run", run, lake.root / "runs" / run, why) for run, why in whys.items()),
    ]
    return [removal for removal in found if not strange(lake.root, removal.path)]


def leaving(lake: Lake, runs: Sequence[Run], keeping: Keeping) -> list[Run]:
    """The runs that go."""
    below = [] if keeping.below_minimum else held_back(lake, runs, keeping)
    return [run for run in _by_rules(lake, runs, keeping) if run not in below]


def held_back(lake: Lake, runs: Sequence[Run], keeping: Keeping) -> list[Run]:
    """The runs that would go but for their age: they are younger than the minimum."""
    return [run for run in _by_rules(lake, runs, keeping) if _age_days(run) < keeping.minimum_days]


def _by_rules(lake: Lake, runs: Sequence[Run], keeping: Keeping) -> list[Run]:
    """Not among the newest of their audit, year and partition, nor young, protected, released, signed or linked."""
    of_year: dict[tuple[str, int, str], list[Run]] = defaultdict(list)
    for run in sorted(runs, key=in_order, reverse=True):
        of_year[run.audit, run.year, run.value].append(run)
    newest = {run.run for group in of_year.values() for run in group[: keeping.runs]}
    signed = {entry.run for entry in log.entries(lake) if entry.event == "signed off"}
    linked = {run.run for run in runs if strange(lake.root, lake.root / "runs" / run.run)}
    young = {run.run for run in runs if run.protected or _age_days(run) < keeping.younger}
    stays = newest | signed | linked | young | log.released(lake).keys()
    return [run for run in runs if run.run not in stays]


def _age_days(run: Run) -> float:
    finished = datetime.fromisoformat(run.finished)
    return (datetime.now(UTC) - finished).total_seconds() / (24 * 3600)


def collect(lake: Lake, keeping: Keeping, failed: list[LeftAlone] | None = None) -> list[Removal]:
    """Delete what ``removals`` lists while the lake is not in use; returns the deleted.

    Args:
        lake: to be cleared.
        keeping: the rules.
        failed: gets what the disk did not let go of, with the reason.

    Raises:
        InfrastructureError: somebody is at work on the lake.
        SpecError: this user may not remove the manifest of a run that goes.
        IntegrityError: a manifest or an entry of the log cannot be read, or as ``removals`` says.
    """
    with alone(lake):
        refuse(damage(lake))
        planned_removals = removals(lake, keeping)
        young = {run.run for run in held_back(lake, runs_of(lake), keeping)}
        going = [removal for removal in planned_removals if removal.kind == "run"]
        for removal in going:  # a manifest that stays would name files that went
            if not os.access(removal.path, os.W_OK | os.X_OK):
                raise SpecError(f"{removal.path} may not be written, and nothing was removed; see its owner and mode")
        for removal in going:
            keep_figures(lake, removal.name)
            below = f"; younger than {keeping.minimum_days:g} days: {keeping.below_minimum}"
            log.append(lake, "removed", signer(), run=removal.name, text=removal.why + below * (removal.name in young))
        for removal in planned_removals:
            if removal.kind == "run":
                (removal.path / "manifest.json").unlink(missing_ok=True)
        whys = {item.path: "" if item.kind == "draft" else _remove(lake, item.path) for item in planned_removals}
        clear_leftovers(lake)
        remove_free_locks(lake)
    if failed is not None:
        failed += [LeftAlone(path, why) for path, why in whys.items() if why]
    return [removal for removal in planned_removals if not whys[removal.path]]


def _remove(lake: Lake, path: Path) -> str:
    """Remove a file or a folder, of a partition first the record without which readers take it for absent.

    Returns:
        Why it stays; empty where it went.
    """
    if why := strange(lake.root, path):  # made since the list was
        return why
    try:
        if path.is_dir():
            (path / "partition.json").unlink(missing_ok=True)
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        return f"{path} cannot be removed ({error.strerror or error}): see what its owner and its mode are"
    return ""


def _stopped(lake: Lake) -> dict[str, str]:
    """Runs with an unfinished removal: their folder exists without a manifest."""
    entries = sorted((lake.root / "runs").iterdir())
    folders = [path for path in entries if not strange(lake.root, path) and path.is_dir()]
    bare = [path.name for path in folders if not os.path.lexists(path / "manifest.json")]
    for run in bare:
        if is_protected(lake, run):  # nothing here removes it, so that somebody else has
            raise IntegrityError(
                f"the manifest of the protected run {run} is missing, so that its files are unknown; restore it from a "
                f"copy, or remove {lake.root / 'runs' / run} and audit that year again"
            )
    return dict.fromkeys(bare, "its removal was stopped")


def _partitions(lake: Lake, remaining_runs: Sequence[Run], gone: Sequence[Run], days: float) -> Iterator[Removal]:
    """Partitions that no kept run names. One that no run ever named may be of a run that is yet to be resumed."""
    used_partitions, former = _named(remaining_runs), _named(gone)
    for path in sorted((lake.root / "stages").glob("*/*")):
        stage_and_key = (path.parent.name, path.name)
        name = "/".join(stage_and_key)
        if stage_and_key in used_partitions:
            continue
        if stage_and_key in former:
            yield _removal("partition", name, path, "no kept run needs it")
        elif not (path / "partition.json").is_file():
            yield _removal("partition", name, path, "its removal was stopped")
        elif _older(path, days):
            yield _removal("partition", name, path, f"of a run that was not finished within {days:g} days")


def _named(runs: Sequence[Run]) -> frozenset[tuple[str, str]]:
    partitions: Iterator[Partition] = (p for run in runs for p in run.partitions)
    return frozenset((p.stage, p.key) for p in partitions)


def _outdated(lake: Lake, kind: str, pattern: str, days: float, why: str) -> Iterator[Removal]:
    for path in sorted(lake.root.glob(pattern)):
        if _older(path, days):
            yield _removal(kind, path.name, path, why)


def _vintages(lake: Lake, remaining_runs: Sequence[Run], newest: int) -> Iterator[Removal]:
    """Vintages that later ones have replaced and that no kept run was computed from."""
    from tasks.ingest.vintages.store import vintages

    used_folders = set()
    for run in remaining_runs:
        source = run.spec["source"]
        files = source.get("vintage_file") or source.get("path") or ()
        # Folders are compared within the lake, which may have moved.
        used_folders |= {folder_of(file) for file in ([files] if isinstance(files, str) else files)}
    alike: dict[tuple[int, str, str], list[Vintage]] = defaultdict(list)
    for vintage in sorted(vintages(lake), key=lambda v: (v.frozen, v.added), reverse=True):
        alike[vintage.year, vintage.dataset, vintage.geography].append(vintage)
    for group in alike.values():
        for vintage in group[newest:]:
            if PurePath(vintage.folder).parts not in used_folders:
                yield _removal(
                    "vintage", str(vintage), lake.root / vintage.folder, f"not among the newest {newest} of its kind"
                )


def _older(path: Path, days: float) -> bool:
    return touched(path) < time.time() - days * 24 * 3600


def _removal(kind: str, name: str, path: Path, why: str) -> Removal:
    """A removal with the bytes of the files in it: files behind its links stay where they are, and do not count."""
    size = 0
    for file in (path, *(path.rglob("*") if path.is_dir() else ())):
        with suppress(OSError):  # in a folder that cannot be read
            status = file.lstat()
            size += status.st_size * stat.S_ISREG(status.st_mode)
    return Removal(kind, name, size, why, path)
