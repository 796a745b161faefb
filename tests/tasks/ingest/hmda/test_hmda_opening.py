"""Deliveries that are packed: what is read, and every archive that is not."""

import gzip
import zipfile
from pathlib import Path

import pytest

from schemas.errors import DataQualityError, InfrastructureError
from tasks.ingest.hmda.layouts import Limits, opened

TEXT = b"as_of_year,respondent_id\n" + b"2016,0000013044\n" * 200


def zipped(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("packing", ["plain", "gz", "zip", "stored zip"])
def test_every_packing_gives_the_same_text(tmp_path: Path, packing: str) -> None:
    file = tmp_path / "hmda.bin"  # the name says nothing
    if packing.endswith("zip"):
        zipped(file, {"lar.csv": TEXT}, zipfile.ZIP_STORED if "stored" in packing else zipfile.ZIP_DEFLATED)
    else:
        file.write_bytes(gzip.compress(TEXT) if packing == "gz" else TEXT)
    found = opened(file, tmp_path / "scratch")
    read = unpacked(found.path) if found.compression == "gzip" else found.path.read_bytes()
    assert read == TEXT
    assert (found.head, found.whole, found.lines, found.line_end) == (TEXT, True, 201, "\n")


@pytest.mark.parametrize("form", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read_as_the_same_text(tmp_path: Path, form: str) -> None:
    file = tmp_path / "lar.csv"
    file.write_bytes(f"sep=,\r\n{TEXT.decode()}".encode(form))
    found = opened(file, tmp_path / "scratch")
    assert found.path.read_bytes() == TEXT
    file.write_bytes(TEXT.decode().encode("utf-16")[:-1])
    with pytest.raises(DataQualityError, match="is UTF-16 and has bytes that are no characters, or is cut short"):
        opened(file, tmp_path / "scratch")


def unpacked(path: Path) -> bytes:
    with gzip.open(path) as stream:
        return stream.read()


def test_a_zip_is_written_into_scratch_under_a_name_of_our_own(tmp_path: Path) -> None:
    found = opened(zipped(tmp_path / "a.zip", {"any name.csv": TEXT}), tmp_path / "scratch")
    assert [path.name for path in (tmp_path / "scratch").iterdir()] == ["a.zip.txt"]
    assert found.path == tmp_path / "scratch" / "a.zip.txt"


def test_two_members_are_refused(tmp_path: Path) -> None:
    file = zipped(tmp_path / "a.zip", {"lar.csv": TEXT, "readme.txt": b"read me"})
    with pytest.raises(DataQualityError, match="holds 2 members, and one file of rows is expected"):
        opened(file, tmp_path / "scratch")


def test_an_empty_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataQualityError, match="holds 0 members"):
        opened(zipped(tmp_path / "a.zip", {}), tmp_path / "scratch")


@pytest.mark.parametrize(
    "name", ["../lar.csv", "/tmp/lar.csv", "data/lar.csv", "..", "data\\lar.csv", "c:lar.csv", "lar/"]
)
def test_a_path_in_a_member_is_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    file = zipped(tmp_path / "a.zip", {name: b"" if name.endswith("/") else TEXT})
    with pytest.raises(DataQualityError, match="which is a path and no plain file name"):
        opened(file, tmp_path / "scratch")
    assert not (tmp_path / "scratch").exists()


def test_a_member_with_a_password_is_refused(tmp_path: Path) -> None:
    file = zipped(tmp_path / "a.zip", {"lar.csv": TEXT})
    content = bytearray(file.read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + flags] |= 1
    file.write_bytes(content)
    with pytest.raises(DataQualityError, match="locked by a password"):
        opened(file, tmp_path / "scratch")


def test_a_bomb_that_declares_itself_is_not_unpacked(tmp_path: Path) -> None:
    file = zipped(tmp_path / "a.zip", {"lar.csv": bytes(40 * 2**20)})
    with pytest.raises(DataQualityError, match=r"grows to 41,943,040 bytes or more, and 16,777,216 are plausible"):
        opened(file, tmp_path / "scratch")
    assert not (tmp_path / "scratch").exists()


def test_a_bomb_that_lies_about_its_size_is_stopped_while_it_grows(tmp_path: Path) -> None:
    file = zipped(tmp_path / "a.zip", {"lar.csv": bytes(40 * 2**20)})
    content = bytearray(file.read_bytes())
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = content.index(mark) + at
        content[start : start + 4] = (1000).to_bytes(4, "little")
    file.write_bytes(content)
    with pytest.raises(DataQualityError, match=r"damaged or cut short|are plausible"):
        opened(file, tmp_path / "scratch")
    written = tmp_path / "scratch" / "a.zip.txt"
    assert not written.exists() or written.stat().st_size <= 2**24


def test_a_bomb_of_gzip_is_stopped_too(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"2016\n" * 2**23))
    with pytest.raises(DataQualityError, match="are plausible for its packed size"):
        opened(tmp_path / "a.gz", tmp_path / "scratch")


