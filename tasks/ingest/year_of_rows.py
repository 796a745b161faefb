"""Checks the year of a source's own rows against the year of the audit spec.

A year's file under another year's name would be audited as that. Rows that the spec does not keep are not judged, and
neither are rows without a year.
"""

from collections.abc import Mapping, Sequence

from schemas.audit.source import Source
from schemas.errors import DataQualityError

COLUMNS = ("activity_year", "as_of_year")
"""In which public HMDA tells the year: from 2018, and before."""

_FIRST, _LAST = 1900, 2200  # as the audit spec takes years
_SHOWN = 5


def column_of(source: Source, header: Sequence[str]) -> str | None:
    """The column that tells the year of each row; None where there is none."""
    if source.year_column is not None:
        return source.year_column
    return next((name for name in COLUMNS if name in header), None)


def year_of(name: str, column: str, found: Mapping[str, int], year: int) -> int | None:
    """The year of the rows, which is that of the spec; None where no row has one.

    Args:
        name: of the source, for the message.
        column: that tells the year.
        found: its values, as text, with the counts of the rows that are kept.
        year: of the audit spec.

    Raises:
        DataQualityError: a row is of another year, or has something else than a year there.
    """
    if not found.keys() <= {str(year)}:
        raise DataQualityError(_refusal(name, column, found, year))
    return year if found else None


def _refusal(name: str, column: str, found: Mapping[str, int], year: int) -> str:
    """What was found, and the next step. Only years are named: another value may be somebody's."""
    if not any(map(_is_year, found)):
        return f"{name}: column {column!r} holds no years; name another with source.year_column"
    others = {value: n for value, n in found.items() if value != str(year)}
    years = sorted((value for value in others if _is_year(value)), key=lambda value: -others[value])
    told = [f"{others[value]:,} of {value}" for value in sorted(years[:_SHOWN])]
    told += [f"{n:,} of further years"] if (n := sum(others[value] for value in years[_SHOWN:])) else []
    told += [f"{n:,} with something else there"] if (n := sum(others.values()) - sum(others[v] for v in years)) else []
    own = f", beside {found[str(year)]:,} of {year}" if str(year) in found else ""
    if len(found) == len(years) == 1:
        step = f"give --year {years[0]} (`year: {years[0]}` in the spec), or the file of {year}"
    else:
        step = f"give a file of {year} alone, or keep its rows alone: --set 'source.keep.{column}=[{year}]'"
    listed = f"{', '.join(told)}{own} (column {column!r})"
    return f"{name} was said to be of {year} and has rows of other years: {listed}; {step}"


def _is_year(value: str) -> bool:
    return value.isascii() and value.isdigit() and _FIRST <= int(value) <= _LAST
