"""Command ``evenhand status``: how every audit and year of a lake stands, and what waits for a person."""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.completion import complete_spans
from flows.cli.options import JsonOption, LakeOption
from flows.cli.summary import print_rows
from flows.cli.terminal import console, print_json
from flows.cli.years.stages import aligned, matrix
from flows.cli.years.waiting import in_review, print_review, print_waiting
from schemas.terms import ExitCode
from tasks.pipeline.progress import coarse, duration

if TYPE_CHECKING:
    from flows.operations.overview import AuditAtAGlance, Overview
    from flows.operations.partition_status import PartStatus, YearOfPartitions
    from flows.operations.status import Standing
    from tasks.lake.store import Lake

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
            help="Only these, also those that nobody tried: 2010-2024, or 2012,2015-2017.",
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
    """Print how every audit and year of the lake stands, and what waits for a person.

    The server of PREFECT_API_URL, if one is named, is asked for the next dates. Exit 5 if an expected run or a
    remediation is overdue. Exit 6 if a record of the lake cannot be read: it is named, and all others are printed.
    """
    asked = _Asked(lake, years, long, by, review, as_json)
    while watch:
        console.clear()
        _print(asked)
        time.sleep(_WATCH_SECONDS)
    whole = _print(asked)
    if whole.unreadable:
        raise typer.Exit(ExitCode.INTEGRITY)
    if whole.overdue or (strict and whole.server and os.environ.get("PREFECT_API_URL")):
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


@dataclass(frozen=True)
class _Asked:
    """What the command line asks for."""

    lake: str
    years: str | None
    long: bool
    by: bool
    review: bool
    as_json: bool


def _print(asked: _Asked) -> "Overview":
    """Print it once; gives what an operator looks at first."""
    from flows.operations.doctor.records import unreadable, without
    from flows.operations.overview import overview
    from flows.operations.partition_status import partition_status
    from flows.operations.status import status as standing
    from flows.partitions.years import parse_years
    from tasks.lake.store import open_lake

    lake = open_lake(asked.lake)
    hidden = unreadable(lake)
    seen = without(lake, hidden)
    found, parted = standing(seen), partition_status(seen)
    whole = overview(lake, found, hidden=hidden)
    if asked.years is not None:
        found = list(_of_years(found, asked.years))
        parted = [year for year in parted if year.year in parse_years(asked.years)]
    in_review_too = asked.review and not whole.log_altered  # else the log is named among what cannot be read
    if asked.as_json:
        years = [*_with_memory(seen, found), *map(asdict, parted)]
        said = {**asdict(whole), "overdue": whole.overdue, "memory": _machine(seen), "years": years}
        print_json({**said, **({"review": in_review(seen)} if in_review_too else {})})
    else:
        _print_years(asked, found, parted, whole)
        if in_review_too:
            print_review(seen)
        print_waiting(whole)
    return whole


def _with_memory(lake: "Lake", found: "Sequence[Standing]") -> list[dict[str, Any]]:
    """The years, each with the memory of its stages."""
    from flows.operations.metrics.peaks import memory_of

    memory = memory_of(lake, found)
    return [{**asdict(year), "memory": asdict(each)} for year, each in zip(found, memory, strict=True)]


def _machine(lake: "Lake") -> dict[str, Any]:
    from flows.operations.metrics.peaks import machine_memory

    return asdict(machine_memory(lake))


def _print_years(
    asked: _Asked, found: "Sequence[Standing]", parted: "Sequence[YearOfPartitions]", whole: "Overview"
) -> None:
    if not (found or parted):
        console.print(f"the lake {asked.lake} has no audit of any year yet", markup=False, soft_wrap=True)
    if whole.audits:
        print_rows(console, "audits", [_glance(audit) for audit in whole.audits])
    for audit in dict.fromkeys(year.audit for year in found):
        mine = [year for year in found if year.audit == audit]
        rows = aligned([_long(year) for year in mine]) if asked.long else [_short(year) for year in mine]
        print_rows(console, f"years of {audit}", rows)
    if parted:
        print_rows(console, "years by partitions", [_counts(year) for year in parted])
    for year in parted if asked.by else ():
        print_rows(
            console, f"{year.audit} {year.year} by {year.column}", [_partition(part) for part in year.partitions]
        )


def _glance(audit: "AuditAtAGlance") -> dict[str, Any]:
    return {
        "audit": audit.audit,
        "last run": f"{audit.year} {audit.state}",
        "ended": audit.ended.replace("T", " ")[:16],
        "age": "" if audit.age_days is None else duration(audit.age_days * 24 * 3600),
        "next": audit.next_run,
        "overdue": audit.overdue,
    }


def _counts(year: "YearOfPartitions") -> dict[str, Any]:
    """A year by the states of its partitions."""
    states = ", ".join(f"{n:,} {state.replace('_', ' ')}" for state, n in sorted(year.states.items()))
    expected = year.seconds_left
    left = "unknown" if expected is None else duration(coarse(expected)) if expected else "none"
    rate = "" if year.per_hour is None else f"{year.per_hour:,.0f}"
    done = f"{year.done:,} of {year.total:,}"
    return {"audit": year.audit, "year": year.year, "done": done, "an hour": rate, "left": left, "states": states}


def _partition(part: "PartStatus") -> dict[str, Any]:
    seconds = "" if part.seconds is None else f"{part.seconds:,.1f}"
    told = {"partition": part.value, "rows": f"{part.rows:,}", "state": part.state, "seconds": seconds, "run": part.run}
    return {**told, "why": part.message.split("\n")[0]}


def _of_years(found: "Sequence[Standing]", years: str) -> "Iterable[Standing]":
    """The years asked for of every audit, in order; a year that nobody tried stands as such."""
    from flows.operations.status import never
    from flows.partitions.years import parse_years

    wanted = parse_years(years)
    for audit in dict.fromkeys(year.audit for year in found):
        mine = [year for year in found if year.audit == audit]
        for year in wanted:  # one of partitions that were audited by themselves has several lines
            yield from [each for each in mine if each.year == year] or [never(audit, year)]


def _state(year: "Standing") -> str:
    return year.state + (" (protected)" if year.protected else "")


def _short(year: "Standing") -> dict[str, Any]:
    seconds = "" if year.seconds is None else f"{year.seconds:,.1f}"
    told = {"year": year.year, "state": _state(year), "date": year.ended[:10], "run": year.run, "seconds": seconds}
    return {**told, "why": _cut(year.message.split("\n")[0].split("; ")[0])}


def _cut(reason: str) -> str:
    """A reason in its letters; between words, where the last one is not a path that fills them."""
    if len(reason) <= _LETTERS:
        return reason
    head = reason[: _LETTERS - 3]
    return (head[: head.rfind(" ")] if head.rfind(" ") > _LETTERS // 2 else head) + "..."


def _long(year: "Standing") -> dict[str, Any]:
    why = year.message.split("\n")[0]
    return {"year": year.year, "state": _state(year), **matrix(year.stages), "why": why}
