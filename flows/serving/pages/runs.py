"""List of runs, and two runs compared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from flows.runs.index import Run, shares_rows
from flows.runs.summary import Summary
from flows.serving.index import Known
from flows.serving.pages import lists
from flows.serving.site import Field, Page, Site, Sorted, made, missing, run_path
from schemas.tables.verdicts import VERDICTS, in_approval, unit_of
from tasks.reporting.charts.values import MINUS
from tasks.reporting.text import Cell, Link, Section

# --------------------------------------------------------------------------------------------------------------------
# The list of runs, newest first or in the requested order, 50 a page; the address has every filter and the order.


PER_PAGE: Final = 50
_SIGNED: Final = ("unsigned", "prepared", "reviewed", "approved", "rejected", "withdrawn")
_FILTERS: Final = ("audit", "year", "partition", "state", "signed")


@dataclass(frozen=True)
class _Query:
    """Filters and order of a list."""

    filters: dict[str, str]
    sort: str
    page: int


def routes(site: Site) -> APIRouter:
    """Its route."""
    router = APIRouter()

    @router.get("/runs")
    def runs(
        audit: str = "",
        year: str = "",
        partition: str = "",
        state: str = "",
        signed: str = "",
        sort: str = "",
        page: int = 1,
    ) -> Response:
        filters = dict(zip(_FILTERS, (audit, year, partition, state, signed), strict=True))
        return made(_page(site.known(), _Query(filters, lists.in_order(sort, COLUMNS), max(page, 1))))

    return router


def _page(index: Known, query: _Query) -> Page:
    filters = query.filters
    runs = []
    for run in index.newest_first:
        values = {
            "audit": run.audit,
            "year": str(run.year),
            "partition": (run.partition or {}).get("value", ""),
            "state": run.state,
            "signed": index.signed.get(run.run, "unsigned"),
        }
        if all(value in ("", values[name]) for name, value in filters.items()):
            runs.append(run)
    key = _KEYS.get(query.sort.removeprefix("-"))
    if key:
        runs.sort(key=lambda run: key(index, run), reverse=query.sort.startswith("-"))
    visible_runs = runs[(query.page - 1) * PER_PAGE :][:PER_PAGE]
    order = "newest first" if not query.sort else "in the order of the column that is marked"
    words = f"{len(runs):,} of {len(index.newest_first):,} runs fit, {order}."
    options: dict[str, tuple[str, ...]] = {
        "audit": tuple(index.audits),
        "year": tuple(map(str, sorted({run.year for run in index.newest_first}, reverse=True))),
        "partition": (),
        "state": tuple(lists.STATE_WORDS),
        "signed": _SIGNED,
    }
    option_words = {"state": lists.STATE_WORDS}
    names = [name for name in _FILTERS if name != "partition" or index.has_partitions]
    form = tuple(
        Field(name, name.capitalize(), filters[name], options[name], option_words.get(name, {})) for name in names
    )
    return Page(
        "Runs",
        Section("Runs", "runs", (words,)),
        sorted=_table(index, visible_runs, query) if visible_runs else None,
        form=form,
        more=lists.steps("/runs", {**filters, "sort": query.sort}, query.page, len(runs), PER_PAGE),
        here="/runs",
    )


def _value(run: Summary) -> str:
    return " ".join((run.partition or {}).values())


_KEYS: dict[str, Callable[[Known, Summary], Any]] = {
    "run": lambda _, run: run.run,
    "audit": lambda _, run: run.audit,
    "year": lambda _, run: run.year,
    "partition": lambda _, run: _value(run),
    "state": lambda _, run: lists.gravity(run.state),
    "finished": lambda _, run: run.finished,
    "signed": lambda index, run: index.signed.get(run.run, "unsigned"),
}
COLUMNS: Final = (
    *(lists.Column("Run", "run"), lists.Column("Audit", "audit"), lists.Column("Year", "year", falls=True)),
    *(lists.Column("Partition", "partition"), lists.Column("State", "state"), lists.Column("By question")),
    *(lists.Column("Finished", "finished", falls=True), lists.Column("Signed", "signed")),
)


def _table(index: Known, runs: Sequence[Summary], query: _Query) -> Sorted:
    columns = [column for column in COLUMNS if column.name != "partition" or any(run.partition for run in runs)]
    rows = []
    for run in runs:
        protected = ", protected" if run.run in index.protected else ""
        cells = {
            "Run": lists.run_cell(run.run),
            "Audit": Cell(run.audit),
            "Year": Cell(str(run.year), "number"),
            "Partition": Cell(_value(run) or "–"),
            "State": lists.run_state(run.state),
            "By question": lists.by_question(run),
            "Finished": lists.time_cell(run.finished),
            "Signed": Cell(index.signed.get(run.run, "unsigned") + protected),
        }
        rows.append(tuple(cells[column.words] for column in columns))
    view = lists.table("Runs", [column.words for column in columns], rows)
    return lists.sorted_by(view, columns, "/runs", query.filters, query.sort)


# --------------------------------------------------------------------------------------------------------------------
# Two runs side by side: what changed of spec, data and code, and each figure with the interval of the difference.


MOST_KEYS: Final = 200
"""Keys of the spec that are shown."""
_KEY: Final = ("theory", "decision_maker", "protected_attribute", "group", "measure", "reference_group")
MOST_RUNS: Final = 200
"""Runs to choose from; of more, one is written."""
_HEADER = (
    "Question",
    "Decisions of",
    "Attribute",
    "Group",
    "Measure",
    "Before",
    "Now",
    "Difference",
    "Interval of it",
    "State before",
    "State now",
)
_OTHER_ROWS = (
    "The two are of two partitions, which have no application in common: the interval is that of a difference of "
    "independent figures."
)
_OTHER_YEAR = (
    "The two are of other data and another year, and are taken as independent: the interval does not hold for "
    "applications that are in both."
)
_SHARED = "The two may have applications in common, so that no interval of the difference can be told from both."


def compare_routes(site: Site) -> APIRouter:
    """Their routes."""
    router = APIRouter()

    @router.get("/runs/{run}/compare")
    def before(run: str, other: str = "") -> Response:
        site.summary(run)
        earlier = site.known().before(run)
        chosen = other or (earlier.run if earlier else "")
        if chosen:
            return RedirectResponse(run_path(run, "compare", site.summary(chosen).run), status_code=303)
        words = "No run came before it." if _others(site, run) else "The lake has no other run of this audit."
        return _shown(site, run, Section("Compare", "compare", (words,)))

    @router.get("/runs/{run}/compare/{other}")
    def compare(run: str, other: str) -> Response:
        if run == other:
            missing("These are one run.")
        now = site.run(run)
        then = site.run(other)
        apart = independent(then, now)
        changed = lists.table("What the two are", ("", "Before", "Now"), _identity(then, now))
        keys = list(_changes(then.spec, now.spec))
        words = [f"{len(keys)} keys of the spec differ." if keys else "The specs are the same."]
        differing = [(Cell(key), Cell(before), Cell(other)) for key, before, other in keys[:MOST_KEYS]]
        spec = (lists.table("Keys of the spec that differ", ("Key", "Before", "Now"), differing),) if differing else ()
        rows = list(_figures(site, then, now, independent=bool(apart)))
        figures = (lists.table("Figures", _HEADER, rows, apart or _SHARED),) if rows else ()
        links = (Link("The other way round", run_path(then.run, "compare", now.run)),)
        section = Section("Compare", "compare", tuple(words), links=links, tables=(changed, *spec, *figures))
        return _shown(site, run, section, other)

    return router


def _shown(site: Site, run: str, section: Section, other: str = "") -> Response:
    """The page, with a form for the choice of another run."""
    other_runs = _others(site, run)
    options = tuple(other_runs) if len(other_runs) <= MOST_RUNS else ()
    form = (Field("other", "Compare with", other, options, every=False),) if other_runs else ()
    action = run_path(run, "compare")
    return made(site.page(run, "Compare", ("compare",), section=section, form=form, action=action))


def _others(site: Site, run: str) -> list[str]:
    """The other runs of the audit: those of the same partition first, the newest first."""
    index = site.known()
    alike = [summary.run for summary in index.alike(run)]
    every = [summary.run for summary in index.audits[index.runs[run].audit]]
    return [name for name in dict.fromkeys((*alike, *every)) if name != run]


def independent(run: Run, other: Run) -> str:
    """Why the figures of two runs are taken as independent; empty where they may share applications.

    Another edition of the same year, or the same file under another year, shares nearly all of them.
    """
    if not shares_rows(run.partition, other.partition):
        return _OTHER_ROWS
    return _OTHER_YEAR if run.source_sha256 != other.source_sha256 and run.year != other.year else ""


def _identity(then: Run, now: Run) -> list[tuple[Cell, ...]]:
    compared_cells = {
        "Run": (lists.run_cell(then.run), lists.run_cell(now.run)),
        "Year": (Cell(str(then.year)), Cell(str(now.year))),
        "Partition": (Cell(then.value), Cell(now.value)),
        "State": (lists.run_state(then.state), lists.run_state(now.state)),
        "Finished": (lists.time_cell(then.finished), lists.time_cell(now.finished)),
        "Data": (Cell(then.vintage), Cell(now.vintage)),
    }
    same = {
        "Data, sha256": (then.source_sha256, now.source_sha256),
        "Code": (then.code, now.code),
        "Libraries": (_libraries(then, now), _libraries(now, then)),
    }
    rows: list[tuple[Cell, ...]] = [(Cell(name), *cells) for name, cells in compared_cells.items()]
    for name, (earlier, other) in same.items():
        words = ("the same", "the same") if earlier == other else (earlier or "–", other or "–")
        rows.append((Cell(name), *map(Cell, words)))
    return rows


def _libraries(run: Run, other: Run) -> str:
    return ", ".join(
        f"{name} {version}" for name, version in run.versions.items() if other.versions.get(name) != version
    )


def _changes(earlier: Any, other: Any, path: str = "") -> "list[tuple[str, str, str]]":
    """Dotted key, value before and now, of every key that differs."""
    if isinstance(earlier, Mapping) and isinstance(other, Mapping):
        changes = []
        for key in dict.fromkeys((*earlier, *other)):
            changes += _changes(earlier.get(key), other.get(key), f"{path}.{key}" if path else str(key))
        return changes
    return [] if earlier == other else [(path, _short(earlier), _short(other))]


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]} ..."


def _figures(site: Site, then: Run, now: Run, *, independent: bool) -> "list[tuple[Cell, ...]]":
    """A row for each group and theory that both have."""
    verdicts: list[dict[tuple[str, ...], Mapping[str, Any]]] = []
    for run in (then, now):
        table = site.table(run.run, VERDICTS.name)
        records = [] if table is None else table.to_pylist()
        primary = [in_approval(row) for row in records if row["role"] == "primary"]
        verdicts.append({tuple(str(row[name]) for name in _KEY): row for row in primary})
    before, after = verdicts
    rows = []
    for key, current in after.items():
        if key in before:
            earlier, (theory, maker, attribute, group, measure, _) = before[key], key
            difference, ends = difference_of(earlier, current) if independent else (_plain(earlier, current), None)
            written, unit = unit_of(current)  # as the pages of the runs print it
            interval = f"[{written(ends[0])}, {written(ends[1])}]".replace("-", MINUS) if ends else "–"
            names = (lists.question_short(theory), maker, attribute, group, measure)
            numbers = [
                Cell(why, "none") if value is None else Cell(f"{written(value).replace('-', MINUS)}{unit}", "number")
                for value, why in (
                    *((row["value"], _missing(row)) for row in (earlier, current)),
                    (difference, "–"),
                )
            ]
            states = map(lists.run_state, (earlier["state"], current["state"]))
            rows.append((*map(Cell, names), *numbers, Cell(interval), *states))
    return rows


def _missing(row: Mapping[str, Any]) -> str:
    """Why there is no number: withheld, or the reason, such as the counts of few people."""
    return "withheld" if row["withheld"] else str(row["reason"] or "not measured")


def _plain(earlier: Mapping[str, Any], other: Mapping[str, Any]) -> float | None:
    return None if None in (earlier["value"], other["value"]) else other["value"] - earlier["value"]


def difference_of(
    earlier: Mapping[str, Any], other: Mapping[str, Any]
) -> tuple[float | None, tuple[float, float] | None]:
    """Second figure less first, with an interval by the two intervals (square-and-add; Zou and Donner 2008, eq. 3).

    It is that of independent figures; None where one of them has no interval.
    """
    gap = _plain(earlier, other)
    ends = [figure[name] for figure in (earlier, other) for name in ("plain_low", "plain_high")]
    if gap is None or None in ends:
        return gap, None
    down = sqrt((other["value"] - other["plain_low"]) ** 2 + (earlier["plain_high"] - earlier["value"]) ** 2)
    up = sqrt((other["plain_high"] - other["value"]) ** 2 + (earlier["value"] - earlier["plain_low"]) ** 2)
    return gap, (gap - down, gap + up)
