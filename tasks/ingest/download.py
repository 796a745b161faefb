"""Downloads a file over HTTP and resumes an interrupted download."""

import errno
import json
import logging
import os
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from html import unescape
from pathlib import Path
from typing import Self

import httpx
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from schemas.errors import EvenhandError, InfrastructureError, IntegrityError, SpecError
from tasks.lake.local_directory import sha256_of
from tasks.pipeline.progress import terminal

# --------------------------------------------------------------------------------------------------------------------
# Judges a server's answer: the file, a part of it, a passing failure, or something else.
#
# Scope: status, headers and first bytes of one answer. Retries: ``download``.


log = logging.getLogger("evenhand")

SNIFFED = 512
"""Bytes at the start of a body that are looked at."""

_PASSING = (408, 425, 429, 500, 502, 503, 504)
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
_ERROR_TYPE = re.compile(rb'"errorType"\s*:\s*"([^"]{1,80})')
_TITLE = re.compile(rb"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)


class Interrupted(Exception):  # noqa: N818 - no fault of anyone's yet: the download goes on after it
    """The transfer stopped, and it is worth asking again, after ``wait`` seconds at least."""

    def __init__(self, why: str, wait: float = 0.0) -> None:
        """``why`` completes a sentence about a server that could not be read."""
        super().__init__(why)
        self.wait = wait


@dataclass(frozen=True)
class RemoteFile:
    """The server's file as the headers of an answer describe it."""

    url: str
    etag: str | None = None
    modified: str | None = None
    """Last-Modified, as the server wrote it."""
    length: int | None = None

    @property
    def validator(self) -> str | None:
        """Value for If-Range: a strong ETag, else Last-Modified. A weak ETag does not promise the same bytes."""
        return self.etag if self.etag and not self.etag.startswith("W/") else self.modified

    def agrees(self, other: "RemoteFile") -> bool:
        """Whether all headers that both have are equal."""
        pairs = ((self.etag, other.etag), (self.modified, other.modified), (self.length, other.length))
        return all(value == theirs for value, theirs in pairs if value is not None and theirs is not None)


def described(answer: httpx.Response, url: str) -> tuple[RemoteFile, int | None]:
    """The file, and the position of the first byte that the answer sends, None where that is not known.

    A body that is compressed for transport has another length than the file, and a part of it cannot be resumed.
    """
    partial = answer.status_code == httpx.codes.PARTIAL_CONTENT
    if answer.headers.get("content-encoding", "identity") != "identity":
        return RemoteFile(url), None if partial else 0
    start: int | None = 0
    length = answer.headers.get("content-length")
    if partial:
        content_range = _RANGE.fullmatch(answer.headers.get("content-range", ""))
        start, length = (int(content_range[1]), content_range[2]) if content_range else (None, None)
    size = int(length) if length and length.isdecimal() else None
    return RemoteFile(url, answer.headers.get("etag"), answer.headers.get("last-modified"), size), start


def check_redirect(answer: httpx.Response) -> None:
    """Follow no redirect out of encryption, and name one to another host; called before the next request.

    Raises:
        InfrastructureError: an encrypted address leads to one that is not.
    """
    if not answer.has_redirect_location:
        return
    before = answer.request.url
    after = before.join(answer.headers["location"])
    if before.scheme == "https" and after.scheme != "https":
        raise InfrastructureError(f"{before} leads to {after}, which is not encrypted; nothing was fetched")
    if before.host != after.host:
        log.warning("%s leads to another host: %s", before, after.host)


def check_status(answer: httpx.Response) -> None:
    """Accept only the file or a part of it.

    Raises:
        Interrupted: the server has a failure that may pass.
        SpecError: it rejects the query.
        InfrastructureError: it has no such file, or sends a page instead.
    """
    status = f"{answer.status_code} {answer.reason_phrase}".strip()
    if answer.status_code in _PASSING:
        seconds = answer.headers.get("retry-after", "")
        raise Interrupted(f"it answered {status}", float(seconds) if seconds.isdecimal() else 0.0)
    if answer.status_code not in (httpx.codes.OK, httpx.codes.PARTIAL_CONTENT):
        check_head(_start_of(answer), answer.url)
        raise InfrastructureError(
            f"{answer.url} answered {status}; see whether the year and the place are published, or give --base-url"
        )
    if answer.headers.get("content-type", "").lower().startswith("text/html"):
        raise _page(answer.url, _start_of(answer))


def check_head(head: bytes, url: httpx.URL | str) -> None:
    """Refuse a body that begins like a page or an error message: a table and a zip begin otherwise.

    Raises:
        SpecError: the data browser says what is wrong with the query.
        InfrastructureError: it is a page.
    """
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"<"):
        raise _page(url, head)
    if start.startswith(b"{") and (kind := _ERROR_TYPE.search(start)):
        raise SpecError(
            f"{url} does not take the query: {kind[1].decode(errors='replace')}; see --year, --kind and --geo"
        )


