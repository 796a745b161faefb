"""Builds a Great Expectations suite from the declaration of a table, and rows from the suite's results.

Great Expectations is imported on first use (seconds), with one context per process and its telemetry off. It sees
pandas frames; a table of more than ``FULL_ROWS`` rows is first reduced by DuckDB to witnesses, the few rows that break
an expectation if any does. An expectation that raised is a fault of the engine, not of the data, and stops the run.
"""

import json
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from schemas.errors import InfrastructureError
from schemas.table import Column, Table
from schemas.tables.validations import VALIDATIONS

FULL_ROWS = 500_000
_WITNESSES = 10_000
"""Rows shown at most for one rule of a large table: a quarantine of more goes in rounds."""


@dataclass(frozen=True)
class Outcome:
    """The result of one expectation on one table."""

    expectation: str
    column: str | None
    expected: str
    success: bool
    elements: int
    unexpected: int
    row_ids: tuple[str, ...]
    """Identifiers of the rows that broke it, where the table has them."""


def validate(table: pa.Table, declared: Table) -> list[Outcome]:
    """Hold a table against its declaration.

    Raises:
        InfrastructureError: the engine failed on an expectation.
    """
    types = _types(table, declared)
    if not all(o.success for o in types):
        return types
    frame = (table if table.num_rows <= FULL_ROWS else witnesses(table, declared)).to_pandas()
    return types + _run(frame, _expectations(declared), "row_id" if "row_id" in table.column_names else None)


def _types(table: pa.Table, declared: Table) -> list[Outcome]:
    """Hold the Arrow types against the declared ones: pandas has none to tell an absent text from an absent flag."""
    import great_expectations.expectations as gxe

    wanted = {field.name: str(field.type) for field in declared.schema()}
    found = {field.name: str(field.type) for field in table.schema}
    names = list(dict.fromkeys([*wanted, *found]))
    frame = pd.DataFrame(
        {
            "row_id": names,
            "declared_type": [wanted.get(n, "(no such column)") for n in names],
            "written_type": [found.get(n, "(no such column)") for n in names],
        }
    )
    pair = gxe.ExpectColumnPairValuesToBeEqual(column_A="declared_type", column_B="written_type")
    return [replace(o, column=", ".join(o.row_ids) or None, row_ids=()) for o in _run(frame, [pair], "row_id")]


def validate_balance(rows_in: int, rows_out: int, refused: int) -> list[Outcome]:
    """Hold the counts of a stage against rows in = rows out + rows refused."""
    import great_expectations.expectations as gxe

    frame = pd.DataFrame({"rows_in": [rows_in], "rows_out_and_refused": [rows_out + refused]})
    pair = gxe.ExpectColumnPairValuesToBeEqual(column_A="rows_in", column_B="rows_out_and_refused")
    return _run(frame, [pair], None)


def witnesses(table: pa.Table, declared: Table) -> pa.Table:
    """Rows of a large table that break an expectation, if any does: nulls, ranges, codes, repeated keys."""
    picks = [pick for column in declared.columns for pick in _breaking(column)]
    if declared.key:
        keys = ", ".join(_quoted(k) for k in declared.key)
        twice = f"SELECT {keys} FROM whole GROUP BY ALL HAVING count(*) > 1 LIMIT {_WITNESSES}"
        picks.append(f"(SELECT rowid FROM whole SEMI JOIN ({twice}) USING ({keys}) LIMIT {2 * _WITNESSES})")
    with duckdb.connect() as connection:
        connection.register("arrow", table)
        connection.execute("CREATE TEMP TABLE whole AS SELECT * FROM arrow")
        return connection.sql(
            f"SELECT * FROM whole WHERE rowid IN ({' UNION '.join(picks) or 'SELECT -1'})"
        ).to_arrow_table()


