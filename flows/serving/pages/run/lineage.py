"""Lineage of a run: its stages as a drawing and as a list, with what each cost and which tables it wrote.

Exact rows of stages are no published counts: only a server of restricted pages tells them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fastapi import APIRouter
from starlette.responses import Response

from flows.serving.pages.cells import table
from flows.serving.pages.run.findings import note_reading
from flows.serving.rendering import made, path_of
from flows.serving.site import Site
from tasks.lake.stage_runs import COMPUTED, stage_runs
from tasks.reporting.section import Cell, Section

WIDE: Final = 150
HIGH: Final = 34
ACROSS: Final = 20
DOWN: Final = 36
"""Of the drawing: width and height of a box, and the room between two."""
_COSTS = (("seconds", "Seconds"), ("cpu_seconds", "CPU seconds"), ("peak_memory_mb", "Peak memory, MB"))
_ROWS = (("rows_in", "Rows in"), ("rows_out", "Rows out"), ("refused", "Refused"))
EXACT_ROWS: Final = "Restricted: exact rows of stages. This page is entered in the log, and is not to be passed on."
_OF_EVERY_STAGE = ("refusals", "validations")


@dataclass(frozen=True)
class Box:
    """A stage in the drawing; the corner of its box."""

    name: str
    x: int
    y: int


def routes(site: Site) -> APIRouter:
    """Its route."""
    router = APIRouter()

    @router.get("/runs/{run}/lineage")
    def lineage(run: str) -> Response:
        page = site.page(run, "Lineage", ("lineage",))
        if site.settings.restricted:
            note_reading(site, run, "lineage: exact rows of stages")
        manifest = site.manifest(run)
        section = _section(manifest, counted=site.settings.restricted)
        restricted = EXACT_ROWS if site.settings.restricted else page.restricted
        shown = replace(page, section=section, restricted=restricted)
        return made(replace(shown, template="lineage.html.j2", content=drawn(manifest)))

    return router


def drawn(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Boxes of the stages in rows by what they read, and the lines between: what the template draws."""
    names = _names(manifest)
    given = _given(manifest)
    depth: list[int] = []
    for own in given:
        depth.append(1 + max((depth[place] for place in own), default=-1))
    boxes: list[Box] = []
    for place, name in enumerate(names):
        before = depth[:place].count(depth[place])
        boxes.append(Box(name, 10 + before * (WIDE + ACROSS), 10 + depth[place] * (HIGH + DOWN)))
    lines = [(boxes[one], boxes[place]) for place, own in enumerate(given) for one in own]
    size = {"width": max(b.x for b in boxes) + WIDE + 10, "height": max(b.y for b in boxes) + HIGH + 10}
    said = [
        f"{names[place]} reads {', '.join(names[one] for one in own) or 'the source'}"
        for place, own in enumerate(given)
    ]
    return {"boxes": boxes, "lines": lines, "said": said, "wide": WIDE, "high": HIGH, **size}


def _names(manifest: Mapping[str, Any]) -> list[str]:
    return [row["stage"] for row in stage_runs(manifest)]


def _given(manifest: Mapping[str, Any]) -> list[list[int]]:
    """Of each step the earlier steps whose tables it read, by the digests in its lineage."""
    wrote: dict[str, int] = {}
    found = []
    for place, partition in enumerate(manifest["partitions"]):
        inputs = (manifest.get("lineage") or [{}] * (place + 1))[place].get("inputs", ())
        found.append(sorted({wrote[each["path"]] for each in inputs if each["path"] in wrote}))
        wrote |= {each["path"]: place for each in partition["tables"]}
    return found


def _section(manifest: Mapping[str, Any], *, counted: bool) -> Section:
    rows = list(stage_runs(manifest))
    columns = (*_COSTS, *(_ROWS if counted else ()))
    header = ("Stage", "Key", *(words for _, words in columns), "Computed")
    made_rows = [_row(row, [name for name, _ in columns]) for row in rows]
    note = "A stage that the lake held before has the cost of the run that made it."
    hidden = (
        () if counted else ("Rows of stages are exact numbers, which are not published: `evenhand stages` tells them.",)
    )
    return Section("Stages", "stages", hidden, tables=(table("Stages", header, made_rows, note), _tables(manifest)))


def _row(row: Mapping[str, Any], names: Sequence[str]) -> tuple[Cell, ...]:
    numbers = [Cell("–", "none") if row[name] is None else Cell(f"{row[name]:,}", "number") for name in names]
    computed = "–" if row["source"] is None else "in this run" if row["source"] == COMPUTED else "before it"
    return (Cell(row["stage"]), Cell(row["partition"][:12]), *numbers, Cell(computed))


def _tables(manifest: Mapping[str, Any]) -> Any:
    """The tables of the stages with what their declarations say, but for those that every stage writes."""
    from flows.operations.dictionary import TABLES  # loads every declaration

    said = {declared.name: declared.description for declared in TABLES}
    names = _names(manifest)
    rows = [
        (Cell(names[place]), *_declared(each["table"], said), Cell(each["sha256"][:12]))
        for place, partition in enumerate(manifest["partitions"])
        for each in partition["tables"]
        if each["table"] not in _OF_EVERY_STAGE
    ]
    return replace(table("Tables of the stages", ("Stage", "Table", "What it holds", "sha256"), rows), folded=True)


def _declared(name: str, known: Mapping[str, str]) -> tuple[Cell, Cell]:
    """A table, leading to its declaration, and what that says it holds."""
    return Cell(name, address=path_of("tables", name) if name in known else ""), Cell(known.get(name, "–"))
