"""Forms that are sent once: each carries letters of its own, bound to the session that it is shown to.

A form that is sent twice, by a second click, a reload or the back button, enters nothing the second time. One that was
refused has entered nothing, and may be sent again. Forms are kept in memory: a server that starts anew has none.
"""

import hashlib
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

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

    def entered(self, cookie: str, once: str, enter: Callable[[], int]) -> Sent:
        """Enter what a form says, unless that was done. Who sends it a second time at the same moment waits.

        Args:
            cookie: of the session.
            once: the letters that the form brought.
            enter: makes the entry and gives its number. What it raises leaves the form as it was.

        Raises:
            UnknownFormError: the session was shown no such form.
        """
        with self._entering:
            before = self._number(cookie, once)
            if before != _FRESH:
                return Sent(before, again=True)
            n = enter()
            with self._lock:
                self._shown[once] = (_digest(cookie), n)
        return Sent(n, again=False)

    def _number(self, cookie: str, once: str) -> int:
        with self._lock:
            owner, n = self._shown.get(once, ("", _FRESH))
        if owner != _digest(cookie):
            raise UnknownFormError
        return n


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()
