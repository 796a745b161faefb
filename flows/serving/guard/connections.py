"""Connections: how many there are, and how long one may go without a whole request.

uvicorn waits without a limit for the first request of a connection, and its ``limit_concurrency`` answers 503 to
everybody while many are idle. Here an idle connection ends after 10 seconds, and sooner where room is needed.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS: Final = 128
"""Twice the requests that are begun at once (``middleware``), so that idle ones can always make room."""
REQUEST_SECONDS: Final = 10.0
"""From the opening of a connection, or the end of an answer, to the next whole head of a request."""


class Connection(H11Protocol):
    """One connection of a browser, a probe, or of somebody who only holds it."""

    _end: asyncio.TimerHandle | None = None
    since: float = 0.0
    """When it began to be idle."""

    @property
    def idle(self) -> bool:
        """Whether no request of it is at work."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request, and make room for it."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Read what came; a request that began ends the wait."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before and not self.idle:
            self._stop_waiting()

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
        if self.idle and not self.transport.is_closing():
            self.transport.close()

    def _make_room(self) -> None:
        """End the connection that is idle for longest; this one where all others are at work."""
        others = [each for each in self.connections if isinstance(each, Connection) and each is not self and each.idle]
        oldest = min(others, key=lambda each: each.since, default=self)
        self.connections.discard(oldest)
        oldest.transport.close()
