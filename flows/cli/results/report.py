"""Command ``evenhand report``: makes the files of a report anew, as pages, one page, PDF or workbook; checks them."""

import sys
import webbrowser
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from flows.cli.options import JsonOption, LakeOption, LatestArgument
from flows.cli.summary import print_rows
from flows.cli.terminal import console, errors, print_json, visible
from schemas.errors import InfrastructureError, SpecError
from schemas.terms import ExitCode

if TYPE_CHECKING:
    from tasks.reporting.pages.budgets import Line
    from tasks.reporting.signatures import Signed

app = typer.Typer()

Files = Mapping[str, bytes]
FIRST, WORKBOOK = "report.html", "measures.xlsx"


@app.command(
    epilog="Example: evenhand report --check, or: evenhand report --single boston.html, "
    "or: evenhand report boston1990-1990-0123456789 --out boston --pdf --paper letter"
)
def report(
    run: LatestArgument = None,
    lake: LakeOption = "data/lake",
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
    as_json: JsonOption = False,
) -> None:
    """Make the report of a run anew from the lake: nothing is computed again, and no file of the run changes.

    With --check, --single or --picture alone no other file is written. Exits with 1 if --check finds a file over
    its budget, and with 5 if the PDF cannot be made, after all else is written.
    """
    from flows.runs import naming
    from flows.runs.report_files import note_made, picture_anew, report_anew, signed_of
    from tasks.reporting.pages import budgets

    opened, run = naming.opened(lake, run)
    folder = out or Path(run)
    joined = [path for path in (single, picture) if path is not None]
    for place in (folder, *(path.parent for path in joined)):
        _require_outside(place, opened.storage.local)
    files = report_anew(opened, run)
    for path in joined:
        _require_apart(path, folder, {*files, budgets.PDF})
    alone = (check or bool(joined)) and not (out or pdf or xlsx or open_)
    wanted = {} if alone else {WORKBOOK: files[WORKBOOK]} if xlsx and not open_ else files
    made = {folder / name: content for name, content in wanted.items()}
    extra, lacking = _extra(files, single is not None, pdf, paper)
    places = {budgets.SINGLE: single, budgets.PDF: folder / budgets.PDF}
    made |= {place: extra[name] for name, place in places.items() if place is not None and name in extra}
    made |= {picture: picture_anew(opened, run)} if picture is not None else {}
    for path in made:
        _require_outside(path, opened.storage.local)  # a link may lead there
    _write(made)
    if made:
        note_made(opened, run, {_name(path, folder, files): content for path, content in made.items()})
        _print_signed(signed_of(opened, run))
    lines = list(budgets.lines({**files, **extra})) if check else []
    _print(run, made, lines, as_json)
    if open_:
        webbrowser.open((folder / FIRST).resolve().as_uri())
    if lacking is not None:
        raise lacking
    raise typer.Exit(ExitCode.BREACH if any(line.over for line in lines) else ExitCode.WITHIN)


def _require_outside(place: Path, lake: Path) -> None:
    """Refuse a place in the lake.

    Raises:
        SpecError: it is one.
    """
    if lake.resolve() in (place.resolve(), *place.resolve().parents):
        raise SpecError(f"{place} is in the lake, whose runs are sealed; name a directory outside of it")


def _extra(
    files: Files, single: bool, pdf: bool, paper: Literal["a4", "letter"]
) -> tuple[dict[str, bytes], InfrastructureError | None]:
    """What is made of pages, by the names of its budgets, and why the PDF is not among it."""
    from tasks.reporting.exports.pdf import pdf as printed
    from tasks.reporting.exports.single import single as joined
    from tasks.reporting.pages import budgets

    made = {budgets.SINGLE: joined(files)} if single else {}
    try:
        return made | ({budgets.PDF: printed(files, paper)} if pdf else {}), None
    except InfrastructureError as error:
        return made, error


def _require_apart(joined: Path, folder: Path, names: Iterable[str]) -> None:
    """Refuse to write the joined page, or the drawing of the first, over a file of the report.

    Raises:
        SpecError: it has the place of one.
    """
    if joined.resolve() in {(folder / name).resolve() for name in names}:
        raise SpecError(f"{joined} is the place of another file of the report; name another file")


def _name(path: Path, folder: Path, files: Files) -> str:
    """A file as the list of files made later has it: its path below the directory; elsewhere its name alone.

    The joined page elsewhere that is named as a file of the report is, is listed as what it is.
    """
    from tasks.reporting.pages import budgets

    if path.is_relative_to(folder):
        return path.relative_to(folder).as_posix()
    return budgets.SINGLE if path.name in {*files, budgets.PDF} else path.name


def _write(made: Mapping[Path, bytes]) -> None:
    """Write files, and the directories that they lie in.

    Raises:
        InfrastructureError: one cannot be written.
    """
    for path, content in made.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError as error:
            raise InfrastructureError(f"{path} cannot be written ({error.strerror}); name another place") from error


def _print_signed(signed: "Signed") -> None:
    """What the new first page says that the one in the lake, a draft, does not; nothing of a run that nobody signed."""
    if signed.signatures:
        said = "the first page shows who signed; the report in the lake stays the draft that was signed"
        errors.print(f"{said}. {signed.words}", markup=False, soft_wrap=True)


def _print(run: str, made: Iterable[Path], lines: Iterable["Line"], as_json: bool) -> None:
    """The files written, and a line for each that was checked."""
    rows = [_row(line) for line in lines]
    if as_json:
        print_json({"run": run, "written": [str(path) for path in made], "checked": rows})
        return
    for path in made:
        sys.stdout.write(f"{visible(str(path))}\n")
    if rows:
        print_rows(console, f"files of run {run}: what each has, of the most it may have", rows)


def _row(line: "Line") -> dict[str, str]:
    """What a file has of each, and the most that it may have."""
    has, most = vars(line.has), vars(line.most)
    told = {name: _of(has[name], most[name]) for name in has}
    return {"file": line.path, **told, "over": ", ".join(line.over) or "-"}


def _of(has: int | None, most: int | None) -> str:
    return "-" if has is None else f"{has:,}" if most is None else f"{has:,} of {most:,}"
