"""Commands of operators: worker, gc, replay."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.options import JsonOption, LakeOption, RunArgument
from flows.cli.summary import print_rows
from flows.cli.terminal import console, print_json
from schemas.errors import InfrastructureError, SpecError
from schemas.terms import ExitCode

if TYPE_CHECKING:
    from tasks.lake.store import Lake

app = typer.Typer()


@app.command(epilog="Example: PREFECT_API_URL=http://127.0.0.1:4200/api evenhand worker --lake /srv/evenhand/lake")
def worker(
    lake: LakeOption = "data/lake",
    pool: Annotated[str, typer.Option(help="Work pool to take runs from.")] = "evenhand",
    limit: Annotated[int, typer.Option(min=1, help="Runs at once.")] = 1,
) -> None:
    """Take up again the runs of the lake whose process died, then become a Prefect worker that waits for work."""
    from flows.supervision.embedded_api import prepare_environment
    from tasks.lake.store import Lake

    if not os.environ.get("PREFECT_API_URL"):
        raise SpecError("a worker needs a server: set PREFECT_API_URL, such as http://127.0.0.1:4200/api")
    opened = Lake(lake)
    for name in ("PREFECT_LOGGING_LEVEL", "PREFECT_LOGGING_SERVER_LEVEL"):
        os.environ.setdefault(name, "INFO")  # a worker is watched by its log, a command by what it prints
    os.environ.setdefault("PREFECT_WORKER_WEBSERVER_HOST", "127.0.0.1")  # it tells of its health to this machine only
    prepare_environment(opened.storage.local)
    _take_up_again(opened)
    words = ["-m", "prefect", "worker", "start", "--pool", pool, "--type", "process", "--limit", str(limit)]
    os.execv(sys.executable, [sys.executable, *words, "--with-healthcheck"])  # noqa: S606 our own words


def _take_up_again(lake: "Lake") -> None:
    from httpx import HTTPError

    from flows.supervision.zombies import clear_leftovers, mark_dead

    try:
        found = mark_dead(lake, resume=True)
    except HTTPError as error:
        raise InfrastructureError(
            f"the Prefect server at {os.environ['PREFECT_API_URL']} does not answer ({error}); start it, or mend "
            "PREFECT_API_URL and PREFECT_API_AUTH_STRING"
        ) from error
    for marked in found:
        sys.stderr.write(f"run {marked.run} was dead ({marked.why}){'; taken up again' if marked.resumed else ''}\n")
    for draft in clear_leftovers(lake):
        sys.stderr.write(f"removed the unfinished draft {draft.name}\n")


@app.command(epilog="Example: evenhand gc --keep 4 --lake /srv/evenhand/lake, and the same with --yes")
def gc(
    keep: Annotated[int, typer.Option(min=1, help="The newest so many runs of every audit and year.")],
    lake: LakeOption = "data/lake",
    vintages: Annotated[
        int | None, typer.Option(min=1, help="Newest vintages of every year and kind; all of them if left out.")
    ] = None,
    days: Annotated[
        float, typer.Option(min=0, help="Keep what unfinished runs wrote, and crash files, for so many days.")
    ] = 14,
    yes: Annotated[bool, typer.Option("--yes", help="Remove it; without this, only print what would go.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List what of the lake and of Prefect's database no kept run needs, and how large it is; remove it with --yes."""
    from flows.operations.retention import Keeping, collect, removals
    from tasks.lake.store import open_lake

    opened = open_lake(lake)
    keeping = Keeping(keep, vintages, days)
    found = collect(opened, keeping) if yes else removals(opened, keeping)
    flow_runs: int | None = 0
    if os.environ.get("PREFECT_API_URL") or Path(os.environ.get("PREFECT_HOME", opened.root / "prefect")).is_dir():
        flow_runs = _flow_runs(opened, keep, remove=yes)
    rows = [{"kind": r.kind, "name": r.name, "bytes": r.bytes, "why": r.why} for r in found]
    said = {"removed": yes, "bytes": sum(r.bytes for r in found), "flow_runs": flow_runs, "lake": rows}
    if as_json:
        print_json(said)
    else:
        _print_removals(said)


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
    if said["flow_runs"] is None:
        console.print("a run is at work in Prefect's database: its flow runs were not looked at")


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
