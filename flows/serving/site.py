"""What every page needs: index, queries over published tables, rendering in the frame of the site."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import quote, urlencode

import duckdb
import jinja2
import pyarrow as pa
from markupsafe import Markup
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse

from flows.runs.control_characters import on_a_page, visible
from flows.runs.index import Run, read_manifest, run_of, spec_of
from flows.runs.released import OPEN, Door, door_of
from flows.runs.summary import Summary
from flows.serving.guard import Admission
from flows.serving.index import Index, Known, Stamp
from flows.serving.settings import Settings
from flows.serving.starts import Starts
from schemas.audit.spec import AuditSpec
from schemas.errors import InfrastructureError, IntegrityError, SpecError
from tasks.lake import log
from tasks.lake.log import digest_of
from tasks.lake.storage import connected
from tasks.lake.store import Lake
from tasks.pipeline.registry import validated
from tasks.reporting.frame import Frame, coded, environment, style_sheet
from tasks.reporting.text import Section, TableView

if TYPE_CHECKING:
    from tasks.reporting.first_page.result import Decision
    from tasks.reporting.material import Material


# --------------------------------------------------------------------------------------------------------------------
# Makes pages: a section, or a template of the report, in the frame of the server, with its navigation and forms.


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
    """A field of a form that filters a list."""

    name: str
    label: str
    value: str = ""
    options: tuple[str, ...] = ()
    """Values to choose from; empty: text is written."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Value -> its words, where they differ from the value."""
    every: bool = True
    """Whether the form has a choice of no value, for all."""


@dataclass(frozen=True)
class Sorted:
    """A table that links in its headers sort."""

    table: TableView
    addresses: tuple[str, ...]
    """Of each column: the link of its header; empty if rows cannot be sorted by it."""
    orders: tuple[str, ...]
    """Of each column: ascending or descending where the rows are sorted by it; else empty."""


@dataclass(frozen=True)
class Page:
    """A page before it is made."""

    title: str
    section: Section | None = None
    """Its content; None where the template shows ``content``."""
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
    """Address that the form is sent to; the page's address if empty."""
    sorted: Sorted | None = None
    """A table below the section."""
    more: Links = ()
    """Earlier and later parts of a list."""
    refresh: int = 0
    """Seconds after which it loads itself again, only where something is at work; 0: never."""
    restricted: str = ""
    here: str = ""
    """Its own address, which is marked in navigations."""
    targets: frozenset[str] = frozenset()
    """Paths of the files that the report of the run has."""


def made(page: Page, status: int = 200) -> HTMLResponse:
    """The answer with a page."""
    page = replace(page, title=visible(page.title), kicker=visible(page.kicker))
    frame = Frame(page.kicker, page.run, restricted=page.restricted)
    content: dict[str, Any] = {"section": page.section, "frame": frame, **page.content}
    page_context = {
        "at": page,
        "site": SITE,
        "path": "",
        "link": address_of(page.run),
        "targets": _Targets(page.targets),
    }
    text = _environment().get_template(page.template).render(**content, **page_context)
    # as a header, and not in the page: assistive software holds an element that reloads for a fault
    return HTMLResponse(text, status_code=status, headers={"refresh": str(page.refresh)} if page.refresh else None)


def size_of(section: Section) -> int:
    """Bytes that a section takes on a page."""
    context = {"part": section, "path": "", "link": address_of(""), "targets": _Targets(frozenset())}
    return len(_environment().get_template("part.html.j2").render(**context).encode())


@cache
def style() -> bytes:
    """The style sheet of all pages: that of the report, and additions for the server's pages."""
    return (style_sheet() + (_TEMPLATES / "site.css").read_text(encoding="utf-8")).encode()


def run_path(run: str, *parts: str, **parameters: str | int | None) -> str:
    """Address of a page of a run; empty parameters are left out."""
    return path_of("runs", run, *parts, **parameters)


def path_of(*parts: str, **parameters: str | int | None) -> str:
    """An address of this server; names in it are escaped."""
    query = urlencode({name: value for name, value in parameters.items() if value not in (None, "")})
    return "/" + "/".join(quote(part, safe="") for part in parts) + (f"?{query}" if query else "")


