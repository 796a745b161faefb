"""Great Expectations over DuckDB: one context and one data source a process, made on first use.

This package alone imports Great Expectations (seconds of CPU time), with its telemetry off: import this module late.
One suite runs at a time in a process. Scope: suites on tables. Suites themselves: ``suites``.
"""

import os
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read when it is imported

import great_expectations as gx
from great_expectations.datasource.fluent.sql_datasource import SQLDatasource, TableAsset
from great_expectations.execution_engine import SqlAlchemyExecutionEngine
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.util import convert_to_json_serializable

from schemas.errors import InfrastructureError
from tasks.pipeline.validation import duckdb_dialect
from tasks.pipeline.validation.connections import Content, view
from tasks.pipeline.validation.expectations import record

_LOCK = threading.RLock()
os.register_at_fork(after_in_child=_LOCK._at_fork_reinit)  # type: ignore[attr-defined]  # as the standard library does
FORMAT = {"result_format": "BASIC", "partial_unexpected_count": 0}
"""Results without any value of a row."""
_OF_ONE_ROW = ("_max_to_be_between", "_min_to_be_between")
"""Expectations whose observed number is the value of one row."""
_VALUES = ("partial_unexpected_list", "partial_unexpected_index_list", "partial_unexpected_counts", "unexpected_list")


class LakeEngine(SqlAlchemyExecutionEngine):  # type: ignore[misc]  # the library has no types
    """Its SQL engine, which knows what DuckDB can do."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.dialect_module = duckdb_dialect.MODULE


class LakeDatasource(SQLDatasource):  # type: ignore[misc]  # the library has no types
    """Tables that a stage is about to write."""

    type: Literal["evenhand_duckdb"] = "evenhand_duckdb"

    @property
    def execution_engine_type(self) -> Any:
        """The engine with the dialect of ours."""
        return LakeEngine


@cache
def data_source() -> Any:
    """The data source of this process."""
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    return context.data_sources.add_evenhand_duckdb(name="lake", connection_string=duckdb_dialect.URL)


@cache
def _asset(name: str) -> Any:
    """A table as Great Expectations names it; its own ``add_table_asset`` writes all assets down again, 7 ms each."""
    source, asset = data_source(), TableAsset(name=name, table_name=name)
    asset._datasource = source  # as ``add_table_asset`` does
    source.assets.append(asset)
    return asset


def expectation(kind: str, arguments: dict[str, Any], **more: Any) -> Any:
    """An expectation by its name in snake case; a suite made from dictionaries drops those that it does not know.

    Raises:
        Exception: of Great Expectations, for an unknown name or argument.
    """
    return ExpectationConfiguration(type=kind, kwargs=arguments, **more).to_domain_obj()


def suite_of(name: str, expectations: Sequence[Any]) -> Any:
    """A suite of Great Expectations."""
    return gx.ExpectationSuite(name, expectations=list(expectations))


def run(name: str, content: Content, expectations: Sequence[Any]) -> tuple[Any, Any]:
    """Judge a table by expectations, each of another type or with an ``id``.

    Returns:
        The suite, and Great Expectations' validation result; ``raised`` tells which of its results raised.

    Raises:
        InfrastructureError: a result is missing.
    """
    suite = suite_of(name, expectations)
    with _LOCK, view(name, content):
        asset = _asset(name)
        validation = asset.get_batch(asset.build_batch_request()).validate(suite, result_format=FORMAT)
    if len(validation.results) != len(expectations):
        raise InfrastructureError(
            f"table {name}: {len(validation.results)} results of {len(expectations)} expectations; none was published"
        )
    return suite, validation


def raised(result: Any) -> str | None:
    """The words of what an expectation raised, or None: it is not evaluated then, whatever ``success`` is."""
    information = result.exception_info or {}
    entries = [information, *(entry for entry in information.values() if isinstance(entry, dict))]
    messages = [str(entry.get("exception_message")) for entry in entries if entry.get("raised_exception")]
    return messages[0] if messages else None


def as_json(suite: Any, validation: Any) -> dict[str, Any]:
    """A suite and its result as they are kept: the same for the same rows, and without any value of one.

    What Great Expectations writes down of its own run (times, batches, identifiers) is left out. Its own JSON of both
    would take longer than to judge the table, as it copies every argument several times.
    """
    content = {**_empty_suite(), "name": suite.name}
    content["expectations"] = [record(expectation.configuration).content for expectation in suite.expectations]
    results = [_without_values(result) for result in in_order(suite, validation.results)]
    kept = {"success": validation.success, "suite_name": suite.name, "statistics": dict(validation.statistics)}
    version = {"great_expectations_version": validation.meta["great_expectations_version"]}
    return {"suite": content, "result": {**kept, "results": results, "meta": version}}


@cache
def _empty_suite() -> dict[str, Any]:
    """A suite without expectations as Great Expectations writes it."""
    return {name: value for name, value in suite_of("none", []).to_json_dict().items() if name != "id"}


def in_order(suite: Any, results: Sequence[Any]) -> list[Any]:
    """Results in the order of their suite, which Great Expectations does not keep."""
    signs = [record(expectation.configuration).sign for expectation in suite.expectations]
    return sorted(results, key=lambda result: signs.index(record(result.expectation_config).sign))


def _without_values(result: Any) -> dict[str, Any]:
    """A result without values of rows: it may show some as a list, as rows, or as the value that is observed."""
    written = convert_to_json_serializable(result.result)
    counts = {name: value for name, value in written.items() if name not in _VALUES}
    kind, observed = result.expectation_config.type, counts.get("observed_value")
    if kind.endswith(_OF_ONE_ROW) or not (isinstance(observed, int | float) or kind.startswith("expect_table_")):
        counts.pop("observed_value", None)
    if "details" in counts:
        counts["details"] = {name: value for name, value in counts["details"].items() if name in ("columns", "key")}
    return {
        "success": result.success,
        "expectation_config": record(result.expectation_config).content,
        "result": counts,
        "meta": result.meta,
        "exception_info": result.exception_info,
    }
