"""HMDA files as a source of an audit: digest, header, rows."""

# ruff: noqa: S608 names are ours

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pydantic import ValidationError

from schemas.audit.source import Source
from schemas.vintages import Vintage
from tasks.ingest.hmda.canonical import CANONICAL
from tasks.ingest.hmda.layouts import begins_as_submission, recognise
from tasks.ingest.hmda.rows import check_unknown_columns, columns_of, lay, located, placed
from tasks.ingest.sources.raw import Raw
from tasks.lake.local_directory import sha256_of
from tasks.lake.storage import connected

# --------------------------------------------------------------------------------------------------------------------
# Digest of an HMDA file for an audit: the same as long as the same rows would be read from it.
#
# The rows of a vintage lie in no order, or in files by state, so that two conversions of one file differ in their
# bytes.
# What was delivered, and the code that converted it, do not. Where a vintage lies is not said here.


RECORD: Final = "vintage.json"
"""Lies beside the rows of a vintage, and says what they were made of."""

_HASHED: dict[tuple[Path, int, int, int], str] = {}
"""Digests of files by what a system knows of them: a year of many lenders is not hashed for each of them."""


def identity(path: Path) -> str:
    """Hex sha256 of a file; of a vintage's rows, that of the delivered file's digest and of its converter's.

    Rows that are not those that the vintage was made with have the digest of their own bytes, as other files have.

    Raises:
        OSError: the file cannot be read.
    """
    digest, vintage = digest_of_rows(path), _vintage_of(path)
    if vintage is None or not vintage.converter or vintage.rows_sha256 != digest:
        return digest
    return hashlib.sha256(f"{vintage.sha256} {vintage.converter}".encode()).hexdigest()


def digest_of_rows(path: Path) -> str:
    """Hex sha256 of a file of rows; of a directory of such files, as in ``digest_of_files``.

    Raises:
        OSError: a file cannot be read.
    """
    if not path.is_dir():
        return once(path)
    return digest_of_files({file.relative_to(path).as_posix(): once(file) for file in path.rglob("*.parquet")})


def digest_of_files(digests: Mapping[str, str]) -> str:
    """Hex sha256 of the names of files, with forward slashes, and their digests, in the order of names."""
    lines = "".join(f"{name} {digest}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def once(path: Path) -> str:
    """Hex sha256 of a file, which this process reads once as long as the file does not change.

    Raises:
        OSError: the file cannot be read.
    """
    status = path.stat()
    key = path, status.st_ino, status.st_size, status.st_mtime_ns
    if key not in _HASHED:
        _HASHED[key] = sha256_of(path)
    return _HASHED[key]


def _vintage_of(path: Path) -> Vintage | None:
    try:
        return Vintage.model_validate_json(path.with_name(RECORD).read_bytes())
    except (OSError, ValidationError):
        return None


# --------------------------------------------------------------------------------------------------------------------
# HMDA files as a source: their digest, their columns, and their rows as a table of text.
#
# How rows are laid out, and what is done where a file departs from its layout, is in ``laying``.


def digest(source: Source) -> str:
    """sha256 of the file, as it was delivered; of several files, that of their digests in order.

    That of a vintage is the same whenever the same file was converted by the same code.

    Raises:
        SpecError: the source names a vintage, and nobody has looked up its file.
        InfrastructureError: a file is not there.
    """
    digests = [identity(path) for path in located(placed(source))]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def header(source: Source) -> list[str]:
    """Canonical columns that every file gives, and then the files' own that no layout knows.

    Under a policy other than `stop` the canonical columns that a file does not give are among them, too.

    Raises:
        DataQualityError: a file has no known layout, or columns of its own and the policy says to stop.
        InfrastructureError: a file is not there.
    """
    file_columns, extra_columns = [], []
    for path in located(placed(source)):
        columns, unknown = columns_of(path, source.rename)
        check_unknown_columns(path.name, unknown, source)
        file_columns.append(columns)
        extra_columns.append(unknown)
    stops = source.policy.missing_columns == "stop"
    shared_columns = [name for name in CANONICAL if not stops or all(name in columns for columns in file_columns)]
    return [*shared_columns, *(name for name in extra_columns[0] if all(name in unknown for unknown in extra_columns))]


def read(source: Source, columns: Sequence[str]) -> Raw:
    """The named columns as text, in the order of the files; errors as in ``laying.lay``."""
    with connected() as connection, lay(source, columns, connection) as source_view:
        rows = connection.sql(f"SELECT * FROM ({source_view.rows}) ORDER BY place").to_arrow_table()
    table = rows.select([f"c{i}" for i in range(len(columns))]).rename_columns(list(columns))
    flags = {key: rows[f"q{i}"].to_numpy() for i, key in enumerate(source_view.quarantined)}
    return Raw(table, rows["place"].to_pylist(), source_view.unread, flags)


def restricted(source: Source) -> bool:
    """Whether a file of the source is a lender's own submission, or a vintage of one.

    Raises:
        DataQualityError, InfrastructureError: a file cannot be read.
    """
    return any(_is_submission(path) for path in located(placed(source)))


def _is_submission(path: Path) -> bool:
    if (vintage := _vintage_of(path)) is not None:
        return vintage.restricted
    if path.is_dir():
        return False
    with path.open("rb") as file:
        if file.read(2) not in (b"PK", b"\x1f\x8b"):
            return begins_as_submission(path)
    with TemporaryDirectory(prefix="evenhand-hmda-") as scratch:
        return recognise(path, Path(scratch)).restricted


def lacking(name: str) -> str | None:
    """What to do about a canonical column that the source does not give; None of another name."""
    if name not in CANONICAL:
        return None
    return (
        f"the file gives no {name!r}: its layout has no such column, or no row has a value there. `evenhand backfill` "
        "leaves out what a year lacks; else take it out of the spec, or set source.policy.missing_columns: accept"
    )


# --------------------------------------------------------------------------------------------------------------------
# Files of the Home Mortgage Disclosure Act, of any year and layout, as one table of applications.
