"""The dialect and the source: every trap of Great Expectations on DuckDB once."""

import json
import math
import os
import threading
from pathlib import Path
from typing import Any

import duckdb
import great_expectations
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from schemas.errors import InfrastructureError
from schemas.table import Column, Table
from tasks.pipeline.validation import boundary, judged, source, validate
from tasks.pipeline.validation import expectations as ours
from tasks.pipeline.validation.connections import confined, connection, rows_of, view

ROWS = pa.table({"at": ["a", "xay", None], "x": [1.0, math.nan, 3.0], "n": [1, 2, 2]})
DECLARED = Table(
    "things",
    "For tests.",
    (Column("at", "string", "a", nullable=True), Column("x", "double", "x", nullable=True), Column("n", "int64", "n")),
)


VALUES = ("partial_unexpected_list", "partial_unexpected_counts")


def result(kind: str, **arguments: Any) -> Any:
    [only] = source.run("things", ROWS, [source.expectation(kind, arguments)])[1].results
    return only


def test_rows_are_there_after_the_connection_was_returned() -> None:
    assert result("expect_table_row_count_to_equal", value=3).result["observed_value"] == 3


def test_a_word_that_duckdb_reserves_may_be_a_column() -> None:
    assert result("expect_column_values_to_not_be_null", column="at").result["unexpected_count"] == 1


def test_nan_is_absent() -> None:
    assert result("expect_column_values_to_not_be_null", column="x").result["unexpected_count"] == 1
    assert result("expect_column_max_to_be_between", column="x", max_value=3).success


def test_a_misspelt_expectation_is_an_error() -> None:
    with pytest.raises(Exception, match="expect_colum"):
        source.expectation("expect_colum_values_to_not_be_null", {"column": "at"})


@pytest.mark.parametrize(
    ("kind", "arguments", "success"),
    [
        ("expect_column_values_to_match_regex", {"column": "at", "regex": "a"}, True),
        ("expect_column_values_to_match_regex", {"column": "at", "regex": "^a$"}, False),
        ("expect_column_values_to_not_match_regex", {"column": "at", "regex": "q"}, True),
        ("expect_column_values_to_match_like_pattern", {"column": "at", "like_pattern": "%a%"}, True),
        ("expect_column_values_to_be_of_type", {"column": "x", "type_": "DOUBLE"}, True),
        ("expect_column_values_to_be_of_type", {"column": "x", "type_": "VARCHAR"}, False),
        ("expect_column_value_lengths_to_be_between", {"column": "at", "min_value": 1, "max_value": 3}, True),
        ("expect_column_mean_to_be_between", {"column": "x", "min_value": 2, "max_value": 2}, True),
        ("expect_column_median_to_be_between", {"column": "n", "min_value": 2, "max_value": 2}, True),
        ("expect_column_sum_to_be_between", {"column": "n", "min_value": 6}, False),
        ("expect_column_values_to_be_unique", {"column": "n"}, False),
        ("expect_column_distinct_values_to_be_in_set", {"column": "n", "value_set": [1, 2]}, True),
        ("expect_table_row_count_to_equal", {"value": 3}, True),
        ("unexpected_rows_expectation", {"unexpected_rows_query": "SELECT * FROM {batch} WHERE n > 2"}, True),
        ("unexpected_rows_expectation", {"unexpected_rows_query": "SELECT * FROM {batch} WHERE n > 1"}, False),
    ],
    ids=lambda value: str(value)[:50],
)
def test_standard_expectations_are_evaluated(kind: str, arguments: dict[str, Any], success: bool) -> None:
    outcome = result(kind, **arguments)
    assert source.raised(outcome) is None
    assert outcome.success is success


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("expect_column_values_to_not_be_null", {"column": "zz"}),
        ("expect_column_sum_to_be_between", {"column": "at", "min_value": 1}),
        ("unexpected_rows_expectation", {"unexpected_rows_query": "SELECT broken FROM {batch}"}),
    ],
    ids=lambda value: str(value)[:50],
)
def test_an_expectation_that_raised_is_a_fault(kind: str, arguments: dict[str, Any]) -> None:
    assert source.raised(result(kind, **arguments))
    with pytest.raises(InfrastructureError, match=f"{kind} could not be evaluated"):
        boundary._results(
            "things",
            ROWS,
            [source.expectation("expect_table_row_count_to_equal", {"value": 3}), source.expectation(kind, arguments)],
        )


