"""One lender of a year: its rows alone, the same out of a file and out of sorted files."""

from pathlib import Path

import duckdb
import pytest

from schemas.audit.partition import Part
from schemas.audit.source import Source
from tasks.ingest.hmda.rows import lay
from tasks.ingest.sources.raw import Laid
from tasks.ingest.synthetic.algorithm.twin import TwinSettings
from tasks.ingest.synthetic.twin_files import write
from tasks.ingest.vintages.sorting import SORTED, sort_rows, write_lenders
from tasks.ingest.vintages.store import take_in

COLUMNS = ["action_taken", "income_usd", "lender_id", "derived_race"]


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The rows of a year in one file with a broken line, and the same sorted."""
    place = tmp_path_factory.mktemp("year")
    file = write(place / "written", TwinSettings(rows=300, lenders=7), 1).rows
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines[:50], "broken\n", *lines[50:]]))
    (place / "one").mkdir()
    take_in(file, place / "one")
    (place / "many").mkdir()
    sort_rows(place / "one" / "applications.parquet", place / "many", most=40)
    write_lenders(place / "many" / SORTED, place / "many")
    (place / "many" / "refusals.parquet").write_bytes((place / "one" / "refusals.parquet").read_bytes())
    return place / "one" / "applications.parquet", place / "many" / SORTED


def rows_of(path: Path, part: Part | None) -> tuple[list[tuple[object, ...]], Laid]:
    source = Source(kind="hmda", path=str(path), year=2022, part=part)
    with duckdb.connect() as connection, lay(source, COLUMNS, connection) as laid:
        return connection.sql(f"SELECT * FROM ({laid.rows}) ORDER BY place").fetchall(), laid


def test_a_lender_is_its_rows_with_their_numbers(year: tuple[Path, Path]) -> None:
    whole, laid = rows_of(year[0], None)
    assert len(laid.unread) == 1
    lenders = {row[3] for row in whole}
    assert len(lenders) == 7
    for lender in lenders:
        part = Part(column="lender_id", value=str(lender), rows_sha256="0" * 64)
        for path in year:
            own, told = rows_of(path, part)
            assert own == [row for row in whole if row[3] == lender]
            assert not told.unread


def test_a_partition_may_be_by_a_number_and_by_no_value(year: tuple[Path, Path]) -> None:
    whole, _ = rows_of(year[0], None)
    for column, at in (("action_taken", 1), ("income_usd", 2)):
        for value in sorted({str(row[at]) for row in whole})[:3]:
            own, _ = rows_of(year[1], Part(column=column, value=value, rows_sha256="0" * 64))
            assert own == [row for row in whole if row[at] == value]
