"""Expectations of ours for Great Expectations: one for each kind of rule, with all columns of a table.

Each depends on a metric that is an aggregate, so that Great Expectations counts all of a table in one query. A single
standard expectation costs 8 to 9 ms whatever the rows, and a table has dozens of rules. Results hold elements and
unexpected values of every column. Scope: counts and verdicts. Which expectations a table has: ``suites``.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from typing import Any, ClassVar, NamedTuple, Self

import sqlalchemy as sa
from great_expectations import expectations as library
from great_expectations.compatibility.pydantic import PrivateAttr
from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.core.metric_function_types import MetricPartialFunctionTypes
from great_expectations.execution_engine import SqlAlchemyExecutionEngine
from great_expectations.expectations.expectation import BatchExpectation
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.expectations.metrics.metric_provider import metric_partial, metric_value
from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider
from great_expectations.util import convert_to_json_serializable
from great_expectations.validator.metric_configuration import MetricConfiguration

from tasks.pipeline.validation.connections import literal, quoted
from tasks.pipeline.validation.rows import not_in, outside, some_present

for _name in ("great_expectations", "great_expectations.data_context.types.base"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)  # results have its errors; it tells of a directory, too


# --------------------------------------------------------------------------------------------------------------------
# Great Expectations makes expectations and their configurations again some eight times for each table and run. A worker
# judges the same declarations for every partition, so ours are made once.


class KeptConfiguration(ExpectationConfiguration):  # type: ignore[misc]  # the library has no types
    """Type and arguments of an expectation; its copies share the expectations that they make, one a batch."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._shared: dict[Any, Any] = {}

    def __deepcopy__(self, _: Any) -> Self:
        """A copy for the batch; the other arguments do not change."""
        copied = copy(self)
        copied._kwargs = dict(self._kwargs)
        return copied

    def to_domain_obj(self) -> Any:
        """The expectation of the batch in its arguments."""
        batch = self._kwargs.get("batch_id")
        if batch not in self._shared:
            expectation = super().to_domain_obj()
            expectation._made = self
            self._shared[batch] = expectation
        return self._shared[batch]

    @property
    def record(self) -> "Record":
        """What is kept of it, the same for every batch."""
        if "record" not in self._shared:
            self._shared["record"] = _record(self)
        content: Record = self._shared["record"]
        return content


class KeptExpectation(BatchExpectation):  # type: ignore[misc]  # the library has no types
    """Makes its configuration and the list of its metrics once."""

    _made: Any = PrivateAttr(default=None)
    _dependencies: Any = PrivateAttr(default=(None, None))

    @property
    def configuration(self) -> Any:
        """Type and arguments, which do not change."""
        if self._made is None:
            plain = super().configuration
            facts = {name: getattr(plain, name) for name in ("meta", "notes", "description", "severity", "id")}
            self._made = KeptConfiguration(plain.type, plain.kwargs, **facts)
        return self._made

    def get_validation_dependencies(self, execution_engine: Any = None, runtime_configuration: Any = None) -> Any:
        """The metrics that it needs; every run requests them twice, for the same format of results."""
        if self._dependencies[0] != runtime_configuration:
            requested = deepcopy(runtime_configuration)  # the library adds to it
            self._dependencies = requested, super().get_validation_dependencies(execution_engine, runtime_configuration)
        return self._dependencies[1]


class Record(NamedTuple):
    """A configuration without the batch and identifiers."""

    sign: str
    """Type and arguments as text, which tell the expectations of a suite apart."""
    content: dict[str, Any]
    """As Great Expectations writes it."""


def record(configuration: Any) -> Record:
    """What is kept of a configuration."""
    return configuration.record if isinstance(configuration, KeptConfiguration) else _record(configuration)


def _record(configuration: Any) -> Record:
    arguments = {name: value for name, value in configuration.kwargs.items() if name != "batch_id"}
    content = {"type": configuration.type, "kwargs": convert_to_json_serializable(arguments)}
    content |= {"meta": configuration.meta or {}, "severity": configuration.severity.value}
    return Record(json.dumps([configuration.type, arguments], sort_keys=True, default=str), content)


# --------------------------------------------------------------------------------------------------------------------
# Metrics: what Great Expectations counts of a table.


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
