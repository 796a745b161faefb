"""Partial download on disk: its bytes, their digest so far, and what the server said of the whole file.

``NAME.part`` holds the bytes; ``NAME.part.json`` the address and what tells one state of the server's file from
another. Both outlive the process, so that the next one can go on. Bytes without that record are of an unknown whole,
and are thrown away.
"""

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

_CHUNK = 2**20


@dataclass(frozen=True)
class Whole:
    """What the server said of the file that it is sending."""

    url: str
    etag: str | None = None
    modified: str | None = None
    """Its Last-Modified, as it was written."""
    length: int | None = None

    @property
    def validator(self) -> str | None:
        """What If-Range may name: a strong ETag, else Last-Modified. A weak ETag does not promise the same bytes."""
        return self.etag if self.etag and not self.etag.startswith("W/") else self.modified

    def same_state(self, other: "Whole") -> bool:
        """Whether both are of one state of the file, by all that both tell."""
        pairs = ((self.etag, other.etag), (self.modified, other.modified), (self.length, other.length))
        return all(mine == theirs for mine, theirs in pairs if mine is not None and theirs is not None)


class Partial:
    """A file that is being downloaded to ``target``; opened by ``with``.

    Attributes:
        path: the target; nothing lies there before the end.
        whole: what the server said of the file; None where nothing has begun.
        size: bytes that are there.
    """

    def __init__(self, target: Path, url: str) -> None:
        """Take up what an earlier download of the same address left, if it can be gone on with."""
        self.path = target
        self._file = target.with_name(f"{target.name}.part")
        self._record = target.with_name(f"{target.name}.part.json")
        self._url = url
        self.whole = self._recorded()
        self.size = 0
        self._digest = hashlib.sha256()

    def __enter__(self) -> Self:
        self._open = self._file.open("ab+")
        if self.whole is None:
            self._open.truncate(0)
        self._open.seek(0)
        while chunk := self._open.read(_CHUNK):
            self._digest.update(chunk)
            self.size += len(chunk)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # a disk that is full says so a second time
            self._open.close()
        if not self.kept:
            self._record.unlink(missing_ok=True)
            self._file.unlink(missing_ok=True)

    @property
    def kept(self) -> bool:
        """Whether a later download can go on with what is there."""
        return self.size > 0 and self.whole is not None and self.whole.validator is not None

    @property
    def complete(self) -> bool:
        """Whether all bytes came before the process that fetched them ended."""
        return self.whole is not None and self.size > 0 and self.size == self.whole.length

    def headers(self) -> dict[str, str]:
        """What asks for the rest; nothing where there is nothing to go on with."""
        validator = self.whole.validator if self.whole else None
        return {"Range": f"bytes={self.size}-", "If-Range": validator} if self.size and validator else {}

    def begin(self, whole: Whole) -> None:
        """Start anew, with what the server now says of the file."""
        self.clear()
        self.whole = whole
        if whole.validator is not None:
            self._record.write_text(json.dumps(asdict(whole)))

    def clear(self) -> None:
        """Forget all that came: it is not of the file, or of another state of it."""
        self._record.unlink(missing_ok=True)  # first: bytes of one state never stand beside the record of another
        self._open.truncate(0)
        self.size, self._digest, self.whole = 0, hashlib.sha256(), None

    def append(self, chunk: bytes) -> None:
        """Add the bytes that came next."""
        self._open.write(chunk)
        self._digest.update(chunk)
        self.size += len(chunk)

    def head(self, length: int) -> bytes:
        """The first bytes of the file."""
        self._open.flush()
        with self._file.open("rb") as file:
            return file.read(length)

    def sha256(self) -> str:
        """Hex digest of the bytes that are there."""
        return self._digest.hexdigest()

    def finish(self) -> None:
        """Flush the bytes to disk and give the file its name."""
        self._open.flush()
        os.fsync(self._open.fileno())
        self._file.replace(self.path)
        self._record.unlink(missing_ok=True)

    def _recorded(self) -> Whole | None:
        try:
            whole = Whole(**json.loads(self._record.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None
        return whole if whole.url == self._url and whole.validator is not None else None
