"""Numbers as people write them: which columns hold some, what their marks mean, and the exact value of a cell.

A comma and a full stop mean what the cells prove: in the column, else in other columns of the file. What nothing proves
is a question.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import Final, NamedTuple

from schemas.audit.intake import ColumnRecipe
from tasks.ingest.intake.missing import is_missing
from tasks.ingest.intake.units import (
    CURRENCIES,
    KNOWN,
    affix,
    name_words,
    names_amount,
    names_code,
    names_rate,
    unit_in_name,
)

_LEAST_SHARE, _LEAST_WITH_A_WORD = Decimal("0.95"), Decimal("0.6")
_LEAST_DISTINCT, _SAMPLE, _MANY_WORDS = 7, 500, 2
_QUESTIONABLE: Final = Decimal("0.05")
_LARGEST_POWER: Final = 40

_SAME: Final = str.maketrans(
    dict.fromkeys("\u2019\u2018\u02bc\u00b4`\u2032", "'") | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
)
_INVISIBLE: Final = dict.fromkeys((0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF, 0x00AD))
_SIMPLE: Final = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
_CELL: Final = re.compile(
    r"(?P<minus>[-+])?\s*(?P<before>[^\d\s.,'+-](?:[^\d'+-]*[^\d\s'+-])?)?\s*(?P<inner>[-+])?\s*"
    r"(?P<core>\d[\d.,' ]*\d|\d|[.,]\d+)(?:[eE](?P<power>[+-]?\d{1,3})(?!\d))?(?P<dash>[.,]-+)?(?P<after_minus>-)?"
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
_TENS: Final = {"千": 1000, "천": 1000, "百": 100, "백": 100, "十": 10, "십": 10, None: 1}
_SIMPLIFIED: Final = frozenset("贷额请审绝约报总编户岁业债负资龄职险还类实际为东车银产费个贫妇")
"""Letters of Chinese that Japanese writes otherwise."""


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
    numbers: dict[str, int] = field(default_factory=dict)
    """Canonical number -> rows."""
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
    others: dict[str, int]
    missing: dict[str, int]
    months: bool
    units: tuple[str, ...] | None
    decimal: set[str]
    thousands: set[str]


def parse(text: str, recipe: ColumnRecipe) -> str | None:
    """The exact number of a cell as text, such as `-1234.5`; None where the cell is none, or is missing."""
    parsed = parse_cell(text, recipe)
    return None if parsed is None else parsed.value


def parse_cell(text: str, recipe: ColumnRecipe) -> Parsed | None:
    """The number of a cell with the rules that were applied: number, currency, percent, unit, scale, sign.

    A cell that proves its marks is read by them. Of the others, a mark is of decimals or of thousands as the recipe has
    it; where the recipe has both marks for thousands, they prove nothing and the cell is unread.
    """
    parts = _parts(text, recipe.unit == "months")
    if parts is None or (parts.units and recipe.unit in KNOWN and recipe.unit not in parts.units):
        return None
    value = _value(parts, recipe)
    if value is None:
        return None
    return Parsed(value, parts.rules | ({"number"} if value != text else frozenset()))


def guess(columns: Mapping[str, Mapping[str, int]]) -> dict[str, NumberGuess]:
    """The columns of a file that hold numbers, and how they are read: column -> text -> rows in, guesses out."""
    candidates = {name: column for name, counts in columns.items() if (column := _candidate(name, counts)) is not None}
    proofs = {mark for column in candidates.values() for mark in _marks_of_decimals(column)}
    prefer = _preferred(columns, candidates.values())
    return {name: _guessed(name, columns[name], column, proofs, prefer) for name, column in candidates.items()}


def is_number(name: str, number: NumberGuess, counts: Mapping[str, int]) -> bool | None:
    """Whether a column that reads as numbers holds numbers and no categories; None where it has to be a question.

    Units, marks and names of amounts speak for numbers; zeros in front, names of codes, flags of 0 and 1 and fewer than
    7 values against.
    """
    if number.marked or number.recipe.unit is not None or any("." in value for value in number.numbers):
        return True
    if set(number.numbers) <= {"0", "1"}:
        return False
    if names_amount(name) or names_rate(name):
        return True
    texts = [text.strip() for text in counts if not is_missing(text, of_numbers=True)]
    padded = any(len(text) > 1 and text[0] == "0" and text.isdigit() for text in texts)
    if (padded and len({len(text) for text in texts}) == 1) or names_code(name):
        return False
    return True if len(number.numbers) >= _LEAST_DISTINCT else None


def _candidate(name: str, counts: Mapping[str, int]) -> _Column | None:
    """The parts of a column's cells; None where too few are numbers or a word beside them is unknown."""
    months = any(word.startswith(("term", "tenor", "month", "laufzeit", "plazo", "prazo")) for word in name_words(name))
    parts: dict[str, _Parts] = {}
    others: dict[str, int] = {}
    missing: dict[str, int] = {}
    for place, (text, rows) in enumerate(counts.items()):
        if place == _SAMPLE and 2 * len(parts) < len(others):
            return None
        if not _SIMPLE.fullmatch(text) and is_missing(text, of_numbers=True):
            missing[text] = rows
        elif (read := _parts(text, months)) is not None:
            parts[text] = read
        else:
            others[text] = rows
    good = sum(counts[text] for text in parts)
    present = good + sum(others.values())
    words = len({text.casefold().strip() for text in others}) <= _MANY_WORDS and not any(map(_has_digit, others))
    least = _LEAST_WITH_A_WORD if words and len(parts) >= _LEAST_DISTINCT else _LEAST_SHARE
    if not good or good < least * present:
        return None
    unit_sets = {read.units for read in parts.values() if read.units}
    units: tuple[str, ...] | None = ()
    for place, further in enumerate(sorted(unit_sets, key=len)):
        units = further if place == 0 else tuple(unit for unit in units or () if unit in further)
    if unit_sets and not units:
        units = None
    decimal = {read.decimal for read in parts.values() if read.decimal}
    thousands = {mark for read in parts.values() for mark in read.thousands}
    return _Column(parts, others, missing, months and units == ("months",), units, decimal, thousands)


