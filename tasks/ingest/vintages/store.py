"""Vintages in the lake: records, drafts, delivery, storing and finding."""

import errno
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow.parquet as pq

from schemas.artifact import Artifact, Partition
from schemas.errors import DataQualityError, InfrastructureError, IntegrityError, SpecError
from schemas.vintages import SUBMISSION, Vintage, dataset_of, place_of
from tasks.ingest.hmda import submission
from tasks.ingest.hmda.conversion import APPLICATIONS_FILE, REFUSALS_FILE, SchemaReport, convert, report_on
from tasks.ingest.hmda.layouts import Outline, outlined, recognise
from tasks.ingest.hmda.rows import LENDERS_FILE, SORTED, files_of
from tasks.ingest.hmda.source import RECORD, digest_of_files, digest_of_rows, once
from tasks.ingest.sources.raw import check_regular
from tasks.ingest.vintages.sorting import NO_LENDER, sort_rows, write_lenders
from tasks.lake.local_directory import clear, flush, sha256_of, write_flushed
from tasks.lake.store import Lake
from tasks.pipeline.digests import code_digest

# --------------------------------------------------------------------------------------------------------------------
# Accepts a delivered file: recognises it, converts it, and checks the year that it was said to be of.
#
# Scope: what happens to the file before the lake sees it. What a vintage is, and where it lies: ``store``.


REPORT_FILE = "schema_report.json"


@dataclass(frozen=True)
class TakenIn:
    """What came of a file."""

    report: SchemaReport
    years: dict[int, int]
    """Year of activity -> rows."""


