"""Reads the table that a spec is drafted from, as ingest will read it, with the guesses about its form."""

import os
import re
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
from flows.cli.draft.table import Column, Doubt, Table, columns_of, with_derived
from flows.cli.draft.vocabulary import parts, plain
from schemas.audit.intake import Intake, JoinKey, SecondFile
from schemas.audit.source import Derived, Source
from schemas.bounds import canonical
from schemas.errors import SpecError, nearest
from schemas.terms import Refusal
from tasks.ingest.intake.missing import is_missing
from tasks.ingest.sources import files
from tasks.ingest.sources.door import DELIMITERS, Described, Evidence, describe, second
from tasks.ingest.sources.raw import Raw, Unread, registered

MOST_ROWS: Final = 200_000
"""Rows that are read whole; of more, a sample is looked at."""
MOST_CELLS, LEAST_ROWS = 40_000_000, 20_000
"""Cells that are read whole, so that 2,000 columns of 100,000 rows take no 9 GB; and the rows of the least sample."""
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
_LEAST_CODES: Final = 2
_MEANING: Final = re.compile(r"(?<![^\s|,;:(])(-?\w{1,6})\s*[=→]\s*([^|;,=→]{2,60}?)\s*(?=$|[|;,)]|\s-?\w{1,6}\s*[=→])")
_NAMED_LEGEND: Final = re.compile(r"\W*([^\W\d][^:=→|]{0,39}?)\s*:")
"""In lines around a table: a code with its meaning, `1 = Approved`, and before them the name of their column."""
_LINES: Final = "lines around the table"


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
    labels = described.labels if source.kind != "csv" else {}  # of a text file, they are how its names are spelled
    labelled = {name: replace(column, label=labels.get(name, "")) for name, column in table.columns.items()}
    table = replace(table, columns=labelled) if labels else table
    legends, doubtful, coded = _legends(described, table)
    if legends:
        derive = {legend.name: Derived(column=legend.column, values=legend.values) for legend in legends}
        source = source.model_copy(update={"derive": derive})
        table = with_derived(replace(table, source=source, columns={**table.columns, **coded}))
    doubts = [*_doubts(described, table.refused.get(Refusal.MALFORMED_LINE, 0)), *_doubts_of_join(table)]
    doubts += _doubts_of_legends(legends, doubtful)
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
    rows, waiting = cells.num_rows, list(zip(cells.column_names, cells.columns, strict=True))
    del cells
    columns = columns_of(waiting, exact, typed=source.kind != "csv")
    table = Table(path, source, columns, rows, refused=refused, joined=matches, file_rows=file_rows)
    return with_derived(table)


