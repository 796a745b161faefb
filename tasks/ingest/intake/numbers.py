"""Numbers as people write them: which columns hold some, what their marks mean, and the exact value of a cell.

A comma and a full stop mean what the cells prove: in the column, else in other columns of the file. What nothing proves
is a question.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import islice
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.intake import ColumnRecipe
from tasks.ingest.intake.folding import plain_digits
from tasks.ingest.intake.missing import is_missing
from tasks.ingest.intake.units import (
    CURRENCIES,
    KNOWN,
    Affix,
    affix,
    name_words,
    names_amount,
    names_code,
    names_rate,
    unit_in_name,
)

_LEAST_SHARE: Final = Decimal("0.95")
_LEAST_DISTINCT, _SAMPLE = 7, 500
_QUESTIONABLE: Final = Decimal("0.05")
_LARGEST_POWER, _LONGEST, _THREE = 40, 80, 3

_SAME: Final = str.maketrans(
    dict.fromkeys("\u2019\u2018\u02bc\u00b4`\u2032", "'")
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
    | {"\u066b": ".", "\u066c": ",", "\u066a": "%"}  # Arabic marks of decimals and thousands, and percent
)
_INVISIBLE: Final = dict.fromkeys((0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF, 0x00AD))
_MANY: Final = 100
"""Distinct texts of a column from which on those that are canonical numbers are told in one pass."""
_PLAIN: Final = r"^-?(0\.[0-9]*[1-9]|[1-9][0-9]*(\.[0-9]*[1-9])?)$|^0$"
_PROVING: Final = r"^-?(0|[1-9][0-9]{3,})\.|\.([0-9]{1,2}|[0-9]{4,})$"
"""Of plain numbers: the full stop is before decimals, since no thousands would be written so."""
_SIMPLE: Final = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
_CELL: Final = re.compile(
    r"(?P<minus>[-+])?\s*(?P<before>[^\d\s.,'+-](?:[^\d'+-]*[^\d\s'+-])?)?\s*(?P<inner>[-+])?\s*"
    r"(?P<core>\d[\d.,' ]*\d|\d|[.,]\d+)(?:[eE](?P<power>[+-]?\d{1,3})(?!\d))?(?P<dash>[.,/:]-+)?(?P<after_minus>-)?"
    r"\s*(?P<after>[^\d\s.,'-][^\d']*)?",
    re.ASCII,
)
_GROUPED: Final = re.compile(
    r"\d+(?:[.,]\d+)?|\d{1,3}(?P<t>[.,' ])\d{3}(?:(?P=t)\d{3})*(?:(?!(?P=t))[.,]\d+)?"
    r"|\d{1,2}(?:,\d{2})*,\d{3}(?:\.\d+)?|[.,]\d+",
    re.ASCII,
)
_IN_PARENTHESES: Final = re.compile(r"([^()\d]*)\(([^()]*\d[^()]*)\)([^()\d]*)")
_NAMED_UNIT: Final = re.compile(r"(.*\d.*?)\s*\(([^()\d]+)\)")
_COMPOSITE: Final = re.compile(
    r"(?P<minus>-)?(?:(?P<hundred_millions>\d[\d,]*)\s?[億亿억]\s?)?"
    r"(?:(?P<ten_thousands>\d[\d,]*)\s?(?P<tens>[千천百백十십])?\s?[万萬만]\s?)?"
    r"(?:(?P<thousands>\d)\s?[千천]\s?)?(?P<rest>\d[\d,]*)?\s?(?P<unit>[^\d\s億亿억万萬만千천百백十십]+)?"
)
OUT_OF: Final = re.compile(r"(?P<score>\d+(?:[.,]\d{1,2})?)\s?/\s?(?P<most>5|6|10|20|30|40|50|60|100|110)", re.ASCII)
"""A mark out of the most there is, `85/100`; what is more than that is the number of a case, `345/20`."""
_NO_WORD: Final = Affix((), 0)
_TENS: Final = {"千": 1000, "천": 1000, "百": 100, "백": 100, "十": 10, "십": 10, None: 1}
_SIMPLIFIED: Final = frozenset("贷额请审绝约报总编户岁业债负资龄职险还类实际为东车银产费个贫妇")
"""Letters of Chinese that Japanese writes otherwise."""


_NORWEGIAN: Final = ("inntekt", "beløp", "søknad", "kjønn", "gjeld", "lønn", "saksnummer")
"""In names of columns that Danish writes otherwise: both have `kr`."""


@dataclass(frozen=True)
class Parsed:
    """A cell that is a number: its canonical text, and the rules that it took to read it."""

    value: str
    rules: frozenset[str]


class Sum(NamedTuple):
    """One way to read the marks of a column, the number of rows it reads and their sum."""

    reading: str
    rows: int
    total: str


@dataclass(frozen=True)
class NumberGuess:
    """How a column of numbers is to be read, and what of it is uncertain."""

    recipe: ColumnRecipe
    question: str | None = None
    evidence: tuple[Sum, ...] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)
    """Canonical number -> rows."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Text -> canonical number."""
    unread: dict[str, int] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    marked: bool = False
    """Whether some cell has a mark of decimals or thousands, a currency, a unit or a scale."""
    excluded: bool = False
    """Whether the column cannot be read, since it holds several currencies or units."""

    @property
    def certain(self) -> bool:
        """Whether nothing is to be confirmed."""
        return self.question is None


