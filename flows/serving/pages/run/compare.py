"""Two runs side by side: what changed of spec, data and code, and each figure with the interval of the difference."""

from collections.abc import Mapping
from math import sqrt
from typing import Any, Final

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from flows.runs.index import Run
from flows.serving.pages.cells import run_cell, run_state, table, time_cell
from flows.serving.rendering import made, run_path
from flows.serving.site import Site, missing
from schemas.tables.verdicts import VERDICTS
from tasks.reporting.numbers import significant
from tasks.reporting.section import Cell, Link, Section

MOST_KEYS: Final = 200
"""Keys of the spec that are shown."""
_KEY: Final = ("theory", "decision_maker", "protected_attribute", "group", "measure")
_HEADER = (
    "Theory",
    "Decisions of",
    "Group",
    "Measure",
    "Before",
    "Now",
    "Difference",
    "Interval of it",
    "State before",
    "State now",
)
_INDEPENDENT = "The two are of different applications: the interval is that of a difference of independent figures."
_SHARED = "The two have applications in common, so that no interval of the difference can be told from both."


def routes(site: Site) -> APIRouter:
    """Their routes."""
    router = APIRouter()

    @router.get("/runs/{run}/compare")
    def before(run: str) -> Response:
        summary = site.summary(run)
        earlier = site.known().before(run)
        if earlier is not None:
            return RedirectResponse(run_path(run, "compare", earlier.run), status_code=303)
        others = [each for each in site.known().newest_first if each.audit == summary.audit and each.run != run]
        links = tuple(Link(each.run, run_path(run, "compare", each.run)) for each in others[:50])
        words = "The lake has no earlier run of this audit." if not others else "No run came before it; compare with:"
        section = Section("Compare", "compare", (words,), links=links)
        return made(site.page(run, "Compare", ("compare",), section=section))

    @router.get("/runs/{run}/compare/{other}")
    def compare(run: str, other: str) -> Response:
        if run == other:
            missing("These are one run.")
        return made(site.page(run, "Compare", ("compare",), section=_section(site, site.run(run), site.run(other))))

    return router


def _section(site: Site, now: Run, then: Run) -> Section:
    independent = now.source_sha256 != then.source_sha256 and now.year != then.year
    changed = table("What the two are", ("", "Before", "Now"), _identity(then, now))
    keys = list(_changes(then.spec, now.spec))
    words = [f"{len(keys)} keys of the spec differ." if keys else "The specs are the same."]
    differing = [(Cell(key), Cell(one), Cell(other)) for key, one, other in keys[:MOST_KEYS]]
    spec = (table("Keys of the spec that differ", ("Key", "Before", "Now"), differing),) if differing else ()
    rows = list(_figures(site, then, now, independent=independent))
    figures = (table("Figures", _HEADER, rows, _INDEPENDENT if independent else _SHARED),) if rows else ()
    links = (Link("The other way round", run_path(then.run, "compare", now.run)),)
    return Section("Compare", "compare", tuple(words), links=links, tables=(changed, *spec, *figures))


def _identity(then: Run, now: Run) -> list[tuple[Cell, ...]]:
    told = {
        "Run": (run_cell(then.run), run_cell(now.run)),
        "Year": (Cell(str(then.year)), Cell(str(now.year))),
        "State": (run_state(then.state), run_state(now.state)),
        "Finished": (time_cell(then.finished), time_cell(now.finished)),
        "Data": (Cell(then.vintage), Cell(now.vintage)),
    }
    same = {
        "Data, sha256": (then.source_sha256, now.source_sha256),
        "Code": (then.code, now.code),
        "Libraries": (_libraries(then, now), _libraries(now, then)),
    }
    rows: list[tuple[Cell, ...]] = [(Cell(name), *cells) for name, cells in told.items()]
    for name, (one, other) in same.items():
        words = ("the same", "the same") if one == other else (one[:60] or "–", other[:60] or "–")
        rows.append((Cell(name), *map(Cell, words)))
    return rows


def _libraries(run: Run, other: Run) -> str:
    return ", ".join(f"{name} {said}" for name, said in run.versions.items() if other.versions.get(name) != said)


def _changes(one: Any, other: Any, path: str = "") -> "list[tuple[str, str, str]]":
    """Dotted key, value before and now, of every key that differs."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        found = []
        for key in dict.fromkeys((*one, *other)):
            found += _changes(one.get(key), other.get(key), f"{path}.{key}" if path else str(key))
        return found
    return [] if one == other else [(path, _short(one), _short(other))]


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]} ..."


def _figures(site: Site, then: Run, now: Run, *, independent: bool) -> "list[tuple[Cell, ...]]":
    """A row for each group and theory that both have."""
    before, after = (_verdicts(site, run) for run in (then, now))
    return [_row(key, before[key], after[key], independent=independent) for key in after if key in before]


def _verdicts(site: Site, run: Run) -> dict[tuple[str, ...], Mapping[str, Any]]:
    artifact = run.published(VERDICTS.name)
    rows = site.read(artifact).to_pylist() if artifact else []
    return {tuple(str(row[name]) for name in _KEY): row for row in rows if row["role"] == "primary"}


def _row(
    key: tuple[str, ...], one: Mapping[str, Any], other: Mapping[str, Any], *, independent: bool
) -> tuple[Cell, ...]:
    theory, maker, _, group, measure = key
    difference, ends = difference_of(one, other) if independent else (_plain(one, other), None)
    interval = f"[{significant(ends[0])}, {significant(ends[1])}]" if ends else "–"
    return (
        *(Cell(theory), Cell(maker), Cell(group), Cell(measure)),
        *(_number(one["value"]), _number(other["value"]), _number(difference)),
        Cell(interval),
        *(run_state(one["state"]), run_state(other["state"])),
    )


def _plain(one: Mapping[str, Any], other: Mapping[str, Any]) -> float | None:
    return None if None in (one["value"], other["value"]) else other["value"] - one["value"]


def difference_of(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[float | None, tuple[float, float] | None]:
    """Second figure less first, with an interval by the two intervals (square-and-add; Zou and Donner 2008, eq. 3).

    It is that of independent figures; None where one of them has no interval.
    """
    gap = _plain(one, other)
    ends = [each[name] for each in (one, other) for name in ("plain_low", "plain_high")]
    if gap is None or None in ends:
        return gap, None
    down = sqrt((other["value"] - other["plain_low"]) ** 2 + (one["plain_high"] - one["value"]) ** 2)
    up = sqrt((other["plain_high"] - other["value"]) ** 2 + (one["value"] - one["plain_low"]) ** 2)
    return gap, (gap - down, gap + up)


def _number(value: float | None) -> Cell:
    return Cell("withheld", "none") if value is None else Cell(significant(value), "number")
