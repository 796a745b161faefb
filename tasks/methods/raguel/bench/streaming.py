"""Lists that do not fit into memory: sorted, re-ranked block by block (Algorithm 2 of RAGUEL) and written as Parquet.

A list is a file with a row for each record: ``number``, ``cost``, ``group``, ``rate``, and of every attribute
``value:`` and ``target:`` followed by its name. What is written has a row for each record at its new rank, with what it
was before.

Here belongs the edge between files and ``stream``, which does the work.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import DataQualityError, InfrastructureError
from tasks.methods.raguel.algorithm.ranking import counting
from tasks.methods.raguel.algorithm.ranking.blocks import BlockRules
from tasks.methods.raguel.algorithm.ranking.representation import Representation
from tasks.methods.raguel.algorithm.recourse.moves import Rules
from tasks.methods.raguel.bench import stream
from tasks.methods.raguel.bench.stream import Blocks, Chunk, Finished, Stream
from tasks.numerics.arrays import Bools, Floats, Longs

CHUNK_ROWS: Final = 500_000
"""Records held at a time, some 100 bytes each and 50 more for every attribute."""
ROW_GROUP_ROWS: Final = 122_880
VALUE, TARGET, BEFORE = "value:", "target:", "before:"
_COLUMNS = ("number", "cost", "group", "rate")


@dataclass(frozen=True)
class Whole:
    """What a stream has to know of the whole list beforehand, ``(g,)`` each."""

    counts: Longs
    sums: Floats
    """Of costs."""

    @property
    def shares(self) -> Floats:
        """Share of each group."""
        shares: Floats = self.counts / self.counts.sum()
        return shares

    @property
    def worst(self) -> int:
        """The group with the largest mean cost."""
        return int(np.argmax(self.sums / np.maximum(self.counts, 1)))

    @property
    def ratio(self) -> float:
        """The overall recourse ratio."""
        return float(counting.ratio(self.counts, self.sums))


@dataclass(frozen=True)
class Streamed:
    """What became of a list."""

    rows: int
    before: Whole
    after: Whole
    crossed: int
    """Records that are in another block than before."""
    modified: int
    left: int
    """Blocks that were left unfair because nothing helped."""


@dataclass
class _Tally:
    """What has been written so far."""

    counts: Longs
    sums_before: Floats
    sums: Floats
    rows: int = 0
    crossed: int = 0
    modified: int = 0
    left: int = 0

    def add(self, finished: Finished) -> None:
        blocks, groups = finished.blocks, len(self.counts)
        self.rows += len(blocks.number)
        self.counts += np.bincount(blocks.group, minlength=groups)
        self.sums_before += np.bincount(blocks.group, blocks.cost_before, minlength=groups)
        self.sums += np.bincount(blocks.group, blocks.cost, minlength=groups)
        self.crossed += int(blocks.crossed.sum())
        self.modified += int((blocks.values != blocks.values_before).any(axis=1).sum())
        self.left += len(finished.left)


def list_schema(attributes: Iterable[str]) -> pa.Schema:
    """Columns of a list with these attributes."""
    names = list(attributes)
    plain = [("number", pa.int64()), ("cost", pa.float64()), ("group", pa.int32()), ("rate", pa.float64())]
    return pa.schema([*plain, *((start + name, pa.float64()) for start in (VALUE, TARGET) for name in names)])


def sort_by_cost(source: Path, sorted_list: Path, memory_mb: int = 1_000) -> None:
    """Write a list in the order of cost, then number; what does not fit into memory goes to disk beside the result.

    Raises:
        DataQualityError: The file is no list.
        InfrastructureError: Memory or disk is not enough.
    """
    attributes_of(source)
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{memory_mb}MB",
        "temp_directory": str(sorted_list.parent),
        "threads": 2,  # each of them needs memory of its own
        "preserve_insertion_order": False,  # of rows of equal rank: it would cost memory, and numbers are unique
    }
    try:
        with _whole(sorted_list) as draft, duckdb.connect(config=settings) as connection:
            ordered = connection.read_parquet(str(source)).order("cost, number")
            ordered.write_parquet(str(draft), compression="zstd", row_group_size=ROW_GROUP_ROWS)
    except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
        reason = str(error).splitlines()[0]
        raise InfrastructureError(f"{source.name} could not be sorted in {memory_mb} MB: {reason}") from error


def whole_of(file: Path) -> Whole:
    """Counts and sums of a list's groups, numbered from 0.

    Raises:
        DataQualityError: The file is no list, or has no rows.
    """
    attributes_of(file)
    with duckdb.connect() as connection:
        told = connection.read_parquet(str(file)).aggregate('"group", count(*) AS n, sum(cost) AS total')
        rows = told.fetchall()
    if not rows:
        raise DataQualityError(f"{file.name} has no rows; a list to be re-ranked needs one at least")
    counts = np.zeros(max(group for group, _, _ in rows) + 1, np.int64)
    sums = np.zeros(len(counts))
    for group, n, total in rows:
        counts[group], sums[group] = n, total
    return Whole(counts, sums)


def attributes_of(file: Path) -> tuple[str, ...]:
    """Names of a list's attributes.

    Raises:
        DataQualityError: The file is no list.
    """
    try:
        names = pq.read_schema(file).names
    except pa.ArrowException as error:
        raise DataQualityError(f"{file.name} is not a Parquet file: {error}") from error
    attributes = tuple(name.removeprefix(VALUE) for name in names if name.startswith(VALUE))
    missing = [name for name in list_schema(attributes).names if name not in names]
    if missing or not attributes:
        raise DataQualityError(f"{file.name} is no list of records: it lacks {missing or [VALUE + 'NAME']}")
    return attributes


def rerank_file(
    sorted_list: Path, result: Path, size: int, rules: Rules, held: Representation, choices: BlockRules
) -> Streamed:
    """Re-rank a sorted list in blocks of ``size`` and write it in its new order.

    The result gets its name once it is whole. Shares of ``held`` are of the whole list or of a database around it.

    Raises:
        DataQualityError: The file is no list, or is not sorted by cost.
    """
    attributes, whole = attributes_of(sorted_list), whole_of(sorted_list)
    groups = len(held.shares)
    settings = Stream(size, rules, held.bounds, choices.swaps(whole.worst, groups))
    tally = _Tally(np.zeros(groups, np.int64), np.zeros(groups), np.zeros(groups))
    schema = _result_schema(attributes)
    try:
        with (
            _whole(result) as draft,
            pq.ParquetWriter(draft, schema, compression="zstd", compression_level=1) as writer,
        ):
            for finished in stream.stream(chunks(sorted_list, attributes), settings):
                writer.write_table(_as_table(finished.blocks, attributes, tally.rows), row_group_size=ROW_GROUP_ROWS)
                tally.add(finished)
    except ValueError as error:
        raise DataQualityError(f"{sorted_list.name}: {error}") from error
    before, after = (Whole(tally.counts, sums) for sums in (tally.sums_before, tally.sums))
    return Streamed(tally.rows, before, after, tally.crossed, tally.modified, tally.left)


def chunks(file: Path, attributes: tuple[str, ...], rows: int = CHUNK_ROWS) -> Iterator[Chunk]:
    """A list in pieces of at most so many records."""
    with pq.ParquetFile(file) as parquet:
        for batch in parquet.iter_batches(batch_size=rows, columns=list_schema(attributes).names):
            # copies: Arrow's own arrays are read-only, which to numba is another type, and it would compile all anew
            number, cost, group, rate = (batch[name].to_numpy().copy() for name in _COLUMNS)
            values, target = (_matrix(batch, start, attributes) for start in (VALUE, TARGET))
            yield Chunk(number, cost, group, values, target, rate)


def _matrix(batch: pa.RecordBatch, start: str, attributes: tuple[str, ...]) -> Floats:
    return np.column_stack([batch[start + name].to_numpy() for name in attributes])


def _result_schema(attributes: tuple[str, ...]) -> pa.Schema:
    whole = [(name, pa.int64()) for name in ("number", "rank", "block_before", "block")]
    costs = [("cost_before", pa.float64()), ("cost", pa.float64())]
    values = [(start + name, pa.float64()) for start in (BEFORE, VALUE) for name in attributes]
    return pa.schema([*whole, ("group", pa.int32()), ("crossed", pa.bool_()), *costs, *values])


def _as_table(blocks: Blocks, attributes: tuple[str, ...], ranked: int) -> pa.Table:
    """Finished records, of which the first has rank ``ranked + 1``."""
    columns: dict[str, Longs | Floats | Bools] = {
        "number": blocks.number,
        "rank": np.arange(ranked + 1, ranked + len(blocks.number) + 1),
        "block_before": blocks.block_before,
        "block": blocks.block,
        "group": blocks.group.astype(np.int64),
        "crossed": blocks.crossed,
        "cost_before": blocks.cost_before,
        "cost": blocks.cost,
    }
    for start, values in ((BEFORE, blocks.values_before), (VALUE, blocks.values)):
        columns |= {start + name: np.ascontiguousarray(values[:, at]) for at, name in enumerate(attributes)}
    return pa.table(columns).cast(_result_schema(attributes))


@contextmanager
def _whole(file: Path) -> Iterator[Path]:
    """Where to write a file that gets its name once it is whole, and of which otherwise nothing is left."""
    draft = file.with_name(f".{file.name}")
    try:
        yield draft
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
