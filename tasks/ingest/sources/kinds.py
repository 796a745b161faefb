"""The kind of a file by its content, and never by its name."""

import re
from pathlib import Path
from typing import Final, Literal

from schemas.errors import DataQualityError
from tasks.ingest.sources import containers

Kind = Literal["csv", "parquet", "excel", "stata", "sas", "spss", "jsonl", "feather"]

_HEAD: Final = 2**16
_SAS: Final = bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")
_BY_MAGIC: Final[tuple[tuple[bytes, Kind], ...]] = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "feather"),
    (b"FEA1", "feather"),
    (b"<stata_dta>", "stata"),
    (_SAS, "sas"),
    (b"HEADER RECORD*******LIB", "sas"),
    (b"$FL2", "spss"),
    (b"$FL3", "spss"),
    (bytes.fromhex("d0cf11e0a1b11ae1"), "excel"),
)
_OTHERS: Final = (
    (b"%PDF", "a PDF", "ask for the table it was printed from"),
    (b"Rar!", "a RAR archive", "unpack it, and give the table"),
    (b"7z\xbc\xaf'\x1c", "a 7z archive", "unpack it, and give the table"),
    (b"SQLite format 3", "an SQLite database", "save the table as CSV or Parquet"),
    (b"\x89HDF", "an HDF5 file", "save the table as CSV or Parquet"),
    (b"RDX", "a file of R", "save the table as CSV or Parquet"),
    (b"\x80\x04\x95", "a pickle, which is never opened", "save the table as CSV or Parquet"),
    (b"Obj\x01", "an Avro file", "save the table as CSV or Parquet"),
    (b"ORC", "an ORC file", "save the table as CSV or Parquet"),
)
_PAGE: Final = re.compile(rb"^\s*(?:<!doctype html|<html|<table|<\?xml)", re.IGNORECASE)
_LINES: Final = 10
_OBJECTS: Final = 9
"""So many of the first lines are an object each, in JSON lines."""


def kind_of(path: Path, member: str | None) -> Kind:
    """What a file, or a member of a zip, is.

    Raises:
        DataQualityError: it is something that holds no table, or that is not read.
    """
    with containers.unpacked(path, member) as stream:
        head = stream.read(_HEAD)
    if head.startswith(b"PK\x03\x04"):
        with containers.local(path, member, 10**12) as file:
            if containers.is_workbook(file):
                return "excel"
        raise DataQualityError(f"{path.name} is a document of an office or an archive, and no table; give the table")
    kind = next((kind for magic, kind in _BY_MAGIC if head.startswith(magic)), None)
    if kind is not None:
        return kind
    if len(head) > 4 and 0x66 <= head[0] <= 0x73 and head[1] in (1, 2) and head[2] == 1 and head[3] == 0:
        return "stata"  # before version 117
    for magic, words, step in _OTHERS:
        if head.startswith(magic):
            raise DataQualityError(f"{path.name} is {words}, and no table that is read here; {step}")
    if _PAGE.match(head):
        raise DataQualityError(f"{path.name} is a page (HTML or XML), and no table; open it, and save it as CSV")
    return "jsonl" if _is_json(head) else "csv"


def _is_json(head: bytes) -> bool:
    """Whether text is JSON lines, or one array of objects."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if re.match(rb"\[\s*\{", text):
        return True
    lines = [line for line in text.split(b"\n")[: _LINES + 1] if line.strip()]
    complete = lines[:_LINES] if len(lines) > _LINES else lines
    least = _OBJECTS if len(complete) == _LINES else len(complete)
    return bool(complete) and sum(line.lstrip().startswith(b"{") for line in complete) >= least
