"""Commands that compare years, and editions of a year: trend and restatement."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.options import JsonOption, LakeOption, load_spec
from flows.cli.summary import print_rows
from flows.cli.terminal import console, print_json

if TYPE_CHECKING:
    from flows.partitions.trends import Made

app = typer.Typer()


@app.command(epilog="Example: evenhand trend hmda.yaml --years 2010-2024")
def trend(
    spec: Annotated[Path, typer.Argument(help="The audit spec that the years were audited by.")],
    years: Annotated[str, typer.Option("--years", help="Such as 2010-2024, or 2012,2015-2017.")],
    lake: LakeOption = "data/lake",
    as_json: JsonOption = False,
) -> None:
    """Print headline and checked measures year by year, and write the page of them. Computes nothing anew."""
    from flows.partitions.trends import make_trend
    from flows.partitions.years import parse_years
    from tasks.lake.store import open_lake

    made = make_trend(load_spec(spec, {}).spec.name, parse_years(years), open_lake(lake))
    if as_json:
        print_json({"page": made.page, "measures": made.table.to_pylist()})
        return
    _print(made, "trend", _by_year(made.table.to_pylist()))


@app.command(epilog="Example: evenhand restatement 2022")
def restatement(
    year: Annotated[int, typer.Argument(help="A year with runs on two editions of its data.")],
    lake: LakeOption = "data/lake",
    audit: Annotated[str | None, typer.Option(help="Name of the audit; the lake's only one if left out.")] = None,
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


def _by_year(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for each measure of a group, one column a year."""
    keys = ("decision_maker", "protected_attribute", "group", "measure")
    lines: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in rows:
        line = lines.setdefault(tuple(row[key] for key in keys), {key: row[key] for key in keys})
        line[str(row["year"])] = f"{row['value']:.3f}" if row["told"] == "value" else row["told"]
    return list(lines.values())


def _print(made: "Made", title: str, rows: list[dict[str, Any]]) -> None:
    print_rows(console, title, rows)
    console.print(f"page  {made.page}", markup=False, soft_wrap=True)
