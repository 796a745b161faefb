"""Findings of a run: counts as published; with ``--restricted`` the complainants, and one beside the nearest others.

Each page with rows of persons is an entry of the log. No name stands on it, and a row id only if it is asked for:
the entry then says so.
"""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import Response

from flows.runs.trust.notes import Note, note_view
from flows.serving.pages.cells import number_cell, steps, table
from flows.serving.pages.run.twins import twins
from flows.serving.rendering import Field, made, run_path
from flows.serving.site import Site, missing
from schemas.artifact import Artifact
from tasks.reporting.section import Cell, Link, Section

PER_PAGE: Final = 50
ROWS_OF_PERSONS: Final = "Restricted: rows of persons. This page is entered in the log, and is not to be passed on."
_REFUSED: Final = (
    "Rows of persons are not shown here: start a server of your own with --restricted and --as NAME. Every such page "
    "is then an entry of the log."
)
_TWINS: Final = "cst"
_COUNTS = ("Method", "Decisions of", "Attribute", "Group", "Verdict", "Why not", "Findings", "Mean statistic")
_LIST = ("Number", "Group", "Decisions of", "Verdict", "Statistic", "Interval", "q")
_COLUMNS = 'row_id, method, decision_maker, protected_attribute, "group", verdict, statistic, low, high, q'
_STRONGEST = f"""
    SELECT {_COLUMNS} FROM findings
    WHERE method = $method AND refusal IS NULL AND ($group = '' OR "group" = $group)
    ORDER BY verdict <> 'detected', q NULLS LAST, statistic DESC NULLS LAST, row_id, decision_maker, protected_attribute
"""  # noqa: S608 words of ours; values are bound


def routes(site: Site) -> APIRouter:
    """Their routes."""
    router = APIRouter()

    @router.get("/runs/{run}/findings")
    def findings(run: str, method: str = "", group: str = "", page: int = 1) -> Response:
        if not site.settings.restricted:
            return made(site.page(run, "Findings", ("findings",), section=_counts(site, run)))
        chosen, page = method or first_method(site, run), max(page, 1)
        require_rows(site, run, ((page - 1) * PER_PAGE + 1, chosen, group))
        note_reading(site, run, f"findings of {chosen}, page {page}" + _of(group))
        return _list(site, run, {"method": chosen, "group": group}, page)

    @router.get("/runs/{run}/findings/{n}")
    def finding(run: str, n: int, method: str = "", group: str = "", ids: bool = False) -> Response:
        site.summary(run)
        if not site.settings.restricted:
            raise HTTPException(403, _REFUSED)
        chosen = method or first_method(site, run)
        require_rows(site, run, (n, chosen, group))
        shown = ", with ids" if ids else ""
        note_reading(site, run, f"findings, number {n} of {chosen}" + _of(group) + shown)
        return _one(site, run, (n, chosen, group), ids=ids)

    return router


def _of(group: str) -> str:
    return f", {group}" if group else ""


def require_rows(site: Site, run: str, which: tuple[int, str, str]) -> None:
    """Only what is there is entered in the log: an address from elsewhere writes no words of its own into it.

    Raises:
        HTTPException: the run has no such complainant, of that method and group.
    """
    n, method, group = which
    found = strongest(site, run, method, group)
    if not 1 <= n <= found.num_rows:
        missing(f"There are {found.num_rows:,} complainants of {method}.")


def note_reading(site: Site, run: str, what: str) -> None:
    """Enter in the log that somebody was shown rows of persons, before they are shown.

    Raises:
        InfrastructureError: the log cannot be written: then nothing is shown.
    """
    site.summary(run)
    note_view(site.known().lake, run, Note(site.settings.by, what))


def _counts(site: Site, run: str) -> Section:
    told = site.table(run, "findings") if _is_told(site, run) else None
    words = "Counts of what was found, as published; a group with one small count is withheld whole."
    link = Link("Rows of persons", run_path(run, "findings", "1"))
    if told is None:
        return Section("Findings", "findings", ("This run has no published counts of findings.",))
    rows = [_count(row) for row in told.to_pylist()]
    shown = (table("Findings", _COUNTS, rows),) if rows else ()
    return Section("Findings", "findings", (words, _REFUSED), links=(link,), tables=shown)


