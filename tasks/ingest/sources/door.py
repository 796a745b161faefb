"""What a file is and how its table is read, by its content: the source of a spec, and what was decided by a guess.

``describe`` gives a source, and ingest reads what that source says: the same rows under the same names. Scope: the form
of files. What the cells mean is the intake's, and which questions are asked of a user is the drafting's.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os.path import commonprefix
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa

from schemas.audit.intake import Intake, SecondFile
from schemas.audit.source import Source
from schemas.errors import DataQualityError, InfrastructureError, SpecError
from tasks.ingest.sources import containers, encodings, files, layout, text_form, workbooks
from tasks.ingest.sources.delimited_text import MOST_COLUMNS
from tasks.ingest.sources.layout import Layout
from tasks.ingest.sources.raw import Raw, check_regular
from tasks.ingest.sources.text_form import DELIMITERS as DELIMITERS  # words for those who describe a file
from tasks.lake.store import sha256_of

_FORM_ROWS: Final = 3_000
"""Rows of a sheet by which its form is told."""
_A_TABLE: Final = 0.5
"""Share of the records with as many cells, of a file in a zip that is a table."""
_LEGEND_WIDTHS, _LEGEND_ROWS = (2, 3), 300
"""Columns and most rows of a sheet that may be a legend: code and meaning, or column, code and meaning."""
_SHOWN, _LINE, _WORD = 12, 120, 30
"""Cells of a record that are shown, and letters of a line and of a cell."""

What = Literal[
    "encoding",
    "mojibake",
    "quotes",
    "title",
    "header_records",
    "repeated_header",
    "no_header",
    "names",
    "foot",
    "members",
    "sheets",
    "nested",
    "malformed",
]


@dataclass(frozen=True)
class Evidence:
    """One thing that was decided about the form of a file, and by what."""

    what: What
    text: str
    """What was decided, in a sentence."""
    shown: tuple[str, ...] = ()
    """What it was decided by: decoded words, lines, cells of a record, names. It may hold cells of applicants."""
    options: tuple[str, ...] = ()
    """What else it could be: other encodings, members, sheets."""
    certain: bool = False
    """Whether it is proved, so that nobody has to be asked."""


@dataclass(frozen=True)
class Described:
    """How a file is read as a table."""

    source: Source
    """Reads the file as it is described here."""
    columns: tuple[str, ...]
    """Names of the columns as the source reads them, in order."""
    rows: int
    """Rows below the header and above the foot; those that cannot be split into cells are among them."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Column -> its name as the file spells it, or the longer one that the file has beside it."""
    evidence: tuple[Evidence, ...] = ()
    titles: tuple[str, ...] = ()
    """Lines above the header: they may tell a year or a lender."""
    lost_names: Mapping[str, str] = field(default_factory=dict)
    """Name of a second header record that is not used -> the column that it stands above or below."""
    nested: tuple[str, ...] = ()
    """Columns of lists and records, which are not read."""
    legends: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """Small sheets beside the one that is read -> their records: they may tell what codes mean."""


def describe(path: Path, *, member: str | None = None, sheet: str | None = None) -> Described:
    """How a file is read as a table.

    Args:
        path: The file, packed or not.
        member: Of a zip: the file that is meant, or a pattern such as ``loans-*.csv``.
        sheet: Of a workbook: the sheet that is meant.

    Raises:
        DataQualityError: it is no table, or damaged, or larger than the limits allow.
        SpecError: it is no regular file.
        InfrastructureError: it is not there, or a library that reads it is not installed.
    """
    check_regular(path)
    if not path.is_file():
        raise InfrastructureError(f"there is no file {str(path)!r}; give the path of a table")
    try:
        member, evidence = _member(path, member)
        kind = containers.kind_of(path, containers.chosen(path, member)[0])
        source = Source(kind=kind, path=str(path), member=member, intake=Intake())
        if kind == "csv":
            described = _of_text(source, path)
        elif kind == "excel":
            described = _of_sheet(source, path, sheet)
        else:
            described = _of_columns(source, path)
    except UnicodeDecodeError as error:
        raise DataQualityError(f"{path.name} is no text in {error.encoding}; save it as UTF-8") from error
    except (OSError, pa.ArrowException, csv.Error) as error:
        raise DataQualityError(f"{path.name} could not be read as a table: {error}") from error
    if len(described.columns) > MOST_COLUMNS:
        raise DataQualityError(
            f"{path.name} has {len(described.columns):,} columns, and at most {MOST_COLUMNS:,} are read; is it a table?"
        )
    return replace(described, evidence=(*evidence, *described.evidence))


