"""What every page is made with: the settings, the index, reports, tables, and the names of the runs' pages."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import pyarrow as pa
from starlette.exceptions import HTTPException

from flows.runs.index import Run, run_of
from flows.runs.manifest import read_manifest
from flows.runs.summary import Summary
from flows.serving.guard.admission import Admission
from flows.serving.index.known import Known
from flows.serving.index.runs import Index
from flows.serving.index.written import Stamp
from flows.serving.page_cache import PageCache
from flows.serving.rendering import Links, Page, path_of, run_path
from flows.serving.reports import Report, Reports, navigation, quality_of
from flows.serving.settings import Settings
from flows.serving.tables import Tables
from schemas.errors import IntegrityError, SpecError
from tasks.lake.signatures import digest_of
from tasks.reporting.section import Section

_PAGES: Links = (
    ("measures", "Measures"),
    ("compare", "Compare"),
    ("findings", "Findings"),
    ("quality", "Data quality"),
    ("lineage", "Lineage"),
    ("files", "Files"),
    ("review", "Review"),
)
"""Pages of every run beside those of its report."""
_MOST_MANIFESTS, _MOST_NAVIGATIONS = 16, 256
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
    _manifests: OrderedDict[tuple[str, Stamp], tuple[dict[str, Any], str]] = field(default_factory=OrderedDict)
    """Run and stamp of its manifest -> the manifest, and its digest as signatures have it."""
    _navigation: OrderedDict[str, Links] = field(default_factory=OrderedDict)
    """Digest of a manifest -> the files of its report."""

    def known(self, *, anew: bool = False) -> Known:
        """What is known of the lake."""
        return self.index.known(anew=anew)

    def summary(self, run: str) -> Summary:
        """A run that the index has; 404 for all else, so that no name is ever joined into a path."""
        found = self.known().runs.get(run)
        if found is None:
            missing("The lake has no such run; it may have been removed.")
        return found

    def audit(self, audit: str) -> Sequence[Summary]:
        """The runs of an audit, newest first: none of one that only failed. 404 for a name that none has."""
        known = self.known()
        if audit not in known.audits and audit not in known.tried:
            missing("The lake has no run of such an audit.")
        return known.audits.get(audit, ())

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
        return self.reports.of(self.known().lake, run, self.digest(run))

    def manifest(self, run: str) -> dict[str, Any]:
        """The manifest of a run; errors as of ``run``."""
        return self._sealed(run)[0]

    def digest(self, run: str) -> str:
        """The digest of a run's manifest, which all that is made of the run depends on; errors as of ``run``."""
        return self._sealed(run)[1]

    def _sealed(self, run: str) -> tuple[dict[str, Any], str]:
        self.summary(run)
        known = self.known()
        key = (run, known.written.get(run, Stamp()))
        held = self._manifests.get(key)
        if held is None or not known.lake.storage.exists(f"runs/{run}/manifest.json"):
            try:
                manifest = read_manifest(known.lake, run)
            except SpecError:
                missing("The lake has no such run; it may have been removed.")
            held = (manifest, digest_of(manifest))
            self._manifests[key] = held
            while len(self._manifests) > _MOST_MANIFESTS:
                self._manifests.popitem(last=False)
        return held

    def table(self, run: str, name: str) -> pa.Table | None:
        """What may be told of a table of a run; None where it has no such table.

        Raises:
            IntegrityError: it is not the one that was written.
        """
        artifact = self.run(run).published(name)
        return None if artifact is None else self.read(artifact)

    def read(self, artifact: Any) -> pa.Table:
        """The table behind an artifact; errors as of ``table``."""
        try:
            return self.known().lake.read(artifact)
        except OSError as error:
            raise IntegrityError(f"a file of the run went while it was read ({error})") from error

    def page(self, run: str, title: str, here: tuple[str, ...], **more: Any) -> Page:
        """A page of a run with its navigation; ``here`` are the parts of its address below the run."""
        summary = self.summary(run)
        restricted = RESTRICTED if summary.disclosure == "internal" else ""
        crumbs = (("/", "Audits"), (path_of("audits", summary.audit, "years"), summary.audit))
        own = ((run_path(run), str(summary.year)),) if here else ()
        files = self._files(run)
        page = Page(
            title,
            kicker=_titled(summary),
            run=run,
            restricted=restricted,
            crumbs=(*crumbs, *own),
            links=_links(run, files),
            targets=frozenset(path for path, _ in files),
            here=run_path(run, *here),
        )
        return replace(page, **more)

    def quality(self, run: str) -> Section:
        """What stands on the data page of a run; errors as of ``report``."""
        return quality_of(self.known().lake, run)

    def _files(self, run: str) -> Links:
        """Files of a run's report with their words, by its manifest; of a short report by making it once."""
        try:
            digest, manifest = self.digest(run), self.manifest(run)
        except IntegrityError:
            return ()
        if digest not in self._navigation:
            found = navigation(manifest)
            self._navigation[digest] = self._of_report(run) if found is None else found
            while len(self._navigation) > _MOST_NAVIGATIONS:
                self._navigation.popitem(last=False)
        return self._navigation.get(digest, ())

    def _of_report(self, run: str) -> Links:
        """The same by its report; none where it cannot be made, as of another version."""
        try:
            return self.report(run).links
        except (SpecError, IntegrityError):
            return ()


def _links(run: str, files: Links) -> Links:
    """Every page of a run: those of its report, and the others."""
    pages = [(path.removesuffix(".html").split("/"), words) for path, words in files if "/" in path]
    named = [((folder, name) if folder == "evidence" else (name,), words) for (folder, name), words in pages]
    own = [(run_path(run, *parts), words) for parts, words in named if parts != ("quality",)]
    return ((run_path(run), "First page"), *own, *((run_path(run, name), words) for name, words in _PAGES))


def missing(words: str) -> NoReturn:
    """Answer that there is no such page.

    Raises:
        HTTPException: always.
    """
    raise HTTPException(404, words)


def _titled(summary: Summary) -> str:
    part = f", {' '.join(summary.partition.values())}" if summary.partition else ""
    year = "" if str(summary.year) in summary.title else f", {summary.year}"
    return f"{summary.title}{year}{part}"
