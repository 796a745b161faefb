"""The report of a run as pages of the server show it: made of its published tables by the report's own chapters.

The last few are kept: sections are texts, and a run does not change. What people signed is looked up each time.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from flows.runs.index import spec_of
from flows.serving.index.known import Known
from schemas.audit.spec import AuditSpec
from schemas.errors import IntegrityError
from tasks.lake.store import Lake
from tasks.pipeline.specs import validated
from tasks.reporting.section import Section

if TYPE_CHECKING:
    from tasks.reporting.chapters.decide.result import Decision
    from tasks.reporting.material import Material

MOST_KEPT: Final = 4


@dataclass(frozen=True)
class Report:
    """What the pages of a run show."""

    material: "Material"
    """Its settings; measures and tables are left out, which sections are made of."""
    first: Mapping[str, Any]
    """What the template of the first page shows, but for the signatures."""
    sections: Mapping[str, Section]
    """Path of a page in the report -> what stands on it."""
    links: tuple[tuple[str, str], ...]
    """Path of each file of the report, and its words in the navigation."""


@dataclass
class Reports:
    """Makes reports, and keeps the last few."""

    _kept: OrderedDict[tuple[str, str], Report] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, lake: Lake, run: str, manifest_sha256: str) -> Report:
        """The report of a run.

        Raises:
            SpecError: the lake has no such run, or it is of another version.
            IntegrityError: a table is missing or has been altered.
        """
        key = (run, manifest_sha256)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = _made(lake, run)
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return made


def quality_of(lake: Lake, run: str) -> Section:
    """What stands on the data page of a run, without the other pages; errors as of ``Reports.of``."""
    from tasks.reporting.chapters.quality import quality

    return quality(_material(lake, run))


def navigation(manifest: Mapping[str, Any]) -> tuple[tuple[str, str], ...] | None:
    """Path of each file of the report, and its words, by the files that the run made; of no use for another version.

    Returns:
        None where the run made a short report, whose pages are told by its tables alone.
    """
    from tasks.reporting.pages.files import links

    names = manifest.get("exported", {})
    if not any("/" in name for name in names):
        return None
    try:
        validated(AuditSpec, spec_of(manifest))
    except ValidationError:
        return ()
    return tuple(links(names))


def _material(lake: Lake, run: str) -> "Material":
    from flows.runs.report_files import read_anew  # loads what reports are made with
    from tasks.reporting.stage import material_of

    try:
        return material_of(*read_anew(lake, run))
    except OSError as error:
        raise IntegrityError(f"run {run}: a file of it went while it was read ({error})") from error


def _made(lake: Lake, run: str) -> Report:
    from tasks.reporting.chapters.decide.page import decide
    from tasks.reporting.chapters.decide.reading import run_of
    from tasks.reporting.pages.files import links, sections, shown_first

    material = _material(lake, run)
    decision: Decision = decide(run_of(material))
    made = sections(material, decision)
    bare = replace(material, measures=(), tables={})
    return Report(bare, shown_first(material, decision), made, tuple(links(made)))


def first_page(report: Report, known: Known, run: str) -> dict[str, Any]:
    """What the first page shows, with the signatures of now; none where the log cannot be relied on.

    Args:
        report: of the run.
        known: what is known of the lake.
        run: its id.
    """
    from flows.runs.report_files import signed_of

    if known.log.broken:
        return {**report.first, "signed": f"The log cannot be relied on, and no signature is shown: {known.log.broken}"}
    alike = sorted((entry for each in known.alike(run) for entry in known.log.of(each.run)), key=lambda each: each.n)
    signed = signed_of(known.lake, run, alike)
    kicker = [each if each != report.material.signed.short else signed.short for each in report.first["kicker"]]
    return {**report.first, "kicker": tuple(kicker), "signed": signed.words}
