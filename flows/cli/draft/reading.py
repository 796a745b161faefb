"""Reads the table that a spec is drafted from, as ingest will read it, with the guesses about its form."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from flows.cli.draft.known_tables import fitting
from flows.cli.draft.table import Doubt, Table, columns_of
from flows.cli.draft.vocabulary import plain
from schemas.audit.intake import Intake, JoinKey, SecondFile
from schemas.audit.source import Source
from schemas.errors import SpecError, nearest
from schemas.terms import Refusal
from tasks.ingest.sources import files
from tasks.ingest.sources.door import DELIMITERS, Described, Evidence, describe, second
from tasks.ingest.sources.raw import Raw, Unread, registered

MOST_ROWS: Final = 200_000
"""Rows that are read whole; of more, a sample is looked at."""
_SEED: Final = 482
_MOST_TEXTS: Final = 5_000
"""Distinct texts of a column that are counted in all rows: of decisions, groups, ages, days and categories."""
_COUNTED_TOGETHER: Final = 131_072
_KEYS: Final = {
    "encoding": "encoding",
    "mojibake": "encoding",
    "quotes": "quote",
    "title": "skip",
    "header_records": "skip",
    "repeated_header": "comment",
    "no_header": "header",
    "names": "header",
    "foot": "foot",
    "members": "member",
    "sheets": "sheet",
    "nested": "",
    "malformed": "",
}
"""What a guess is about -> the key of the source that it sets."""
_SHOWN: Final = 6


@dataclass(frozen=True)
class File:
    """The file of a draft, and the options of a user about it."""

    path: Path
    member: str | None = None
    sheet: str | None = None
    second: Path | None = None
    key: str | None = None
    """Column that both files have; `THIS=OTHER` where it has two names."""


def read_file(file: File) -> Table:
    """The table of a file, described by its content.

    Raises:
        EvenhandError: there is no such file, it is no table, or a second file cannot be joined.
    """
    described = describe(file.path, member=file.member, sheet=file.sheet)
    if not described.rows:
        raise SpecError(
            f"{file.path.name} has a header and no row: expected a row for each decision; give the whole table"
        )
    if len(described.columns) == 1:
        raise SpecError(
            f"{file.path.name} has one column, {described.columns[0]!r}: a table has its cells between "
            "commas, pipes, semicolons, tabs or blanks"
        )
    source = described.source
    if file.second is not None:
        source = source.model_copy(update={"second_file": _second(file, described)})
    table = read_source(source, file.path)
    doubts = [*_doubts(described, table.refused.get(Refusal.MALFORMED_LINE, 0)), *_doubts_of_join(table)]
    notes = list(_notes(described))
    if table.file_rows:
        notes.append(
            f"drafted from a sample of {table.rows:,} of its {table.file_rows:,} rows; values of the decision, of "
            "groups and of categories are counted in all rows"
        )
    example = fitting({name: c.counts for name, c in table.columns.items()}, not described.source.header)
    if example is not None and source.header and len(example.header) == len(source.header):
        pairs = zip(example.header, table.columns.values(), strict=True)
        table = replace(table, columns={name: replace(column, name=name) for name, column in pairs})
        source = source.model_copy(update={"header": example.header})
        notes.append(f"its columns are named as in {example.title}")
    return replace(
        table, source=source, notes=tuple(notes), doubts=tuple(doubts), example=example, hints=described.titles,
        lost_names=described.lost_names,
    )  # fmt: skip


def read_source(source: Source, path: Path) -> Table:
    """The table that a source reads: its applications, joined with a second file where it names one.

    Raises:
        EvenhandError: as ingest.
    """
    names = files.header(source)
    unread: list[Unread] = []
    refused, matches = dict[str, int](), dict[str, int]()
    if source.second_file is not None:
        raw = files.read(source, names)
        cells, matches, outside = _joined(raw, source)
        unread += raw.unread
        refused |= {"outside_join": outside} if outside else {}
        batches, names = iter(cells.to_batches()), cells.column_names
    else:
        batches = files.batches(source, names, unread)
    schema = pa.schema([(name, pa.string()) for name in names])
    cells, exact, file_rows = _looked_at(batches, schema)
    for row in unread:
        refused[str(row.reason)] = refused.get(str(row.reason), 0) + 1
    columns = columns_of(cells, exact, typed=source.kind != "csv")
    return Table(path, source, columns, cells.num_rows, refused=refused, joined=matches, file_rows=file_rows)


def _looked_at(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema
) -> tuple[pa.Table, dict[str, Mapping[str, int]], int]:
    """All rows; of many a sample, the exact counts of texts by column where they are few, and the number of rows."""
    first: list[pa.RecordBatch] = []
    while sum(batch.num_rows for batch in first) <= MOST_ROWS:
        batch = next(batches, None)
        if batch is None:
            return pa.Table.from_batches(first, schema), {}, 0
        first.append(batch)
    counts: dict[str, Counter[str]] = {name: Counter() for name in schema.names}
    rows = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for part in _gathered(chain(first, batches)):
            rows += part.num_rows
            for name in list(counts):
                values = pc.value_counts(part[name])
                if len(values) <= _MOST_TEXTS:
                    counts[name].update(dict(zip(*(half.to_pylist() for half in values.flatten()), strict=True)))
                if len(values) > _MOST_TEXTS or len(counts[name]) > _MOST_TEXTS:
                    del counts[name]
            yield from part.to_batches()

    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("cells", pa.RecordBatchReader.from_batches(schema, counted()))
        sample = f"SELECT * FROM cells USING SAMPLE reservoir({MOST_ROWS} ROWS) REPEATABLE ({_SEED})"  # noqa: S608
        return connection.sql(sample).to_arrow_table(), dict(counts), rows


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Small batches as tables of enough rows to be counted together."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(part.num_rows for part in waiting) >= _COUNTED_TOGETHER:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _joined(raw: Raw, source: Source) -> tuple[pa.Table, dict[str, int], int]:
    """Rows with the columns of the second file, the counts of the join, and rows that have two partners."""
    from tasks.ingest.intake.join import joined

    assert source.second_file is not None  # noqa: S101
    names = [*raw.table.column_names, *source.second_file.columns]
    with duckdb.connect() as connection:
        first = registered(raw, connection)
        other = registered(second(source), connection, name="second_rows")
        rows_laid = joined(first, other, source.second_file.key, source.second_file.columns, connection)
        chosen = ", ".join(f"c{i}" for i in range(len(rows_laid.columns)))
        outside = f"q{len(rows_laid.quarantined) - 1}"
        rows = connection.sql(f"SELECT {chosen} FROM ({rows_laid.rows}) WHERE NOT {outside} ORDER BY place")  # noqa: S608
        cells = rows.to_arrow_table().rename_columns(names)
        ((out,),) = connection.sql(f"SELECT count_if({outside}) FROM ({rows_laid.rows})").fetchall()  # noqa: S608
        return cells, dict(rows_laid.joined), out


def _second(file: File, described: Described) -> SecondFile:
    """The second file with its key and the columns that the first one does not have."""
    assert file.second is not None  # noqa: S101
    other = describe(file.second)
    if file.key is None:
        common = [name for name in described.columns if plain(name) in {plain(n) for n in other.columns}]
        raise SpecError(
            f"--with {file.second.name}: by which column? Give --key NAME; both have {', '.join(common) or 'none'}"
        )
    this, _, that = file.key.partition("=")
    key_here = _named(this, described.columns, file.path.name)
    right = _named(that or this, other.columns, file.second.name)
    names = {plain(name) for name in described.columns}
    columns = tuple(name for name in other.columns if name != right and plain(name) not in names)
    if not columns:
        raise SpecError(f"--with {file.second.name}: all its columns are in {file.path.name} too; leave it out")
    return SecondFile(path=str(file.second), key=JoinKey(this=key_here, other=right), columns=columns)


def _named(name: str, names: Sequence[str], file: str) -> str:
    if name in names:
        return name
    alike = [other for other in names if plain(other) == plain(name)]
    if len(alike) == 1:
        return alike[0]
    raise SpecError(f"--key {name}: {file} has no such column; {nearest(name, list(names))}")


def _notes(described: Described) -> Iterator[str]:
    source = described.source
    if source.starts:
        yield f"cells below each other, {len(described.columns)} columns"
    elif source.kind == "csv" and source.delimiter != ",":
        yield f"cells between {DELIMITERS.get(source.delimiter, 'other signs')}, {len(described.columns)} columns"
    for evidence in described.evidence:
        if evidence.what in ("no_header", "malformed", "nested", "members", "sheets", "mojibake"):
            yield evidence.text


def _doubts(described: Described, malformed: int) -> Iterator[Doubt]:
    """The guesses about the form of the file, and the lines that are no rows, as one question."""
    guesses: list[Evidence] = [evidence for evidence in described.evidence if not evidence.certain]
    keys = tuple(dict.fromkeys(f"source.{_KEYS[e.what]}" for e in guesses if _KEYS.get(e.what)))
    if described.source.multiline:
        keys = (*keys, "source.multiline")
    texts = [evidence.text for evidence in guesses]
    if described.source.multiline:
        texts.append("cells in quotes go over several lines")
    if malformed:
        texts.append(
            f"{malformed:,} lines are refused, as they cannot be cut into the cells of a row"
            if malformed > 1
            else "1 line is refused, as it cannot be cut into the cells of a row"
        )
    if texts:
        examples = [(" | ".join(cell for cell in e.shown if cell)[:120], 0) for e in guesses if e.shown]
        yield Doubt("source", keys or ("source.kind",), f"{'; '.join(texts)}.", tuple(examples[:_SHOWN]))


def _doubts_of_join(table: Table) -> Iterator[Doubt]:
    if table.source.second_file is None:
        return
    counts = table.joined
    text = (
        f"{counts['matched']:,} applications have a row in {Path(table.source.second_file.path).name}, "
        f"{counts['unmatched']:,} have none, and {counts['unused']:,} of its rows belong to no application."
    )
    if counts["matched"] < 0.95 * (counts["matched"] + counts["unmatched"]):
        text = f"Few rows match: {text}"
    yield Doubt("source.with", ("source.with",), text, tuple(counts.items()))


def source_of(raw: dict[str, object], folder: Path) -> Source:
    """The source of a written spec, with its files in the folder of the spec or here.

    Raises:
        SpecError: the part `source` is not right.
    """
    source = Source.model_validate(raw)
    if source.kind in ("hmda", "synthetic", "boston1990"):
        raise SpecError(f"a source of kind {source.kind} is no table of your own, and nothing of it was drafted")
    places = tuple(str(_placed(path, folder)) for path in source.paths)
    source = source.lying_at(places)
    if source.second_file is not None:
        other = source.second_file.model_copy(update={"path": str(_placed(source.second_file.path, folder))})
        source = source.model_copy(update={"second_file": other})
    return source.model_copy(update={"intake": source.intake or Intake()})


def _placed(path: str, folder: Path) -> Path:
    beside = folder / path
    if Path(path).is_absolute() or not beside.is_file():
        return Path(path)
    return Path(os.path.relpath(beside)) if not folder.is_absolute() else beside
