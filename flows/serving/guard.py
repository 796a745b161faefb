"""Protection of every page: host, token, cookie, origin, size and rate of requests, security headers."""

import asyncio
import base64
import hashlib
import hmac
import re
import secrets
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from flows.serving.settings import Settings

# --------------------------------------------------------------------------------------------------------------------
# Headers of every answer: nothing is loaded but our own style and drawings, nothing is kept, no other page frames it.


POLICY: Final = (
    "default-src 'none'; style-src {style}; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
FIXED: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer browsers send `Origin: null` with a form
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
_STYLE = re.compile(rb"<style>(.*?)</style>", re.DOTALL)


def policy(styles: Iterable[str] = ()) -> str:
    """The policy of a page; ``styles`` are the hashes of inline styles, as reports have them."""
    return POLICY.format(style=" ".join(["'self'", *styles]))


def styles_in(page: bytes) -> list[str]:
    """Hashes of the inline styles of a page, for its policy; the digest of the page was checked before."""
    digests = (hashlib.sha256(style).digest() for style in _STYLE.findall(page))
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in dict.fromkeys(digests)]


# --------------------------------------------------------------------------------------------------------------------
# Forms that are sent once: each carries letters of its own, bound to the session that it is shown to.
#
# A form that is sent twice, by a second click, a reload or the back button, enters nothing the second time. One that
# was refused has entered nothing, and may be sent again. Forms are kept in memory: a server that starts again has none.


MOST_FORMS: Final = 3000
"""The oldest goes first. A page of review has at most three."""
_FRESH: Final = 0


class UnknownFormError(Exception):
    """Not a form of this session, or one that was shown too long ago."""


@dataclass(frozen=True)
class Sent:
    """What became of a form."""

    n: int
    """Number of the entry."""
    again: bool
    """Whether it was entered before."""


@dataclass
class Forms:
    """The forms that were shown."""

    _shown: OrderedDict[str, tuple[str, int]] = field(default_factory=OrderedDict)
    """Letters of a form -> sha256 of the cookie, and the number of the entry that was made of it."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _entering: threading.Lock = field(default_factory=threading.Lock)

    def made(self, cookie: str) -> str:
        """The letters of a form that is about to be shown."""
        once = secrets.token_hex(32)
        with self._lock:
            self._shown[once] = (_digest(cookie), _FRESH)
            while len(self._shown) > MOST_FORMS:
                self._shown.popitem(last=False)
        return once

    def knows(self, cookie: str, once: str) -> bool:
        """Whether a form was shown to a session: looked at before a table is read that came with it."""
        with self._lock:
            return self._shown.get(once, ("", _FRESH))[0] == _digest(cookie)

    def entered(self, cookie: str, once: str, enter: Callable[[], int]) -> Sent:
        """Enter the content of a form, unless it was entered before. A second request at the same moment waits.

        Args:
            cookie: of the session.
            once: the letters that the form brought.
            enter: makes the entry and gives its number. What it raises leaves the form as it was.

        Raises:
            UnknownFormError: the session was shown no such form.
        """
        with self._entering:
            with self._lock:
                owner, before = self._shown.get(once, ("", _FRESH))
            if owner != _digest(cookie):
                raise UnknownFormError
            if before != _FRESH:
                return Sent(before, again=True)
            n = enter()
            with self._lock:
                self._shown[once] = (_digest(cookie), n)
        return Sent(n, again=False)


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()


# --------------------------------------------------------------------------------------------------------------------
# Answers of the guard itself: small pages in the style of the site, without navigation and without data of the lake.
#
# The style is inside the page, and the policy names its hash: a reader without a cookie gets no style sheet either.


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
_ANSWERS_STYLE: Final = (
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
    return _PAGE.format(title=escape(title), style=_ANSWERS_STYLE, words=escape(words)).encode()


_POLICY: Final = policy(styles_in(page(400, "")))
"""Lets the style of these pages apply; it is the same in all of them."""


async def say(send: Send, status: int, words: str, extra_headers: Mapping[str, str] | None = None) -> None:
    """Send a page with a sentence.

    Args:
        send: of the request.
        status: of the answer.
        words: the message; escaped here.
        extra_headers: further headers.
    """
    body = page(status, words)
    headers = {"content-type": "text/html; charset=utf-8", "content-security-policy": _POLICY, **(extra_headers or {})}
    await _send(send, status, headers, body)


async def lead(send: Send, location: str, extra_headers: Mapping[str, str]) -> None:
    """Send a browser to another address of these pages."""
    await _send(send, 303, {"location": location, **extra_headers}, b"")


async def _send(send: Send, status: int, headers: Mapping[str, str], body: bytes) -> None:
    all_headers = {**headers, "content-length": str(len(body))}
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in all_headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def with_headers(send: Send) -> Send:
    """Adds the fixed headers to every answer; a page that brings its own policy keeps it."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers: list[tuple[bytes, bytes]] = list(message.get("headers", []))
            header_names = {name.lower() for name, _ in headers}
            fixed = {**FIXED, "content-security-policy": policy()}
            missing_headers = [(n.encode(), v.encode()) for n, v in fixed.items() if n.encode() not in header_names]
            message = {**message, "headers": [*headers, *missing_headers]}
        await send(message)

    return sending


