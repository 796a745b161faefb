"""Names of lenders: HMDA's panel and transmittal files, read into one list a year in the lake.

A panel has a row for each lender of a year (LEI, name, assets, agency), a transmittal file the same without assets.
Until 2017 a lender is its agency and respondent. Scope: the list. Lenders' rows: ``store``.
"""

import csv
import gzip
import io
import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Final

from schemas.errors import DataQualityError, IntegrityError
from tasks.ingest.hmda.layouts import opened
from tasks.ingest.sources.raw import check_regular
from tasks.lake.store import Lake

_PLACE: Final = "panels/{year}.json"
_YEARS: Final = ("activity_year", "as_of_year", "year")
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "name": ("respondent_name", "respondent_name_panel", "name"),
    "agency": ("agency_code", "agency"),
    "assets": ("assets", "asset_size"),
    "state": ("respondent_state", "respondent_state_panel"),
    "city": ("respondent_city", "respondent_city_panel"),
}
"""What is kept -> the names of its column, in files of several years."""
_RESPONDENT: Final = ("respondent_id", "respondent")
_NAMED: Final = 3


@dataclass(frozen=True)
class Lender:
    """A lender as a panel has it; empty where the file does not say."""

    name: str
    agency: str = ""
    assets: str = ""
    """In thousands of dollars, as filed."""
    state: str = ""
    city: str = ""


@dataclass(frozen=True)
class Listed:
    """What came of a file."""

    year: int
    lenders: int
    """In the file."""
    repeated: int
    """Rows that say again what an earlier one says."""
    new: int
    """Lenders that the list of the year did not have."""
    renamed: int
    """Lenders whose name is another one now."""


def add(lake: Lake, file: Path, year: int | None = None) -> Listed:
    """Take a panel or a transmittal file into the list of its year; a later file counts.

    Raises:
        SpecError: it is a directory, a FIFO or a device.
        DataQualityError: no such file, no year, another year, several years, or one lender with two names.
        InfrastructureError: it cannot be read, or the disk is full.
    """
    check_regular(file)
    read_year, lenders, repeated = _read(file, year)
    with lake.lock(f"panel-{read_year}"):
        before = lenders_of(lake, read_year)
        merged = {**before}
        for key, lender in lenders.items():
            earlier = asdict(before[key]) if key in before else {}
            merged[key] = Lender(**{**earlier, **{name: value for name, value in asdict(lender).items() if value}})
        content = {key: asdict(lender) for key, lender in sorted(merged.items())}
        lake.write_file(_PLACE.format(year=read_year), json.dumps(content, ensure_ascii=False, indent=0).encode())
    renamed = sum(before[key].name != merged[key].name for key in lenders if key in before)
    return Listed(read_year, len(lenders), repeated, len(set(lenders) - set(before)), renamed)


def lenders_of(lake: Lake, year: int) -> dict[str, Lender]:
    """Lender -> its entry in the panel of a year; empty where the lake has none of that very year.

    Raises:
        IntegrityError: the list is not the one that was written.
    """
    content = lake.storage.read(_PLACE.format(year=year))
    try:
        return {} if content is None else {key: Lender(**entry) for key, entry in json.loads(content).items()}
    except (ValueError, TypeError, AttributeError) as error:
        place = lake.storage.where(_PLACE.format(year=year))
        raise IntegrityError(f"{place} cannot be read; remove it and add the panel again") from error


def years(lake: Lake) -> list[int]:
    """Years with a panel in the lake."""
    stems = (PurePosixPath(path).stem for path in lake.storage.glob("panels/*.json"))
    return sorted(int(stem) for stem in stems if stem.isdigit())


def _read(file: Path, year: int | None) -> tuple[int, dict[str, Lender], int]:
    """Year, lenders by their key, and the number of rows that repeat an earlier one."""
    lenders: dict[str, Lender] = {}
    repeated, read_years = 0, set[str]()
    for key, lender, of_year in _rows(file):
        if of_year:
            read_years.add(of_year)
        if key in lenders and lenders[key] != lender:
            raise DataQualityError(
                f"{file.name} has {key} twice, as {lenders[key].name!r} and {lender.name!r}, or with other assets or "
                "agency: leave one of them in the file"
            )
        repeated += key in lenders
        lenders[key] = lender
    if not lenders:
        raise DataQualityError(f"{file.name} has no lender with a name")
    if len(read_years) > 1:
        listed = ", ".join(sorted(read_years)[:_NAMED])
        raise DataQualityError(
            f"{file.name} holds lenders of {listed}, and a panel is of one year: give a file for each"
        )
    file_year = next(iter(read_years), "")
    if file_year and not file_year.isdigit():
        raise DataQualityError(f"{file.name} has the year {file_year[:20]!r}; expected four digits")
    if not file_year and year is None:
        raise DataQualityError(f"{file.name} does not contain its year; give it with --year")
    if file_year and year is not None and int(file_year) != year:
        raise DataQualityError(
            f"{file.name} is a panel of {file_year} and not of {year}: lenders change their names; give "
            f"--year {file_year}, or "
            f"the panel of {year}"
        )
    return int(file_year) if file_year else int(year or 0), lenders, repeated


def _rows(file: Path) -> Iterator[tuple[str, Lender, str]]:
    """Key, lender and year of each row with a name."""
    with tempfile.TemporaryDirectory(prefix="evenhand-") as scratch:
        of_file = opened(file, Path(scratch))
        content = of_file.path.read_bytes()
    content = gzip.decompress(content) if of_file.compression == "gzip" else content
    text = content.decode(of_file.encoding).removeprefix("\ufeff")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=of_file.delimiter)
    header = [name.strip().lower().replace("-", "_").replace(" ", "_").strip('"') for name in next(reader, [])]
    place = {name: header.index(name) for name in dict.fromkeys(header)}
    columns = {of: next((place[n] for n in names if n in place), None) for of, names in _COLUMNS.items()}
    year_at = next((place[name] for name in _YEARS if name in place), None)
    respondent = next((place[name] for name in _RESPONDENT if name in place), None)
    if columns["name"] is None or ("lei" not in place and (respondent is None or columns["agency"] is None)):
        raise DataQualityError(
            f"{file.name} is no panel: it needs the columns lei and respondent_name (until 2017 respondent_id, "
            f"agency_code and a name), and has {', '.join(header[:8])[:200]}"
        )

    def cell(row: list[str], at: int | None) -> str:
        return row[at].strip() if at is not None and at < len(row) else ""

    for row in reader:
        values = {of: cell(row, at) for of, at in columns.items()}
        values = {of: "" if value in ("NA", "-1") and of != "name" else value for of, value in values.items()}
        lei = cell(row, place.get("lei"))
        key = lei if "lei" in place else f"{values['agency']}-{cell(row, respondent)}"
        if key and key != "-" and values["name"]:
            yield key, Lender(**{field.name: values[field.name] for field in fields(Lender)}), cell(row, year_at)
