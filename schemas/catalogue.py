"""Catalogue of the HMDA files on offer: the form of ``data/sources.toml``, and look-ups in it."""

from datetime import date
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from schemas.errors import SpecError
from schemas.vintages import DatasetName, Place, place_of

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
            others = f"{year} is in: {', '.join(having)}" if having else f"no data set that is known here has {year}"
            raise SpecError(
                f"{dataset} is known for {first} to {last}; {others}. A file that you have is taken in by "
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
        """Size of the table as plain text, reckoned from the nearest year whose size is known."""
        rows = self.published_rows(dataset, year, geography)
        alike = [other for other in self.bytes if (other < _BREAK) == (year < _BREAK)]
        if rows is None or not alike:
            return None
        known = min(alike, key=lambda other: (abs(other - year), other))
        whole = self.rows["historic" if known < _BREAK else "latest"][known]
        return round(self.bytes[known] / whole * rows)
