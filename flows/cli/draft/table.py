"""The table that a spec is drafted from: delimiter, header, cells, and the words that columns are known by."""

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from shlex import quote
from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import yaml

from flows.cli.options import bundled
from schemas.audit import column
from schemas.audit.source import Source
from schemas.errors import DataQualityError, SeveralLinesError, SpecError
from tasks.ingest.sources import files
from tasks.ingest.sources.delimited_text import KeptLines
from tasks.ingest.sources.raw import Raw, canonical

# --------------------------------------------------------------------------------------------------------------------
# Words by which columns and values are told apart: decisions, protected attributes, codes, what a decision brings.


MISSING: Final = ("", "NA", "N/A", "n/a", "?", "NULL", "null", "NaN", "nan")
"""Texts that mean a missing value in tables of many origins."""

DECISION: Final = (
    *("action_taken", "decision", "approve", "approved", "approval", "denied", "deny", "denial", "accepted"),
    *("rejected", "granted", "admitted", "hired", "recid", "loan_status", "credit_risk", "creditability", "default"),
    *("defaulted", "outcome", "target", "label", "kredit", "charged_off", "repaid", "loan_paid"),
)
"""Names of decisions and outcomes, the surest first: each of their words has to be in the name of the column."""
HINT: Final = ("status", "result", "class", "event", "good", "bad", "paid", "y", "risk", "application")
"""Words that a name of a decision may have, and those of other columns too."""
AGAINST: Final = (
    "denied",
    "deny",
    "denial",
    "default",
    "defaulted",
    "reject",
    "rejected",
    "recid",
    "bad",
    "charged_off",
)
"""Words of a flag of the unfavourable outcome."""
FOR: Final = ("approve", "approved", "approval", "accepted", "granted", "admitted", "hired", "repaid", "paid", "good")
GOOD: Final = ("approved", "approve", "accepted", "accept", "granted", "good", "paid", "fully paid", "originated")
BAD: Final = (
    *("denied", "deny", "denial", "rejected", "reject", "refused", "refuse", "declined", "decline", "turned down"),
    *("not approved", "unapproved", "not accepted", "not granted", "bad", "default", "defaulted", "charged off"),
)
"""Plain words of a decision for and against the applicant; one of many words is one by the verbs below."""
_DENIES: Final = re.compile(r"\b(denied|rejected|refused|declined|turned down)\b")
_NO_DECISION: Final = re.compile(
    r"\b(withdr[ae]wn?|withdrawal|cancel+ed|cancel+ation|incomplete(?:ness)?|purchased|pending|open|expired|abandoned|"
    r"counter[ -]?offer(?:ed)?|in (?:process|progress|review)|under review|submitted|received|suspended|duplicate|test|"
    r"approved but|preapproval|by applicant|by borrower)\b"
)
"""What ends an application, or keeps it open, without a decision of the lender."""
YES, NO = ("1", "yes", "true", "y", "t"), ("0", "no", "false", "n", "f")

_PROTECTED: Final = {
    "race": ("race", "raza", "ethnic_group"),
    "ethnicity": ("ethnicity", "ethnic", "hispanic"),
    "sex": ("sex", "gender", "geschlecht", "sexe", "sexo", "genero", "famges", "personal_status"),
    "marital status": ("marital", "married", "marriage", "familienstand"),
    "origin": ("nationality", "foreign", "gastarb", "citizenship", "national_origin", "immigrant"),
    "religion": ("religion",),
    "disability": ("disability", "disabled"),
    "age": ("age", "alter", "edad", "dob", "birth", "birthdate", "age_cat"),
}
"""What a protected attribute is about, and the words by which a column names it; the first are drafted first."""
_STEMS: Final = {
    "race": re.compile(r"race(?!way)|racial"),
    "ethnicity": re.compile(r"ethni|hispan"),
    "sex": re.compile(r"sex|gender"),
    "marital status": re.compile(r"marital|married"),
    "origin": re.compile(r"nationalit|foreign"),
    "religion": re.compile(r"religi"),
    "age": re.compile(r"age(?:lt|gt|le|ge)?\d+$|agegroup|agecat|ageband"),
}
"""Beginnings of words that name one, as in agelt62 and genderid."""
_AFTER: Final = (
    *("interest_rate", "rate_spread", "apr", "denial_reason", "reason_denied", "reject_reason", "purchaser"),
    *("origination_charge", "origination_charges", "loan_costs", "points_and_fees", "discount_points"),
    *("lender_credits", "hoepa", "funded", "disbursed", "recoveries", "collection", "total_pymnt", "last_pymnt"),
    *("event", "out_prncp", "chargeoff", "adverse_action", "appeal", "denial_code"),
)
"""Words of what exists only after a decision."""
_IDENTIFIER: Final = (
    "id",
    "ids",
    "uuid",
    "guid",
    "key",
    "rowid",
    "index",
    "lei",
    "ssn",
    "account_number",
    "case_number",
)
_PLACE: Final = (
    *("county", "tract", "zip", "zipcode", "postcode", "postal", "msa", "fips", "latitude", "longitude", "lat", "lon"),
    *("address", "street", "city", "state_code", "region_code"),
)
_DATE: Final = ("date", "datetime", "timestamp")
_YEAR: Final = ("activity_year", "as_of_year", "decision_year", "application_year", "year")