def _is_told(site: Site, run: str) -> bool:
    """Whether a run has counts that are made to be published: the raw table of an older version has rows of persons."""
    artifact = site.run(run).published("findings")
    return artifact is not None and artifact.table.startswith("published_")


def _count(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    names = ("method", "decision_maker", "protected_attribute", "group", "verdict", "refusal")
    return (
        *(Cell(str(row[name] or "–")) for name in names),
        number_cell(row["findings"], "withheld"),
        number_cell(row["mean_statistic"], "–"),
    )


def first_method(site: Site, run: str) -> str:
    """The method whose findings are shown where none is asked for: CST, which has twins, else the first of the run."""
    found = [name for each in raw(site, run, "findings") for name in set(site.read(each)["method"].to_pylist())]
    return _TWINS if _TWINS in found or not found else found[0]


def strongest(site: Site, run: str, method: str, group: str) -> pa.Table:
    """Complainants of a method, the strongest findings first.

    Raises:
        HTTPException: the run has no findings of that method.
    """
    tables = [site.read(each) for each in raw(site, run, "findings")]
    own = [each for each in tables if method in each["method"].unique().to_pylist()]
    if not own:
        missing(f"This run has no findings of {method!r}.")
    whole = pa.concat_tables(own)
    return site.tables.ask({"findings": whole}, _STRONGEST, {"method": method, "group": group})


def raw(site: Site, run: str, name: str) -> list[Artifact]:
    """A table with rows of persons, of each stage that wrote one."""
    return [each for partition in site.run(run).partitions for each in partition.tables if each.table == name]


def _list(site: Site, run: str, asked: Mapping[str, str], page: int) -> Response:
    found = strongest(site, run, **asked)
    rows = found.slice((page - 1) * PER_PAGE, PER_PAGE).to_pylist()
    first = (page - 1) * PER_PAGE + 1
    cells = [_listed(run, n, row, asked) for n, row in enumerate(rows, first)]
    words = f"{found.num_rows:,} complainants of {asked['method']}, the strongest findings first."
    links = (Link("Complainants", run_path(run, "findings", **asked)),)
    section = Section(
        "Findings", "findings", (words,), links=links, tables=(table("Findings", _LIST, cells),) if cells else ()
    )
    groups = tuple(sorted(set(strongest(site, run, asked["method"], "")["group"].to_pylist())))
    form = (Field("method", "Method", asked["method"]), Field("group", "Group", asked["group"], groups))
    more = steps(run_path(run, "findings"), dict(asked), page, found.num_rows, PER_PAGE)
    return made(
        site.page(run, "Findings", ("findings",), section=section, form=form, more=more, restricted=ROWS_OF_PERSONS)
    )


def _listed(run: str, n: int, row: Mapping[str, Any], asked: Mapping[str, str]) -> tuple[Cell, ...]:
    ends = "–" if row["low"] is None or row["high"] is None else f"[{row['low']:.3f}, {row['high']:.3f}]"
    return (
        Cell(f"number {n}", address=run_path(run, "findings", str(n), **asked)),
        Cell(row["group"]),
        Cell(row["decision_maker"]),
        Cell(row["verdict"].replace("_", " ")),
        number_cell(row["statistic"], "–"),
        Cell(ends),
        number_cell(row["q"], "–"),
    )


def _one(site: Site, run: str, which: tuple[int, str, str], *, ids: bool) -> Response:
    n, method, group = which
    found = strongest(site, run, method, group)
    case = found.slice(n - 1, 1).to_pylist()[0]
    tables = {
        name: [site.read(each) for each in raw(site, run, name)] for name in ("evidence", "applicants", "decisions")
    }
    asked = {"method": method, "group": group}
    section = twins(site.tables, tables, case, (n, found.num_rows), ids=ids)
    ways = [(each, words) for each, words in ((n - 1, "Before"), (n + 1, "Next")) if 1 <= each <= found.num_rows]
    more = tuple((run_path(run, "findings", str(each), **asked), words) for each, words in ways)
    own = run_path(run, "findings", str(n), **asked, ids=None if ids else 1)
    more = (*more, (own, "Hide identifiers of rows" if ids else "Show identifiers of rows"))
    page = site.page(
        run, f"Complainant {n}", ("findings", str(n)), section=section, more=more, restricted=ROWS_OF_PERSONS
    )
    return made(page)
