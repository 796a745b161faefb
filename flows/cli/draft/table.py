"""The table that a spec is drafted from: its columns by their distinct texts, and how each of them reads.

Scope: what the cells are. What a column is for: `decision`, `people`, `columns`. No cell is parsed here: the functions
of intake do that, by the recipe that the draft will hold.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from flows.cli.draft.known_tables import Example
from flows.cli.draft.vocabulary import men_and_women, plain, protected_kind
from schemas.audit.source import CellRule, Derived, Source
from schemas.bounds import canonical
from tasks.ingest.intake import bands, codes, dates, numbers
from tasks.ingest.intake.folding import spellings
from tasks.ingest.intake.missing import is_missing
from tasks.ingest.intake.numbers import NumberGuess, Plain

EXEMPT: Final = "Exempt"
_ZEROS = r"\.0+$"
"""The end of numbers that are whole, which is no part of their canonical form."""
_TRIPLE = r"^-?\d{1,3}\.\d{3}$"
_UNKNOWN_SEX: Final = "u"
"""Beside letters or words for men and women."""
_LEAST_NUMBERS: Final = 2
"""Numbers that are left where others stand for a missing value: 7 and 9 are two codes, and not 7 and a missing one."""

Form = Literal["number", "few numbers", "date", "bands", "category"]


@dataclass(frozen=True)
class Column:
    """A column by its distinct texts."""

    name: str
    texts: tuple[str, ...]
    """Distinct cells, trimmed, in the order of their first rows."""
    codes: NDArray[np.int32]
    """``(rows,)`` position of the cell's text."""
    number: NumberGuess | None = None
    form: Form = "category"
    formats: tuple[str, ...] = ()
    """Of dates."""
    order: tuple[str, ...] = ()
    """Of bands, from the lowest."""
    doubt: str = ""
    """What is not certain of its dates or bands."""
    label: str = ""
    has_known_codes: bool = False
    """Whether a legend tells what its codes mean, so that none stands for a missing value."""
    exact: Mapping[str, int] = field(default_factory=dict)
    """Text -> rows of the whole file, where a sample of it is looked at and the column has few texts."""

    @cached_property
    def counts(self) -> dict[str, int]:
        """Text -> rows: of the whole file where they were counted, else of those that are looked at."""
        if self.exact:
            return {text: self.exact.get(text, 0) for text in self.texts}
        rows = np.bincount(self.codes, minlength=len(self.texts))
        return dict(zip(self.texts, rows.tolist(), strict=True))

    @cached_property
    def missing_codes(self) -> tuple[str, ...]:
        """Numbers or words that mean a missing value."""
        if self.has_known_codes:
            return ()
        if self.form in ("number", "few numbers") and self.number is not None:
            sentinels = tuple(codes.sentinels(self.number.numbers))
            return sentinels if len(self.number.numbers) - len(sentinels) >= _LEAST_NUMBERS else ()
        if self.form == "date":
            return tuple(codes.date_sentinels(self._days_with_rows()))
        words = [text for text in self.counts if plain(text) == _UNKNOWN_SEX]
        if words and not (protected_kind(self.name) == "sex" and men_and_women(self.counts)):
            words = []
        return (*codes.codes_among_words(self.counts), *words)

    def _days_with_rows(self) -> dict[str, int]:
        days: dict[str, int] = {}
        for text, rows in self.counts.items():
            if not is_missing(text, True) and (day := dates.parse(text, self.formats)) is not None:
                days[day] = days.get(day, 0) + rows
        return days

    @cached_property
    def days(self) -> tuple[str, ...]:
        """ISO date of each text of a column of dates; empty where there is none."""
        return tuple("" if text in self.absent_texts else dates.parse(text, self.formats) or "" for text in self.texts)

    @cached_property
    def absent_texts(self) -> frozenset[str]:
        """Texts that hold no value."""
        of_numbers = self.form in ("number", "date", "bands")
        numbers_here = self.number if self.form in ("number", "few numbers") else None
        texts = self.texts if numbers_here is None else (*numbers_here.missing, *numbers_here.unread)
        absent = {text for text in texts if is_missing(text, of_numbers) or text == EXEMPT}
        if numbers_here is not None:
            if gone := set(self.missing_codes):
                absent |= {text for text, number in numbers_here.values.items() if number in gone}
            absent |= set(numbers_here.missing) if self.form == "number" else set()
        elif self.form == "date":
            absent |= {
                t for t in self.texts if self.missing_codes and dates.parse(t, self.formats) in self.missing_codes
            }
            absent |= {text for text in self.texts if text in codes.ZERO_DATES}
        else:
            absent |= set(self.missing_codes)
        return frozenset(absent)

    @cached_property
    def absent(self) -> NDArray[np.bool_]:
        """``(rows,)`` whether a cell holds no value."""
        gone = self.absent_texts
        return np.array([text in gone for text in self.texts] if gone else np.zeros(len(self.texts)), bool)[self.codes]

    @cached_property
    def printed(self) -> dict[str, str]:
        """Text with a value -> the spelling that is printed."""
        return spellings({text: rows for text, rows in self.counts.items() if text not in self.absent_texts})

    @cached_property
    def values(self) -> dict[str, int]:
        """Value as it is printed -> rows, the most frequent first."""
        rows: dict[str, int] = {}
        for text, value in self.printed.items():
            rows[value] = rows.get(value, 0) + self.counts[text]
        return dict(sorted(rows.items(), key=lambda item: -item[1]))

    @property
    def numbers(self) -> NDArray[np.float64]:
        """``(rows,)`` numbers; NaN where there is none."""
        return self.numbers_of_texts[self.codes]

    @cached_property
    def numbers_of_texts(self) -> NDArray[np.float64]:
        """``(texts,)`` number of each text; NaN where there is none."""
        values = self.number.values if self.number is not None else {}
        written: Sequence[str | None] = self.texts
        if not isinstance(values, Plain) or values.odd or len(values) != len(self.texts):
            written = list(map(values.get, self.texts))
        if any(text in values for text in self.absent_texts):
            written = [None if t in self.absent_texts else value for t, value in zip(self.texts, written, strict=True)]
        numbers_read = pc.fill_null(pa.array(written, pa.string()).cast(pa.float64()), np.nan)
        return np.asarray(numbers_read.to_numpy(zero_copy_only=False), np.float64)

    @cached_property
    def groups(self) -> NDArray[np.int32]:
        """``(rows,)`` position of the cell's value in ``values``; -1 where there is none."""
        place = {value: i for i, value in enumerate(self.values)}
        of_text = [place[self.printed[text]] if text in self.printed else -1 for text in self.texts]
        return np.array(of_text, dtype=np.int32)[self.codes]

    @property
    def distinct(self) -> int:
        """Values that differ."""
        return (
            len(self.number.numbers) - len(self.missing_codes) if self.is_number and self.number else len(self.values)
        )

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers, and not categories."""
        return self.form == "number"

    @property
    def absent_rows(self) -> int:
        """Rows without a value."""
        return sum(self.counts[text] for text in self.absent_texts)

    @property
    def kept_zeros(self) -> int:
        """Rows with the number 0."""
        written = self.number.values if self.number is not None else {}
        return sum(
            self.counts[text] for text, value in written.items() if value == "0" and text not in self.absent_texts
        )

    @property
    def missing_share(self) -> float:
        """Share of the cells without a value."""
        return float(self.absent.mean()) if len(self.codes) else 1.0

    @property
    def unread(self) -> int:
        """Cells with a text that is no number."""
        return sum(self.number.unread.values()) if self.is_number and self.number is not None else 0


@dataclass(frozen=True)
class Table:
    """A table as text, column by column."""

    path: Path
    source: Source
    columns: Mapping[str, Column]
    rows: int
    """Applications: rows without a foot, broken lines and rows that no join can place."""
    notes: tuple[str, ...] = ()
    """What a user should know of the way it was read, a sentence each."""
    doubts: tuple["Doubt", ...] = ()
    """What of the way it was read has to be confirmed."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """Reason -> rows of the file that are no applications."""
    joined: Mapping[str, int] = field(default_factory=dict)
    example: Example | None = None
    """The bundled spec that fits it."""
    lost_names: Mapping[str, str] = field(default_factory=dict)
    """Name of a header record that is not used -> the column that it stands above."""
    hints: tuple[str, ...] = ()
    """Lines above the header and other texts that may tell the year."""
    repeated: int = 0
    """Rows that equal another one in every cell and that it does not hold any more."""
    file_rows: int = 0
    """Rows of the file where a sample of them is looked at; 0 where all are."""

    @property
    def names(self) -> list[str]:
        """Its columns in order."""
        return list(self.columns)

    @property
    def parts(self) -> dict[str, str]:
        """Column of the file -> the one that is made from it."""
        return {part: name for name, derived in self.source.derive.items() for part in derived.columns}

    @cached_property
    def repeats(self) -> NDArray[np.bool_]:
        """``(rows,)`` whether a row equals one above it in every cell."""
        mixed = np.zeros(self.rows, dtype=np.uint64)
        with np.errstate(over="ignore"):
            for column in self.columns.values():
                mixed = mixed * np.uint64(1099511628211) + column.codes.astype(np.uint64) + np.uint64(0x9E3779B9)
                mixed ^= mixed >> np.uint64(29)
        first = np.zeros(self.rows, dtype=bool)
        first[np.unique(mixed, return_index=True)[1]] = True
        return ~first

    def once(self) -> "Table":
        """The table without the rows that repeat another one."""
        first_rows = ~self.repeats
        columns = {name: replace(column, codes=column.codes[first_rows]) for name, column in self.columns.items()}
        return replace(self, columns=columns, rows=int(first_rows.sum()), repeated=self.rows - int(first_rows.sum()))


def with_derived(table: Table) -> Table:
    """The table with the columns that its source derives from others.

    A row for which two values hold is refused by ingest; here it has none.
    """
    columns = {
        name: _derived(name, table, derived)
        for name, derived in table.source.derive.items()
        if name not in table.columns and set(derived.columns) <= table.columns.keys()
    }
    return replace(table, columns={**table.columns, **columns}) if columns else table


def _derived(name: str, table: Table, derived: Derived) -> Column:
    def marked(column: str, rule: CellRule) -> NDArray[np.bool_]:
        cells = table.columns[column]
        if isinstance(rule, str):
            return cells.absent if rule == "absent" else ~cells.absent
        forms = {plain(code) for code in rule}
        return np.isin(cells.groups, [i for i, value in enumerate(cells.values) if plain(value) in forms])

    rules = derived.rows or {value: {derived.columns[0]: codes} for value, codes in derived.values.items()}
    rows = [np.all([marked(*rule) for rule in of_value.items()], axis=0) for of_value in rules.values()]
    place = np.where(np.sum(rows, axis=0) == 1, 1 + np.argmax(rows, axis=0), 0)
    return Column(name, ("", *rules), place.astype(np.int32))


@dataclass(frozen=True)
class Doubt:
    """Something about the way a file is read that a user has to confirm."""

    key: str
    """Of the question: `source`, `source.with`."""
    keys: tuple[str, ...]
    text: str
    evidence: tuple[tuple[str, int], ...] = ()


def columns_of(
    table: pa.Table | list[tuple[str, pa.ChunkedArray]],
    exact: Mapping[str, Mapping[str, int]] | None = None,
    typed: bool = False,
) -> dict[str, Column]:
    """The columns of a table of texts, with what their cells read as.

    Args:
        table: the rows that are looked at; a list of columns is emptied, so that no cell is held twice.
        exact: column -> text -> rows of the whole file, where the rows are a sample of it.
        typed: whether the file stores numbers as numbers, and not as text.
    """
    plain = {}
    waiting = table if isinstance(table, list) else list(zip(table.column_names, table.columns, strict=True))
    waiting.reverse()
    while waiting:
        name, cells = waiting.pop()
        encoded = pa.chunked_array(cells.chunks, pa.string()).combine_chunks().dictionary_encode()
        # texts that may be written otherwise; a regular expression for each would take most of the time
        words = encoded.dictionary
        printable = pc.and_(pc.ascii_is_printable(words), pc.equal(pc.ascii_trim_whitespace(words), words))
        changes = ~np.asarray(printable.to_numpy(zero_copy_only=False), dtype=bool)
        zero = np.asarray(pc.ends_with(words, "0").to_numpy(zero_copy_only=False), dtype=bool)
        ending = pc.match_substring_regex(words.filter(pa.array(zero, pa.bool_())), _ZEROS)
        changes[zero] |= np.asarray(ending.to_numpy(zero_copy_only=False), dtype=bool)
        as_written = _thousands(words) if changes.any() else frozenset()
        written = words.to_pylist()
        if changed := bool(changes.any()):
            for i in np.flatnonzero(changes).tolist():
                written[i] = written[i] if written[i] in as_written else canonical(written[i])
        exact_rows: dict[str, int] = {}
        for text, rows in (exact or {}).get(name, {}).items():
            text = text if text in as_written else canonical(text)
            exact_rows[text] = exact_rows.get(text, 0) + rows
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        listed: Collection[str] = written
        if changed or encoded.null_count or exact_rows:
            listed = dict.fromkeys([*written, *([""] if encoded.null_count else []), *exact_rows])
            texts = {text: i for i, text in enumerate(listed)}
            places = np.array([texts[text] for text in written], dtype=np.int32)
            codes = np.where(codes < 0, texts.get("", -1), places[codes] if len(places) else -1)
        plain[name] = Column(name, tuple(listed), codes.astype(np.int32), exact=exact_rows)
    return _read(plain, typed)


def _thousands(words: pa.Array) -> frozenset[str]:
    """Texts such as `51.000` in a column that has `51.200`, too: no 51 that is written with decimals."""
    triples = words.filter(pc.match_substring_regex(words, _TRIPLE)).to_pylist()
    return frozenset(triples) if any(not text.endswith("000") for text in triples) else frozenset()


def _read(plain: Mapping[str, Column], typed: bool) -> dict[str, Column]:
    """The same columns with their numbers, dates and bands."""
    counts = {name: column.counts for name, column in plain.items()}
    figures = numbers.guess(counts, typed)
    days = dates.guess(counts, figures, [name for name in plain if protected_kind(name)])
    out = {}
    for name, column in plain.items():
        day, figure = days.get(name), figures.get(name)
        if day is not None:
            out[name] = _as(column, form="date", formats=tuple(day.recipe.format), doubt=day.question or "")
            continue
        kind = numbers.is_number(name, figure, column.counts) if figure is not None else False
        if figure is not None and not figure.excluded and kind is not False:
            out[name] = _as(column, number=figure, form="number" if kind else "few numbers")
            continue
        order = tuple(bands.guess(column.counts) or ())
        mixed = figure if figure is not None and figure.excluded else None
        out[name] = _as(column, number=mixed, form="bands" if order else "category", order=order)
    return out


def _as(column: Column, **changes: Any) -> Column:
    """A column with other guesses about its cells, which are counted once."""
    changed = replace(column, **changes)
    vars(changed)["counts"] = column.counts
    return changed
