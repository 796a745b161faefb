"""Codes for missing values: -999 among incomes, 99 among races, 1900-01-01 among dates."""

from collections.abc import Collection, Mapping
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.audit.intake import ColumnRecipe
from tasks.ingest.intake.folding import fold
from tasks.ingest.intake.missing import is_missing
from tasks.ingest.intake.numbers import parse

_NINES: Final = tuple(int(sign + "9" * length) for sign in ("", "-") for length in range(1, 11))
CODES: Final = frozenset(
    map(Decimal, (*_NINES, 0, -1, -2, -7, -8, -77, -88, 77, 88, 777, 888, 1111, 7777, 8888, -7777, -8888, 365243))
)
"""Numbers that programs and surveys put for a missing value."""
_TEXTS: Final = frozenset(map(str, CODES))
_EXACT: Final = 15
"""Digits up to which different numbers are different floats."""
DATES: Final = frozenset(
    ("1900-01-01", "1899-12-30", "1899-12-31", "1901-01-01", "1960-01-01", "1970-01-01", "9999-12-31")
)
ZERO_DATES: Final = frozenset(("0", "00000000", "0000-00-00", "00/00/0000", "00.00.0000", "0000/00/00", "00-00-0000"))
_ANY_MARKS: Final = ColumnRecipe.model_validate({"read": "number", "decimal": ".", "thousands": ","})
_LEAST_ROWS, _LEAST_OTHERS, _WORD_SHARE = 3, 20, 0.8
_QUARTILES: Final = (Decimal("0.25"), Decimal("0.75"))


def sentinels(numbers: Mapping[str, int]) -> dict[str, int]:
    """Codes for missing among canonical numbers -> their rows.

    They stand three times or more, and apart from all other values: by more than their interquartile range, or by sign
    alone, negative where no other number is or positive where none is.
    """
    written = {text: Decimal(text) for text in _TEXTS if numbers.get(text, 0) >= _LEAST_ROWS}
    candidates = set(written.values())
    if not candidates or sum(numbers.values()) - sum(numbers[text] for text in written) < _LEAST_OTHERS:
        return {}
    low, high, apart = _ends({text: count for text, count in numbers.items() if text not in written})
    return {
        text: count
        for text, count in numbers.items()
        if (code := written.get(text)) is not None
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
            plain = format(number.normalize(), "f")
            rows[plain] = rows.get(plain, 0) + present[text]
        apart = {Decimal(text) for text in sentinels(rows)}
        return {text: count for text, count in codes.items() if numbers[text] in apart}
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


class _Ends(NamedTuple):
    """The least and the largest number of some rows, and the distance between their quartiles."""

    low: Decimal
    high: Decimal
    apart: Decimal


def _ends(numbers: Mapping[str, int]) -> _Ends:
    """Of canonical numbers with their rows, by the row at each place."""
    texts, rows = list(numbers), np.fromiter(numbers.values(), np.int64, len(numbers))
    if max(map(len, texts)) > _EXACT:  # two may have one float
        order = np.array(sorted(range(len(texts)), key=lambda place: Decimal(texts[place])))
    else:
        order = np.argsort(pa.array(texts).cast(pa.float64()).to_numpy(), kind="stable")
    below, total = np.cumsum(rows[order]), int(rows.sum())
    places = [int(np.searchsorted(below, int(share * total), side="right")) for share in _QUARTILES]
    first, third = (Decimal(texts[order[min(place, len(texts) - 1)]]) for place in places)
    return _Ends(Decimal(texts[order[0]]), Decimal(texts[order[-1]]), third - first)


def _number(text: str) -> Decimal | None:
    if text[:1].isalpha():
        return None
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
