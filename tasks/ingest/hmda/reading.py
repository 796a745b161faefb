"""The rows of HMDA files for one audit: the canonical columns that its spec names, as text.

Where a file departs from its layout, the policy of the spec decides, here. What the columns mean is in ``canonical``.
"""
# ruff: noqa: S608 what goes into the SQL is quoted, or a name of ours

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from schemas.audit.source import Source
from schemas.errors import DataQualityError, SpecError, nearest
from schemas.tables.hmda import EXEMPT_CODE
from schemas.terms import Refusal
from tasks.ingest import year_of_rows
from tasks.ingest.hmda.applications import OpenFile, columns_of, open_file
from tasks.ingest.hmda.canonical.cells import literal, parquet, quoted
from tasks.ingest.hmda.canonical.codes import CANONICAL
from tasks.ingest.hmda.canonical.derived import DERIVED
from tasks.ingest.hmda.identity import identity
from tasks.ingest.sources import delimited
from tasks.ingest.sources.raw import Raw

_PLACE, _YEAR = "its place", "its year"  # beside the columns of the spec, which may name source_row and activity_year


def digest(source: Source) -> str:
    """sha256 of the file, as it was delivered; of several files, that of their digests in order.

    That of a vintage is the same whenever the same file was converted by the same code.

    Raises:
        SpecError: the source names a vintage, and nobody has looked up its file.
        InfrastructureError: a file is not there.
    """
    digests = [identity(path) for path in delimited.locate(_placed(source))]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def header(source: Source) -> list[str]:
    """Canonical columns that every file gives, and then the files' own that no layout knows.

    Under a policy other than `stop` the canonical columns that a file does not give are among them, too.

    Raises:
        DataQualityError: a file has no known layout, or columns of its own and the policy says to stop.
        InfrastructureError: a file is not there.
    """
    given, own = [], []
    for path in delimited.locate(_placed(source)):
        columns, unknown = columns_of(path)
        _check_unknown_columns(path.name, unknown, source)
        given.append(columns)
        own.append(unknown)
    stops = source.policy.missing_columns == "stop"
    kept = [name for name in CANONICAL if not stops or all(name in columns for columns in given)]
    return [*kept, *(name for name in own[0] if all(name in unknown for unknown in own))]


def read(source: Source, columns: Sequence[str]) -> Raw:
    """The named columns as text: what is missing or not applicable is empty, what need not be reported is Exempt.

    Codes are those of the canonical table, numbers give back the same number.

    Raises:
        DataQualityError: no known layout, rows of another year than the source is of, or a departure at which the
            policy says to stop.
        InfrastructureError: a file is not there.
    """
    parts, before = [], 0
    for path in delimited.locate(_placed(source)):
        with open_file(path) as file:
            _check_unknown_columns(file.name, file.own, source)
            part = _read(file, source, columns, before)
        parts.append(part)
        before += part.table.num_rows + len(part.unread)
    return _joined(parts)


def lacking(name: str) -> str | None:
    """What to do about a canonical column that the source does not give; None of another name."""
    if name not in CANONICAL:
        return None
    return (
        f"the file gives no {name!r}: its layout has no such column, or no row has a value there. `evenhand backfill` "
        "leaves out what a year lacks; else take it out of the spec, or set source.policy.missing_columns: accept"
    )


def _placed(source: Source) -> Source:
    if not source.paths:
        raise SpecError(
            "source.vintage names an edition that the lake holds: `evenhand backfill SPEC --years YEAR` looks it up; "
            "an audit of one file takes source.path",
            ("source", "vintage"),
        )
    return source


def _read(file: OpenFile, source: Source, columns: Sequence[str], before: int) -> Raw:
    """The rows of one file in its order, numbered after those of the files before it."""
    _check_known(file, columns)
    named = [name for name in columns if name in CANONICAL]
    cells = "".join(f", {_text(name, source)} AS {quoted(name)}" for name in named)
    flags = "".join(f", {_unknown(name)} AS {quoted(_flag(name))}" for name in named)
    rows = file.connection.sql(
        f"SELECT source_row AS {quoted(_PLACE)}, activity_year AS {quoted(_YEAR)}{cells}{flags} "
        f"FROM {parquet(file.rows)} ORDER BY {quoted(_PLACE)}"
    ).to_arrow_table()
    _check_year(file.name, source, rows[_YEAR])
    numbers, table = rows[_PLACE].to_pylist(), rows.select(named)
    for name in columns:
        if name not in CANONICAL:
            cell_of = file.own_column(name)
            table = table.append_column(name, pa.array([cell_of[number] for number in numbers], pa.string()))
    unread = [replace(each, row=before + each.row) for each in file.unread()]
    quarantined = _quarantined(file, source, columns, rows)
    return Raw(table.select(list(columns)), [before + number for number in numbers], unread, quarantined)


