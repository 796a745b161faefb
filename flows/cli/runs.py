"""Commands about runs: runs, show, stages, report, and their review and trust: signoff, note, verify, log, keys."""

import sys
import webbrowser
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from unicodedata import normalize

import typer

from flows.cli import options
from flows.cli.terminal import console, errors, print_json, print_rows, print_words, visible
from schemas.errors import InfrastructureError, SpecError
from schemas.questions import QUESTIONS, STATES
from schemas.terms import ExitCode, State, Theory

if TYPE_CHECKING:
    from flows.operations.release import Released
    from flows.runs.review import Remediation, Review
    from flows.runs.signatures import Demand
    from tasks.lake import log
    from tasks.lake.store import Lake
    from tasks.reporting.exports.single_file import BudgetLine


# --------------------------------------------------------------------------------------------------------------------
# Commands ``runs`` and ``show``: which runs the lake has, and the first page of one.


app = typer.Typer()


@app.command(epilog="Example: evenhand runs --audit boston1990 --state outside")
def runs(
    lake: options.LakeOption = "data/lake",
    audit: Annotated[
        str | None, typer.Option(help="Only runs of this audit.", autocompletion=options.complete_audits)
    ] = None,
    year: Annotated[
        int | None,
        typer.Option(
            parser=options.year_of,
            metavar="YEAR",
            help="Only runs of this year.",
            autocompletion=options.complete_years,
        ),
    ] = None,
    state: Annotated[State | None, typer.Option(help="Only runs that ended so.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Runs at most.")] = 50,
    as_json: options.JsonOption = False,
) -> None:
    """List the runs of the lake, newest first, each with the state of every question."""
    from flows.runs.index import listed
    from tasks.lake.store import open_lake

    opened = open_lake(lake)
    matching_runs = listed(opened, audit, year, state)
    if not matching_runs:
        audits = sorted({run.audit for run in listed(opened)})
        if not audits:
            raise SpecError(f"the lake {lake} holds no run yet; `evenhand audit` makes one")
        raise SpecError(f"no run of the lake {lake} fits these; it has runs of {', '.join(audits)}")
    printed_runs = matching_runs[:limit]
    if as_json:
        print_json([vars(run) for run in printed_runs])
        return
    parted = any(run.partition for run in printed_runs)
    rows = []
    for run in printed_runs:
        # The questions of each state, the gravest first.
        by_state = {
            state_name.words: [QUESTIONS[Theory(t)].short for t, named in run.theories.items() if named == key]
            for key, state_name in STATES.items()
        }
        states = "; ".join(f"{words}: {', '.join(theories)}" for words, theories in by_state.items() if theories)
        states = states or STATES[State(run.state)].words
        row = {
            "run": run.run,
            "audit": run.audit,
            "year": run.year,
            **({"partition": " ".join(run.partition.values()) if run.partition else ""} if parted else {}),
            "finished": run.finished.replace("T", " ")[:16],
            "state by question": "; ".join([states, *["protected"] * run.protected]),
        }
        rows.append(row)
    print_rows(console, "", rows)
    if len(matching_runs) > limit:
        errors.print(
            f"{len(matching_runs) - limit} older runs are not shown: --limit {len(matching_runs)}", markup=False
        )


@app.command(epilog="Example: evenhand show, or: evenhand show boston1990@1990")
def show(
    run: options.LatestArgument = None, lake: options.LakeOption = "data/lake", as_json: options.JsonOption = False
) -> None:
    """Print the first page of a run: findings by question, what to do next, and what the audit cannot show."""
    from flows.runs.first_page import first_page, left_out, remarks, summary, unfinished
    from flows.runs.run_names import opened

    if run is None and (lines := unfinished(lake)):
        if as_json:
            print_json({"run": None, "lines": lines})
            return
        for line in lines:
            sys.stdout.write(f"{visible(line)}\n")
        return
    opened_lake, name = opened(lake, run)
    page, place = first_page(opened_lake, name)
    if as_json:
        print_json(page)
        return
    for line in summary(page, place, left_out=left_out(opened_lake, name), notes=remarks(opened_lake, name)):
        sys.stdout.write(f"{visible(line)}\n")
    for warning in page["warnings"]:
        errors.print(f"warning: {warning}", markup=False)