def address_of(run: str) -> Callable[[str], str]:
    """How pages of a run name files of its report: by the routes that show them; other addresses stay as they are."""

    def address(target: str) -> str:
        path, mark, part = target.partition("#")
        if path.startswith("/"):
            return target
        folder, _, name = path.rpartition("/")
        stem = name.removesuffix(".html")
        parts = {"pages": (stem,), "evidence": ("evidence", stem)}.get(folder, ("files", *path.split("/")))
        routes = {"method.html": "/method", "report.html": run_path(run)}
        return f"{routes.get(path) or run_path(run, *parts)}{mark}{quote(part)}"

    return address


@dataclass(frozen=True)
class _Targets:
    """Where a section may lead: pages of this server, and what the report of the run has."""

    paths: frozenset[str]

    def __contains__(self, target: object) -> bool:
        return str(target).startswith("/") or target in self.paths


@cache
def _environment() -> jinja2.Environment:
    """The templates; control characters in their output are escaped, from any spec or entry."""
    templates = environment(_TEMPLATES)
    templates.finalize = lambda text: (
        on_a_page(text) if isinstance(text, str) and not isinstance(text, Markup) else text
    )
    templates.filters["coded"] = lambda text: coded(on_a_page(text))
    return templates


# --------------------------------------------------------------------------------------------------------------------
# The report of a run as pages of the server show it: made of its published tables by the report's own chapters.
#
# The last few are kept: sections are texts, and a run does not change. What people signed is looked up each time.


MOST_KEPT: Final = 4


@dataclass(frozen=True)
class Report:
    """What the pages of a run show."""

    material: "Material"
    """Its settings; measures and tables are left out, which sections are made of."""
    first: Mapping[str, Any]
    """What the template of the first page shows, but for the signatures."""
    sections: Mapping[str, Section]
    """Path of a page in the report -> its content."""
    links: tuple[tuple[str, str], ...]
    """Path of each file of the report, and its words in the navigation."""


@dataclass
class Reports:
    """Makes reports, and keeps the last few."""

    _kept: OrderedDict[tuple[str, str, Door], Report] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, lake: Lake, run: str, manifest_sha256: str, door: Door = OPEN) -> Report:
        """The report of a run, without what stays in the house.

        Raises:
            SpecError: the lake has no such run, or it is of another version.
            IntegrityError: a table is missing or has been altered.
        """
        from tasks.reporting.first_page.page import decide, run_of
        from tasks.reporting.pages import links, sections, shown_first

        key = (run, manifest_sha256, door)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        material = _material(lake, run, door)
        decision: Decision = material.rephrase_all(decide(run_of(material)))
        pages = sections(material, decision)
        bare = replace(material, measures=(), tables={})
        report = Report(bare, shown_first(material, decision), pages, tuple(links(pages)))
        with self._lock:
            self._kept[key] = report
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return report


def quality_of(lake: Lake, run: str, door: Door = OPEN) -> Section:
    """The content of the data page of a run, without the other pages; errors as in ``Reports.of``."""
    from tasks.reporting.data_page import quality

    return quality(_material(lake, run, door))


def navigation(manifest: Mapping[str, Any]) -> tuple[tuple[str, str], ...] | None:
    """Path of each file of the report, and its words, by the files that the run made; of no use for another version.

    Returns:
        None where the run made a short report, whose pages follow from its tables alone.
    """
    from tasks.reporting.pages import links

    names = manifest.get("exported", {})
    if not any("/" in name for name in names):
        return None
    try:
        validated(AuditSpec, spec_of(manifest))
    except ValidationError:
        return ()
    return tuple(links(names))


def _material(lake: Lake, run: str, door: Door) -> "Material":
    from flows.runs.report_files import read_anew  # loads what reports are made with
    from tasks.reporting.stage import material_of

    try:
        return material_of(*read_anew(lake, run, door))
    except OSError as error:
        raise IntegrityError(f"run {run}: a file of it went while it was read ({error})") from error