def _guessed(
    name: str, counts: Mapping[str, int], column: _Column, proofs: set[str], prefer: Iterable[str]
) -> NumberGuess:
    if column.units is None:
        kinds = sorted({part.units[0] for part in column.parts.values() if part.units})
        question = f"{name} holds amounts in {' and '.join(kinds)}, and is left out: give one column for each."
        return NumberGuess(
            ColumnRecipe(read="text"), question, unread=dict(counts), missing=column.missing, excluded=True
        )
    words = {text: rows for text, rows in column.others.items() if not _has_digit(text)}
    unit = _unit(name, column.units, prefer)
    base = {"read": "number", "unit": unit, "missing": tuple(sorted(words))}
    marks, doubt = _marks(name, column, proofs)
    recipe = ColumnRecipe.model_validate({**base, **marks})
    questions: list[str] = []
    evidence: tuple[Sum, ...] = ()
    if doubt:
        other = {"decimal": "." if marks.get("decimal") == "," else ",", "thousands": (marks.get("decimal", ","),)}
        readings = [recipe] if "decimal" not in marks else [recipe, ColumnRecipe.model_validate({**base, **other})]
        evidence = tuple(_sum(reading, counts) for reading in readings)
        questions.append(doubt)
    numbers: dict[str, int] = {}
    unread = {text: rows for text, rows in column.others.items() if text not in words}
    for text in column.parts:
        value = parse(text, recipe)
        if value is None:
            unread[text] = counts[text]
        else:
            numbers[value] = numbers.get(value, 0) + counts[text]
    questions += _doubts(name, counts, column, words, unread)
    marked = any(part.marked for part in column.parts.values())
    missing = {**column.missing, **words}
    return NumberGuess(recipe, " ".join(questions) or None, evidence, numbers, unread, missing, marked)