def take_in(file: Path, folder: Path, year: int | None = None, rename: Mapping[str, str] | None = None) -> TakenIn:
    """Write the rows of a file, its refused lines and its schema report into an existing folder.

    Args:
        file: As it was delivered.
        folder: Gets ``applications.parquet``, ``refusals.parquet`` and ``schema_report.json``.
        year: Which every row has to be of; whatever it is, if left out.
        rename: Name in its header -> the name of the layout.

    Raises:
        SpecError: the file has no column of a name that is to be replaced.
        DataQualityError: it is not readable as HMDA, or holds rows of another year, or none.
        InfrastructureError: the disk is full or fails.
    """
    scratch = folder / "scratch"
    try:
        recognised = recognise(file, scratch, rename=rename)
        lacking = [now for now in (rename or {}).values() if now not in recognised.columns]
        if lacking:
            raise SpecError(f"--rename: {file.name} has no column that becomes {lacking[0]!r}; give the name it has")
        converted = convert(recognised, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if year is not None:
        name = file.name
        rows_by_year = {row_year: rows for row_year, rows in converted.years.items() if rows}
        year_list = " and ".join(f"{rows:,} rows of {row_year}" for row_year, rows in sorted(rows_by_year.items()))
        if not converted.rows:
            raise DataQualityError(f"{name}: none of its {converted.rows_in:,} rows could be read; see `data describe`")
        if len(rows_by_year) > 1:
            raise DataQualityError(f"{name} holds {year_list}, and a vintage is of one year: give a file for each")
        if (
            rows_by_year and year not in rows_by_year
        ):  # a file that does not say is taken at the word of whoever delivers it
            raise DataQualityError(
                f"{name} holds {year_list} and not {year}, as declared: give --year {min(rows_by_year)}, or its file"
            )
    report = report_on(recognised, converted)
    (folder / REPORT_FILE).write_text(report.model_dump_json(indent=1))
    return TakenIn(report, dict(converted.years))


def examine(file: Path) -> TakenIn:
    """The same for a file of any year; the written files are removed.

    Raises:
        DataQualityError: it is not readable as HMDA.
        InfrastructureError: it is not there, or the disk is full or fails.
    """
    with tempfile.TemporaryDirectory(prefix="evenhand-") as folder:
        return take_in(file, Path(folder))


def outline_of(file: Path) -> Outline:
    """What a file is by its first rows: layout, rows, years, lenders and states.

    Raises:
        SpecError: it is a directory, a FIFO or a device.
        DataQualityError: it is not readable as HMDA.
    """
    check_regular(file)
    with tempfile.TemporaryDirectory(prefix="evenhand-") as scratch:
        return outlined(file, Path(scratch))[1]


def year_of(name: str, of: Outline) -> int:
    """The year in the first rows of a file; the year of all rows is checked when the file is taken in.

    Raises:
        SpecError: it does not say.
        DataQualityError: it says several.
    """
    if not of.years:
        raise SpecError(f"{name} does not contain the year of its rows; give it with --year")
    if len(of.years) > 1:
        year_list = ", ".join(map(str, of.years))
        raise DataQualityError(f"{name} holds rows of {year_list}, and a vintage is of one year: give a file for each")
    return of.years[0]


# --------------------------------------------------------------------------------------------------------------------
# The records of a vintage: what it is and which files it has, and whether these are the ones that were written.
#
# ``partition.json`` names the files with their digests, and a vintage is there when that is. ``vintage.json``, which it
# names too, says what was delivered.


PARTITION = "partition.json"

_FOUND: dict[tuple[str, str, str], tuple[Path, tuple[int, int]]] = {}
"""Lake, path and digest -> the file of this machine, and what the system knew of it when it was found intact."""


def partition_of(lake: Lake, record: str) -> Partition:
    """The files of a vintage by the path of its record.

    Raises:
        IntegrityError: the record is missing or was altered.
    """
    try:
        return Partition.model_validate_json(lake.storage.read(record) or b"")
    except ValueError as error:
        raise altered(lake, record) from error


def read(lake: Lake, record: str) -> Vintage:
    """A vintage by the path of its record.

    Raises:
        IntegrityError: as ``partition_of`` says.
    """
    partition = partition_of(lake, record)
    path, digest = next((path, digest) for path, digest in partition.files.items() if path.endswith(f"/{RECORD}"))
    content = lake.storage.read(path)
    if content is None or hashlib.sha256(content).hexdigest() != digest:
        raise altered(lake, record, path)
    return Vintage.model_validate_json(content)


def rows_of(lake: Lake, vintage: Vintage) -> Path:
    """The vintage's rows on this machine, after the check of rows, refusals and record against their digests.

    This process hashes each of them once, however many lenders are read, as long as nobody writes to it.

    Raises:
        IntegrityError: a file is missing or was altered, or one lies among the rows that is not theirs.
    """
    record = f"{vintage.folder}/{PARTITION}"
    partition = partition_of(lake, record)
    beside = {path: digest for path, digest in partition.files.items() if path.endswith(f"/{RECORD}")}
    beside |= {table.path: table.sha256 for table in partition.tables}
    files = {path: _checked(lake, record, path, digest) for path, digest in beside.items()}
    rows = {table.path: files[table.path] for table in partition.tables if table.table == "applications"}
    path, first = next(iter(rows.items()))
    if vintage.version == 1:
        return first
    home = first.parents[1]
    if unrecorded := sorted(set(files_of(home)) - set(rows.values())):
        raise altered(lake, record, f"{PurePosixPath(path).parents[1]}/{unrecorded[0].relative_to(home).as_posix()}")
    return home


def altered(lake: Lake, record: str, path: str = "") -> IntegrityError:
    """The error of a vintage that is not as it was written; with the file, where it is known."""
    home = PurePosixPath(record).parent
    named = f" ({PurePosixPath(path).relative_to(home)})" if path else ""
    return IntegrityError(
        f"{lake.storage.where(str(home))} lacks a file, or holds one that is not the one that was written{named}; "
        "restore it from a copy, or remove the folder and add the delivered file again"
    )


def _checked(lake: Lake, record: str, path: str, digest: str) -> Path:
    key = lake.location, path, digest
    if key in _FOUND:
        file, file_state = _FOUND[key]
        if _state(file) == file_state:
            return file
    checked = lake.storage.checked(path, digest)
    if checked is None:
        raise altered(lake, record, path)
    if state := _state(checked):
        _FOUND[key] = checked, state
    return checked


def _state(file: Path) -> tuple[int, int] | None:
    """Size and time of the last change of a file; None of one that does not exist."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


# --------------------------------------------------------------------------------------------------------------------
# Drafts of vintages: the sorted rows, the lenders and the records, before they get their place in the lake.


_TABLES = {"refusals": REFUSALS_FILE, "lenders": LENDERS_FILE}
"""Tables that lie directly in the folder of a vintage."""
_TIMES_ROWS = 12
"""Disk that a sort needs, in sizes of the file of rows: what is put aside of them, and the sorted files."""


@contextmanager
def drafting(lake: Lake, name: str) -> Iterator[Path]:
    """An empty folder with the lake's drafts, which is removed afterwards.

    Raises:
        SpecError: the folder is a link, or lies behind one.
        InfrastructureError: the disk is full or fails.
    """
    draft = lake.storage.local / "tmp" / name
    try:
        clear(lake.storage.local, draft)
        draft.mkdir(parents=True)
        yield draft
    except OSError as error:
        why = "is full; free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else f"fails ({error})"
        raise InfrastructureError(f"the disk of the lake {lake.location} {why}, and do this again") from error
    finally:
        clear(lake.storage.local, draft)


def sort_draft(lake: Lake, draft: Path, rows: Path) -> str:
    """Sort rows into a draft of a lake, and write the lenders with them; returns the digest of the sorted files.

    Raises:
        SuiteError: other rows were written than are there.
        InfrastructureError: memory or disk is not enough.
    """
    lake.require_space(_TIMES_ROWS * rows.stat().st_size, "sorting the rows")
    files = sort_rows(rows, draft)
    write_lenders(draft / SORTED, draft)
    return digest_of_files({name.removeprefix(f"{SORTED}/"): once(draft / name) for name in files})


def recorded(draft: Path, home: str, vintage: Vintage) -> Partition:
    """Write the records of a draft that is otherwise complete, and wait until all of it is on disk.

    Args:
        draft: The folder.
        home: Where its files are to lie in the lake.
        vintage: What it is.
    """
    (draft / APPLICATIONS_FILE).unlink(missing_ok=True)  # what was sorted
    write_flushed(draft / RECORD, vintage.model_dump_json(indent=1).encode())
    digests = {p.relative_to(draft).as_posix(): once(p) for p in sorted(draft.rglob("*")) if p.is_file()}
    named = {name: table for table, name in _TABLES.items()}
    named |= {name: "applications" for name in digests if name.startswith(f"{SORTED}/")}
    tables = tuple(
        Artifact(
            table=table,
            path=f"{home}/{name}",
            sha256=digests.pop(name),
            rows=int(pq.read_metadata(draft / name).num_rows),
        )
        for name, table in named.items()
    )
    files = {f"{home}/{name}": digest for name, digest in digests.items()}
    record = Partition(stage="vintages", key=vintage.sha256[:12], tables=tables, files=files)
    write_flushed(draft / PARTITION, record.model_dump_json(indent=1).encode())
    for path in (*draft.rglob("*"), draft):
        flush(path)
    return record


# --------------------------------------------------------------------------------------------------------------------
# Rewrites a vintage of version 1, one file of rows in no order, into version 2, files by state sorted by lender.
#
# The rows are the same, and so is what an audit knows the vintage by. Until the new record has its name, readers see
# version 1; a process that is killed leaves a draft, or files that no record names, and the next one removes them.


def repack(lake: Lake, vintage: Vintage) -> Vintage | None:
    """Rewrite a vintage; None where it is of version 2, and nothing has to be done.

    Raises:
        IntegrityError: its files are not the ones that were written, so that nobody knows what would be sorted.
        InfrastructureError: memory or disk is not enough; version 1 stays.
    """
    name = f"vintage-{vintage.sha256[:12]}"
    with lake.lock(name):
        record = f"{vintage.folder}/{PARTITION}"
        current = read(lake, record)  # another process may have been here before
        if current.version == 1:
            rows = rows_of(lake, current)
            # Refuse rows that are not the converted ones: with an exchanged record they would be recorded as delivered.
            if current.rows_sha256 not in ("", digest_of_rows(rows)):
                raise IntegrityError(
                    f"the rows of {current} are not those that were converted; add the delivered file again"
                )
            with drafting(lake, name) as draft:
                drafted_partition = partition_of(lake, f"{current.folder}/{PARTITION}")
                for path, digest in _digests(drafted_partition).items():
                    drafted_name = PurePosixPath(path).name
                    file = (
                        lake.storage.checked(path, digest) if drafted_name not in (APPLICATIONS_FILE, RECORD) else None
                    )
                    if file is not None:
                        link_name = draft / drafted_name
                        try:
                            os.link(file, link_name)
                        except OSError:
                            shutil.copyfile(file, link_name)
                repacked = current.model_copy(update={"rows_sha256": sort_draft(lake, draft, rows), "version": 2})
                partition = recorded(draft, lake.storage.home_beside(current.folder), repacked)
                lake.storage.supersede(draft, partition, current.folder)
        _discard_unnamed(lake, record)
        return read(lake, record) if current.version == 1 else None


def _discard_unnamed(lake: Lake, record: str) -> None:
    """Remove what the record does not name: the files of version 1, or those of a process that was killed."""
    named = {record, *_digests(partition_of(lake, record))}
    for path in lake.storage.below(str(PurePosixPath(record).parent)):
        if path not in named:
            lake.storage.discard(path)


def _digests(partition: Partition) -> dict[str, str]:
    return {table.path: table.sha256 for table in partition.tables} | partition.files


# --------------------------------------------------------------------------------------------------------------------
# Vintages in the lake: stores a delivered file as one, and finds those that are held.
#
# A vintage lies in ``vintages/<year>/<dataset>/<geography>/<freeze date>/<start of the sha256>``. Its
# ``partition.json`` names its files with their digests, as that of a stage does, and a folder without it does not exist
# for readers. What becomes of the rows is in ``delivery`` and ``sorting``; the records are in ``records``.


log = logging.getLogger("evenhand")

_CONVERTER = ("tasks.ingest.hmda.layouts", "tasks.ingest.hmda.conversion")


def vintages(lake: Lake, year: int | None = None) -> list[Vintage]:
    """The vintages that the lake holds, by year, data set, place and freeze date; of one date in the order of arrival.

    Raises:
        IntegrityError: the record of one is missing or was altered.
    """
    records = lake.storage.glob(f"vintages/{'*' if year is None else year}/*/*/*/*/{PARTITION}")
    return sorted(
        (read(lake, record) for record in records),
        key=lambda v: (v.year, v.dataset, v.geography, v.frozen, v.added),
    )


def newest(
    lake: Lake, year: int, dataset: str | None = None, geography: str | None = None, frozen: date | None = None
) -> Vintage | None:
    """The vintage of a year that was frozen last, and of those the one that came last; None where none fits.

    A synthetic twin, and a lender's own submission, never stand in for what was published: they count where they are
    asked for, or are all there is.

    Raises:
        SpecError: several places fit and none was named: a state is no newer edition of the country.
        IntegrityError: as ``vintages`` says.
    """
    criteria = {"dataset": dataset, "geography": geography, "frozen": frozen}
    fitting = [v for v in vintages(lake, year) if all(w in (None, getattr(v, key)) for key, w in criteria.items())]
    fitting = [v for v in fitting if v.dataset != "twin" and not v.restricted] or fitting
    places = sorted({v.geography for v in fitting})
    if len(places) > 1:
        raise SpecError(
            f"the lake holds {year} of {' and of '.join(places)}; say which is meant with source.vintage.geography",
            ("source", "vintage"),
        )
    return max(fitting, key=lambda v: (v.frozen, v.added), default=None)


def lenders_in(lake: Lake, year: int) -> set[str]:
    """The lenders of the vintages of a year, those that name none left out.

    Raises:
        IntegrityError: as ``vintages`` says.
    """
    out = set[str]()
    for vintage in vintages(lake, year):
        partition = partition_of(lake, f"{vintage.folder}/{PARTITION}")
        for artifact in (table for table in partition.tables if table.table == "lenders"):
            out |= set(lake.read(artifact, ["lender_id"])["lender_id"].to_pylist())
    return out - {NO_LENDER}


def file_of(lake: Lake, vintage: Vintage) -> Path:
    """The vintage's rows on this machine, after the check of rows, refusals and record against their digests.

    They are the file ``applications.parquet`` in version 1, and the directory ``applications`` in version 2.

    Raises:
        IntegrityError: a file is missing or was altered; it is named.
    """
    return rows_of(lake, vintage)


def add(
    lake: Lake,
    file: Path,
    *,
    year: int,
    dataset: str,
    geography: str,
    frozen: date,
    source: str = "",
    replace: bool = False,
    keep_raw: bool = False,
    rename: Mapping[str, str] | None = None,
) -> Vintage:
    """Make a vintage of a delivered file, in one step: a process that is killed leaves nothing that a reader sees.

    A file that the lake holds already, whatever its name and date, makes no second vintage: the one held is given back.

    Args:
        lake: Where it goes.
        file: As it was delivered, plain or packed.
        year: Of the applications; every row has to be of it.
        dataset: One of ``schemas.vintages.DATASETS``.
        geography: ``nationwide``, a state's letters, ``county-48453``, ``msa-12420`` or a lender's LEI.
        frozen: The day on which the publisher froze the data.
        source: The address that it came from; its name if left out.
        replace: Convert a file that is held once more, and put it in the place of what is held.
        keep_raw: Keep the delivered file beside the converted rows.
        rename: Name in its header -> the name of the layout, of a file that calls a column otherwise.

    Raises:
        SpecError: the data set or the place is none, the year is later than the freeze date, or the file is a
            directory, a FIFO or a device.
        DataQualityError: the file is not readable as HMDA, or holds rows of another year, or none.
        InfrastructureError: it is not there or changes meanwhile, or the disk is full or fails.
    """
    place_of(geography)
    if not 1981 <= year <= frozen.year:
        raise SpecError(
            f"a vintage of {year} cannot have been frozen on {frozen}: --year is that of the applications, from 1981, "
            "and --frozen a day after it"
        )
    check_regular(file)
    if keep_raw and dataset == SUBMISSION:
        raise SpecError(
            f"{file.name} is a lender's own submission: its identifiers of loans and addresses are kept in no lake; "
            "leave --keep-raw out"
        )
    key = {"year": year, "dataset": dataset_of(dataset), "geography": geography, "frozen": frozen}
    before, digest = _state(file), _digest(file)
    with lake.lock(f"vintage-{digest[:12]}"):
        existing = _held(lake, file.name, digest, year)
        if existing and not replace:
            log.warning("%s was delivered before, and is held as %s: nothing was added", file.name, existing)
            return existing
        lake.require_space(2 * file.stat().st_size, file.name)
        with drafting(lake, f"vintage-{digest[:12]}") as draft:
            of_file = {**key, "sha256": digest, "source": source or file.name}
            vintage = _written(lake, draft, file, of_file, rename or {})
            if keep_raw:
                shutil.copyfile(file, draft / f"delivered-{file.name}")
            if _state(file) != before:
                raise InfrastructureError(f"{file.name} changed while it was read; add it again once it is at rest")
            _publish(lake, draft, vintage, existing)
    return vintage


def delivered(lake: Lake, file: Path) -> Vintage | None:
    """The vintage that was made of the same bytes; None where the lake holds none.

    Raises:
        SpecError: it is a directory, a FIFO or a device.
        InfrastructureError: it cannot be read.
    """
    check_regular(file)
    digest = _digest(file)
    return next((vintage for vintage in vintages(lake) if vintage.sha256 == digest), None)


def report_of(lake: Lake, vintage: Vintage) -> SchemaReport | None:
    """The schema report of a vintage; None where the lake does not hold it as it was written."""
    content = lake.storage.read(f"{vintage.folder}/{REPORT_FILE}")
    try:
        return SchemaReport.model_validate_json(content or b"")
    except ValueError:
        return None


def _digest(file: Path) -> str:
    try:
        return sha256_of(file)
    except OSError as error:
        raise InfrastructureError(f"{str(file)!r} cannot be read: {error.strerror or error}") from error


def _held(lake: Lake, name: str, digest: str, year: int) -> Vintage | None:
    """The vintage that was made of the same bytes."""
    existing = next((v for v in vintages(lake) if v.sha256 == digest), None)
    if existing and existing.year != year:
        raise DataQualityError(f"{name} was declared as {year} and is held as {existing}; give --year {existing.year}")
    return existing


def _written(lake: Lake, draft: Path, file: Path, key: Mapping[str, Any], rename: Mapping[str, str]) -> Vintage:
    """Convert a file into a draft, sorted, and say what it is."""
    report = take_in(file, draft, key["year"], rename).report
    if (report.layout == submission.NAME) != (key["dataset"] == SUBMISSION):
        kind = SUBMISSION if report.layout == submission.NAME else "that of the publisher"
        raise SpecError(f"{file.name} is of layout {report.layout}, and not of kind {key['dataset']}: give {kind}")
    if unknown_columns := [finding.column for finding in report.findings if finding.kind == "unknown_column"]:
        message = "%s: its layout has no column %s, and a vintage keeps none; an audit of these takes source.path: %s"
        log.warning(message, file.name, ", ".join(map(str, unknown_columns)), file)
    return Vintage(
        **key,
        layout=report.layout,
        rows=report.rows,
        refused=sum(report.refused.values()),
        bytes=file.stat().st_size,
        added=datetime.now(UTC).isoformat(timespec="microseconds"),
        converter=" ".join(
            [
                f"{code_digest(_CONVERTER)[:16]} duckdb {version('duckdb')}",
                *(f"{before}={now}" for before, now in sorted(rename.items())),
            ]
        ),
        rows_sha256=sort_draft(lake, draft, draft / APPLICATIONS_FILE),
        version=2,
    )


def _publish(lake: Lake, draft: Path, vintage: Vintage, existing: Vintage | None) -> None:
    """Give the draft its place; what is held of the same file goes."""
    record = recorded(draft, lake.storage.home_of(vintage.folder), vintage)
    if existing and existing.folder == vintage.folder:
        lake.storage.remove(existing.folder)
    lake.storage.publish(draft, record, vintage.folder)
    if existing and existing.folder != vintage.folder:
        lake.storage.remove(existing.folder)
