"""Commands over years: plan, backfill, protect, trends."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli import options
from flows.cli.status import aligned, matrix
from flows.cli.terminal import console, print_json, print_rows, show_progress
from schemas.audit.partition import ALL
from schemas.errors import SpecError
from schemas.terms import ExitCode
from tasks.pipeline.progress import duration

if TYPE_CHECKING:
    from flows.partitions.attempts import Attempt
    from flows.partitions.forecast import Forecast
    from flows.partitions.trends import Made
    from schemas.audit.spec import AuditSpec
    from tasks.lake.store import Lake


# --------------------------------------------------------------------------------------------------------------------
# Command ``plan``: what a back-fill would run and what it would cost.


app = typer.Typer()

_LARGEST = 10
"""Partitions that are printed; --json has all."""


@app.command(epilog="Example: evenhand plan hmda.yaml, or: evenhand plan hmda.yaml --years 2010-2024")
def plan(
    spec: options.SpecArgument,
    years: options.HeldYearsOption = None,
    lake: options.LakeOption = "data/lake",
    set_: options.SetOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Print what a back-fill would run, year by stage, why, and what it would cost by earlier runs. Runs nothing.

    Of a spec with `by` it prints the partitions of each year: to audit, held, too few, and the ten largest.

    Exits with the code that the most serious of the years would end with that cannot be run as things are; else 0.
    """
    from flows.partitions.attempts import worst
    from flows.partitions.editions import held_years
    from flows.partitions.forecast import forecast
    from flows.partitions.years import goes_by_years, parse_years
    from tasks.lake.store import Lake

    audit_spec, opened = options.load_spec(spec, dict(options.pair(text) for text in set_ or [])).spec, Lake(lake)
    if years is not None:
        plan_years = parse_years(years)
    else:  # one file is of the spec's own year
        plan_years = (
            held_years(audit_spec, opened)
            if audit_spec.by is None or goes_by_years(audit_spec.source)
            else (audit_spec.year,)
        )
    if audit_spec.by is not None:
        raise typer.Exit(worst(_print_parts(audit_spec, plan_years, opened, as_json=as_json)))
    forecasts = forecast(audit_spec, plan_years, opened)
    if as_json:
        print_json([asdict(year) for year in forecasts])
    else:
        print_rows(console, "what a back-fill would run", [_planned(year) for year in forecasts])
        if any(year.stages for year in forecasts):
            print_rows(
                console, "stage by stage", aligned([{"year": year.year, **matrix(year.stages)} for year in forecasts])
            )
    raise typer.Exit(worst([year.exit_code for year in forecasts]))


def _planned(year: "Forecast") -> dict[str, Any]:
    remaining = [s for s in year.stages if s.state.value != "ok"]
    stages = "nothing"
    if remaining:
        first, last = remaining[0], remaining[-1]
        stages = f"{first.stage if first is last else f'{first.stage} to {last.stage}'}: {first.state.value}"
    reason = remaining[0].reason if remaining else ""
    why = year.blocked or (f"{year.protected} is protected" if year.protected else reason)
    lacks = f"lacks {', '.join(year.lacking)}" if year.lacking else ""
    cost = year.cost
    return {
        "year": year.year,
        "would run": "cannot run" if year.blocked else "protected" if year.protected else stages,
        "rows": "unknown" if cost.rows is None else f"{'about ' if cost.about else ''}{cost.rows:,}",
        "time": "unknown" if cost.seconds is None else f"{'about ' if cost.by_table else ''}{cost.seconds:,.0f} s",
        "disk": "unknown" if cost.bytes is None else f"{cost.bytes / 2**20:,.1f} MB",
        "why": "; ".join(word for word in (why, lacks) if word),
    }


def _print_parts(spec: "AuditSpec", years: Sequence[int], lake: "Lake", *, as_json: bool) -> list[ExitCode]:
    """Print the partitions of each year; the exit codes of the years."""
    from flows.partitions.year_plan import year_plans

    plans = year_plans(spec, years, lake)
    if as_json:
        documents = []
        for year in plans:
            counts = {"to_audit": year.count("to audit"), "held": year.count("held"), "too_few": year.count("too few")}
            seconds = round(year.cpu_seconds, 1)
            cost = {"cpu_seconds": seconds, "peak_mb": year.peak_mb, "measured_here": year.measured_here}
            documents.append({**asdict(year), **counts, **cost})
        print_json(documents)
        return [year.exit_code for year in plans]
    years_of_plan = []
    for year in plans:
        counted = {state: f"{year.count(state):,}" for state in ("to audit", "held", "too few")}
        row = {
            "year": year.year,
            **(dict.fromkeys(counted, "") if year.blocked else counted),
            "without value": f"{year.without_value:,} rows",
            "CPU time": duration(year.cpu_seconds),
            "peak": f"{year.peak_mb / 1000:.1f} GB" if year.peak_mb else "",
            "why not": year.blocked,
        }
        years_of_plan.append(row)
    print_rows(console, "what a back-fill would run", years_of_plan)
    for year in (year for year in plans if year.parts):
        largest_parts = [part for part in year.parts if part.value != ALL][:_LARGEST]
        rows = [
            {
                "partition": part.value,
                "rows": f"{part.rows:,}",
                "usable": f"{part.usable:,}",
                "state": part.state,
                "CPU time": duration(part.cost.cpu_seconds) if part.cost else "",
                "took": "" if part.took is None else duration(part.took),
                "peak": f"{part.cost.peak_mb / 1000:.1f} GB" if part.cost else "",
                "why": part.why or part.run,
            }
            for part in (year.parts[0], *largest_parts)
        ]
        print_rows(console, f"the largest of {year.year}", rows)
    if any(year.parts and not year.measured_here for year in plans):
        notice = "the lake has no run of this audit: times are those of a table, measured on another machine"
        console.print(f"{notice}; audit one partition with --by-value, and they are this machine's", markup=False)
    return [year.exit_code for year in plans]


