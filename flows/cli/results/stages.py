"""Command ``stages``: rows, time and memory of every stage of a run."""

import sys
from collections.abc import Sequence
from typing import Any

import typer

from flows.cli.options import JsonOption, LakeOption, LatestArgument
from flows.cli.summary import print_rows
from flows.cli.terminal import console, print_json

app = typer.Typer()

_SHOWN = 12
"""Digits of a key in a table; --json has it whole."""
_RESTRICTED = "restricted: not for publication, since the rows are exact numbers, which reports round or withhold\n"


@app.command(epilog="Example: evenhand stages, or: evenhand stages boston1990@1990 --json")
def stages(run: LatestArgument = None, lake: LakeOption = "data/lake", as_json: JsonOption = False) -> None:
    """Print every stage of a run: rows in, out and refused, wall and CPU seconds, peak memory, computed or not.

    `source` is "computed", or "lake" where the lake held the stage before; its cost is then that of the run that made
    it. The view `stage_runs` of `evenhand sql` has the same columns of all runs.
    """
    from flows.runs.manifest import read_manifest
    from flows.runs.naming import opened
    from tasks.lake.stage_runs import stage_runs

    there, name = opened(lake, run)
    found = list(stage_runs(read_manifest(there, name)))
    if as_json:
        print_json(found)
    else:
        print_stages(f"stages of {name}", found)
    sys.stderr.write(_RESTRICTED)


def print_stages(title: str, found: Sequence[dict[str, Any]]) -> None:
    """Print rows of ``tasks.lake.stage_runs`` as a table, with the sums of their times."""
    from tasks.lake.stage_runs import OF_PARTITION  # loads pyarrow

    parted = any(row.get(OF_PARTITION[0]) for row in found)
    names = [name for row in found[:1] for name in row if parted or name not in OF_PARTITION]
    rows = [{name: _shown(name, row[name]) for name in names} for row in found]
    print_rows(console, title, rows)
    wall, cpu = (sum(row[name] or 0.0 for row in found) for name in ("seconds", "cpu_seconds"))
    console.print(f"in all {wall:,.1f} s of stages, {cpu:,.1f} CPU s", markup=False)


def _shown(name: str, value: Any) -> Any:
    if value is None:
        return ""
    if name == "partition":
        return value[:_SHOWN]
    return f"{value:,.1f}" if isinstance(value, float) else value
