"""Valid years of decisions."""

from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import AfterValidator

FIRST_YEAR: Final = 1900


def latest_year() -> int:
    """The last year that decisions can be of: a budget year may begin before its calendar year."""
    return datetime.now(UTC).year + 1


def _year(value: int) -> int:
    if not FIRST_YEAR <= value <= latest_year():
        raise ValueError(f"expected a year from {FIRST_YEAR} to {latest_year()}")
    return value


Year = Annotated[int, AfterValidator(_year)]
