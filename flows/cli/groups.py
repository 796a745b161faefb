"""The commands in the order of their use, in groups, each in one line; what is printed without a command."""

from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Audit": {
        "audit": "Run one audit: what was found, and the report.",
        "init": "Draft an audit spec from a table.",
        "show": "Print the first page of a run.",
        "report": "Make the files of a run's report anew, or open it.",
        "serve": "Serve the lake as pages: read, note and sign.",
    },
    "Years": {
        "plan": "Print what a back-fill would run, and its cost.",
        "backfill": "Audit every year that is not in the lake yet.",
        "status": "Print how every year stands.",
        "trend": "Print the measures year by year, and their page.",
        "league": "Hold the partitions of a year beside each other.",
        "restatement": "Print what new data of a year changed.",
        "data": "List, fetch, add and describe editions of HMDA.",
    },
    "Results": {
        "runs": "List the runs of the lake, newest first.",
        "measures": "Print the figures of a run.",
        "findings": "Count what was found, or pack files to read.",
        "verdicts": "Print the state of every question and group.",
        "adjusted": "Print the denial ladder of a run.",
        "sql": "Query the tables of the lake.",
        "stages": "Print rows, time and memory of every stage.",
    },
    "Trust": {
        "verify": "Check every file of a run: digests, log, signature.",
        "signoff": "Sign a run as prepared, reviewed or approved.",
        "note": "Enter a note, a reading or a remediation.",
        "review": "Print who signed runs, and what is open.",
        "log": "Print or check the log of the lake.",
        "keys": "Make, add and retire keys that sign runs.",
        "replay": "Compute a run again, and compare.",
        "disclose": "Print what is withheld, and why. Restricted.",
        "protect": "Mark a run as published.",
    },
    "Operate": {
        "doctor": "Examine this machine and the lake.",
        "worker": "Become a worker of a Prefect server.",
        "schedules": "List what a server is to run, pause or resume it.",
        "alerts": "List the alerts that were sent, test or resend them.",
        "overdue": "Tell whether an expected run never came.",
        "gc": "List what no kept run needs, or remove it.",
    },
    "Research": {
        "reproduce": "Repeat a paper's experiment, and compare.",
        "bench": "Time the same work two ways.",
    },
}
DATA = {
    "list": "Print the editions held, and those published.",
    "fetch": "Download an edition from its publisher.",
    "add": "Take in files that you have.",
    "repack": "Sort a held year by state and lender.",
    "describe": "Print the layout of a file, and its departures.",
    "twin": "Write a synthetic year, and the truth about it.",
}
KEYS = {
    "new": "Make a key that signs runs.",
    "add": "Enter a key in the log of the lake.",
    "retire": "Retire a key in favour of another.",
}
LOG = {
    "verify": "Check the chain, and that every run has its entry.",
    "head": "Print the digest of the last entry, to be kept elsewhere.",
}
ALERTS = {
    "test": "Send one message to each address.",
    "send": "Send digests, and what was not delivered.",
}
SCHEDULES = {
    "pause": "Switch a schedule off.",
    "resume": "Switch a schedule on again.",
}
OTHERS = "Others"
"""Where a command stands that no group names."""
BEGIN = """\
Begin with:
  evenhand audit                      the bundled audit, Boston 1990
  evenhand init TABLE -o SPEC.yaml    a draft for a table of your own
  evenhand COMMAND --help             every option, with an example
"""


class Grouped(TyperGroup):
    """Prints the commands below the headings of their groups, each with its whole line."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 the library gives it
        """The names, group by group."""
        known = [name for group in GROUPS.values() for name in group]
        return [*(n for n in known if n in self.commands), *(n for n in self.commands if n not in known)]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """A section for each group."""
        left = {name: self.commands[name] for name in self.list_commands(ctx) if not self.commands[name].hidden}
        for title, group in {**GROUPS, OTHERS: left}.items():
            rows = [(name, left.pop(name)) for name in tuple(group) if name in left]
            if rows:
                with formatter.section(title):
                    _write(formatter, rows)


class Listed(TyperGroup):
    """Prints the commands with their whole lines."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 the library gives it
        """One section."""
        with formatter.section("Commands"):
            _write(formatter, self.commands.items())


def shortened(app: typer.Typer, lines: Mapping[str, str]) -> typer.Typer:
    """The same, with the line of each command in a list; a command of its own name is named as its function."""
    for command in app.registered_commands:
        name = command.name or (command.callback.__name__ if command.callback else "")
        command.short_help = lines.get(name, command.short_help)
    return app


def begin(
    ctx: typer.Context,
    version_: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False,
) -> None:
    """Audits lending decisions for counterfactual unfairness."""
    if version_:
        typer.echo(f"evenhand {version('evenhand')}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(f"{ctx.get_help()}\n\n{BEGIN}", nl=False)


def _write(formatter: Any, rows: Iterable[tuple[str, Any]]) -> None:
    for name, command in rows:
        formatter.write(f"  {name:<12} {command.get_short_help_str(62)}\n")
