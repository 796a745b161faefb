"""Output of ``evenhand data``: vintages, offers and schema reports as rows of plain values."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, get_args

from rich.filesize import decimal

from schemas.vintages import DatasetName, Vintage
from tasks.ingest.vintages.offers import estimate, official
from tasks.ingest.vintages.store import vintages
from tasks.lake.storage import storage_at
from tasks.lake.store import Lake

if TYPE_CHECKING:
    from flows.partitions.editions import Planned  # reaches the client for HTTP, and lists need none
    from tasks.ingest.hmda.conversion import SchemaReport
    from tasks.ingest.vintages.store import TakenIn


_GRAVEST_FIRST = ("error", "warning", "note")
_LOSSES = ("unread_cells", "malformed_line", "refused_row", "kept_zero", "failed_edit")
_MOST_EDITS = 12
_ABSENT = {
    "missing_column": ("warning", "of layout {} are not in the file"),
    "lacking_column": ("note", "of the canonical table cannot be given by this file of layout {}"),
}


def held(lake: str, year: int | None) -> list[dict[str, Any]]:
    """A line for each vintage that the lake holds."""
    if not storage_at(lake).exists("vintages"):
        return []  # no lake is made to say that nothing is in it
    return [vintage_line(vintage) for vintage in vintages(Lake(lake, write=False), year)]


def vintage_line(vintage: Vintage) -> dict[str, Any]:
    """A vintage, with the count that is published for such an edition."""
    published = official().published_rows(vintage.dataset, vintage.year, vintage.geography)
    line = {**vintage.model_dump(mode="json", exclude={"converter", "rows_sha256"}), "published_rows": published}
    return {**line, "restricted": "a lender's own file: not for publication"} if vintage.restricted else line


def offered(year: int | None) -> list[dict[str, Any]]:
    """A line for each year of each data set that is published, for the whole country where it is offered."""
    lines = []
    for dataset in (name for name in get_args(DatasetName) if name in official().dataset):
        offer = official().dataset[dataset]
        for offered_year in range(offer.years[0], offer.years[1] + 1):
            if year in (None, offered_year):
                frozen = offer.frozen.get(offered_year)
                size = estimate(dataset, offered_year, "nationwide") if "nationwide" in offer.address else None
                lines.append(
                    {"dataset": dataset, "year": offered_year, "places": ", ".join(offer.address)}
                    | {"frozen": frozen.isoformat() if frozen else None}
                    | {"rows": size.rows if size else None, "raw_bytes": size.raw_bytes if size else None}
                )
    return lines


def plan_line(plan: "Planned") -> dict[str, Any]:
    """What a fetch would do. Sizes are at most; they are estimates."""
    return {
        "url": plan.url,
        "frozen": plan.frozen.isoformat() if plan.frozen else None,
        **asdict(plan.estimate),
        "held": str(plan.vintage) if plan.vintage else None,
    }


def described(intake: "TakenIn") -> dict[str, Any]:
    """What a file is, without its departures."""
    report = intake.report.model_dump(mode="json", exclude={"findings"})
    return {**report, "years": {str(year): rows for year, rows in intake.years.items()}}


def report_lines(intake: "TakenIn") -> list[dict[str, Any]]:
    """The findings of a schema report, the gravest first."""
    findings = sorted(intake.report.findings, key=lambda finding: _GRAVEST_FIRST.index(finding.severity))
    return [{"severity": f.severity, "kind": f.kind, "what": f.text, "rows": f.rows or None} for f in findings]


def unread_lines(report: "SchemaReport") -> list[str]:
    """What a file lost: cells that were not read, rows that were refused, and edits that rows fail, most first."""
    losses = sorted(
        (finding for finding in report.findings if finding.kind in _LOSSES),
        key=lambda finding: (_LOSSES.index(finding.kind), -finding.rows),
    )
    lines = [finding.text for finding in losses if finding.kind != "failed_edit"]
    edits = [finding.text for finding in losses if finding.kind == "failed_edit"]
    if len(edits) > _MOST_EDITS:
        rest = f"{len(edits) - _MOST_EDITS} more edits fail in some rows: see edits.json and failed_edits of the rows"
        edits = [*edits[:_MOST_EDITS], rest]
    return lines + edits


def grouped_lines(intake: "TakenIn") -> list[dict[str, Any]]:
    """The same for people: columns that are not there are named in one line for each kind of it."""
    absent: dict[str, list[str]] = {kind: [] for kind in _ABSENT}
    for finding in intake.report.findings:
        if finding.kind in absent and finding.column:
            absent[finding.kind].append(finding.column)
    # codes that are not read are losses by column, with the most frequent one
    lines = [line for line in report_lines(intake) if line["kind"] not in (*absent, "unknown_code")]
    for kind, names in absent.items():
        if names:
            severity, template = _ABSENT[kind]
            what = f"{len(names)} columns {template.format(intake.report.layout)}: {', '.join(names)}"
            lines.append({"severity": severity, "kind": kind, "what": what, "rows": None})
    return sorted(lines, key=lambda line: _GRAVEST_FIRST.index(line["severity"]))


def readable(line: Mapping[str, Any]) -> dict[str, Any]:
    """The line for people: sizes in units, counts with commas, digests cut short, what is not known left empty."""
    cells: dict[str, Any] = {}
    for name, value in line.items():
        title = name.removesuffix("_bytes")
        if isinstance(value, int) and name.endswith("bytes"):
            cells[title] = decimal(value)
        elif isinstance(value, int) and name != "year":
            cells[title] = f"{value:,}"
        elif isinstance(value, dict):
            cells[title] = ", ".join(f"{key}: {count:,}" for key, count in value.items()) or "none"
        else:
            cells[title] = str(value)[:12] if name == "sha256" else value
    return cells
