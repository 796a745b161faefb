"""The guard before every page: Host, token, cookie, Origin, the body, and how many requests are at work at once."""

import asyncio
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, urlencode

from starlette.types import ASGIApp, Receive, Scope, Send

from flows.serving.guard import body
from flows.serving.guard.admission import SESSION_SECONDS, Admission
from flows.serving.guard.answers import lead, say, with_headers, without_body
from flows.serving.settings import Settings

AT_ONCE: Final = 8
MOST_BEGUN: Final = 64
"""Requests that are read, wait for a place, or are at work. A browser opens six connections."""
_WAIT_SECONDS: Final = 10
OPEN: Final = frozenset({"/healthz"})
"""Told to everybody who reaches the port: liveness without data."""
_TOO_LARGE: Final = "That is more than a form of these pages holds."
_TOO_MANY: Final = "Too many requests at once. Try again."


@dataclass
class Guard:
    """Lets a request through to the pages, or answers it."""

    app: ASGIApp
    settings: Settings
    admission: Admission
    body_seconds: float = body.BODY_SECONDS
    _begun: int = 0
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; other protocols than HTTP have nothing here. HEAD is GET without the page."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        elif scope["method"] == "HEAD":
            await self._answer({**scope, "method": "GET"}, receive, without_body(with_headers(send)))
        else:
            await self._answer(scope, receive, with_headers(send))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, reading = _headers_of(scope), scope["method"] == "GET"
        is_open = scope["path"] in OPEN
        if headers.get("host", "").lower() not in (self.settings.probed if is_open else self.settings.hosts):
            await say(send, 421, "These pages are not served under that name.")
        elif headers.get("upgrade", "").lower() == "websocket":
            await say(send, 400, "These pages have no WebSockets.")
        elif is_open:
            await self.app(scope, receive, send)
        elif reading and (given := _token_in(scope)) is not None:
            await self._open(scope, send, given)
        elif (cookie := self._cookie(headers)) is None:
            await say(send, 401, "Open the address that `evenhand serve` printed, with its token.")
        elif headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            await say(send, 403, "This request does not come from these pages.")
        elif not reading and headers.get("origin") not in self.settings.origins:
            await say(send, 403, "This form does not come from these pages.")
        else:
            scope.setdefault("state", {})["cookie"] = cookie
            await self._counted(scope, receive, send, headers.get("content-length", "0"))

    def _cookie(self, headers: dict[str, str]) -> str | None:
        """That of a session that has not ended."""
        return next(filter(self.admission.knows, _cookies_in(headers, self.settings.cookie)), None)

    async def _open(self, scope: Scope, send: Send, token: str) -> None:
        """Turn a token into a cookie, and lead away from the address that has it."""
        if self.admission.locked():
            await say(send, 429, "Too many wrong tokens. Wait a minute.", {"retry-after": "60"})
            return
        cookie = self.admission.opened(token)
        if cookie is None:
            await say(send, 401, "That is not the token of this server.")
            return
        secure = "; Secure" if self.settings.secure else ""
        told = f"{self.settings.cookie}={cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age={SESSION_SECONDS}{secure}"
        await lead(send, _without_token(scope), {"set-cookie": told})

    async def _counted(self, scope: Scope, receive: Receive, send: Send, length: str) -> None:
        """Begin a request, as long as not too many are begun."""
        if self._begun >= MOST_BEGUN:
            await say(send, 503, _TOO_MANY, {"retry-after": "5"})
            return
        self._begun += 1
        try:
            await self._within_bounds(scope, receive, send, length)
        finally:
            self._begun -= 1

    async def _within_bounds(self, scope: Scope, receive: Receive, send: Send, length: str) -> None:
        """Read the body first, and only then take one of the places."""
        try:
            whole = await body.read(receive, length, self.body_seconds)
        except body.GoneError:
            return
        except body.TooLargeError:
            await say(send, 413, _TOO_LARGE)
            return
        except TimeoutError:
            await say(send, 408, "The form did not arrive in time. Send it again.", {"connection": "close"})
            return
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._room.acquire()
        except TimeoutError:
            await say(send, 503, _TOO_MANY, {"retry-after": "5"})
            return
        try:
            await self.app(scope, whole, send)
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