def _marks(name: str, column: _Column, proofs: set[str]) -> tuple[dict[str, object], str | None]:
    """Decimal mark and marks of thousands for a recipe, and the question where nothing proves them."""
    seen = {mark for part in column.parts.values() for mark in part.core if mark in ".,' "}
    blanks = tuple(sorted(seen & {"'", " "}))
    if len(column.decimal) > 1 or column.decimal & column.thousands:
        words = "decimals after a comma and after a full stop"
        return {"thousands": (",", ".", *blanks)}, f"{name} has {words}: cells that fit both ways are left unread."
    proven = _marks_of_decimals(column)
    if len(proven) > 1:
        words = "commas and full stops between thousands"
        return {"thousands": (",", ".", *blanks)}, f"{name} has {words}: cells that fit both ways are left unread."
    marks = seen & {".", ","}
    if not marks:
        return {"thousands": blanks}, None
    doubt: str | None = None
    decimal = next(iter(proven or proofs), ".")
    if not proven and len(proofs) != 1:
        mark = min(marks)
        example = next(text for text, part in column.parts.items() if mark in part.core).strip()
        unit = next(iter(column.units or ()), None)
        rate = unit not in CURRENCIES and (unit == "%" or names_rate(name))
        decimal = mark if rate else _opposite(mark)
        doubt = (
            f"{name}: `{example}` is read with {'decimals' if rate else 'thousands'}, which no cell of the file proves."
        )
    return {"decimal": decimal, "thousands": tuple(sorted(marks - {decimal})) + blanks}, doubt


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
    percent = sum(counts[text] for text, part in column.parts.items() if part.units == ("%",))
    shares = [text for text, part in column.parts.items() if not part.units]
    if percent and shares and all(abs(Decimal(_digits_value(column.parts[text]))) <= 1 for text in shares):
        yield f"{name}: some cells are percent and others, up to 1, look like shares: all are read as they stand."


def _listed(texts: Mapping[str, int]) -> str:
    frequent = sorted(texts, key=lambda text: -texts[text])[:3]
    more = f" and {len(texts) - 3} more" if len(texts) > 3 else ""
    return ", ".join(f"`{text.strip()}` ({texts[text]:,} rows)" for text in frequent) + more


def _sum(recipe: ColumnRecipe, counts: Mapping[str, int]) -> Sum:
    values = [(Decimal(value), rows) for text, rows in counts.items() if (value := parse(text, recipe)) is not None]
    marks = f"`{recipe.decimal}` before decimals" if recipe.decimal else "cells by their own marks"
    total = sum((value * rows for value, rows in values), Decimal(0))
    return Sum(marks, sum(rows for _, rows in values), format(total.normalize(), "f"))


def _unit(name: str, units: tuple[str, ...], prefer: Iterable[str]) -> str | None:
    """The unit of a column: from its cells; of several that they may mean, the one in its name or of its file."""
    if not units:
        return unit_in_name(name)
    if len(units) == 1:
        return units[0]
    return unit_in_name(name, units) or next((unit for unit in prefer if unit in units), units[0])


def _preferred(columns: Mapping[str, Mapping[str, int]], candidates: Iterable[_Column]) -> tuple[str, ...]:
    """Currencies of the file: those of columns that name theirs, then those that its letters suggest."""
    certain = Counter(column.units[0] for column in candidates if column.units and len(column.units) == 1)
    letters = {letter for name in columns for letter in name}
    letters |= {letter for counts in columns.values() for text in islice(counts, 50) for letter in text}
    hints = (("DKK", letters & set("øæØÆ")), ("CNY", letters & _SIMPLIFIED))
    return (*(unit for unit, _ in certain.most_common()), *(unit for unit, signs in hints if signs))


def _parts(text: str, months: bool = False) -> _Parts | None:
    """The parts of a number in a cell; None where the cell is none."""
    if _SIMPLE.fullmatch(text):
        negative = text[0] == "-"
        core = text[1:] if negative else text
        decimal, thousands = _proof(core)
        return _Parts(core, negative, (), 0, decimal, thousands, False, frozenset())
    plain = _plain(text)
    negative, rules = False, set()
    if wrapped := _IN_PARENTHESES.fullmatch(plain):
        if "-" in plain:
            return None
        plain, negative = " ".join("".join(wrapped.groups()).split()), True
        rules.add("sign")
    elif named := _NAMED_UNIT.fullmatch(plain):
        plain = f"{named[1]} {named[2]}"
    match = _CELL.fullmatch(plain)
    if match is None or not _GROUPED.fullmatch(match["core"]):
        return _composite(plain)
    before, after = match["before"] or "", match["after"] or ""
    said = affix(f"{before} {after}".strip(), months) if before or after else None
    if (before or after) and (said is None or (before and not affix(before, months))):
        return None
    if before and not _may_stand_before(before):
        return None
    minus = [part for part in ("minus", "inner", "after_minus") if match[part] == "-"]
    if len(minus) + negative > 1 or (match["minus"] and match["inner"]):
        return None
    decimal, thousands = _proof(match["core"])
    if match["dash"]:
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
    if said is not None and said.power:
        rules.add("scale")
    units = said.units if said else ()
    if units:
        rules.add("percent" if units == ("%",) else "currency" if units[0] in CURRENCIES else "unit")
    if minus and (match["after_minus"] or match["inner"]):
        rules.add("sign")
    marked = bool(units or rules or set(match["core"]) & set(".,' "))
    powers = power + (said.power if said else 0)
    return _Parts(match["core"], negative or bool(minus), units, powers, decimal, thousands, marked, frozenset(rules))