def _breaking(column: Column) -> list[str]:
    """Queries for the rows that break a rule of a column if any does."""
    name = _quoted(column.name)
    picks = [] if column.nullable else [f"(SELECT rowid FROM whole WHERE {name} IS NULL LIMIT {_WITNESSES})"]
    if column.minimum is not None:
        picks.append(f"(SELECT rowid FROM whole WHERE NOT {name} >= {column.minimum!r} LIMIT {_WITNESSES})")
    if column.maximum is not None:
        picks.append(f"(SELECT rowid FROM whole WHERE NOT {name} <= {column.maximum!r} LIMIT {_WITNESSES})")
    if column.codes:
        codes = ", ".join("'" + code.replace("'", "''") + "'" for code in column.codes)
        picks.append(f"(SELECT rowid FROM whole WHERE {name} NOT IN ({codes}) LIMIT {_WITNESSES})")
    return picks


def as_table(stage: str, results: Sequence[tuple[str, Outcome, bool]]) -> pa.Table:
    """The results of a stage, as (table, outcome, quarantined) triples, in the shape of ``VALIDATIONS``."""
    return VALIDATIONS.build(
        stage=[stage] * len(results),
        table=[name for name, _, _ in results],
        expectation=[o.expectation for _, o, _ in results],
        column=[o.column for _, o, _ in results],
        expected=[o.expected for _, o, _ in results],
        success=[o.success for _, o, _ in results],
        elements=[o.elements for _, o, _ in results],
        unexpected=[o.unexpected for _, o, _ in results],
        quarantined=[q for _, _, q in results],
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _expectations(declared: Table) -> list[Any]:
    import great_expectations.expectations as gxe

    out: list[Any] = [gxe.ExpectTableColumnsToMatchOrderedList(column_list=[c.name for c in declared.columns])]
    for column in declared.columns:
        if not column.nullable:
            out.append(gxe.ExpectColumnValuesToNotBeNull(column=column.name))
        if column.minimum is not None or column.maximum is not None:
            out.append(
                gxe.ExpectColumnValuesToBeBetween(
                    column=column.name, min_value=column.minimum, max_value=column.maximum
                )
            )
        if column.codes:
            out.append(gxe.ExpectColumnValuesToBeInSet(column=column.name, value_set=list(column.codes)))
    if len(declared.key) == 1:
        out.append(gxe.ExpectColumnValuesToBeUnique(column=declared.key[0]))
    elif declared.key:
        out.append(gxe.ExpectCompoundColumnsToBeUnique(column_list=list(declared.key)))
    return out


@lru_cache(maxsize=1)
def _batch() -> Any:
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    import great_expectations as gx

    for name in ("great_expectations", "great_expectations.data_context.types.base"):
        logging.getLogger(name).setLevel(logging.WARNING)  # it tells of a temporary directory
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    source = context.data_sources.add_pandas("stages")
    return source.add_dataframe_asset("table").add_batch_definition_whole_dataframe("whole")


def prepare_engine() -> None:
    """Load Great Expectations ahead of its first use."""
    _batch()


def _run(frame: pd.DataFrame, expectations: list[Any], row_id: str | None) -> list[Outcome]:
    batch = _batch().get_batch({"dataframe": frame})
    import great_expectations as gx

    suite = gx.ExpectationSuite("boundary", expectations=expectations)
    shown: dict[str, Any] = {"result_format": "BASIC"}
    if row_id:
        shown = {"result_format": "COMPLETE", "unexpected_index_column_names": [row_id]}
    return [_outcome(result, row_id) for result in batch.validate(suite, result_format=shown).results]


def _outcome(result: Any, row_id: str | None) -> Outcome:
    config, found = result.expectation_config, result.result
    if result.exception_info.get("raised_exception"):
        raise InfrastructureError(f"{config.type} could not be evaluated: {result.exception_info['exception_message']}")
    said = {k: v for k, v in config.kwargs.items() if k not in ("batch_id", "column", "column_list")}
    columns = config.kwargs.get("column") or ", ".join(config.kwargs.get("column_list") or []) or None
    broken = found.get("unexpected_index_list") or []
    return Outcome(
        expectation=config.type,
        column=columns,
        expected=json.dumps(said, sort_keys=True, default=str),
        success=bool(result.success),
        elements=int(found.get("element_count") or 0),
        unexpected=int(found.get("unexpected_count") or 0),
        row_ids=tuple(str(entry[row_id]) for entry in broken) if row_id else (),
    )