def first_page(report: Report, index: Known, run: str) -> dict[str, Any]:
    """What the first page shows, with the signatures of now; none where the log cannot be relied on.

    Args:
        report: of the run.
        index: what is known of the lake.
        run: its id.
    """
    from flows.runs.report_files import signed_of
    from tasks.reporting.pages import shown_first

    if index.log.broken:
        return {**report.first, "signed": f"The log cannot be relied on, and no signature is shown: {index.log.broken}"}
    alike = sorted(
        (entry for summary in index.alike(run) for entry in index.log.of(summary.run)), key=lambda entry: entry.n
    )
    signed_now = replace(report.material, signed=signed_of(index.lake, run, alike))
    return {**report.first, **shown_first(signed_now, report.first["decision"])}


# --------------------------------------------------------------------------------------------------------------------
# Queries of pages over published tables: one connection to an empty database, a cursor for each request.
#
# A cursor sees only the tables that are registered on it. Parameters are bound, and the connection opens no file.


QUERY_SECONDS: Final = 10
_SANDBOX = """
    SET python_enable_replacements = false;
    SET allow_persistent_secrets = false;
    SET autoinstall_known_extensions = false;
    SET autoload_known_extensions = false;
    SET memory_limit = '512MB';
    SET temp_directory = '';
    SET enable_external_access = false;
    SET lock_configuration = true;
"""


class Tables:
    """Queries tables in memory."""

    def __init__(self, seconds: float = QUERY_SECONDS) -> None:
        """Open nothing yet; ``seconds`` are what a query may take."""
        self._seconds = seconds
        self._lock = threading.Lock()

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        connection = connected()
        connection.execute(_SANDBOX)
        return connection

    def ask(self, tables: Mapping[str, pa.Table], query: str, parameters: Mapping[str, Any]) -> pa.Table:
        """The answer to a query.

        Args:
            tables: that it names.
            query: one statement of ours.
            parameters: its parameters.

        Raises:
            InfrastructureError: it takes more time or memory than it may.
        """
        with self._lock:
            cursor = self._connection.cursor()
        clock = threading.Timer(self._seconds, cursor.interrupt)
        try:
            for name, table in tables.items():
                cursor.register(name, table)
            clock.start()
            return cursor.sql(query, params=dict(parameters)).to_arrow_table()
        except (duckdb.InterruptException, duckdb.OutOfMemoryException) as error:
            raise InfrastructureError(
                f"the query took more than {self._seconds:g} seconds, or more memory than pages have; narrow it"
            ) from error
        finally:
            clock.cancel()
            cursor.close()


# --------------------------------------------------------------------------------------------------------------------
# Keeps the text of pages that are made of published tables alone: a run does not change, and drawing takes time.
#
# The key of a page names all that it is made of; pages with rows of persons are never kept.


PAGE_CACHE_MOST_KEPT: Final = 64
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
            while len(self._kept) > PAGE_CACHE_MOST_KEPT:
                self._kept.popitem(last=False)
        return answer


# --------------------------------------------------------------------------------------------------------------------
# What every page is made with: the settings, the index, reports, tables, and the names of the runs' pages.


_PAGES: Links = (
    ("measures", "Measures"),
    ("compare", "Compare"),
    ("findings", "Findings"),
    ("quality", "Data quality"),
    ("lineage", "Lineage"),
    ("files", "Files"),
    ("review", "Review"),
)
"""Pages of every run, as well as those of its report."""
_MOST_MANIFESTS, _MOST_NAVIGATIONS = 16, 256
NOT_SHOWN: Final = "not_shown"
"""State of a run whose figures stay in the house, in lists."""
RESTRICTED = "Restricted: the profile internal withholds nothing. Not to be published or passed on."


