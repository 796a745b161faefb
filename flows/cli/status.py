"""Command `evenhand status`: the state of every audit and year, and what waits for a person."""

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.options import JsonOption, LakeOption, complete_spans
from flows.cli.terminal import console, print_json, print_rows
from schemas.terms import ExitCode
from tasks.pipeline.progress import coarse, duration

if TYPE_CHECKING:
    from flows.operations.overview import Overview
    from flows.operations.status import Standing, YearOfPartitions
    from flows.partitions.forecast import Stand
    from tasks.lake.store import Lake


# --------------------------------------------------------------------------------------------------------------------
# The stages of years as columns of a table.


def matrix(stages: Sequence["Stand"]) -> dict[str, str]:
    """One column a stage; a stage that several methods share is one column, and as its worst."""
    state_by_stage: dict[str, str] = {}
    for s in stages:
        name = s.stage.split(" ")[0]
        if state_by_stage.get(name, "ok") == "ok":
            state_by_stage[name] = s.state.value
    return state_by_stage


def aligned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with the same columns in the same order, ``why`` last."""
    names = sorted(dict.fromkeys(name for row in rows for name in row), key=lambda name: name == "why")
    return [{name: row.get(name, "") for name in names} for row in rows]


# --------------------------------------------------------------------------------------------------------------------
# What waits for a person, as ``evenhand status`` prints it: disk, locks, alerts, signatures, remediations, damage.


_NAMED = 3
"""Of what waits; --json has all."""
_FILES = 5
"""Of the files that cannot be read; --json has all."""


def print_waiting(lake_overview: "Overview") -> None:
    """Print what else an operator has to know, a line each; nothing of what is in order."""
    free = f"{lake_overview.disk_free / 2**30:.1f} of {lake_overview.disk / 2**30:.1f} GB free"
    lines = [("disk", free), *([("server", lake_overview.server)] if lake_overview.server else [])]
    lines += [("at work", f"{lock.lock} {lock.who}".rstrip()) for lock in lake_overview.locks]
    for title, names in (
        ("alerts not delivered", lake_overview.undelivered),
        ("runs nobody signed", lake_overview.unsigned),
        ("remediations overdue", lake_overview.remediations_overdue),
        ("to come, as they say; look at the clock that they ran by", lake_overview.future),
    ):
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            lines.append((title, f"{len(names)} ({'; '.join(names[:_NAMED])}{more})"))
    if lake_overview.unreadable:
        lines.append(("records that cannot be read, and are left out above", str(len(lake_overview.unreadable))))
        lines += [("  cannot be read", record.reason) for record in lake_overview.unreadable[:_FILES]]
        lines += (
            [("  cannot be read", f"{hidden_count} more; --json names all")]
            if (hidden_count := len(lake_overview.unreadable) - _FILES) > 0
            else []
        )
    for title, text in lines:
        console.print(f"{title}: {text}", markup=False, soft_wrap=True)


def in_review(lake: "Lake") -> dict[str, list[dict[str, Any]]]:
    """Valid runs without approval, unsigned ones first, and open remediations, the earliest due date first.

    Raises:
        IntegrityError: an entry of the log was altered.
    """
    from flows.runs.review import outstanding, reviews
    from flows.runs.signatures import sound_entries

    every = sound_entries(lake)
    runs = [
        {"run": review.run, "state": review.state, "by": "; ".join(f"{e.role} by {e.by}" for e in review.signatures)}
        for review in reviews(lake, every)
        if review.state != "approved"
    ]
    remediations = [
        {
            "due": remediation.due,
            "state": "overdue" if remediation.overdue() else "open",
            "owner": remediation.owner,
            "run": remediation.run,
            "entry": remediation.n,
            "text": remediation.text,
        }
        for remediation in outstanding(lake, every).open
    ]
    return {
        "runs": sorted(runs, key=lambda row: (row["state"] != "unsigned", row["run"])),
        "remediations": sorted(remediations, key=lambda row: (row["due"], row["entry"])),
    }


def print_review(lake: "Lake") -> None:
    """Print what is in review.

    Raises:
        IntegrityError: an entry of the log was altered.
    """
    reviews = in_review(lake)
    for title, none, rows in (
        ("valid runs that nobody approved", "every valid run is approved", reviews["runs"]),
        ("remediations that are open", "no remediation is open", reviews["remediations"]),
    ):
        if rows:
            print_rows(console, title, rows)
        else:
            console.print(none, markup=False)


# --------------------------------------------------------------------------------------------------------------------
# Command ``evenhand status``: the state of every audit and year of a lake, and what waits for a person.


app = typer.Typer()

_LETTERS = 60
"""Of a reason; --long has it whole."""
_WATCH_SECONDS = 10


@app.command(epilog="Example: evenhand status --years 2018-2024, or: evenhand status --long")
def status(
    lake: LakeOption = "data/lake",
    years: Annotated[
        str | None,
        typer.Option(
            "--years",
            help="Only these, also those without an attempt: 2010-2024, or 2012,2015-2017.",
            autocompletion=complete_spans,
        ),
    ] = None,
    long: Annotated[bool, typer.Option("--long", help="Stage by stage, and whole reasons.")] = False,
    by: Annotated[
        bool, typer.Option("--by", help="Of audits with `by`: a line a partition, those that failed first.")
    ] = False,
    review: Annotated[
        bool,
        typer.Option("--review", help="Also list remediations that are open, and valid runs that nobody approved."),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Exit with 5 also where the server that is named cannot be asked what is overdue."
        ),
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Print it again every 10 seconds, until Ctrl-C.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the state of every audit and year of the lake, and what waits for a person.

    The server of PREFECT_API_URL, if one is named, is asked for the next dates. Exit 5 if an expected run or a
    remediation is overdue. Exit 6 if a record of the lake cannot be read: it is named, and all others are printed.
    """
    options = _Options(lake, years, long, by, review, as_json)
    while watch:
        console.clear()
        _print(options)
        time.sleep(_WATCH_SECONDS)
    lake_overview = _print(options)
    if lake_overview.unreadable:
        raise typer.Exit(ExitCode.INTEGRITY)
    if lake_overview.overdue or (strict and lake_overview.server and os.environ.get("PREFECT_API_URL")):
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