def _looked_at(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema
) -> tuple[pa.Table, dict[str, Mapping[str, int]], int]:
    """All rows; of many a sample, the exact counts of texts by column where they are few, and the number of rows."""
    first: list[pa.RecordBatch] = []
    most = min(MOST_ROWS, max(MOST_CELLS // len(schema), LEAST_ROWS))
    while sum(batch.num_rows for batch in first) <= most:
        batch = next(batches, None)
        if batch is None:
            return pa.Table.from_batches(first, schema), {}, 0
        first.append(batch)
    counts: dict[str, Counter[str]] = {name: Counter() for name in schema.names}
    rows = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for part in _gathered(chain(first, batches), min(_COUNTED_TOGETHER, most)):
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
        sample = f"SELECT * FROM cells USING SAMPLE reservoir({most} ROWS) REPEATABLE ({_SEED})"  # noqa: S608
        return connection.sql(sample).to_arrow_table(), dict(counts), rows


def _gathered(batches: Iterable[pa.RecordBatch], together: int) -> Iterator[pa.Table]:
    """Small batches as tables of enough rows to be counted together."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(part.num_rows for part in waiting) >= together:
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
        other = registered(second(source.second_file, source), connection, name="second_rows")
        rows_laid = joined(first, other, source.second_file, connection)
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
        common = ", ".join(_in_both(described, other))
        raise SpecError(f"--with {file.second.name}: by which column? Give --key NAME; both have {common or 'none'}")
    this, _, that = file.key.partition("=")
    key_here = _named(this, described.columns, file.path.name)
    right = _named(that or this, other.columns, file.second.name)
    names = {plain(name) for name in described.columns}
    columns = tuple(name for name in other.columns if name != right and plain(name) not in names)
    if not columns:
        raise SpecError(f"--with {file.second.name}: all its columns are in {file.path.name} too; leave it out")
    return SecondFile(path=str(file.second), key=JoinKey(this=key_here, other=right), columns=columns)


def keys_of_both(file: File) -> list[str]:
    """The columns that a table and its second file have, by which they could be joined.

    Raises:
        EvenhandError: one of them is no table.
    """
    assert file.second is not None  # noqa: S101
    return _in_both(describe(file.path, member=file.member, sheet=file.sheet), describe(file.second))


def _in_both(described: Described, other: Described) -> list[str]:
    names = {plain(name) for name in other.columns}
    return [name for name in described.columns if plain(name) in names]


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


@dataclass(frozen=True)
class _Legend:
    """What the codes of a column mean, by another sheet of its workbook, or by lines above or below the table."""

    sheet: str
    column: str
    values: Mapping[str, tuple[str, ...]]
    """Meaning -> its codes."""

    @property
    def name(self) -> str:
        """Of the column with the meanings."""
        return f"{self.column} in words"


def _legends(described: Described, table: Table) -> tuple[list[_Legend], dict[str, list[str]], dict[str, Column]]:
    """Columns with all values in a legend, each with its meaning; and legends that fit several columns, with these.

    Then the columns of which a legend tells a code that would be taken for a missing value.
    """
    out: dict[str, _Legend] = {}
    coded: dict[str, Column] = {}
    doubtful: dict[str, list[str]] = {}
    lines = tuple(_legend_of_lines(described))
    for sheet, records in (*described.legends.items(), *([(_LINES, lines)] if lines else [])):
        of_column: dict[str, dict[str, str]] = {}
        name = ""
        for *start, code, meaning in records:
            name = start[0].strip() or name if start else ""
            if code.strip() and meaning.strip():
                of_column.setdefault(plain(name), {})[plain(canonical(code))] = " ".join(meaning.split())
        for named, meanings in of_column.items():
            columns = {name: _with_codes(column, meanings) for name, column in table.columns.items()}
            fitting = [column for column in table.names if _is_told(columns[column], meanings)]
            names = (named, plain(sheet), plain(records[0][0]))
            called = [column for column in fitting if plain(column) in names]
            called = called or [column for column in fitting if set(parts(column)) <= set(parts(named))]
            chosen = called or (fitting if not named else [])
            if len(chosen) == 1 and chosen[0] not in out and f"{chosen[0]} in words" not in table.columns:
                values: dict[str, list[str]] = {}
                coded[chosen[0]] = columns[chosen[0]]
                for value in columns[chosen[0]].values:
                    values.setdefault(meanings[plain(value)], []).append(value)
                codes = {meaning: tuple(sorted(listed)) for meaning, listed in values.items()}
                out[chosen[0]] = _Legend(sheet, chosen[0], codes)
            elif len(chosen) > 1:
                doubtful[sheet] = chosen
    return list(out.values()), doubtful, coded


def _with_codes(column: Column, meanings: Mapping[str, str]) -> Column:
    """The column with its codes for missing as values, where a legend gives them another meaning."""
    texts = [meanings.get(plain(code), "") for code in column.missing_codes]
    is_value = any(text and not is_missing(text) for text in texts)
    return replace(column, has_known_codes=True) if is_value else column


def _legend_of_lines(described: Described) -> Iterator[tuple[str, str, str]]:
    """Name, code and meaning in the lines above and below the table: `Decision: 1 = Approved, 2 = Denied`."""
    foot = [line for evidence in described.evidence if evidence.what == "foot" for line in evidence.shown]
    name = ""
    for line in (*described.titles, *foot):
        meanings = _MEANING.findall(line)
        if named := _NAMED_LEGEND.match(line):
            name = named[1]
        yield from ((name, code, meaning) for code, meaning in meanings)


def _is_told(column: Column, meanings: Mapping[str, str]) -> bool:
    """Whether each value of a column has a meaning that is another text than itself, and no word for missing."""
    if column.form not in ("category", "few numbers") or len(column.values) < _LEAST_CODES:
        return False
    texts = [meanings.get(plain(value), "") for value in column.values]
    is_word = all(text and not is_missing(text) and not text.replace(".", "").isdecimal() for text in texts)
    return is_word and any(plain(text) != plain(value) for text, value in zip(texts, column.values, strict=True))


def _doubts_of_legends(legends: Sequence[_Legend], doubtful: Mapping[str, Sequence[str]]) -> Iterator[Doubt]:
    for sheet, columns in doubtful.items():
        if sheet == _LINES:
            continue  # the question on the lines shows them
        fitting = ", ".join(columns[:_SHOWN])
        text = (
            f"The sheet {sheet!r} may tell codes of {fitting}, and names no column: none is read by it. A column with "
            "their names in it, before the codes, would tell."
        )
        yield Doubt("legend", ("source.sheet",), text)
    if legends:
        listed = {
            legend.column: [f"{codes[0]} {text}" for text, codes in legend.values.items()][:_SHOWN]
            for legend in legends
        }
        words = "; ".join(f"{column}: {', '.join(meanings)}" for column, meanings in listed.items())
        places = dict.fromkeys(
            f"the {_LINES}" if legend.sheet == _LINES else f"the sheet {legend.sheet!r}" for legend in legends
        )
        text = f"What codes mean is read from {', '.join(places)} ({words})."
        yield Doubt("legend", tuple(f"source.derive.{legend.name}" for legend in legends), text)


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
