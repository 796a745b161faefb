"""Parquet of a stranger: sound files read as text; damaged, odd or packed ones end as one sentence, exit code 4."""

import contextlib
import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import examples, loans
from hypothesis import given
from hypothesis import strategies as st

from schemas.audit.source import Source
from schemas.errors import DataQualityError
from tasks.ingest.sources import files, parquet

LOANS = pa.table({name: [str(cell) for cell in column] for name, column in loans(300).items()})
TOLD = r"^loans\.parquet could not be read as Parquet: "


def packed(table: pa.Table, **how: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **how)
    return sink.getvalue()


def purposes(column: pa.Array) -> bytes:
    """The loans with another column ``purpose``."""
    return packed(LOANS.set_column(LOANS.column_names.index("purpose"), "purpose", column))


def read(place: Path, content: bytes) -> pa.Table:
    (place / "loans.parquet").write_bytes(content)
    source = Source(kind="parquet", path=str(place / "loans.parquet"))
    return files.read(source, files.header(source)).table


SOUND = packed(LOANS)
FOOTER = struct.unpack("<I", SOUND[-8:-4])[0]


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        (pa.array(["buy", None, ""] * 100), "buy"),
        (pa.array([b"buy"] * 300), "buy"),
        (pa.array(["buy"] * 300, pa.large_string()), "buy"),
        (pa.array(["buy"] * 300).dictionary_encode(), "buy"),
        (pa.array([7] * 300).dictionary_encode(), "7"),
        (pa.array([1.5] * 300), "1.5"),
        (pa.array([True] * 300), "true"),
        (pa.array([0] * 300, pa.date32()), "1970-01-01"),
        (pa.nulls(300), ""),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else None,
)
def test_plain_values_of_every_kind_are_text(tmp_path: Path, column: pa.Array, cell: str) -> None:
    found = read(tmp_path, purposes(column))
    assert found.schema == pa.schema([(name, pa.string()) for name in LOANS.column_names])
    assert found["purpose"].to_pylist() == [cell if each.is_valid and str(each) else "" for each in column]
    assert found.drop_columns("purpose").equals(LOANS.drop_columns("purpose"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it does not end as Parquet does"),
        (SOUND[:-100], "it does not end as Parquet does"),
        (SOUND[:-4] + b"PARE", "it is encrypted"),
        (SOUND[:-8] + struct.pack("<I", 0) + b"PAR1", "its footer should have 0 bytes"),
        (SOUND[:-8] + struct.pack("<I", len(SOUND)) + b"PAR1", "which the file does not hold"),
        (SOUND[:-8] + struct.pack("<I", 64_000_001) + b"PAR1", "has 64,000,001 bytes, and at most 64,000,000 are read"),
        (SOUND[:-FOOTER] + bytes(FOOTER - 8) + SOUND[-8:], ".+; if it is Parquet, write or fetch it again$"),
        (purposes(pa.array([[1]] * 300)), r"column 'purpose' is nested \(list<.*int64>\)"),
        (purposes(pa.array([{"a": 1}] * 300)), "column 'purpose' is nested"),
        (purposes(pa.array([b"\xff"] * 300)), "Invalid UTF8"),
        (packed(LOANS.rename_columns(["x", *LOANS.column_names[1:-1], "x"])), r"it names \['x'\] more than once"),
        (packed(LOANS.slice(0, 0)), "it has no rows"),
        (packed(LOANS.select([])), "it has no rows"),
        (packed(pa.table({f"c{i}": [0] for i in range(10_001)})), "it has 10,001 columns, and at most 10,000 are read"),
    ],
    ids=range(14),
)
def test_what_cannot_be_read_is_named_with_its_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(DataQualityError, match=TOLD + f".*{reason}"):
        read(tmp_path, content)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flipped")


@given(st.integers(0, 8 * len(SOUND) - 1))
def test_a_flipped_bit_gives_a_table_or_that_sentence(place: Path, bit: int) -> None:
    flipped = bytearray(SOUND)
    flipped[bit // 8] ^= 1 << bit % 8
    with contextlib.suppress(DataQualityError):  # whatever else is raised fails
        assert set(read(place, bytes(flipped)).schema.types) == {pa.string()}


@pytest.mark.parametrize("rows", range(examples(40), 0, -10))
def test_rows_of_several_groups_keep_their_order(tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_ROWS", 7)
    assert read(tmp_path, packed(LOANS, row_group_size=rows)).equals(LOANS)


def test_a_checksum_of_a_page_is_held(tmp_path: Path) -> None:
    plain = {"use_dictionary": False, "compression": "none", "write_page_checksum": True}
    content = packed(LOANS, **plain)
    at = content.index(b"refinance" + struct.pack("<I", 3) + b"buy")  # in a page, and not in what describes it
    with pytest.raises(DataQualityError, match=TOLD + r".*(CRC|checksum)"):
        read(tmp_path, content[:at] + b"R" + content[at + 1 :])


def repeated(cell: str, rows: int, **how: Any) -> bytes:
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([cell]))
    return packed(pa.table({"x": column, "y": column}), compression="zstd", **how)


@pytest.mark.parametrize(
    ("cell", "rows"), [("x" * 100_000, 10_000), ("yes", 1_000_000)], ids=["a long cell often", "many rows"]
)
def test_a_small_file_does_not_fill_the_memory(
    tmp_path: Path, cell: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "FREE_BYTES", 4_000_000)
    before = pa.total_allocated_bytes()
    with pytest.raises(DataQualityError, match=TOLD + "it unpacks to more than 200 times its size"):
        read(tmp_path, repeated(cell, rows))
    assert pa.total_allocated_bytes() - before < 20_000_000


def test_pages_that_unpack_to_far_more_are_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "FREE_BYTES", 1_000_000)
    content = packed(pa.table({"x": ["x" * 100_000] * 300}), compression="zstd", use_dictionary=False)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)
    with pytest.raises(DataQualityError, match="it unpacks to more than 200 times its size"):
        read(tmp_path, content)