def _text(name: str, source: Source) -> str:
    """A canonical column as text."""
    column, value = CANONICAL[name], quoted(name)
    if EXEMPT_CODE in column.codes:
        return f"CASE {value} WHEN '{EXEMPT_CODE}' THEN 'Exempt' ELSE {_coded(name, source)} END"
    if column.codes:
        return _coded(name, source)
    exempt = f"list_contains(string_split(exempt, ','), {literal(name)})"
    return f"CASE WHEN {exempt} THEN 'Exempt' ELSE coalesce(CAST({value} AS VARCHAR), '') END"


def _coded(name: str, source: Source) -> str:
    """A code; where the policy accepts those that no guide lists, as it was filed."""
    told = (name, f"{name}_raw") if source.policy.unknown_codes == "accept" else ()
    filed = "".join(f", unknown_codes ->> {literal(_path(key))}" for key in told)
    return f"coalesce({quoted(name)}{filed}, '')"


def _flag(name: str) -> str:
    return f"{name} is unknown"


def _path(name: str) -> str:
    return f'$."{name}"'


def _unknown(name: str) -> str:
    """Whether the column, or one that it is made of, was filed with a code that no guide lists."""
    _, parts = DERIVED.get(name, (None, ()))
    paths = [_path(part) for part in (name, f"{name}_raw", *parts)]
    return "coalesce(" + " OR ".join(f"json_exists(unknown_codes, {literal(path)})" for path in paths) + ", false)"


def _quarantined(
    file: OpenFile, source: Source, columns: Sequence[str], rows: pa.Table
) -> dict[tuple[Refusal, str], NDArray[np.bool_]]:
    """What the policy does: nothing, refusals, or an error."""
    out: dict[tuple[Refusal, str], NDArray[np.bool_]] = {}
    policy, every = source.policy, np.ones(rows.num_rows, bool)
    if policy.unknown_columns == "quarantine" and file.own:
        out[Refusal.UNKNOWN_COLUMN, file.own[0]] = every
    given = file.given() if policy.missing_columns == "quarantine" else set(CANONICAL)
    out |= {(Refusal.MISSING_COLUMN, name): every for name in columns if name in CANONICAL and name not in given}
    for name in (name for name in columns if name in CANONICAL and policy.unknown_codes != "accept"):
        unknown = rows[_flag(name)].to_numpy()
        if unknown.any() and policy.unknown_codes == "stop":
            raise DataQualityError(
                f"{int(unknown.sum()):,} rows of {file.name} have a code of {name} that no filing guide lists: "
                "see the schema report, or set source.policy.unknown_codes to quarantine or accept"
            )
        if unknown.any():
            out[Refusal.UNKNOWN_CODE, name] = unknown
    return out


def _check_unknown_columns(name: str, unknown: Sequence[str], source: Source) -> None:
    if unknown and source.policy.unknown_columns == "stop":
        raise DataQualityError(
            f"{name} has columns that its layout does not know: {', '.join(unknown)}; leave them out, or set "
            "source.policy.unknown_columns to quarantine or accept"
        )


def _check_known(file: OpenFile, columns: Sequence[str]) -> None:
    known = [*CANONICAL, *file.own]
    for name in columns:
        if name not in known:
            raise DataQualityError(f"{file.name} has no column {name!r}; {nearest(name, known)}")


def _check_year(name: str, source: Source, years: pa.ChunkedArray) -> None:
    """Hold the rows against the year that the source is of; where the spec keeps some years, ingest judges those."""
    column = year_of_rows.COLUMNS[0]
    if source.year is not None and column not in source.keep:
        counts = {item["values"]: item["counts"] for item in years.value_counts().to_pylist()}
        found = {str(year): rows for year, rows in counts.items() if year is not None}
        year_of_rows.year_of(name, column, found, source.year)


def _joined(parts: Sequence[Raw]) -> Raw:
    keys = dict.fromkeys(key for part in parts for key in part.quarantined)
    none = [np.zeros(part.table.num_rows, bool) for part in parts]
    return Raw(
        pa.concat_tables([part.table for part in parts]),
        [row for part in parts for row in part.source_row],
        [each for part in parts for each in part.unread],
        {k: np.concatenate([p.quarantined.get(k, no) for p, no in zip(parts, none, strict=True)]) for k in keys},
    )
