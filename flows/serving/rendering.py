"""Makes pages: a section, or a template of the report, in the frame of the server, with its navigation and forms."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import jinja2
from markupsafe import Markup
from starlette.responses import HTMLResponse

from flows.runs.trust.letters import on_a_page, visible
from tasks.reporting.pages.frame import Frame, coded, environment, style_sheet
from tasks.reporting.section import Section, TableView

_TEMPLATES = Path(__file__).parent / "templates"
SITE: Final = (
    ("/", "Audits"),
    ("/runs", "Runs"),
    ("/search", "Search"),
    ("/method", "Definitions"),
    ("/glossary", "Glossary"),
)
"""What every page leads to."""
Links = tuple[tuple[str, str], ...]
"""Addresses and their words."""


@dataclass(frozen=True)
class Field:
    """A field of a form that asks for a list."""

    name: str
    label: str
    value: str = ""
    options: tuple[str, ...] = ()
    """Values to choose from; empty: text is written."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Value -> how it is told, where that is not the value."""
    every: bool = True
    """Whether none of them may be chosen, which stands for all."""


@dataclass(frozen=True)
class Sorted:
    """A table that links in its headers sort."""

    table: TableView
    addresses: tuple[str, ...]
    """Of each column: where it leads; empty of one that is not sorted by."""
    orders: tuple[str, ...]
    """Of each column: ascending or descending where the rows are sorted by it; else empty."""


@dataclass(frozen=True)
class Page:
    """A page before it is made."""

    title: str
    section: Section | None = None
    """What stands on it; None where a template of its own shows ``content``."""
    template: str = "listed.html.j2"
    content: Mapping[str, Any] = field(default_factory=dict)
    crumbs: Links = ()
    """The way to it."""
    kicker: str = ""
    """Line above the heading, such as the title of the audit."""
    run: str = ""
    links: Links = ()
    """Navigation of a run."""
    form: tuple[Field, ...] = ()
    """Filters, sent by GET."""
    action: str = ""
    """Where the form is sent to; its own address if empty."""
    sorted: Sorted | None = None
    """A table below the section."""
    more: Links = ()
    """Earlier and later parts of a list."""
    refresh: bool = False
    """Whether it loads itself again every 10 seconds: only where a year is at work."""
    restricted: str = ""
    here: str = ""
    """Its own address, which is marked in navigations."""
    targets: frozenset[str] = frozenset()
    """Paths of the files that the report of the run has."""


def made(page: Page, status: int = 200) -> HTMLResponse:
    """The answer with a page."""
    page = replace(page, title=visible(page.title), kicker=visible(page.kicker))
    frame = Frame(page.kicker, page.run, restricted=page.restricted)
    given: dict[str, Any] = {"section": page.section, "frame": frame, **page.content}
    own = {"at": page, "site": SITE, "path": "", "link": address_of(page.run), "targets": _Targets(page.targets)}
    text = _environment().get_template(page.template).render(**given, **own)
    return HTMLResponse(text, status_code=status)


def size_of(section: Section) -> int:
    """Bytes that a section takes on a page."""
    given = {"part": section, "path": "", "link": address_of(""), "targets": _Targets(frozenset())}
    return len(_environment().get_template("part.html.j2").render(**given).encode())


@cache
def style() -> bytes:
    """The style sheet of all pages: the report's own, and what pages of a server have beside it."""
    return (style_sheet() + (_TEMPLATES / "site.css").read_text(encoding="utf-8")).encode()


def run_path(run: str, *parts: str, **asked: str | int | None) -> str:
    """Address of a page of a run; what is asked and empty is left out."""
    return path_of("runs", run, *parts, **asked)


def path_of(*parts: str, **asked: str | int | None) -> str:
    """An address of this server, whatever names are part of it."""
    query = urlencode({name: value for name, value in asked.items() if value not in (None, "")})
    return "/" + "/".join(quote(part, safe="") for part in parts) + (f"?{query}" if query else "")


def address_of(run: str) -> Callable[[str], str]:
    """How pages of a run name files of its report: by the routes that show them; other addresses stay as they are."""

    def address(target: str) -> str:
        path, mark, part = target.partition("#")
        return target if path.startswith("/") else f"{_route(run, path)}{mark}{quote(part)}"

    return address


def _route(run: str, path: str) -> str:
    folder, _, name = path.rpartition("/")
    stem = name.removesuffix(".html")
    if path == "method.html":
        return "/method"
    if path == "report.html":
        return run_path(run)
    return run_path(run, *{"pages": (stem,), "evidence": ("evidence", stem)}.get(folder, ("files", *path.split("/"))))


@dataclass(frozen=True)
class _Targets:
    """Where a section may lead: pages of this server, and what the report of the run has."""

    paths: frozenset[str]

    def __contains__(self, target: object) -> bool:
        return str(target).startswith("/") or target in self.paths


@cache
def _environment() -> jinja2.Environment:
    """The templates; what they write has its control characters escaped, whatever spec or entry it is of."""
    made_of = environment(_TEMPLATES)
    made_of.finalize = _written
    made_of.filters["coded"] = lambda text: coded(on_a_page(text))
    return made_of


def _written(said: Any) -> Any:
    return on_a_page(said) if isinstance(said, str) and not isinstance(said, Markup) else said
