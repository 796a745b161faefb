"""One HTTP transfer: asks the server for the missing bytes, and writes what arrives.

Scope: one request and its answer. Retries: ``download``.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import httpx

from schemas.errors import EvenhandError, InfrastructureError
from tasks.ingest.download.answers import SNIFFED, Interrupted, RemoteFile, check_head, check_status, described
from tasks.ingest.download.partial import Partial

Tell = Callable[[int, int | None], None]
"""Called with the bytes that are there and the bytes of the whole, None where the server does not say."""

_SPARE_BYTES = 64 * 2**20
_NO_CONNECTION = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)
_NO_WAY = (httpx.UnsupportedProtocol, httpx.InvalidURL, httpx.TooManyRedirects, httpx.DecodingError)


def transfer(client: httpx.Client, url: str, part: Partial, tell: Tell, met: bool) -> None:
    """Ask for what is missing, and write what comes; ``met`` is whether the server has answered before.

    Raises:
        Interrupted: it is worth asking again.
        SpecError, InfrastructureError: it is not.
    """
    try:
        with client.stream("GET", url, headers=part.range_headers()) as answer:
            _receive(answer, url, part, tell)
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


def _receive(answer: httpx.Response, url: str, part: Partial, tell: Tell) -> None:
    if answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
        part.clear()
        raise Interrupted("it has no more bytes than are here, and they may not be its own")
    check_status(answer, httpx.URL(url))
    _place(part, *described(answer, url))
    _require_space(part.target.parent, (part.length or 0) - part.size, url)
    for chunk in answer.iter_bytes():
        _append(part, chunk, url)
        tell(part.size, part.length)
    if part.size < (part.length or 0):
        raise Interrupted("the answer ended early")


def _place(part: Partial, remote: RemoteFile, start: int | None) -> None:
    """Append to the bytes that are there if the answer continues them; else start anew."""
    if start == 0:
        part.begin(remote)
    elif start != part.size or part.remote is None or not part.remote.agrees(remote):
        part.clear()
        raise Interrupted("it sent a piece that does not continue what is here")


def _append(part: Partial, chunk: bytes, url: str) -> None:
    """Add bytes; refuse them where the file now begins like a page."""
    first = part.size < SNIFFED
    part.append(chunk)
    try:
        if first:
            check_head(part.head(), url)
    except EvenhandError:
        part.clear()
        raise


def _require_space(folder: Path, size: int, what: str) -> None:
    free, needed = shutil.disk_usage(folder).free, size + _SPARE_BYTES
    if free < needed:
        raise InfrastructureError(
            f"the disk of {folder} has {free // 2**20:,} MB free and {what} needs {needed // 2**20:,} MB; free some, "
            "or give another directory with --lake"
        )
