"""Commands that compare years, and editions of a year: trend and restatement."""

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.completion import complete_audits, complete_specs, complete_years
from flows.cli.options import ByValueOption, HeldYearsOption, JsonOption, LakeOption, load_spec
from flows.cli.summary import print_rows
from flows.cli.terminal import console, print_json
from schemas.audit.partition import ALL
from schemas.errors import SpecError
from schemas.terms import ExitCode

if TYPE_CHECKING:
    from flows.partitions.trends import Made

app = typer.Typer()


class FailOn(StrEnum):
    """What makes `evenhand trend` end with 1."""

    NEVER = "never"
    CHANGED = "changed"
    BREACH = "breach"


@app.command(epilog="Example: evenhand trend hmda.yaml --years 2010-2024")
def trend(
    spec: Annotated[
        Path,
        typer.Argument(help="The audit spec that the years were audited by.", autocompletion=complete_specs),
    ],
    years: HeldYearsOption = None,
    by_value: ByValueOption = None,
    lake: LakeOption = "data/lake",
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="Exit with 1 if a group has changed, or its years are in breach.")
    ] = FailOn.NEVER,
    as_json: JsonOption = False,
) -> None:
    """Print the measures year by year and the years against their limits, and write the page. Audits nothing anew.

    Years are held against the limits by the rule of `verdicts.monitoring` (docs/monitoring.md). Exits with 0; with
    --fail-on with 1 if that is found, and with 3 if no year has verdicts.
    """
    from flows.partitions.held_years import held_years
    from flows.partitions.trends import make_trend
    from flows.partitions.years import parse_years
    from tasks.lake.store import open_lake

    read, opened = load_spec(spec, {}).spec, open_lake(lake)
    if by_value is not None and read.by is None:
        raise SpecError("--by-value names a partition, and the spec has no `by`; leave it out")
    asked = held_years(read, opened) if years is None else parse_years(years)
    made = make_trend(read.name, asked, opened, ALL if by_value is None else by_value)
    monitored = [] if made.monitoring is None else made.monitoring.to_pylist()
    if as_json:
        print_json({"page": made.page, "measures": made.table.to_pylist(), "monitoring": monitored})
    else:
        _print_limits(made, monitored)
        _print(made, "trend", *with_figures(made.table.to_pylist()))
    raise typer.Exit(_code(made, fail_on))


@app.command(epilog="Example: evenhand restatement 2022")
def restatement(
    year: Annotated[
        int,
        typer.Argument(help="A year with runs on two editions of its data.", autocompletion=complete_years),
    ],
    lake: LakeOption = "data/lake",
    audit: Annotated[
        str | None,
        typer.Option(help="Name of the audit; the lake's only one if left out.", autocompletion=complete_audits),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print what the last edition of a year's data changed in every headline measure, and write the page of it."""
    from flows.partitions.trends import make_restatement
    from flows.runs.index import audits_of
    from tasks.lake.store import open_lake

    held = open_lake(lake)
    made = make_restatement(audits_of(held, audit), year, held)
    if as_json:
        print_json({"page": made.page, "measures": made.table.to_pylist()})
        return
    names = ("decision_maker", "protected_attribute", "group", "measure", "old", "new", "difference", "new_state")
    _print(made, f"restatement of {year}", [{name: row[name] for name in names} for row in made.table.to_pylist()])


def _print_limits(made: "Made", monitored: list[dict[str, Any]]) -> None:
    """The years against their limits: a line a group, and a sentence a theory."""
    from tasks.reporting.trends.monitoring import said_by_theory

    if monitored:
        print_rows(console, "years against their limits", _states(monitored))
    said = said_by_theory(made.followed) or ["no run of these years has verdicts: nothing was held against a limit"]
    for line in (*said, ""):
        console.print(line, markup=False, soft_wrap=True)


def _states(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for each theory and group: the state of the years so far year by year, and the last change."""
    keys = ("theory", "decision_maker", "protected_attribute", "group", "measure")
    lines: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in rows:
        line = lines.setdefault(tuple(row[key] for key in keys), {key: row[key] for key in keys})
        line[str(row["year"])] = row["state"].replace("_", " ")
        if row["value"] is not None:
            line["last"] = _change(row)
    return [
        {**{name: value for name, value in line.items() if name != "last"}, "change": line.get("last", "")}
        for line in lines.values()
    ]


def _change(row: dict[str, Any]) -> str:
    """The change of a year, its interval and its state; a factor where it is of a ratio."""
    if row["change"] is None:
        return str(row["change_state"]).replace("_", " ") if row["change_state"] != "none" else "no earlier year"
    sign = "x" if row["scale"] == "log" else ""
    state = "no state" if row["change_state"] == "none" else row["change_state"]
    return f"{row['year']}: {sign}{row['change']:.3f} [{row['change_low']:.3f}, {row['change_high']:.3f}] {state}"


def _code(made: "Made", fail_on: FailOn) -> ExitCode:
    """1 if what the caller asks to fail on is there in the last year with an estimate, of any series."""
    from tasks.reporting.trends.monitoring import breaches, changed

    if fail_on is FailOn.NEVER:
        return ExitCode.WITHIN
    if not made.followed:
        return ExitCode.INSUFFICIENT_EVIDENCE
    found = changed(made.followed) if fail_on is FailOn.CHANGED else breaches(made.followed)
    return ExitCode.BREACH if found else ExitCode.WITHIN


def with_figures(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
    """One line for each measure of a group that has a figure in some year, one column a year; and what has none."""
    keys = ("decision_maker", "protected_attribute", "group", "measure")
    lines: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        lines.setdefault(tuple(row[key] for key in keys), []).append(row)
    shown, without = [], Counter[str]()
    for key, of in lines.items():
        if any(row["told"] == "value" for row in of):
            shown.append(dict(zip(keys, key, strict=True)) | {str(row["year"]): _figure(row) for row in of})
        else:
            without[Counter(row["told"] for row in of).most_common(1)[0][0]] += 1
    if not without:
        return shown, ""
    reasons = ", ".join(f"{reason} {n}" for reason, n in without.most_common())
    return shown, f"{without.total()} of {len(lines)} measures have no figure in any of these years: {reasons}"


def _figure(row: dict[str, Any]) -> str:
    return f"{row['value']:.3f}" if row["told"] == "value" else row["told"]


def _print(made: "Made", title: str, rows: list[dict[str, Any]], others: str = "") -> None:
    print_rows(console, title, rows)
    if others:
        console.print(others, markup=False, soft_wrap=True)
    console.print(f"page  {made.page}", markup=False, soft_wrap=True)
