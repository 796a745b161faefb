"""Bounds that several keys of the audit spec share: seeds, years and pairs of numbers, each with its message."""

from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import AfterValidator

LARGEST_SEED: Final = 2**32 - 1
"""NumPy, scikit-learn and PyTorch together take no larger seed."""

FIRST_YEAR: Final = 1900

Pair = tuple[float | None, float | None]


def _seed(value: int) -> int:
    if value < 0:
        raise ValueError("0 at least, as the generators take no negative seed")
    if value > LARGEST_SEED:
        raise ValueError(f"at most {LARGEST_SEED}, which is what the generators take")
    return value


def latest_year() -> int:
    """The last year that decisions can be of: a budget year may begin before its calendar year."""
    return datetime.now(UTC).year + 1


def _year(value: int) -> int:
    if not FIRST_YEAR <= value <= latest_year():
        raise ValueError(f"expected a year from {FIRST_YEAR} to {latest_year()}")
    return value


def _ascending(value: Pair) -> Pair:
    low, high = value
    if low is not None and high is not None and low >= high:
        raise ValueError(f"expected the lower number first, and a higher one after it; [{low:g}, {high:g}] is neither")
    return value


Seed = Annotated[int, AfterValidator(_seed)]
Year = Annotated[int, AfterValidator(_year)]
Ascending = Annotated[Pair, AfterValidator(_ascending)]
"""Two numbers, either of which may be null for no bound; the lower one first."""
