"""Sources by kind in the audit spec, and digests of parts of a source."""

# ruff: noqa: S608 what goes into the SQL is quoted

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.audit.source import TABLE_KINDS, Source
from schemas.audit.spec import AuditSpec
from schemas.errors import DataQualityError, Location, SpecError, nearest
from tasks.ingest.applications import database
from tasks.ingest.sources import raw
from tasks.ingest.sources.raw import COUNTED, Laid, counted, registered
from tasks.ingest.statement import Question

if TYPE_CHECKING:
    import duckdb


# --------------------------------------------------------------------------------------------------------------------
# The sources by their kind in the audit spec.


def reader_of(source: Source) -> ModuleType:
    """The module that reads a source: ``digest``, ``header`` and ``read``; each module loads its libraries itself."""
    match source.kind:
        case "boston1990":
            from tasks.ingest.sources import boston

            return boston
        case "csv" | "parquet" | "excel" | "stata" | "sas" | "spss" | "jsonl" | "feather":
            from tasks.ingest.sources import files

            return files
        case "synthetic":
            from tasks.ingest.synthetic import source as synthetic

            return synthetic
        case "hmda":
            from tasks.ingest.hmda import source as hmda

            return hmda
        case "frame":
            from tasks.ingest.sources import memory

            return memory


def digest(source: Source) -> str:
    """sha256 of the bytes of a source, those of the files that are joined to it included.

    Of a partition it is that of its rows, as they were counted, and no file is read but those that are joined.
    """
    first = source.part.rows_sha256 if source.part is not None else str(reader_of(source).digest(source))
    if not source.second_files:
        return first
    from tasks.ingest.sources import door

    digests = [first, *(door.digest_of(file) for file in source.second_files)]
    return hashlib.sha256("".join(digests).encode()).hexdigest()


@contextmanager
def lay(
    question: Question,
    columns: Sequence[str],
    connection: "duckdb.DuckDBPyConnection",
    partition_columns: Collection[str] = (),
) -> Iterator[Laid]:
    """The named columns as rows of SQL, as long as the source is open; of one partition where it names one.

    A second file is joined, and cells are read by the recipe of the source where it has one.

    Args:
        question: the parts of the spec about rows.
        columns: of the source, as ``header`` has them.
        connection: where the rows are laid.
        partition_columns: columns that partitions are cut by.
    """
    source = question.source
    if source.kind == "hmda":
        from tasks.ingest.hmda.rows import lay as lay_hmda

        with lay_hmda(source, columns, connection) as source_view:
            yield source_view
        return
    names = list(columns)
    if source.part is not None:
        partition_columns = {*partition_columns, source.part.column}
        names += [source.part.column] if source.part.column not in names else []
    reader, joins = reader_of(source), source.second_files
    elsewhere = {name for second in joins for name in second.columns}
    needed_columns = [name for name in names if name not in elsewhere]
    needed_columns = list(dict.fromkeys([*needed_columns, *(second.key.this for second in joins)]))
    if source.intake is not None and source.intake.repeats != "all":
        needed_columns = list(
            dict.fromkeys([*needed_columns, *reader.header(source)])
        )  # rows are equal in every cell of the file
    view = registered(reader.read(source, needed_columns), connection, source.part)
    for second in joins:
        from tasks.ingest.intake.join import joined
        from tasks.ingest.sources import door

        rows = registered(door.second(second, source), connection, name=f"second_rows_{len(view.columns)}")
        view = joined(view, rows, second, connection, of_attribute=second is not source.second_file)
    if source.intake is not None:
        from tasks.ingest.intake.step import read as read_cells

        view = read_cells(view, names, question, connection, partition_columns)
    yield view


def header(source: Source) -> list[str]:
    """Names of the columns of a source, those that further files give among them.

    Raises:
        SpecError: the first file lacks a key, or another file has a column that a further one is to give.
    """
    names: list[str] = list(reader_of(source).header(source))
    own_names = tuple(names)
    for second in source.second_files:
        place: Location = ("source", "with") if second is source.second_file else ("protected",)
        _check_known(second.key.this, list(own_names), place)
        if twice := sorted(set(second.columns) & set(names)):
            message = (
                f"two files have a column {twice[0]!r}; join it under no name that another file has, or leave it out"
            )
            raise SpecError(message, place)
        names += second.columns
    return names


