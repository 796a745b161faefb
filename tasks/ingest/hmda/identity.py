"""Digest of an HMDA file for an audit: the same as long as the same rows would be read from it.

The rows of a vintage lie in no order, or in files by state, so that two conversions of one file differ in their bytes.
What was delivered, and the code that converted it, do not. Where a vintage lies is not said here.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from schemas.vintages import Vintage
from tasks.lake.local_directory import sha256_of

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
    found, vintage = digest_of_rows(path), _vintage_of(path)
    if vintage is None or not vintage.converter or vintage.rows_sha256 != found:
        return found
    return hashlib.sha256(f"{vintage.sha256} {vintage.converter}".encode()).hexdigest()


def digest_of_rows(path: Path) -> str:
    """Hex sha256 of a file of rows; of a directory of them, as ``digest_of_files`` says.

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
    """Hex sha256 of a file, which this process reads once as long as nobody writes to it.

    Raises:
        OSError: the file cannot be read.
    """
    told = path.stat()
    key = path, told.st_ino, told.st_size, told.st_mtime_ns
    if key not in _HASHED:
        _HASHED[key] = sha256_of(path)
    return _HASHED[key]


def _vintage_of(path: Path) -> Vintage | None:
    try:
        return Vintage.model_validate_json(path.with_name(RECORD).read_bytes())
    except (OSError, ValidationError):
        return None
