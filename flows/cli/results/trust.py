"""Commands ``verify``, ``signoff``, ``log`` and ``keys``: whether runs are as they were written, and who says so."""

from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli.groups import KEYS, LOG, shortened
from flows.cli.options import JsonOption, LakeOption, RunArgument, RunOption
from flows.cli.summary import print_rows
from flows.cli.terminal import console, print_json

app = typer.Typer()
keys_app = typer.Typer(no_args_is_help=True, help="Make, add and retire keys that sign runs.")
log_app = typer.Typer(invoke_without_command=True)
_Key = Annotated[Path | None, typer.Option("--key", metavar="FILE", help="Private key; EVENHAND_SIGNING_KEY if not.")]


@app.command(epilog="Example: evenhand verify boston1990-1990-0123456789 --key audits.pub")
def verify(
    run: RunArgument,
    lake: LakeOption = "data/lake",
    key: Annotated[
        Path | None,
        typer.Option(metavar="PUB", help="Public key that has to have signed; EVENHAND_TRUSTED_KEYS if left out."),
    ] = None,
    require_signature: Annotated[
        bool, typer.Option("--require-signature", help="Fail where nobody signed the run.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check every file of a run against its sha256, the log of the lake and its signature. Exit 6 if one differs."""
    from flows.runs.naming import opened
    from flows.runs.trust.signed import Demand
    from flows.runs.trust.verification import verify_run

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


@app.command(epilog='Example: evenhand signoff boston1990@1990 --as "Ann Lee" --role prepared --key ann.pem')
def signoff(
    run: RunArgument,
    by: Annotated[str, typer.Option("--as", metavar="NAME", help="Who signs.")],
    role: Annotated[str, typer.Option(help="prepared, reviewed, approved, rejected or withdrawn.")],
    note: Annotated[str, typer.Option(help="A text; rejected and withdrawn need one.")] = "",
    key: _Key = None,
    lake: LakeOption = "data/lake",
    as_json: JsonOption = False,
) -> None:
    """Sign a run in the log of the lake. An approval needs that somebody else prepared it, and that its files verify.

    Without a key the name is as given, and not verified.
    """
    from flows.runs.naming import opened
    from flows.runs.trust.review import SignOff, sign_off
    from tasks.lake import log

    held, run = opened(lake, run)
    entry = sign_off(held, run, SignOff(by, role, note, key))
    if as_json:
        print_json(entry.content())
        return
    how = f"signed with the key {entry.signature.key}" if entry.signature else "name as given, not verified"
    console.print(f"{run}: {entry.role} by {entry.by} ({how}), entry {entry.n}", markup=False, soft_wrap=True)
    _print_head(log.head(held))


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
        print_rows(console, "log of the lake", [_row(entry) for entry in found])


@log_app.command("verify", epilog="Example: evenhand log verify --head 12:3f9c0000000000000000000000000000000000...")
def verify_log(
    lake: LakeOption = "data/lake",
    head: Annotated[
        str | None, typer.Option(metavar="N:SHA256", help="A head that was kept elsewhere, as `log head` printed it.")
    ] = None,
) -> None:
    """Check the chain of the log, and that every run has its entry. Exit 6, and the first entry that does not fit.

    That the end of a log was cut off, or all of it written anew, is seen only with a head that was kept elsewhere.
    """
    from flows.runs.trust.chain import check_log
    from tasks.lake.store import open_lake

    entries = check_log(open_lake(lake), head)
    kept = "" if head else "; keep `evenhand log head` elsewhere, as a chain cannot show that its end was cut off"
    console.print(f"all {entries} entries follow each other, and every run has its own{kept}", soft_wrap=True)


@log_app.command("head", epilog="Example: evenhand log head >> kept-elsewhere.txt")
def print_head(lake: LakeOption = "data/lake") -> None:
    """Print number and digest of the last entry, to be kept elsewhere: in a ticket, a mail, a git tag."""
    from tasks.lake import log
    from tasks.lake.store import open_lake

    head = log.head(open_lake(lake))
    typer.echo(f"{head.n}:{head.sha256}")


def _print_head(head: Any) -> None:
    console.print(f"head of the log, to be kept elsewhere: {head.n}:{head.sha256}", soft_wrap=True)


def _row(entry: Any) -> dict[str, Any]:
    who = f"{entry.by} ({entry.role})" if entry.role else entry.by
    words = entry.text or " -> ".join(each for each in (entry.key, entry.successor) if each)
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