LENDER_ID: Final = "lender_id"
"""The lender of each row, in every file of HMDA after conversion."""


def columns_read(question: Question, year_column: str | None) -> list[str]:
    """The columns of the source that an audit reads."""
    labels = [question.decision, *([question.outcome] if question.outcome else [])]
    named = [question.row_id] if question.row_id else []
    named += [label.column for label in labels]
    named += [c for p in question.protected for c in p.columns]
    derived = question.source.derive
    named += [*question.source.keep, *question.columns, *(name for d in derived.values() for name in d.columns)]
    named += [year_column] if year_column else []
    named += [LENDER_ID] if question.source.kind == "hmda" else []
    recipes = question.source.intake.columns if question.source.intake else {}
    named += [at for name in named if name in recipes and (at := recipes[name].at)]
    return list(dict.fromkeys(name for name in named if name not in derived))


def year_column_of(source: Source) -> str | None:
    """The column with the year or date of each row; for HMDA one that every file has after conversion."""
    if source.kind == "hmda":
        return raw.COLUMNS[0]
    return raw.column_of(source, header(source))


def check_columns(spec: AuditSpec) -> None:
    """Hold the columns that the spec names against the header of its source, before anything is run.

    Raises:
        SpecError: the source lacks one; it is named with its place in the spec and the nearest that exists. Or a
            derived column takes the name of one that the source has.
        DataQualityError: HMDA knows the column, and this file does not give it.
    """
    column_names = header(spec.source)
    _check_restricted(spec, column_names)
    _check_derived(spec.source, column_names)
    column_names = [*column_names, *spec.source.derive]
    named: list[tuple[Location, str]] = [(("decision", "column"), spec.decision.column)]
    if spec.row_id:
        named.append((("row_id",), spec.row_id))
    if spec.by:
        named.append((("by", "column"), spec.by.column))
    if spec.outcome:
        named.append((("outcome", "column"), spec.outcome.column))
    for i, p in enumerate(spec.protected):
        named += [(("protected", i, "columns", j), column) for j, column in enumerate(p.columns)]
    named += [(("columns", name), name) for name in spec.kept()]
    named += [(("source", "keep", name), name) for name in spec.source.keep]
    if spec.source.year_column:
        named.append((("source", "year_column"), spec.source.year_column))
    named += [(("source", "proxy"), name) for name in (spec.source.proxy.columns if spec.source.proxy else ())]
    recipes = spec.source.intake.columns if spec.source.intake else {}
    named += [(("source", "intake", "columns", name, "at"), r.at) for name, r in recipes.items() if r.at]
    for location, name in named:
        if name not in column_names and spec.source.kind == "hmda":
            _check_delivered(name)
        _check_known(name, column_names, location)


_PERSON = "first|last|middle|given|family|full|maiden|applicant|borrower|customer|client|person"
_NOT_PUBLIC = re.compile(
    rf"(^|_)(uli|universal_loan_identifier|ssn|social_security(_number)?|surname|({_PERSON})_?name|birth_?(date|day)|"
    r"date_of_birth|born|dob|street(_address)?|phone(_number)?|e_?mail(_address)?)(_|$)|^names?$"
)
"""Columns, in lower case with underscores, that files which anyone may download do not have."""
_OF_SUBMISSIONS = "uli, and exact ages, scores and dates"
"""What a lender's own submission has and public files lack."""


def _check_restricted(spec: AuditSpec, column_names: list[str]) -> None:
    """A profile that withholds little, or nothing, is refused where the rows are not public."""
    profile, place = spec.disclosure.profile, ("disclosure", "profile")
    if spec.source.kind == "hmda" and profile in ("public", "published"):
        from tasks.ingest.hmda import source

        if source.restricted(spec.source):
            raise SpecError(
                f"the source is a lender's own submission ({_OF_SUBMISSIONS}), of which `{profile}` withholds too "
                "little: set disclosure.profile to strict",
                place,
            )
    elif profile == "published":
        words = {name: re.sub(r"(?<=[a-z])(?=[A-Z])|[^0-9A-Za-z]+", "_", name).lower() for name in column_names}
        private = next((name for name, text in words.items() if _NOT_PUBLIC.search(text)), None)
        if private is not None:
            raise SpecError(
                f"the source has a column {private!r}, which files that anyone may download lack, and `published` "
                "withholds nothing: set disclosure.profile to public or strict",
                place,
            )


