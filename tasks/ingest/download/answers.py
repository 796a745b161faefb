"""Classifies a server's answer: the file, a part of it, a passing failure, or something else.

Here belongs judging one answer by its status, its headers and its first bytes. When to ask again is in ``download``.
"""

import json
import re
from html import unescape

import httpx

from schemas.errors import EvenhandError, InfrastructureError, SpecError
from tasks.ingest.download.partial import Whole

SNIFFED = 512
"""Bytes at the start of a body that are looked at."""

_PASSING = (408, 425, 429, 500, 502, 503, 504)
_PIECE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
_TITLE = re.compile(rb"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)


class Interrupted(Exception):  # noqa: N818 - no fault of anyone's yet: the download goes on after it
    """The transfer stopped, and it is worth asking again, after ``wait`` seconds at least."""

    def __init__(self, why: str, wait: float = 0.0) -> None:
        """``why`` goes on where a sentence says that the server could not be read."""
        super().__init__(why)
        self.wait = wait


def whole_of(answer: httpx.Response, url: str) -> Whole:
    """What the headers say of the whole file.

    A body that is compressed for the way has another length than the file, and a piece of it is of no use.
    """
    if answer.headers.get("content-encoding", "identity") != "identity":
        return Whole(url)
    length = answer.headers.get("content-length")
    if answer.status_code == httpx.codes.PARTIAL_CONTENT:
        piece = _PIECE.fullmatch(answer.headers.get("content-range", ""))
        length = piece[2] if piece else None
    return Whole(
        url=url,
        etag=answer.headers.get("etag"),
        modified=answer.headers.get("last-modified"),
        length=int(length) if length and length.isdecimal() else None,
    )


def piece_start(answer: httpx.Response) -> int | None:
    """Where the piece that is sent begins; None where it is not said."""
    piece = _PIECE.fullmatch(answer.headers.get("content-range", ""))
    return int(piece[1]) if piece else None


def judge_status(answer: httpx.Response, asked: httpx.URL) -> None:
    """Let only the file, or a piece of it, pass.

    Raises:
        Interrupted: the server is in trouble that may pass.
        SpecError: it does not take the query.
        InfrastructureError: it has no such file, or sends a page instead.
    """
    if asked.scheme == "https" and answer.url.scheme != "https":
        raise InfrastructureError(f"{asked} leads to {answer.url}, which is not encrypted; nothing was fetched")
    said = f"{answer.status_code} {answer.reason_phrase}".strip()
    if answer.status_code in _PASSING:
        raise Interrupted(f"it answered {said}", _retry_after(answer))
    if answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
        raise Interrupted("it has no more bytes than are here, and they may not be its own")
    if answer.status_code not in (httpx.codes.OK, httpx.codes.PARTIAL_CONTENT):
        judge_head(_start_of(answer), answer.url)
        raise InfrastructureError(
            f"{answer.url} answered {said}; see whether the year and the place are published, or give --base-url"
        )
    if answer.headers.get("content-type", "").lower().startswith("text/html"):
        raise _page(answer.url, _start_of(answer))


def judge_head(head: bytes, url: httpx.URL | str) -> None:
    """Refuse a body that begins like a page or like a message: a table and a zip begin otherwise.

    Raises:
        SpecError: the data browser says what is wrong with the query.
        InfrastructureError: it is a page.
    """
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"<"):
        raise _page(url, head)
    if start.startswith(b"{") and (kind := _error_type(start)):
        raise SpecError(f"{url} does not take the query: {kind}; see --year, --kind and --geo")


def _page(url: httpx.URL | str, head: bytes) -> EvenhandError:
    title = _TITLE.search(head)
    said = unescape(" ".join(title[1].decode(errors="replace").split()))[:80] if title else ""
    titled = f" ({said!r})" if said else ""
    return InfrastructureError(
        f"{url} answered with a web page{titled} instead of the file; open the address in a browser to see why"
    )


def _error_type(start: bytes) -> str | None:
    try:
        said = json.loads(start)
    except ValueError:
        return None
    kind = said.get("errorType") if isinstance(said, dict) else None
    return str(kind)[:80] if kind else None


def _start_of(answer: httpx.Response) -> bytes:
    """The first bytes of a body that is not going to be read to its end."""
    start = b""
    try:
        for chunk in answer.iter_bytes():
            start += chunk
            if len(start) >= SNIFFED:
                break
    except httpx.HTTPError:
        pass  # what came will have to do: it only makes the message better
    return start[:SNIFFED]


def _retry_after(answer: httpx.Response) -> float:
    said = answer.headers.get("retry-after", "")
    return float(said) if said.isdecimal() else 0.0