@dataclass(frozen=True)
class _Options:
    """Options of the command line."""

    lake: str
    years: str | None
    long: bool
    by: bool
    review: bool
    as_json: bool


def _print(options: _Options) -> "Overview":
    """Print it once; gives what an operator looks at first."""
    from flows.operations.lake_records import unreadable, without
    from flows.operations.metrics import machine_memory, memory_of
    from flows.operations.overview import overview
    from flows.operations.status import never, partition_status
    from flows.operations.status import status as standing
    from flows.partitions.years import parse_years
    from tasks.lake.store import open_lake

    lake = open_lake(options.lake)
    hidden = unreadable(lake)
    visible_lake = without(lake, hidden)
    year_statuses, parted = standing(visible_lake), partition_status(visible_lake)
    lake_overview = overview(lake, year_statuses, hidden=hidden)
    if options.years is not None:
        # The requested years of every audit; a year without an attempt is listed as such, and a year of partitions
        # that were audited by themselves has several lines.
        requested_years, every = parse_years(options.years), year_statuses
        year_statuses = []
        for audit in dict.fromkeys(year.audit for year in every):
            for requested in requested_years:
                lines = [year for year in every if (year.audit, year.year) == (audit, requested)]
                year_statuses += lines or [never(audit, requested)]
        parted = [year for year in parted if year.year in requested_years]
    in_review_too = options.review and not lake_overview.log_altered  # else the log is named among what cannot be read
    if options.as_json:
        memory = memory_of(visible_lake, year_statuses)
        years = [{**asdict(year), "memory": asdict(m)} for year, m in zip(year_statuses, memory, strict=True)]
        document = {
            **asdict(lake_overview),
            "overdue": lake_overview.overdue,
            "memory": asdict(machine_memory(visible_lake)),
            "years": [*years, *map(asdict, parted)],
        }
        print_json({**document, **({"review": in_review(visible_lake)} if in_review_too else {})})
    else:
        _print_years(options, year_statuses, parted, lake_overview)
        if in_review_too:
            print_review(visible_lake)
        print_waiting(lake_overview)
    return lake_overview


def _print_years(
    options: _Options,
    year_statuses: "Sequence[Standing]",
    parted: "Sequence[YearOfPartitions]",
    lake_overview: "Overview",
) -> None:
    if not (year_statuses or parted):
        console.print(f"the lake {options.lake} has no audit of any year yet", markup=False, soft_wrap=True)
    if lake_overview.audits:
        glances = [
            {
                "audit": audit.audit,
                "last run": f"{audit.year} {audit.state}",
                "ended": audit.ended.replace("T", " ")[:16],
                "age": "" if audit.age_days is None else duration(audit.age_days * 24 * 3600),
                "next": audit.next_run,
                "overdue": audit.overdue,
            }
            for audit in lake_overview.audits
        ]
        print_rows(console, "audits", glances)
    for name in dict.fromkeys(year.audit for year in year_statuses):
        rows = [_row(year, long=options.long) for year in year_statuses if year.audit == name]
        print_rows(console, f"years of {name}", aligned(rows) if options.long else rows)
    if parted:
        print_rows(console, "years by partitions", [_counts(year) for year in parted])
    for year in parted if options.by else ():
        partitions = [
            {
                "partition": part.value,
                "rows": f"{part.rows:,}",
                "state": part.state,
                "seconds": "" if part.seconds is None else f"{part.seconds:,.1f}",
                "run": part.run,
                "why": part.message.split("\n")[0],
            }
            for part in year.partitions
        ]
        print_rows(console, f"{year.audit} {year.year} by {year.column}", partitions)


def _counts(year: "YearOfPartitions") -> dict[str, Any]:
    """A year by the states of its partitions."""
    states = ", ".join(f"{n:,} {state.replace('_', ' ')}" for state, n in sorted(year.states.items()))
    expected = year.seconds_left
    time_left = "unknown" if expected is None else duration(coarse(expected)) if expected else "none"
    rate = "" if year.per_hour is None else f"{year.per_hour:,.0f}"
    done = f"{year.done:,} of {year.total:,}"
    return {"audit": year.audit, "year": year.year, "done": done, "an hour": rate, "left": time_left, "states": states}


def _row(year: "Standing", *, long: bool) -> dict[str, Any]:
    state = year.state + (" (protected)" if year.protected else "")
    why = year.message.split("\n")[0]
    if long:
        return {"year": year.year, "state": state, **matrix(year.stages), "why": why}
    seconds = "" if year.seconds is None else f"{year.seconds:,.1f}"
    why = why.split("; ")[0]
    if len(why) > _LETTERS:
        # Cut between words, where the last one is not a path that fills the letters.
        head = why[: _LETTERS - 3]
        why = (head[: head.rfind(" ")] if head.rfind(" ") > _LETTERS // 2 else head) + "..."
    return {
        "year": year.year,
        "state": state,
        "date": year.ended[:10],
        "run": year.run,
        "seconds": seconds,
        "why": why,
    }