class Plain(Mapping[str, str]):
    """Canonical numbers among the texts of a column, each its own: a dict of them would take more than the texts."""

    def __init__(self, counts: Mapping[str, int], odd: Collection[str], points: bool = False) -> None:
        """``odd`` are the texts that are none; ``points``: whether another one has a full stop."""
        self.counts, self.odd, self.points = counts, odd, points

    def __contains__(self, text: object) -> bool:
        """Whether a text is one of them."""
        return text in self.counts and text not in self.odd

    def __getitem__(self, text: str) -> str:
        """The text itself."""
        if text not in self:
            raise KeyError(text)
        return text

    def __iter__(self) -> Iterator[str]:
        """In the order of the column."""
        return iter(self.counts) if not self.odd else (text for text in self.counts if text not in self.odd)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.counts) - len(self.odd)


class _Parts(NamedTuple):
    """The parts of a cell that is a number: digits with their marks, and what the words around them say."""

    core: str
    negative: bool
    units: tuple[str, ...]
    power: int
    decimal: str | None
    thousands: frozenset[str]
    marked: bool
    rules: frozenset[str]


@dataclass
class _Column:
    """The cells of a column that may be numbers."""

    parts: dict[str, _Parts]
    unmatched: dict[str, int]
    missing: dict[str, int]
    months: bool
    units: tuple[str, ...] | None
    decimal: set[str]
    thousands: set[str]
    plain: "Plain"
    """Texts that are canonical numbers by a full stop before decimals, and have no parts above."""
    points: bool = False
    """Whether one of them has a full stop."""


def parse(text: str, recipe: ColumnRecipe) -> str | None:
    """The exact number of a cell as text, such as `-1234.5`; None where the cell is none."""
    parsed = parse_cell(text, recipe)
    return None if parsed is None else parsed.value


def parse_cell(text: str, recipe: ColumnRecipe) -> Parsed | None:
    """The number of a cell with the rules that were applied: number, currency, percent, unit, scale, sign.

    A cell that proves its marks is read by them. In other cells a mark is of decimals or of thousands as the recipe has
    it; a recipe with both marks for thousands leaves such cells unread.
    """
    parts = _parts(text, recipe.unit == "months")
    if parts is None or (parts.units and recipe.unit in KNOWN and recipe.unit not in parts.units):
        return None
    value = _value(parts, recipe)
    if value is None:
        return None
    return Parsed(value, parts.rules | ({"number"} if value != text else frozenset()))


def guess(columns: Mapping[str, Mapping[str, int]], typed: bool = False) -> dict[str, NumberGuess]:
    """The columns of a file that hold numbers, and how they are read.

    Args:
        columns: column -> text -> rows.
        typed: whether the file stores numbers as such, so that a plain one is of no locale and proves nothing of texts.
    """
    candidates = {name: column for name in columns if (column := _candidate(name, columns[name])) is not None}
    proving = [c for c in candidates.values() if not typed or any(part.marked for part in c.parts.values())]
    proofs = {mark for column in proving for mark in _marks_of_decimals(column)}
    certain = Counter(column.units[0] for column in candidates.values() if column.units and len(column.units) == 1)
    letters = {letter for name in columns for letter in name}
    letters |= {letter for counts in columns.values() for text in islice(counts, 50) for letter in text}
    names = " ".join(columns).casefold()
    hints = (
        ("NOK", letters & set("øæåØÆÅ") and any(stem in names for stem in _NORWEGIAN)),
        ("DKK", letters & set("øæØÆ") or "indkomst" in names),
        ("CNY", letters & _SIMPLIFIED),
    )
    prefer = (*(unit for unit, _ in certain.most_common()), *(unit for unit, signs in hints if signs))
    proving.clear()  # so that no more parts are held than those of the columns to come
    return {name: _guessed(name, columns[name], candidates.pop(name), proofs, prefer) for name in list(candidates)}


