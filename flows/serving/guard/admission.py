"""Admission: a token opens a session, a cookie carries it, and forms are bound to it (``forms``).

The token is never kept by a browser: ``?token=`` is turned into a cookie of random letters and redirected away.
Sessions are in memory, so that a server that is started again knows none of the old.
"""

import hashlib
import hmac
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from flows.serving.guard.forms import Forms

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

    def _is_ticket(self, token: str) -> bool:
        with self._lock:
            ticket, end = self._ticket
            fits = hmac.compare_digest(token.encode(), ticket.encode()) and bool(ticket) and self.clock() < end
            if fits:
                self._ticket = ("", 0.0)
            return fits

    def opened(self, token: str) -> str | None:
        """The cookie of a new session; None where the token is not this server's."""
        if not hmac.compare_digest(token.encode(), self.token.encode()) and not self._is_ticket(token):
            with self._lock:
                self._wrong.append(self.clock())
            return None
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            now = self.clock()
            self._sessions = {each: end for each, end in self._sessions.items() if end > now}
            while len(self._sessions) >= _MOST_SESSIONS:
                self._sessions.pop(next(iter(self._sessions)))
            self._sessions[_digest(cookie)] = now + SESSION_SECONDS
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
            return self._sessions.get(_digest(cookie), 0.0) > self.clock()


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()
