"""Commands ``verify``, ``log`` and ``keys``: whether runs are as they were written, and whose keys say so."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.completion import complete_runs
from flows.cli.groups import KEYS, LOG, shortened
from flows.cli.options import JsonOption, LakeOption, RunOption
from flows.cli.summary import print_rows
from flows.cli.terminal import console, print_json
from schemas.errors import SpecError
from schemas.terms import ExitCode

if TYPE_CHECKING:
    from flows.runs.trust.signed import Demand
    from tasks.lake import log

app = typer.Typer()
keys_app = typer.Typer(no_args_is_help=True, help="Make, add and retire keys that sign runs.")
log_app = typer.Typer(invoke_without_command=True)
KeyOption = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="Private key; EVENHAND_SIGNING_KEY if not.")
]


@app.command(epilog="Example: evenhand verify boston1990-1990-0123456789 --key audits.pub, or: evenhand verify --all")
def verify(
    run: Annotated[
        str | None,
        typer.Argument(help="Run: its id, the beginning of it, or AUDIT@YEAR.", autocompletion=complete_runs),
    ] = None,
    lake: LakeOption = "data/lake",
    key: Annotated[
        Path | None,
        typer.Option(metavar="PUB", help="Public key that has to have signed; EVENHAND_TRUSTED_KEYS if left out."),
    ] = None,
    require_signature: Annotated[
        bool, typer.Option("--require-signature", help="Fail where nobody signed the run.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Check every run of the lake, as after a restore.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check every file of a run against its sha256, the log of the lake and its signature. Exit 6 if one differs."""
    from flows.runs.naming import opened
    from flows.runs.trust.signed import Demand
    from flows.runs.trust.verification import verify_run

    if every == (run is not None):
        raise SpecError("name one run to check, as in: evenhand verify loans@2024, or say --all for every run")
    if every:
        _verify_all(lake, Demand(key, require_signature), as_json=as_json)
        return
    run = opened(lake, run)[1]
    outcome = verify_run(lake, run, Demand(key, require_signature))
    if as_json:
        print_json(outcome)
        return
    told = f"all {outcome['files']} files are as they were written; {outcome['signature']}"
    console.print(f"run {run}: {told}", markup=False, soft_wrap=True)
    if outcome["by_content"]:
        told = f"its manifest, of an earlier version, has no sha256 of partition.json: {outcome['by_content']} of them"
        console.print(f"{told} were compared by content", markup=False)


def _verify_all(lake: str, demand: "Demand", *, as_json: bool) -> None:
    from flows.runs.trust.verification import verify_every_run

    rows = []
    for run, said, whole in verify_every_run(lake, demand):
        rows.append({"run": run, "whole": whole, "found": said})
        if not as_json:
            console.print(f"run {run}: {said}" if whole else said, markup=False, soft_wrap=True)
    broken = sum(not row["whole"] for row in rows)
    if as_json:
        print_json(rows)
    else:
        console.print(f"{len(rows) - broken} of {len(rows)} runs are whole", markup=False)
    if broken:
        raise typer.Exit(ExitCode.INTEGRITY)


@keys_app.command(epilog="Example: evenhand keys new audits.pem")
def new(path: Annotated[Path, typer.Argument(help="File of the private key; PATH.pub gets the public one.")]) -> None:
    """Make a key that signs runs. The private file is for its owner alone, and belongs into no lake and no image."""
    from tasks.lake.signatures import KEY, new_key

    console.print(f"key {new_key(path)}: {path} and {path}.pub; set {KEY}={path} to sign runs", markup=False)


@keys_app.command(epilog='Example: evenhand keys add audits.pem.pub --note "the key before it was lost"')
def add(
    public: Annotated[Path, typer.Argument(help="File of the public key.")],
    note: Annotated[str, typer.Option(help="Why, such as that the key before it was lost.")] = "",
    lake: LakeOption = "data/lake",
) -> None:
    """Enter a key in the log of the lake."""
    from flows.runs.trust.keys import add_key
    from tasks.lake.store import open_lake

    entry = add_key(open_lake(lake), public, note)
    console.print(f"key {entry.key} added, entry {entry.n} of the log", markup=False)


