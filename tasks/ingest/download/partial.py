"""Partial download on disk: bytes in ``NAME.part``, and the server's description of the file in ``NAME.part.json``.

Both outlive the process, so that the next one can resume. Bytes without a description are discarded.
"""

import json
import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Self

from tasks.ingest.download.answers import SNIFFED, RemoteFile


class Partial:
    """A file that is being downloaded to ``target``; closed by ``with``.

    Attributes:
        target: the path; nothing lies there before ``finish``.
        remote: the server's description of the file; None where nothing has begun.
        size: bytes that are there.
    """

    def __init__(self, target: Path, url: str) -> None:
        """Open what an earlier download of the same address left, if it can be resumed; else start empty."""
        self.target = target
        self._record = target.with_name(f"{target.name}.part.json")
        self._bytes = target.with_name(f"{target.name}.part")
        self._stream = self._bytes.open("ab")
        self.size = self._stream.tell()
        self.remote = self._recorded(url)
        if self.remote is None:
            self.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # a full disk fails a second time here
            self._stream.close()
        if not self.resumable:
            self._record.unlink(missing_ok=True)
            self._bytes.unlink(missing_ok=True)

    @property
    def length(self) -> int | None:
        """Bytes of the whole, where the server says."""
        return self.remote.length if self.remote else None

    @property
    def resumable(self) -> bool:
        """Whether the rest alone can be asked for."""
        return bool(self.range_headers())

    @property
    def complete(self) -> bool:
        """Whether all bytes came before the process that fetched them ended."""
        return self.size > 0 and self.size == self.length

    def range_headers(self) -> dict[str, str]:
        """Headers that ask for the rest; none where there is nothing to resume."""
        validator = self.remote.validator if self.remote else None
        return {"Range": f"bytes={self.size}-", "If-Range": validator} if self.size and validator else {}

    def begin(self, remote: RemoteFile) -> None:
        """Start anew with the file as the server now describes it."""
        self.clear()
        self.remote = remote
        if remote.validator is not None:
            self._record.write_text(json.dumps(asdict(remote)))

    def clear(self) -> None:
        """Discard all that came."""
        self._record.unlink(missing_ok=True)  # first: bytes of one state never stand beside the record of another
        self._stream.truncate(0)
        self.size, self.remote = 0, None

    def append(self, chunk: bytes) -> None:
        """Add the bytes that came next."""
        self._stream.write(chunk)
        self.size += len(chunk)

    def head(self) -> bytes:
        """The first bytes, for ``check_head``."""
        self._stream.flush()
        with self._bytes.open("rb") as file:
            return file.read(SNIFFED)

    def flush(self) -> Path:
        """Write all bytes to disk; gives the file that holds them."""
        self._stream.flush()
        os.fsync(self._stream.fileno())
        return self._bytes

    def finish(self) -> None:
        """Give the file its name."""
        self.flush().replace(self.target)
        self._record.unlink(missing_ok=True)

    def _recorded(self, url: str) -> RemoteFile | None:
        try:
            remote = RemoteFile(**json.loads(self._record.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None
        return remote if remote.url == url and remote.validator is not None else None
