"""The guard before every page: Host, token, cookie, Origin, size of bodies, requests at once, headers of answers."""

import asyncio
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flows.serving.guard.admission import SESSION_SECONDS, Admission
from flows.serving.guard.headers import FIXED, policy
from flows.serving.settings import Settings

AT_ONCE: Final = 8
MOST_BODY: Final = 64 * 1024
_WAIT_SECONDS: Final = 10
OPEN: Final = frozenset({"/healthz"})
"""Told to everybody who reaches the port: liveness without data."""
READING: Final = ("GET", "HEAD")


class TooLargeError(Exception):
    """A body beyond the bound."""


@dataclass
class Guard:
    """Lets a request through to the pages, or answers it."""

    app: ASGIApp
    settings: Settings
    admission: Admission
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; other protocols than HTTP have nothing here."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, _with_headers(send))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _headers_of(scope)
        if headers.get("host", "").lower() not in self.settings.hosts:
            await _say(send, 421, "These pages are not served under that name.")
            return
        if scope["path"] in OPEN:
            await self.app(scope, receive, send)
            return
        if scope["method"] in READING and (given := _token_in(scope)) is not None:
            await self._open(scope, send, given)
            return
        cookie = next(filter(self.admission.knows, _cookies_in(headers, self.settings.cookie)), None)
        if cookie is None:
            await _say(send, 401, "Open the address that `evenhand serve` printed, with its token.")
            return
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            await _say(send, 403, "This request does not come from these pages.")
            return
        if scope["method"] not in READING and headers.get("origin") not in self.settings.origins:
            await _say(send, 403, "This form does not come from these pages.")
            return
        scope.setdefault("state", {})["cookie"] = cookie
        await self._within_bounds(scope, receive, send, headers)

    async def _open(self, scope: Scope, send: Send, token: str) -> None:
        """Turn a token into a cookie, and lead away from the address that has it."""
        if self.admission.locked():
            await _say(send, 429, "Too many wrong tokens. Wait a minute.", {"retry-after": "60"})
            return
        cookie = self.admission.opened(token)
        if cookie is None:
            await _say(send, 401, "That is not the token of this server.")
            return
        secure = "; Secure" if self.settings.secure else ""
        told = f"{self.settings.cookie}={cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age={SESSION_SECONDS}{secure}"
        await _say(send, 303, "", {"location": _without_token(scope), "set-cookie": told})

    async def _within_bounds(self, scope: Scope, receive: Receive, send: Send, headers: dict[str, str]) -> None:
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BODY:
            await _say(send, 413, "That is more than a form of these pages holds.")
            return
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._room.acquire()
        except TimeoutError:
            await _say(send, 503, "Too many requests at once. Try again.", {"retry-after": "5"})
            return
        try:
            await self.app(scope, _bounded(receive), send)
        except TooLargeError:
            await _say(send, 413, "That is more than a form of these pages holds.")
        finally:
            self._room.release()


def _headers_of(scope: Scope) -> dict[str, str]:
    """Headers by name; of one that comes twice nothing is believed, as two readers may choose differently."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        found[key] = "" if key in found and key in ("host", "origin", "content-length") else value.decode("latin-1")
    return found


def _token_in(scope: Scope) -> str | None:
    asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return next((value for name, value in asked if name == "token"), None)


def _without_token(scope: Scope) -> str:
    """The same page without the token; only ever a path of this server."""
    asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    left = urlencode([(name, value) for name, value in asked if name != "token"])
    path = "/" + scope.get("raw_path", b"/").decode("latin-1").partition("?")[0].lstrip("/\\")
    return f"{path}?{left}" if left else path


def _cookies_in(headers: dict[str, str], name: str) -> list[str]:
    """Every value of that name. Other programs of this machine set cookies of any form; ours are never quoted."""
    pairs = (each.strip().partition("=") for each in headers.get("cookie", "").split(";"))
    return [value for key, _, value in pairs if key == name and value]


def _bounded(receive: Receive) -> Receive:
    """Reads a body that says no length, or a wrong one, as far as the bound."""
    taken = 0

    async def bounded() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > MOST_BODY:
            raise TooLargeError
        return message

    return bounded


def _with_headers(send: Send) -> Send:
    """Adds the fixed headers; a page that brings its own policy keeps it."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own: list[tuple[bytes, bytes]] = list(message.get("headers", []))
            known = {name.lower() for name, _ in own}
            fixed = {**FIXED, "content-security-policy": policy()}
            more = [(n.encode(), v.encode()) for n, v in fixed.items() if n.encode() not in known]
            message = {**message, "headers": [*own, *more]}
        await send(message)

    return sending


async def _say(send: Send, status: int, words: str, more: MutableMapping[str, Any] | None = None) -> None:
    body = words.encode()
    headers = {"content-type": "text/plain; charset=utf-8", "content-length": str(len(body)), **(more or {})}
    pairs = [(name.encode(), str(value).encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
