"""The command ``evenhand init``: drafts a spec from a table, lists what a spec has left to confirm, and confirms it."""

import json
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final

import typer

from flows.cli.terminal import errors, visible
from schemas.errors import InfrastructureError, SpecError

if TYPE_CHECKING:
    from flows.cli.draft.drafting import Choices, Draft
    from flows.cli.draft.questions import Question
    from flows.cli.draft.reading import File

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: evenhand init loans.csv -o loans.yaml --ask")
def init(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A table: delimited text, Excel, Parquet, JSON lines, Stata, SAS, SPSS, packed or not. With "
            "--confirm: the first KEY."
        ),
    ] = None,
    keys: Annotated[list[str] | None, typer.Argument(help="With --confirm: the keys to confirm; all if none.")] = None,
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
    with_: Annotated[
        Path | None, typer.Option("--with", metavar="FILE", help="A second file with columns of the same applications.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column that both files have; THIS=OTHER if it has two names.")
    ] = None,
    sheet: Annotated[str | None, typer.Option(metavar="NAME", help="Of a workbook: the sheet.")] = None,
    member: Annotated[str | None, typer.Option(metavar="NAME", help="Of a zip: the file in it.")] = None,
    ask: Annotated[
        bool, typer.Option("--ask", help="Put every question, the worst first, and not only the first few.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the spec here instead of printing it.")
    ] = None,
    as_json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the questions here as JSON.")
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check",
            metavar="SPEC",
            help="List what a spec has left to confirm, and what changed in its table, or in FILE of another year.",
        ),
    ] = None,
    confirm: Annotated[
        Path | None, typer.Option("--confirm", metavar="SPEC", help="Take the defaults of a spec, or of some KEYs.")
    ] = None,
) -> None:
    """Draft an audit spec from a table: what is a guess becomes a question with a default that you confirm."""
    if confirm is not None:
        _confirm(confirm, [str(name) for name in (file, *(keys or ())) if name is not None])
        return
    if keys:
        raise SpecError(f"init: one table, and not {keys[0]!r} too; a second file is --with FILE --key NAME")
    if check is not None:
        _check(check, file, as_json)
        return
    if file is None:
        raise SpecError("init: no table given; expected FILE, such as evenhand init loans.csv, or --check SPEC")
    from flows.cli.draft.drafting import Choices
    from flows.cli.draft.hmda_spec import hmda_spec
    from flows.cli.draft.reading import File

    settings = {
        "decision.column": decision,
        "decision.favourable": tuple(favourable or ()),
        "decision.unfavourable": tuple(unfavourable or ()),
        "protected": tuple(protected or ()),
        "reference": tuple(reference or ()),
    }
    choices = Choices({name: value for name, value in settings.items() if value})
    _check_file(file, output)
    of_hmda = hmda_spec(file, output)  # of a submission that is at fault this ends with its fault, whatever is asked
    if of_hmda is not None and decision is None:
        _put(of_hmda, output)
        return
    _write(draft(File(file, member, sheet, with_, key), choices, ask=ask), output, as_json)


def draft(file: "File", choices: "Choices", *, ask: bool = False) -> "Draft":
    """The draft of a table; remarks on the table go to the error stream, and questions to a terminal.

    Args:
        file: the table.
        choices: what the command line gives.
        ask: whether every question is put, and answers are read even from a pipe.

    Raises:
        SpecError: a choice does not fit the table.
        DataQualityError: the file is no table.
    """
    from flows.cli.draft.drafting import drafted
    from flows.cli.draft.reading import read_file

    if ask and file.second is not None and file.key is None:
        file = replace(file, key=_key(file))
    table = read_file(file)
    notes = list(table.notes)
    if table.example is not None:
        notes.append(f"a bundled spec fits this table ({table.example.title}): {table.example.command(file.path)}")
    for note in notes:
        errors.print(note, markup=False)
    for name in [choices.settings.get("decision.column"), *choices.settings.get("protected", ())]:
        if name and name not in table.columns and name in table.lost_names:
            raise SpecError(f"{name}: that record is not the header; the column is called {table.lost_names[name]!r}")
    result = drafted(table, choices)
    can_ask = sys.stdin.isatty() and sys.stderr.isatty()  # the draft itself may go into a file
    return _ask(result, None if ask else _FIRST) if ask or can_ask else result


def _check_file(file: Path, output: Path | None) -> None:
    from tasks.ingest.sources.raw import check_regular

    check_regular(file)
    if not file.is_file():
        raise SpecError(f"no file at {str(file)!r}: expected a table; give its path")
    if output is not None and output.exists():
        raise SpecError(f"-o {output}: the file exists already; give another name, or remove it")


def _write(result: "Draft", output: Path | None, as_json: Path | None) -> None:
    """Write the spec and the questions, and list what there is to confirm.

    Raises:
        SpecError: the draft is written, and lacks the decision, its sides or the groups.
    """
    from flows.cli.draft.questions import lines, open_questions
    from flows.cli.draft.spec_text import text

    pending = open_questions(result)
    _put(text(result, output), output)
    if as_json is not None:
        _save_json(as_json, pending)
    for line in lines(pending):
        errors.print(f"  {line}", markup=False)
    if not result.is_whole:
        raise SpecError(_lacking(result, pending, output))
    if output is not None and not pending:
        errors.print(f"{output}: nothing is left to confirm, then evenhand audit {quote(str(output))}", markup=False)
    elif output is not None:
        errors.print(
            f"{output}: {len(lines(pending))} lines to confirm (evenhand init --confirm {quote(str(output))} takes the "
            f"defaults), then evenhand audit {quote(str(output))}",
            markup=False,
        )


