"""Parts of a table by the values of a column: what their digests depend on, and what they do not."""

import hashlib
import random
from base64 import urlsafe_b64encode

import duckdb
import pyarrow as pa
import pytest

from schemas.errors import DataQualityError
from schemas.tables.hmda import HMDA_APPLICATIONS
from tasks.ingest.sources.raw import COUNTED, counted

ROWS = [
    {"source_row": i, "lender": who, "amount": i * 0.1 if i % 3 else None, "note": f"n{i % 7}", "code": i % 5}
    for i, who in enumerate(["B"] * 40 + ["A"] * 7 + [None] * 3 + ["Ü"] * 2, start=1)
]


def parts(rows, column="lender", threads=1, **settings):
    with duckdb.connect(config={"threads": threads, "memory_limit": "200MB", **settings}) as connection:
        connection.register("rows", pa.Table.from_pylist(rows) if isinstance(rows, list) else rows)
        return counted(connection, "rows", column)


def key_of(name):
    return urlsafe_b64encode(hashlib.sha256(name.encode()).digest()).decode()[:4]


def digest_of(rows):
    """The digest by its definition, in Python."""
    said = []
    for row in rows:
        cells = sorted((name, value) for name, value in row.items() if name != "source_row" and value is not None)
        texts = (str(v).replace("\x1e", "\x1e\x1e") if isinstance(v, str) else str(v) for _, v in cells)
        line = "".join(f"\x1e{key_of(name)}{text}" for (name, _), text in zip(cells, texts, strict=True))
        said.append(hashlib.sha256(line.encode()).digest())
    return hashlib.sha256(b"".join(sorted(said))).hexdigest()


def test_rows_and_digests_by_value_and_null_is_empty():
    found = parts(ROWS)
    assert found.schema == COUNTED
    assert dict(zip(found["value"].to_pylist(), found["rows"].to_pylist(), strict=True)) == {
        "": 3, "A": 7, "B": 40, "Ü": 2,
    }  # fmt: skip
    for value, digest in zip(found["value"].to_pylist(), found["rows_sha256"].to_pylist(), strict=True):
        assert digest == digest_of([row for row in ROWS if (row["lender"] or "") == value])


def test_order_of_rows_and_columns_numbers_of_rows_and_threads_do_not_count():
    wanted, other = parts(ROWS), [dict(reversed(row.items())) for row in ROWS]
    random.Random(3).shuffle(other)
    other = [{**row, "source_row": 1000 + i, "later": None} for i, row in enumerate(other)]
    assert parts(other, threads=4, preserve_insertion_order=False) == wanted


@pytest.mark.parametrize("change", [{"amount": 9.9}, {"note": None}, {"note": ""}, {"code": 6}])
def test_a_corrected_row_changes_its_own_part_alone(change):
    corrected = [{**row, **change} if row["source_row"] == 42 else row for row in ROWS]
    before, after = (dict(zip(t["value"].to_pylist(), t["rows_sha256"].to_pylist(), strict=True))
                     for t in (parts(ROWS), parts(corrected)))  # fmt: skip
    changed = [value for value in before if before[value] != after[value]]
    assert changed == ["A"]


def test_a_row_twice_is_not_the_row_once():
    once, twice = parts(ROWS[:1]), parts(ROWS[:1] * 2)
    assert once["rows_sha256"] != twice["rows_sha256"]
    assert twice["rows"].to_pylist() == [2]


def test_a_text_that_looks_like_two_cells_is_not_taken_for_them():
    one = [{"lender": "A", "a": f"x\x1e{key_of('b')}y", "b": None}, {"lender": "B", "a": None, "b": "z"}]
    two = [{"lender": "A", "a": "x", "b": "y"}, {"lender": "B", "a": None, "b": "z"}]
    assert parts(one)["rows_sha256"][0] != parts(two)["rows_sha256"][0]


def test_values_over_many_batches_are_one_part():
    rows = pa.table({"lender": ["A"] * 150_000 + ["B"], "n": range(150_001)})
    assert parts(rows)["rows"].to_pylist() == [150_000, 1]


def test_no_row_is_no_part():
    assert parts(pa.table({"lender": pa.array([], pa.string())})).num_rows == 0


def test_a_column_that_is_not_there_names_the_nearest():
    with pytest.raises(DataQualityError, match=r"no column 'lendr' to part them by.*lender"):
        parts(ROWS, "lendr")


def test_the_columns_of_hmda_are_told_apart_by_short_keys():
    names = [column.name for column in HMDA_APPLICATIONS.columns]
    assert len({key_of(name) for name in names}) == len(names)