def second(file: SecondFile, first: Source) -> Raw:
    """The columns of a second file that are joined, and its key, as text; the file is read by ``describe``.

    Args:
        file: which file, key and columns.
        first: the source that it is joined to, whose words for missing and exempt it has.

    Raises:
        EvenhandError: as ``describe``; or the file lacks one of the columns.
    """
    described = describe(Path(file.path), member=file.member, sheet=file.sheet).source
    beside = described.model_copy(update={"missing": first.missing, "exempt": first.exempt})
    return files.read(beside, files.known(beside, list(dict.fromkeys((file.key.other, *file.columns)))))


def digest_of(file: SecondFile) -> str:
    """sha256 of a second file.

    Raises:
        SpecError: it is no regular file.
        InfrastructureError: it is not there.
    """
    check_regular(Path(file.path))
    if not Path(file.path).is_file():
        raise InfrastructureError(f"there is no file {file.path!r} to join; give the right path in the spec")
    return sha256_of(Path(file.path))


# --------------------------------------------------------------------------------------------------------------------
# The file of a zip that is the table.


def _member(path: Path, member: str | None) -> tuple[str | None, tuple[Evidence, ...]]:
    """The member to read, with the evidence where several could be meant."""
    listed = containers.members(path)
    if member is not None or len(listed) < 2:
        return member, ()
    tables = {entry: names for entry in listed if (names := _names_in(path, entry.name))}
    if not tables:
        raise DataQualityError(
            f"{path.name} holds {len(listed):,} files, and none reads as a table: "
            f"{', '.join(entry.name for entry in listed[:5])}; unpack it and give the table"
        )
    names_of = [entry.name for entry in tables]
    largest = max(tables, key=lambda entry: entry.size)
    if len(tables) == 1:
        return largest.name, ()
    if len(set(tables.values())) == 1 and (pattern := _pattern(names_of, [entry.name for entry in listed])):
        text = f"{path.name} holds {len(tables):,} tables with the same columns, and all are read, one after the other"
        return pattern, (Evidence("members", text, tuple(names_of), tuple(names_of)),)
    text = f"{path.name} holds {len(tables):,} tables, and the largest is read: {largest.name}"
    return largest.name, (Evidence("members", text, tuple(names_of), tuple(names_of)),)


def _names_in(path: Path, member: str) -> tuple[str, ...]:
    """The columns of a member; none where it is no table."""
    try:
        kind = containers.kind_of(path, member)
        if kind != "csv":
            return tuple(files.header(Source(kind=kind, path=str(path), member=member, intake=Intake())))
        with containers.unpacked(path, member) as stream:
            start = stream.read(text_form.HEAD)
        start = start[: start.rfind(b"\n") + 1] or start
        source = Source(
            kind="csv", path=str(path), member=member, encoding=encodings.encoding_of(lambda: [start]).encoding
        )
        form = text_form.form_of(text_form.head_of(source, path, text_form.TAIL)[0], path.name)
    except (DataQualityError, SpecError, UnicodeDecodeError, OSError, pa.ArrowException):
        return ()
    if form.layout.coverage < _A_TABLE:
        return ()
    at = form.layout.header
    return tuple(form.records[at]) if at is not None else layout.numbered_names(form.layout.width)


def _pattern(names: Sequence[str], all_names: Sequence[str]) -> str:
    """A pattern that fits these names and no other; nothing where there is none."""
    start = commonprefix(names)  # noqa: RUF071 letters are meant
    end = commonprefix([name[len(start) :][::-1] for name in names])[::-1]  # noqa: RUF071
    pattern = f"{start}*{end}"
    fits = sorted(containers.fitting(all_names, pattern)) == sorted(names)
    return pattern if fits and not set("[?") & set(pattern) else ""


# --------------------------------------------------------------------------------------------------------------------
# Delimited text.