_NOBODY: Final = re.compile(
    r"not (?:available|provided|applicable|reported|known|given|stated|disclosed|specified)|unknown|missing|free form|"
    r"information not|prefer not|declin(?:e|ed) to|refused|no answer|joint|exempt|^n/?a$|^none$|^\?*$",
    re.IGNORECASE,
)
"""Values of a protected attribute that are no group of people."""
_REST: Final = ("other", "others", "other race")
"""Groups of people that others can hardly be compared with."""


def folded(value: str) -> str:
    """A value without what spellings differ by: case, blanks, a final dot, and the decimals of a whole number."""
    text = " ".join(value.casefold().split()).rstrip(".").rstrip()
    return re.sub(r"^(-?\d+)\.0+$", r"\1", text)


def is_no_decision(value: str) -> bool:
    """Whether a value means that the lender did not decide: withdrawn, incomplete, purchased and similar."""
    return _NO_DECISION.search(folded(value)) is not None


def is_denial(value: str) -> bool:
    """Whether a value is a plain word of denial."""
    text = folded(value)
    return text in BAD or (_DENIES.search(text) is not None and not is_no_decision(value))


def words(name: str) -> list[str]:
    """The words of a column's name: applicantRace-1 is applicant, race, 1."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[^a-z0-9]+", apart.lower()) if word]


def says(name: str, phrase: str) -> bool:
    """Whether a name contains the words of a phrase, one after the other."""
    name_words, part = words(name), phrase.split("_")
    return any(name_words[i : i + len(part)] == part for i in range(len(name_words)))


def rank(name: str, phrases: tuple[str, ...]) -> int | None:
    """Position of the first phrase that a name contains; None without any."""
    return next((i for i, phrase in enumerate(phrases) if says(name, phrase)), None)


def protected_kind(name: str) -> str:
    """What protected attribute a column names; empty where none."""
    named = (kind for kind, phrases in _PROTECTED.items() if rank(name, phrases) is not None)
    joined = (kind for kind, stem in _STEMS.items() if any(stem.match(word) for word in words(name)))
    return next(named, "") or next(joined, "") or (column.kind_of(name) if column.is_personal(name) else "")


def kinds() -> list[str]:
    """The kinds of protected attributes, those first that are drafted first."""
    return list(_PROTECTED)


def is_after(name: str) -> bool:
    """Whether, by its name, a column is filled by the decision or after it."""
    return column.set_by_decision(name) or rank(name, _AFTER) is not None


def is_outcome(name: str) -> bool:
    """Whether a column's name is that of a decision or an outcome."""
    return rank(name, DECISION) is not None


def is_identifier(name: str) -> bool:
    """Whether a column's name is that of an identifier."""
    return rank(name, _IDENTIFIER) is not None


def is_place(name: str) -> bool:
    """Whether, by its name, a column holds codes of a place."""
    return rank(name, _PLACE) is not None


def is_date(name: str) -> bool:
    """Whether a column's name is that of a day."""
    return rank(name, _DATE) is not None


def is_year(name: str) -> bool:
    """Whether a column's name is that of the year of the decisions."""
    return "_".join(words(name)) in _YEAR


def is_nobody(group: str) -> bool:
    """Whether a value of a protected attribute is no group of people."""
    return bool(_NOBODY.search(group.strip()))


def is_rest(group: str) -> bool:
    """Whether a group is what is left of the others, and so no reference for them."""
    return group.strip().casefold() in _REST


# --------------------------------------------------------------------------------------------------------------------
# Delimiter, header and encoding of delimited text that nobody described, by its first lines.


DELIMITERS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "pipes", " ": "blanks"}
"""In the order in which they are believed: a comma may have a blank behind it."""
_HEAD, _ROWS = 2**17, 300
"""Bytes and records that are looked at."""
_ALIKE = 0.9
"""Share of the records with the same number of cells, of the right delimiter."""


@dataclass(frozen=True)
class Dialect:
    """How the first lines of a file read."""

    source: Source
    records: tuple[tuple[str, ...], ...]
    """The first records, a header included."""
    has_header: bool

    @property
    def cells(self) -> str:
        """The separator of cells, in words."""
        return DELIMITERS[self.source.delimiter]


