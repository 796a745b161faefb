"""Offers of the published vintages, and the catalogue that lists them."""

import tomllib
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from schemas.errors import InfrastructureError, SpecError
from schemas.vintages import SUBMISSION, DatasetName, Place, Vintage, dataset_of, place_of
from tasks.ingest.hmda import submission
from tasks.ingest.hmda.layouts import Outline

# --------------------------------------------------------------------------------------------------------------------
# Catalogue of the HMDA files on offer: the form of ``data/sources.toml``, and look-ups in it.


_BREAK = 2018
"""From this year on rows have 99 columns, and so another size."""


class _Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Offer(_Declared):
    """One data set: which years of it there are, where, and when each was frozen."""

    title: str
    host: str = Field(pattern=r"^https://[^/]+$")
    years: tuple[int, int]
    frozen_by: Literal["publisher", "server"]
    """Whether freeze dates are published, or only a server's Last-Modified tells how old a file is."""
    rows: Literal["historic", "first", "latest"]
    address: dict[Place, str] = Field(min_length=1)
    frozen: dict[int, date] = {}


class Official(_Declared):
    """The whole of ``data/sources.toml``."""

    dataset: dict[DatasetName, Offer]
    rows: dict[str, dict[int, int]]
    bytes: dict[int, int]
    states: dict[str, tuple[int, ...]]
    """Rows of the newest edition, 2018 and on in order."""

    @model_validator(mode="after")
    def _names_tables_that_are_there(self) -> "Official":
        unknown = {offer.rows for offer in self.dataset.values()} - set(self.rows)
        if unknown:
            raise ValueError(f"no table of rows {sorted(unknown)}")
        return self

    def offer(self, dataset: DatasetName, year: int) -> Offer:
        """The data set, if it has that year.

        Raises:
            SpecError: it has not, or nobody publishes it.
        """
        offer = self.dataset.get(dataset)
        if offer is None:
            raise SpecError(f"{dataset} is not published; `evenhand data twin` writes a synthetic one")
        first, last = offer.years
        if not first <= year <= last:
            having = [name for name, other in self.dataset.items() if other.years[0] <= year <= other.years[1]]
            alternatives = (
                f"{year} is in: {', '.join(having)}" if having else f"no data set that is known here has {year}"
            )
            raise SpecError(
                f"{dataset} is known for {first} to {last}; {alternatives}. A file that you have is taken in by "
                "`evenhand data add`"
            )
        return offer

    def address(self, dataset: DatasetName, year: int, geography: str, base_url: str | None = None) -> str:
        """Where the file is; under ``base_url`` instead of the publisher's host, if one is given.

        Raises:
            SpecError: the data set does not have that year, or is not offered for such a place.
        """
        offer = self.offer(dataset, year)
        kind, code = place_of(geography)
        if kind not in offer.address:
            raise SpecError(f"{dataset} is offered by {' and by '.join(offer.address)}, not by {kind} ({geography})")
        path = offer.address[kind].format(year=year, place=code, state=code.lower())
        return (base_url or offer.host).rstrip("/") + path

    def published_rows(self, dataset: DatasetName, year: int, geography: str) -> int | None:
        """Rows that the publisher counts; None where no count is known."""
        kind, code = place_of(geography)
        offer = self.dataset.get(dataset)
        if offer is None:
            return None
        if kind == "nationwide":
            return self.rows[offer.rows].get(year)
        counts = self.states.get(code, ()) if kind == "state" else ()
        return counts[year - _BREAK] if 0 <= year - _BREAK < len(counts) else None

    def raw_bytes(self, dataset: DatasetName, year: int, geography: str) -> int | None:
        """Size of the table as plain text, estimated from the nearest year with a known size."""
        rows = self.published_rows(dataset, year, geography)
        alike = [other for other in self.bytes if (other < _BREAK) == (year < _BREAK)]
        if rows is None or not alike:
            return None
        nearest_year = min(alike, key=lambda other: (abs(other - year), other))
        nationwide_rows = self.rows["historic" if nearest_year < _BREAK else "latest"][nearest_year]
        return round(self.bytes[nearest_year] / nationwide_rows * rows)


# --------------------------------------------------------------------------------------------------------------------
# The publisher's offers in the bundled ``sources.toml``, with the time and disk that one will take.


_ROOT = Path(__file__).parents[3]
_PLACES = (_ROOT / "data" / "sources.toml", _ROOT / "flows" / "bundled" / "sources.toml")
"""In a checkout, and in an installed wheel."""

_ZIPPED = 0.2
"""Of a table's bytes, at most so many in its zip: real files take 0.11 (99 columns) and 0.14 (labels)."""
_CONVERTED = 0.2
"""The same of the canonical Parquet file; 0.12 of 5,000 drawn rows of 99 columns."""
_LEAST_NATIONWIDE = 0.5
"""Of the rows that are published: fewer are no file of the country."""
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


def dataset_by_layout(layout: str) -> str:
    """The default data set of a file: of a lender's own files its own, of others the snapshot."""
    return {submission.NAME: SUBMISSION, "modified_lar": "modified-lar"}.get(layout, "snapshot")


def geography_by_rows(name: str, dataset: str, year: int, of: Outline) -> str:
    """The default place of a file: a lender's own file is of its LEI, a whole year of the country.

    Raises:
        SpecError: its rows are too few for the country; what it may be of is named.
    """
    published = official().published_rows(dataset_of(dataset), year, "nationwide")
    if dataset in (SUBMISSION, "modified-lar") and len(of.lenders) == 1:
        return next(iter(of.lenders)).upper()
    if dataset != SUBMISSION and (published is None or of.rows >= _LEAST_NATIONWIDE * published):
        return "nationwide"
    guesses = [f"--geo {place}" for places in (of.lenders, of.states) if len(places) == 1 for place in places]
    guess = f" by its first rows {' or '.join(guesses)};" if guesses else ""
    country = f", and about {published:,} are published of {year} for the country" if published else ""
    raise SpecError(
        f"{name} has {of.rows:,} rows{country}: give their place with --geo;{guess} a state such as TX, "
        "county-48453, msa-12420, a lender's LEI, or nationwide"
    )


def frozen_on(dataset: str, year: int, file: Path) -> date:
    """The default freeze date of a file: as published for such an edition, else the file's modification date.

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
