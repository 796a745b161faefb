"""Tables that grow on the disk: the files of tables that are written at once, and nothing left behind."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.lake import store as module
from tasks.lake.store import IN_MEMORY, Draft, Lake, Written, drafts

SCHEMA = pa.schema([pa.field("row_id", pa.string(), nullable=False), pa.field("value", pa.float64())])


def rows(n: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"row_id": [f"r{i % 7}" for i in range(n)], "value": rng.normal(size=n)}, schema=SCHEMA)


def grown(folder: Path, *pieces: pa.Table) -> pa.Table | Written:
    draft = Draft(folder / "evidence.parquet", SCHEMA)
    for each in pieces:
        draft.append(each)
    return draft.ended()


@pytest.mark.parametrize("sizes", [(50, 51), (100, 1), (30, 30, 30, 30, 30, 50), (1000,), (99, 0, 101, 3)])
def test_the_file_is_the_one_that_writing_at_once_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...]
) -> None:
    monkeypatch.setattr(module, "GROUP", 100)
    pieces = [rows(size, seed) for seed, size in enumerate(sizes)]
    found = grown(tmp_path / "growing", *pieces)
    assert isinstance(found, Written)
    whole = pa.concat_tables(pieces).combine_chunks()
    pq.write_table(whole, tmp_path / "once.parquet", compression="zstd", store_schema=False, row_group_size=100)
    mine, once = pq.ParquetFile(found.path), pq.ParquetFile(tmp_path / "once.parquet")
    assert mine.read().equals(once.read())
    assert mine.schema.equals(once.schema)
    groups = [[of.metadata.row_group(i).num_rows for i in range(of.num_row_groups)] for of in (mine, once)]
    assert groups[0] == groups[1]
    assert found.num_rows == found.dataset().count_rows() == sum(sizes)


@pytest.mark.parametrize("sizes", [(), (0,), (40, 60)])
def test_few_rows_are_held_and_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...]
) -> None:
    monkeypatch.setattr(module, "GROUP", 100)
    pieces = [rows(size, seed) for seed, size in enumerate(sizes)]
    found = grown(tmp_path / "growing", *pieces)
    assert isinstance(found, pa.Table)
    assert found.equals(pa.concat_tables([SCHEMA.empty_table(), *pieces]))
    assert not (tmp_path / "growing").exists()


def test_without_a_place_all_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GROUP", 100)
    draft = IN_MEMORY.new("evidence", SCHEMA)
    draft.append(rows(250))
    found = draft.ended()
    assert isinstance(found, pa.Table)
    assert found.equals(rows(250))


def test_a_lake_takes_the_file_as_it_lies_and_the_folder_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GROUP", 100)
    lake, folder = Lake(tmp_path / "lake"), tmp_path / "growing"
    with drafts(folder.parent, folder) as growing:
        draft = growing.new("evidence", SCHEMA)
        draft.append(rows(250))
        partition = lake.publish("detect", "key", {"evidence": draft.ended()}, {}, {})
    assert not folder.exists()
    assert partition.table("evidence").rows == 250
    assert lake.read(partition.table("evidence")).equals(rows(250))
    assert lake.find("detect", "key") is not None


def test_what_a_failed_stage_wrote_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GROUP", 100)

    def failing() -> None:
        with drafts(tmp_path, tmp_path / "growing") as growing:
            growing.new("evidence", SCHEMA).append(rows(250))
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        failing()
    assert not (tmp_path / "growing").exists()