def is_number(name: str, number: NumberGuess, counts: Mapping[str, int]) -> bool | None:
    """Whether a column that reads as numbers holds numbers and no categories; None where it has to be a question.

    Units and marks speak for numbers, then flags of 0 and 1 and names of codes against; names of amounts for, zeros in
    front against, 7 values or more for.
    """
    values = number.values
    points = values.points if isinstance(values, Plain) else any("." in value for value in number.numbers)
    if number.marked or number.recipe.unit is not None or points:
        return True
    if (len(number.numbers) < _LEAST_DISTINCT and set(number.numbers) <= {"0", "1"}) or names_code(name):
        return False
    if names_amount(name) or names_rate(name):
        return True
    odd = values.odd if isinstance(values, Plain) else {text for text in counts if text not in values}
    texts = [text.strip() for text in counts if "0" in text[:2] or text in odd]
    padded = any(len(text) > 1 and text[0] == "0" and text.isdigit() for text in texts)
    texts = [text.strip() for text in counts if not is_missing(text, of_numbers=True)] if padded else []
    if padded and len({len(text) for text in texts}) == 1:
        return False
    return True if len(number.numbers) >= _LEAST_DISTINCT else None


def _candidate(name: str, counts: Mapping[str, int]) -> _Column | None:
    """The parts of a column's cells; None where too few are numbers."""
    months = any(word.startswith(("term", "tenor", "month", "laufzeit", "plazo", "prazo")) for word in name_words(name))
    parts: dict[str, _Parts] = {}
    unmatched: dict[str, int] = {}
    missing: dict[str, int] = {}
    plain, points, proving = _plainly(counts)
    for place, text in enumerate(plain.odd):
        most = 2 * len(plain) < len(counts)
        if most and place == _SAMPLE and 2 * (_SAMPLE - len(missing) - len(unmatched)) < len(unmatched):
            return None
        rows = counts[text]
        if (number := _parts(text, months)) is not None:
            parts[text] = number
        elif is_missing(text, of_numbers=True):
            missing[text] = rows
        else:
            unmatched[text] = rows
    present = sum(counts.values()) - sum(missing.values())
    good = present - sum(unmatched.values())
    if not good or good < _LEAST_SHARE * present:
        return None
    unit_sets = {number.units for number in parts.values() if number.units}
    units: tuple[str, ...] | None = ()
    for place, further in enumerate(sorted(unit_sets, key=len)):
        units = further if place == 0 else tuple(unit for unit in units or () if unit in further)
    if unit_sets and not units:
        units = None
    decimal = {number.decimal for number in parts.values() if number.decimal} | ({"."} if proving else set())
    thousands = {mark for number in parts.values() for mark in number.thousands}
    as_months = months and units == ("months",)
    return _Column(parts, unmatched, missing, as_months, units, decimal, thousands, plain=plain, points=points)


def _plainly(counts: Mapping[str, int]) -> tuple[Plain, bool, bool]:
    """Canonical numbers of a column with many texts; whether one has a full stop, and whether that is proven."""
    if len(counts) < _MANY:
        return Plain(counts, counts.keys()), False, False
    texts = pa.array(counts, pa.string())
    fits = pc.and_(pc.match_substring_regex(texts, _PLAIN), pc.less_equal(pc.utf8_length(texts), _LONGEST))
    plain = texts.filter(fits)
    points = pc.any(pc.match_substring(plain, ".")).as_py() or False
    proving = points and (pc.any(pc.match_substring_regex(plain, _PROVING)).as_py() or False)
    if not len(plain):
        return Plain(counts, counts.keys()), False, False
    odd = dict.fromkeys(texts.filter(pc.invert(fits)).to_pylist()) if len(plain) < len(texts) else {}
    return Plain(counts, odd.keys(), points), points, proving


def _spelled_out(column: _Column, counts: Mapping[str, int]) -> _Column:
    """The same with the parts of its plain numbers, in the order of the column."""
    parts: dict[str, _Parts] = {}
    for text in counts:
        if (number := _parts(text) if text in column.plain else column.parts.get(text)) is not None:
            parts[text] = number
    return replace(column, parts=parts, plain=Plain(counts, counts.keys()), points=False)


