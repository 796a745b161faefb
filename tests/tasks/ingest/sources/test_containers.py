"""Packed tables: known by their content, unpacked within limits, and the table among the files of a zip."""

import bz2
import gzip
import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import DataQualityError
from tasks.ingest.sources import containers, files
from tasks.ingest.sources.door import Described, describe

TABLE = b"id,decision,income\n" + b"".join(b"A%03d,%s,%d\n" % (i, (b"yes", b"no")[i % 2], i * 100) for i in range(60))
PEOPLE = b"id,race\n" + b"".join(b"A%03d,%s\n" % (i, (b"White", b"Black")[i % 2]) for i in range(20))
README = b"Read this first.\nIt is the table of loans, as of today.\n"


def zipped(entries: Mapping[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return sink.getvalue()


def described(place: Path, content: bytes, name: str = "export.zip", **choice: str) -> Described:
    (place / name).write_bytes(content)
    found = describe(place / name, **choice)
    assert files.read(found.source, found.columns).table.num_rows == found.rows
    return found


def zstd(content: bytes) -> bytes:
    return bytes(pa.compress(content, "zstd", asbytes=True))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, zstd], ids=["gzip", "bz2", "zstd"])
@pytest.mark.parametrize("name", ["loans.csv", "loans.csv.gz", "loans.xlsx"])
def test_a_packed_file_is_known_by_its_content(tmp_path: Path, pack: object, name: str) -> None:
    assert described(tmp_path, pack(TABLE), name).rows == 60  # type: ignore[operator]


@pytest.mark.parametrize(
    ("entries", "member"),
    [
        ({"loans.csv": TABLE}, None),
        ({"__MACOSX/._loans.csv": b"\0\1" * 50, "loans.csv": TABLE, ".DS_Store": b"x", "~$loans.csv": b"x"}, None),
        ({"README.txt": README, "a/loans.csv": TABLE}, "a/loans.csv"),
        ({"a/inner.zip": zipped({"loans.csv": TABLE})}, None),
        ({"a/inner.zip": zipped({"loans.csv": TABLE, "README.md": README})}, "a/inner.zip/loans.csv"),
        ({"../../loans.csv": TABLE}, None),
        ({"C:\\loans.csv": TABLE}, None),
    ],
    ids=["one", "left by a Mac", "read-me", "zip in zip", "zip in zip, read-me", "path up", "drive"],
)
def test_the_table_of_a_zip(tmp_path: Path, entries: dict[str, bytes], member: str | None) -> None:
    found = described(tmp_path, zipped(entries))
    assert (found.source.member, found.rows, found.evidence) == (member, 60, ())
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["export.zip"]


def test_tables_of_one_layout_are_read_one_after_the_other(tmp_path: Path) -> None:
    found = described(tmp_path, zipped({"b/loans-2023.csv": TABLE, "b/loans-2022.csv": TABLE, "README": README}))
    assert (found.source.member, found.rows) == ("b/loans-202*.csv", 120)
    assert [(e.what, e.certain, e.options) for e in found.evidence] == [
        ("members", False, ("b/loans-2023.csv", "b/loans-2022.csv"))
    ]


def test_of_different_tables_the_largest_is_read_and_the_others_are_offered(tmp_path: Path) -> None:
    content = zipped({"people.csv": PEOPLE, "loans.csv": TABLE})
    found = described(tmp_path, content)
    assert (found.source.member, found.evidence[0].options) == ("loans.csv", ("people.csv", "loans.csv"))
    chosen = described(tmp_path, content, member="people.csv")
    assert (chosen.columns, chosen.evidence) == (("id", "race"), ())
    with pytest.raises(DataQualityError, match=r"has no member 'peple.csv'; did you mean 'people.csv'\?"):
        describe(tmp_path / "export.zip", member="peple.csv")


def test_a_table_of_parquet_in_a_zip(tmp_path: Path) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": ["A", "B"], "income": [1.5, 2.0]}), sink)
    found = described(tmp_path, zipped({"data/loans.dat": sink.getvalue()}))
    assert (found.source.kind, found.columns, found.rows) == ("parquet", ("id", "income"), 2)


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


LOCKED = bytearray(zipped({"loans.csv": TABLE}))
LOCKED[6] |= 1
LOCKED[LOCKED.index(b"PK\1\2") + 8] |= 1
FLIPPED = bytearray(zipped({"loans.csv": TABLE}))
FLIPPED[80] ^= 255


LINE, LINES = b"1,2\n", 1 + containers.FREE_BYTES // 4


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (cut(zipped({"loans.csv": TABLE})), "could not be unpacked"),
        (bytes(FLIPPED), "could not be|as a table|none reads"),
        (bytes(LOCKED), "locked with a password"),
        (b"PK\3\4" + bytes(100), "could not be unpacked"),
        (zipped({}), "without a file that may be a table"),
        (zipped({"README.txt": README, "more.txt": README}), "none reads as a table"),
        (zipped({"a.zip": zipped({"b.zip": zipped({"loans.csv": TABLE})})}), "zips within zips"),
        (lambda: zipped({f"{i}.csv": b"a" for i in range(10_001)}), "has 10,001 entries"),
        (lambda: zipped({f"{i}.csv": b"a" for i in range(1_001)}), "holds 1,001 files"),
        (lambda: zipped({"loans.csv": b"a,b\n" + LINE * LINES}), "more than 200 times its size"),
        (lambda: zipped({"a.zip": zipped({"loans.csv": LINE * LINES})}), "could not be|more than 200 times its size"),
    ],
    ids=["cut", "flipped", "locked", "garbage", "empty", "no table", "deep", "many", "very many", "bomb", "inner bomb"],
)
def test_a_hostile_zip_is_named(tmp_path: Path, content: bytes | Callable[[], bytes], words: str) -> None:
    with pytest.raises(DataQualityError, match=words):
        described(tmp_path, content() if callable(content) else content)


def test_a_file_that_is_no_zip_has_no_member(tmp_path: Path) -> None:
    (tmp_path / "loans.csv").write_bytes(TABLE)
    with pytest.raises(DataQualityError, match=r"is no zip, and has no member"):
        containers.chosen(tmp_path / "loans.csv", "a.csv")