def _plain(text: str) -> str:
    """The text with one kind of digits, blanks, minus signs and apostrophes."""
    plain = text
    if not text.isascii():
        plain = unicodedata.normalize("NFKC", text.translate(_SAME)).translate(_SAME).translate(_INVISIBLE)
        plain = "".join(str(unicodedata.decimal(letter)) if letter.isdecimal() else letter for letter in plain)
    return " ".join(plain.replace("`", "'").split())


def _may_stand_before(before: str) -> bool:
    """Whether a word stands before numbers: a currency or the sign of percent, and no letter that begins a code."""
    said = affix(before)
    if said is None or not said.units:
        return False
    return said.units[0] == "%" or (said.units[0] in CURRENCIES and not re.fullmatch("[a-zA-Z]", before))


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
    if groups or len(tail) != 3 or len(head) > 3 or head[:1] in ("", "0"):
        return marks[0], frozenset(groups)
    return None, frozenset()


def _value(parts: _Parts, recipe: ColumnRecipe) -> str | None:
    """The canonical text of a number: no zeros that say nothing, a full stop before decimals."""
    decimal, marks = parts.decimal, {mark for mark in parts.core if mark in ".,"}
    usual = _usual_mark(recipe)
    if decimal is None and not parts.thousands and marks:
        mark = marks.pop()
        if mark == usual:
            decimal = mark
        elif mark not in recipe.thousands or usual is None:
            return None
    whole, fraction = parts.core, ""
    if decimal is not None and decimal in parts.core:
        whole, _, fraction = parts.core.rpartition(decimal)
    whole = "".join(filter(str.isdigit, whole))
    return _canonical(parts.negative, whole, fraction, parts.power, usual != ".")


def _usual_mark(recipe: ColumnRecipe) -> str | None:
    """The mark of decimals of a recipe; None where it leaves that to the cells."""
    if recipe.decimal is not None:
        return recipe.decimal
    return next((mark for mark in ".," if mark not in recipe.thousands), None)


def _canonical(negative: bool, whole: str, fraction: str, power: int, guarded: bool) -> str:
    digits, places = whole + fraction, len(fraction) - power
    if places <= 0:
        whole, fraction = digits + "0" * -places, ""
    else:
        digits = digits.rjust(places + 1, "0")
        whole, fraction = digits[:-places], digits[-places:].rstrip("0")
    whole = whole.lstrip("0") or "0"
    # A recipe with commas before decimals would read 1.234 as a thousand: a fourth decimal proves the full stop.
    if guarded and len(fraction) == 3 and whole != "0" and len(whole) <= 3:
        fraction += "0"
    number = f"{whole}.{fraction}" if fraction else whole
    return f"-{number}" if negative and number != "0" else number


def _digits_value(parts: _Parts) -> str:
    """The number of a cell with a mark of decimals wherever it could have one."""
    decimal = parts.decimal or next((mark for mark in parts.core if mark in ".,"), "")
    whole, _, fraction = parts.core.rpartition(decimal) if decimal in parts.core and decimal else (parts.core, "", "")
    return _canonical(parts.negative, "".join(filter(str.isdigit, whole)), fraction, parts.power, False)


def _composite(plain: str) -> _Parts | None:
    """A number of East Asia in ten thousands: `1億2000万円`, `3만 5천원`."""
    match = _COMPOSITE.fullmatch(plain)
    if match is None or not any(match[part] for part in ("hundred_millions", "ten_thousands", "thousands")):
        return None
    said = affix(match["unit"]) if match["unit"] else None
    if match["unit"] and (said is None or said.power):
        return None
    sizes = {"hundred_millions": 10**8, "ten_thousands": 10**4 * _TENS[match["tens"]], "thousands": 1000, "rest": 1}
    total = sum(int(match[part].replace(",", "")) * size for part, size in sizes.items() if match[part])
    rules = {"scale"} | ({"currency"} if said and said.units[0] in CURRENCIES else set())
    units = said.units if said else ()
    return _Parts(str(total), bool(match["minus"]), units, 0, None, frozenset(), True, frozenset(rules))


def _has_digit(text: str) -> bool:
    return any(letter.isdigit() for letter in text)
