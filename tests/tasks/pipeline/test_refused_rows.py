"""Refused rows: exact counts of any number of rows, and samples with weights."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import SuiteError
from schemas.tables.applications import (
    APPLICATIONS,
    INTAKE_CELLS,
    INTAKE_RULES,
    MEMBERSHIPS,
    REFUSALS,
    SOURCE_READ,
)
from schemas.tables.readings import UNDECIDED
from tasks.ingest.stage import ingest
from tasks.pipeline import stage
from tasks.pipeline.stage import Keeping, Produced, counted, hold, kept, rows_counted

Tables = dict[str, pa.Table]
ROWS, USED = 250_000, 10_000
LINES = np.array([("filtered", "lender"), ("filtered", "year"), ("decision_not_audited", "approved")])


def refused_rows(ids: list[str], line: "np.ndarray[Any, Any]", favourable: list[bool | None]) -> pa.Table:
    return REFUSALS.build(
        row_id=ids, source_row=[int(i) + 1 for i in ids], stage=["ingest"] * len(ids), reason=line[:, 0],
        column=line[:, 1], detail=[None] * len(ids), favourable=favourable, weight=[1.0] * len(ids),
    )  # fmt: skip


def ingested(rows: int = ROWS, used: int = USED) -> Produced:
    """A source of which the first rows are used; nine of ten others are of another lender."""
    ids, rng = [str(i) for i in range(rows)], np.random.default_rng(3)
    groups = [*rng.choice(["white", "Black"], rows), *rng.choice(["man", "woman"], rows)]
    members = MEMBERSHIPS.build(row_id=ids * 2, protected_attribute=["race"] * rows + ["sex"] * rows, group=groups)
    fixed: dict[str, Any] = {c.name: [None] * used for c in APPLICATIONS.columns}
    fixed |= {"row_id": ids[:used], "source_row": range(1, used + 1), "favourable": [i % 3 > 0 for i in range(used)]}
    line = LINES[rng.choice(3, rows - used, p=[0.9, 0.095, 0.005])]
    aside = refused_rows(ids[used:], line, [None if i % 7 == 0 else i % 2 == 0 for i in range(rows - used)])
    read = SOURCE_READ.build(source=["x"], sha256=["0" * 64], rows=[rows], year=[2022], lender=[None])
    tables = {"applications": APPLICATIONS.build(**{**fixed, "outcome": fixed["favourable"]}), "memberships": members}
    counts = {"undecided": UNDECIDED.build(rows=[0])}
    counts |= {table.name: table.empty() for table in (INTAKE_RULES, INTAKE_CELLS)}
    return Produced(
        {**tables, "source_read": read, **counts}, aside, rows_in=rows, keeping=Keeping("sample", 1, members)
    )


@pytest.fixture(scope="module")
def large() -> Produced:
    return ingested()


@pytest.fixture(scope="module")
def written(large: Produced) -> tuple[Tables, pa.Table]:
    return hold(ingest, large, ROWS)[:2]


def sizes(rows: pa.Table) -> "pd.Series[Any]":
    return rows.to_pandas().groupby(["reason", "column"]).size()


def test_of_240_000_refused_rows_the_counts_balance_and_a_sample_is_written(
    large: Produced, written: tuple[Tables, pa.Table]
) -> None:
    tables, rows = written
    assert rows_counted(tables["refusal_counts"]) == ROWS - USED
    assert sizes(rows).tolist() == [1000, 1000, 1000]
    weights = rows.to_pandas().groupby(["reason", "column"])["weight"].sum()
    assert weights.to_dict() == pytest.approx(sizes(large.refusals).to_dict(), rel=1e-12)
    assert set(tables["memberships"]["row_id"].to_pylist()) == {*map(str, range(USED)), *rows["row_id"].to_pylist()}


def test_a_row_that_is_neither_used_nor_counted_breaks_the_balance() -> None:
    with pytest.raises(SuiteError, match="and refusals"):
        hold(ingest, ingested(60, 10), 61)


def test_the_counts_of_each_group_are_those_of_the_rows(large: Produced, written: tuple[Tables, pa.Table]) -> None:
    whose = ["stage", "reason", "column", "protected_attribute", "group", "favourable"]
    counts, rows = written[0]["refusal_counts"].to_pandas(), large.refusals.to_pandas()
    rows = rows.merge(large.tables["memberships"].to_pandas(), on="row_id")
    for frame in (counts, rows):
        frame["favourable"] = frame["favourable"].astype(str)
    assert counts.groupby(whose)["n"].sum().to_dict() == rows.groupby(whose).size().to_dict()


def test_a_sample_does_not_depend_on_the_order_of_rows_but_on_the_seed(large: Produced) -> None:
    turned = large.refusals.take(np.random.default_rng(5).permutation(large.refusals.num_rows))
    first, again = (set(kept(rows, Keeping("sample", 9))["row_id"].to_pylist()) for rows in (large.refusals, turned))
    assert first == again
    assert first != set(kept(large.refusals, Keeping("sample", 10))["row_id"].to_pylist())


def test_what_is_kept(large: Produced) -> None:
    assert kept(large.refusals, Keeping("all")) is large.refusals
    assert kept(large.refusals, Keeping("counts")).num_rows == 0
    few = large.refusals.slice(0, stage.WHOLE_ROWS)
    assert kept(few, Keeping("sample")) is few
    assert kept(large.refusals.slice(0, stage.WHOLE_ROWS + 1), Keeping("sample")).num_rows < 3001


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.booleans(), st.booleans()), max_size=30))
def test_rows_of_no_group_are_counted_once_for_each_attribute(people: list[tuple[str, str, bool, bool]]) -> None:
    ids = [str(i) for i in range(len(people))]
    rows = refused_rows(ids, LINES[[p[2] * 1 for p in people]], [p[2] for p in people])
    told = [(i, p) for i, p in zip(ids, people, strict=True) if p[3]]
    names, groups = ["race"] * len(told) + ["sex"] * len(told), [p[0] for _, p in told] + [p[1] for _, p in told]
    members = MEMBERSHIPS.build(row_id=[i for i, _ in told] * 2, protected_attribute=names, group=groups)
    members = pa.concat_tables([members, MEMBERSHIPS.build(row_id=["z"], protected_attribute=["sex"], group=["x"])])
    counts = counted(rows, members)
    assert rows_counted(counts) == len(people)
    sums = counts.to_pandas().groupby(["protected_attribute"])["n"].sum()
    assert set(sums) <= {len(people)}