# --------------------------------------------------------------------------------------------------------------------
# Command ``stages``: rows, time and memory of every stage of a run.


stages_app = typer.Typer()

_SHOWN = 12
"""Digits of a key in a table; --json has it whole."""
_RESTRICTED = "restricted: not for publication, since the rows are exact numbers, which reports round or withhold\n"


@stages_app.command(epilog="Example: evenhand stages, or: evenhand stages boston1990@1990 --json")
def stages(
    run: options.LatestArgument = None, lake: options.LakeOption = "data/lake", as_json: options.JsonOption = False
) -> None:
    """Print every stage of a run: rows in, out and refused, wall and CPU seconds, peak memory, computed or not.

    `source` is "computed", or "lake" where the lake held the stage before; its cost is then that of the run that made
    it. The view `stage_runs` of `evenhand sql` has the same columns of all runs.
    """
    from flows.runs.index import read_manifest
    from flows.runs.run_names import opened
    from tasks.lake.store import stage_runs

    opened_lake, name = opened(lake, run)
    stage_rows = list(stage_runs(read_manifest(opened_lake, name)))
    if as_json:
        print_json(stage_rows)
    else:
        print_stages(f"stages of {name}", stage_rows)
    sys.stderr.write(_RESTRICTED)


def print_stages(title: str, stage_rows: Sequence[dict[str, Any]]) -> None:
    """Print rows of ``tasks.lake.store`` as a table, with the sums of their times."""
    from tasks.lake.store import OF_PARTITION  # loads pyarrow

    parted = any(row.get(OF_PARTITION[0]) for row in stage_rows)
    names = [name for row in stage_rows[:1] for name in row if parted or name not in OF_PARTITION]
    rows = []
    for row in stage_rows:
        cells = {name: "" if row[name] is None else row[name] for name in names}
        rows.append({name: f"{cell:,.1f}" if isinstance(cell, float) else cell for name, cell in cells.items()})
        if "partition" in cells:
            rows[-1]["partition"] = cells["partition"][:_SHOWN]
    print_rows(console, title, rows, alone=True)
    wall, cpu = (sum(row[name] or 0.0 for row in stage_rows) for name in ("seconds", "cpu_seconds"))
    print_words(console, f"in all {wall:,.1f} s of stages, {cpu:,.1f} CPU s")


@stages_app.command(epilog="Example: evenhand cite, or: evenhand cite boston1990@1990 > evenhand.bib")
def cite(
    run: Annotated[
        str | None, typer.Argument(help="Of which methods papers are cited; all methods if left out.")
    ] = None,
    lake: options.LakeOption = "data/lake",
) -> None:
    """Print BibTeX of this software and of the papers of the methods that a run used."""
    import yaml

    from flows.runs.index import read_manifest, spec_of
    from flows.runs.run_names import opened
    from tasks.pipeline.registry import NAMES, citation

    software = yaml.safe_load(options.CITATION.read_text(encoding="utf-8"))
    names: Sequence[str] = NAMES
    if run is not None:
        opened_lake, name = opened(lake, run)
        running = spec_of(read_manifest(opened_lake, name))["methods"]
        names = [method for method in NAMES if running.get(method) is not None]
    authors = " and ".join(f"{{{author['name']}}}" for author in software["authors"])
    fields = {"author": authors, "title": f"{{{software['title']}}}", "version": software["version"]}
    fields["year"] = str(software["date-released"])[:4]
    lines = [f"  {key} = {{{value}}}," for key, value in fields.items()]
    sys.stdout.write("\n".join(["@software{evenhand,", *lines, "}", ""]) + "\n")
    sys.stdout.write("\n".join(citation(method) for method in names))


# --------------------------------------------------------------------------------------------------------------------
# Command ``evenhand report``: makes the files of a report again, as pages, one page, PDF or workbook; checks them.


report_app = typer.Typer()

Files = Mapping[str, bytes]
FIRST, WORKBOOK = "report.html", "measures.xlsx"