def unnamed_columns(spec: AuditSpec) -> tuple[str, ...]:
    """Columns of a user's own table that the spec does not name; those of HMDA and of made tables are known."""
    if spec.source.kind not in TABLE_KINDS:
        return ()
    named = {spec.row_id, spec.decision.column, spec.source.year_column, *spec.columns, *spec.source.keep}
    named |= {spec.by.column} if spec.by else set()
    named |= {spec.outcome.column} if spec.outcome else set()
    named |= {column for p in spec.protected for column in p.columns}
    named |= {name for derived in spec.source.derive.values() for name in derived.columns}
    named |= {second.key.this for second in spec.source.second_files}
    named |= set(spec.source.proxy.columns) if spec.source.proxy else set()
    return tuple(name for name in header(spec.source) if name not in named)


def _check_delivered(name: str) -> None:
    """Refuse a column that HMDA has in general and this file does not give."""
    from tasks.ingest.hmda import source

    if message := source.lacking(name):
        raise DataQualityError(message)


def _check_known(name: str, column_names: list[str], location: Location) -> None:
    if name not in column_names:
        hint = "; is source.delimiter right?" if len(column_names) == 1 else ""
        raise SpecError(f"the source has no column {name!r}; {nearest(name, column_names)}{hint}", location)


def _check_derived(source: Source, column_names: list[str]) -> None:
    """A derived column is made from a column of the source, and hides none of them."""
    for name, derived in source.derive.items():
        if name in column_names:
            message = f"the source has a column {name!r} already; give the derived one a name of its own"
            raise SpecError(message, ("source", "derive", name))
        for column in derived.columns:
            key = "rows" if derived.column is None else "column"
            _check_known(column, column_names, ("source", "derive", name, key))


# --------------------------------------------------------------------------------------------------------------------
# Digests of the rows of a source by the values of a column: what identifies the run of a partition.
#
# A digest is of all columns of the source, those that no spec names among them, and of no row's place: rows that come
# before others change no digest but their own partition's.


_LENDER: Final = "lender_id"
_LENDERS: Final = "lenders.parquet"
"""Beside the rows of a vintage, where it was counted by lender."""


def part_digests(source: Source, column: str, spill: Path | None = None) -> pa.Table:
    """Value, rows and rows_sha256 of every part of a source, as ``tasks.ingest.sources.raw.COUNTED`` says.

    Args:
        source: whose parts; that of a partition is taken whole.
        column: of the source.
        spill: folder for what does not fit into memory.

    Raises:
        EvenhandError: as readers of sources say.
    """
    full_source = source.model_copy(update={"part": None})
    cached = _held(full_source, column)
    if cached is not None:
        return cached
    with database(spill) as connection, _relation(full_source, column, connection) as relation:
        return counted(connection, relation, column)


def digest_of_part(source: Source) -> str:
    """Digest of the rows of the partition that a source names, as they are now; empty where there are none.

    Raises:
        EvenhandError: as readers of sources say.
    """
    if source.part is None:
        raise ValueError("the source is no partition's")
    rows = part_digests(source, source.part.column).to_pylist()
    return next((row["rows_sha256"] for row in rows if row["value"] == source.part.value), "")


def _held(source: Source, column: str) -> pa.Table | None:
    """The lenders that a vintage has recorded; None for another column, or a source without a record."""
    lenders = Path(source.vintage_file or "").parent / _LENDERS
    if source.vintage_file is None or column != _LENDER or not lenders.is_file():
        return None
    return pq.read_table(lenders, columns=[_LENDER, "rows", "rows_sha256"]).rename_columns(COUNTED.names).cast(COUNTED)


@contextmanager
def _relation(source: Source, column: str, connection: "duckdb.DuckDBPyConnection") -> Iterator[str]:
    """The rows as DuckDB reads them: of HMDA the converted ones, of others every column as text."""
    from tasks.ingest.hmda.canonical import CANONICAL

    if source.kind == "hmda" and column in CANONICAL:
        from tasks.ingest.hmda.rows import located, open_file

        with ExitStack() as stack:
            files = [stack.enter_context(open_file(path)) for path in located(source)]
            yield f"({' UNION ALL BY NAME '.join(f'SELECT * FROM {file.table()}' for file in files)})"
        return
    reader = reader_of(source)
    connection.register("source_rows", reader.read(source, reader.header(source)).table)
    yield "source_rows"