def _of_text(source: Source, path: Path) -> Described:
    """How delimited text is read."""
    name = containers.chosen(path, source.member)[0]
    limit = "which is where reading stops"
    guess = encodings.encoding_of(lambda: containers.blocks(path, name, source.maximum_bytes, limit))
    first = source.model_copy(update={"encoding": guess.encoding, "member": name})
    head, line_number = text_form.head_of(first, path, text_form.HEAD)
    form = text_form.form_of(head, path.name)
    comment = form.comment
    if form.starts:
        first = first.model_copy(update={"starts": form.starts, "comment": comment})
    elif comment := text_form.comment_of(form):
        first = first.model_copy(update={"comment": comment})
        head, line_number = text_form.head_of(first, path, text_form.HEAD)
        form = text_form.form_of(head, path.name)
    quote: Literal["double", "none"] = "double" if form.quoting else "none"
    first = first.model_copy(update={"delimiter": form.delimiter, "quote": quote})
    named = _named(form.records, form.layout, path.name)
    line = form.lines[named.begins]
    skip = line_number(line) - 1 if line > 1 else 0
    if not comment and (again := text_form.repeated_header(form, head)):
        first = first.model_copy(update={"comment": again[0]})
        text = f"{path.name}: the line of names stands {again[1]:,} times more among the rows, and is none of them"
        repeated = Evidence("repeated_header", text, (again[0][:_LINE],))
        named = replace(named, header=named.columns, evidence=(*named.evidence, repeated))
    first = first.model_copy(update={"skip": skip, "header": named.header})
    counted_source, count, tail = text_form.counted(first, path, form.layout.width)
    foot = text_form.foot_records(counted_source, tail, form.layout)
    further = containers.chosen(path, source.member)[1:]
    counts = [
        count,
        *(text_form.count_records(counted_source.model_copy(update={"member": other}), path)[0] for other in further),
    ]
    rows = sum(counts) - len(counts) * (len(foot) + (0 if named.header else 1))
    if rows < 1:
        raise DataQualityError(f"{path.name} has a header and no row: give the whole table")
    evidence = list(named.evidence)
    if guess.mojibake:
        text = f"{path.name} holds words that were decoded wrongly before it was written; they are read as they are"
        evidence.insert(0, Evidence("mojibake", text, guess.mojibake))
    if not guess.encoding.startswith("utf"):
        text = f"{path.name} is not UTF-8, and is read as {guess.encoding}"
        evidence.insert(0, Evidence("encoding", text, guess.words, guess.alternatives, guess.certain))
    if counted_source.quote == "none" and '"' in head:
        text = f"{path.name}: double quotes are letters and enclose no cells, since some are never closed"
        evidence.append(Evidence("quotes", text))
    final = counted_source.model_copy(update={"foot": len(foot), "member": source.member})
    return named.described(final, rows, [*evidence, *_foot_evidence(foot, path.name)])


def _foot_evidence(foot: Sequence[Sequence[str]], name: str) -> Iterator[Evidence]:
    if foot:
        word = next((cell.strip() for record in foot for cell in record if layout.says_foot(cell)), "")
        named = f", of {word[:_WORD]!r}," if word else ""
        text = (
            f"{name}: the last {len(foot)} records{named} are no rows"
            if len(foot) > 1
            else f"{name}: the last record{named} is no row"
        )
        yield Evidence("foot", text, tuple(_shown(record) for record in foot))


def _shown(record: Sequence[str]) -> str:
    """A record in a line."""
    present = [cell.strip() for cell in record if cell.strip()]
    return " | ".join(present[:_SHOWN]) + (" ..." if len(present) > _SHOWN else "")


# --------------------------------------------------------------------------------------------------------------------
# Sheets of workbooks, and files whose columns have names and types.


def _of_sheet(source: Source, path: Path, sheet: str | None) -> Described:
    """How a workbook is read: by the sheet that is meant, or by the largest that holds a table."""
    first, sheets = workbooks.cells(source.model_copy(update={"sheet": sheet}), path)
    grids = {sheet or sheets[0]: first}
    for other in sheets[1:] if sheet is None else ():
        grids[other] = workbooks.cells(source.model_copy(update={"sheet": other}), path)[0]
    places = {name: place for name, grid in grids.items() if (place := layout.laid_out(_rows(grid, 0, _FORM_ROWS)))}
    if not places:
        raise DataQualityError(f"{path.name} has no table in its sheets {', '.join(map(repr, grids))}")
    best = max(places, key=lambda name: grids[name].num_rows * places[name].width)
    grid, place = grids[best], places[best]
    evidence: list[Evidence] = []
    if len(places) > 1:
        text = f"{path.name} holds {len(places)} sheets with a table, and the largest is read: {best}"
        evidence.append(Evidence("sheets", text, tuple(places), tuple(places)))
    records = _rows(grid, 0, _FORM_ROWS)
    named = _named(records, place, path.name)
    skip = grid["row"][named.begins].as_py() - 1
    tail = _rows(grid, max(grid.num_rows - layout.MOST_FOOT - 1, place.first), grid.num_rows)
    foot = tail[len(tail) - layout.foot_of(tail, place.width, place.judges) :]
    update = {"skip": skip, "foot": len(foot), "header": named.header}
    update["sheet"] = best if sheet is not None or len(sheets) > 1 else None
    final = source.model_copy(update=update)
    rows = grid.num_rows - place.first - len(foot)
    evidence += [*named.evidence, *_foot_evidence(foot, path.name)]
    described = named.described(final, rows, evidence)
    columns = tuple(files.header(final))  # without columns that are empty
    legends = {
        name: tuple(map(tuple, _rows(other, 0, other.num_rows)))
        for name, other in grids.items()
        if name != best and other.num_columns - 1 in _LEGEND_WIDTHS and other.num_rows <= _LEGEND_ROWS
    }
    return replace(described, columns=columns, legends=legends)


