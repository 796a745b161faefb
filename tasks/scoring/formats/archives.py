"""Judges an archive of a stranger by its directory, before a byte of it is unpacked.

Scope: archives of skops and TorchScript, which are zip files. What their members say is for their own readers.
"""

import io
import re
import zipfile
from collections import Counter
from pathlib import PurePosixPath

import numpy as np

from schemas.errors import SpecError

MEMBERS = 10_000
MEMBER = 10**9
UNPACKED = 2 * 10**9
RATIO = 200
"""Unpacked bytes for each packed one; 200 times 10 kB of zeros are packed so well and do no harm."""
HARMLESS = 2**20
"""Members that unpack to no more than this may have any ratio."""

SCHEMA = "schema.json"
SCHEMA_SIZE = 16 * 2**20
NESTED = 200

TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def check_archive(content: bytes, name: str) -> None:
    """Refuse an archive that is too large, or whose names are no plain ones.

    Args:
        content: the file.
        name: how messages call it.

    Raises:
        SpecError: it is.
    """
    members = zipfile.ZipFile(io.BytesIO(content)).infolist()
    if len(members) > MEMBERS:
        raise SpecError(f"{name} is an archive of {len(members):,} files; a model has at most {MEMBERS:,}: {_AGAIN}")
    twice = [each for each, times in Counter(member.filename for member in members).items() if times > 1]
    if twice:
        raise SpecError(f"{name} is an archive with two files of the name {_shown(twice[0])}; {_AGAIN}")
    for member in members:
        _check_member(member, name)
    total = sum(member.file_size for member in members)
    if total > UNPACKED:
        raise SpecError(f"{name} unpacks to {total:,} bytes; a model has at most {UNPACKED:,}: {_AGAIN}")


_AGAIN = "write it again, or give a smaller model"


def _check_member(member: zipfile.ZipInfo, name: str) -> None:
    size, path = member.file_size, PurePosixPath(member.filename)
    what = f"{name} is an archive whose file {_shown(member.filename)}"
    if path.is_absolute() or ".." in path.parts or "\\" in member.filename:
        raise SpecError(f"{what} would lie outside of it; {_AGAIN}")
    most = SCHEMA_SIZE if member.filename == SCHEMA else MEMBER
    if size > most:
        raise SpecError(f"{what} unpacks to {size:,} bytes; at most {most:,} are read: {_AGAIN}")
    if size > HARMLESS and size > RATIO * max(member.compress_size, 1):
        raise SpecError(f"{what} unpacks to {size:,} bytes from {member.compress_size:,}; {_AGAIN}")


def check_schema(schema: bytes, name: str) -> None:
    """Refuse a schema that is nested so deeply that no reader comes back from it.

    Raises:
        SpecError: it is.
    """
    signs = np.frombuffer(TEXTS.sub(b"", schema), np.uint8)
    steps = np.isin(signs, list(b"[{")).astype(np.int64) - np.isin(signs, list(b"]}"))
    depth = int(steps.cumsum().max(initial=0))
    if depth > NESTED:
        raise SpecError(f"{name} is nested {depth:,} levels deep; a model has at most {NESTED}: {_AGAIN}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
