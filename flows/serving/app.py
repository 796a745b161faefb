"""The application: routes, and what becomes of errors, which tell no more than the lake does."""

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from flows.serving.guard.middleware import Guard
from flows.serving.pages.lake import home, runs, search, texts, years
from flows.serving.pages.run import compare, files, findings, lineage, measures, quality, report, review
from flows.serving.rendering import Page, made, style
from flows.serving.site import Site
from schemas.errors import EvenhandError, InfrastructureError, IntegrityError, SpecError

log = logging.getLogger("evenhand")
_PAGES = (home, runs, search, texts, years, measures, compare, findings, quality, lineage, files, review, report)
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
    for module in _PAGES:
        app.include_router(module.routes(site))
    app.include_router(report.question_routes(site))  # comes last: any word fits it
    app.add_api_route("/healthz", _alive, include_in_schema=False)
    app.add_api_route("/style.css", _style, include_in_schema=False)
    app.add_exception_handler(HTTPException, _said)
    app.add_exception_handler(RequestValidationError, _not_understood)
    for kind in (EvenhandError, OSError, Exception):
        app.add_exception_handler(kind, _failed)
    return Guard(app, site.settings, site.admission)


def _alive() -> Response:
    """Tell that the server answers, and nothing of the lake."""
    return Response("ok\n", media_type="text/plain")


def _style() -> Response:
    """The style of all pages."""
    return Response(style(), media_type="text/css")


def _said(_: Request, error: Exception) -> Response:
    """A page for what was refused, or is not there."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = str(error.detail) if isinstance(error, HTTPException) else ""
    return _words(status, detail if detail != "Not Found" else "")


def _failed(_: Request, error: Exception) -> Response:
    """A page for what the lake does not give."""
    if isinstance(error, OSError):
        log.warning("a page could not be read: %s", type(error).__name__)
        return _words(404, "What the page shows is not there any more, or cannot be read just now.")
    if not isinstance(error, EvenhandError):
        log.error("a page could not be made: %s", type(error).__name__)  # its words may have rows of persons
        return _words(500, "The page could not be made; `evenhand verify` may say what is amiss with the lake.")
    codes = {SpecError: 404, IntegrityError: 409, InfrastructureError: 503}
    return _words(next((code for kind, code in codes.items() if isinstance(error, kind)), 500), str(error))


def _not_understood(_: Request, error: Exception) -> Response:
    """A page that names each part of the address that cannot be read; what stood there is not repeated."""
    faults = error.errors() if isinstance(error, RequestValidationError) else ()
    return _words(422, *map(_expected, faults))


def _expected(fault: Mapping[str, Any]) -> str:
    kind, name = fault["loc"][0], fault["loc"][-1]
    what = {"path": "part", "query": "parameter"}.get(kind, "field")
    wanted = _EXPECTED.get(fault["type"], "another value")
    return f"The {what} {name!r} of this address cannot be read: expected is {wanted}."


def _words(status: int, *words: str) -> Response:
    lines = [line for line in words if line]
    page = Page(_TITLES.get(status, "Not shown"), template="said.html.j2", content={"lines": lines}, crumbs=_CRUMBS)
    return made(page, status)


_CRUMBS = (("/", "Audits"),)