def without_body(send: Send) -> Send:
    """Sends the headers of a page without its content, for the method HEAD."""

    async def sending(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return sending


# --------------------------------------------------------------------------------------------------------------------
# Reads the body of a request before anything works on it: at most 64 kB, within 10 seconds.
#
# A sender that stalls so holds a connection for that long, and none of the places at which pages are made.


MOST_BODY: Final = 64 * 1024
BODY_SECONDS: Final = 10.0
UPLOAD: Final = "/new/table"
"""Where a table is sent to. Its body is not read here but written by the page, piece by piece."""
MOST_FIELDS: Final = 16 * 1024
"""Bytes of the form around a table."""
UPLOAD_SECONDS: Final = 3600


class TooLargeError(Exception):
    """A body beyond the bound."""


class GoneError(Exception):
    """The sender left before the body was whole."""


async def read(receive: Receive, length: str, seconds: float = BODY_SECONDS) -> Receive:
    """Read a whole body; returns what the pages receive in place of the connection.

    The pages receive the body once, and then the messages of the connection, such as that the reader left.

    Args:
        receive: of the request.
        length: of the header, which may be missing or wrong.
        seconds: until when the body has to be whole.

    Raises:
        TooLargeError: it is beyond the bound, or its length is no number.
        TimeoutError: it was not whole in time.
        GoneError: the sender left.
    """
    if not length.isdecimal() or int(length) > MOST_BODY:
        raise TooLargeError
    body, more = b"", True
    async with asyncio.timeout(seconds):
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise GoneError
            body += bytes(message.get("body", b""))
            if len(body) > MOST_BODY:
                raise TooLargeError
            more = message.get("more_body", False)
    unread = [body]

    async def again() -> Message:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        return await receive()

    return again


def paced(receive: Receive, seconds: float = BODY_SECONDS) -> Receive:
    """Pass on the pieces of a body as they come; a sender that sends none for so long has left."""
    end = time.monotonic() + UPLOAD_SECONDS

    async def piece() -> Message:
        try:
            async with asyncio.timeout(min(seconds, end - time.monotonic())):
                return await receive()
        except TimeoutError:
            return {"type": "http.disconnect"}

    return piece


# --------------------------------------------------------------------------------------------------------------------
# Connections: how many there are, how long one may go without a whole request, and without reading its answer.
#
# uvicorn waits without a limit for the first request of a connection, and for an answer to be read; its
# ``limit_concurrency`` answers 503 to everybody while many are idle. Here a connection ends after 10 seconds in which
# it sends no request, or reads too little of its answer, and sooner where room is needed: strangers go first.


MOST_CONNECTIONS: Final = 128
"""Twice the requests that are begun at once (``middleware``), so that idle ones can always make room."""
MOST_OF_ADDRESS: Final = 64
"""Connections of one client address."""
REQUEST_SECONDS: Final = 10.0
"""From the opening of a connection, or the end of an answer, to the next whole head of a request."""
READ_SECONDS: Final = 10.0
LEAST_READ: Final = 100_000
"""Bytes of an answer to be read in so many seconds; of a shorter rest all."""


class Connection(H11Protocol):
    """One connection of a browser or a probe, or an idle one."""

    _end: asyncio.TimerHandle | None = None
    _look: asyncio.TimerHandle | None = None
    _unread: int = 0
    """Bytes of answers that its reader had not taken at the last look; 0 if few or none wait."""
    since: float = 0.0
    """When it began to be idle."""
    has_session: bool = False
    """Whether a request of it had the cookie of a session."""

    @property
    def idle(self) -> bool:
        """Whether no request of it is at work."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request, and make room for it."""
        super().connection_made(transport)
        self._wait()
        every = [connection for connection in self.connections if isinstance(connection, Connection)]
        of_address = [connection for connection in every if connection._address == self._address]
        if len(every) > MOST_CONNECTIONS or len(of_address) > MOST_OF_ADDRESS:
            crowd = of_address if len(of_address) > MOST_OF_ADDRESS else every
            candidates = [connection for connection in crowd if connection is not self and connection._can_leave]
            first = min(
                candidates,
                key=lambda connection: (connection.has_session, not connection._unread, connection.since),
                default=self,
            )
            self.connections.discard(first)
            first._leave()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        self._stop_looking()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Read what came; a request that began ends the wait."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before and not self.idle:
            self._stop_waiting()
            self.cycle.scope["state"]["connection"] = self  # its task has not begun

    def pause_writing(self) -> None:
        """Begin to look whether the answer is read."""
        super().pause_writing()
        self._unread = self.transport.get_write_buffer_size()
        self._look = self.loop.call_later(READ_SECONDS, self._see_progress)

    def resume_writing(self) -> None:
        """Look no longer: little is left."""
        if self._unread:
            self._stop_looking()
            if self.idle:
                self._wait()
        super().resume_writing()

    def on_response_complete(self) -> None:
        """Wait for the next request, which may be here already."""
        self._wait()
        super().on_response_complete()

    def _wait(self) -> None:
        self._stop_waiting()
        self.since = self.loop.time()
        self._end = self.loop.call_later(REQUEST_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None

    def _give_up(self) -> None:
        if self.idle and not self._unread:
            self._leave()

    def _see_progress(self) -> None:
        waiting = self.transport.get_write_buffer_size()
        if self._unread - waiting < LEAST_READ:
            self._leave()
        else:
            self._unread = waiting
            self._look = self.loop.call_later(READ_SECONDS, self._see_progress)

    def _stop_looking(self) -> None:
        self._unread = 0
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _leave(self) -> None:
        """End the connection now: one that is only closed stays until all of its answer is read."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        elif not self.transport.is_closing():
            self.transport.close()

    @property
    def _can_leave(self) -> bool:
        return self.idle or bool(self._unread)

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""


# --------------------------------------------------------------------------------------------------------------------
# Admission: a token opens a session, a cookie carries it, and forms are bound to it (``forms``).
#
# The token is never kept by a browser: ``?token=`` is turned into a cookie of random letters and redirected away.
# Sessions are in memory, so that a server that is started again knows none of the old.


SESSION_SECONDS: Final = 8 * 3600
MOST_WRONG: Final = 20
"""Wrong tokens in a minute; after that none is looked at until the minute is over."""
_MINUTE: Final = 60
_TICKET_SECONDS: Final = 30
_MOST_SESSIONS: Final = 1000


@dataclass
class Admission:
    """The token of a server, and the sessions that it opened."""

    token: str
    clock: Callable[[], float] = time.monotonic
    forms: Forms = field(default_factory=Forms)
    """What sessions may send, each once."""
    _sessions: dict[str, float] = field(default_factory=dict)
    """sha256 of a cookie -> when it ends."""
    _wrong: deque[float] = field(default_factory=deque)
    _ticket: tuple[str, float] = ("", 0.0)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ticket(self) -> str:
        """A token that opens one session within half a minute: a browser's command line is read by everybody here."""
        with self._lock:
            self._ticket = (secrets.token_urlsafe(32), self.clock() + _TICKET_SECONDS)
            return self._ticket[0]

    def opened(self, token: str) -> str | None:
        """The cookie of a new session; None where the token is not this server's."""
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            with self._lock:
                ticket, end = self._ticket
                fits = hmac.compare_digest(token.encode(), ticket.encode()) and bool(ticket) and self.clock() < end
                if not fits:
                    self._wrong.append(self.clock())
                    return None
                self._ticket = ("", 0.0)
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            now = self.clock()
            self._sessions = {session: end for session, end in self._sessions.items() if end > now}
            while len(self._sessions) >= _MOST_SESSIONS:
                self._sessions.pop(next(iter(self._sessions)))
            self._sessions[_admission_digest(cookie)] = now + SESSION_SECONDS
        return cookie

    def locked(self) -> bool:
        """Whether so many wrong tokens came within a minute that none is looked at."""
        with self._lock:
            while self._wrong and self._wrong[0] <= self.clock() - _MINUTE:
                self._wrong.popleft()
            return len(self._wrong) >= MOST_WRONG

    def knows(self, cookie: str) -> bool:
        """Whether a cookie is of a session that has not ended."""
        with self._lock:
            return self._sessions.get(_admission_digest(cookie), 0.0) > self.clock()


def _admission_digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()


# --------------------------------------------------------------------------------------------------------------------
# The guard before every page: Host, token, cookie, Origin, the body, and how many requests are at work at once.


AT_ONCE: Final = 8
MOST_BEGUN: Final = 64
"""Requests that are read, wait for a place, or are at work; half of them for one client address. A browser opens six
connections."""
UPLOADS_AT_ONCE: Final = 4
"""Tables that are written at the same time; they take no place of a page."""
_WAIT_SECONDS: Final = 10
_UPLOAD_WAIT_SECONDS: Final = 120
OPEN: Final = frozenset({"/healthz"})
"""Open to everybody who reaches the port: liveness without data."""
_TOO_LARGE: Final = "That is more than a form of these pages holds."
_TOO_MANY: Final = "Too many requests at once. Try again."


@dataclass
class Guard:
    """Lets a request through to the pages, or answers it."""

    app: ASGIApp
    settings: Settings
    admission: Admission
    body_seconds: float = BODY_SECONDS
    _begun: Counter[str] = field(default_factory=Counter)
    """Client address -> its requests that are begun."""
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    _upload_room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(UPLOADS_AT_ONCE))

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
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            key = name.decode("latin-1").lower()
            # two readers of a header that comes twice may choose differently, so none is believed
            is_doubtful = key in headers and key in ("host", "origin", "content-length")
            headers[key] = "" if is_doubtful else value.decode("latin-1")
        reading, is_open = scope["method"] == "GET", scope["path"] in OPEN
        # other programs of this machine set cookies of any form; ours are never quoted
        pairs = (pair.strip().partition("=") for pair in headers.get("cookie", "").split(";"))
        cookies = [value for key, _, value in pairs if key == self.settings.cookie and value]
        parameters = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = next((value for name, value in parameters if name == "token"), None)
        if headers.get("host", "").lower() not in (self.settings.probed if is_open else self.settings.hosts):
            await say(send, 421, "These pages are not served under that name.")
        elif headers.get("upgrade", "").lower() == "websocket":
            await say(send, 400, "These pages have no WebSockets.")
        elif is_open:
            await self.app(scope, receive, send)
        elif reading and token is not None:
            page_parameters = [(name, value) for name, value in parameters if name != "token"]
            await self._open(scope, send, token, urlencode(page_parameters))
        elif (cookie := next(filter(self.admission.knows, cookies), None)) is None:
            await say(send, 401, "Open the address that `evenhand serve` printed, with its token.")
        elif headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            await say(send, 403, "This request does not come from these pages.")
        elif not reading and headers.get("origin") not in self.settings.origins:
            await say(send, 403, "This form does not come from these pages.")
        else:
            state = scope.setdefault("state", {})
            state["cookie"] = cookie
            if isinstance(connection := state.get("connection"), Connection):
                connection.has_session = True
            await self._counted(scope, receive, send, headers.get("content-length", "0"))

    async def _open(self, scope: Scope, send: Send, token: str, query: str) -> None:
        """Turn a token into a cookie, and redirect to the same page without the token, a path of this server."""
        if self.admission.locked():
            await say(send, 429, "Too many wrong tokens. Wait a minute.", {"retry-after": "60"})
            return
        cookie = self.admission.opened(token)
        if cookie is None:
            await say(send, 401, "That is not the token of this server.")
            return
        secure = "; Secure" if self.settings.secure else ""
        cookie_header = (
            f"{self.settings.cookie}={cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age={SESSION_SECONDS}{secure}"
        )
        path = "/" + scope.get("raw_path", b"/").decode("latin-1").partition("?")[0].lstrip("/\\")
        await lead(send, f"{path}?{query}" if query else path, {"set-cookie": cookie_header})

    async def _counted(self, scope: Scope, receive: Receive, send: Send, length: str) -> None:
        """Begin a request unless too many are begun: read its body first, and only then take one of the places.

        Both are given back when the answer begins, which is whole by then: a reader may be slow.
        """
        address = (scope.get("client") or ("",))[0]
        if self._begun.total() >= MOST_BEGUN or self._begun[address] >= MOST_BEGUN // 2:
            await say(send, 503, _TOO_MANY, {"retry-after": "5"})
            return
        with ExitStack() as places:
            self._begun[address] += 1
            places.callback(self._end, address)
            room, patience = self._room, _WAIT_SECONDS
            try:
                if self.settings.start and (scope["method"], scope["path"]) == ("POST", UPLOAD):
                    if not length.isdecimal() or int(length) > self.settings.most_upload + MOST_FIELDS:
                        words = f"A table of more than {self.settings.upload_mb:,} MB is not taken here."
                        await say(send, 413, words, {"connection": "close"})
                        return
                    receive_body = paced(receive, self.body_seconds)
                    room, patience = self._upload_room, _UPLOAD_WAIT_SECONDS
                else:
                    receive_body = await read(receive, length, self.body_seconds)
            except GoneError:
                return
            except TooLargeError:
                await say(send, 413, _TOO_LARGE)
                return
            except TimeoutError:
                await say(send, 408, "The form did not arrive in time. Send it again.", {"connection": "close"})
                return
            try:
                async with asyncio.timeout(patience):
                    await room.acquire()
            except TimeoutError:
                await say(send, 503, _TOO_MANY, {"retry-after": "5"})
                return
            places.callback(room.release)

            async def sending(message: Message) -> None:
                places.close()
                await send(message)

            await self.app(scope, receive_body, sending)

    def _end(self, address: str) -> None:
        self._begun[address] -= 1
        self._begun += Counter()  # without the addresses of nobody
