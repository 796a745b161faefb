"""Ingest of many rows, by small limits in place of the large ones: samples of refused rows, tables on the disk."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import loans, spec_of
from pandas_ingest import reference

from schemas.audit.partition import ALL, Part
from schemas.tables.applications import APPLICATIONS, MEMBERSHIPS
from tasks.ingest import applications
from tasks.ingest.stage import ingest, ingest_settings
from tasks.lake import store
from tasks.lake.store import Written
from tasks.pipeline import stage
from tasks.pipeline.stage import Produced, hold

Held = dict[str, pa.Table]


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """3,000 loans of which most are refused, some of them unreadable, where 50 refused rows are many."""
    rng = np.random.default_rng(5)
    frame = loans(3000).astype(object)
    frame["id"] = [f"L{i}" for i in range(3000)]
    frame.loc[rng.choice(3000, 1500, replace=False), "approved"] = "withdrawn"
    frame.loc[rng.choice(3000, 400, replace=False), "income"] = "a lot"
    frame.loc[rng.choice(3000, 30, replace=False), "history"] = "splendid"
    lines = frame.to_csv(index=False).splitlines()
    for at in rng.choice(np.arange(1, 3001), 90, replace=False):
        lines[at] += ",surplus"
    (tmp_path / "loans.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(stage, "WHOLE_ROWS", 50)
    monkeypatch.setattr(stage, "SAMPLED_ROWS", 20)
    return tmp_path


def held(produced: Produced) -> Held:
    content, rows, *_ = hold(ingest, produced, produced.rows_in or 0)
    tables = {n: t.dataset().to_table() if isinstance(t, Written) else t for n, t in content.items()}
    return {**tables, "refusals": rows}


def assert_equal(found: Held, expected: Held) -> None:
    assert found.keys() == expected.keys()
    for name, table in expected.items():
        assert found[name].cast(table.schema).equals(table), name


@pytest.mark.parametrize("keep", ["sample", "all", "counts"])
@pytest.mark.parametrize("bounds", ["[null, null]", "[60, 200]"], ids=["", "and some fail an expectation"])
def test_of_many_refused_rows_the_same_are_written_and_all_are_counted(many: Path, keep: str, bounds: str) -> None:
    settings = ingest_settings(spec_of(many, refusals__keep=keep, columns__amount__bounds=bounds))
    found = held(ingest.function(settings=settings))
    assert_equal(found, held(reference(settings=settings)))
    if keep == "sample":
        assert 60 < found["refusals"].num_rows < 120 < stage.rows_counted(found["refusal_counts"])


def test_tables_that_grow_on_the_disk_are_the_same(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "GROUP", 200)
    monkeypatch.setattr(applications, "RANGE", 700)
    monkeypatch.setattr(applications, "_HELD", 60)
    settings = ingest_settings(spec_of(many, columns__amount__bounds="[60, 200]"))
    expected = held(ingest.function(settings=settings))
    with store.drafts(many, many / "growing") as growing:
        produced = ingest.function(settings=settings, drafts=growing)
        assert isinstance(produced.tables[APPLICATIONS.name], Written)
        assert isinstance(produced.tables[MEMBERSHIPS.name], Written)
        assert_equal(held(produced), expected)


def part(place: Path, column: str, value: str, **overrides: str) -> Produced:
    spec = spec_of(place, **overrides)
    source = spec.source.model_copy(update={"part": Part(column=column, value=value, rows_sha256="0" * 64)})
    return ingest.function(settings=ingest_settings(spec.model_copy(update={"source": source})))


def test_a_partition_is_its_rows_alone_with_their_numbers(many: Path) -> None:
    whole = ingest.function(settings=ingest_settings(spec_of(many, refusals__keep="all")))
    for value in ("buy", "refinance"):
        own = part(many, "purpose", value, refusals__keep="all")
        rows = whole.tables[APPLICATIONS.name].to_pandas().query(f"purpose == '{value}'").reset_index(drop=True)
        pd.testing.assert_frame_equal(own.tables[APPLICATIONS.name].to_pandas(), rows)
        assert set(own.refusals["reason"].to_pylist()) == {"decision_not_audited", "not_a_number", "unknown_category"}
        assert own.rows_in == own.refusals.num_rows + len(rows)
        assert set(own.refusals["source_row"].to_pylist()) < set(whole.refusals["source_row"].to_pylist())


def test_the_partition_of_every_row_is_the_source(many: Path) -> None:
    own, whole = part(many, "purpose", ALL), ingest.function(settings=ingest_settings(spec_of(many)))
    assert own.rows_in == whole.rows_in == 3000
    assert own.refusals.equals(whole.refusals)


def test_a_partition_is_known_by_its_own_rows(many: Path) -> None:
    def digest(rows: str) -> str:
        spec = spec_of(many)
        own = Part(column="purpose", value="buy", rows_sha256=rows)
        source = spec.source.model_copy(update={"part": own})
        return ingest_settings(spec.model_copy(update={"source": source})).source_sha256

    first = digest("0" * 64)
    (many / "loans.csv").write_text((many / "loans.csv").read_text() + "L9,w,1,1,refinance,bad,no\n")
    assert digest("0" * 64) == first != digest("1" * 64)
