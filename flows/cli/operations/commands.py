"""Commands of operators: worker, gc, replay."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.options import JsonOption, LakeOption, RunArgument
from flows.cli.summary import print_rows
from flows.cli.terminal import console, print_json
from schemas.errors import InfrastructureError, SpecError
from schemas.terms import ExitCode

if TYPE_CHECKING:
    from flows.operations.retention.removals import Keeping
    from tasks.lake.store import Lake

app = typer.Typer()
_NAMED = 5
"""Records that cannot be read, in a list; --json has all."""
_MOST_REASON = 2000
"""Letters; an entry of the log has room for these and the rule beside them."""


@app.command(epilog="Example: PREFECT_API_URL=http://127.0.0.1:4200/api evenhand worker --lake /srv/evenhand/lake")
def worker(
    lake: LakeOption = "data/lake",
    pool: Annotated[str, typer.Option(help="Work pool to take runs from.")] = "evenhand",
    limit: Annotated[int, typer.Option(min=1, help="Runs at once.")] = 1,
    drain: Annotated[
        bool,
        typer.Option("--drain", help="Pause the pool, wait until no run of it is at work, and end: before an upgrade."),
    ] = False,
) -> None:
    """Be a Prefect worker that waits for work, and take up again the runs of the lake whose process dies.

    Of several late runs of a deployment it first cancels all but the newest. On SIGTERM it takes no new run, and those
    at work have EVENHAND_GRACE seconds (90) to end the stage that they compute; the next worker goes on from there.
    With EVENHAND_METRICS=HOST:PORT it serves metrics for Prometheus.

    With --drain it is no worker: it stops all workers of the pool from taking runs, and waits for those at work.
    """
    from flows.operations.metrics.endpoint import metrics_served
    from flows.operations.worker.serving import Serving, at_home, serve
    from flows.supervision.embedded_api import prepare_environment
    from tasks.lake.store import Lake

    if not os.environ.get("PREFECT_API_URL"):
        raise SpecError("a worker needs a server: set PREFECT_API_URL, such as http://127.0.0.1:4200/api")
    opened = Lake(lake)
    for name, value in at_home().items():
        os.environ.setdefault(name, value)
    prepare_environment(opened.storage.local)
    if drain:
        _drain(opened, pool)
        return
    with metrics_served(opened):
        _take_up_again(opened)
        raise typer.Exit(serve(opened, Serving(pool, limit)))


def _take_up_again(lake: "Lake") -> None:
    from flows.concurrency.spans import trace_dead
    from flows.operations.schedules.late_runs import cancel_superseded
    from flows.operations.worker.watcher import words_of
    from flows.outcome.deaths import see_to_dead
    from flows.supervision.leftovers import clear_leftovers
    from flows.supervision.zombies import Burial

    with _server_answering():
        found = see_to_dead(lake, Burial(resume=True))
        replaced = cancel_superseded(lake)
    for marked in found:
        trace_dead(marked)
        sys.stderr.write(f"{words_of(marked)}\n")
    for each in replaced:
        sys.stderr.write(f"late run {each.run} was cancelled: {each.message}\n")
    for draft in clear_leftovers(lake):
        sys.stderr.write(f"removed the unfinished draft {draft.name}\n")


def _drain(lake: "Lake", pool: str) -> None:
    from flows.operations.worker.draining import drain

    with _server_answering():
        count = drain(lake, pool, lambda line: sys.stderr.write(f"{line}\n"))
    waited = f" after {count} had ended" if count else ""
    console.print(
        f"drained: no run of the pool {pool} is at work{waited}, and no worker takes one until "
        f"`prefect work-pool resume {pool}`",
        markup=False,
        soft_wrap=True,
    )


@contextmanager
def _server_answering() -> Iterator[None]:
    """Say of a server that does not answer what to mend."""
    from httpx import HTTPError

    try:
        yield
    except HTTPError as error:
        raise InfrastructureError(
            f"the Prefect server at {os.environ['PREFECT_API_URL']} does not answer ({error}); start it, or mend "
            "PREFECT_API_URL and PREFECT_API_AUTH_STRING"
        ) from error


@app.command(epilog="Example: evenhand gc --keep 4 --lake /srv/evenhand/lake, and the same with --yes")
def gc(
    keep: Annotated[
        int | None,
        typer.Option(min=1, help="The newest so many runs of every audit and year; keep_runs of the lake's settings."),
    ] = None,
    lake: LakeOption = "data/lake",
    vintages: Annotated[
        int | None, typer.Option(min=1, help="Newest vintages of every year and kind; all of them if left out.")
    ] = None,
    days: Annotated[
        float, typer.Option(min=0, help="Keep what unfinished runs wrote, and crash files, for so many days.")
    ] = 14,
    below_minimum: Annotated[
        str,
        typer.Option(
            metavar="REASON", help="Remove runs younger than the lake's minimum_days, too; goes into the log."
        ),
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Remove it; without this, only print what would go.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List what of the lake and of Prefect's database no kept run needs, and how large it is; remove it with --yes.

    Runs that are protected, signed off, or younger than minimum_days of LAKE/settings.yaml (1,095) stay. Where a
    manifest or an entry of the log cannot be read, nothing is removed: exit 6. No link is followed: what lies outside
    the lake is named and stays.
    """
    from flows.operations.doctor.records import without
    from flows.operations.retention.damage import damage
    from flows.operations.retention.left_alone import LeftAlone, left_alone
    from flows.operations.retention.removals import collect, held_back, leaving, removals
    from flows.runs.index import runs_of
    from tasks.lake.store import open_lake

    opened = open_lake(lake)
    keeping, hidden = _keeping(opened, keep, vintages, days, below_minimum), damage(opened)
    seen = without(opened, hidden)
    runs, failed = runs_of(seen), list[LeftAlone]()
    stay = [] if below_minimum else held_back(seen, runs, keeping)
    strange = left_alone(seen, leaving(seen, runs, keeping))
    found = collect(opened, keeping, failed) if yes else removals(opened, keeping)
    flow_runs: int | None = 0
    if os.environ.get("PREFECT_API_URL"):
        flow_runs = _flow_runs(opened, keeping.runs, remove=yes)
    elif Path(os.environ.get("PREFECT_HOME", opened.root / "prefect")).is_dir():  # to count them takes a server's start
        flow_runs = _flow_runs(opened, keeping.runs, remove=yes) if yes else None
    rows = [{**asdict(removal), "path": str(removal.path)} for removal in found]
    said: dict[str, Any] = {"removed": yes, "bytes": sum(r.bytes for r in found), "flow_runs": flow_runs, "lake": rows}
    said |= {"too_young": [run.run for run in stay], "minimum_days": keeping.minimum_days}
    said["unreadable"] = [each.reason for each in hidden]
    said["left_alone"] = [{"path": str(each.path), "why": each.why} for each in (*strange, *failed)]
    if as_json:
        print_json(said)
    else:
        _print_removals(said)
    if hidden:
        raise typer.Exit(ExitCode.INTEGRITY)


