"""Listens, prints the address once, and serves until it is told to end."""

import errno
import logging
import os
import queue
import secrets
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import uvicorn

from flows.serving.app import application
from flows.serving.guard.admission import Admission
from flows.serving.guard.connections import Connection
from flows.serving.index.runs import Index
from flows.serving.settings import Settings, check, token_in
from flows.serving.site import Site
from flows.supervision.interruption import say_only_stopped
from schemas.errors import InfrastructureError

_BACKLOG: Final = 128
_TRIED: Final = 100
"""Ports that are tried for one that is free, to be named."""
_END_SECONDS: Final = 1
"""Given to requests at work when the server ends."""
_LAST_SECONDS: Final = 1.5
"""From the signal to the end of the process, whatever is at work: SIGTERM ends it within 2."""


def serve(settings: Settings, token_file: Path | None = None, *, browse: bool = False) -> None:
    """Serve the pages of a lake until SIGTERM or Ctrl-C.

    Args:
        settings: what is served where.
        token_file: that has the token; a new one is made and printed if None.
        browse: whether to open a browser.

    Raises:
        SpecError: options that do not go together, or a file that holds no token.
        InfrastructureError: the port is in use, or the lake cannot be reached.
    """
    check(settings)
    token = token_in(token_file) if token_file else secrets.token_urlsafe(32)
    site = Site(settings, Admission(token), Index(settings.lake))
    site.known()
    say_only_stopped()
    with closing(listening(settings)) as bound:
        _tell(settings, "" if token_file else token)
        threading.Thread(target=_prepare, daemon=True).start()
        if browse:
            threading.Thread(target=_browse(settings, site.admission), daemon=True).start()
        config = uvicorn.Config(
            application(site),
            http=Connection,
            ws="none",
            log_level="critical",  # its lines have addresses, and addresses have names
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_END_SECONDS,
            proxy_headers=False,
            lifespan="off",
        )
        logging.getLogger("uvicorn.error").disabled = True
        _Server(config).run(sockets=[bound])


class _Server(uvicorn.Server):
    """A server whose process ends soon after a signal, even while a page is computed in a thread.

    Such a thread cannot be interrupted, and Python waits for it. Entries of the log are written whole under another
    name first, so that an end by force leaves none half written.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        """Wait for a signal in a thread, as a handler must not start one."""
        super().__init__(config)
        self._signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        threading.Thread(target=self._end, daemon=True).start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end, and see that it comes to an end."""
        self._signals.put(sig)
        super().handle_exit(sig, frame)

    def _end(self) -> NoReturn:
        sig = self._signals.get()
        time.sleep(_LAST_SECONDS)
        os._exit(128 + sig)


def listening(settings: Settings) -> socket.socket:
    """A socket that listens.

    Raises:
        InfrastructureError: the port is in use, with the next one that is free; or there is no such address.
    """
    try:
        return _bound(settings.host, settings.port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise InfrastructureError(f"{settings.host}:{settings.port} cannot be listened on: {error}") from error
        free = next((port for port in range(settings.port + 1, settings.port + _TRIED) if _free(settings, port)), None)
        way = f"--port {free} is free" if free else "name another with --port"
        raise InfrastructureError(f"port {settings.port} of {settings.host} is in use; {way}") from error


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(_BACKLOG)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


def _free(settings: Settings, port: int) -> bool:
    try:
        _bound(settings.host, port).close()
    except (OSError, OverflowError):
        return False
    return True


def _tell(settings: Settings, token: str) -> None:
    """Print the address once, and how to end it; on the error stream what else is to be known."""
    sys.stdout.write(f"{settings.address}{f'?token={token}' if token else ''}\n")
    sys.stdout.flush()
    said = ["end it with Ctrl-C; whoever has this address sees the pages" if token else "end it with SIGTERM or Ctrl-C"]
    if settings.behind_tls:
        said.append(
            f"warning: listens on {settings.host}:{settings.port} for a proxy with TLS that serves "
            f"{settings.behind_tls}; nobody else must reach that port"
        )
    if settings.restricted:
        said.append("warning: rows of persons are shown, and every such page is an entry of the log")
    for line in said:
        sys.stderr.write(f"{line}\n")


def _prepare() -> None:
    """Load what reports are made with, so that the first page of a run need not."""
    from importlib import import_module

    for name in ("flows.runs.report_files", "tasks.reporting.pages.files"):
        import_module(name)


def _browse(settings: Settings, admission: Admission) -> Callable[[], None]:
    return lambda: (webbrowser.open(f"{settings.address}?token={admission.ticket()}"), None)[1]
