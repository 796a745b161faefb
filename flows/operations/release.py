"""Releases a run: the one door through which results leave the house, safe from subtraction of earlier releases.

One release at a time. The run has to verify, and its numbers have to have been decided together with every earlier
release of the same rows, in whatever order the runs were made. If they were not, the run is audited again beside those
releases, and that coarser run is released instead. Where a count of few people would follow all the same, nothing
leaves.
"""

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import uuid4

from flows.launch.audit import run_audit
from flows.runs.disclosure import PROFILES, beside, coarser, read_rows, told_cells
from flows.runs.given import where_it_lies
from flows.runs.index import Run, read_manifest, run_of
from flows.runs.released import (
    CERTIFICATE,
    README,
    Door,
    certified,
    door_of,
    readme,
    require_new,
    sharing,
    write_folder,
    written,
)
from flows.runs.replay import spec_of_run
from flows.runs.report_files import report_anew
from flows.runs.signatures import protect, require_chain, trusted_signer, verify_run
from flows.supervision.presence import at_work, command_id
from schemas.audit.spec import AuditSpec
from schemas.errors import InfrastructureError, SpecError
from schemas.tables.applications import APPLICATIONS
from schemas.tables.readings import COPIED_ROWS
from schemas.tables.verdicts import PUBLICATION, PUBLICATION_BESIDE
from tasks.lake import log
from tasks.lake.log import digest_of
from tasks.lake.store import Lake, open_lake
from tasks.metrics.publish import stage as publishing
from tasks.plan import STAGES, Step, inputs
from tasks.preprocessing.columns import without_copies

_COMPARING: Final = ("league", "trend", "restatement")
"""Pages about several runs, in a folder of reports each."""
Pack = Callable[[Lake, str, dict[str, bytes], Door], dict[str, bytes]]
"""Lake, run, files of a release and what stays in the house -> the files that are written in their place."""
_NAMED: Final = 12
"""Cells in a message."""


@dataclass(frozen=True)
class Released:
    """A run that left the house."""

    run: str
    """Its id: another one than was asked for, where it had to be coarser."""
    folder: str
    files: int
    entry: int
    """Number of its entry in the log."""
    beside: tuple[str, ...]
    """Earlier releases over the same rows."""
    coarser: tuple[str, ...]
    """Cells that it prints more coarsely than the run that was asked for; restricted."""
    signed_by: str
    """Fingerprint of the key; empty without a signature."""
    withheld: tuple[str, ...] = ()
    """Tables with rows that are withheld whole: ``Door.withheld``."""


def release(root: str, run: str, folder: Path, jobs: int | None = None, pack: Pack | None = None) -> Released:
    """Write the released folder of a run, and enter the release in the log.

    Args:
        root: of the lake.
        run: its id.
        folder: to be written; it may not be there yet.
        jobs: stages at a time, where the run has to be audited again.
        pack: adds files of the run that are published, before all are certified (``flows.operations.export``).

    Raises:
        SpecError: no such run, the place is taken, the profile is `internal`, keys are trusted and no trusted key
            signs, or a count of few people would follow: the cells are named.
        IntegrityError: the run, the log or an earlier release is not as it was written.
        InfrastructureError: the folder cannot be written.
    """
    lake = open_lake(root)
    require_new(folder, lake)
    with lake.lock("releases"):
        require_chain(lake)
        trusted_signer(lake)  # before the run is audited again
        verify_run(root, run)
        requested = run_of(lake, run)
        earlier, chosen = _guarded(lake, requested, jobs)
        with at_work(lake, command_id()):
            verify_run(root, chosen.run)
            return _written(lake, requested, chosen, folder, earlier, pack)


def require_run(lake: Lake, name: str) -> None:
    """Refuse the name of a page that compares runs, in place of a run.

    Raises:
        SpecError: it is a league, a trend or a restatement.
    """
    path = Path(name)
    folder = path.parent.name if path.suffix in (".html", ".json") else path.name
    for kind in _COMPARING:
        if lake.storage.exists(f"reports/{folder}/{kind}.json"):
            raise SpecError(
                f"{folder} is a {kind}, and no run: only runs are released, since the people of a {kind} are those of "
                f"its runs. Release each run that it is made of (evenhand runs), and keep the {kind} in the house"
            )


def _guarded(lake: Lake, requested: Run, jobs: int | None) -> tuple[list[Run], Run]:
    """Earlier releases of the same rows, and the run to release: the named one, or a coarser one.

    Raises:
        SpecError: nothing of these rows may leave beside what left before.
    """
    profile = requested.disclosure["profile"]
    if profile == "internal":
        raise SpecError(
            f"{requested.run} has the profile internal: nothing is withheld in it, and it is not to be released"
        )
    earlier = sharing(lake, requested)
    if requested.run in log.released(lake):
        return earlier, requested
    if profile == "published":
        withholding = [run.run for run in earlier if run.disclosure["profile"] != "published"]
        if withholding:
            raise SpecError(
                f"{requested.run} withholds nothing, and {withholding[0]} was released over the same rows and "
                "withholds counts of few people: all of them would follow. Audit under the profile of that release"
            )
        return earlier, requested
    chosen = requested
    if again := [run for run in earlier if _is_coarser(run, requested)]:
        return [run for run in earlier if run not in again], again[-1]
    if earlier:
        spec = beside(spec_of_run(read_manifest(lake, requested.run), requested.run), earlier)
        named = {run.run for run in earlier}
        if spec.disclosure.profile != profile or not named <= {*requested.beside}:
            chosen = _coarsened(lake, requested, spec, jobs)
    _refuse_told(lake, requested, chosen)
    return earlier, chosen


