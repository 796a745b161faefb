"""Schema report: departures of a file from its layout, and what its layout cannot give, one line each.

Nothing here decides about rows: the policy of an audit's spec does.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from schemas.audit.hmda import HmdaPolicy, Treatment
from schemas.terms import Refusal
from tasks.ingest.hmda.canonical.codes import CANONICAL
from tasks.ingest.hmda.canonical.columns import lacking
from tasks.ingest.hmda.conversion import Converted
from tasks.ingest.hmda.files.recognition import Recognised

Departure = Literal[
    "lacking_column",
    "missing_column",
    "unknown_column",
    "other_order",
    "no_header",
    "unknown_code",
    "malformed_line",
    "refused_row",
    "unit_error",
]
Severity = Literal["note", "warning", "error"]
"""A note costs nothing; a warning means that something is not there or not known; an error, that rows are lost."""


_POLICY = HmdaPolicy()


class Finding(BaseModel):
    """One departure."""

    model_config = ConfigDict(frozen=True)

    kind: Departure
    severity: Severity
    column: str | None = None
    code: str | None = None
    rows: int = 0
    policy: Treatment = "accept"
    """What an audit does about it where its spec names the column and sets no policy."""
    text: str


class SchemaReport(BaseModel):
    """What was found in one file."""

    model_config = ConfigDict(frozen=True)

    layout: str
    delimiter: str
    encoding: str
    columns: int
    rows_in: int
    rows: int
    refused: Mapping[str, int]
    findings: tuple[Finding, ...]


def report_on(recognised: Recognised, converted: Converted) -> SchemaReport:
    """The report on a file: its columns, its rows, and what its layout lacks."""
    return SchemaReport(
        layout=recognised.layout.name,
        delimiter=recognised.delimiter,
        encoding=recognised.encoding,
        columns=len(recognised.columns),
        rows_in=converted.rows_in,
        rows=converted.rows,
        refused=dict(converted.refused),
        findings=(*_of_columns(recognised), *_of_rows(converted), *_lacks(recognised)),
    )


def _of_columns(recognised: Recognised) -> Iterator[Finding]:
    layout = recognised.layout
    for name in recognised.missing:
        text = f"layout {layout.name} has the column {name!r}, and the file has not"
        yield Finding(kind="missing_column", severity="warning", column=name, policy=_POLICY.missing_columns, text=text)
    for name in recognised.unknown:
        text = f"layout {layout.name} has no column {name!r}; {_use(name)}"
        yield Finding(kind="unknown_column", severity="warning", column=name, policy=_POLICY.unknown_columns, text=text)
    expected = [name for name in layout.columns if name in recognised.columns]
    if [name for name in recognised.columns if name in layout.columns] != expected:
        yield Finding(kind="other_order", severity="note", text="the columns come in another order; they go by name")
    if layout.header and not recognised.header:
        yield Finding(kind="no_header", severity="note", text="no header; the columns go by their number and place")


def _use(unknown: str) -> str:
    """What the spec can do with a column that the layout does not know."""
    if unknown in CANONICAL:
        return "a canonical column of that name is not taken from it unless it means the same; rename it to name it"
    return "it can be named in the spec as it is"


def _of_rows(converted: Converted) -> Iterator[Finding]:
    for column, codes in converted.unknown_codes.items():
        for code, rows in codes.items():
            text = f"{column} is {code!r}, which no filing guide lists"
            form: dict[str, Any] = {"column": column, "code": code, "rows": rows, "policy": _POLICY.unknown_codes}
            yield Finding(kind="unknown_code", severity="warning", text=text, **form)
    for reason, rows in converted.refused.items():
        broken = reason == Refusal.MALFORMED_LINE
        what = "could not be split into columns" if broken else "are no applications"
        text = f"{rows:,} rows {what}, and are refused: {reason}"
        kind: Departure = "malformed_line" if broken else "refused_row"
        yield Finding(kind=kind, severity="error", rows=rows, policy="quarantine", text=text)
    for rule, rows in converted.flags.items():
        if rows:
            text = f"{rows:,} rows look as if in another unit: {rule}; they are kept and flagged"
            yield Finding(kind="unit_error", severity="warning", rows=rows, text=text)


def _lacks(recognised: Recognised) -> Iterator[Finding]:
    first, last = recognised.layout.years
    years = f"{first} and later" if last > first + 100 else f"{first} to {last}"
    for name in lacking(recognised):
        text = f"this file of layout {recognised.layout.name} ({years}) says nothing of {name}"
        yield Finding(kind="lacking_column", severity="note", column=name, text=text)
