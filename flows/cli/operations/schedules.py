"""Commands ``schedules``, ``schedules pause`` and ``schedules resume``: what a server is to run, and when."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli.options import JsonOption
from flows.cli.summary import print_rows
from flows.cli.terminal import console, print_json
from schemas.errors import SpecError
from schemas.terms import ExitCode

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

schedules_app = typer.Typer(invoke_without_command=True)
_Name = Annotated[str, typer.Argument(help="Name of a schedule, or of a deployment for all of its schedules.")]


@schedules_app.callback(epilog="Example: PREFECT_API_URL=http://127.0.0.1:4200/api evenhand schedules")
def schedules(ctx: typer.Context, as_json: JsonOption = False) -> None:
    """List the schedules of the server: next date, last run and its state. Exit 5 if one is overdue."""
    if ctx.invoked_subcommand is not None:
        return
    from flows.operations.schedules.planned import PAUSED, planned

    with asked() as client:
        found = planned(client)
    if as_json:
        print_json([asdict(each) for each in found])
    elif not found:
        console.print("the server has no schedule; register deployments/prefect.yaml", markup=False)
    else:
        rows = [
            {
                "schedule": each.name,
                "deployment": each.deployment,
                "when": each.when,
                "zone": each.zone,
                "next": each.next if each.active else PAUSED,
                "last": each.last,
                "state": each.state,
                "overdue": each.overdue,
            }
            for each in found
        ]
        print_rows(console, "", rows)
    if any(each.overdue for each in found):
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
    from flows.operations.schedules.asking import hasty_client

    with hasty_client(seconds=10, retries=1) as client:
        yield client


def _switch(name: str, *, active: bool) -> None:
    from flows.operations.schedules.planned import switch

    with asked() as client:
        for slug in switch(client, name, active=active):
            console.print(f"{slug}: {'on' if active else 'off'}", markup=False)