@report_app.command(
    epilog="Example: evenhand report --check, or: evenhand report --single boston.html, "
    "or: evenhand report boston1990-1990-0123456789 --out boston --pdf --paper letter"
)
def report(
    run: options.LatestArgument = None,
    lake: options.LakeOption = "data/lake",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory for the files; one named as the run if left out.")
    ] = None,
    single: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Join the first page and the questions in one file, for e-mail.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the first page as an SVG, to be shown elsewhere.")
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Write report.pdf too: pip install 'evenhand[pdf]'.")] = False,
    xlsx: Annotated[bool, typer.Option("--xlsx", help="Write the workbook, and no page.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Hold each file against its budget; a line a file.")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the first page in the browser.")] = False,
    paper: Annotated[Literal["a4", "letter"], typer.Option(help="Sheets of the PDF.")] = "a4",
    as_json: options.JsonOption = False,
) -> None:
    """Make the report of a run again from the lake: no result is computed, and no file of the run changes.

    With --check, --single or --picture alone no other file is written. Exits with 1 if --check finds a file over
    its budget, and with 5 if the PDF cannot be made, after all else is written.
    """
    from flows.runs import run_names
    from flows.runs.index import read_manifest
    from flows.runs.report_files import picture_anew, report_anew
    from tasks.reporting.exports import single_file

    opened, run = run_names.opened(lake, run)
    lender = read_manifest(opened, run)["spec"]["source"].get("lender_name")
    folder = out or Path(folder_of_report(run, lender or ""))
    joined = [path for path in (single, picture) if path is not None]
    for place in (folder, *(path.parent for path in joined)):
        _require_outside(place, opened.storage.local)
    files = report_anew(opened, run)
    for path in joined:
        if path.resolve() in {(folder / name).resolve() for name in (*files, single_file.PDF)}:
            raise SpecError(f"{path} is the place of another file of the report; name another file")
    alone = (check or bool(joined)) and not (out or pdf or xlsx or open_)
    report_files = {} if alone else {WORKBOOK: files[WORKBOOK]} if xlsx and not open_ else files
    written_files = {folder / name: content for name, content in report_files.items()}
    extra = {single_file.SINGLE: single_file.single(files)} if single is not None else {}
    lacking = None
    try:
        extra |= {single_file.PDF: single_file.pdf(files, paper)} if pdf else {}
    except InfrastructureError as error:  # raised when all else is written
        lacking = error
    places = {single_file.SINGLE: single, single_file.PDF: folder / single_file.PDF}
    written_files |= {place: extra[name] for name, place in places.items() if place is not None and name in extra}
    written_files |= {picture: picture_anew(opened, run)} if picture is not None else {}
    for path in written_files:
        _require_outside(path, opened.storage.local)  # a link may lead there
    _write(opened, run, written_files, folder, files)
    lines = list(single_file.budget_lines({**files, **extra})) if check else []
    _print(run, written_files, lines, as_json)
    if open_:
        webbrowser.open((folder / FIRST).resolve().as_uri())
    if lacking is not None:
        raise lacking
    raise typer.Exit(ExitCode.OUTSIDE if any(line.over for line in lines) else ExitCode.WITHIN)


def folder_of_report(run: str, lender: str) -> str:
    """Name of a run's folder outside the lake; with a lender's name in plain letters, where one is known."""
    from schemas.audit.partition import slug

    return f"{run}-{slug(normalize('NFKD', lender).encode('ascii', 'ignore').decode())}" if lender else run


def _require_outside(place: Path, lake: Path) -> None:
    """Refuse a place in the lake.

    Raises:
        SpecError: it is one.
    """
    if lake.resolve() in (place.resolve(), *place.resolve().parents):
        raise SpecError(f"{place} is in the lake, and runs of a lake are sealed; name a directory outside of it")


