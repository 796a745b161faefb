"""Vintages in the lake: stores a delivered file as one, and finds those that are held.

A vintage lies in ``vintages/<year>/<dataset>/<geography>/<freeze date>/<start of the sha256>``. Its ``partition.json``
names its files with their digests, as that of a stage does, and a folder without it does not exist for readers. What
becomes of the rows is in ``delivery`` and ``sorting``; the records are in ``records``.
"""

import logging
import shutil
from collections.abc import Mapping
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from schemas.errors import DataQualityError, InfrastructureError, SpecError
from schemas.vintages import Vintage, dataset_of, place_of
from tasks.ingest.hmda.conversion import APPLICATIONS_FILE
from tasks.ingest.regular_file import check_regular
from tasks.ingest.vintages.delivery import take_in
from tasks.ingest.vintages.drafts import drafting, recorded, sort_draft
from tasks.ingest.vintages.records import PARTITION, read, rows_of
from tasks.lake.local_directory import sha256_of
from tasks.lake.store import Lake
from tasks.pipeline.lineage.digests import code_digest

log = logging.getLogger("evenhand")

_CONVERTER = ("tasks.ingest.hmda.files.recognition", "tasks.ingest.hmda.conversion")


def vintages(lake: Lake, year: int | None = None) -> list[Vintage]:
    """The vintages that the lake holds, by year, data set, place and freeze date; of one date in the order of arrival.

    Raises:
        IntegrityError: the record of one is missing or was altered.
    """
    records = lake.storage.glob(f"vintages/{'*' if year is None else year}/*/*/*/*/{PARTITION}")
    return sorted((read(lake, record) for record in records), key=_order)


def newest(
    lake: Lake, year: int, dataset: str | None = None, geography: str | None = None, frozen: date | None = None
) -> Vintage | None:
    """The vintage of a year that was frozen last, and of those the one that came last; None where none fits.

    A synthetic twin never stands in for what was published: it counts where it is asked for, or is all there is.

    Raises:
        SpecError: several places fit and none was named: a state is no newer edition of the country.
        IntegrityError: as ``vintages`` says.
    """
    wanted = {"dataset": dataset, "geography": geography, "frozen": frozen}
    fitting = [v for v in vintages(lake, year) if all(w in (None, getattr(v, key)) for key, w in wanted.items())]
    fitting = [v for v in fitting if v.dataset != "twin"] or fitting
    places = sorted({v.geography for v in fitting})
    if len(places) > 1:
        raise SpecError(
            f"the lake holds {year} of {' and of '.join(places)}; say which is meant with source.vintage.geography",
            ("source", "vintage"),
        )
    return max(fitting, key=lambda v: (v.frozen, v.added), default=None)


def file_of(lake: Lake, vintage: Vintage) -> Path:
    """The vintage's rows on this machine, beside its refusals and its record, once these agree.

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
    key = {"year": year, "dataset": dataset_of(dataset), "geography": geography, "frozen": frozen}
    before, digest = _state(file), _digest(file)
    with lake.lock(f"vintage-{digest[:12]}"):
        held = _held(lake, file.name, digest, year)
        if held and not replace:
            log.warning("%s was delivered before, and is held as %s: nothing was added", file.name, held)
            return held
        lake.require_space(2 * file.stat().st_size, file.name)
        with drafting(lake, f"vintage-{digest[:12]}") as draft:
            vintage = _written(lake, draft, file, {**key, "sha256": digest, "source": source or file.name})
            if keep_raw:
                shutil.copyfile(file, draft / f"delivered-{file.name}")
            if _state(file) != before:
                raise InfrastructureError(f"{file.name} changed while it was read; add it again once it is at rest")
            _publish(lake, draft, vintage, held)
    return vintage


def _order(vintage: Vintage) -> tuple[int, str, str, date, str]:
    return vintage.year, vintage.dataset, vintage.geography, vintage.frozen, vintage.added


def _state(file: Path) -> tuple[int, int] | None:
    """What changes when somebody writes to a file; None of one that is not there."""
    try:
        told = file.stat()
    except OSError:
        return None
    return told.st_size, told.st_mtime_ns


def _digest(file: Path) -> str:
    try:
        return sha256_of(file)
    except OSError as error:
        raise InfrastructureError(f"{str(file)!r} cannot be read: {error.strerror or error}") from error


def _held(lake: Lake, name: str, digest: str, year: int) -> Vintage | None:
    """The vintage that was made of the same bytes."""
    held = next((v for v in vintages(lake) if v.sha256 == digest), None)
    if held and held.year != year:
        raise DataQualityError(f"{name} was said to be of {year}, and is held as {held}; give --year {held.year}")
    return held


def _written(lake: Lake, draft: Path, file: Path, key: Mapping[str, Any]) -> Vintage:
    """Convert a file into a draft, sorted, and say what it is."""
    report = take_in(file, draft, key["year"]).report
    if own := [finding.column for finding in report.findings if finding.kind == "unknown_column"]:
        told = "%s: its layout has no column %s, and a vintage keeps none; an audit of these takes source.path: %s"
        log.warning(told, file.name, ", ".join(map(str, own)), file)
    return Vintage(
        **key,
        layout=report.layout,
        rows=report.rows,
        refused=sum(report.refused.values()),
        bytes=file.stat().st_size,
        added=datetime.now(UTC).isoformat(timespec="microseconds"),
        converter=f"{code_digest(_CONVERTER)[:16]} duckdb {version('duckdb')}",
        rows_sha256=sort_draft(lake, draft, draft / APPLICATIONS_FILE),
        version=2,
    )


def _publish(lake: Lake, draft: Path, vintage: Vintage, held: Vintage | None) -> None:
    """Give the draft its place; what is held of the same file goes."""
    record = recorded(draft, lake.storage.home_of(vintage.folder), vintage)
    if held and held.folder == vintage.folder:
        lake.storage.remove(held.folder)
    lake.storage.publish(draft, record, vintage.folder)
    if held and held.folder != vintage.folder:
        lake.storage.remove(held.folder)
