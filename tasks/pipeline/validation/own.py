"""The user's own expectations about the table that ingest writes: checked before anything is read, then judged.

They run on a database that reads no file but the table's. Scope: one table. What follows from a failure: the severity
of each, in ``tasks.pipeline.stage``.
"""

import json
from collections.abc import Sequence
from typing import Any

import duckdb

from schemas.audit.expectations import COLUMN_KEYS, OwnExpectation
from schemas.errors import InfrastructureError, SpecError, nearest
from tasks.pipeline.validation import rows
from tasks.pipeline.validation.boundary import Outcome
from tasks.pipeline.validation.connections import Content, confined, quoted

MOST_IDS = 10
"""Rows named for an expectation that does not hold; all are counted."""
SUITE = "applications, own expectations"


def check(expectations: Sequence[OwnExpectation], columns: Sequence[str]) -> None:
    """Check that Great Expectations knows each of them and that the table has their columns.

    Raises:
        SpecError: an unknown type, argument, value or column; the place in the spec is named.
    """
    from great_expectations.expectations.registry import list_registered_expectation_implementations

    from tasks.pipeline.validation import expectations as _ours  # noqa: F401 its own are registered with it
    from tasks.pipeline.validation.source import expectation

    known = list_registered_expectation_implementations()
    for place, own in enumerate(expectations):
        at = ("expectations", place)
        if own.type not in known:
            raise SpecError(f"{own.type!r} is no expectation; {nearest(own.type, list(known))}", at)
        try:
            expectation(own.type, own.kwargs, severity=own.severity)
        except Exception as error:
            lines = " ".join(str(error).split())
            raise SpecError(f"{own.type}: {lines}", at) from error
        named = [own.kwargs.get(key) for key in COLUMN_KEYS]
        for column in (name for value in named for name in (value if isinstance(value, list) else [value])):
            if column is not None and column not in columns:
                raise SpecError(f"the table has no column {column!r}; it has {', '.join(columns)}", at)


def judge(name: str, content: Content, expectations: Sequence[OwnExpectation]) -> tuple[list[Outcome], dict[str, Any]]:
    """Outcomes of a table's own expectations in their order, and the result that is kept.

    Raises:
        SpecError: one could not be evaluated on this table, with the words of the database.
    """
    from tasks.pipeline.validation.source import as_json, expectation, in_order, raised, run

    suite = [expectation(own.type, own.kwargs, severity=own.severity) for own in expectations]
    with confined(content):
        together, validation = run(name, content, suite)
        results = in_order(together, validation.results)
        if any(map(raised, results)):
            for place, single in enumerate(suite):  # one that raises spoils the others of its query
                if words := raised(run(name, content, [single])[1].results[0]):
                    kind = expectations[place].type
                    # in one line, without the SQL around the expectation
                    plain = " ".join(words.split("[SQL:")[0].split("LINE ")[0].split())
                    raise SpecError(f"{kind} could not be evaluated: {plain}", ("expectations", place))
            raise InfrastructureError(f"table {name}: {next(filter(None, map(raised, results)))}")
    outcomes = [_outcome(name, own, result, content) for own, result in zip(expectations, results, strict=True)]
    return outcomes, as_json(together, validation)


def _row_ids(name: str, content: Content, own: OwnExpectation) -> tuple[str, ...]:
    """The first rows that break an expectation; none where no SQL of ours states it."""
    condition = None if own.kwargs.get("row_condition") else _broken(own)
    if condition is None or "row_id" not in content.schema.names:
        return ()
    try:
        return rows.broken_rows(name, content, rows.Rule(own.type, "", "{}", condition), MOST_IDS)
    except duckdb.Error:  # values of another type than the column, which Great Expectations converts
        return ()


def _broken(own: OwnExpectation) -> str | None:
    """Condition of a row that breaks an expectation about values or keys."""
    column, columns, values = (own.kwargs.get(key) for key in ("column", "column_list", "value_set"))
    limits = [own.kwargs.get(key) for key in ("min_value", "max_value")]
    strict = own.kwargs.get("strict_min") or own.kwargs.get("strict_max")
    if own.type == rows.UNIQUE_TOGETHER and columns:
        return rows.repeated(columns)
    if not column:
        return None
    if own.type == rows.NOT_NULL:
        return f"{quoted(column)} IS NULL"
    if own.type == rows.UNIQUE:
        return rows.repeated([column])
    if own.type == rows.IN_SET and values:
        return rows.not_in(column, [str(value) for value in values])
    if (
        own.type == rows.BETWEEN
        and not strict
        and all(limit is None or isinstance(limit, int | float) for limit in limits)
    ):
        return rows.outside(column, *limits)
    return None


def _outcome(name: str, own: OwnExpectation, result: Any, content: Content) -> Outcome:
    """Its outcome; one about a table or a column as a whole is one value, if there is any row."""
    counts = result.result
    number = content.num_rows if hasattr(content, "num_rows") else content.count_rows()
    elements = counts.get("element_count")
    unexpected = counts.get("unexpected_count")
    success = bool(result.success)
    column = own.kwargs.get("column") or ", ".join(own.kwargs.get("column_list", ())) or None
    expected = {name: value for name, value in own.kwargs.items() if name != "column"}
    return Outcome(
        own.type,
        column,
        json.dumps(expected, sort_keys=True),
        success,
        min(number, 1) if elements is None else elements,
        (0 if success else 1) if unexpected is None else unexpected,
        () if success else _row_ids(name, content, own),
        own.severity,
    )