def _guessed(
    name: str, counts: Mapping[str, int], column: _Column, proofs: set[str], prefer: Sequence[str]
) -> NumberGuess:
    if column.units is None:
        kinds = sorted({part.units[0] for part in column.parts.values() if part.units})
        question = f"{name} holds amounts in {' and '.join(kinds)}, and is left out: give one column for each."
        return NumberGuess(
            ColumnRecipe(read="text"), question, unread=dict(counts), missing=column.missing, excluded=True
        )
    words = {text: rows for text, rows in column.unmatched.items() if not _has_digit(text)}
    unit = column.units[0] if len(column.units) == 1 else unit_in_name(name, column.units or KNOWN, prefer)
    if unit is None and column.units:
        unit = next((unit for unit in prefer if unit in column.units), column.units[0])
    base = {"read": "number", "unit": unit, "missing": tuple(sorted(words))}
    marks, doubt = _marks(name, column, proofs)
    if column.plain and (doubt or column.units or (column.points and marks.get("decimal") != ".")):
        column = _spelled_out(column, counts)
        marks, doubt = _marks(name, column, proofs)
    recipe = ColumnRecipe.model_validate({**base, **marks})
    questions: list[str] = []
    evidence: tuple[Sum, ...] = ()
    if doubt:
        other = {"decimal": "." if marks.get("decimal") == "," else ",", "thousands": (marks.get("decimal", ","),)}
        readings = [recipe] if "decimal" not in marks else [recipe, ColumnRecipe.model_validate({**base, **other})]
        evidence = tuple(_sum(reading, column.parts, counts) for reading in readings)
        questions.append(doubt)
    tally: dict[str, int] = {}
    numbers: Mapping[str, int] = tally
    unread = {text: rows for text, rows in column.unmatched.items() if text not in words}
    written: dict[str, str] = {}
    values: Mapping[str, str] = written
    if column.plain and not column.parts:
        values = column.plain
        exceptions = {*column.unmatched, *column.missing}
        numbers = counts if not exceptions else {text: rows for text, rows in counts.items() if text not in exceptions}
    for text in counts if column.parts else ():
        if text in column.plain:
            value: str | None = text
        elif text in column.parts:
            value = _value(column.parts[text], recipe)
        else:
            continue
        if value is None:
            unread[text] = counts[text]
        else:
            written[text] = value
            tally[value] = tally.get(value, 0) + counts[text]
    questions += _doubts(name, counts, column, words, unread)
    shares = [
        values[text] for text, parts in column.parts.items() if column.units and not parts.units and text in values
    ]
    if column.units == ("%",) and shares and all(0 <= Decimal(share) <= 1 for share in shares):
        questions.append(f"{name}: some cells are percent and others, up to 1, look like shares; all stay as they are.")
    marked = any(part.marked for part in column.parts.values())
    missing = {**column.missing, **words}
    return NumberGuess(recipe, " ".join(questions) or None, evidence, numbers, values, unread, missing, marked)


def _marks(name: str, column: _Column, proofs: set[str]) -> tuple[dict[str, object], str | None]:
    """Decimal mark and marks of thousands for a recipe, and the question where nothing proves them."""
    present = {mark for part in column.parts.values() for mark in part.core if mark in ".,' "}
    present |= {"."} if column.points else set()
    blanks = tuple(sorted(present & {"'", " "}))
    proven = _marks_of_decimals(column)
    if len(proven) > 1:
        question = f"{name} has commas and full stops before decimals: cells that fit both ways are left unread."
        return {"thousands": (",", ".", *blanks)}, question
    marks = present & {".", ","}
    if not marks:
        return {"thousands": blanks}, None
    if proven or len(proofs) == 1:
        decimal = next(iter(proven or proofs))
        return {"decimal": decimal, "thousands": (*sorted(marks - {decimal}), *blanks)}, None
    mark = min(marks)
    example = next((text.strip() for text, part in column.parts.items() if mark in part.core), "")
    unit = next(iter(column.units or ()), None)
    rate = unit not in CURRENCIES and (unit == "%" or names_rate(name))
    decimal, reading = (mark, "decimals") if rate else (_opposite(mark), "thousands")
    question = f"{name}: `{example}` is read with {reading}, which no cell of the file proves."
    return {"decimal": decimal, "thousands": (*sorted(marks - {decimal}), *blanks)}, question