def _write(lake: "Lake", run: str, written_files: Mapping[Path, bytes], folder: Path, files: Files) -> None:
    """Write files, and the directories that they lie in, and note in the lake that they were made.

    Raises:
        InfrastructureError: one cannot be written.
    """
    from flows.runs.report_files import note_made, signed_of
    from tasks.lake.local_directory import Directory
    from tasks.reporting.exports import single_file

    contents = {}
    for path, content in written_files.items():
        try:
            Directory(path.parent).write(path.name, content)
        except OSError as error:
            raise InfrastructureError(f"{path} cannot be written ({error.strerror}); name another place") from error
        # The list of files made later has the path below the directory; of a file elsewhere its name alone. A joined
        # page elsewhere with the name of a file of the report is listed as what it is.
        name = single_file.SINGLE if path.name in {*files, single_file.PDF} else path.name
        contents[path.relative_to(folder).as_posix() if path.is_relative_to(folder) else name] = content
    if contents:
        note_made(lake, run, contents)
        signed = signed_of(lake, run)
        if signed.signatures:
            notice = "the first page shows who signed; the report in the lake stays the draft that was signed"
            errors.print(f"{notice}. {signed.words}", markup=False, soft_wrap=True)


def _print(run: str, written_paths: Iterable[Path], lines: Iterable["BudgetLine"], as_json: bool) -> None:
    """The files written, and a line for each that was checked."""
    rows = []
    for line in lines:
        ratios = {}
        for name, has in vars(line.has).items():
            most = vars(line.most)[name]
            ratios[name] = "-" if has is None else f"{has:,}" if most is None else f"{has:,} of {most:,}"
        rows.append({"file": line.path, **ratios, "over": ", ".join(line.over) or "-"})
    if as_json:
        print_json({"run": run, "written": [str(path) for path in written_paths], "checked": rows})
        return
    for path in written_paths:
        sys.stdout.write(f"{visible(str(path))}\n")
    if rows:
        print_rows(console, f"files of run {run}: what each has, of the most it may have", rows, alone=True)


# --------------------------------------------------------------------------------------------------------------------
# Command ``release``: the folder of a run that may leave the house.


release_app = typer.Typer()


@release_app.command(epilog="Example: evenhand release boston1990@1990 --to boston-1990")
def release(
    run: options.RunArgument,
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="Folder to write, which is not there yet.")],
    lake: options.LakeOption = "data/lake",
    jobs: options.JobsOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Write the folder that may leave the house: report, workbook, JSON, public certificate, README.

    Every earlier release of the same rows is taken into account. Where few people would follow from both, the run is
    audited again with coarser numbers, and that run is released; or nothing is, and the cells are named. A league, a
    trend and a restatement are not released, but their runs.
    """
    from flows.operations.release import release as let_out
    from flows.operations.release import require_run
    from flows.runs.run_names import opened
    from tasks.lake.store import open_lake

    require_run(open_lake(lake), run or "")
    print_released(let_out(lake, opened(lake, run)[1], to, jobs), as_json=as_json)


def print_released(done: "Released", *, as_json: bool) -> None:
    """Print what left the house, and on standard error what is coarser in it or withheld whole."""
    if done.withheld:
        from flows.runs.released import Door

        errors.print(f"withheld whole: {Door(withheld=done.withheld).words}", markup=False, soft_wrap=True)
    if done.coarser:
        errors.print(f"restricted: {len(done.coarser)} cells are coarser than in the run that you named", markup=False)
        for cell in done.coarser:
            errors.print(f"  {visible(cell)}", markup=False, soft_wrap=True)
    if as_json:
        print_json({name: value for name, value in vars(done).items() if name != "coarser"})
        return
    signed = f"signed by {done.signed_by}" if done.signed_by else "not signed"
    console.print(f"run {done.run}: {done.files} files in {done.folder}, {signed}", markup=False, soft_wrap=True)
    together = ", ".join(done.beside) or "none"
    words = f"entry {done.entry} of the log; audited together with earlier releases of its rows: {together}"
    console.print(words, markup=False, soft_wrap=True)


# --------------------------------------------------------------------------------------------------------------------
# Commands ``verify``, ``log`` and ``keys``: whether runs are as they were written, and whose keys say so.


trust_app = typer.Typer()
keys_app = typer.Typer(no_args_is_help=True, help="Make, add and retire keys that sign runs.")
log_app = typer.Typer(invoke_without_command=True)
KeyOption = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="Private key; EVENHAND_SIGNING_KEY if not.")
]


@trust_app.command(
    epilog="Example: evenhand verify boston1990-1990-0123456789 --key audits.pub, or: evenhand verify --all"
)
def verify(
    run: Annotated[
        str | None,
        typer.Argument(
            help="Run: its id, the beginning of it, or AUDIT@YEAR; or a released folder.",
            autocompletion=options.complete_runs,
        ),
    ] = None,
    lake: options.LakeOption = "data/lake",
    key: Annotated[
        Path | None,
        typer.Option(metavar="PUB", help="Public key that has to have signed; EVENHAND_TRUSTED_KEYS if left out."),
    ] = None,
    require_signature: Annotated[
        bool, typer.Option("--require-signature", help="Fail where nobody signed the run.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Check every run of the lake, as after a restore.")] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Check every file of a run against its sha256, the log of the lake and its signature. Exit 6 if one differs.

    A released folder is checked alone, by its certificate: no lake is read.
    """
    from flows.runs.released import check_folder, is_folder
    from flows.runs.run_names import opened
    from flows.runs.signatures import Demand, verify_run

    if every == (run is not None):
        raise SpecError("name one run to check, as in: evenhand verify loans@2024, or say --all for every run")
    if every:
        _verify_all(lake, Demand(key, require_signature), as_json=as_json)
        return
    if run is not None and is_folder(run):
        checked = check_folder(Path(run), Demand(key, require_signature))
        if as_json:
            print_json(checked._asdict())
        else:
            message = (
                f"run {checked.run}: all {checked.files} files of {run} are as they were released; {checked.words}"
            )
            console.print(message, markup=False, soft_wrap=True)
        return
    run = opened(lake, run)[1]
    outcome = verify_run(lake, run, Demand(key, require_signature))
    if as_json:
        print_json(outcome)
        return
    message = f"all {outcome['files']} files are as they were written; {outcome['signature']}"
    console.print(f"run {run}: {message}", markup=False, soft_wrap=True)
    if outcome["by_content"]:
        message = (
            f"its manifest, of an earlier version, has no sha256 of partition.json: {outcome['by_content']} of them"
        )
        console.print(f"{message} were compared by content", markup=False)