# --------------------------------------------------------------------------------------------------------------------
# Commands over years: backfill, protect.


backfill_app = typer.Typer()

YearsOption = Annotated[
    str, typer.Option("--years", help="Such as 2010-2024, or 2012,2015-2017.", autocompletion=options.complete_spans)
]


@backfill_app.command(epilog="Example: evenhand backfill hmda.yaml --years 2010-2024 --workers 2")
def backfill(
    spec: options.SpecArgument,
    years: YearsOption,
    lake: options.LakeOption = "data/lake",
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
        typer.Option(
            min=1, help="Of a spec with `by`: so many partitions of a year, the largest, in addition to `all`."
        ),
    ] = None,
    fan_out: Annotated[
        str | None,
        typer.Option(metavar="DEPLOYMENT", help="On a server: a flow run a year, such as of backfill/by-hand."),
    ] = None,
    set_: options.SetOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Audit every year; what the lake holds is not computed again, and one bad year does not stop the others.

    The exit code is that of the most serious year: 6 integrity, then 5 infrastructure, 4 data quality, 2 spec,
    1 outside a limit, 3 inconclusive, and 0 if all are within their limits.
    """
    from flows.launch.backfill import Backfill, run_backfill, run_on_workers
    from flows.partitions.attempts import Attempt
    from flows.partitions.runners import RunnerSettings
    from flows.partitions.trends import said_of_years
    from flows.partitions.year_plan import Choice
    from flows.partitions.years import parse_years
    from tasks.lake.store import open_lake

    if not as_json:
        show_progress()
    settings = RunnerSettings.parse(runner, address, workers).model_dump()
    chosen = Choice(tuple(by_value or ()), limit)
    audit_spec = options.load_spec(spec, dict(options.pair(text) for text in set_ or [])).spec
    request = Backfill(audit_spec, parse_years(years), lake, settings, force, jobs, chosen)
    summary = run_on_workers(request, fan_out) if fan_out else run_backfill(request)
    if as_json:
        print_json(summary)
    elif audit_spec.by is not None:
        print_partitions([Attempt.model_validate(record) for record in summary["years"]])
    else:
        print_rows(
            console, f"years of {summary['audit']}", [_ended(Attempt.model_validate(year)) for year in summary["years"]]
        )
        for sentence in said_of_years(summary["audit"], parse_years(years), open_lake(lake)):
            console.print(sentence, markup=False, soft_wrap=True)
    raise typer.Exit(ExitCode(summary["exit_code"]))


@backfill_app.command(epilog="Example: evenhand protect hmda-2022-0123456789")
def protect(
    run: options.RunArgument,
    lake: options.LakeOption = "data/lake",
    off: Annotated[bool, typer.Option("--off", help="Take the protection away.")] = False,
) -> None:
    """Mark a run as published: a back-fill leaves its year alone unless it is given --force."""
    from flows.runs import run_names
    from flows.runs.signatures import protect as mark

    opened, run = run_names.opened(lake, run)
    mark(opened, run, not off)
    typer.echo(f"run {run} is {'no longer ' if off else ''}protected")


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


# --------------------------------------------------------------------------------------------------------------------
# Commands that compare years, and editions of a year: trend and restatement.


trends_app = typer.Typer()


class FailOn(StrEnum):
    """What makes `evenhand trend` end with 1."""

    NEVER = "never"
    CHANGED = "changed"
    OUTSIDE = "outside"


@trends_app.command(epilog="Example: evenhand trend hmda.yaml --years 2010-2024")
def trend(
    spec: Annotated[
        Path,
        typer.Argument(help="The audit spec that the years were audited by.", autocompletion=options.complete_specs),
    ],
    years: options.HeldYearsOption = None,
    by_value: options.ByValueOption = None,
    lake: options.LakeOption = "data/lake",
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="Exit with 1 if a group has changed, or its years are outside a limit.")
    ] = FailOn.NEVER,
    as_json: options.JsonOption = False,
) -> None:
    """Print the measures year by year and the years against their limits, and write the page. Runs no audit.

    Years are held against the limits by the rule of `verdicts.monitoring` (docs/monitoring.md). Exits with 0; with
    --fail-on with 1 if that is found, and with 3 if no year has verdicts.
    """
    from flows.partitions.editions import held_years
    from flows.partitions.trends import make_trend
    from flows.partitions.years import parse_years
    from tasks.lake.store import open_lake

    audit_spec, opened = options.load_spec(spec, {}).spec, open_lake(lake)
    if by_value is not None and audit_spec.by is None:
        raise SpecError("--by-value names a partition, and the spec has no `by`; leave it out")
    trend_years = held_years(audit_spec, opened) if years is None else parse_years(years)
    result = make_trend(audit_spec.name, trend_years, opened, ALL if by_value is None else by_value)
    monitored = [] if result.monitoring is None else result.monitoring.to_pylist()
    if as_json:
        print_json({"page": result.page, "measures": result.table.to_pylist(), "monitoring": monitored})
    else:
        _print_limits(result, monitored)
        _print(result, "trend", *with_figures(result.table.to_pylist()))
    raise typer.Exit(_code(result, fail_on))


@trends_app.command(epilog="Example: evenhand restatement 2022")
def restatement(
    year: Annotated[
        int,
        typer.Argument(help="A year with runs on two editions of its data.", autocompletion=options.complete_years),
    ],
    lake: options.LakeOption = "data/lake",
    audit: Annotated[
        str | None,
        typer.Option(
            help="Name of the audit; the lake's only one if left out.", autocompletion=options.complete_audits
        ),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Print what the last edition of a year's data changed in every headline measure, and write the page of it."""
    from flows.partitions.trends import make_restatement
    from flows.runs.index import audits_of
    from tasks.lake.store import open_lake

    opened_lake = open_lake(lake)
    result = make_restatement(audits_of(opened_lake, audit), year, opened_lake)
    if as_json:
        print_json({"page": result.page, "measures": result.table.to_pylist()})
        return
    names = ("decision_maker", "protected_attribute", "group", "measure", "old", "new", "difference", "new_state")
    _print(result, f"restatement of {year}", [{name: row[name] for name in names} for row in result.table.to_pylist()])