def _page(url: httpx.URL | str, head: bytes) -> InfrastructureError:
    title = _TITLE.search(head)
    text = unescape(" ".join(title[1].decode(errors="replace").split()))[:80] if title else ""
    titled = f" ({text!r})" if text else ""
    return InfrastructureError(
        f"{url} answered with a web page{titled} instead of the file; open the address in a browser to see why"
    )


def _start_of(answer: httpx.Response) -> bytes:
    """The first bytes of a body that is not read to its end."""
    with suppress(httpx.HTTPError):  # they only make the message better
        return next(answer.iter_bytes(SNIFFED), b"")
    return b""


# --------------------------------------------------------------------------------------------------------------------
# Partial download on disk: bytes in ``NAME.part``, and the server's description of the file in ``NAME.part.json``.
#
# Both outlive the process, so that the next one can resume. Bytes without a description are discarded.


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
        """Bytes of the whole file, if the server reports them."""
        return self.remote.length if self.remote else None

    @property
    def resumable(self) -> bool:
        """Whether a request for the remaining bytes alone is possible."""
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
        """Start again with the file as the server now describes it."""
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


# --------------------------------------------------------------------------------------------------------------------
# One HTTP transfer: asks the server for the missing bytes, and writes what arrives.
#
# Scope: one request and its answer. Retries: ``download``.


Tell = Callable[[int, int | None], None]
"""Called with the bytes that are there and the bytes of the whole, None where the server does not say."""

_SPARE_BYTES = 64 * 2**20
_NO_CONNECTION = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)
_NO_WAY = (httpx.UnsupportedProtocol, httpx.InvalidURL, httpx.TooManyRedirects, httpx.DecodingError)


def transfer(client: httpx.Client, url: str, part: Partial, tell: Tell, met: bool, bounds: "Bounds") -> None:
    """Ask for what is missing, and write what comes; ``met`` is whether the server has answered before.

    Raises:
        Interrupted: it is worth asking again.
        SpecError, InfrastructureError: it is not.
    """
    try:
        with client.stream("GET", url, headers=part.range_headers()) as answer:
            if answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                part.clear()
                raise Interrupted("it has no more bytes than are here, and they may not be its own")
            check_status(answer)
            _place(part, *described(answer, url))
            _require_space(part.target.parent, (part.length or 0) - part.size, url)
            bounds.check(url, part)
            for chunk in answer.iter_bytes():
                first = part.size < SNIFFED
                part.append(chunk)
                bounds.check(url, part)
                try:
                    if first:
                        check_head(part.head(), url)
                except EvenhandError:
                    part.clear()
                    raise
                tell(part.size, part.length)
            if part.size < (part.length or 0):
                raise Interrupted("the answer ended early")
    except _NO_WAY as error:
        raise InfrastructureError(f"{url} cannot be followed to a file: {error}") from error
    except httpx.TransportError as error:
        words = str(error) or type(error).__name__
        if not met and isinstance(error, _NO_CONNECTION):
            raise InfrastructureError(
                f"no way to {httpx.URL(url).host} ({words}); is this machine online? A file that was fetched elsewhere "
                "is taken in by `evenhand data add FILE`"
            ) from error
        raise Interrupted(f"the connection broke off ({words})") from error


@dataclass(frozen=True)
class Bounds:
    """Limits of bytes and seconds of a file, over all its requests."""

    most: int
    until: float
    """By ``time.monotonic``."""

    def check(self, url: str, part: Partial) -> None:
        """See that what came, or is announced, is within them.

        Raises:
            InfrastructureError: it is not.
        """
        if max(part.size, part.length or 0) > self.most:
            part.clear()
            raise InfrastructureError(
                f"{url} sends more than {self.most:,} bytes, which no file of HMDA has; see if the address is right"
            )
        if time.monotonic() > self.until:
            then = "run again to go on from there" if part.resumable else "run again to start anew"
            raise InfrastructureError(f"{url} takes too long; {part.size:,} bytes came. Later, {then}")


def _place(part: Partial, remote: RemoteFile, start: int | None) -> None:
    """Append to the existing bytes if the answer continues them; else start again."""
    if start == 0:
        part.begin(remote)
    elif start != part.size or part.remote is None or not part.remote.agrees(remote):
        part.clear()
        raise Interrupted("it sent a piece that does not continue what is here")


def _require_space(folder: Path, size: int, what: str) -> None:
    free, required = shutil.disk_usage(folder).free, size + _SPARE_BYTES
    if free < required:
        raise InfrastructureError(
            f"the disk of {folder} has {free // 2**20:,} MB free and {what} needs {required // 2**20:,} MB; free some, "
            "or give another directory with --lake"
        )


# --------------------------------------------------------------------------------------------------------------------
# Progress of a download: a bar where a person watches a terminal, elsewhere a line for each 10 %.


_STEP = 100 * 2**20
"""Bytes between two lines, where nobody says how many there will be."""