@keys_app.command(epilog="Example: evenhand keys retire audits.pem --by audits-2027.pem.pub")
def retire(
    old: Annotated[Path, typer.Argument(help="Private key that goes.")],
    by: Annotated[Path, typer.Option("--by", metavar="PUB", help="Public key that comes.")],
    lake: LakeOption = "data/lake",
) -> None:
    """Retire a key: it signs the one that follows. What it signed before stays valid."""
    from flows.runs.trust.keys import retire_key
    from tasks.lake.store import open_lake

    entry = retire_key(open_lake(lake), old, by)
    console.print(f"key {entry.key} retired, {entry.successor} follows; entry {entry.n} of the log", markup=False)


@log_app.callback(epilog="Example: evenhand log --run boston1990@1990")
def show(
    context: typer.Context, run: RunOption = None, lake: LakeOption = "data/lake", as_json: JsonOption = False
) -> None:
    """Print the log of the lake, one line an entry, or the entries of a run."""
    if context.invoked_subcommand is not None:
        return
    from flows.runs.naming import opened
    from tasks.lake import log
    from tasks.lake.store import open_lake

    held = open_lake(lake)
    found = log.entries(held, opened(lake, run)[1] if run else None)
    if as_json:
        print_json([entry.model_dump(mode="json", exclude_defaults=True) for entry in found])
    else:
        print_rows(console, "log of the lake", [entry_row(entry) for entry in found])


@log_app.command("verify", epilog="Example: evenhand log verify --head 12:3f9c0000000000000000000000000000000000...")
def verify_log(
    lake: LakeOption = "data/lake",
    head: Annotated[
        str | None, typer.Option(metavar="N:SHA256", help="A head that was kept elsewhere, as `log head` printed it.")
    ] = None,
    signed_after: Annotated[
        str | None,
        typer.Option(metavar="N:SHA256", help="Head of the log when keys were set up: older entries need no key."),
    ] = None,
) -> None:
    """Check chain and signatures of the log, and that every run has its entry. Exit 6, and what does not fit.

    With EVENHAND_TRUSTED_KEYS an unsigned entry that counts fails. A cut end is seen only with a head kept elsewhere.
    """
    from flows.runs.trust.chain import check_log
    from tasks.lake.store import open_lake

    found = check_log(open_lake(lake), head, signed_after)
    kept = "" if head else "; keep `evenhand log head` elsewhere, as a chain cannot show that its end was cut off"
    console.print(f"all {found.entries} entries follow each other, and every run has its own{kept}", soft_wrap=True)
    for remark in found.remarks:
        console.print(f"note: {remark}", markup=False, soft_wrap=True)


@log_app.command("head", epilog="Example: evenhand log head >> kept-elsewhere.txt")
def print_head(lake: LakeOption = "data/lake") -> None:
    """Print number and digest of the last entry, to be kept elsewhere: in a ticket, a mail, a git tag."""
    from tasks.lake import log
    from tasks.lake.store import open_lake

    head = log.head(open_lake(lake))
    typer.echo(f"{head.n}:{head.sha256}")


def entry_row(entry: "log.Entry") -> dict[str, Any]:
    """An entry of the log as a row of a table."""
    who = f"{entry.by} ({entry.role})" if entry.role else entry.by
    words = entry.text or " -> ".join(each for each in (entry.key, entry.successor) if each)
    if entry.owner:
        words = f"{entry.owner} until {entry.due}: {words}"
    elif entry.closes:
        words = f"done, entry {entry.closes}: {words}".removesuffix(": ")
    signed = entry.signature.key if entry.signature else ""
    return {
        "n": entry.n,
        "time": entry.time,
        "event": entry.event,
        "run": entry.run,
        "by": who,
        "text": words,
        "signed": signed,
    }


for part, lines in ((keys_app, KEYS), (log_app, LOG)):
    shortened(part, lines)