def _print_limits(result: "Made", monitored: list[dict[str, Any]]) -> None:
    """The years against their limits: a line a group, and a sentence a theory."""
    from tasks.reporting.trends import said_by_theory

    if monitored:
        keys = ("theory", "decision_maker", "protected_attribute", "group", "measure")
        lines: dict[tuple[str, ...], dict[str, Any]] = {}
        for row in monitored:
            states_line = lines.setdefault(tuple(row[key] for key in keys), {key: row[key] for key in keys})
            states_line[str(row["year"])] = row["state"].replace("_", " ")
            if row["value"] is not None:
                # The change of a year, its interval and its state; a factor where it is of a ratio.
                state = row["change_state"]
                if row["change"] is None:
                    last = "no earlier year" if state == "none" else str(state).replace("_", " ")
                else:
                    change = f"{'x' if row['scale'] == 'log' else ''}{row['change']:z.3f}"
                    interval = f"[{row['change_low']:z.3f}, {row['change_high']:z.3f}]"
                    last = f"{row['year']}: {change} {interval} {'no state' if state == 'none' else state}"
                states_line["last"] = last
        states = [
            {**{name: value for name, value in line.items() if name != "last"}, "change": line.get("last", "")}
            for line in lines.values()
        ]
        print_rows(console, "years against their limits", states)
    sentences = said_by_theory(result.followed) or [
        "no run of these years has verdicts: nothing was held against a limit"
    ]
    for line in (*sentences, ""):
        console.print(line, markup=False, soft_wrap=True)


def _code(result: "Made", fail_on: FailOn) -> ExitCode:
    """1 if the last year with an estimate has, in any series, the state given to --fail-on."""
    from tasks.reporting.trends import breaches, changed

    if fail_on is FailOn.NEVER:
        return ExitCode.WITHIN
    if not result.followed:
        return ExitCode.INCONCLUSIVE
    groups = changed(result.followed) if fail_on is FailOn.CHANGED else breaches(result.followed)
    return ExitCode.OUTSIDE if groups else ExitCode.WITHIN


def with_figures(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
    """One line for each measure of a group that has a figure in some year, one column a year; and what has none."""
    keys = ("decision_maker", "protected_attribute", "group", "measure")
    lines: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        lines.setdefault(tuple(row[key] for key in keys), []).append(row)
    table_rows, without = [], Counter[str]()
    for key, of in lines.items():
        if any(row["told"] == "value" for row in of):
            years = {str(row["year"]): f"{row['value']:z.3f}" if row["told"] == "value" else row["told"] for row in of}
            table_rows.append(dict(zip(keys, key, strict=True)) | years)
        else:
            without[Counter(row["told"] for row in of).most_common(1)[0][0]] += 1
    if not without:
        return table_rows, ""
    reasons = ", ".join(f"{reason} {n}" for reason, n in without.most_common())
    return table_rows, f"{without.total()} of {len(lines)} measures have no figure in any of these years: {reasons}"


def _print(result: "Made", title: str, rows: list[dict[str, Any]], note: str = "") -> None:
    print_rows(console, title, rows)
    if note:
        console.print(note, markup=False, soft_wrap=True)
    console.print(f"page  {result.page}", markup=False, soft_wrap=True)