def _verify_all(lake: str, demand: "Demand", *, as_json: bool) -> None:
    from flows.runs.signatures import verify_every_run

    rows = []
    for run, message, is_intact in verify_every_run(lake, demand):
        rows.append({"run": run, "whole": is_intact, "found": message})
        if not as_json:
            console.print(f"run {run}: {message}" if is_intact else message, markup=False, soft_wrap=True)
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
    from tasks.lake.log import KEY, new_key

    console.print(f"key {new_key(path)}: {path} and {path}.pub; set {KEY}={path} to sign runs", markup=False)


@keys_app.command(epilog='Example: evenhand keys add audits.pem.pub --note "the key before it was lost"')
def add(
    public: Annotated[Path, typer.Argument(help="File of the public key.")],
    note: Annotated[str, typer.Option(help="Why, such as that the key before it was lost.")] = "",
    lake: options.LakeOption = "data/lake",
) -> None:
    """Enter a key in the log of the lake."""
    from flows.runs.signatures import add_key
    from tasks.lake.store import open_lake

    entry = add_key(open_lake(lake), public, note)
    console.print(f"key {entry.key} added, entry {entry.n} of the log", markup=False)


@keys_app.command(epilog="Example: evenhand keys retire audits.pem --by audits-2027.pem.pub")
def retire(
    old: Annotated[Path, typer.Argument(help="Private key that goes.")],
    by: Annotated[Path, typer.Option("--by", metavar="PUB", help="Public key that comes.")],
    lake: options.LakeOption = "data/lake",
) -> None:
    """Retire a key: it signs the one that follows. What it signed before stays valid."""
    from flows.runs.signatures import retire_key
    from tasks.lake.store import open_lake

    entry = retire_key(open_lake(lake), old, by)
    console.print(f"key {entry.key} retired, {entry.successor} follows; entry {entry.n} of the log", markup=False)


@log_app.callback(epilog="Example: evenhand log --run boston1990@1990")
def show_log(
    context: typer.Context,
    run: options.RunOption = None,
    lake: options.LakeOption = "data/lake",
    as_json: options.JsonOption = False,
) -> None:
    """Print the log of the lake, one line an entry, or the entries of a run."""
    if context.invoked_subcommand is not None:
        return
    from flows.runs.run_names import opened
    from tasks.lake import log
    from tasks.lake.store import open_lake

    opened_lake = open_lake(lake)
    log_entries = log.entries(opened_lake, opened(lake, run)[1] if run else None)
    if as_json:
        print_json([entry.model_dump(mode="json", exclude_defaults=True) for entry in log_entries])
    else:
        print_rows(console, "log of the lake", [entry_row(entry) for entry in log_entries], alone=True)


