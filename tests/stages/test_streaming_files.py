"""Lists in files: sorted as in memory, streamed as in memory, refused by name, and whole once they have their name."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.errors import DataQualityError, InfrastructureError
from tasks import _streaming
from tasks.algorithms.ranking import ratios
from tasks.algorithms.ranking.actions import make_actions
from tasks.algorithms.ranking.blocks import BlockRules, rerank_blocks
from tasks.algorithms.ranking.records import make_records
from tasks.algorithms.ranking.representation import representation
from tasks.algorithms.ranking.reranked import modified
from tasks.algorithms.ranking.targets import Boundary, to_boundary

NAMES = ("income", "amount")


def drawn(seed, n):
    """A list with ties, of two attributes in steps; the second group is dearer."""
    rng = np.random.default_rng(seed)
    group = (rng.random(n) < 0.4).astype(np.int32)
    values = rng.integers(-8, 9, (n, 2)) / 4 - 0.5 * group[:, None]
    actions, boundary = make_actions([0.5, 1.0], step=[0.05, 0.25]), Boundary(np.array([1.0, 0.5]), -6.0)
    return make_records(values, to_boundary(values, boundary, actions), group, actions, boundary)


def write(records, file):
    """The list as it comes, its numbers being its rows."""
    columns = {"number": np.arange(len(records.cost)), "cost": records.cost, "group": records.group}
    columns["rate"] = records.rate
    columns |= {_streaming.VALUE + name: records.values[:, at] for at, name in enumerate(NAMES)}
    columns |= {_streaming.TARGET + name: records.target[:, at] for at, name in enumerate(NAMES)}
    pq.write_table(pa.table(columns, schema=_streaming.list_schema(NAMES)), file, row_group_size=37)
    return file


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1), st.integers(2, 300), st.integers(1, 60), st.integers(1, 90))
def test_a_file_comes_out_as_the_list_in_memory(tmp_path, monkeypatch, seed, n, size, piece):
    monkeypatch.setattr(_streaming.chunks, "__defaults__", (piece,))
    records = drawn(seed, n)
    held = representation(records.group, 2, 0)
    expected = rerank_blocks(records, held, size, BlockRules())
    _streaming.sort_by_cost(write(records, tmp_path / "list.parquet"), tmp_path / "sorted.parquet")
    out = tmp_path / "result.parquet"
    told = _streaming.rerank_file(tmp_path / "sorted.parquet", out, size, records.rules, held, BlockRules())
    found = pq.read_table(out).to_pydict()
    at = np.array(found["number"])
    assert at.tolist() == expected.order.tolist()
    assert found["rank"] == list(range(1, n + 1))
    assert found["cost"] == expected.cost[at].tolist()
    assert found["cost_before"] == records.cost[at].tolist()
    assert found["block"] == expected.block[at].tolist()
    assert found["block_before"] == expected.block_before[at].tolist()
    assert found["crossed"] == (expected.block != expected.block_before)[at].tolist()
    assert found["group"] == records.group[at].tolist()
    for column, name in enumerate(NAMES):
        assert found[_streaming.BEFORE + name] == records.values[at, column].tolist()
        assert found[_streaming.VALUE + name] == expected.values[at, column].tolist()
    assert (told.rows, told.left) == (n, len(expected.failed))
    assert told.modified == modified(records, expected).sum()
    assert told.crossed == (expected.block != expected.block_before).sum()
    assert told.before.ratio == pytest.approx(ratios.overall(records.cost, records.group))
    assert told.after.ratio == pytest.approx(ratios.overall(expected.cost, records.group))


def test_what_a_stream_has_to_know_beforehand_is_counted(tmp_path):
    records = drawn(3, 200)
    whole = _streaming.whole_of(write(records, tmp_path / "list.parquet"))
    assert whole.counts.tolist() == np.bincount(records.group).tolist()
    assert whole.shares == pytest.approx(np.bincount(records.group) / 200)
    assert whole.worst == ratios.worst_off(records.cost, records.group, 2)
    assert whole.ratio == pytest.approx(ratios.overall(records.cost, records.group))


@pytest.mark.slow
def test_a_list_larger_than_its_memory_is_sorted(tmp_path):
    n = 4_000_000  # 176 MB
    rng = np.random.default_rng(5)
    cost = rng.integers(0, 1_000, n) / 7
    columns = [rng.permutation(n), cost, np.zeros(n, np.int32), np.ones(n), rng.random(n), rng.random(n)]
    pq.write_table(pa.table(columns, schema=_streaming.list_schema(["x"])), tmp_path / "list.parquet")
    _streaming.sort_by_cost(tmp_path / "list.parquet", tmp_path / "sorted.parquet", memory_mb=160)
    found = pq.read_table(tmp_path / "sorted.parquet")
    order = np.lexsort((columns[0], cost))
    assert np.array_equal(found["number"].to_numpy(), columns[0][order])
    assert pq.ParquetFile(tmp_path / "sorted.parquet").metadata.num_row_groups > 1
    with pytest.raises(InfrastructureError, match=r"list\.parquet could not be sorted in 4 MB: Out of Memory"):
        _streaming.sort_by_cost(tmp_path / "list.parquet", tmp_path / "other.parquet", memory_mb=4)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["list.parquet", "sorted.parquet"]


def test_a_file_that_is_no_list_is_named(tmp_path):
    records, held = drawn(1, 40), representation(drawn(1, 40).group, 2, 0)
    file = write(records, tmp_path / "list.parquet")
    table = pq.read_table(file)
    pq.write_table(table.drop_columns(["target:amount", "rate"]), tmp_path / "short.parquet")
    with pytest.raises(DataQualityError, match=r"short\.parquet is no list .* \['rate', 'target:amount'\]"):
        _streaming.attributes_of(tmp_path / "short.parquet")
    pq.write_table(table.select(["number", "cost", "group", "rate"]), tmp_path / "bare.parquet")
    with pytest.raises(DataQualityError, match="it lacks \\['value:NAME'\\]"):
        _streaming.sort_by_cost(tmp_path / "bare.parquet", tmp_path / "sorted.parquet")
    (tmp_path / "text.parquet").write_text("number,cost")
    with pytest.raises(DataQualityError, match=r"text\.parquet is not a Parquet file"):
        _streaming.whole_of(tmp_path / "text.parquet")
    pq.write_table(table.slice(0, 0), tmp_path / "empty.parquet")
    with pytest.raises(DataQualityError, match=r"empty\.parquet has no rows"):
        _streaming.rerank_file(
            tmp_path / "empty.parquet", tmp_path / "out.parquet", 5, records.rules, held, BlockRules()
        )


def test_an_unsorted_list_is_refused_and_leaves_nothing_behind(tmp_path):
    records, held = drawn(1, 40), representation(drawn(1, 40).group, 2, 0)
    file = write(records, tmp_path / "list.parquet")
    with pytest.raises(DataQualityError, match=r"list\.parquet: costs fall .* sort the list"):
        _streaming.rerank_file(file, tmp_path / "out.parquet", 5, records.rules, held, BlockRules())
    assert [each.name for each in tmp_path.iterdir()] == ["list.parquet"]