def _rows(grid: pa.Table, start: int, stop: int) -> list[list[str]]:
    """Some rows of a sheet, as records."""
    part = grid.drop_columns("row").slice(start, stop - start)
    return [list(row) for row in zip(*(column.to_pylist() for column in part.columns), strict=True)]


def _of_columns(source: Source, path: Path) -> Described:
    """How a file is read that gives names and types of its columns."""
    facts = [files.facts(piece, file) for piece, file in files.pieces(source)]
    names = tuple(files.header(source))
    if not names or not sum(part.rows for part in facts):
        raise DataQualityError(f"{path.name} has no rows; give a table with rows")
    evidence = []
    if nested := facts[0].nested:
        text = f"{path.name}: {len(nested)} columns hold lists or records, and are not read"
        evidence.append(Evidence("nested", text, nested, certain=True))
    labels = {name: text for name, text in facts[0].labels.items() if text != name}
    return Described(source, names, sum(part.rows for part in facts), labels, tuple(evidence), nested=nested)


# --------------------------------------------------------------------------------------------------------------------
# Names of the columns, of text and of sheets.


@dataclass(frozen=True)
class _Named:
    """The columns of a table, by the records above its rows."""

    columns: tuple[str, ...]
    header: tuple[str, ...]
    """The same where the source has to give them; empty where the file's own record does."""
    begins: int
    """The record with which what is read begins: the header, or the first row."""
    labels: dict[str, str]
    lost_names: dict[str, str]
    titles: tuple[str, ...]
    evidence: tuple[Evidence, ...]

    def described(self, source: Source, rows: int, evidence: Sequence[Evidence]) -> Described:
        """What is known of a file with these columns."""
        return Described(source, self.columns, rows, self.labels, tuple(evidence), self.titles, self.lost_names)


def _named(records: Sequence[Sequence[str]], place: Layout, name: str) -> _Named:
    """The columns by the header that was found, or numbers."""
    evidence: list[Evidence] = []
    above = min([place.first if place.header is None else place.header, *place.beside])
    titles = tuple(text for r in records[:above] if (text := _shown(r)) and not text.casefold().startswith("sep="))
    if titles:
        lines = (
            "1 line above the table is no row"
            if len(titles) == 1
            else f"{len(titles)} lines above the table are no rows"
        )
        evidence.append(Evidence("title", f"{name}: {lines}", titles))
    if place.header is None:
        columns = layout.numbered_names(place.width)
        text = f"{name} has no header: its columns are called {columns[0]} to {columns[-1]}"
        evidence.append(Evidence("no_header", text, (_shown(records[place.first]),)))
        return _Named(columns, columns, place.first, {}, {}, titles, tuple(evidence))
    spelled = records[place.header]
    columns = tuple(layout.usable_names(spelled))
    labels = {column: text for column, text in zip(columns, spelled, strict=True) if text not in ("", column)}
    repeats = len({text.strip() for text in spelled}) < len(spelled)
    if repeats or not all(text.strip() for text in spelled):
        changed = [column for column, text in zip(columns, spelled, strict=True) if text.strip() != column]
        text = f"{name}: names that are empty or stand twice are completed"
        evidence.append(Evidence("names", text, tuple(changed), certain=True))
    lost: dict[str, str] = {}
    for at in place.beside:
        lost |= {text.strip(): column for text, column in zip(records[at], columns, strict=True) if text.strip()}
        if at > place.header:
            labels |= {column: text for column, text in zip(columns, records[at], strict=True) if text.strip()}
    if place.beside:
        text = f"{name}: two records name the columns, and the one with more words does"
        evidence.append(
            Evidence("header_records", text, tuple(_shown(records[at]) for at in (place.header, *place.beside)))
        )
    below = max(place.beside, default=-1) > place.header
    lost = {text: column for text, column in lost.items() if text not in columns}
    begins = place.first if below else place.header
    return _Named(columns, columns if below else (), begins, labels, lost, titles, tuple(evidence))