def _marks_of_decimals(column: _Column) -> set[str]:
    """The marks of decimals that the cells of a column prove, by themselves or since the other one parts thousands."""
    return column.decimal | {_opposite(mark) for mark in column.thousands if mark in ".,"}


def _opposite(mark: str) -> str:
    return "," if mark == "." else "."


def _doubts(
    name: str, counts: Mapping[str, int], column: _Column, words: Mapping[str, int], unread: Mapping[str, int]
) -> Iterable[str]:
    """What else of a column of numbers has to be confirmed."""
    if words:
        yield f"{name}: {_listed(words)} are read as missing."
    if unread:
        yield f"{name}: {_listed(unread)} are no numbers, and their rows are refused."
    present = sum(counts.values())
    unsure = {text: rows for text, rows in column.missing.items() if not is_missing(text)}
    if sum(unsure.values()) >= _QUESTIONABLE * present:
        yield f"{name}: {_listed(unsure)} are read as missing."


def _listed(texts: Mapping[str, int]) -> str:
    frequent = sorted(texts, key=lambda text: -texts[text])[:3]
    remainder = f" and {len(texts) - 3} more" if len(texts) > 3 else ""
    return ", ".join(f"`{text.strip()}` ({texts[text]:,} rows)" for text in frequent) + remainder


def _sum(recipe: ColumnRecipe, parts: Mapping[str, _Parts], counts: Mapping[str, int]) -> Sum:
    values = [(Decimal(value), counts[text]) for text in parts if (value := _value(parts[text], recipe)) is not None]
    marks = f"`{recipe.decimal}` before decimals" if recipe.decimal else "cells by their own marks"
    total = sum((value * rows for value, rows in values), Decimal(0))
    return Sum(marks, sum(rows for _, rows in values), format(total.normalize(), "f"))


def _parts(text: str, months: bool = False) -> _Parts | None:
    """The parts of a number in a cell; None where the cell is none."""
    if len(text) > _LONGEST:
        return None
    if _SIMPLE.fullmatch(text):
        negative = text[0] == "-"
        core = text[1:] if negative else text
        head, mark, tail = core.partition(".")
        decimal = "." if mark and (len(tail) != _THREE or len(head) > _THREE or head[0] == "0") else None
        return _Parts(core, negative, (), 0, decimal, frozenset(), False, frozenset())
    plain = " ".join(text.replace("`", "'").split())
    if not text.isascii():
        if any(unicodedata.category(letter) == "No" for letter in text):  # ² of a footnote is no digit, ½ no number
            return None
        plain = plain_digits(text.translate(_SAME)).translate(_SAME).translate(_INVISIBLE)
        plain = " ".join(plain.split())
    plain, negative, rules = plain.removeprefix("'"), False, set()
    if wrapped := _IN_PARENTHESES.fullmatch(plain):
        if "-" in plain:
            return None
        plain, negative = " ".join("".join(wrapped.groups()).split()), True
        rules.add("sign")
    elif named := _NAMED_UNIT.fullmatch(plain):
        plain = f"{named[1]} {named[2]}"
    if (score := OUT_OF.fullmatch(plain)) and float(score["score"].replace(",", ".")) <= int(score["most"]):
        comma, out_of = next((sign for sign in score["score"] if sign in ".,"), None), f"/{score['most']}"
        return _Parts(score["score"], negative, (out_of,), 0, comma, frozenset(), True, frozenset({"unit"}))
    match = _CELL.fullmatch(plain)
    if match is None or not _GROUPED.fullmatch(match["core"]):
        return _composite(plain)
    before, after = match["before"] or "", match["after"] or ""
    meaning = affix(f"{before} {after}".strip(), months) if before or after else None
    if (before or after) and meaning is None:
        return None
    if before:  # a currency or the sign of percent, and no other word that begins a code
        units = (affix(before) or _NO_WORD).units
        if not units or (units[0] != "%" and units[0] not in CURRENCIES):
            return None
    minus = [part for part in ("minus", "inner", "after_minus") if match[part] == "-"]
    if len(minus) + negative > 1 or (match["minus"] and match["inner"]):
        return None
    decimal, thousands = _proof(match["core"])
    if match["dash"] and match["dash"][0] in ".,":
        parting = {mark for mark in match["core"] if mark in ".,"}
        decimal, thousands = (None if match["dash"][0] in parting else match["dash"][0]), thousands | parting
    power = 0
    if match["power"]:
        power = int(match["power"])
        marks = [mark for mark in match["core"] if mark in ".,"]
        if len(marks) > 1 or abs(power) > _LARGEST_POWER or thousands & {"'", " "}:
            return None
        decimal = marks[0] if marks else None
        rules.add("scale")
    if meaning is not None and meaning.power:
        rules.add("scale")
    units = meaning.units if meaning else ()
    if units:
        rules.add("percent" if units == ("%",) else "currency" if units[0] in CURRENCIES else "unit")
    if minus and (match["after_minus"] or match["inner"]):
        rules.add("sign")
    marked = bool(units or rules or set(match["core"]) & set(".,' "))
    powers = power + (meaning.power if meaning else 0)
    return _Parts(match["core"], negative or bool(minus), units, powers, decimal, thousands, marked, frozenset(rules))


