"""Judges a server's answer: the file, a part of it, a passing failure, or something else.

Scope: status, headers and first bytes of one answer. Retries: ``download``.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from html import unescape

import httpx

from schemas.errors import InfrastructureError, SpecError

SNIFFED = 512
"""Bytes at the start of a body that are looked at."""

_PASSING = (408, 425, 429, 500, 502, 503, 504)
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
_ERROR_TYPE = re.compile(rb'"errorType"\s*:\s*"([^"]{1,80})')
_TITLE = re.compile(rb"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)


class Interrupted(Exception):  # noqa: N818 - no fault of anyone's yet: the download goes on after it
    """The transfer stopped, and it is worth asking again, after ``wait`` seconds at least."""

    def __init__(self, why: str, wait: float = 0.0) -> None:
        """``why`` goes on where a sentence says that the server could not be read."""
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
        return all(mine == theirs for mine, theirs in pairs if mine is not None and theirs is not None)


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


def check_status(answer: httpx.Response, asked: httpx.URL) -> None:
    """Accept only the file or a part of it.

    Raises:
        Interrupted: the server has a failure that may pass.
        SpecError: it rejects the query.
        InfrastructureError: it has no such file, or sends a page instead.
    """
    if asked.scheme == "https" and answer.url.scheme != "https":
        raise InfrastructureError(f"{asked} leads to {answer.url}, which is not encrypted; nothing was fetched")
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
