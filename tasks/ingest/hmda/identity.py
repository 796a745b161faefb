"""Digest of an HMDA file for an audit: the same as long as the same rows would be read from it.

The rows of a vintage lie in no order, so that two conversions of one file differ in their bytes. What was delivered,
and the code that converted it, do not. Where a vintage lies is not said here.
"""

import hashlib
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from schemas.vintages import Vintage
from tasks.lake.local_directory import sha256_of

RECORD: Final = "vintage.json"
"""Lies beside the rows of a vintage, and says what they were made of."""


def identity(path: Path) -> str:
    """Hex sha256 of a file; of a vintage's rows, that of the delivered file's digest and of its converter's.

    Rows that are not those that the vintage was made with have the digest of their own bytes, as other files have.

    Raises:
        OSError: the file cannot be read.
    """
    found, vintage = sha256_of(path), _vintage_of(path)
    if vintage is None or not vintage.converter or vintage.rows_sha256 != found:
        return found
    return hashlib.sha256(f"{vintage.sha256} {vintage.converter}".encode()).hexdigest()


def _vintage_of(path: Path) -> Vintage | None:
    try:
        return Vintage.model_validate_json(path.with_name(RECORD).read_bytes())
    except (OSError, ValidationError):
        return None