def _proof(core: str) -> tuple[str | None, frozenset[str]]:
    """What a cell proves: its mark of decimals and its marks of thousands; nothing where both are possible."""
    marks = [mark for mark in core if mark in ".,"]
    groups = {mark for mark in core if mark in "' "}
    if len(set(marks)) == 2:
        return marks[-1], frozenset({marks[0]} | groups)
    if len(marks) > 1:
        return None, frozenset({marks[0]} | groups)
    if not marks:
        return None, frozenset(groups)
    head, _, tail = core.partition(marks[0])
    if len(tail) != 3 or len(head) > 3 or head[:1] in ("", "0"):
        return marks[0], frozenset(groups)
    return None, frozenset()


def _value(parts: _Parts, recipe: ColumnRecipe) -> str | None:
    """The number of a cell by the marks that it proves, else by those of the recipe."""
    if parts.core.isdigit() and not parts.power:
        return _canonical(parts.negative, parts.core, "", 0, False)
    decimal, marks = parts.decimal, {mark for mark in parts.core if mark in ".,"}
    usual: str | None = recipe.decimal or next((mark for mark in ".," if mark not in recipe.thousands), None)
    if decimal is None and not parts.thousands and marks:
        mark = marks.pop()
        if mark == usual:
            decimal = mark
        elif mark not in recipe.thousands or usual is None:
            return None
    integer, fraction = parts.core, ""
    if decimal is not None and decimal in parts.core:
        integer, _, fraction = parts.core.rpartition(decimal)
    integer = "".join(filter(str.isdigit, integer))
    number = _canonical(parts.negative, integer, fraction, parts.power, usual != ".")
    return number if len(number) <= _LONGEST else None


def _canonical(negative: bool, integer: str, fraction: str, power: int, guarded: bool) -> str:
    """The text of a number: no zeros that say nothing, a full stop before decimals."""
    digits, places = integer + fraction, len(fraction) - power
    if places <= 0:
        integer, fraction = digits + "0" * -places, ""
    else:
        digits = digits.rjust(places + 1, "0")
        integer, fraction = digits[:-places], digits[-places:].rstrip("0")
    integer = integer.lstrip("0") or "0"
    # A recipe with commas before decimals would read 1.234 as a thousand: a fourth decimal proves the full stop.
    if guarded and len(fraction) == 3 and integer != "0" and len(integer) <= 3:
        fraction += "0"
    number = f"{integer}.{fraction}" if fraction else integer
    return f"-{number}" if negative and number != "0" else number


def _composite(plain: str) -> _Parts | None:
    """A number of East Asia in ten thousands: `1億2000万円`, `3만 5천원`."""
    match = _COMPOSITE.fullmatch(plain)
    if match is None or not any(match[part] for part in ("hundred_millions", "ten_thousands", "thousands")):
        return None
    meaning = affix(match["unit"]) if match["unit"] else None
    if match["unit"] and (meaning is None or meaning.power):
        return None
    sizes = {"hundred_millions": 10**8, "ten_thousands": 10**4 * _TENS[match["tens"]], "thousands": 1000, "rest": 1}
    total = sum(int(match[part].replace(",", "")) * size for part, size in sizes.items() if match[part])
    rules = {"scale"} | ({"currency"} if meaning and meaning.units[0] in CURRENCIES else set())
    units = meaning.units if meaning else ()
    return _Parts(str(total), bool(match["minus"]), units, 0, None, frozenset(), True, frozenset(rules))


def _has_digit(text: str) -> bool:
    return any(letter.isdigit() for letter in text)
