"""Expectations of ours for Great Expectations: one for each kind of rule, with all columns of a table.

Each depends on a metric that is an aggregate, so that Great Expectations counts all of a table in one query. A single
standard expectation costs 8 to 9 ms whatever the rows, and a table has dozens of rules. Results hold elements and
unexpected values of every column. Scope: counts and verdicts. Which expectations a table has: ``suites``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import sqlalchemy as sa
from great_expectations import expectations as library
from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.core.metric_function_types import MetricPartialFunctionTypes
from great_expectations.execution_engine import SqlAlchemyExecutionEngine
from great_expectations.expectations.metrics.metric_provider import metric_partial, metric_value
from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider
from great_expectations.validator.metric_configuration import MetricConfiguration

from tasks.pipeline.validation.connections import literal, quoted
from tasks.pipeline.validation.kept import KeptExpectation
from tasks.pipeline.validation.rows import not_in, outside, some_present

_AGGREGATE = metric_partial(
    engine=SqlAlchemyExecutionEngine,
    partial_fn_type=MetricPartialFunctionTypes.AGGREGATE_FN,
    domain_type=MetricDomainTypes.TABLE,
)
MISSING, OUTSIDE, NOT_IN = "evenhand.missing_values", "evenhand.values_outside", "evenhand.values_not_in_sets"
TERMS = "evenhand.rows_with_terms"
HASHES, REPEATED, COLUMN_TYPES = "evenhand.hashes_of_key", "evenhand.repeated_keys", "table.column_types"


def _list(counts: Sequence[str]) -> Any:
    return sa.literal_column(f"list_value({', '.join(counts)})")


def _pairs(unexpected: Mapping[str, str]) -> Any:
    """The present values of each column, then those that meet its condition."""
    present = [f"count({quoted(column)})" for column in unexpected]
    return _list([*present, *(f"count(*) FILTER (WHERE {condition})" for condition in unexpected.values())])


class MissingValues(TableMetricProvider):  # type: ignore[misc]  # the library has no types
    """Rows of the table, then absent values of each column."""

    metric_name = MISSING
    value_keys = ("columns",)

    @_AGGREGATE  # type: ignore[untyped-decorator]
    def _sqlalchemy(cls, metric_domain_kwargs: Any, metric_value_kwargs: Any, **_: Any) -> Any:  # noqa: N805 as the library calls it
        absent = [f"count(*) - count({quoted(column)})" for column in metric_value_kwargs["columns"]]
        return _list(["count(*)", *absent]), metric_domain_kwargs, {}


class ValuesOutside(TableMetricProvider):  # type: ignore[misc]  # the library has no types
    """Present values of each column, then those outside its limits."""

    metric_name = OUTSIDE
    value_keys = ("bounds",)

    @_AGGREGATE  # type: ignore[untyped-decorator]
    def _sqlalchemy(cls, metric_domain_kwargs: Any, metric_value_kwargs: Any, **_: Any) -> Any:  # noqa: N805 as above
        bounds = metric_value_kwargs["bounds"].items()
        conditions = {name: outside(name, of.get("min_value"), of.get("max_value")) for name, of in bounds}
        return _pairs(conditions), metric_domain_kwargs, {}


class ValuesNotInSets(TableMetricProvider):  # type: ignore[misc]  # the library has no types
    """Present values of each column, then those that its set does not have."""

    metric_name = NOT_IN
    value_keys = ("value_sets",)

    @_AGGREGATE  # type: ignore[untyped-decorator]
    def _sqlalchemy(cls, metric_domain_kwargs: Any, metric_value_kwargs: Any, **_: Any) -> Any:  # noqa: N805 as above
        sets = metric_value_kwargs["value_sets"]
        return _pairs({name: not_in(name, values) for name, values in sets.items()}), metric_domain_kwargs, {}


class RowsWithTerms(TableMetricProvider):  # type: ignore[misc]  # the library has no types
    """Rows of the table, then those that list each of the terms in a column, between commas."""

    metric_name = TERMS
    value_keys = ("column", "terms")

    @_AGGREGATE  # type: ignore[untyped-decorator]
    def _sqlalchemy(cls, metric_domain_kwargs: Any, metric_value_kwargs: Any, **_: Any) -> Any:  # noqa: N805 as above
        listed = f"string_split({quoted(metric_value_kwargs['column'])}, ',')"
        conditions = [f"list_contains({listed}, {literal(term)})" for term in metric_value_kwargs["terms"]]
        counts = [f"count(*) FILTER (WHERE {condition})" for condition in conditions]
        return _list(["count(*)", *counts]), metric_domain_kwargs, {}


class HashesOfKey(TableMetricProvider):  # type: ignore[misc]  # the library has no types
    """Rows with any value of a key, and how many different hashes their keys have."""

    metric_name = HASHES
    value_keys = ("columns",)

    @_AGGREGATE  # type: ignore[untyped-decorator]
    def _sqlalchemy(cls, metric_domain_kwargs: Any, metric_value_kwargs: Any, **_: Any) -> Any:  # noqa: N805 as above
        columns = metric_value_kwargs["columns"]
        some = f"FILTER (WHERE {some_present(columns)})"
        names = ", ".join(quoted(column) for column in columns)
        return _list([f"count(*) {some}", f"count(DISTINCT hash({names})) {some}"]), metric_domain_kwargs, {}


class RepeatedKeys(TableMetricProvider):  # type: ignore[misc]  # the library has no types
    """Rows with any value of a key, and those with a key that another row has; keys are grouped where hashes repeat."""

    metric_name = REPEATED
    value_keys = ("columns",)

    @metric_value(engine=SqlAlchemyExecutionEngine)  # type: ignore[untyped-decorator]
    def _sqlalchemy(  # the library calls it with its class
        cls,  # noqa: N805
        execution_engine: Any,
        metric_domain_kwargs: Any,
        metric_value_kwargs: Any,
        metrics: Any,
        **_: Any,
    ) -> list[int]:
        elements, hashes = metrics[HASHES]
        if elements == hashes:
            return [elements, 0]
        columns = metric_value_kwargs["columns"]
        table = execution_engine.get_domain_records(metric_domain_kwargs)
        names: list[Any] = [sa.literal_column(quoted(column)) for column in columns]
        keys = (
            sa.select(sa.func.count().label("n"))
            .select_from(table)
            .where(sa.literal_column(some_present(columns)))
            .group_by(*names)
            .having(sa.func.count() > 1)
            .subquery()
        )
        query: Any = sa.select(sa.literal_column("CAST(coalesce(sum(n), 0) AS BIGINT)")).select_from(keys)
        return [elements, execution_engine.execute_query(query).scalar()]

    @classmethod
    def _get_evaluation_dependencies(
        cls, metric: Any, configuration: Any = None, execution_engine: Any = None, runtime_configuration: Any = None
    ) -> Any:
        asked = {"configuration": configuration, "execution_engine": execution_engine}
        others = super()._get_evaluation_dependencies(metric, **asked, runtime_configuration=runtime_configuration)
        hashes = MetricConfiguration(HASHES, metric.metric_domain_kwargs, metric.metric_value_kwargs)
        return {**others, HASHES: hashes}


def _result(columns: Mapping[str, tuple[int, int]], rows: bool = False) -> dict[str, Any]:
    """Success and counts of an expectation, from elements and unexpected values of each of its columns."""
    elements = sum(number for number, _ in columns.values())
    unexpected = sum(number for _, number in columns.values())
    counts = {name: {"element_count": e, "unexpected_count": u} for name, (e, u) in columns.items()}
    result = {
        "element_count": elements,
        "unexpected_count": unexpected,
        "unexpected_percent": 100 * unexpected / elements if elements else 0.0,
        "details": {"columns": counts} if not rows else {"key": counts},
    }
    return {"success": unexpected == 0, "result": result}


def _paired(columns: Sequence[str], counts: Sequence[int]) -> dict[str, tuple[int, int]]:
    """Counts of ``_pairs`` by column."""
    return dict(zip(columns, zip(counts[: len(columns)], counts[len(columns) :], strict=True), strict=True))


class ExpectTableColumnsToMatchOrderedList(KeptExpectation, library.ExpectTableColumnsToMatchOrderedList):  # type: ignore[misc]  # as above
    """The library's own, kept: it takes its place."""


