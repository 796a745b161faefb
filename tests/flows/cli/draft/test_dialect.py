"""Delimiter, header and encoding of small texts."""

from pathlib import Path

import pytest

from flows.cli.draft.table import sniffed
from schemas.errors import DataQualityError

TEXTS = {
    "commas with blanks behind them": ("a, b, c\n1, x y, 3\n4, y z, 6\n", ",", True),
    "semicolons, and commas in numbers": ("a;b\n1,5;x\n2,5;y\n", ";", True),
    "tabs, and text of several words": ("a\tb\none two\t3\nthree\t4\n", "\t", True),
    "pipes in quotes": ('a|b\n"x|y"|1\nz|2\n', "|", True),
    "blanks without a header": ("A11 6 A34\nA12 48 A32\nA11 12 A34\n", " ", False),
    "words without a header": ("yes,red\nno,blue\nyes,red\nno,red\n", ",", False),
    "a header of one empty name": (",race,score\n0,White,1\n1,Black,2\n", ",", True),
}


@pytest.mark.parametrize("name", TEXTS)
def test_what_parts_cells_and_whether_names_come_first(name: str, tmp_path: Path) -> None:
    text, delimiter, header = TEXTS[name]
    (tmp_path / "table.csv").write_text(text)
    found = sniffed(tmp_path / "table.csv")
    assert (found.source.delimiter, found.has_header) == (delimiter, header)


def test_one_line_that_is_not_utf8_makes_the_file_latin1(tmp_path: Path) -> None:
    rows = b"name,n\n" + b"plain,1\n" * 300_000 + b"Stra\xdfe,2\n"  # several blocks of bytes
    (tmp_path / "table.csv").write_bytes(rows)
    assert sniffed(tmp_path / "table.csv").source.encoding == "latin-1"


@pytest.mark.parametrize("content", [b"", b"\n\n", b"a\0b,c\n"])
def test_what_is_no_table_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(DataQualityError, match=r"is empty|holds NUL bytes"):
        sniffed(tmp_path / "table.csv")