def _keeping(lake: "Lake", keep: int | None, vintages: int | None, days: float, below: str) -> "Keeping":
    """The rules of the command line, and of the lake's settings where it says nothing.

    Raises:
        SpecError: neither says how many runs are kept, the reason is too long, or the settings are not usable.
    """
    from flows.operations.retention.lake_settings import FILE, settings_of
    from flows.operations.retention.removals import Keeping

    said = settings_of(lake.storage).retention
    runs = keep or said.keep_runs
    if runs is None:
        raise SpecError(f"how many runs to keep? Give --keep N, or retention.keep_runs in {lake.storage.where(FILE)}")
    if len(below) > _MOST_REASON:
        raise SpecError(f"--below-minimum has {len(below):,} letters, and at most {_MOST_REASON:,} are kept")
    younger = said.keep_days or 0
    return Keeping(runs, vintages or said.keep_vintages, days, younger, said.minimum_days, below.strip())


def _flow_runs(lake: "Lake", keep: int, *, remove: bool) -> int | None:
    """How many flow runs are older than the kept ones; None where a run uses the database. Removed on request."""
    from httpx import HTTPError
    from prefect.client.orchestration import get_client

    from flows.supervision.embedded_api import InUseError, prefect_api
    from flows.supervision.flow_runs import outdated, remove_outdated

    try:
        with prefect_api(lake, wait=False), get_client(sync_client=True) as client:
            return remove_outdated(client, lake, keep) if remove else len(outdated(client, lake, keep))
    except InUseError:
        return None
    except HTTPError as error:
        raise InfrastructureError(
            f"the Prefect server does not answer ({error}); start it, or mend PREFECT_API_URL and "
            "PREFECT_API_AUTH_STRING. What is in the lake was seen to"
        ) from error


def _print_removals(said: dict[str, Any]) -> None:
    rows = said["lake"]
    print_rows(console, "", [{**row, "bytes": f"{row['bytes']:,}"} for row in rows])
    done = "went" if said["removed"] else "would go; nothing was removed, as --yes was not given"
    flow_runs = "" if said["flow_runs"] is None else f" and {said['flow_runs']} flow runs"
    console.print(f"{len(rows)} items of the lake ({said['bytes']:,} bytes){flow_runs} {done}")
    for each in said["left_alone"]:
        console.print(f"left alone: {each['why']}", markup=False, soft_wrap=True)
    if young := said["too_young"]:
        console.print(
            f"{len(young)} runs stay that are younger than {said['minimum_days']:g} days (minimum_days of the lake's "
            f"settings), such as {young[0]}; --below-minimum REASON removes them, too",
            markup=False,
            soft_wrap=True,
        )
    if said["flow_runs"] is None:
        console.print("the flow runs in the lake's own Prefect database were not looked at; --yes sees to them")
    if amiss := said["unreadable"]:
        words = (
            "cannot be read, so that nobody can say what they need: no partition is listed, and --yes removes nothing"
        )
        console.print(f"{len(amiss)} records {words}", markup=False, soft_wrap=True)
        for reason in amiss[:_NAMED]:
            console.print(f"  {reason}", markup=False, soft_wrap=True)


@app.command(epilog="Example: evenhand replay boston1990-1990-0123456789")
def replay(
    run: RunArgument,
    lake: LakeOption = "data/lake",
    as_json: JsonOption = False,
) -> None:
    """Compute a run again from its manifest and compare every table. Exit 6 if one is not the same."""
    from flows.runs.naming import opened
    from flows.runs.replay import replay_run

    run = opened(lake, run)[1]
    rows = replay_run(lake, run)
    if as_json:
        print_json(rows)
    else:
        print_rows(console, f"replay of {run}", rows)
    if not all(row["equal"] for row in rows):
        raise typer.Exit(ExitCode.INTEGRITY)
