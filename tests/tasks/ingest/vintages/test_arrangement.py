"""Sorted rows: which file a row goes to, what the files hold, and what the table of lenders says."""

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.audit.partition import Part
from schemas.errors import DataQualityError
from schemas.tables.hmda import HMDA_APPLICATIONS, HMDA_LENDERS
from tasks.ingest.hmda.canonical import parquet
from tasks.ingest.hmda.rows import table_of
from tasks.ingest.sources.raw import counted
from tasks.ingest.vintages.sorting import SORTED, arranged, sort_rows, write_lenders

STATES = ["TX"] * 40 + ["CA"] * 30 + [None] * 5 + ["TX"] * 25
LENDERS = ["B"] * 35 + ["A"] * 5 + ["C"] * 20 + [None] * 10 + ["A"] * 5 + ["D"] * 5 + ["A"] * 20


def applications(folder: Path, states=STATES, lenders=LENDERS) -> Path:
    """A file of applications in no order; the columns that are not named are empty."""
    folder.mkdir(exist_ok=True)
    order = np.random.default_rng(3).permutation(len(states)).tolist()
    given = {
        "source_row": [i + 1 for i in order],
        "activity_year": [2022] * len(states),
        "lender_id": [lenders[i] for i in order],
        "state_code": [states[i] for i in order],
        "action_taken": [str(1 + i % 8) if i % 10 else None for i in order],
        "income_usd": [i * 0.1 for i in order],
    }
    empty = {field.name: [None] * len(states) for field in HMDA_APPLICATIONS.schema()}
    pq.write_table(pa.table({**empty, **given}, schema=HMDA_APPLICATIONS.schema()), folder / "applications.parquet")
    return folder / "applications.parquet"


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, dict[str, int]]:
    """Rows sorted into files of 16 at most."""
    rows = applications(tmp_path)
    (tmp_path / "out").mkdir()
    files = sort_rows(rows, tmp_path / "out", most=16)
    write_lenders(tmp_path / "out" / SORTED, tmp_path / "out")
    return tmp_path / "out", files


def test_rows_lie_by_state_and_in_the_order_of_lender_and_number(made):
    folder, files = made
    assert {Path(name).parts[1] for name in files} == {"state=CA", "state=TX", "state=none"}
    assert sorted(path.name for path in folder.iterdir()) == ["applications", "lenders.parquet"]
    for state in ("CA", "TX", "none"):
        keys = []
        for number in range(len([name for name in files if f"state={state}/" in name])):
            file = folder / SORTED / f"state={state}" / f"part-{number}.parquet"
            table = pq.read_table(file, partitioning=None)
            assert table.num_rows == files[file.relative_to(folder).as_posix()] <= 16
            assert {value or "none" for value in table["state_code"].to_pylist()} == {state}
            keys += [
                (a or "", n) for a, n in zip(*(table[c].to_pylist() for c in ("lender_id", "source_row")), strict=True)
            ]
        assert keys == sorted(keys)
    assert sum(files.values()) == len(STATES)


def test_no_row_is_lost_or_changed(made, tmp_path):
    folder, _ = made
    one, other = parquet(tmp_path / "applications.parquet"), parquet(folder / SORTED)
    with duckdb.connect() as connection:
        for a, b in ((one, other), (other, one)):
            assert connection.sql(f"FROM {a} EXCEPT ALL FROM {b}").fetchall() == []
        assert connection.sql(f"DESCRIBE FROM {one}").fetchall() == connection.sql(f"DESCRIBE FROM {other}").fetchall()


def test_a_lender_larger_than_a_file_is_cut_by_the_numbers_of_its_rows():
    numbers = np.arange(1, 41)
    plan = arranged([("TX", "A", 3), ("TX", "B", 40), ("TX", "C", 2)], lambda *_: numbers, most=16)
    assert [(piece.state, piece.number, piece.rows) for piece in plan.pieces] == [
        ("TX", 0, 3), ("TX", 1, 16), ("TX", 2, 16), ("TX", 3, 10),
    ]  # fmt: skip
    rows = pa.table(
        {"state_code": ["TX"] * 5, "lender_id": ["A", "B", "B", "B", "C"], "source_row": [7, 16, 17, 40, 1]}
    )
    assert plan.of(rows).tolist() == [0, 1, 2, 3, 3]


def test_the_lenders_and_the_digests_of_their_rows(made, tmp_path):
    folder, _ = made
    found = pq.read_table(folder / "lenders.parquet", partitioning=None)
    assert found.schema == HMDA_LENDERS.schema()
    rows = {row["lender_id"]: row for row in found.to_pylist()}
    assert {lender: row["rows"] for lender, row in rows.items()} == {"": 10, "A": 30, "B": 35, "C": 20, "D": 5}
    assert (rows["A"]["states"], rows["A"]["first_row"], rows["A"]["last_row"]) == ("TX,none", 36, 100)
    assert sum(rows["B"][f"action_taken_{code}"] for code in "12345678") == 31
    with duckdb.connect() as connection:
        asked = counted(connection, parquet(tmp_path / "applications.parquet"), "lender_id")
    assert asked["rows_sha256"].to_pylist() == found["rows_sha256"].to_pylist()


def test_a_lender_is_read_from_the_files_of_its_states_alone(made):
    folder, _ = made
    table = table_of(folder / SORTED, Part(column="lender_id", value="C", rows_sha256="0" * 64))
    assert "state=CA" in table
    assert "state=none" not in table
    assert "state=TX/" not in table
    with duckdb.connect() as connection:
        assert connection.sql(f"SELECT count(*) FROM {table} WHERE lender_id = 'C'").fetchall() == [(20,)]
        whole = table_of(folder / SORTED, Part(column="county_fips5", value="C", rows_sha256="0" * 64))
        assert connection.sql(f"SELECT count(*) FROM {whole}").fetchall() == [(100,)]


@pytest.mark.parametrize(
    ("states", "lenders", "wanted"),
    [
        ([None] * 40, [None] * 40, {"": "none"}),
        (["TX"] * 40, [None] * 40, {"": "TX"}),
        ([None] * 40, ["A"] * 40, {"A": "none"}),
        (["TX"] * 40, ["A"] * 40, {"A": "TX"}),
    ],
)
def test_no_lender_no_state_or_one_of_each(tmp_path, states, lenders, wanted):
    (tmp_path / "out").mkdir()
    files = sort_rows(applications(tmp_path, states, lenders), tmp_path / "out", most=16)
    assert list(files.values()) == [16, 16, 8]
    assert write_lenders(tmp_path / "out" / SORTED, tmp_path / "out") == 1
    (row,) = pq.read_table(tmp_path / "out" / "lenders.parquet", partitioning=None).to_pylist()
    assert {row["lender_id"]: row["states"]} == wanted


def test_a_code_that_no_list_knows_is_refused_and_nothing_stays(tmp_path):
    rows = applications(tmp_path)
    table = pq.read_table(rows)
    place = table.schema.get_field_index("action_taken")
    pq.write_table(table.set_column(place, "action_taken", pa.array(["99"] * table.num_rows)), rows)
    with pytest.raises(DataQualityError, match=r"code that no list knows .*'99'.*; add the delivered file again"):
        sort_rows(rows, tmp_path, most=16)
    assert [path.name for path in tmp_path.iterdir()] == ["applications.parquet"]
