"""Files of a league: the page, and all of its rows as JSON beside it."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from flows.operations.league.standings import League
from flows.runs.manifest import report_of
from schemas.audit.partition import ALL
from schemas.errors import InfrastructureError
from tasks.lake.store import Lake
from tasks.metrics.league.census import FEW, Census
from tasks.metrics.league.rows import Line
from tasks.reporting.league.page import Content, league_page
from tasks.reporting.league.words import first_statement, noun_of

FOLDER: Final = "reports/league-{audit}-{year}"
_FIRST_PAGE = "report.html"


def write_league(league: League, lake: Lake, file: Path | None = None) -> str:
    """Write page and rows to the reports of the lake, or the page to a file; the path of the page.

    Raises:
        InfrastructureError: the file cannot be written.
    """
    home = FOLDER.format(audit=league.audit, year=league.year)
    if file is None:
        lake.write_file(f"{home}/league.json", json.dumps(document(league), allow_nan=False).encode())
        return lake.write_file(f"{home}/league.html", league_page(content(league, _links(league, lake, near=True))))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(league_page(content(league, _links(league, lake, near=False))))
    except OSError as error:
        raise InfrastructureError(f"{file} cannot be written: {error.strerror}; name another file by --html") from error
    return str(file)


def content(league: League, links: Mapping[str, str]) -> Content:
    """What the page shows."""
    entrants = {value: (entrant, league.runs[value].state) for value, entrant in league.entrants.items()}
    return Content(
        title=league.title,
        column=league.column,
        restricted=league.profile == "internal",
        census=league.census,
        entrants=entrants,
        standings=league.tables,
        hidden=league.hidden,
        links=links,
    )


def _links(league: League, lake: Lake, *, near: bool) -> dict[str, str]:
    """Run -> address of its first page; none of a run whose report shows what is withheld here."""
    gone = {value for each in league.hidden.values() for value in each.partitions}
    shown = [run for value, run in league.runs.items() if value not in gone and value != ALL]
    if near:
        return {run.run: f"../{run.run}/{_FIRST_PAGE}" for run in shown}
    return {run.run: _uri(lake, run.run) for run in shown}


def _uri(lake: Lake, run: str) -> str:
    storage, folder = report_of(lake, run)
    place = storage.where(f"{folder}/{_FIRST_PAGE}")
    return place if "://" in place else Path(place).resolve().as_uri()


def document(league: League) -> dict[str, Any]:
    """Everything as JSON: what the page says first, counts, and every row of every table."""
    tables = [
        {
            **subject._asdict(),
            "tested": table.tested,
            "expected_by_chance": table.by_chance,
            "expected_false": table.false,
            "between": {**table.spread._asdict(), "scale": "log" if table.logarithmic else "linear"},
            "all": None if table.everybody is None else asdict(table.everybody),
            "rows": [_row(line) for line in table.lines],
        }
        for subject, table in league.tables.items()
    ]
    said = {"about": first_statement(noun_of(league.column)), "audit": league.audit, "year": league.year}
    counts = {"column": league.column, "profile": league.profile, "partitions": _census(league.census)}
    found: dict[str, Any] = _finite({**said, **counts, "tables": tables})
    return found


def _census(census: Census) -> dict[str, Any]:
    """The counts, and a few rows without a partition as no number."""
    said = asdict(census)
    return said | ({"without_value": None} if 0 < (census.without_value or 0) < FEW else {})


def _row(line: Line) -> dict[str, Any]:
    """One partition: who, its own figure, and what the league adds to it."""
    added = {key: value for key, value in asdict(line).items() if key not in ("entrant", "figure")}
    return {**asdict(line.entrant), **asdict(line.figure), **added}


def _finite(value: Any) -> Any:
    """The same with null for what is no number."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value
