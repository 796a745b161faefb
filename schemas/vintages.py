"""Valid years of decisions; vintages: editions of a year of HMDA in the lake, and their names.

HMDA has two axes of time: the year of the decisions, and the day on which the publisher froze the data of that year. So
an edition is named by year, data set, place, freeze date and the sha256 of the delivered file. Where editions come
from: ``tasks.ingest.vintages.offers``.
"""

import re
from datetime import UTC, date, datetime
from pathlib import PurePath
from typing import Annotated, Final, Literal, cast, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from schemas.errors import SpecError, nearest

FIRST_YEAR: Final = 1900
_DEPTH: Final = 6
"""Parts of a vintage's folder: ``vintages``, year, data set, place, freeze date, digest."""


def latest_year() -> int:
    """The last year that decisions can be of: a budget year may begin before its calendar year."""
    return datetime.now(UTC).year + 1


def _year(value: int) -> int:
    if not FIRST_YEAR <= value <= latest_year():
        raise ValueError(f"expected a year from {FIRST_YEAR} to {latest_year()}")
    return value


Year = Annotated[int, AfterValidator(_year)]

DatasetName = Literal[
    "historic", "snapshot", "one-year", "three-year", "dynamic", "data-browser", "modified-lar", "submission", "twin"
]
DATASETS: tuple[str, ...] = get_args(DatasetName)
SUBMISSION: Final = "submission"
"""The data set of lenders' own submissions: exact ages, credit scores and amounts, which public HMDA leaves out."""

Place = Literal["nationwide", "state", "county", "msa", "lender"]
"""What kind of place a geography names."""

_PLACES: dict[Place, str] = {
    "nationwide": r"nationwide",
    "state": r"[A-Z]{2}",
    "county": r"county-(\d{5})",
    "msa": r"msa-(\d{5})",
    "lender": r"[A-Z0-9]{20}",
}
GEOGRAPHY = "|".join(f"(?:{pattern})" for pattern in _PLACES.values())


class Vintage(BaseModel):
    """One edition of a year as the lake holds it: what was delivered, and what came of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    year: int = Field(ge=1981, le=2200)
    dataset: DatasetName
    geography: str = Field(pattern=f"^(?:{GEOGRAPHY})$")
    frozen: date
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of the file as it was delivered, still in its zip if it came in one."""
    layout: str
    rows: int = Field(ge=0)
    refused: int = Field(ge=0)
    bytes: int = Field(ge=0)
    """Of the file as it was delivered."""
    source: str
    """The address that it was fetched from, or the name of the file."""
    added: str
    """When it was added, in UTC, as ISO 8601 writes it to the microsecond."""
    converter: str = ""
    """Digest of the code and of the library that converted it; empty where nobody noted it."""
    rows_sha256: str = ""
    """Of the converted rows: of their file in version 1, of their files' names and digests in version 2."""
    version: int = Field(1, ge=1, le=2)
    """Of the layout: 1 is one file of rows in no order, 2 a folder of them by state, sorted by lender."""

    @property
    def restricted(self) -> bool:
        """Whether it is a lender's own submission: its rows are not for publication."""
        return self.dataset == SUBMISSION

    @property
    def folder(self) -> str:
        """Where its files lie, relative to the lake's root."""
        return f"vintages/{self.year}/{self.dataset}/{self.geography}/{self.frozen}/{self.sha256[:12]}"

    def __str__(self) -> str:
        """Its name for people, such as ``2022 snapshot of nationwide, frozen 2023-05-01 (0123456789ab)``."""
        return f"{self.year} {self.dataset} of {self.geography}, frozen {self.frozen} ({self.sha256[:12]})"


def words_of(file: str) -> str:
    """A vintage in words, by the path of its rows, such as ``snapshot, TX, frozen 2023-05-01 (0123...)``."""
    _, dataset, geography, frozen, digest = folder_of(file)[1:]
    return f"{dataset}, {geography}, frozen {frozen} ({digest})"


def folder_of(file: str) -> tuple[str, ...]:
    """The six parts of a vintage's folder, of the path of its rows: rows may lie one folder deeper."""
    parts = PurePath(file).parts
    last = max((i for i, part in enumerate(parts) if part == "vintages"), default=len(parts) - _DEPTH - 1)
    return parts[last : last + _DEPTH]


def dataset_of(word: str) -> DatasetName:
    """The data set of that name.

    Raises:
        SpecError: there is none.
    """
    if word not in DATASETS:
        raise SpecError(f"no kind of data set {word!r}; {nearest(word, DATASETS)}")
    return cast("DatasetName", word)


def place_of(geography: str) -> tuple[Place, str]:
    """What kind of place a geography names, and its code as the publisher writes it.

    Raises:
        SpecError: it names none.
    """
    for kind, pattern in _PLACES.items():
        if match := re.fullmatch(pattern, geography):
            return kind, match[match.lastindex or 0]
    raise SpecError(
        f"no place {geography!r}; write nationwide, the letters of a state such as TX, county-48453, msa-12420, or the "
        "LEI of a lender"
    )
