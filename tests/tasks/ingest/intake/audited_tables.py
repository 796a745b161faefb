"""Small tables with a recipe, and what ingest makes of them."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from schemas.audit.spec import AuditSpec
from tasks.ingest.stage import ingest, ingest_settings
from tasks.pipeline.registry import read_spec
from tasks.pipeline.stage import hold

SPEC = """\
name: made
title: Made
year: 2023
source:
  kind: csv
  path: made.csv
  intake: {columns: {income: {read: number, thousands: ',', unit: USD}}}
row_id: id
decision: {column: decision, favourable: [approved], unfavourable: [denied], neither: [withdrawn]}
protected:
  - {name: race, columns: [race], reference: White}
columns:
  income: {type: continuous}
"""
HEADER = "id,decision,race,income"


def written(place: Path, lines: list[str], header: str = HEADER, name: str = "made.csv") -> Path:
    """A table of text with its header."""
    file = place / name
    file.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return file


def rows_of(number: int) -> list[str]:
    """Decided applications of two groups."""
    sides, groups = ("approved", "denied"), ("White", "Black")
    return [f"A{i},{sides[i % 2]},{groups[i // 2 % 2]},{20_000 + 13 * i}" for i in range(number)]


def spec_of(file: Path, **overrides: str) -> AuditSpec:
    """The spec over a table; overrides are dotted keys with ``__`` for the dot."""
    dotted = {key.replace("__", "."): value for key, value in overrides.items()}
    return read_spec(SPEC, "made.yaml", {"source.path": str(file), **dotted}).spec


def ingested(spec: AuditSpec) -> dict[str, pa.Table]:
    """The tables of ingest after they were held against their declarations and laws."""
    produced = ingest.function(settings=ingest_settings(spec))
    contents, refusals, *_ = hold(ingest, produced, produced.rows_in or 0)
    return {**{name: table for name, table in contents.items() if isinstance(table, pa.Table)}, "refusals": refusals}


def reasons(tables: dict[str, pa.Table]) -> dict[str, int]:
    """Refused rows by reason."""
    rows: dict[str, int] = {}
    for reason in tables["refusals"]["reason"].to_pylist():
        rows[reason] = rows.get(reason, 0) + 1
    return rows


def column(tables: dict[str, pa.Table], name: str) -> list[Any]:
    """A column of the applications in the order of the source."""
    values: list[Any] = tables["applications"][name].to_pylist()
    return values