@log_app.command("verify", epilog="Example: evenhand log verify --head 12:3f9c0000000000000000000000000000000000...")
def verify_log(
    lake: options.LakeOption = "data/lake",
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
    from flows.runs.signatures import check_log
    from tasks.lake.store import open_lake

    check = check_log(open_lake(lake), head, signed_after)
    advice = "" if head else "; keep `evenhand log head` elsewhere, as a chain cannot show that its end was cut off"
    console.print(f"all {check.entries} entries follow each other, and every run has its own{advice}", soft_wrap=True)
    for remark in check.remarks:
        console.print(f"note: {remark}", markup=False, soft_wrap=True)


@log_app.command("head", epilog="Example: evenhand log head >> kept-elsewhere.txt")
def print_head(lake: options.LakeOption = "data/lake") -> None:
    """Print number and digest of the last entry, to be kept elsewhere: in a ticket, a mail, a git tag."""
    from tasks.lake import log
    from tasks.lake.store import open_lake

    head = log.head(open_lake(lake))
    typer.echo(f"{head.n}:{head.sha256}")


def entry_row(entry: "log.Entry") -> dict[str, Any]:
    """An entry of the log as a row of a table."""
    author = f"{entry.by} ({entry.role})" if entry.role else entry.by
    words = entry.text or " -> ".join(key for key in (entry.key, entry.successor) if key)
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
        "by": author,
        "text": words,
        "signed": signed,
    }


for part, lines in ((keys_app, options.KEYS), (log_app, options.LOG)):
    options.shortened(part, lines)


# --------------------------------------------------------------------------------------------------------------------
# Commands ``signoff``, ``note`` and ``review``: what people say of runs in the log, and where runs stand.


review_app = typer.Typer()
_AsOption = Annotated[str, typer.Option("--as", metavar="NAME", help="Who says so.")]


@review_app.command(epilog='Example: evenhand signoff boston1990@1990 --as "Ann Lee" --role prepared --key ann.pem')
def signoff(
    run: options.RunArgument,
    by: _AsOption,
    role: Annotated[str, typer.Option(help="prepared, reviewed, approved, rejected or withdrawn.")],
    note: Annotated[str, typer.Option(help="A text; rejected and withdrawn need one.")] = "",
    key: KeyOption = None,
    lake: options.LakeOption = "data/lake",
    as_json: options.JsonOption = False,
) -> None:
    """Sign a run in the log of the lake. An approval needs that another person prepared it, and that its files verify.

    Without a key the name is as given, and not verified. `evenhand report RUN` then makes a report that shows it.
    """
    from flows.runs.review import SignOff, sign_off
    from flows.runs.run_names import opened

    opened_lake, run = opened(lake, run)
    _print_entry(opened_lake, sign_off(opened_lake, run, SignOff(by, role, note, key)), as_json=as_json)


@review_app.command(epilog='Example: evenhand note boston1990@1990 "ask for the files" --as "Ann Lee"')
def note(
    run: options.RunArgument,
    text: Annotated[str, typer.Argument(help="What is noted; what has to be remedied with --owner and --due.")] = "",
    by: _AsOption = "",
    owner: Annotated[str, typer.Option(metavar="NAME", help="Open a remediation: who has to see to it.")] = "",
    due: Annotated[str, typer.Option(metavar="DAY", help="Its last day, such as 2027-01-31.")] = "",
    done: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Close the remediation of this entry; RUN shows that it is done."),
    ] = None,
    is_read: Annotated[bool, typer.Option("--read", help="Enter that you read the run: once a day.")] = False,
    key: KeyOption = None,
    lake: options.LakeOption = "data/lake",
    as_json: options.JsonOption = False,
) -> None:
    """Enter a note on a run in the log of the lake: a text, that you read it, or what has to be remedied by when.

    Entries are never changed and never removed, so name nobody of whom the data are.
    """
    from flows.runs import review
    from flows.runs.run_names import opened

    if bool(owner) + (done is not None) + is_read > 1 or bool(owner) != bool(due):
        raise SpecError("give --owner and --due together, or --done, or --read, or none of them")
    opened_lake, run = opened(lake, run)
    entered = review.Note(by, text, key)
    entry: log.Entry | None
    if owner:
        entry = review.open_remediation(opened_lake, run, entered, owner, due)
    elif done is not None:
        entry = review.close_remediation(opened_lake, run, entered, done)
    else:
        entry = (review.note_read if is_read else review.note)(opened_lake, run, entered)
    if entry is None:  # the log has this reading
        console.print(f"{run}: the log has it already that {by.strip()} read it today", markup=False, soft_wrap=True)
        return
    _print_entry(opened_lake, entry, as_json=as_json)


