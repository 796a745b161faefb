"""Keeps the text of pages that are made of published tables alone: a run does not change, and drawing takes time.

The key of a page names all that it is made of; pages with rows of persons are never kept.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from starlette.responses import HTMLResponse

from flows.serving.rendering import Page, made

MOST_KEPT: Final = 64
"""Of at most 150 kB each."""
Key = tuple[str | int, ...]


@dataclass
class PageCache:
    """The last pages."""

    _kept: OrderedDict[Key, bytes] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def page(self, key: Key, make: Callable[[], Page]) -> HTMLResponse:
        """The page of a key, made where it is not kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return HTMLResponse(self._kept[key])
        answer = made(make())
        with self._lock:
            self._kept[key] = bytes(answer.body)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return answer
