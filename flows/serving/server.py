"""The application with its routes, and the loop that serves it."""

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
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import uvicorn
from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from flows.serving.guard import Admission, Connection, Guard
from flows.serving.index import Index
from flows.serving.pages import home, run_report, run_results, runs, start, years
from flows.serving.settings import Settings, check, token_in
from flows.serving.site import Page, Site, made, style
from flows.supervision.shutdown import say_only_stopped
from schemas.errors import EvenhandError, InfrastructureError, IntegrityError, SpecError

# --------------------------------------------------------------------------------------------------------------------
# The application: routes, and pages for errors, which show no more than the lake does.


log = logging.getLogger("evenhand")
_ROUTES = (
    home.routes,
    start.routes,
    runs.routes,
    home.search_routes,
    home.texts_routes,
    years.years_routes,
    run_results.routes,
    runs.compare_routes,
    run_results.findings_routes,
    run_report.quality_routes,
    run_report.lineage_routes,
    run_report.files_routes,
    run_report.review_routes,
    run_report.routes,
)
_WITHOUT_FIGURES: Final = ("/review", "/lineage")
"""Ends of addresses of a run whose pages have no figure that a reader could subtract."""
_TITLES: Mapping[int, str] = {
    400: "Not understood",
    403: "Not shown here",
    404: "No such page",
    405: "Not done here",
    409: "Not what was written",
    422: "Not understood",
    503: "Not now",
}
_EXPECTED: Mapping[str, str] = {
    "int_parsing": "a whole number, such as 1",
    "int_parsing_size": "a whole number of fewer digits",
    "bool_parsing": "1 for yes, or 0 for no",
    "missing": "a value",
}
"""Kind of a fault, as pydantic names it -> what is expected."""


def application(site: Site) -> ASGIApp:
    """All pages of a site, behind the guard."""
    app = FastAPI(title="Evenhand", docs_url=None, redoc_url=None, openapi_url=None)
    released = [] if site.settings.restricted else [Depends(_released_figures(site))]
    for routes in _ROUTES:
        app.include_router(routes(site), dependencies=released)
    app.include_router(run_report.question_routes(site), dependencies=released)  # comes last: any word fits it
    # liveness comes without information about the lake
    app.add_api_route("/healthz", lambda: Response("ok\n", media_type="text/plain"), include_in_schema=False)
    app.add_api_route("/style.css", lambda: Response(style(), media_type="text/css"), include_in_schema=False)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _not_understood)
    for kind in (EvenhandError, OSError, Exception):
        app.add_exception_handler(kind, _failed)
    return Guard(app, site.settings, site.admission)


def _released_figures(site: Site) -> Callable[[Request], None]:
    """Refuses pages with figures of a run that could be subtracted from an earlier release of the same rows."""

    def look(request: Request) -> None:
        runs = [run for name, run in request.path_params.items() if name in ("run", "other")]
        if request.method == "POST" or request.url.path.endswith(_WITHOUT_FIGURES):
            return
        for run in runs:
            site.summary(run)
            if released_runs := site.door(run).apart:
                raise HTTPException(
                    403,
                    f"{', '.join(released_runs)} was released over the same rows, and {run} was not audited together "
                    f"with it: its figures are shown by a server with --restricted alone. Run evenhand release {run}",
                )

    return look


def _refused(_: Request, error: Exception) -> Response:
    """A page for a refused request, or a page that does not exist."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = str(error.detail) if isinstance(error, HTTPException) else ""
    return _words(status, detail if detail != "Not Found" else "")


def _failed(_: Request, error: Exception) -> Response:
    """A page for an error of the lake."""
    if isinstance(error, OSError):
        log.warning("a page could not be read: %s", type(error).__name__)
        return _words(404, "What the page shows is not there any more, or cannot be read just now.")
    if not isinstance(error, EvenhandError):
        log.error("a page could not be made: %s", type(error).__name__)  # its words may have rows of persons
        return _words(500, "The page could not be made; `evenhand verify` may say what is wrong with the lake.")
    codes = {SpecError: 404, IntegrityError: 409, InfrastructureError: 503}
    return _words(next((code for kind, code in codes.items() if isinstance(error, kind)), 500), str(error))


def _not_understood(_: Request, error: Exception) -> Response:
    """A page that names each part of the address that cannot be read, without its content."""
    sentences = []
    for fault in error.errors() if isinstance(error, RequestValidationError) else ():
        part = {"path": "part", "query": "parameter"}.get(fault["loc"][0], "field")
        expected = _EXPECTED.get(fault["type"], "another value")
        sentences.append(f"The {part} {fault['loc'][-1]!r} of this address cannot be read: expected is {expected}.")
    return _words(422, *sentences)


def _words(status: int, *words: str) -> Response:
    lines = [line for line in words if line]
    page = Page(_TITLES.get(status, "Not shown"), template="said.html.j2", content={"lines": lines}, crumbs=_CRUMBS)
    return made(page, status)


_CRUMBS = (("/", "Audits"),)


# --------------------------------------------------------------------------------------------------------------------
# Listens, prints the address once, and serves until a signal ends it.


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
    if site.starts is not None:
        site.starts.watch()
    say_only_stopped()
    with closing(listening(settings)) as bound:
        _print_address(settings, "" if token_file else token)
        threading.Thread(target=_prepare, daemon=True).start()
        if browse:
            address = f"{settings.address}?token={site.admission.ticket()}"
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
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
    """A server that ends soon after a signal, even while a page is computed in a thread.

    Such a thread cannot be interrupted, and Python waits for it. Entries of the log are written whole under another
    name first, so that an end by force leaves none half written.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        """Wait for a signal in a thread, as a handler must not start one."""
        super().__init__(config)
        self._signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        threading.Thread(target=self._end, daemon=True).start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the shutdown, and start the limit after which it is forced."""
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
        way = "name another with --port"
        for port in range(settings.port + 1, settings.port + _TRIED):
            with suppress(OSError, OverflowError):
                _bound(settings.host, port).close()
                way = f"--port {port} is free"
                break
        raise InfrastructureError(f"port {settings.port} of {settings.host} is in use; {way}") from error


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def _print_address(settings: Settings, token: str) -> None:
    """Print the address once; on the error stream how to end the server, and warnings."""
    sys.stdout.write(f"{settings.address}{f'?token={token}' if token else ''}\n")
    sys.stdout.flush()
    notes = [
        "end it with Ctrl-C; whoever has this address sees the pages" if token else "end it with SIGTERM or Ctrl-C"
    ]
    if settings.behind_tls:
        notes.append(
            f"warning: listens on {settings.host}:{settings.port} for a proxy with TLS that serves "
            f"{settings.behind_tls}; nobody else must reach that port"
        )
    if settings.restricted:
        notes.append("warning: rows of persons are shown, and every such page is an entry of the log")
    for line in notes:
        sys.stderr.write(f"{line}\n")


def _prepare() -> None:
    """Load what reports are made with, so that the first page of a run need not."""
    from importlib import import_module

    for name in ("flows.runs.report_files", "tasks.reporting.pages"):
        import_module(name)
