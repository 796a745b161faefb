"""What a draft has to be told: asked for at a terminal, else an error that names the likely answers and the words."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Final

import typer

from flows.cli.draft import protected
from flows.cli.draft.decision import BEST, Candidate, Sides, candidates, chosen, given_sides, guessed_sides
from flows.cli.draft.drafting import Answers
from flows.cli.draft.table import Table
from schemas.errors import SpecError

_OFFERED: Final = 8
"""Answers that are listed at a terminal; any other may be written."""


@dataclass(frozen=True)
class Given:
    """The options of the command."""

    decision: str | None = None
    favourable: tuple[str, ...] = ()
    unfavourable: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()
    asks: bool = False
    """Whether somebody sits at a terminal and can answer."""


def at_terminal() -> bool:
    """Whether questions can be asked: the draft itself may go into a file."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def answered(table: Table, given: Given) -> Answers:
    """The decision, its sides and the protected attributes: given, told by words, or asked for.

    Raises:
        SpecError: an option does not fit the table; or something is not given and nobody can be asked.
    """
    decision = _decision(table, given)
    sides = _sides(table, decision, given)
    names = list(given.protected) or protected.columns(table, decision.column) or [_attribute(table, decision, given)]
    found = protected.attributes(table, names, given.reference, bool(given.protected))
    return Answers(decision, sides, found)


def _decision(table: Table, given: Given) -> Candidate:
    if given.decision is not None:
        return chosen(table, given.decision)
    best = candidates(table)
    if not best:
        raise SpecError(
            f"{table.path.name}: no column could be the decision; expected one of 2 to 10 values, such as approved and "
            "denied: give it with --decision COLUMN, or add it to the table"
        )
    if given.asks:
        return chosen(
            table, _asked("Which column is the decision?", [c.column for c in best], [c.said() for c in best])
        )
    first = best[0].column
    shown = "; ".join(each.said() for each in best[:BEST])
    raise SpecError(
        f"{table.path.name}: which column is the decision? Likeliest: {shown}. "
        f"Give it: evenhand init {quote(str(table.path))} --decision {quote(first)} --favourable VALUE"
    )


def _sides(table: Table, decision: Candidate, given: Given) -> Sides:
    if given.unfavourable and not given.favourable:
        raise SpecError("--unfavourable: which value favours the applicant? Give it, too: --favourable VALUE")
    if given.favourable:
        return given_sides(decision, given.favourable, given.unfavourable)
    guess = guessed_sides(decision)
    if guess is not None:
        return guess
    values = list(decision.values)
    if given.asks:
        shown = [f"{value} ({rows:,} rows)" for value, rows in decision.values.items()]
        return given_sides(
            decision, [_asked(f"Which value of {decision.column} favours the applicant?", values, shown)]
        )
    shown = [f"{value} ({rows:,} rows)" for value, rows in list(decision.values.items())[:4]]
    raise SpecError(
        f"--decision {decision.column}: which value favours the applicant? {', '.join(shown)}. "
        f"Give it: evenhand init {quote(str(table.path))} --decision {quote(decision.column)} --favourable {values[0]}"
    )


def _attribute(table: Table, decision: Candidate, given: Given) -> str:
    names = protected.possible(table, decision.column)
    if given.asks and names:
        return _asked("No column names a protected attribute. Which one tells the groups?", names, names)
    shown = f"; columns of a few values: {', '.join(names[:6])}" if names else ""
    raise SpecError(
        f"{table.path.name}: no column names a protected attribute (race, sex, age ...){shown}. "
        "Give one: --protected COLUMN --reference VALUE"
    )


def _asked(question: str, answers: Sequence[str], shown: Sequence[str]) -> str:
    """One of some answers, by its number or as it is written. There is no answer that Enter gives."""
    for i, each in enumerate(shown[:_OFFERED], 1):
        typer.echo(f"  {i}  {each}", err=True)
    while True:
        try:
            said = str(typer.prompt(f"{question} Number or name", err=True)).strip()
        except typer.Abort as error:  # its exit code would read as a breach
            raise SpecError("init: no answer; give --decision, --favourable and --protected instead") from error
        if said in answers:
            return said
        if said.isdecimal() and 1 <= int(said) <= min(len(answers), _OFFERED):
            return answers[int(said) - 1]
        typer.echo(f"{said}: expected 1 to {min(len(answers), _OFFERED)}, or a name as in the table", err=True)