@dataclass
class Site:
    """A lake, and what is served of it."""

    settings: Settings
    admission: Admission
    index: Index
    reports: Reports = field(default_factory=Reports)
    tables: Tables = field(default_factory=Tables)
    pages: PageCache = field(default_factory=PageCache)
    starts: Starts | None = None
    """Audits that readers begin; None where they may not."""
    _manifests: OrderedDict[tuple[str, Stamp], tuple[dict[str, Any], str]] = field(default_factory=OrderedDict)
    """Run and stamp of its manifest -> the manifest, and its digest as signatures have it."""
    _navigation: OrderedDict[str, Links] = field(default_factory=OrderedDict)
    """Digest of a manifest -> the files of its report."""
    _doors: OrderedDict[tuple[str, str], Door] = field(default_factory=OrderedDict)
    """Run and head of the log -> what of the run is not shown."""
    _made: OrderedDict[tuple[str, str, Door], Mapping[str, bytes]] = field(default_factory=OrderedDict)
    _shown: tuple[Known, Known] | None = None
    """What is known of the lake, and what of it is shown."""

    def __post_init__(self) -> None:
        """Make the lake where audits may be begun, and begin what a server left."""
        if self.settings.start:
            files = Path(self.settings.files).resolve() if self.settings.files else None
            self.starts = Starts(Lake(self.settings.lake), self.settings.runs_at_once, files)

    def known(self, *, refresh: bool = False) -> Known:
        """What is known of the lake: of runs that are not shown no state and no figure, in any list."""
        index = self.index.known(refresh=refresh)
        released = {} if self.settings.restricted else log.released(index.lake)
        if not released:
            return index
        if self._shown is None or self._shown[0] is not index:
            origins = [index.runs[run] for run in released if run in index.runs]
            sources, years = ({*map(key, origins)} for key in (_source, _year))
            runs = dict(index.runs)
            for name, run in index.runs.items():
                if (_source(run) in sources or _year(run) in years) and self.door(name).apart:
                    nothing = {"state": NOT_SHOWN, "theories": {}, "headline": "", "figures": ()}
                    runs[name] = run.model_copy(update=nothing)
            self._shown = (index, replace(index, runs=runs))
        return self._shown[1]

    def summary(self, run: str) -> Summary:
        """A run that the index has; 404 for all else, so that no name is ever joined into a path."""
        summary = self.known().runs.get(run)
        if summary is None:
            missing("The lake has no such run; it may have been removed.")
        return summary

    def audit(self, audit: str) -> Sequence[Summary]:
        """The runs of an audit, newest first: none of one that only failed. 404 for a name that none has."""
        index = self.known()
        if audit not in index.audits and audit not in index.tried:
            missing("The lake has no run of such an audit.")
        return index.audits.get(audit, ())

    def run(self, run: str) -> Run:
        """A run by its manifest.

        Raises:
            IntegrityError: the manifest is not the one that was written.
        """
        self.manifest(run)
        return run_of(self.known().lake, run)

    def report(self, run: str) -> Report:
        """The report of a run.

        Raises:
            SpecError: the run is of another version.
            IntegrityError: a table is not the one that was written.
        """
        return self.reports.of(self.known().lake, run, self.digest(run), self.door(run))

    def door(self, run: str) -> Door:
        """What of a run is not shown by this server; nothing where restricted pages are."""
        if self.settings.restricted:
            return OPEN
        index = self.index.known()
        key = (run, index.log.head.sha256)  # protections and releases are entries
        if key not in self._doors:
            self._doors[key] = door_of(index.lake, run)
            while len(self._doors) > _MOST_NAVIGATIONS:
                self._doors.popitem(last=False)
        return self._doors.get(key) or door_of(index.lake, run)

    def files(self, run: str) -> Mapping[str, bytes] | None:
        """The files of a run's report without what stays in the house; None where nothing does.

        They are those that a release would have, and are made once for a few runs. Errors are as of ``report``.
        """
        from flows.runs.report_files import report_anew  # loads what reports are made with

        door = self.door(run)
        if not door.withheld:
            return None
        key = (run, self.digest(run), door)
        if key not in self._made:
            self._made[key] = report_anew(self.known().lake, run, door)
            while len(self._made) > MOST_KEPT:
                self._made.popitem(last=False)
        return self._made.get(key) or report_anew(self.known().lake, run, door)

    def manifest(self, run: str) -> dict[str, Any]:
        """The manifest of a run; errors as of ``run``."""
        return self._sealed(run)[0]

    def digest(self, run: str) -> str:
        """The digest of a run's manifest, which all that is made of the run depends on; errors as of ``run``."""
        return self._sealed(run)[1]

    def _sealed(self, run: str) -> tuple[dict[str, Any], str]:
        self.summary(run)
        index = self.known()
        key = (run, index.written.get(run, Stamp()))
        cached = self._manifests.get(key)
        if cached is None or not index.lake.storage.exists(f"runs/{run}/manifest.json"):
            try:
                manifest = read_manifest(index.lake, run)
            except SpecError:
                missing("The lake has no such run; it may have been removed.")
            cached = (manifest, digest_of(manifest))
            self._manifests[key] = cached
            while len(self._manifests) > _MOST_MANIFESTS:
                self._manifests.popitem(last=False)
        return cached

    def table(self, run: str, name: str) -> pa.Table | None:
        """The publishable version of a table of a run; None if it has no such table.

        Raises:
            IntegrityError: it is not the one that was written.
        """
        artifact = self.run(run).published(name)
        return None if artifact is None else self.door(run).through(artifact.table, self.read(artifact))

    def read(self, artifact: Any) -> pa.Table:
        """The table behind an artifact; errors as of ``table``."""
        try:
            return self.known().lake.read(artifact)
        except OSError as error:
            raise IntegrityError(f"a file of the run went while it was read ({error})") from error

    def page(self, run: str, title: str, path_parts: tuple[str, ...], **overrides: Any) -> Page:
        """A page of a run with its navigation; ``path_parts`` are the parts of its address below the run."""
        summary = self.summary(run)
        restricted = RESTRICTED if summary.disclosure == "internal" else ""
        part = f", {' '.join(summary.partition.values())}" if summary.partition else ""
        year = "" if str(summary.year) in summary.title else f", {summary.year}"
        crumbs = (("/", "Audits"), (path_of("audits", summary.audit, "years"), summary.audit))
        run_crumbs = ((run_path(run), str(summary.year)),) if path_parts else ()
        files = self._files(run)
        links_pages = [(path.removesuffix(".html").split("/"), words) for path, words in files if "/" in path]
        named = [((folder, name) if folder == "evidence" else (name,), words) for (folder, name), words in links_pages]
        report_links = [(run_path(run, *parts), words) for parts, words in named if parts != ("quality",)]
        links = (run_path(run), "First page"), *report_links, *((run_path(run, name), words) for name, words in _PAGES)
        page = Page(
            title,
            kicker=f"{summary.title}{year}{part}",
            run=run,
            restricted=restricted,
            crumbs=(*crumbs, *run_crumbs),
            links=links,
            targets=frozenset(path for path, _ in files),
            here=run_path(run, *path_parts),
        )
        return replace(page, **overrides)

    def quality(self, run: str) -> Section:
        """The content of the data page of a run; errors as in ``report``."""
        return quality_of(self.known().lake, run, self.door(run))

    def _files(self, run: str) -> Links:
        """Files of a run's report with their words, by its manifest; of a short report by making it once."""
        try:
            digest, manifest = self.digest(run), self.manifest(run)
        except IntegrityError:
            return ()
        if digest not in self._navigation:
            links = navigation(manifest)
            if links is None:
                try:
                    links = self.report(run).links
                except (SpecError, IntegrityError):
                    links = ()  # a report of another version cannot be made
            self._navigation[digest] = links
            while len(self._navigation) > _MOST_NAVIGATIONS:
                self._navigation.popitem(last=False)
        return self._navigation.get(digest, ())


def _source(run: Summary) -> str:
    return run.source_sha256


def _year(run: Summary) -> tuple[str, int]:
    return run.audit, run.year


def missing(words: str) -> NoReturn:
    """Answer that there is no such page.

    Raises:
        HTTPException: always.
    """
    raise HTTPException(404, words)
