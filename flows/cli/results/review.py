"""Commands ``signoff``, ``note`` and ``review``: what people say of runs in the log, and where runs stand."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.options import JsonOption, LakeOption, RunArgument
from flows.cli.results.trust import KeyOption, entry_row
from flows.cli.summary import print_rows
from flows.cli.terminal import console, print_json
from schemas.errors import SpecError
from schemas.terms import ExitCode

if TYPE_CHECKING:
    from flows.runs.trust.notes import Note, Remediation
    from flows.runs.trust.review import Review
    from tasks.lake import log
    from tasks.lake.store import Lake

app = typer.Typer()
_AsOption = Annotated[str, typer.Option("--as", metavar="NAME", help="Who says so.")]


@app.command(epilog='Example: evenhand signoff boston1990@1990 --as "Ann Lee" --role prepared --key ann.pem')
def signoff(
    run: RunArgument,
    by: _AsOption,
    role: Annotated[str, typer.Option(help="prepared, reviewed, approved, rejected or withdrawn.")],
    note: Annotated[str, typer.Option(help="A text; rejected and withdrawn need one.")] = "",
    key: KeyOption = None,
    lake: LakeOption = "data/lake",
    as_json: JsonOption = False,
) -> None:
    """Sign a run in the log of the lake. An approval needs that somebody else prepared it, and that its files verify.

    Without a key the name is as given, and not verified. `evenhand report RUN` then makes a report that shows it.
    """
    from flows.runs.naming import opened
    from flows.runs.trust.signoff import SignOff, sign_off

    held, run = opened(lake, run)
    _print_entry(held, sign_off(held, run, SignOff(by, role, note, key)), as_json=as_json)


@app.command(epilog='Example: evenhand note boston1990@1990 "ask for the files" --as "Ann Lee"')
def note(
    run: RunArgument,
    text: Annotated[str, typer.Argument(help="What is noted; what has to be remedied with --owner and --due.")] = "",
    by: _AsOption = "",
    owner: Annotated[str, typer.Option(metavar="NAME", help="Open a remediation: who has to see to it.")] = "",
    due: Annotated[str, typer.Option(metavar="DAY", help="Its last day, such as 2027-01-31.")] = "",
    done: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Close the remediation of this entry; RUN shows that it is done."),
    ] = None,
    read: Annotated[bool, typer.Option("--read", help="Enter that you read the run: once a day.")] = False,
    key: KeyOption = None,
    lake: LakeOption = "data/lake",
    as_json: JsonOption = False,
) -> None:
    """Enter a note on a run in the log of the lake: a text, that you read it, or what has to be remedied by when.

    Entries are never changed and never removed, so name nobody of whom the data are.
    """
    from flows.runs.naming import opened
    from flows.runs.trust.notes import Note

    if bool(owner) + (done is not None) + read > 1 or bool(owner) != bool(due):
        raise SpecError("give --owner and --due together, or --done, or --read, or none of them")
    held, run = opened(lake, run)
    entry = _noted(held, run, Note(by, text, key), (owner, due, done, read))
    if entry is None:
        console.print(f"{run}: the log has it already that {by.strip()} read it today", markup=False, soft_wrap=True)
        return
    _print_entry(held, entry, as_json=as_json)


@app.command(epilog="Example: evenhand review, or: evenhand review boston1990@1990")
def review(
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="Run: its id, the beginning of it, or AUDIT@YEAR; all if left out."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 5 where a remediation is overdue.")] = False,
    lake: LakeOption = "data/lake",
    as_json: JsonOption = False,
) -> None:
    """Print who signed a run, what is open and its entries; or where the valid run of every year stands."""
    from flows.runs.naming import opened
    from flows.runs.trust.chain import sound_entries
    from flows.runs.trust.review import outstanding, review_of, reviews
    from tasks.lake.store import open_lake

    if run is None:
        held = open_lake(lake)
        every = sound_entries(held)
        overdue = _print_all(reviews(held, every), outstanding(held, every).open, as_json=as_json)
    else:
        held, run = opened(lake, run)
        every = sound_entries(held)
        overdue = _print_one(held, review_of(held, run, every), every, as_json=as_json)
    if strict and overdue:
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


def _noted(lake: "Lake", run: str, said: "Note", what: tuple[str, str, int | None, bool]) -> "log.Entry | None":
    """The entry of a note; None of a reading that the log has."""
    from flows.runs.trust import notes

    owner, due, done, read = what
    if owner:
        return notes.open_remediation(lake, run, said, owner, due)
    if done is not None:
        return notes.close_remediation(lake, run, said, done)
    return notes.note_read(lake, run, said) if read else notes.note(lake, run, said)


def _print_entry(lake: "Lake", entry: "log.Entry", *, as_json: bool) -> None:
    from tasks.lake import log

    if as_json:
        print_json(entry.model_dump(mode="json", exclude_defaults=True))
        return
    what = entry.role or ("remediation done" if entry.closes else entry.event)
    how = f"signed with the key {entry.signature.key}" if entry.signature else "name as given, not verified"
    console.print(f"{entry.run}: {what} by {entry.by} ({how}), entry {entry.n}", markup=False, soft_wrap=True)
    _print_head(log.head(lake))


def _print_head(head: Any) -> None:
    console.print(f"head of the log, to be kept elsewhere: {head.n}:{head.sha256}", soft_wrap=True)


def _print_all(found: "Iterable[Review]", open_: "Iterable[Remediation]", *, as_json: bool) -> int:
    """The valid runs, unsigned ones first, and what is open; gives how many remediations are overdue."""
    runs = sorted(found, key=lambda each: (each.state != "unsigned", each.run))
    left = [_remediation(each) for each in open_]
    if as_json:
        print_json({"runs": [_row(each) for each in runs], "remediations": left})
    else:
        print_rows(console, "review of the valid run of every year", [_row(each) for each in runs])
        if left:
            print_rows(console, "remediations that are open", left)
    return sum(each["state"] == "overdue" for each in left)


def _print_one(lake: "Lake", found: "Review", every: "list[log.Entry]", *, as_json: bool) -> int:
    """A run: where it stands, what else is to be known, what is open and its entries; gives how many are overdue."""
    from flows.runs.trust.review import remarks
    from tasks.lake import log

    left, said = [_remediation(each) for each in found.open], remarks(lake, found, every)
    rows = [entry_row(entry) for entry in every if entry.run == found.run]
    head = log.head(lake)
    if as_json:
        told = {**_row(found), "manifest_sha256": found.manifest_sha256, "remarks": said, "remediations": left}
        print_json({**told, "entries": rows, "head": f"{head.n}:{head.sha256}"})
    else:
        for line in (f"{found.run}: {found.state}", *said):
            console.print(line, markup=False, soft_wrap=True)
        if left:
            print_rows(console, "remediations that are open", left)
        print_rows(console, "entries of the log", rows)
        _print_head(head)
    return len(found.overdue)


def _row(each: "Review") -> dict[str, Any]:
    who = "; ".join(f"{entry.role} by {entry.by}, {entry.time[:10]}" for entry in each.signatures)
    return {"run": each.run, "state": each.state, "open": len(each.open), "overdue": len(each.overdue), "signed": who}


def _remediation(each: "Remediation") -> dict[str, Any]:
    state = "overdue" if each.overdue() else "open"
    return {"n": each.n, "state": state, "due": each.due, "owner": each.owner, "run": each.run, "text": each.text}
