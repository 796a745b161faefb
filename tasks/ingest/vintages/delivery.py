"""Accepts a delivered file: recognises it, converts it, and checks the year that it was said to be of.

Scope: what happens to the file before the lake sees it. What a vintage is, and where it lies: ``store``.
"""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import DataQualityError, SpecError
from tasks.ingest.hmda.conversion import Converted, convert
from tasks.ingest.hmda.files.recognition import recognise, years_said
from tasks.ingest.hmda.schema_report import SchemaReport, report_on
from tasks.ingest.regular_file import check_regular

REPORT_FILE = "schema_report.json"


@dataclass(frozen=True)
class TakenIn:
    """What came of a file."""

    report: SchemaReport
    years: dict[int, int]
    """Year of activity -> rows."""


def take_in(file: Path, folder: Path, year: int | None = None) -> TakenIn:
    """Write the rows of a file, its refused lines and its schema report into a folder that is there.

    Args:
        file: As it was delivered.
        folder: Gets ``applications.parquet``, ``refusals.parquet`` and ``schema_report.json``.
        year: Which every row has to be of; whatever it is, if left out.

    Raises:
        DataQualityError: it is not readable as HMDA, or holds rows of another year, or none.
        InfrastructureError: the disk is full or fails.
    """
    scratch = folder / "scratch"
    try:
        recognised = recognise(file, scratch)
        converted = convert(recognised, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if year is not None:
        _require_year(file.name, converted, year)
    report = report_on(recognised, converted)
    (folder / REPORT_FILE).write_text(report.model_dump_json(indent=1))
    return TakenIn(report, dict(converted.years))


def examine(file: Path) -> TakenIn:
    """The same of a file of whatever year, with nothing kept of what was written.

    Raises:
        DataQualityError: it is not readable as HMDA.
        InfrastructureError: it is not there, or the disk is full or fails.
    """
    with tempfile.TemporaryDirectory(prefix="evenhand-") as folder:
        return take_in(file, Path(folder))


def year_of(file: Path) -> int:
    """The year that the first rows of a file say; whoever takes it in looks at all of them.

    Raises:
        SpecError: it does not say, or is a directory, a FIFO or a device.
        DataQualityError: it is not readable as HMDA, or says several.
    """
    check_regular(file)
    with tempfile.TemporaryDirectory(prefix="evenhand-") as scratch:
        said = years_said(file, Path(scratch))
    if not said:
        raise SpecError(f"{file.name} does not say of which year its rows are; give it with --year")
    if len(said) > 1:
        told = ", ".join(map(str, said))
        raise DataQualityError(f"{file.name} holds rows of {told}, and a vintage is of one year: give a file for each")
    return said[0]


def _require_year(name: str, converted: Converted, year: int) -> None:
    found = {each: rows for each, rows in converted.years.items() if rows}
    told = " and ".join(f"{rows:,} rows of {each}" for each, rows in sorted(found.items()))
    if not converted.rows:
        raise DataQualityError(f"{name}: none of its {converted.rows_in:,} rows could be read; see `data describe`")
    if len(found) > 1:
        raise DataQualityError(f"{name} holds {told}, and a vintage is of one year: give a file for each")
    if found and year not in found:  # a file that does not say is taken at the word of whoever delivers it
        raise DataQualityError(
            f"{name} holds {told} and was said to be of {year}: give --year {min(found)}, or its file"
        )
