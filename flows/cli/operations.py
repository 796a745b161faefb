"""Commands of operators: alerts, overdue, schedules, worker, gc, replay, serve."""

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.options import JsonOption, LakeOption, RunArgument, SetOption, complete_specs, load_spec, overrides
from flows.cli.terminal import console, errors, print_json, print_rows
from schemas.errors import EvenhandError, InfrastructureError, IntegrityError, SpecError
from schemas.terms import ExitCode

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

    from flows.operations.retention import Keeping
    from flows.outcome.alert_settings import Alerts
    from tasks.lake.store import Lake


# --------------------------------------------------------------------------------------------------------------------
# Commands ``alerts``, ``alerts test``, ``alerts send`` and ``overdue``: who was told of what, and what never came.


app = typer.Typer()
alerts_app = typer.Typer(invoke_without_command=True)
_NAMED = 5
"""Files that cannot be read, in a message."""


@alerts_app.callback(epilog="Example: evenhand alerts --lake /srv/evenhand/lake")
def alerts(
    ctx: typer.Context,
    lake: LakeOption = "data/lake",
    limit: Annotated[int, typer.Option(min=1, help="Alerts at most.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """List the alerts of the lake, newest first: state, rule, address by its name, run, and what became of it.

    Exit 6 if a record cannot be read; the others are listed.
    """
    if ctx.invoked_subcommand is not None:
        return
    from flows.outcome import alerts
    from tasks.lake.store import open_lake

    opened = open_lake(lake)
    alert_rows = list(alerts.rows(alerts.alerts(opened)[::-1][:limit]))
    if as_json:
        print_json(alert_rows)
    elif not alert_rows:
        console.print(f"no alert was ever due in the lake {lake}", markup=False, soft_wrap=True)
    else:
        print_rows(console, "", [{name: row[name] for name in row if name != "rule"} for row in alert_rows])
    _stop_at_unreadable(opened)


@alerts_app.command("test", epilog="Example: EVENHAND_ALERTS=/etc/evenhand/alerts.yaml evenhand alerts test")
def send_test(as_json: JsonOption = False) -> None:
    """Send one message to each address of EVENHAND_ALERTS, and print what came back. Exit 5 if one did not arrive."""
    from flows.outcome.alerts import deliver

    text = f"Sent by `evenhand alerts test` on {platform.node()}. No audit ended."
    came = deliver(_settings().to, "Evenhand: test of alerts", text)
    rows = [
        {"to": to, "outcome": back.outcome, "tries": back.tries, "reason": back.reason} for to, back in came.items()
    ]
    if _print(rows, as_json=as_json):
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


@alerts_app.command(epilog="Example: EVENHAND_ALERTS=/etc/evenhand/alerts.yaml evenhand alerts send")
def send(lake: LakeOption = "data/lake", as_json: JsonOption = False) -> None:
    """Send the digests of past days, and once more what was not delivered. Exit 5 if something did not arrive.

    Exit 6 if a record cannot be read; the others are seen to.
    """
    from flows.outcome import alerts
    from flows.outcome.alerts import send_again, send_digests
    from tasks.lake.store import open_lake

    opened, settings = open_lake(lake), _settings()
    again = send_again(opened, settings)
    failed = _print([*alerts.rows([*again, *send_digests(opened, settings)])], as_json=as_json)
    _stop_at_unreadable(opened)
    if failed:
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


@app.command(epilog="Example: evenhand overdue loans.yaml, or for an audit without a rule: --by 'quarter, 10 days'")
def overdue(
    spec: Annotated[
        Path | None,
        typer.Argument(
            help="Audit spec; every audit of the lake whose last run has `expected` if left out.",
            autocompletion=complete_specs,
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="RULE", help="Instead of `expected`, such as 'quarter, 10 days'.")
    ] = None,
    set_: SetOption = None,
    lake: LakeOption = "data/lake",
    as_json: JsonOption = False,
) -> None:
    """Report from the lake whether an expected run is missing, and send the alert `overdue`. Exit 5 if so.

    No server is asked. If nothing is overdue, EVENHAND_HEARTBEAT_URL is called, where it is set. Exit 6, with the
    alert, if a manifest cannot be read and no other run of the audit came in time.
    """
    from flows.operations.overdue import due, due_of_lake, heartbeat, rule_of, tell_overdue
    from flows.outcome.alerts import tell_unrecorded
    from flows.outcome.ending import Ending, Name
    from tasks.lake.store import open_lake

    if by is not None and spec is None:
        raise SpecError("--by is the rule of one audit; name its spec, as in: evenhand overdue loans.yaml --by quarter")
    audit_spec = None if spec is None else load_spec(spec, overrides(None, None, set_ or [])).spec
    opened = None
    try:
        opened = open_lake(lake)
        if audit_spec is not None:
            due_audits = [due(opened, audit_spec, rule_of(by) if by else None)]
        elif not (due_audits := due_of_lake(opened)):
            raise SpecError(
                "no audit of the lake has a rule for due runs, so nothing was checked; add "
                "`expected: {every: quarter, by: 10 days}` to a spec, or name a spec and give --by"
            )
    except (EvenhandError, OSError) as error:
        # A lake that is missing or cannot be read is an alert; a fault of the spec or of --by is none.
        if opened is None or not isinstance(error, SpecError):
            about = audit_spec.name if audit_spec is not None else "every audit"
            tell_unrecorded(Ending(Name.OVERDUE, about, f"{about}: nobody can tell whether a run came: {error}"))
        raise
    tell_overdue(opened, due_audits)
    if as_json:
        print_json([{**vars(audit), "unknown": audit.unknown, "message": audit.message} for audit in due_audits])
    for due_audit in () if as_json else due_audits:
        console.print(due_audit.message, markup=False, soft_wrap=True)
    for warning in (warning for due_audit in due_audits for warning in due_audit.warnings):
        errors.print(f"warning: {warning}", markup=False)
    if any(due_audit.unknown for due_audit in due_audits):
        raise typer.Exit(ExitCode.INTEGRITY)
    if any(due_audit.overdue for due_audit in due_audits):
        raise typer.Exit(ExitCode.INFRASTRUCTURE)
    if why := heartbeat():
        errors.print(f"warning: {why}", markup=False)


def _settings() -> "Alerts":
    from flows.outcome.alert_settings import VARIABLE, configured

    settings = configured()
    if settings is None:
        raise SpecError(f"{VARIABLE} is not set; give it the path of a YAML file with `to` and `rules`")
    return settings


def _print(rows: list[dict[str, Any]], *, as_json: bool) -> bool:
    """Print what was sent; whether something did not arrive."""
    if as_json:
        print_json(rows)
    elif not rows:
        console.print("nothing was to be sent", markup=False)
    else:
        print_rows(console, "", rows)
    return any(row["reason"] for row in rows)


def _stop_at_unreadable(lake: "Lake") -> None:
    """Name the records of alerts that cannot be read."""
    from flows.outcome.alerts import unreadable

    amiss = unreadable(lake)
    if amiss:
        remainder = f"\nand {len(amiss) - _NAMED} more: evenhand status --json" if len(amiss) > _NAMED else ""
        raise IntegrityError("\n".join(amiss[:_NAMED]) + remainder)


# --------------------------------------------------------------------------------------------------------------------
# Commands ``schedules``, ``schedules pause`` and ``schedules resume``: what a server is to run, and when.


schedules_app = typer.Typer(invoke_without_command=True)
_Name = Annotated[str, typer.Argument(help="Name of a schedule, or of a deployment for all of its schedules.")]


@schedules_app.callback(epilog="Example: PREFECT_API_URL=http://127.0.0.1:4200/api evenhand schedules")
def schedules(ctx: typer.Context, as_json: JsonOption = False) -> None:
    """List the schedules of the server: next date, last run and its state. Exit 5 if one is overdue."""
    if ctx.invoked_subcommand is not None:
        return
    from flows.operations.schedules import PAUSED, planned

    with asked() as client:
        schedules_of_server = planned(client)
    if as_json:
        print_json([asdict(schedule) for schedule in schedules_of_server])
    elif not schedules_of_server:
        console.print("the server has no schedule; register deployments/prefect.yaml", markup=False)
    else:
        rows = [
            {
                "schedule": schedule.name,
                "deployment": schedule.deployment,
                "when": schedule.when,
                "zone": schedule.zone,
                "next": schedule.next if schedule.active else PAUSED,
                "last": schedule.last,
                "state": schedule.state,
                "overdue": schedule.overdue,
            }
            for schedule in schedules_of_server
        ]
        print_rows(console, "", rows)
    if any(schedule.overdue for schedule in schedules_of_server):
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


@schedules_app.command(epilog="Example: evenhand schedules pause quarter-end")
def pause(name: _Name) -> None:
    """Switch a schedule off: the server plans no run of it until it is resumed. Runs that have begun go on."""
    _switch(name, active=False)


@schedules_app.command(epilog="Example: evenhand schedules resume quarter-end")
def resume(name: _Name) -> None:
    """Switch a schedule on again."""
    _switch(name, active=True)


@contextmanager
def asked() -> Iterator["SyncPrefectClient"]:
    """A client of the server that is named, which gives up soon.

    Raises:
        SpecError: none is named.
        InfrastructureError: it does not answer, or is no Prefect server.
    """
    if not os.environ.get("PREFECT_API_URL"):
        raise SpecError("schedules are kept by a server: set PREFECT_API_URL, such as http://127.0.0.1:4200/api")
    from flows.operations.schedules import hasty_client

    with hasty_client(seconds=10, retries=1) as client:
        yield client


def _switch(name: str, *, active: bool) -> None:
    from flows.operations.schedules import switch

    with asked() as client:
        for slug in switch(client, name, active=active):
            console.print(f"{slug}: {'on' if active else 'off'}", markup=False)


# --------------------------------------------------------------------------------------------------------------------
# Commands of operators: worker, gc, replay.


commands_app = typer.Typer()
_MOST_REASON = 2000
"""Letters; an entry of the log has room for these and the rule beside them."""


@commands_app.command(
    epilog="Example: PREFECT_API_URL=http://127.0.0.1:4200/api evenhand worker --lake /srv/evenhand/lake"
)
def worker(
    lake: LakeOption = "data/lake",
    pool: Annotated[str, typer.Option(help="Work pool to take runs from.")] = "evenhand",
    limit: Annotated[int, typer.Option(min=1, help="Runs at once.")] = 1,
    drain: Annotated[
        bool,
        typer.Option("--drain", help="Pause the pool, wait until no run of it is at work, and end: before an upgrade."),
    ] = False,
) -> None:
    """Run a Prefect worker that waits for work, and resume the runs of the lake after their process dies.

    Of several late runs of a deployment it first cancels all but the newest. On SIGTERM it takes no new run, and those
    at work have EVENHAND_GRACE seconds (90) to end the stage that they compute; the next worker goes on from there.
    With EVENHAND_METRICS=HOST:PORT it serves metrics for Prometheus.

    With --drain it is no worker: it stops all workers of the pool from taking runs, and waits for those at work.
    """
    from flows.operations.metrics import metrics_served
    from flows.operations.worker import Serving, at_home, serve
    from flows.operations.worker import drain as wait_for_runs
    from flows.supervision.prefect_server import prepare_environment
    from tasks.lake.store import Lake

    if not os.environ.get("PREFECT_API_URL"):
        raise SpecError("a worker needs a server: set PREFECT_API_URL, such as http://127.0.0.1:4200/api")
    opened = Lake(lake)
    for name, value in at_home().items():
        os.environ.setdefault(name, value)
    prepare_environment(opened.storage.local)
    if drain:
        with _server_answering():
            count = wait_for_runs(opened, pool, lambda line: sys.stderr.write(f"{line}\n"))
        waited = f" after {count} had ended" if count else ""
        console.print(
            f"drained: no run of the pool {pool} is at work{waited}, and no worker takes one until "
            f"`prefect work-pool resume {pool}`",
            markup=False,
            soft_wrap=True,
        )
        return
    with metrics_served(opened):
        _take_up_again(opened)
        raise typer.Exit(serve(opened, Serving(pool, limit)))


def _take_up_again(lake: "Lake") -> None:
    from flows.concurrency.tracing import trace_dead
    from flows.operations.schedules import cancel_superseded
    from flows.operations.worker import words_of
    from flows.outcome.run_state import see_to_dead
    from flows.supervision.dead_runs import Burial
    from flows.supervision.presence import clear_leftovers

    with _server_answering():
        marked_runs = see_to_dead(lake, Burial(resume=True))
        replaced = cancel_superseded(lake)
    for marked in marked_runs:
        trace_dead(marked)
        sys.stderr.write(f"{words_of(marked)}\n")
    for replaced_run in replaced:
        sys.stderr.write(f"late run {replaced_run.run} was cancelled: {replaced_run.message}\n")
    for draft in clear_leftovers(lake):
        sys.stderr.write(f"removed the unfinished draft {draft.name}\n")


@contextmanager
def _server_answering() -> Iterator[None]:
    """Raises an error with the next step if the server does not answer."""
    from httpx import HTTPError

    try:
        yield
    except HTTPError as error:
        raise InfrastructureError(
            f"the Prefect server at {os.environ['PREFECT_API_URL']} does not answer ({error}); start it, or correct "
            "PREFECT_API_URL and PREFECT_API_AUTH_STRING"
        ) from error


@commands_app.command(epilog="Example: evenhand gc --keep 4 --lake /srv/evenhand/lake, and the same with --yes")
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
        float, typer.Option(min=0, help="Keep what unfinished runs wrote, uploads and crash files for so many days.")
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
    from flows.operations.lake_records import without
    from flows.operations.retention import LeftAlone, collect, damage, held_back, leaving, left_alone, removals
    from flows.runs.index import runs_of
    from tasks.lake.store import open_lake

    opened = open_lake(lake)
    keeping, hidden = _keeping(opened, keep, vintages, days, below_minimum), damage(opened)
    visible_lake = without(opened, hidden)
    runs, failed = runs_of(visible_lake), list[LeftAlone]()
    stay = [] if below_minimum else held_back(visible_lake, runs, keeping)
    strange = left_alone(visible_lake, leaving(visible_lake, runs, keeping))
    removed = collect(opened, keeping, failed) if yes else removals(opened, keeping)
    flow_runs: int | None = 0
    if os.environ.get("PREFECT_API_URL"):
        flow_runs = _flow_runs(opened, keeping.runs, remove=yes)
    elif Path(os.environ.get("PREFECT_HOME", opened.root / "prefect")).is_dir():  # to count them takes a server's start
        flow_runs = _flow_runs(opened, keeping.runs, remove=yes) if yes else None
    rows = [{**asdict(removal), "path": str(removal.path)} for removal in removed]
    summary: dict[str, Any] = {
        "removed": yes,
        "bytes": sum(r.bytes for r in removed),
        "flow_runs": flow_runs,
        "lake": rows,
    }
    summary |= {"too_young": [run.run for run in stay], "minimum_days": keeping.minimum_days}
    summary["unreadable"] = [unreadable.reason for unreadable in hidden]
    summary["left_alone"] = [{"path": str(left.path), "why": left.why} for left in (*strange, *failed)]
    if as_json:
        print_json(summary)
    else:
        _print_removals(summary)
    if hidden:
        raise typer.Exit(ExitCode.INTEGRITY)


def _keeping(lake: "Lake", keep: int | None, vintages: int | None, days: float, below: str) -> "Keeping":
    """The retention rules of the command line, and those of the lake's settings where an option is left out.

    Raises:
        SpecError: neither says how many runs are kept, the reason is too long, or the settings are not usable.
    """
    from flows.operations.retention import Keeping
    from flows.runs.lake_settings import FILE, lake_settings

    retention = lake_settings(lake.storage).retention
    runs = keep or retention.keep_runs
    if runs is None:
        raise SpecError(f"how many runs to keep? Give --keep N, or retention.keep_runs in {lake.storage.where(FILE)}")
    if len(below) > _MOST_REASON:
        raise SpecError(f"--below-minimum has {len(below):,} letters, and at most {_MOST_REASON:,} are kept")
    younger = retention.keep_days or 0
    return Keeping(runs, vintages or retention.keep_vintages, days, younger, retention.minimum_days, below.strip())


def _flow_runs(lake: "Lake", keep: int, *, remove: bool) -> int | None:
    """How many flow runs are older than the kept ones; None where a run uses the database. Removed on request."""
    from httpx import HTTPError
    from prefect.client.orchestration import get_client

    from flows.supervision.prefect_server import InUseError, outdated, prefect_api, remove_outdated

    try:
        with prefect_api(lake, wait=False), get_client(sync_client=True) as client:
            return remove_outdated(client, lake, keep) if remove else len(outdated(client, lake, keep))
    except InUseError:
        return None
    except HTTPError as error:
        raise InfrastructureError(
            f"the Prefect server does not answer ({error}); start it, or correct PREFECT_API_URL and "
            "PREFECT_API_AUTH_STRING. The lake itself was processed"
        ) from error


def _print_removals(report: dict[str, Any]) -> None:
    rows = report["lake"]
    print_rows(console, "", [{**row, "bytes": f"{row['bytes']:,}"} for row in rows])
    done = "went" if report["removed"] else "would go; nothing was removed, as --yes was not given"
    flow_runs = "" if report["flow_runs"] is None else f" and {report['flow_runs']} flow runs"
    console.print(f"{len(rows)} items of the lake ({report['bytes']:,} bytes){flow_runs} {done}")
    for left in report["left_alone"]:
        console.print(f"left alone: {left['why']}", markup=False, soft_wrap=True)
    if young := report["too_young"]:
        console.print(
            f"{len(young)} runs stay that are younger than {report['minimum_days']:g} days (minimum_days of the lake's "
            f"settings), such as {young[0]}; --below-minimum REASON removes them, too",
            markup=False,
            soft_wrap=True,
        )
    if report["flow_runs"] is None:
        console.print("the flow runs in the lake's own Prefect database were not looked at; --yes sees to them")
    if reasons := report["unreadable"]:
        words = (
            "cannot be read, so that nobody can say what they need: no partition is listed, and --yes removes nothing"
        )
        console.print(f"{len(reasons)} records {words}", markup=False, soft_wrap=True)
        for reason in reasons[:_NAMED]:
            console.print(f"  {reason}", markup=False, soft_wrap=True)


@commands_app.command(epilog="Example: evenhand replay boston1990-1990-0123456789")
def replay(
    run: RunArgument,
    lake: LakeOption = "data/lake",
    as_json: JsonOption = False,
) -> None:
    """Compute a run again from its manifest and compare every table. Exit 6 if one is not the same."""
    from flows.runs.replay import replay_run
    from flows.runs.run_names import opened

    run = opened(lake, run)[1]
    rows = replay_run(lake, run)
    if as_json:
        print_json(rows)
    else:
        print_rows(console, f"replay of {run}", rows, alone=True)
    if not all(row["equal"] for row in rows):
        raise typer.Exit(ExitCode.INTEGRITY)


# --------------------------------------------------------------------------------------------------------------------
# Command ``serve``: pages over the lake, for whoever reads, notes and signs.


serve_app = typer.Typer()


@serve_app.command(epilog='Example: evenhand serve --lake /srv/evenhand/lake --as "Ann Lee" --sign')
def serve(
    lake: LakeOption = "data/lake",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8321,
    host: Annotated[
        str, typer.Option(help="Address to listen on; one beyond this machine only with --behind-tls.")
    ] = "127.0.0.1",
    behind_tls: Annotated[
        str, typer.Option("--behind-tls", metavar="NAME", help="Name under which a proxy with TLS serves the pages.")
    ] = "",
    open_: Annotated[bool, typer.Option("--open", help="Open them in a browser.")] = False,
    by: Annotated[str, typer.Option("--as", metavar="NAME", help="Who reads, notes and signs.")] = "",
    restricted: Annotated[
        bool,
        typer.Option("--restricted", help="Show rows of persons; every such page is an entry of the log. Needs --as."),
    ] = False,
    sign: Annotated[bool, typer.Option("--sign", help="Show the forms of notes and signatures. Needs --as.")] = False,
    start: Annotated[
        bool, typer.Option("--start", help="Let readers begin audits: send a table, answer the questions, run.")
    ] = False,
    files: Annotated[
        str, typer.Option("--files", metavar="DIR", help="With --start: tables of this folder may be chosen.")
    ] = "",
    upload_mb: Annotated[
        int, typer.Option("--upload-mb", min=1, metavar="N", help="With --start: megabytes of a table at most.")
    ] = 200,
    runs_at_once: Annotated[
        int, typer.Option("--runs-at-once", min=1, metavar="N", help="With --start: runs at a time; others wait.")
    ] = 1,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="Take the token from this file of mode 0600, for a service.")
    ] = None,
) -> None:
    """Serve the lake as pages: runs, how sure they are, who signed them. Prints an address with a token, once.

    Read-only but for entries of the log and, with --start, audits that readers begin. One token is one person: the
    address shows the pages to all who have it.
    """
    from flows.runs import signatures
    from flows.serving.server import serve as begin
    from flows.serving.settings import Settings
    from tasks.lake.log import trusted

    name = signatures.name(by) if by else ""
    trusted()  # a variable that names no key is an error before any page is shown
    reading = (lake, host, port, behind_tls, name, sign, restricted)
    begin(Settings(*reading, start, files, upload_mb, runs_at_once), token_file, browse=open_)
