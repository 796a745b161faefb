"""The boundary of a stage: every table held against its declaration by Great Expectations, in DuckDB.

Great Expectations is imported on first use. Scope: results of rules. Quarantine and errors: ``tasks.pipeline.stage``.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from schemas.errors import InfrastructureError
from schemas.table import Table
from schemas.tables.applications import VALIDATIONS
from tasks.pipeline.validation.connections import Content
from tasks.pipeline.validation.rows import (
    BETWEEN,
    IN_SET,
    NOT_NULL,
    ORDERED,
    ROW_COUNT,
    TYPES,
    Rule,
    broken_rows,
    rules_of,
)

MOST_IDS = 10_000
"""Identifiers given for a rule of a table whose rows are not set aside; all are counted."""
_BY_KIND = {
    NOT_NULL: "expect_columns_to_have_no_missing_values",
    BETWEEN: "expect_columns_to_be_between",
    IN_SET: "expect_columns_to_be_in_sets",
}
_KEY = "expect_table_key_to_be_unique"
_ARROW_TYPES = "expect_table_columns_to_have_arrow_types"
"""Arrow types that DuckDB does not tell apart, such as a dictionary of strings: a check of ours."""


@dataclass(frozen=True)
class Outcome:
    """The result of one rule on one table."""

    expectation: str
    column: str | None
    expected: str
    success: bool
    elements: int
    unexpected: int
    row_ids: tuple[str, ...] = ()
    """Identifiers of the rows that broke it, where the table has them."""
    severity: str = "critical"


@dataclass(frozen=True)
class Validation:
    """Outcomes of tables, and what Great Expectations gave for them."""

    outcomes: list[list[Outcome]]
    """Of each table in order; then of the numbers of rows, if given, where the first table has its columns."""
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Table -> its suite and its validation result, without values and without what differs between runs."""


def validate(content: Content, declared: Table) -> list[Outcome]:
    """Hold one table against its declaration; see ``judged``."""
    (outcomes,) = validate_all([(content, declared)])
    return outcomes


def validate_all(
    tables: Sequence[tuple[Content, Table]], rows: tuple[int, int, int] | None = None
) -> list[list[Outcome]]:
    """The outcomes of ``judged``."""
    return judged(tables, rows).outcomes


def judged(tables: Sequence[tuple[Content, Table]], rows: tuple[int, int, int] | None = None) -> Validation:
    """Hold tables against their declarations, and the rows of the first against the rows in less those refused.

    Args:
        tables: rows and declaration of each.
        rows: numbers of rows in, out and refused; without a table the number out is judged itself.

    Raises:
        InfrastructureError: the engine failed on an expectation, or gave no result for it.
    """
    expected = None if rows is None else rows[0] - rows[2]
    validation, balances = Validation([]), list[Outcome]()
    for place, (content, declared) in enumerate(tables):
        outcomes, balance, result = _judged(content, declared, expected if place == 0 else None)
        validation.outcomes.append(outcomes)
        validation.results[declared.name] = result
        balances += [balance] if balance else []
    if rows is not None and not tables:
        balances.append(_of_numbers(*rows))
    if rows is not None:
        validation.outcomes.append(balances)
    return validation


def terms_listed(
    name: str, content: Content, column: str, terms: Mapping[str, str]
) -> tuple[dict[str, int], dict[str, Any]]:
    """Rows by the terms that a column lists, and what Great Expectations gave for it.

    Args:
        name: of the table.
        content: its rows.
        column: which lists terms between commas.
        terms: term -> what it means.

    Raises:
        InfrastructureError: the engine failed on the expectation.
    """
    from tasks.pipeline.validation import expectations  # loads Great Expectations

    suite = [expectations.ExpectColumnToListNoTerms(column=column, terms=dict(terms), severity="warning")]
    outcome, results = _results(name, content, suite)
    (result,) = results.values()
    counts = {term: of["unexpected_count"] for term, of in result.result["details"]["columns"].items()}
    return {term: rows for term, rows in counts.items() if rows}, outcome


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
        severity=[o.severity for _, o, _ in results],
    )


def prepare_engine() -> None:
    """Load Great Expectations ahead of its first use."""
    from tasks.pipeline.validation import suites  # loads Great Expectations
    from tasks.pipeline.validation.source import data_source

    data_source()
    suites.of_rows(0)


