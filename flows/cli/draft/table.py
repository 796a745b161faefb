"""The table that a spec is drafted from: its cells as text, how they were parted, and what is to be said of that."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from flows.cli.draft.dialect import Dialect, sniffed
from flows.cli.draft.examples import Example, fitting
from flows.cli.draft.vocabulary import MISSING
from schemas.audit.source import Source
from schemas.errors import SeveralLinesError, SpecError
from tasks.ingest.cells import canonical
from tasks.ingest.sources import delimited
from tasks.ingest.sources.raw import Raw


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
        raw, has_header, notes = delimited.read(source, delimited.header(source)), True, list[str]()
    else:
        dialect = sniffed(path)
        source, has_header, notes = _named(dialect, path)
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


def _named(dialect: Dialect, path: Path) -> tuple[Source, bool, list[str]]:
    """The source with names for its columns where the file has none."""
    source, width = dialect.source, len(dialect.records[0])
    notes = [f"{path.name}: cells between {dialect.cells}, {width} columns"] if source.delimiter != "," else []
    if source.encoding != "utf-8":
        notes.append(f"{path.name} is not UTF-8 text, and was read as Latin-1")
    if not dialect.has_header:
        digits = len(str(width))
        names = tuple(f"column_{i:0{digits}}" for i in range(1, width + 1))
        source = source.model_copy(update={"header": names})
    return source, dialect.has_header, notes


def _read(source: Source, path: Path) -> tuple[Source, Raw]:
    try:
        return source, delimited.read(source, _header(source, path))
    except SeveralLinesError:  # there is no spec yet in which to allow it
        source = source.model_copy(update={"multiline": True})
        raw = delimited.read(source, _header(source, path))
        if raw.unread or _hold_rows(raw.table, source.delimiter):
            raise
        return source, raw


def _header(source: Source, path: Path) -> list[str]:
    names = delimited.header(source)
    if len(names) == 1:
        raise SpecError(
            f"{path.name} has one column, {names[0]!r}: "
            "a table has its cells between commas, pipes, semicolons, tabs or blanks"
        )
    return names


def _hold_rows(table: pa.Table, delimiter: str) -> bool:
    """Whether a cell of several lines has the delimiters of as many rows, as one between two stray quotes has."""
    long = [pc.filter(column, pc.match_substring_regex(column, r"[\r\n]")).to_pylist() for column in table.columns]
    cells = [name for name in table.column_names if "\n" in name or "\r" in name] + [c for some in long for c in some]
    rest = table.num_columns - 1
    return any(cell.count(delimiter) >= rest * (cell.count("\n") or cell.count("\r")) for cell in cells)
