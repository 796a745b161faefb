"""Counts by DuckDB against counts by pandas, on generated tables, large tables and Parquet in parts."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from conftest import examples
from generated_tables import COLUMNS, tables
from hypothesis import given, settings

from schemas.table import Column, Table
from tasks.pipeline.validation import validate
from tasks.pipeline.validation.rows import (
    BETWEEN,
    IN_SET,
    NOT_NULL,
    UNIQUE,
    UNIQUE_TOGETHER,
    broken_rows,
    rules_of,
)


def plain(content: pa.Table, declared: Table) -> list[tuple[str, str, np.ndarray, np.ndarray]]:
    """Expectation, column, mask of elements and mask of rows that break it: as Great Expectations counts a frame."""
    frame = content.to_pandas()
    there = {c.name: frame[c.name].notna().to_numpy(bool) for c in declared.columns}
    found = (
        [(UNIQUE_TOGETHER, ", ".join(declared.key), *repeated(frame, declared.key))] if len(declared.key) > 1 else []
    )
    for c in declared.columns:
        values, every = frame[c.name], np.ones(len(frame), bool)
        if not c.nullable:
            found.append((NOT_NULL, c.name, every, ~there[c.name]))
        if c.minimum is not None or c.maximum is not None:
            least, most = (-math.inf if c.minimum is None else c.minimum), math.inf if c.maximum is None else c.maximum
            inside = np.array([not pd.isna(v) and least <= v <= most for v in values], bool)
            found.append((BETWEEN, c.name, there[c.name], there[c.name] & ~inside))
        if c.codes:
            found.append((IN_SET, c.name, there[c.name], there[c.name] & ~values.isin(c.codes).to_numpy(bool)))
        if declared.key == (c.name,):
            found.append((UNIQUE, c.name, *repeated(frame, declared.key)))
    return found


def repeated(frame: pd.DataFrame, key: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    some = frame[list(key)].notna().any(axis=1).to_numpy(bool)
    bad = np.zeros(len(frame), bool)
    bad[some] = frame.loc[some, list(key)].duplicated(keep=False)
    return some, bad


@given(tables())
def test_counts_are_those_of_pandas(made: tuple[pa.Table, Table]) -> None:
    content, declared = made
    expected = [(e, c, int(some.sum()), int(bad.sum())) for e, c, some, bad in plain(content, declared)]
    outcomes = validate(content, declared)[2:]  # after types and order
    assert [(o.expectation, o.column, o.elements, o.unexpected) for o in outcomes] == expected


@settings(max_examples=examples(30))
@given(tables())
def test_rows_that_break_a_rule_are_those_of_pandas(made: tuple[pa.Table, Table]) -> None:
    content, declared = made
    ids = np.array(content["row_id"].to_pylist(), object)
    for rule, (_, _, _, bad) in zip(rules_of(declared), plain(content, declared), strict=True):
        named = tuple(each for each in ids[bad] if each is not None)
        assert broken_rows("things", content, rule, None) == named
        assert broken_rows("things", content, rule, 2) == named[:2]


def core_expectations(declared: Table) -> Iterator[Any]:
    """Great Expectations' own expectations of a declaration, which take the frame itself."""
    import great_expectations.expectations as gxe

    if len(declared.key) > 1:
        yield gxe.ExpectCompoundColumnsToBeUnique(column_list=list(declared.key))
    for c in declared.columns:
        if not c.nullable:
            yield gxe.ExpectColumnValuesToNotBeNull(column=c.name)
        if c.minimum is not None or c.maximum is not None:
            yield gxe.ExpectColumnValuesToBeBetween(column=c.name, min_value=c.minimum, max_value=c.maximum)
        if c.codes:
            yield gxe.ExpectColumnValuesToBeInSet(column=c.name, value_set=list(c.codes))
        if declared.key == (c.name,):
            yield gxe.ExpectColumnValuesToBeUnique(column=c.name)


@settings(max_examples=examples(16))
@given(tables())
def test_outcomes_are_those_of_the_expectations_that_rules_are_named_after(made: tuple[pa.Table, Table]) -> None:
    content, declared = made
    outcomes = validate(content, declared)[2:]  # after types and order
    import great_expectations as gx

    batch = gx.get_context(mode="ephemeral").data_sources.pandas_default.read_dataframe(content.to_pandas())
    suite = gx.ExpectationSuite("core", expectations=list(core_expectations(declared)))
    for said, outcome in zip(batch.validate(suite, result_format="BASIC").results, outcomes, strict=True):
        found = (said.expectation_config.type, said.success, said.result.get("unexpected_count", 0))
        assert (outcome.expectation, outcome.success, outcome.unexpected) == found
        limits = {
            k: v for k, v in said.expectation_config.kwargs.items() if k in ("min_value", "max_value", "value_set")
        }
        assert json.loads(outcome.expected) == limits


def test_a_table_without_rows_is_kept() -> None:
    declared = Table("things", "For tests.", COLUMNS, key=("row_id", "share"))
    assert all(o.success and o.unexpected == 0 for o in validate(declared.empty(), declared))


LARGE = Table(
    "things",
    "For tests.",
    (
        Column("row_id", "string", "key"),
        Column("maker", "string", "part of a key", codes=("model", "lender")),
        Column("share", "double", "in [0, 1]", nullable=True, minimum=0.0, maximum=1.0),
    ),
    key=("row_id", "maker"),
)
ROWS = 600_000


@pytest.fixture(scope="module")
def large() -> pa.Table:
    share = np.linspace(0, 1, ROWS)
    share[7::1000] = np.nan
    names = pa.array(np.arange(ROWS) // 2).cast(pa.string())
    return LARGE.build(row_id=names, maker=np.tile(["model", "lender"], ROWS // 2), share=share)


def test_elements_of_a_large_table_are_all_its_values(large: pa.Table) -> None:
    outcomes = validate(large, LARGE)
    assert all(o.success and o.unexpected == 0 for o in outcomes)
    assert [o.elements for o in outcomes] == [3, 3, ROWS, ROWS, ROWS, ROWS, ROWS - 600]


def test_a_large_table_is_counted_to_the_row(large: pa.Table) -> None:
    share = large["share"].to_numpy().copy()
    share[:12_345] = 2.0
    again = pa.concat_tables([large.set_column(2, "share", pa.array(share, from_pandas=True)), large.slice(0, 20_000)])
    found = {o.expectation: o.unexpected for o in validate(again, LARGE)}
    assert found[BETWEEN] == 12_345
    assert found[UNIQUE_TOGETHER] == 40_000


def test_parquet_in_parts_is_counted_as_one_table(large: pa.Table, tmp_path: Path) -> None:
    for part in range(3):
        pq.write_table(large.slice(part * 200_000, 200_001), tmp_path / f"part-{part}.parquet", row_group_size=65_536)
    whole = pads.dataset(tmp_path, format="parquet")
    found = {o.expectation: (o.elements, o.unexpected) for o in validate(whole, LARGE)}
    assert found[UNIQUE_TOGETHER] == (ROWS + 2, 4)
    twice = {str(200_000 // 2), str(400_000 // 2)}
    assert set(broken_rows("things", whole, rules_of(LARGE)[0], None)) == twice