def sniffed(path: Path) -> Dialect:
    """The delimiter that most records agree on, and whether the first record names columns.

    Raises:
        DataQualityError: the file is no text, empty, or cannot be unpacked.
    """
    chunks = iter(KeptLines(Source(kind="csv", path=str(path)), path, "utf8"))
    try:
        chunk = next(chunks, b"")
        utf8 = True
        for part in chain([chunk], chunks):
            part.decode("utf-8")
    except UnicodeDecodeError:
        utf8 = False
    except (OSError, pa.ArrowException) as error:
        raise DataQualityError(f"{path.name} could not be read as a table: {error}") from error
    if not chunk.strip():
        raise DataQualityError(f"{path.name} is empty: a header and at least one row are needed")
    head = chunk[:_HEAD].rpartition(b"\n")[0] if len(chunk) > _HEAD else chunk
    text, encoding = (head.decode("utf-8"), "utf-8") if utf8 else (head.decode("latin-1"), "latin-1")
    parted: dict[str, list[list[str]]] = {}
    for mark in DELIMITERS:
        try:
            records = islice(csv.reader(io.StringIO(text, newline=""), delimiter=mark), _ROWS)
            parted[mark] = [[cell.strip() for cell in record] for record in records if record]
        except csv.Error:
            parted[mark] = []
    best = max(DELIMITERS, key=lambda mark: _score(parted[mark]))
    if _score(parted[best]) == (False, 0):
        best = max(",|;\t", key=text.partition("\n")[0].count)
    if not parted[best]:
        raise DataQualityError(
            f"{path.name}: no row could be separated in its first {_HEAD // 1024} kB; is it a table, and are its "
            "quotes closed?"
        )
    source = Source(kind="csv", path=str(path), delimiter=best, encoding=encoding)
    return Dialect(source, tuple(map(tuple, parted[best])), _is_header(parted[best]))


def _score(records: Sequence[Sequence[str]]) -> tuple[bool, int]:
    """Whether records are alike, and into how many cells; the header counts, a cut last record does not."""
    counts = Counter(map(len, records))
    cells, alike = counts.most_common(1)[0] if counts else (0, 0)
    steady = cells > 1 and alike >= _ALIKE * len(records) and len(records[0]) == cells
    return steady, cells if steady else 0


def _is_header(records: Sequence[Sequence[str]]) -> bool:
    """Whether the first record names columns: no number over numbers, and few of its cells are values further down."""
    first, below = records[0], [record for record in records[1:] if len(record) == len(records[0])]
    if len(set(first)) < len(first) and len(set(filter(None, first))) * 2 < len(first):
        return False
    texts = repeated = 0
    for i, cell in enumerate(first):
        column = [record[i] for record in below]
        if _number(cell):
            present = [value for value in column if value]
            if sum(map(_number, present)) * 2 > len(present):
                return False
        elif cell:
            texts += 1
            repeated += cell in column
    return bool(texts) and repeated * 2 < texts


def _number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


# --------------------------------------------------------------------------------------------------------------------
# Tables that need no draft: those that a bundled spec was written for.


_FITTING: Final = 0.9
"""Share of the cells that a spec's lists of codes have to know."""


@dataclass(frozen=True)
class Example:
    """A bundled spec that fits a table."""

    title: str
    path: str
    """As a command names it."""
    header: tuple[str, ...] = ()
    """The names that it gives to the columns of a file without any."""

    def command(self, table: Path) -> str:
        """How it audits the table."""
        return f"evenhand audit {quote(self.path)} --set source.path={quote(str(table))}"


def fitting(frame: pd.DataFrame, named: Source | None) -> Example | None:
    """The bundled spec with columns and codes that a table has; ``named`` is None where the table names no column."""
    examples = [example for path in bundled() if (example := _fits(path, frame, named is not None))]
    return examples[0] if examples else None


def _fits(path: Path, frame: pd.DataFrame, has_header: bool) -> Example | None:
    raw = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    source = raw.get("source", {})
    header = tuple(map(str, source.get("header", ())))
    if source.get("kind") != "csv" or (not has_header and len(header) != frame.shape[1]):
        return None
    named = frame if has_header else frame.set_axis(list(header), axis=1)
    derived = source.get("derive", {})
    columns = {name: column for name, column in raw["columns"].items() if name not in derived}
    required = [*columns, *source.get("keep", {}), raw["decision"]["column"], *(d["column"] for d in derived.values())]
    if any(name not in named for name in required):
        return None
    # The cells have to hold the codes that the spec lists: both sides of the decision, orders, and what is derived.
    decisions = named[raw["decision"]["column"]]
    sides = [decisions.isin([_text(v) for v in raw["decision"][side]]) for side in ("favourable", "unfavourable")]
    listed = [(name, column["order"]) for name, column in columns.items() if column.get("order")]
    listed += [(d["column"], [code for codes in d["values"].values() for code in codes]) for d in derived.values()]
    known_shares = (named[name].isin([_text(code) for code in codes]).mean() for name, codes in listed)
    if not (all(side.any() for side in sides) and all(share >= _FITTING for share in known_shares)):
        return None
    return Example(raw.get("title") or raw["name"], _shown(path), header)


