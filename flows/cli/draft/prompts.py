"""Puts the questions of a draft at a terminal: Enter takes a default, which is shown with what it rests on."""

import sys
from typing import Final

from rich.prompt import Prompt

from flows.cli.draft.drafting import Draft
from flows.cli.draft.questions import Question, answered, open_questions
from flows.cli.terminal import errors, visible
from schemas.errors import SpecError

ASKED: Final = (1, 2, 3, 4, 9)
"""Weights of the questions that are put; the others stay marks in the file."""
_SHOWN: Final = 8


def at_terminal() -> bool:
    """Whether questions can be put at a terminal; the draft itself may go into a file."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(draft: Draft) -> Draft:
    """The draft with the answers of the user.

    Raises:
        SpecError: the input ends without an answer.
    """
    put: set[str] = set()
    while True:
        asked = [q for q in open_questions(draft) if q.weight in ASKED and q.key not in put]
        if not asked:
            return draft
        put.add(asked[0].key)
        draft = _answer(draft, asked[0])


def _answer(draft: Draft, question: Question) -> Draft:
    errors.print(visible(question.text), markup=False)
    for evidence in question.evidence[:_SHOWN]:
        rows = "" if evidence.rows is None else f"{evidence.rows:,} rows"
        parts = (part for part in (evidence.what, rows, evidence.meaning) if part)
        errors.print("    " + visible("  ".join(parts)), markup=False)
    options = question.options[:_SHOWN]
    for number, option in enumerate(options, 1):
        errors.print(visible(f"  {number}  {option.answer}  {option.effect}".rstrip()), markup=False)
    while True:
        reply = _reply(question).strip()
        if reply.isdecimal() and 1 <= int(reply) <= len(options):
            reply = options[int(reply) - 1].answer
        if not reply:
            continue
        try:
            return answered(draft, {question.key: reply})
        except SpecError as error:
            expected = f"expected 1 to {len(options)}, or an answer in words"
            errors.print(visible(f"{reply}: {expected} ({error})"), markup=False)


def _reply(question: Question) -> str:
    prompt = "Number or answer" + (f" [{question.default}]" if question.default else "")
    try:
        return str(Prompt.ask(prompt, console=errors, default=question.default or "", show_default=False))
    except (EOFError, KeyboardInterrupt) as error:  # its exit code would read as a breach
        raise SpecError("init: no answer; give --decision, --favourable and --protected instead") from error
