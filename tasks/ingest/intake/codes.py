"""Codes for missing values: -999 among incomes, 99 among races, 1900-01-01 among dates."""

from collections.abc import Collection, Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

from schemas.audit.intake import ColumnRecipe
from tasks.ingest.intake.folding import fold
from tasks.ingest.intake.missing import is_missing
from tasks.ingest.intake.numbers import parse

_NINES: Final = tuple(int(sign + "9" * length) for sign in ("", "-") for length in range(1, 11))
CODES: Final = frozenset(
    map(Decimal, (*_NINES, 0, -1, -2, -7, -8, -77, -88, 77, 88, 777, 888, 1111, 7777, 8888, -7777, -8888, 365243))
)
"""Numbers that programs and surveys put for a missing value."""
DATES: Final = frozenset(
    ("1900-01-01", "1899-12-30", "1899-12-31", "1901-01-01", "1960-01-01", "1970-01-01", "9999-12-31")
)
ZERO_DATES: Final = frozenset(("0", "00000000", "0000-00-00", "00/00/0000", "00.00.0000", "0000/00/00", "00-00-0000"))
_ANY_MARKS: Final = ColumnRecipe.model_validate({"read": "number", "decimal": ".", "thousands": ","})
_LEAST_ROWS, _LEAST_OTHERS, _WORD_SHARE = 3, 20, 0.8


def sentinels(numbers: Mapping[str, int]) -> dict[str, int]:
    """Codes for missing among canonical numbers -> their rows.

    They stand three times or more, and apart from all other values: by more than their interquartile range, or by sign
    alone, negative where no other number is or positive where none is.
    """
    rows = {Decimal(text): count for text, count in numbers.items()}
    candidates = {number for number, count in rows.items() if number in CODES and count >= _LEAST_ROWS}
    rest = sorted((number, count) for number, count in rows.items() if number not in candidates)
    if not candidates or sum(count for _, count in rest) < _LEAST_OTHERS:
        return {}
    low, high = rest[0][0], rest[-1][0]
    apart = _at(rest, Decimal("0.75")) - _at(rest, Decimal("0.25"))
    return {
        text: count
        for text, count in numbers.items()
        if (code := Decimal(text)) in candidates
        and (code < low - apart or code > high + apart or code < 0 <= low or high <= 0 < code)
    }


def codes_among_words(counts: Mapping[str, int]) -> dict[str, int]:
    """Codes for missing in a column of words, of bands or of codes -> their rows; 0 among words may be a value."""
    present = {text: count for text, count in counts.items() if not is_missing(text)}
    numbers = {text: number for text in present if (number := _number(text)) is not None}
    codes = {text: present[text] for text, number in numbers.items() if number in CODES and number != 0}
    if codes and len(numbers) == len(present):  # 9 beside the codes 1 to 4
        rows: dict[str, int] = {}
        for text, number in numbers.items():
            rows[str(number)] = rows.get(str(number), 0) + present[text]
        apart = sentinels(rows)
        return {text: count for text, count in codes.items() if str(numbers[text]) in apart}
    words = sum(count for text, count in present.items() if parse(text, _ANY_MARKS) is None)
    rest = sum(count for text, count in present.items() if text not in codes) - words
    return codes if words and words >= _WORD_SHARE * (words + rest) else {}


def date_sentinels(dates: Mapping[str, int]) -> dict[str, int]:
    """Codes for a missing date in ISO form, three times or more and outside of the rest -> their rows."""
    rest = [date for date in dates if date not in DATES]
    if not rest:
        return {}
    low, high = min(rest), max(rest)
    return {
        date: rows
        for date, rows in dates.items()
        if date in DATES and rows >= _LEAST_ROWS and not low[:4] <= date[:4] <= high[:4]
    }


def is_code(value: str, codes: Collection[str]) -> bool:
    """Whether a cell, canonical number, ISO date or word, is one of a recipe's codes; `-999` is `-999.0`."""
    if value in codes:
        return True
    number, form = _number(value), fold(value)
    return any(form == fold(code) or (number is not None and number == _number(code)) for code in codes)


def _at(numbers: list[tuple[Decimal, int]], share: Decimal) -> Decimal:
    """The number at this share of the rows of ascending numbers."""
    place = int(share * sum(count for _, count in numbers))
    for number, count in numbers:
        place -= count
        if place < 0:
            return number
    return numbers[-1][0]


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
