"""Commands ``alerts``, ``alerts test``, ``alerts send`` and ``overdue``: who was told of what, and what never came."""

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.completion import complete_specs
from flows.cli.options import JsonOption, LakeOption, SetOption, load_spec, overrides
from flows.cli.summary import print_rows
from flows.cli.terminal import console, errors, print_json
from schemas.errors import EvenhandError, IntegrityError, SpecError
from schemas.terms import ExitCode

if TYPE_CHECKING:
    from flows.operations.overdue import Due
    from flows.outcome.alerts.settings import Alerts
    from schemas.audit.spec import AuditSpec
    from tasks.lake.store import Lake

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
    from flows.outcome.alerts import record
    from tasks.lake.store import open_lake

    opened = open_lake(lake)
    found = list(record.rows(record.alerts(opened)[::-1][:limit]))
    if as_json:
        print_json(found)
    elif not found:
        console.print(f"no alert was ever due in the lake {lake}", markup=False, soft_wrap=True)
    else:
        print_rows(console, "", [{name: row[name] for name in row if name != "rule"} for row in found])
    _stop_at_unreadable(opened)


@alerts_app.command("test", epilog="Example: EVENHAND_ALERTS=/etc/evenhand/alerts.yaml evenhand alerts test")
def send_test(as_json: JsonOption = False) -> None:
    """Send one message to each address of EVENHAND_ALERTS, and print what came back. Exit 5 if one did not arrive."""
    from flows.outcome.alerts.delivery import deliver

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
    from flows.outcome.alerts import record
    from flows.outcome.alerts.sending import send_again, send_digests
    from tasks.lake.store import open_lake

    opened, settings = open_lake(lake), _settings()
    again = send_again(opened, settings)
    failed = _print([*record.rows([*again, *send_digests(opened, settings)])], as_json=as_json)
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
    """Tell from the lake whether a run that was expected never came, and send the alert `overdue`. Exit 5 if so.

    No server is asked. If nothing is overdue, EVENHAND_HEARTBEAT_URL is asked for, where it is set. Exit 6, with the
    alert, if a manifest cannot be read and no other run of the audit came in time.
    """
    from flows.operations.overdue import heartbeat, tell_overdue

    if by is not None and spec is None:
        raise SpecError("--by is the rule of one audit; name its spec, as in: evenhand overdue loans.yaml --by quarter")
    read = None if spec is None else load_spec(spec, overrides(None, None, set_ or [])).spec
    with _told(read):
        opened = _opened(lake)
        found = _due(opened, read, by)
    tell_overdue(opened, found)
    if as_json:
        print_json([{**vars(each), "unknown": each.unknown, "message": each.message} for each in found])
    for each in () if as_json else found:
        console.print(each.message, markup=False, soft_wrap=True)
    for warning in (warning for each in found for warning in each.warnings):
        errors.print(f"warning: {warning}", markup=False)
    if any(each.unknown for each in found):
        raise typer.Exit(ExitCode.INTEGRITY)
    if any(each.overdue for each in found):
        raise typer.Exit(ExitCode.INFRASTRUCTURE)
    if why := heartbeat():
        errors.print(f"warning: {why}", markup=False)


def _due(lake: "Lake", spec: "AuditSpec | None", by: str | None) -> "list[Due]":
    from flows.operations.overdue import due, due_of_lake, rule_of

    if spec is not None:
        return [due(lake, spec, rule_of(by) if by else None)]
    found = due_of_lake(lake)
    if not found:
        raise SpecError(
            "no audit of the lake says when a run is due, so nothing was looked at; add "
            "`expected: {every: quarter, by: 10 days}` to a spec, or name a spec and give --by"
        )
    return found


def _opened(root: str) -> "Lake":
    """The lake.

    Raises:
        _NoLakeError: there is none at that place.
        InfrastructureError: it cannot be reached.
    """
    from tasks.lake.store import open_lake

    try:
        return open_lake(root)
    except SpecError as error:
        raise _NoLakeError(str(error)) from error


class _NoLakeError(SpecError):
    """The lake is not where it should be: a fault of the command line, or of a mount."""


@contextmanager
def _told(spec: "AuditSpec | None") -> Iterator[None]:
    """Where the lake cannot be read, that is told to those who wait for the alert `overdue`, each time."""
    from flows.outcome.alerts.sending import tell_unrecorded
    from flows.outcome.ending import Ending, Name

    try:
        yield
    except (EvenhandError, OSError) as error:
        if not isinstance(error, SpecError) or isinstance(error, _NoLakeError):
            about = spec.name if spec is not None else "every audit"
            tell_unrecorded(Ending(Name.OVERDUE, about, f"{about}: nobody can tell whether a run came: {error}"))
        raise


def _settings() -> "Alerts":
    from flows.outcome.alerts.settings import VARIABLE, configured

    found = configured()
    if found is None:
        raise SpecError(f"{VARIABLE} is not set; give it the path of a YAML file with `to` and `rules`")
    return found


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
    from flows.outcome.alerts.record import unreadable

    amiss = unreadable(lake)
    if amiss:
        more = f"\nand {len(amiss) - _NAMED} more: evenhand status --json" if len(amiss) > _NAMED else ""
        raise IntegrityError("\n".join(amiss[:_NAMED]) + more)