def test_a_missing_result_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = source.expectation("expect_table_row_count_to_equal", {"value": 3})
    monkeypatch.setattr(
        source, "suite_of", lambda name, _: great_expectations.ExpectationSuite(name, expectations=[twice])
    )
    with pytest.raises(InfrastructureError, match="1 results of 2"):
        source.run("things", ROWS, [twice, twice])


@pytest.mark.parametrize(
    "kind",
    [ours.ExpectColumnsToHaveNoMissingValues, ours.ExpectTableColumnsToHaveTypes],
    ids=lambda kind: kind.__name__,
)
def test_an_expectation_that_raises_is_a_fault_of_the_engine(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("no such metric")

    monkeypatch.setattr(kind, "_validate", broken)
    with pytest.raises(InfrastructureError, match="no such metric"):
        validate(ROWS, DECLARED)


def test_python_variables_are_no_tables() -> None:
    hidden = pa.table({"n": [1]})
    assert hidden.num_rows == 1
    with pytest.raises(duckdb.CatalogException):
        rows_of("SELECT * FROM hidden")


def test_keys_with_absent_parts_repeat() -> None:
    columns = (Column("a", "string", "a", nullable=True), Column("b", "string", "b"))
    declared = Table("pairs", "For tests.", columns, key=("a", "b"))
    outcomes = validate(pa.table({"a": pa.array([None, None, "x"], pa.string()), "b": ["x", "x", "x"]}), declared)
    assert [o.unexpected for o in outcomes if "compound" in o.expectation] == [2]


def test_results_have_the_order_of_the_suite_and_no_values() -> None:
    kept = judged([(ROWS, DECLARED)]).results["things"]
    asked = [entry["type"] for entry in kept["suite"]["expectations"]]
    assert [entry["expectation_config"]["type"] for entry in kept["result"]["results"]] == asked
    assert "xay" not in str(kept)
    assert judged([(ROWS, DECLARED)]).results["things"] == kept


def test_what_is_kept_is_the_json_of_great_expectations_without_times_and_batches() -> None:
    suite = [
        source.expectation(kind, kwargs)
        for kind, kwargs in (
            ("expect_table_columns_to_match_ordered_list", {"column_list": ["at", "x", "n"]}),
            ("expect_column_mean_to_be_between", {"column": "n", "min_value": 2}),
            ("expect_column_values_to_be_between", {"column": "x", "max_value": 2}),
        )
    ]
    together, validation = source.run("things", ROWS, [*suite, ours.ExpectTableKeyToBeUnique(columns=["n"])])
    kept, theirs = source.as_json(together, validation), validation.to_json_dict()
    assert kept["suite"] == {name: value for name, value in together.to_json_dict().items() if name != "id"}
    assert {name: kept["result"][name] for name in ("success", "suite_name", "statistics")} == {
        name: theirs[name] for name in ("success", "suite_name", "statistics")
    }
    by_type = {entry["expectation_config"]["type"]: entry for entry in theirs["results"]}
    for entry in kept["result"]["results"]:
        other = by_type[entry["expectation_config"]["type"]]
        del other["expectation_config"]["kwargs"]["batch_id"]
        other["expectation_config"].pop("id", None)
        for name in VALUES:
            other["result"].pop(name, None)
        assert json.loads(json.dumps(entry)) == other


def test_threads_have_connections_of_their_own() -> None:
    unexpected: list[int] = []

    def run(n: int) -> None:
        rows = pa.table({"at": ["a"] * n, "x": [1.0] * n, "n": pa.array([None] * n, pa.int64())})
        unexpected.append(next(o.unexpected for o in validate(rows, DECLARED) if not o.success))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(unexpected) == [1, 2, 3, 4, 5, 6]


def test_the_child_of_a_fork_judges() -> None:
    assert all(o.success for o in validate(ROWS, DECLARED))
    child = os.fork()
    if not child:
        os._exit(0 if all(o.success for o in validate(ROWS, DECLARED)) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "COPY (SELECT 1) TO '/tmp/evenhand-copied.csv'",
        "ATTACH '/tmp/evenhand-attached.db'",
        "INSTALL httpfs",
        "SET memory_limit = '1GB'",
    ],
)
def test_foreign_sql_reads_and_writes_no_other_file(statement: str, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    with confined(content := pads.dataset(tmp_path / "rows.parquet")), view("things", content):
        assert rows_of("SELECT count(*) FROM things") == [(3,)]
        with pytest.raises(duckdb.Error):
            connection().execute(statement)
