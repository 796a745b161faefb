"""Command ``evenhand status``: how every year of every audit stands."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.completion import complete_spans
from flows.cli.options import JsonOption, LakeOption
from flows.cli.summary import print_rows
from flows.cli.terminal import console, print_json
from flows.cli.years.stages import aligned, matrix
from tasks.pipeline.progress import duration

if TYPE_CHECKING:
    from flows.operations.partition_status import PartStatus, YearOfPartitions
    from flows.operations.status import Standing

app = typer.Typer()

_LETTERS = 60
"""Of a reason; --long has it whole."""


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
    as_json: JsonOption = False,
) -> None:
    """Print how every year of every audit of the lake stands. Always exits 0 if it can be told."""
    from flows.operations.partition_status import partition_status
    from flows.operations.status import status as standing
    from flows.partitions.years import parse_years
    from tasks.lake.store import open_lake

    found, parted = standing(open_lake(lake)), partition_status(open_lake(lake))
    if years is not None:
        found = list(_of_years(found, years))
        parted = [year for year in parted if year.year in parse_years(years)]
    if as_json:
        print_json([*map(asdict, found), *map(asdict, parted)])
        return
    if not (found or parted):
        console.print(f"the lake {lake} has no audit of any year yet", markup=False, soft_wrap=True)
    for audit in dict.fromkeys(year.audit for year in found):
        mine = [year for year in found if year.audit == audit]
        rows = aligned([_long(year) for year in mine]) if long else [_short(year) for year in mine]
        print_rows(console, f"years of {audit}", rows)
    if parted:
        print_rows(console, "years by partitions", [_counts(year) for year in parted])
    for year in parted if by else ():
        print_rows(
            console, f"{year.audit} {year.year} by {year.column}", [_partition(part) for part in year.partitions]
        )


def _counts(year: "YearOfPartitions") -> dict[str, Any]:
    """A year by the states of its partitions."""
    states = ", ".join(f"{n:,} {state.replace('_', ' ')}" for state, n in sorted(year.states.items()))
    left = "unknown" if year.seconds_left is None else duration(year.seconds_left) if year.seconds_left else "none"
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
        mine = {year.year: year for year in found if year.audit == audit}
        yield from (mine.get(year) or never(audit, year) for year in wanted)


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