def _is_coarser(released: Run, requested: Run) -> bool:
    """Whether a released run is the coarser one that was released in the place of a run before."""
    specs = [{name: part for name, part in run.spec.items() if name != "disclosure"} for run in (released, requested)]
    sources = [{name: part for name, part in spec.pop("source").items() if name != "path"} for spec in specs]
    careful = PROFILES.index(released.disclosure["profile"]) >= PROFILES.index(requested.disclosure["profile"])
    same = (released.source_sha256, released.code) == (requested.source_sha256, requested.code)
    return (
        careful
        and same
        and specs[0] == specs[1]
        and sources[0] == sources[1]
        and {*requested.beside} <= {*released.beside}
    )


def _coarsened(lake: Lake, requested: Run, spec: AuditSpec, jobs: int | None) -> Run:
    """The run audited again, together with earlier releases.

    Raises:
        SpecError: the run counts as published already, or its source changed.
    """
    if requested.protected:
        raise SpecError(
            f"{requested.run} is marked as published (protect) and was not audited together with what was released "
            f"since. If nothing of it left the house, take the mark away with `evenhand protect {requested.run} --off`"
        )
    again = run_of(lake, run_audit(where_it_lies(lake, requested.run, spec), lake.location, jobs).run)
    if again.source_sha256 != requested.source_sha256:
        raise SpecError(
            f"the source of {requested.run} is another one today: {again.run} was audited in its place; look at that "
            "run, and release it"
        )
    return again


def _refuse_told(lake: Lake, requested: Run, chosen: Run) -> None:
    """Refuse a run from which counts of few people follow.

    Raises:
        SpecError: the cells.
    """
    rows = read_rows(lake, chosen.partitions, PUBLICATION.name)
    if rows is None:
        raise SpecError(f"{chosen.run} was made before the disclosure pass; audit again")
    cells = told_cells(rows, chosen.disclosure["profile"])
    closed = read_rows(lake, chosen.partitions, PUBLICATION_BESIDE.name) or []
    if any(row["closed"] for row in closed):
        cells += [cell for cell in closed_cells(lake, chosen) if cell not in cells]
    if cells:
        beside_runs = f" beside {', '.join(chosen.beside)}" if chosen.beside else ""
        remainder = f"; and {len(cells) - _NAMED} more" if len(cells) > _NAMED else ""
        raise SpecError(
            f"{requested.run} is not released: counts of few people would follow from it{beside_runs}, also for a "
            "reader who knows in whom the runs differ. Merge groups, or leave rows out that differ. "
            f"Cells (restricted): {'; '.join(cells[:_NAMED])}{remainder}"
        )


def closed_cells(lake: Lake, run: Run) -> list[str]:
    """Counts of few people that follow from a run and the earlier ones of its spec, in words; restricted."""
    spec = spec_of_run(read_manifest(lake, run.run), run.run)
    settings, stage = publishing.publish_settings(spec), STAGES["publish"]
    step = Step(stage.name, stage, settings, artifacts=publishing.given(spec))
    tables = dict(zip([t.name for t in stage.reads], stage.read(lake, inputs(step, run.partitions)), strict=True))
    tables[APPLICATIONS.name] = without_copies(tables[APPLICATIONS.name], tables[COPIED_ROWS.name])
    lacks, verdicts = (tables[name].to_pylist() for name in ("missingness", "verdicts"))
    outcome = publishing.fates_of(tables, lacks, verdicts, settings).outcome
    out = []
    for interval in outcome.closed:
        count, whose = interval.count, interval.count.population
        words = (whose.attribute, whose.group, whose.base.value, whose.reason, whose.decision_maker, whose.run)
        event = f"not {count.event}" if count.rest else count.event or "n"
        cell = ", ".join(word for word in (*words, event) if word)
        out.append(f"{cell}: {interval.least} to {interval.largest}")
    return out


def _written(
    lake: Lake, requested: Run, chosen: Run, folder: Path, earlier: Sequence[Run], pack: Pack | None
) -> Released:
    """Write a draft next to the folder, enter the release, and give the draft its name."""
    manifest, signer, door = read_manifest(lake, chosen.run), trusted_signer(lake), door_of(lake, chosen.run)
    files = {**report_anew(lake, chosen.run, door), README: readme(chosen)}
    if door.withheld:
        files[README] += f"\nWithheld whole: {door.words}.\n".encode()
    files = files if pack is None else pack(lake, chosen.run, files, door)
    time = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    certificate = certified(manifest, files, time, signer)
    files[CERTIFICATE] = written(certificate)
    draft = folder.with_name(f".{folder.name}.{uuid4().hex}.draft")
    try:
        write_folder(draft, files)
        entry = log.append(
            lake,
            "released",
            signer,
            run=chosen.run,
            manifest_sha256=digest_of(manifest),
            files={CERTIFICATE: hashlib.sha256(files[CERTIFICATE]).hexdigest()},
        )
        if not chosen.protected:
            protect(lake, chosen.run, True)
        if os.path.lexists(folder):
            raise SpecError(f"{folder} was made meanwhile; release {chosen.run} again to another place")
        draft.rename(folder)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        state = "its disk is full; free some space" if full else f"{error.strerror}; look at it"
        raise InfrastructureError(
            f"{folder} cannot be written: {state} and release again, or name another place"
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    publications = [read_rows(lake, run.partitions, PUBLICATION.name) or [] for run in (requested, chosen)]
    return Released(
        chosen.run,
        str(folder),
        len(files),
        entry.n,
        tuple(run.run for run in earlier),
        tuple(coarser(*publications)) if chosen.run != requested.run else (),
        certificate.signature.key if certificate.signature else "",
        door.withheld,
    )