class ExpectTableRowCountToEqual(KeptExpectation, library.ExpectTableRowCountToEqual):  # type: ignore[misc]  # as above
    """The library's own, kept: it takes its place."""


class ExpectColumnsToHaveNoMissingValues(KeptExpectation):
    """That columns have a value in every row."""

    columns: list[str]
    metric_dependencies: ClassVar[tuple[str, ...]] = (MISSING,)
    success_keys: ClassVar[tuple[str, ...]] = ("columns",)
    args_keys: ClassVar[tuple[str, ...]] = ("columns",)

    def _validate(self, metrics: Mapping[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
        rows, *absent = metrics[MISSING]
        return _result({name: (rows, number) for name, number in zip(self.columns, absent, strict=True)})


class ExpectColumnsToBeBetween(KeptExpectation):
    """That values of columns are within limits, ``min_value`` and ``max_value`` by column."""

    bounds: dict[str, dict[str, float]]
    metric_dependencies: ClassVar[tuple[str, ...]] = (OUTSIDE,)
    success_keys: ClassVar[tuple[str, ...]] = ("bounds",)
    args_keys: ClassVar[tuple[str, ...]] = ("bounds",)

    def _validate(self, metrics: Mapping[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
        return _result(_paired(list(self.bounds), metrics[OUTSIDE]))


class ExpectColumnsToBeInSets(KeptExpectation):
    """That values of columns are in the set of their column."""

    value_sets: dict[str, list[str]]
    metric_dependencies: ClassVar[tuple[str, ...]] = (NOT_IN,)
    success_keys: ClassVar[tuple[str, ...]] = ("value_sets",)
    args_keys: ClassVar[tuple[str, ...]] = ("value_sets",)

    def _validate(self, metrics: Mapping[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
        return _result(_paired(list(self.value_sets), metrics[NOT_IN]))


class ExpectColumnToListNoTerms(KeptExpectation):
    """That no row's column lists one of the terms, between commas; each term has what it means."""

    column: str
    terms: dict[str, str]
    metric_dependencies: ClassVar[tuple[str, ...]] = (TERMS,)
    success_keys: ClassVar[tuple[str, ...]] = ("column", "terms")
    args_keys: ClassVar[tuple[str, ...]] = ("column", "terms")

    def _validate(self, metrics: Mapping[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
        rows, *listed = metrics[TERMS]
        return _result({term: (rows, number) for term, number in zip(self.terms, listed, strict=True)})


class ExpectTableKeyToBeUnique(KeptExpectation):
    """That no two rows have the same key; rows without any value of it are not compared."""

    columns: list[str]
    metric_dependencies: ClassVar[tuple[str, ...]] = (REPEATED,)
    success_keys: ClassVar[tuple[str, ...]] = ("columns",)
    args_keys: ClassVar[tuple[str, ...]] = ("columns",)

    def _validate(self, metrics: Mapping[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
        return _result({", ".join(self.columns): tuple(metrics[REPEATED])}, rows=True)


class ExpectTableColumnsToHaveTypes(KeptExpectation):
    """That columns have types of DuckDB, by name."""

    types: dict[str, str]
    metric_dependencies: ClassVar[tuple[str, ...]] = (COLUMN_TYPES,)
    success_keys: ClassVar[tuple[str, ...]] = ("types",)
    args_keys: ClassVar[tuple[str, ...]] = ("types",)

    def _validate(self, metrics: Mapping[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
        actual_types = {str(column["name"]): str(column["type"]) for column in metrics[COLUMN_TYPES]}
        names = dict.fromkeys([*self.types, *actual_types])
        return _result({name: (1, int(self.types.get(name) != actual_types.get(name))) for name in names})