@contextmanager
def bytes_progress(of: str) -> Iterator[Tell]:
    """Show how many bytes have come; ``of`` names the file."""
    console = terminal()
    if console is None:
        yield _Lines(of)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(of, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class _Lines:
    """One line of the log for each tenth that has arrived. After a restart the lines start again."""

    def __init__(self, of: str) -> None:
        self._of, self._told = of, 0

    def __call__(self, done: int, total: int | None) -> None:
        reached = done * 10 // total if total else done // _STEP
        if reached > self._told:
            share = f"{reached * 10} % of {total:,} bytes" if total else f"{done:,} bytes"
            log.info("%s: %s", self._of, share)
        self._told = reached


# --------------------------------------------------------------------------------------------------------------------
# Downloads one file over HTTP, whole and as expected, and resumes an interrupted download.
#
# Scope: retries, and the checks of the whole file. One request: ``transfer``; what is on disk meanwhile: ``partial``.


_CONNECT_SECONDS, _SILENT_SECONDS = 10.0, 60.0


@dataclass(frozen=True)
class Patience:
    """How long to go on with a server that fails. A try that brought news sets the count of failures back."""

    failures: int = 6
    tries: int = 200
    """At most, even if each one brings some bytes."""
    most: int = 64 * 10**9
    """Bytes of the file."""
    seconds: float = 12 * 3600.0
    """For the whole file, with all tries."""
    first_pause: float = 1.0
    longest_pause: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    jitter: random.Random = field(default_factory=random.Random)

    def pause(self, failures: int, at_least: float) -> float:
        """Seconds before the next try: doubled each time, and spread, so that many clients do not return at once.

        What the server asks for counts, up to the longest pause.
        """
        doubled = min(self.longest_pause, self.first_pause * 2.0 ** (failures - 1))
        return max(min(at_least, self.longest_pause), doubled * self.jitter.uniform(0.5, 1.0))


@dataclass(frozen=True)
class Downloaded:
    """A file that came whole."""

    path: Path
    sha256: str
    bytes: int
    modified: str | None
    """Last-Modified, as the server wrote it."""


def download(
    url: str,
    target: Path,
    sha256: str | None = None,
    patience: Patience | None = None,
    tell: Tell = lambda _done, _whole: None,
) -> Downloaded:
    """Fetch ``url`` to ``target``, which is overwritten.

    What came before a failure stays beside the target as ``NAME.part`` if the server lets a later call resume it. One
    process at a time may fetch to a target.

    Raises:
        SpecError: the address is none, or the server does not take the query.
        InfrastructureError: no network, no such file, a page instead of it, a full disk, or a transfer that keeps
            breaking off.
        IntegrityError: the file has not the digest ``sha256``.
    """
    if not url.startswith(("https://", "http://")):
        raise SpecError(f"{url!r} is no address of a file; it begins with https:// or http://")
    patience = patience or Patience()
    # a piece of a body that is compressed for the way cannot be asked for
    headers = {"Accept-Encoding": "identity", "User-Agent": "evenhand"}
    hooks: dict[str, list[Callable[..., None]]] = {"response": [check_redirect]}
    timeout = httpx.Timeout(_SILENT_SECONDS, connect=_CONNECT_SECONDS)
    with (
        _disk_errors(target.parent),
        httpx.Client(follow_redirects=True, timeout=timeout, headers=headers, event_hooks=hooks) as client,
        Partial(target, url) as part,
    ):
        if not part.complete:
            _retry(client, url, part, tell, patience)
        if part.size == 0:
            raise InfrastructureError(
                f"{target.name}: the server sent no bytes; open the address in a browser to see why"
            )
        digest = sha256_of(part.flush())
        if sha256 not in (None, digest):
            part.clear()  # to resume would not mend it
            raise IntegrityError(
                f"{target.name}: sha256 is {digest} and not the {sha256} expected; the publisher has another edition "
                "there, or the file was altered on its way"
            )
        part.finish()
        return Downloaded(target, digest, part.size, part.remote.modified if part.remote else None)


def _retry(client: httpx.Client, url: str, part: Partial, tell: Tell, patience: Patience) -> None:
    """Ask until all came, or until the patience is at its end.

    Raises:
        InfrastructureError: it kept breaking off.
    """
    failures, most, why = 0, part.size, ""
    bounds = Bounds(patience.most, time.monotonic() + patience.seconds)
    for attempt in range(patience.tries):
        try:
            return transfer(client, url, part, tell, met=attempt > 0, bounds=bounds)
        except Interrupted as stop:
            failures = 1 if part.size > most else failures + 1
            most, why = max(most, part.size), str(stop)
            if failures >= patience.failures:
                break
            seconds = patience.pause(failures, stop.wait)
            log.warning("%s: %s; trying again in %.0f s", url, why, seconds)
            patience.sleep(seconds)
    of = "" if part.length is None else f" of {part.length:,}"
    then = "run again to go on from there" if part.resumable else "run again to start anew"
    raise InfrastructureError(f"{url}: {why}; {most:,}{of} bytes came. Later, {then}")


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    """Raise InfrastructureError for what a full or failing disk does."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InfrastructureError(
                f"the disk of {folder} is full; free some space and run again: what came is kept"
            ) from error
        raise InfrastructureError(f"{folder} could not be written: {error.strerror or error}") from error