@review_app.command(epilog="Example: evenhand review, or: evenhand review boston1990@1990")
def review(
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="Run: its id, the beginning of it, or AUDIT@YEAR; all if left out."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 5 where a remediation is overdue.")] = False,
    lake: options.LakeOption = "data/lake",
    as_json: options.JsonOption = False,
) -> None:
    """Print signatures, open remediations and log entries of a run; or the review state of every year's valid run."""
    from flows.runs.review import outstanding, review_of, reviews
    from flows.runs.run_names import opened
    from flows.runs.signatures import sound_entries
    from tasks.lake.store import open_lake

    if run is None:
        opened_lake = open_lake(lake)
        every = sound_entries(opened_lake)
        rows = sorted(reviews(opened_lake, every), key=lambda item: (item.state != "unsigned", item.run))
        runs = [_review_row(row) for row in rows]
        remediations = [_remediation(remediation) for remediation in outstanding(opened_lake, every).open]
        if as_json:
            print_json({"runs": runs, "remediations": remediations})
        else:
            print_rows(console, "review of the valid run of every year", runs)
            if remediations:
                print_rows(console, "remediations that are open", remediations)
        overdue = sum(remediation["state"] == "overdue" for remediation in remediations)
    else:
        opened_lake, run = opened(lake, run)
        every = sound_entries(opened_lake)
        overdue = _print_one(opened_lake, review_of(opened_lake, run, every), every, as_json=as_json)
    if strict and overdue:
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


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


def _print_one(lake: "Lake", review_of_run: "Review", every: "list[log.Entry]", *, as_json: bool) -> int:
    """Prints a run's review state, remarks, open remediations and entries; returns the number of overdue ones."""
    from flows.runs.review import remarks
    from tasks.lake import log

    remediations = [_remediation(remediation) for remediation in review_of_run.open]
    remark_lines = remarks(lake, review_of_run, every)
    rows = [entry_row(entry) for entry in every if entry.run == review_of_run.run]
    head = log.head(lake)
    if as_json:
        review_row = {
            **_review_row(review_of_run),
            "manifest_sha256": review_of_run.manifest_sha256,
            "remarks": remark_lines,
            "remediations": remediations,
        }
        print_json({**review_row, "entries": rows, "head": f"{head.n}:{head.sha256}"})
    else:
        for line in (f"{review_of_run.run}: {review_of_run.state}", *remark_lines):
            console.print(line, markup=False, soft_wrap=True)
        if remediations:
            print_rows(console, "remediations that are open", remediations)
        print_rows(console, "entries of the log", rows)
        _print_head(head)
    return len(review_of_run.overdue)


def _review_row(review_of_run: "Review") -> dict[str, Any]:
    signed_by = "; ".join(f"{entry.role} by {entry.by}, {entry.time[:10]}" for entry in review_of_run.signatures)
    return {
        "run": review_of_run.run,
        "state": review_of_run.state,
        "open": len(review_of_run.open),
        "overdue": len(review_of_run.overdue),
        "signed": signed_by,
    }


def _remediation(remediation: "Remediation") -> dict[str, Any]:
    state = "overdue" if remediation.overdue() else "open"
    return {
        "n": remediation.n,
        "state": state,
        "due": remediation.due,
        "owner": remediation.owner,
        "run": remediation.run,
        "text": remediation.text,
    }