def _text(code: object) -> str:
    return str(code).lower() if isinstance(code, bool) else str(code)


def _shown(path: Path) -> str:
    """A path as it is given from here."""
    working_directory = Path.cwd()
    return str(path.relative_to(working_directory)) if path.is_relative_to(working_directory) else str(path)


# --------------------------------------------------------------------------------------------------------------------
# The table that a spec is drafted from: its cells as text, how they were parted, and what is to be said of that.


@dataclass(frozen=True)
class Table:
    """A table as text."""

    path: Path
    source: Source
    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    """What a user should know of the way it was read, a sentence each."""
    example: Example | None = None
    """The bundled spec that fits it."""

    @property
    def names(self) -> list[str]:
        """Its columns in order."""
        return [str(name) for name in self.frame.columns]

    def present(self, name: str) -> pd.Series:
        """The cells of a column that hold a value."""
        return self.frame[name][~self.absent(name)]

    def absent(self, name: str) -> pd.Series:
        """Which cells of a column hold a text that means missing or exempt."""
        return self.frame[name].isin([*self.source.missing, *self.source.exempt, ""])


def read_table(path: Path) -> Table:
    """All columns as text.

    Raises:
        SpecError: there is no such file, or it has one column.
        DataQualityError: it is no table.
    """
    if path.suffix == ".parquet":
        source = Source(kind="parquet", path=str(path))
        raw, has_header, notes = files.read(source, files.header(source)), True, list[str]()
    else:
        dialect = sniffed(path)
        named_source, width = dialect.source, len(dialect.records[0])
        named_notes = (
            [f"{path.name}: cells between {dialect.cells}, {width} columns"] if named_source.delimiter != "," else []
        )
        if named_source.encoding != "utf-8":
            named_notes.append(f"{path.name} is not UTF-8 text, and was read as Latin-1")
        if not dialect.has_header:
            digits = len(str(width))
            named_names = tuple(f"column_{i:0{digits}}" for i in range(1, width + 1))
            named_source = named_source.model_copy(update={"header": named_names})
        source, has_header, notes = named_source, dialect.has_header, named_notes
        source, raw = _read(source, path)
    if raw.unread:
        notes.append(f"{path.name}: {len(raw.unread):,} lines have more or fewer cells than the first, and are refused")
    frame = raw.table.to_pandas().astype(object).apply(lambda column: column.map(canonical))
    if frame.empty:
        raise SpecError(f"{path.name} has a header and no row: expected a row for each decision; give the whole table")
    used = [text for text in MISSING if text in ("", "NA") or frame.isin([text]).any(axis=None)]
    source = source.model_copy(update={"missing": tuple(used)})
    example = fitting(frame, source if has_header else None)
    if not has_header:
        names = example.header if example is not None else source.header
        source = source.model_copy(update={"header": names})
        frame.columns = pd.Index(names)
        as_ = f"named as in {example.title}" if example is not None else f"called {names[0]} to {names[-1]}: name them"
        notes.append(f"{path.name} has no header: its columns are {as_}")
    return Table(path, source, frame, tuple(notes), example)


def _read(source: Source, path: Path) -> tuple[Source, Raw]:
    try:
        return source, files.read(source, _header(source, path))
    except SeveralLinesError:  # there is no spec yet in which to allow it
        source = source.model_copy(update={"multiline": True})
        raw = files.read(source, _header(source, path))
        # Whether a cell of several lines has the delimiters of as many rows, as one between two stray quotes has.
        cells = [name for name in raw.table.column_names if "\n" in name or "\r" in name]
        for column in raw.table.columns:
            cells += pc.filter(column, pc.match_substring_regex(column, r"[\r\n]")).to_pylist()
        rest = raw.table.num_columns - 1
        if raw.unread or any(
            cell.count(source.delimiter) >= rest * (cell.count("\n") or cell.count("\r")) for cell in cells
        ):
            raise
        return source, raw


def _header(source: Source, path: Path) -> list[str]:
    names = files.header(source)
    if len(names) == 1:
        raise SpecError(
            f"{path.name} has one column, {names[0]!r}: "
            "a table has its cells between commas, pipes, semicolons, tabs or blanks"
        )
    return names
