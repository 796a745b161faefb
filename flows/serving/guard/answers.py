"""Answers of the guard itself: small pages in the style of the site, without navigation and without data of the lake.

The style stands inside the page, and the policy names its hash: who has no cookie is given no style sheet either.
"""

from collections.abc import Mapping
from html import escape
from typing import Final

from starlette.types import Message, Send

from flows.serving.guard.headers import FIXED, policy, styles_in

_TITLES: Final = {
    400: "Not understood",
    401: "Not signed in",
    403: "Not shown here",
    408: "Too slow",
    413: "Too large",
    421: "Wrong address",
    429: "Too many wrong tokens",
    503: "Not now",
}
_STYLE: Final = (
    ":root { color-scheme: light dark; } "
    "body { max-width: 46rem; margin: 0 auto; padding: 1rem 1.5rem; color: #1c2024; background: #ffffff; "
    'font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; overflow-wrap: anywhere; } '
    "h1 { font-size: 1.5rem; line-height: 1.25; } "
    "@media (prefers-color-scheme: dark) { body { color: #eceef0; background: #14171a; } }"
)
_PAGE: Final = (
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    '<title>{title} - Evenhand</title>\n<link rel="icon" href="data:,">\n<style>{style}</style>\n</head>\n'
    "<body>\n<main>\n<h1>{title}</h1>\n<p>{words}</p>\n</main>\n</body>\n</html>\n"
)


def page(status: int, words: str) -> bytes:
    """The page of an answer."""
    title = _TITLES.get(status, "Not shown")
    return _PAGE.format(title=escape(title), style=_STYLE, words=escape(words)).encode()


_POLICY: Final = policy(styles_in(page(400, "")))
"""Lets the style of these pages apply; it is the same in all of them."""


async def say(send: Send, status: int, words: str, more: Mapping[str, str] | None = None) -> None:
    """Send a page with a sentence.

    Args:
        send: of the request.
        status: of the answer.
        words: what is said; escaped here.
        more: further headers.
    """
    body = page(status, words)
    headers = {"content-type": "text/html; charset=utf-8", "content-security-policy": _POLICY, **(more or {})}
    await _send(send, status, headers, body)


async def lead(send: Send, location: str, more: Mapping[str, str]) -> None:
    """Send a browser to another address of these pages."""
    await _send(send, 303, {"location": location, **more}, b"")


async def _send(send: Send, status: int, headers: Mapping[str, str], body: bytes) -> None:
    given = {**headers, "content-length": str(len(body))}
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in given.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def with_headers(send: Send) -> Send:
    """Adds the fixed headers to every answer; a page that brings its own policy keeps it."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own: list[tuple[bytes, bytes]] = list(message.get("headers", []))
            known = {name.lower() for name, _ in own}
            fixed = {**FIXED, "content-security-policy": policy()}
            more = [(n.encode(), v.encode()) for n, v in fixed.items() if n.encode() not in known]
            message = {**message, "headers": [*own, *more]}
        await send(message)

    return sending


def without_body(send: Send) -> Send:
    """Sends the headers of a page and nothing of the page, as HEAD asks for."""

    async def sending(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return sending
