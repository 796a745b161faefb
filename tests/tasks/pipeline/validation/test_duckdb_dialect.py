"""DuckDB under Great Expectations' own expectations: what the dialect must bring, and faults that are no bad data."""

import math
import os
import threading
from typing import Any

import pyarrow as pa
import pytest

from schemas.errors import InfrastructureError
from schemas.table import Column, Table
from tasks.pipeline.validation import boundary, connections, validate
from tasks.pipeline.validation.source import expectation, raised, run

ROWS = pa.table(
    {
        "at": ["abc", "xbz", None],
        "share": [0.5, math.nan, 2.0],
        "n": pa.array([1, 2, 2], pa.int64()),
    }
)
THINGS = Table(
    "things",
    "For tests.",
    (Column("at", "string", "a word that DuckDB reserves", nullable=True), Column("n", "int64", "a key", minimum=0)),
    key=("at", "n"),
)


def results(kind: str, rows: pa.Table = ROWS, **arguments: Any) -> Any:
    (result,) = run("things", rows, [expectation(kind, arguments)])[1].results
    return result


@pytest.mark.parametrize(
    ("kind", "arguments", "success"),
    [
        ("expect_column_values_to_match_regex", {"column": "at", "regex": "b"}, True),
        ("expect_column_values_to_match_regex", {"column": "at", "regex": "^b"}, False),
        ("expect_column_values_to_not_match_regex", {"column": "at", "regex": "q"}, True),
        ("expect_column_values_to_match_like_pattern", {"column": "at", "like_pattern": "%b%"}, True),
        ("expect_column_values_to_be_of_type", {"column": "share", "type_": "DOUBLE"}, True),
        ("expect_column_values_to_be_of_type", {"column": "share", "type_": "VARCHAR"}, False),
        ("expect_column_value_lengths_to_equal", {"column": "at", "value": 3}, True),
        ("expect_column_mean_to_be_between", {"column": "share", "min_value": 1.25, "max_value": 1.25}, True),
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
    result = results(kind, **arguments)
    assert raised(result) is None
    assert result.success is success


def test_nan_is_absent() -> None:
    counts = results("expect_column_values_to_not_be_null", column="share").result
    assert (counts["element_count"], counts["unexpected_count"]) == (3, 1)


def test_a_python_variable_is_no_table() -> None:
    secret = pa.table({"n": [1]})
    assert secret.num_rows == 1
    words = raised(results("unexpected_rows_expectation", unexpected_rows_query="SELECT * FROM secret, {batch}"))
    assert words is not None
    assert "secret" in words


def test_an_unknown_expectation_is_refused() -> None:
    with pytest.raises(Exception, match="expect_column_values_to_be_nul"):
        expectation("expect_column_values_to_be_nul", {"column": "n"})


def test_a_key_with_an_absent_part_repeats() -> None:
    rows = pa.table({"at": pa.array([None, None], pa.string()), "n": pa.array([1, 1], pa.int64())}, THINGS.schema())
    failed = [(outcome.column, outcome.unexpected) for outcome in validate(rows, THINGS) if not outcome.success]
    assert failed == [("at, n", 2)]


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("expect_column_values_to_not_be_null", {"column": "missing"}),
        ("expect_column_sum_to_be_between", {"column": "at", "min_value": 1}),
        ("unexpected_rows_expectation", {"unexpected_rows_query": "SELECT broken FROM {batch}"}),
    ],
    ids=lambda value: str(value)[:50],
)
def test_an_expectation_that_raised_is_a_fault(kind: str, arguments: dict[str, Any]) -> None:
    assert raised(results(kind, **arguments))
    with pytest.raises(InfrastructureError, match=f"{kind} could not be evaluated"):
        boundary._results(
            "things", ROWS, [expectation("expect_table_row_count_to_equal", {"value": 3}), expectation(kind, arguments)]
        )


def test_threads_judge_their_own_tables() -> None:
    counts: dict[int, int] = {}

    def judge(number: int) -> None:
        rows = THINGS.build(at=["x"] * number, n=[-1] * number)
        counts[number] = max(outcome.unexpected for outcome in validate(rows, THINGS) if outcome.column == "n")

    threads = [threading.Thread(target=judge, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == {number: number for number in range(1, 5)}


def test_the_child_of_a_fork_judges() -> None:
    rows = THINGS.build(at=["x", "x"], n=[1, 1])
    assert not all(outcome.success for outcome in validate(rows, THINGS))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if [o.unexpected for o in validate(rows, THINGS) if not o.success] == [2] else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_foreign_sql_reads_no_file() -> None:
    query = "SELECT * FROM read_text('/etc/passwd'), {batch}"
    with connections.confined(ROWS):
        words = raised(results("unexpected_rows_expectation", unexpected_rows_query=query))
    assert words is not None
    assert "disabled" in words