def _judged(
    content: Content, declared: Table, expected_rows: int | None
) -> tuple[list[Outcome], Outcome | None, dict[str, Any]]:
    """Outcomes of a table, that of its number of rows where one is expected, and the result that is kept."""
    from tasks.pipeline.validation import suites  # loads Great Expectations

    number = content.num_rows if isinstance(content, pa.Table) else content.count_rows()
    wrong = _wrong_types(content.schema, declared)
    in_order = content.schema.names == [column.name for column in declared.columns]
    suite = [*suites.of_schema(declared)]
    if not wrong and in_order:
        suite += suites.of_values(declared) if number else ()
        suite += [suites.of_rows(expected_rows or 0)] if expected_rows is not None or not number else []
    kept, results = _results(declared.name, content, suite)
    outcomes = _of_schema(content.schema, declared, wrong, results)
    if not all(outcome.success for outcome in outcomes):
        return outcomes, None, kept
    for rule in rules_of(declared):
        outcomes.append(_outcome(rule, content, declared, results))
    balance = None if expected_rows is None else _balance(results, expected_rows)
    return outcomes, balance, kept


def _of_numbers(rows_in: int, rows_out: int, refused: int) -> Outcome:
    """The balance of numbers of rows without a table: one of so many rows is judged."""
    from tasks.pipeline.validation import suites  # loads Great Expectations

    rows = pa.table({"row": pa.array(range(rows_out), pa.int64())})
    _, results = _results("rows", rows, [suites.of_rows(rows_in - refused)])
    return _balance(results, rows_in - refused)


def _results(name: str, content: Content, suite: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is kept of a validation, and its results by the name of their expectation.

    Raises:
        InfrastructureError: an expectation raised: it says nothing about the data.
    """
    from tasks.pipeline.validation.source import as_json, raised, run

    expectations, validation = run(name, content, suite)
    for result in validation.results:
        if words := raised(result):
            kind = result.expectation_config.type
            raise InfrastructureError(f"table {name}: {kind} could not be evaluated; nothing was published: {words}")
    return as_json(expectations, validation), {r.expectation_config.type: r for r in validation.results}


def _wrong_types(schema: pa.Schema, declared: Table) -> list[str]:
    """Columns with a name or Arrow type other than the declared one.

    Arrow types are compared as text: ``string`` and ``large_string`` or a dictionary of strings are not the same.
    """
    declared_types = {field.name: str(field.type) for field in declared.schema()}
    actual_types = {field.name: str(field.type) for field in schema}
    names = dict.fromkeys([*declared_types, *actual_types])
    return [name for name in names if declared_types.get(name) != actual_types.get(name)]


def _of_schema(schema: pa.Schema, declared: Table, wrong: Sequence[str], results: Mapping[str, Any]) -> list[Outcome]:
    """Outcomes about names, types and order; order is that of columns with the declared names alone."""
    names = [column.name for column in declared.columns]
    counts = results[TYPES].result["details"]["columns"]
    if not results[TYPES].success:
        wrong = [name for name, of in counts.items() if of["unexpected_count"]]
        return [Outcome(TYPES, ", ".join(wrong), "{}", False, len(counts), len(wrong))]
    if wrong:
        return [Outcome(_ARROW_TYPES, ", ".join(wrong), "{}", False, len(counts), len(wrong))]
    misplaced = sum(name != actual for name, actual in zip(names, schema.names, strict=True))
    ordered = bool(results[ORDERED].success)
    return [
        Outcome(TYPES, None, "{}", True, len(counts), 0),
        Outcome(ORDERED, ", ".join(names), "{}", ordered, len(names), 0 if ordered else misplaced),
    ]


def _outcome(rule: Rule, content: Content, declared: Table, results: Mapping[str, Any]) -> Outcome:
    """Outcome of a rule; of a table without rows only the number of rows was judged."""
    kind = _BY_KIND.get(rule.expectation, _KEY)
    if kind not in results:
        empty = bool(results[ROW_COUNT].result["observed_value"] == 0)
        return Outcome(rule.expectation, rule.column, rule.expected, empty, 0, 0)
    details = results[kind].result["details"]
    counts = details["key" if kind == _KEY else "columns"][rule.column]
    unexpected = counts["unexpected_count"]
    ids: tuple[str, ...] = ()
    if unexpected and "row_id" in content.schema.names:
        ids = broken_rows(declared.name, content, rule, None if declared.per_application else MOST_IDS)
    success = bool(results[kind].success) or unexpected == 0
    return Outcome(rule.expectation, rule.column, rule.expected, success, counts["element_count"], unexpected, ids)


def _balance(results: Mapping[str, Any], expected: int) -> Outcome:
    result = results[ROW_COUNT]
    words = json.dumps({"value": expected, "rows": "rows_in = rows_out_and_refused"})
    return Outcome(ROW_COUNT, None, words, bool(result.success), 1, int(not result.success))