def _lacking(result: "Draft", pending: Sequence["Question"], output: Path | None) -> str:
    """What is missing in a draft, and the command that adds it."""
    name = result.table.path.name
    question = next(question for question in pending if question.default is None)
    command = f"evenhand init {quote(str(result.table.path))}"
    if question.key == "decision":
        first = question.options[0].answer if question.options else "COLUMN"
        command += f" --decision {quote(first)}"
    elif question.key == "sides":
        command += f" --decision {quote(result.decision_column)} --favourable VALUE"
    else:
        command += " --protected COLUMN --reference VALUE"
    where = "" if output is None else f" {output} has CHECK there."
    return f"{name}: {question.text}{where} Give it: {command}"


def _put(written: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(written)
    else:
        _save(output, written, "-o")


def _save(path: Path, text: str, option: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InfrastructureError(
            f"{option} {path}: cannot be written ({error.strerror}); give a file in an existing folder"
        ) from error


def _save_json(path: Path, pending: Sequence["Question"]) -> None:
    _save(path, json.dumps([question.as_json() for question in pending], indent=1, ensure_ascii=False) + "\n", "--json")


def _check(spec: Path, file: Path | None, as_json: Path | None) -> None:
    from flows.cli.draft.review import review

    if file is not None:
        _check_file(file, None)
    state = review(spec, file)
    if as_json is not None:
        _save_json(as_json, state.questions)
    line_of = {mark.key: mark.line for mark in state.marks}
    for weight in sorted({question.weight for question in state.questions}):
        pending = [question for question in state.questions if question.weight == weight]
        keys = [key for question in pending for key in question.keys]
        words = " ".join(question.text for question in pending)
        sys.stdout.write(visible(f"line {min(line_of[key] for key in keys)}  {pending[0].key}  {words}\n"))
    if not state.questions:
        sys.stdout.write("nothing is left to confirm\n")
    for change in state.changes:
        errors.print(visible(f"changed: {change}"), markup=False)
    if file is not None and not state.changes:
        errors.print(f"{file.name} is read by {spec} as the table before it was", markup=False)


def _confirm(spec: Path, keys: Sequence[str]) -> None:
    from flows.cli.draft.review import confirm

    confirmed, stay = confirm(spec, keys)
    errors.print(f"{spec}: {len(confirmed)} keys confirmed", markup=False)
    if stay:
        raise SpecError(
            f"{spec}: {', '.join(stay)} has no default: write the value there, or draft again with --decision, "
            "--favourable and --protected"
        )


# --------------------------------------------------------------------------------------------------------------------
# The questions at a terminal: Enter takes a default, which is shown with what it rests on.


_FIRST: Final = (1, 2, 3, 4, 9)
"""Weights of the questions that are put without ``--ask``; the others stay marks in the file."""
_SHOWN: Final = 8


def _ask(draft: "Draft", weights: Collection[int] | None) -> "Draft":
    """The draft with the answers of the user to the questions of some weights, or to all.

    Raises:
        SpecError: the input ends without an answer.
    """
    from flows.cli.draft.questions import open_questions

    put: set[tuple[str, str]] = set()  # one that an answer changed is put again
    while True:
        chosen = [q for q in open_questions(draft) if weights is None or q.weight in weights]
        pending = [question for question in chosen if (question.key, question.text) not in put]
        if not pending:
            return draft
        put.add((pending[0].key, pending[0].text))
        draft = _answer(draft, pending[0])


def _key(file: "File") -> str:
    """The key of a second file, as the user answers."""
    from flows.cli.draft.questions import join_question
    from flows.cli.draft.reading import keys_of_both

    assert file.second is not None  # noqa: S101
    question = join_question(file.second.name, keys_of_both(file))
    _show(question)
    while not (reply := _chosen(question, _reply(question))):
        pass
    return reply


def _answer(draft: "Draft", question: "Question") -> "Draft":
    from flows.cli.draft.questions import answered

    _show(question)
    while True:
        reply = _chosen(question, _reply(question))
        if not reply:
            continue
        try:
            return answered(draft, {question.key: reply})
        except SpecError as error:
            expected = f"expected 1 to {len(question.options[:_SHOWN])}, or an answer in words"
            errors.print(visible(f"{reply}: {expected} ({error})"), markup=False)


def _show(question: "Question") -> None:
    errors.print(question.text, markup=False)
    for evidence in question.evidence[:_SHOWN]:
        rows = "" if evidence.rows is None else f"{evidence.rows:,} rows"
        parts = (part for part in (evidence.what, rows, evidence.meaning) if part)
        errors.print("    " + visible("  ".join(parts)), markup=False)
    for number, option in enumerate(question.options[:_SHOWN], 1):
        errors.print(visible(f"  {number}  {option.answer}  {option.effect}".rstrip()), markup=False)


def _chosen(question: "Question", reply: str) -> str:
    """The option of a number, else the reply as it is."""
    options, reply = question.options[:_SHOWN], reply.strip()
    return options[int(reply) - 1].answer if reply.isdecimal() and 1 <= int(reply) <= len(options) else reply


def _reply(question: "Question") -> str:
    from rich.prompt import Prompt

    prompt = "Number or answer" + (f" [{question.default}]" if question.default else "")
    try:
        return str(Prompt.ask(prompt, console=errors, default=question.default or "", show_default=False))
    except (EOFError, KeyboardInterrupt) as error:  # its exit code would read as a breach
        raise SpecError("init: no answer; give --decision, --favourable and --protected instead") from error