def test_limits_hold_whatever_the_ratio(tmp_path: Path) -> None:
    file = zipped(tmp_path / "a.zip", {"lar.csv": TEXT})
    assert opened(file, tmp_path / "scratch", Limits(size=len(TEXT))).lines == 201
    with pytest.raises(DataQualityError, match="are plausible"):
        opened(file, tmp_path / "scratch", Limits(size=len(TEXT) - 1))


@pytest.mark.parametrize("kind", ["zip", "gz"])
def test_an_archive_that_was_cut_short_is_said_to_be(tmp_path: Path, kind: str) -> None:
    whole = zipped(tmp_path / "a", {"a.csv": TEXT}).read_bytes() if kind == "zip" else gzip.compress(TEXT)
    (tmp_path / "a").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataQualityError, match=r"damaged or cut short .*fetch it again"):
        opened(tmp_path / "a", tmp_path / "scratch")


def test_a_changed_byte_in_an_archive_is_noticed(tmp_path: Path) -> None:
    file = zipped(tmp_path / "a.zip", {"lar.csv": TEXT}, zipfile.ZIP_STORED)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataQualityError, match="damaged or cut short"):
        opened(file, tmp_path / "scratch")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"\n  \n", "is empty"),
        (b"MZ\x00\x01\x02", "no text in UTF-8"),
        (b"PAR1\x15\x04", "is Parquet, and files of HMDA are delivered as text"),
        (b"as_of_year,x\r\n2016,1\n2016,2\r\n", "3 line ends and 2 carriage returns, 2 of them together"),
        (b"as_of_year,x\n2016,\r1\n", "2 line ends and 1 carriage returns, 0 of them together"),
    ],
    ids=["empty", "blank", "binary", "parquet", "mixed line ends", "return in a cell"],
)
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(DataQualityError, match=told):
        opened(tmp_path / "a.csv", tmp_path / "scratch")


def test_a_line_of_more_than_16_mb_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(TEXT + b"2016," + b"1" * 16_000_000 + b"\n2016,1\n")
    with pytest.raises(DataQualityError, match=r"a\.csv: line 202 is longer than 16 MB; is it a table\?"):
        opened(tmp_path / "a.csv", tmp_path)


def test_latin_1_is_seen_however_late_it_comes(tmp_path: Path) -> None:
    late = b"a,b\n" + b"1,2\n" * (2 * 2**20) + "3,Doña Ana\n".encode("latin-1")
    (tmp_path / "a.csv").write_bytes(late)
    assert opened(tmp_path / "a.csv", tmp_path).encoding == "latin-1"
    (tmp_path / "a.csv").write_bytes(late.decode("latin-1").encode())
    assert opened(tmp_path / "a.csv", tmp_path).encoding == "utf-8"


def test_a_letter_and_a_line_end_across_two_chunks_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.ingest.hmda.layouts._CHUNK", 1)
    (tmp_path / "a.csv").write_bytes("a,ñ\r\n1,ü\r\n".encode())
    found = opened(tmp_path / "a.csv", tmp_path)
    assert (found.encoding, found.lines, found.line_end) == ("utf-8", 2, "\r\n")


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + TEXT)
    assert opened(tmp_path / "a.csv", tmp_path).head.startswith(b"as_of_year")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match=r"lar\.csv' cannot be read \(No such file"):
        opened(tmp_path / "lar.csv", tmp_path)


def test_nothing_but_the_text_is_kept_of_a_gzip_of_several_parts(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(TEXT) + gzip.compress(b"2016,1\n"))
    assert opened(tmp_path / "a.gz", tmp_path).lines == 202
    assert unpacked(tmp_path / "a.gz").endswith(b"2016,1\n")
