"""One HTTP transfer: asks the server once, and writes what arrives.

Here belongs what happens between a question and the end of its answer: where the bytes go, and when they are of no use.
How often to ask is in ``download``.
"""

import errno
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from schemas.errors import EvenhandError, InfrastructureError, IntegrityError
from tasks.ingest.download.answers import SNIFFED, Interrupted, judge_head, judge_status, piece_start, whole_of
from tasks.ingest.download.partial import Partial, Whole

Tell = Callable[[int, int | None], None]
"""Called with the bytes that are there and the bytes of the whole, None where nobody says."""

_SPARE_BYTES = 64 * 2**20
_NEVER_MET = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)
_NO_WAY = (httpx.UnsupportedProtocol, httpx.InvalidURL, httpx.TooManyRedirects, httpx.DecodingError)


@dataclass
class Transfer:
    """A file, where it comes from and what is there of it. ``step`` may be called again after it was interrupted."""

    client: httpx.Client
    url: str
    part: Partial
    expected_bytes: int | None
    tell: Tell
    reached: bool = False
    """Whether the server has answered anything yet."""

    def step(self) -> None:
        """Ask for what is missing, and write what comes.

        Raises:
            Interrupted: it is worth asking again.
            SpecError, InfrastructureError, IntegrityError: it is not.
        """
        try:
            with self.client.stream("GET", self.url, headers=self.part.headers()) as answer:
                self.reached = True
                self._receive(answer)
        except _NO_WAY as error:
            raise InfrastructureError(f"{self.url} cannot be followed to a file: {error}") from error
        except httpx.TransportError as error:
            if not self.reached and isinstance(error, _NEVER_MET):
                raise _unreachable(self.url, error) from error
            raise Interrupted(f"the connection broke off ({_words(error)})") from error

    @property
    def length(self) -> int | None:
        """Bytes of the whole, where anybody says."""
        said = self.part.whole.length if self.part.whole else None
        return said if self.expected_bytes is None else self.expected_bytes

    def _receive(self, answer: httpx.Response) -> None:
        if answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            self.part.clear()
        judge_status(answer, httpx.URL(self.url))
        self._place(answer.status_code, whole_of(answer, self.url), piece_start(answer))
        _require_space(self.part.path.parent, (self.length or 0) - self.part.size, self.url)
        for chunk in answer.iter_bytes():
            looked_at = self.part.size >= SNIFFED
            self.part.append(chunk)
            if not looked_at:
                self._look()
            self.tell(self.part.size, self.length)
        # An answer in chunks says itself where it ends, so that what was expected of it does not make it longer; one
        # that only ends may have been cut off. What the server said of the whole it owes in either case.
        chunked = "chunked" in answer.headers.get("transfer-encoding", "")
        said = self.part.whole.length if self.part.whole else None
        if self.part.size < ((said if chunked else self.length) or 0):
            raise Interrupted("the answer ended early")

    def _place(self, status: int, said: Whole, start: int | None) -> None:
        """Go on with the bytes that are there, if what comes continues them; else start anew."""
        if self.expected_bytes is not None and said.length not in (None, self.expected_bytes):
            self.part.clear()
            raise IntegrityError(
                f"{self.url} has {said.length:,} bytes and not the {self.expected_bytes:,} expected; the publisher has "
                "another edition there, or the expectation is of another file"
            )
        if status != httpx.codes.PARTIAL_CONTENT:
            self.part.begin(said)
        elif self.part.whole is None or start != self.part.size or not self.part.whole.same_state(said):
            self.part.clear()
            raise Interrupted("it sent a piece that does not continue what is here")

    def _look(self) -> None:
        try:
            judge_head(self.part.head(SNIFFED), self.url)
        except EvenhandError:
            self.part.clear()
            raise


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Name what a full or failing disk does to a download.

    Raises:
        InfrastructureError: instead of the system's error.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InfrastructureError(
                f"the disk of {folder} is full; free some space and run again: what came is kept"
            ) from error
        raise InfrastructureError(f"{folder} could not be written: {error.strerror or error}") from error


def _require_space(folder: Path, size: int, what: str) -> None:
    free = shutil.disk_usage(folder).free
    if free < size + _SPARE_BYTES:
        raise InfrastructureError(
            f"the disk of {folder} has {free // 2**20:,} MB free and {what} needs "
            f"{(size + _SPARE_BYTES) // 2**20:,} MB; free some, or give another directory with --lake"
        )


def _unreachable(url: str, error: Exception) -> InfrastructureError:
    return InfrastructureError(
        f"no way to {httpx.URL(url).host} ({_words(error)}); is this machine online? A file that was fetched elsewhere "
        "is taken in by `evenhand data add FILE`"
    )


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
