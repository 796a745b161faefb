"""Commands over years: plan, backfill, protect."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.completion import complete_spans
from flows.cli.options import (
    HeldYearsOption,
    JsonOption,
    LakeOption,
    RunArgument,
    SetOption,
    SpecArgument,
    load_spec,
    pair,
)
from flows.cli.summary import print_rows
from flows.cli.terminal import console, print_json, show_progress
from flows.cli.years.stages import aligned, matrix
from schemas.terms import ExitCode

if TYPE_CHECKING:
    from flows.partitions.forecast import Cost, Forecast
    from flows.partitions.standing import Stand
    from schemas.audit.file import SpecFile

app = typer.Typer()

YearsOption = Annotated[
    str, typer.Option("--years", help="Such as 2010-2024, or 2012,2015-2017.", autocompletion=complete_spans)
]


@app.command(epilog="Example: evenhand plan hmda.yaml, or: evenhand plan hmda.yaml --years 2010-2024")
def plan(
    spec: SpecArgument,
    years: HeldYearsOption = None,
    lake: LakeOption = "data/lake",
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what a back-fill would run, year by stage, why, and what it would cost by earlier runs. Runs nothing.

    Exits with the code that the most serious of the years would end with that cannot be run as things are; else 0.
    """
    from flows.partitions.attempts import worst
    from flows.partitions.forecast import forecast
    from flows.partitions.held_years import held_years
    from flows.partitions.years import parse_years
    from tasks.lake.store import Lake

    read, opened = _read(spec, set_).spec, Lake(lake)
    found = forecast(read, held_years(read, opened) if years is None else parse_years(years), opened)
    if as_json:
        print_json([asdict(year) for year in found])
    else:
        print_rows(console, "what a back-fill would run", [_planned(year) for year in found])
        if any(year.stages for year in found):
            print_rows(
                console, "stage by stage", aligned([{"year": year.year, **matrix(year.stages)} for year in found])
            )
    raise typer.Exit(worst([year.exit_code for year in found]))


@app.command(epilog="Example: evenhand backfill hmda.yaml --years 2010-2024 --workers 2")
def backfill(
    spec: SpecArgument,
    years: YearsOption,
    lake: LakeOption = "data/lake",
    workers: Annotated[int, typer.Option(min=1, help="Years at a time, each in a process of its own.")] = 1,
    jobs: Annotated[
        int,
        typer.Option("--jobs", min=1, envvar="EVENHAND_JOBS", help="Stages of a year at a time, each in a process."),
    ] = 1,
    runner: Annotated[
        str | None, typer.Option(envvar="EVENHAND_RUNNER", help="Where years run: processes, threads or dask.")
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(envvar="EVENHAND_DASK_ADDRESS", help="Of the Dask scheduler, such as tcp://127.0.0.1:8786."),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Audit years with a protected run, too, and where memory may not suffice."),
    ] = False,
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Audit every year; what the lake holds is not computed again, and one bad year does not stop the others.

    The exit code is that of the most serious year: 6 integrity, then 5 infrastructure, 4 data quality, 2 spec,
    1 breach, 3 insufficient evidence, and 0 if all are within their limits.
    """
    from flows.launch.backfill import Backfill, run_backfill
    from flows.partitions.attempts import Attempt
    from flows.partitions.monitoring import said_of_years
    from flows.partitions.runners import RunnerSettings
    from flows.partitions.years import parse_years
    from tasks.lake.store import open_lake

    if not as_json:
        show_progress()
    settings = RunnerSettings.parse(runner, address, workers).model_dump()
    found = run_backfill(Backfill(_read(spec, set_).spec, parse_years(years), lake, settings, force, jobs))
    if as_json:
        print_json(found)
    else:
        print_rows(
            console, f"years of {found['audit']}", [_ended(Attempt.model_validate(year)) for year in found["years"]]
        )
        for said in said_of_years(found["audit"], parse_years(years), open_lake(lake)):
            console.print(said, markup=False, soft_wrap=True)
    raise typer.Exit(ExitCode(found["exit_code"]))


@app.command(epilog="Example: evenhand protect hmda-2022-0123456789")
def protect(
    run: RunArgument,
    lake: LakeOption = "data/lake",
    off: Annotated[bool, typer.Option("--off", help="Take the protection away.")] = False,
) -> None:
    """Mark a run as published: a back-fill leaves its year alone unless it is given --force."""
    from flows.runs import naming
    from flows.runs.index import protect as mark

    opened, run = naming.opened(lake, run)
    mark(opened, run, not off)
    typer.echo(f"run {run} is {'no longer ' if off else ''}protected")


def _read(path: Path, pairs: list[str] | None) -> "SpecFile":
    return load_spec(path, dict(pair(each) for each in pairs or []))


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


def _ended(record: Any) -> dict[str, Any]:
    seconds = "" if record.seconds is None else f"{record.seconds:.1f}"
    words = {"year": record.year, "state": record.state.value, "seconds": seconds, "computed": record.computed}
    lacks = f"lacks {', '.join(record.lacking)}" if record.lacking else ""
    why = "; ".join(word for word in (record.message.split("\n")[0], lacks) if word)
    return {**words, "read": record.source_words, "run": record.run or "", "why": why}
