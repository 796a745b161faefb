"""The command ``evenhand init``: drafts a spec from a table, or lists what a spec has left to confirm."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli.terminal import errors, visible
from schemas.errors import InfrastructureError, SpecError

if TYPE_CHECKING:
    from flows.cli.draft.spec_text import Given

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: evenhand init loans.csv --decision approved --favourable yes -o loans.yaml")
def init(
    file: Annotated[
        Path | None, typer.Argument(help="A delimited table, with a header or without, or Parquet.")
    ] = None,
    decision: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of the decision.")] = None,
    favourable: Annotated[
        list[str] | None, typer.Option(metavar="VALUE", help="Value that favours the applicant; may be given again.")
    ] = None,
    unfavourable: Annotated[
        list[str] | None,
        typer.Option(metavar="VALUE", help="Value that is a denial, if no plain word of one; may be given again."),
    ] = None,
    protected: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Column of a protected attribute; may be given again.")
    ] = None,
    reference: Annotated[
        list[str] | None, typer.Option(metavar="VALUE", help="Group that others are compared with, of each attribute.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the spec here instead of printing it.")
    ] = None,
    check: Annotated[
        Path | None, typer.Option("--check", metavar="SPEC", help="List what a drafted spec has left to confirm.")
    ] = None,
) -> None:
    """Draft an audit spec from a table: guesses are marked CHECK, and you choose the column of the decision."""
    if check is not None:
        _print_unconfirmed(check)
        return
    if file is None:
        raise SpecError("init: no table given; expected FILE, such as evenhand init loans.csv, or --check SPEC")
    from flows.cli.draft.spec_text import Given, at_terminal
    from schemas.audit.file import parse

    answers = Given(
        decision=decision,
        favourable=tuple(favourable or ()),
        unfavourable=tuple(unfavourable or ()),
        protected=tuple(protected or ()),
        reference=tuple(reference or ()),
        asks=at_terminal(),
    )
    text = draft(file, answers, output)
    if output is None:
        sys.stdout.write(text)
    else:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InfrastructureError(
                f"-o {output}: cannot be written ({error.strerror}); give a file in an existing folder"
            ) from error
        marks = len(parse(text).marks)
        errors.print(
            f"{output}: {marks} lines to confirm (evenhand init --check {output}), then evenhand audit {output}",
            markup=False,
        )


def draft(file: Path, options: "Given", output: Path | None = None) -> str:
    """The spec of a table; remarks on the table go to the error stream.

    Raises:
        SpecError: there is no such file, or something has to be given.
        DataQualityError: the file is no table.
    """
    from flows.cli.draft.hmda_spec import hmda_spec
    from flows.cli.draft.spec_text import answered, text
    from flows.cli.draft.table import read_table
    from tasks.ingest.sources.raw import check_regular

    check_regular(file)
    if not file.is_file():
        raise SpecError(f"no file at {str(file)!r}: expected a delimited table or Parquet; give its path")
    if output is not None and output.exists():
        raise SpecError(f"-o {output}: the file exists already; give another name, or remove it")
    of_hmda = hmda_spec(file, output)
    if of_hmda is not None and options.decision is None:
        return of_hmda
    table = read_table(file)
    notes = list(table.notes)
    if table.example is not None:
        notes.append(f"a bundled spec fits this table ({table.example.title}): {table.example.command(file)}")
    for note in notes:
        errors.print(note, markup=False)
    answers = answered(table, options)
    for note in answers.notes(table):
        errors.print(note, markup=False)
    return text(table, answers, output)


def _print_unconfirmed(spec: Path) -> None:
    from schemas.audit.file import parse, spec_text
    from tasks.ingest.sources.raw import check_regular

    check_regular(spec)
    try:
        parsed = parse(spec_text(spec))
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"--check {spec}: no spec can be read there; give a file that `evenhand init` wrote") from error
    except SpecError as error:
        raise SpecError(f"{spec}: {error}") from error
    for mark in parsed.marks:
        sys.stdout.write(visible(f"line {mark.line}  {mark.key}  {mark.why}\n"))
    if not parsed.marks:
        sys.stdout.write("nothing is left to confirm\n")
