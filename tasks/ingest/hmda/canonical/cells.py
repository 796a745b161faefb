"""One cell of an HMDA file as SQL: its value, and the conditions under which it has none.

In the rows that are selected from, a blank cell is null. Nothing is cast in silence: a cell that gives no value is
blank, a word of the filing guides, or told of as unknown or unusable. Scope: codes, labels, numbers and fixed digits.
Which column is read how: ``columns``.
"""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from schemas.table import Column
from schemas.terms import Refusal
from tasks.ingest.hmda.canonical.codes import EXEMPT, NOT_APPLICABLE

SQL_TYPES = {"string": "VARCHAR", "double": "DOUBLE", "int64": "BIGINT", "int32": "INTEGER", "bool": "BOOLEAN"}
"""Type of a declared column -> type of SQL."""


def quoted(name: str) -> str:
    """A name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def parquet(file: Path) -> str:
    """A Parquet file, or the files in the folders of a directory, as a table of SQL."""
    if not file.is_dir():
        return f"read_parquet({literal(str(file))})"
    return f"read_parquet({listed(map(str, sorted(file.glob('*/*.parquet'))))}, hive_partitioning = false)"


def listed(texts: Iterable[str]) -> str:
    """Texts as a list of SQL."""
    return f"[{', '.join(map(literal, texts))}]"


def enumeration(codes: Iterable[str]) -> str:
    """Codes as a type of SQL: no other value can be held, and Parquet takes it as text with these as dictionary."""
    return f"ENUM ({', '.join(map(literal, codes))})"


def joined(pairs: Iterable[tuple[str, str]]) -> str:
    """SQL of the names, joined by commas, whose condition holds; null where none does."""
    told = list(pairs)
    if not told:
        return "NULL::VARCHAR"
    names = ", ".join(f"CASE WHEN {condition} THEN {literal(name)} END" for name, condition in told)
    return f"CASE WHEN {any_of(condition for _, condition in told)} THEN concat_ws(',', {names}) END"


def any_of(conditions: Iterable[str]) -> str:
    """SQL of whether one of the conditions holds."""
    return " OR ".join(f"({condition})" for condition in conditions) or "false"


@dataclass(frozen=True)
class Cell:
    """How one canonical column is read off a file."""

    column: str
    source: str
    """The file's column."""
    kind: Literal["code", "number"]
    value: str
    """SQL of the value, over the file's columns."""
    words: tuple[str, ...] = ()
    """Codes as filed that say nothing, beside NA."""

    @property
    def filed(self) -> str:
        """Name under which the text as filed is handed on beside the value."""
        return quoted(f"{self.column} as filed")

    @property
    def selected(self) -> str:
        """The value and the text as filed, for a list of columns."""
        return f"{self.value} AS {quoted(self.column)}, {quoted(self.source)} AS {self.filed}"

    @property
    def unknown(self) -> str:
        """SQL of whether a code was filed that is not known; NA is none."""
        null = f"{quoted(self.column)} IS NULL AND {self.filed} NOT IN ({_among(NOT_APPLICABLE, *self.words)})"
        return f"{null} AND {_plain(self.filed)} NOT IN ({_among(*self.words)})" if self.words else null

    @property
    def exempt(self) -> str:
        """SQL of whether the number need not be reported."""
        return f"{self.filed} = {literal(EXEMPT)}"

    @property
    def blank(self) -> str:
        """SQL of whether the cell is empty."""
        return f"{self.filed} IS NULL"

    @property
    def absent(self) -> str:
        """SQL of whether the cell says nothing: blank, or a word in place of the value."""
        return f"{quoted(self.column)} IS NULL AND coalesce({self.filed} IN ({_among(NOT_APPLICABLE, EXEMPT)}), true)"

    def faulty(self, declared: Column) -> str:
        """SQL of whether the number cannot be used for any of the reasons that ``faults`` tells apart."""
        low = -_GREATEST if declared.minimum is None else declared.minimum
        high = _GREATEST if declared.maximum is None else declared.maximum
        return f"NOT ({quoted(self.column)} BETWEEN {low!r} AND {high!r})"

    def faults(self, declared: Column) -> dict[Refusal, str]:
        """Reason -> SQL of the condition under which the number cannot be used, the first that holds."""
        return {
            Refusal.NOT_A_NUMBER: f"{self.faulty(declared)} AND TRY_CAST({self.filed} AS DOUBLE) IS NULL",
            Refusal.NOT_FINITE: f"NOT isfinite({quoted(self.column)})",
            Refusal.FAILED_EXPECTATION: self.faulty(declared),
        }


_GREATEST = sys.float_info.max


def number(column: str, source: str, scale: int = 1, digits: int | None = None) -> Cell:
    """A number, times ``scale``; rounded where the files carry the noise of single precision.

    What is no number and no word becomes NaN, which no range holds: so one comparison finds every fault.
    """
    text = quoted(source)
    value = f"coalesce(TRY_CAST({text} AS DOUBLE), 'NaN'::DOUBLE)" + (f" * {scale}" if scale != 1 else "")
    value = value if digits is None else f"round({value}, {digits})"
    # the words are taken out before the cast: to try a cast that fails costs ten times one that does not
    plain = f"{text} <> {literal(NOT_APPLICABLE)} AND {text} <> {literal(EXEMPT)}"
    return Cell(column, source, "number", f"CASE WHEN {plain} THEN {value} END")


def code(column: str, source: str, known: Iterable[str], words: Iterable[str] = ()) -> Cell:
    """A code as an enumeration, with what spreadsheets and padding make of it taken off: 5.0, 05, blanks around it.

    ``words`` are codes as filed that say nothing: they become null.
    """
    text, codes = quoted(source), enumeration(known)
    for word in words:
        text = f"nullif({text}, {literal(word)})"
    mended = f"CASE WHEN {text} IS NOT NULL THEN TRY_CAST({_plain(text)} AS {codes}) END"
    return Cell(column, source, "code", f"coalesce(TRY_CAST({text} AS {codes}), {mended})", tuple(words))


def _plain(text: str) -> str:
    """SQL of a code without what spreadsheets and padding make of it."""
    as_number = f"TRY_CAST({text} AS DOUBLE)"
    return (
        f"CASE WHEN {as_number} = floor({as_number}) THEN TRY_CAST(TRY_CAST({as_number} AS BIGINT) AS VARCHAR) "
        f"ELSE trim({text}) END"
    )


def _among(*texts: str) -> str:
    return ", ".join(map(literal, texts))


def label(column: str, source: str, codes: Mapping[str, str]) -> Cell:
    """The code that a label stands for."""
    said = " ".join(f"WHEN {literal(name)} THEN {literal(value)}" for name, value in codes.items())
    return Cell(column, source, "code", f"CASE trim({quoted(source)}) {said} END")


def digits(column: str, source: str, length: int) -> Cell:
    """So many digits, of which leading zeros may have been lost."""
    text = quoted(source)
    whole = f"CASE WHEN length({text}) = {length} THEN {text} ELSE lpad({text}, {length}, '0') END"
    return Cell(column, source, "code", f"CASE WHEN regexp_full_match({text}, '[0-9]{{1,{length}}}') THEN {whole} END")
