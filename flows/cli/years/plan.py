"""Command ``plan``: what a back-fill would run and what it would cost."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from flows.cli.options import HeldYearsOption, JsonOption, LakeOption, SetOption, SpecArgument, load_spec, pair
from flows.cli.summary import print_rows
from flows.cli.terminal import console, print_json
from flows.cli.years.stages import aligned, matrix
from schemas.audit.partition import ALL
from schemas.terms import ExitCode
from tasks.pipeline.progress import duration

if TYPE_CHECKING:
    from flows.partitions.forecast import Cost, Forecast
    from flows.partitions.lenders.year_plan import PlannedPart, PlannedYear
    from flows.partitions.standing import Stand
    from schemas.audit.spec import AuditSpec
    from tasks.lake.store import Lake

app = typer.Typer()

_LARGEST = 10
"""Partitions that are printed; --json has all."""


@app.command(epilog="Example: evenhand plan hmda.yaml, or: evenhand plan hmda.yaml --years 2010-2024")
def plan(
    spec: SpecArgument,
    years: HeldYearsOption = None,
    lake: LakeOption = "data/lake",
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what a back-fill would run, year by stage, why, and what it would cost by earlier runs. Runs nothing.

    Of a spec with `by` it prints the partitions of each year: to audit, held, too few, and the ten largest.

    Exits with the code that the most serious of the years would end with that cannot be run as things are; else 0.
    """
    from flows.partitions.attempts.record import worst
    from flows.partitions.forecast import forecast
    from flows.partitions.held_years import held_years
    from flows.partitions.years import goes_by_years, parse_years
    from tasks.lake.store import Lake

    read, opened = load_spec(spec, dict(pair(each) for each in set_ or [])).spec, Lake(lake)
    if years is not None:
        asked = parse_years(years)
    else:  # one file is of the spec's own year
        asked = held_years(read, opened) if read.by is None or goes_by_years(read.source) else (read.year,)
    if read.by is not None:
        raise typer.Exit(worst(_print_parts(read, asked, opened, as_json=as_json)))
    found = forecast(read, asked, opened)
    if as_json:
        print_json([asdict(year) for year in found])
    else:
        print_rows(console, "what a back-fill would run", [_planned(year) for year in found])
        if any(year.stages for year in found):
            print_rows(
                console, "stage by stage", aligned([{"year": year.year, **matrix(year.stages)} for year in found])
            )
    raise typer.Exit(worst([year.exit_code for year in found]))


def _planned(year: "Forecast") -> dict[str, Any]:
    first = next((s for s in year.stages if s.state.value != "ok"), None)
    why = year.blocked or (f"{year.protected} is protected" if year.protected else first.reason if first else "")
    lacks = f"lacks {', '.join(year.lacking)}" if year.lacking else ""
    state = "cannot run" if year.blocked else "protected" if year.protected else _range(year.stages)
    return {
        "year": year.year,
        "would run": state,
        **_costs(year.cost),
        "why": "; ".join(word for word in (why, lacks) if word),
    }


def _range(stages: Sequence["Stand"]) -> str:
    """The stages to be run, with how the first of them stands."""
    left = [s for s in stages if s.state.value != "ok"]
    if not left:
        return "nothing"
    from_to = left[0].stage if len(left) == 1 else f"{left[0].stage} to {left[-1].stage}"
    return f"{from_to}: {left[0].state.value}"


def _costs(cost: "Cost") -> dict[str, str]:
    rows = "unknown" if cost.rows is None else f"{'about ' if cost.about else ''}{cost.rows:,}"
    seconds = "unknown" if cost.seconds is None else f"{cost.seconds:,.0f} s"
    return {"rows": rows, "time": seconds, "disk": "unknown" if cost.bytes is None else f"{cost.bytes / 2**20:,.1f} MB"}


def _print_parts(spec: "AuditSpec", years: Sequence[int], lake: "Lake", *, as_json: bool) -> list[ExitCode]:
    """Print the partitions of each year; the exit codes of the years."""
    from flows.partitions.lenders.year_plan import year_plans

    found = year_plans(spec, years, lake)
    if as_json:
        print_json([_told(year) for year in found])
        return [year.exit_code for year in found]
    print_rows(console, "what a back-fill would run", [_year_of_parts(year) for year in found])
    for year in (year for year in found if year.parts):
        shown = [part for part in year.parts if part.value != ALL][:_LARGEST]
        print_rows(console, f"the largest of {year.year}", [_row(part) for part in (year.parts[0], *shown)])
    if any(year.parts and not year.measured_here for year in found):
        said = "the lake has no run of this audit: times are those of a table, measured on another machine"
        console.print(f"{said}; audit one partition with --by-value, and they are this machine's", markup=False)
    return [year.exit_code for year in found]


def _told(year: "PlannedYear") -> dict[str, Any]:
    counts = {"to_audit": year.count("to audit"), "held": year.count("held"), "too_few": year.count("too few")}
    cost = {"cpu_seconds": round(year.cpu_seconds, 1), "peak_mb": year.peak_mb, "measured_here": year.measured_here}
    return {**asdict(year), **counts, **cost}


def _year_of_parts(year: "PlannedYear") -> dict[str, Any]:
    states = {state: f"{year.count(state):,}" for state in ("to audit", "held", "too few")}
    return {
        "year": year.year,
        **(dict.fromkeys(states, "") if year.blocked else states),
        "without value": f"{year.without_value:,} rows",
        "CPU time": duration(year.cpu_seconds),
        "peak": f"{year.peak_mb / 1000:.1f} GB" if year.peak_mb else "",
        "why not": year.blocked,
    }


def _row(part: "PlannedPart") -> dict[str, Any]:
    return {
        "partition": part.value,
        "rows": f"{part.rows:,}",
        "usable": f"{part.usable:,}",
        "state": part.state,
        "CPU time": duration(part.cost.cpu_seconds) if part.cost else "",
        "peak": f"{part.cost.peak_mb / 1000:.1f} GB" if part.cost else "",
        "why": part.why or part.run,
    }
