"""The publisher's offers in the bundled ``sources.toml``, with the time and disk that one will take."""

import tomllib
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from schemas.catalogue import Official
from schemas.errors import InfrastructureError
from schemas.vintages import DatasetName, Vintage, dataset_of

_ROOT = Path(__file__).parents[3]
_PLACES = (_ROOT / "data" / "sources.toml", _ROOT / "flows" / "bundled" / "sources.toml")
"""In a checkout, and in an installed wheel."""

_ZIPPED = 0.2
"""Of a table's bytes, at most so many in its zip: real files take 0.11 (99 columns) and 0.14 (labels)."""
_CONVERTED = 0.2
"""The same of the canonical Parquet file; 0.12 of 5,000 drawn rows of 99 columns."""
_TOLERATED = 0.02
"""Counts of a year differ between its editions by up to 0.6 %."""


@dataclass(frozen=True)
class Estimate:
    """How large an edition will be; None where no count of it is known."""

    rows: int | None
    raw_bytes: int | None
    """The table as plain text."""
    download_bytes: int | None
    disk_bytes: int | None
    """At once, at most: what came, the table taken out of its zip, and the converted one."""


@cache
def official() -> Official:
    """What is offered.

    Raises:
        InfrastructureError: the file is not where it was installed, or was altered.
    """
    file = next((place for place in _PLACES if place.is_file()), _PLACES[0])
    try:
        return Official.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise InfrastructureError(
            f"{str(file)!r} is not there or not usable ({error}); it belongs to evenhand: install it again"
        ) from error


def estimate(dataset: DatasetName, year: int, geography: str) -> Estimate:
    """How large the edition will be, from published counts and sizes."""
    offers = official()
    rows = offers.published_rows(dataset, year, geography)
    raw = offers.raw_bytes(dataset, year, geography)
    if raw is None:
        return Estimate(rows, None, None, None)
    zipped = ".zip" in offers.address(dataset, year, geography)
    download = round(raw * _ZIPPED) if zipped else raw
    return Estimate(rows, raw, download, download + round(raw * _CONVERTED) + (raw if zipped else 0))


def incomplete(vintage: Vintage) -> str | None:
    """A sentence, if a vintage holds far fewer or far more rows than its publisher counts.

    None where no count is known. It is a remark and no error: who adds a part of a year may have a reason.
    """
    published = official().published_rows(vintage.dataset, vintage.year, vintage.geography)
    rows = vintage.rows + vintage.refused
    if published is None or abs(rows - published) <= _TOLERATED * published:
        return None
    return f"{rows:,} rows came and about {published:,} are published of {vintage.year}; is the file whole?"


def frozen_on(dataset: str, year: int, file: Path) -> date:
    """The freeze date of a file that nobody gives one for: as published for such an edition, else the file's own date.

    Raises:
        SpecError: there is no such data set.
        InfrastructureError: the file cannot be read.
    """
    offer = official().dataset.get(dataset_of(dataset))
    if offer is not None and year in offer.frozen:
        return offer.frozen[year]
    try:
        return datetime.fromtimestamp(file.stat().st_mtime, UTC).date()
    except OSError as error:
        raise InfrastructureError(f"{str(file)!r} cannot be read: {error.strerror or error}") from error
