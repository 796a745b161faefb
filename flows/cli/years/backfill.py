"""Commands over years: backfill, protect."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.completion import complete_spans
from flows.cli.options import (
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
from schemas.terms import ExitCode

if TYPE_CHECKING:
    from flows.partitions.attempts.record import Attempt
    from schemas.audit.file import SpecFile

app = typer.Typer()

YearsOption = Annotated[
    str, typer.Option("--years", help="Such as 2010-2024, or 2012,2015-2017.", autocompletion=complete_spans)
]


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
    by_value: Annotated[
        list[str] | None,
        typer.Option("--by-value", metavar="VALUE", help="Of a spec with `by`: these partitions alone."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Of a spec with `by`: so many partitions of a year, the largest, beside `all`."),
    ] = None,
    fan_out: Annotated[
        str | None,
        typer.Option(metavar="DEPLOYMENT", help="On a server: a flow run a year, such as of backfill/by-hand."),
    ] = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Audit every year; what the lake holds is not computed again, and one bad year does not stop the others.

    The exit code is that of the most serious year: 6 integrity, then 5 infrastructure, 4 data quality, 2 spec,
    1 breach, 3 insufficient evidence, and 0 if all are within their limits.
    """
    from flows.launch.backfill import Backfill, run_backfill
    from flows.launch.fan_out import run_on_workers
    from flows.partitions.attempts.record import Attempt
    from flows.partitions.lenders.outlook import Choice
    from flows.partitions.monitoring import said_of_years
    from flows.partitions.runners.task_runners import RunnerSettings
    from flows.partitions.years import parse_years
    from tasks.lake.store import open_lake

    if not as_json:
        show_progress()
    settings = RunnerSettings.parse(runner, address, workers).model_dump()
    chosen = Choice(tuple(by_value or ()), limit)
    read = _read(spec, set_).spec
    asked = Backfill(read, parse_years(years), lake, settings, force, jobs, chosen)
    found = run_on_workers(asked, fan_out) if fan_out else run_backfill(asked)
    if as_json:
        print_json(found)
    elif read.by is not None:
        print_partitions([Attempt.model_validate(record) for record in found["years"]])
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
    from flows.runs.trust.protection import protect as mark

    opened, run = naming.opened(lake, run)
    mark(opened, run, not off)
    typer.echo(f"run {run} is {'no longer ' if off else ''}protected")


def _read(path: Path, pairs: list[str] | None) -> "SpecFile":
    return load_spec(path, dict(pair(each) for each in pairs or []))


def print_partitions(records: "Sequence[Attempt]") -> None:
    """Print how many partitions of each year ended in which state, and those that failed."""
    counts = Counter((record.year, record.state.value) for record in records if record.value)
    print_rows(
        console, "partitions", [{"year": y, "state": s, "partitions": n} for (y, s), n in sorted(counts.items())]
    )
    failed = [_ended(record) for record in records if record.state.value == "failed"]
    if failed:
        print_rows(console, "failed", failed)


def _ended(record: Any) -> dict[str, Any]:
    seconds = "" if record.seconds is None else f"{record.seconds:.1f}"
    words = {
        "year": record.year,
        **({"partition": record.value} if record.value else {}),
        "state": record.state.value,
        "seconds": seconds,
        "computed": record.computed,
    }
    lacks = f"lacks {', '.join(record.lacking)}" if record.lacking else ""
    why = "; ".join(word for word in (record.message.split("\n")[0], lacks) if word)
    return {**words, "read": record.source_words, "run": record.run or "", "why": why}
