"""Text of a drafted spec, and the questions at a terminal."""

import json
import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Final

import typer
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from flows.cli.draft import columns
from flows.cli.draft.columns import (
    BEST,
    Attribute,
    Candidate,
    Entry,
    Sides,
    candidates,
    chosen,
    given_sides,
    guessed_sides,
)
from flows.cli.draft.table import DELIMITERS, Table
from flows.cli.terminal import visible
from schemas.errors import SpecError

# --------------------------------------------------------------------------------------------------------------------
# The text of a drafted spec: the values that are known, the guesses with their marks, and the reasons below.


LIMITS: Final = "{direct: 0.02, total: 0.05, outcome: 0.80, recourse: {difference: 0.05, ratio: 0.80}, reasons: null}"
WITHOUT: Final = (
    ("fgce", "no column can change yet; once one can: `fgce: {}`"),
    ("raguel", "no column can change yet; once some can: `raguel: {}`, with `recourse: {weight: ...}` of each"),
    ("cst", "no causal graph; with `causal_graph: {edges: [[CAUSE, EFFECT], ...]}`: `cst: {}`"),
    ("gcfn", "no column has the role mediator, which the protected attribute moves; once one has: `gcfn: {}`"),
    ("cec", "no column has the role financial, by which borrowers are comparable; once one has: `cec: {}`"),
)
"""Methods that a draft cannot run: what it lacks is nothing that a table tells."""
_NOT_SAID: Final = 2024
_TEMPLATES: Final = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
    autoescape=False,  # noqa: S701 YAML, quoted by _quoted
    keep_trailing_newline=True,
)
_COMPLETE: Final = 0.9


@dataclass(frozen=True)
class Answers:
    """The decision, its sides and the protected attributes, given by the user or guessed."""

    decision: Candidate
    sides: Sides
    attributes: Sequence[Attribute]

    def notes(self, table: Table) -> Iterator[str]:
        """What a user should read before the audit: joined spellings, values that are no decision, rows left out."""
        for values in self.sides.spellings():
            yield f"{self.decision.column}: {_listed(values)} are spellings of one value"
        if self.sides.why_denials:
            yield f"{self.decision.column}: {self.sides.why_denials}"
        entries = self.entries(table)
        if all(entry.excluded for entry in entries):
            yield "no column is left as a feature: an audit compares approval rates alone"
        yield from self.incomplete_groups(table, entries)

    def entries(self, table: Table) -> list[Entry]:
        """An entry for every column but the decision."""
        name = self.decision.column
        names = [attribute.column for attribute in self.attributes]
        return columns.drafted_entries(table, name, self.sides, names, columns.find_row_id(table, name))

    def incomplete_groups(self, table: Table, entries: Sequence[Entry]) -> Iterator[str]:
        """The groups that lose half of their rows or more because features are missing."""
        for attribute in self.attributes:
            yield from columns.incomplete_groups(table, self.decision.column, self.sides, entries, attribute.column)


def text(table: Table, answers: Answers, spec: Path | None = None) -> str:
    """The spec of a table as YAML; ``spec`` is the file that it will lie in."""
    name, sides = answers.decision.column, answers.sides
    row_id = columns.find_row_id(table, name)
    entries = answers.entries(table)
    year = columns.find_year(table)
    used, rows = columns.complete(table, name, sides, entries)
    after = list(columns.left_out(entries))
    lossy_groups = list(answers.incomplete_groups(table, entries))
    missing = ""
    if used < _COMPLETE * rows or lossy_groups:
        missing = f"{used:,} of {rows:,} rows have every feature, the others are left out"
        missing = "; ".join([missing, *lossy_groups, "fewer features leave out fewer rows"])
    year_check = "" if year and year[1] else "the year of most rows; keep its rows alone, or leave it"
    protected = []
    for attribute in answers.attributes:
        only = f", reported_only: {_listed(attribute.reported_only)}" if attribute.reported_only else ""
        column = _quoted(attribute.column)
        line = f"name: {column}, columns: [{column}], reference: {_quoted(attribute.reference)}{only}"
        protected.append({"text": line, "check": _check(attribute.why)})
    column_lines = []
    for entry in entries:
        more = ", role: excluded" if entry.excluded else f", order: {_listed(entry.order)}" if entry.order else ""
        column_lines.append({"name": _quoted(entry.name), "type": entry.type, "more": more, "why": _line(entry.why)})
    stem = table.path.name.split(".")[0]
    values: dict[str, Any] = {
        "file": _line(table.path.name),
        "rows": f"{len(table.frame):,}",
        "count": len(table.names),
        **_source_values(table, spec),
        "notes": [_line(f"A bundled spec fits: {table.example.command(table.path)}")] if table.example else [],
        "name": "".join(ch if ch.isalnum() and ch.isascii() else "-" for ch in stem).strip("-")[:64] or "audit",
        "title": _quoted(stem),
        "year": year[0] if year else _NOT_SAID,
        "year_check": _check(year_check if year else "the year of the decisions; no column tells it"),
        "row_id": "null" if row_id is None else _quoted(row_id),
        "decision": _quoted(name),
        "favourable": _listed(sides.favourable),
        "unfavourable": _listed(sides.unfavourable),
        "spellings": [_line(_listed(values)) for values in sides.spellings()],
        "sides_check": _check(sides.why),
        "denials_check": _check(sides.why_denials),
        "protected": protected,
        "missing_check": _check(missing),
        "no_feature": all(entry.excluded for entry in entries),
        "limits": LIMITS,
        "after": f"; {len(after)} are left out as known after the decision" if after else "",
        "after_names": textwrap.wrap(_line(", ".join(after)), 110),
        "columns": column_lines,
        "without": WITHOUT,
    }
    return _TEMPLATES.get_template("spec.yaml.j2").render(**values)


def _source_values(table: Table, spec: Path | None) -> dict[str, Any]:
    """The values about the source of the table."""
    source, example, path = table.source, table.example, table.path
    if spec is not None and not path.is_absolute():
        path = Path(os.path.relpath(path, spec.parent))  # from the folder of the spec
    header = "no header" if source.header else "with a header"
    lines = []
    if source.kind == "csv":
        delimiter = _quoted(source.delimiter) if source.delimiter != chr(9) else json.dumps(source.delimiter)
        lines.append(f"delimiter: {delimiter}")
    lines += [f"header: {_listed(source.header)}"] if source.header else []
    lines += [f"encoding: {source.encoding}"] if source.encoding != "utf-8" else []
    lines += ["multiline: true"] if source.multiline else []
    lines += [
        f"missing: {_listed(source.missing)} # texts that mean a missing value",
        "exempt: [Exempt] # texts that mean exempt from reporting",
        "# keep: {column: [value]}   rows with other values are refused, with that reason",
    ]
    why = ["cells in quotes go over several lines, and none by a stray quote"] if source.multiline else []
    if source.header and not (example is not None and source.header == example.header):
        why.append("the file has no header: name its columns")
    return {
        "parted": "" if source.kind == "parquet" else f", between {DELIMITERS[source.delimiter]}, {header}",
        "kind": source.kind,
        "path": _quoted(str(path)),
        "source": lines,
        "source_check": _check("; ".join(why)),
    }


def _check(why: str) -> str:
    return f" # CHECK: {_line(why)}" if why else ""


def _line(words: str) -> str:
    """Words of a comment, on one line and without control characters."""
    return visible(" ".join(words.split()))


def _quoted(words: str) -> str:
    """A YAML scalar that reads back as this very text, and works no terminal."""
    if all(ch.isprintable() for ch in words):
        return "'" + words.replace("'", "''") + "'"
    escaped = (f"\\{ch}" if ch in '"\\' else ch if ch.isprintable() else f"\\U{ord(ch):08x}" for ch in words)
    return '"' + "".join(escaped) + '"'


def _listed(values: Sequence[str]) -> str:
    return "[" + ", ".join(_quoted(v) for v in values) + "]"


# --------------------------------------------------------------------------------------------------------------------
# Questions of a draft: put at a terminal, else an error that names the likely answers and the words.


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
    """Whether questions can be put at a terminal; the draft itself may go into a file."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def answered(table: Table, options: Given) -> Answers:
    """The decision, its sides and the protected attributes: from options, from words in the table, or from questions.

    Raises:
        SpecError: an option does not fit the table; or something is not given and nobody can be asked.
    """
    decision = _decision(table, options)
    sides = _sides(table, decision, options)
    names = list(options.protected) or columns.columns(table, decision.column)
    if not names:
        possible = columns.possible(table, decision.column)
        if not options.asks or not possible:
            hint = f"; columns of a few values: {', '.join(possible[:6])}" if possible else ""
            raise SpecError(
                f"{table.path.name}: no column names a protected attribute (race, sex, age ...){hint}. "
                "Give one: --protected COLUMN --reference VALUE"
            )
        question = "No column names a protected attribute. Which one tells the groups?"
        names = [_asked(question, possible, possible)]
    attributes = columns.attributes(table, names, options.reference, bool(options.protected))
    return Answers(decision, sides, attributes)


def _decision(table: Table, options: Given) -> Candidate:
    if options.decision is not None:
        return chosen(table, options.decision)
    best = candidates(table)
    if not best:
        raise SpecError(
            f"{table.path.name}: no column could be the decision; expected one of 2 to 10 values, such as approved and "
            "denied: give it with --decision COLUMN, or add it to the table"
        )
    if options.asks:
        return chosen(
            table, _asked("Which column is the decision?", [c.column for c in best], [c.said() for c in best])
        )
    first = best[0].column
    candidates_text = "; ".join(candidate.said() for candidate in best[:BEST])
    raise SpecError(
        f"{table.path.name}: which column is the decision? Likeliest: {candidates_text}. "
        f"Give it: evenhand init {quote(str(table.path))} --decision {quote(first)} --favourable VALUE"
    )


def _sides(table: Table, decision: Candidate, options: Given) -> Sides:
    if options.unfavourable and not options.favourable:
        raise SpecError("--unfavourable: which value favours the applicant? Give it, too: --favourable VALUE")
    if options.favourable:
        return given_sides(decision, options.favourable, options.unfavourable)
    guess = guessed_sides(decision)
    if guess is not None:
        return guess
    values = list(decision.values)
    if options.asks:
        labels = [f"{value} ({rows:,} rows)" for value, rows in decision.values.items()]
        return given_sides(
            decision, [_asked(f"Which value of {decision.column} favours the applicant?", values, labels)]
        )
    labels = [f"{value} ({rows:,} rows)" for value, rows in list(decision.values.items())[:4]]
    raise SpecError(
        f"--decision {decision.column}: which value favours the applicant? {', '.join(labels)}. "
        f"Give it: evenhand init {quote(str(table.path))} --decision {quote(decision.column)} --favourable {values[0]}"
    )


def _asked(question: str, answers: Sequence[str], labels: Sequence[str]) -> str:
    """One of some answers, by its number or as it is written. There is no answer that Enter gives."""
    for i, label in enumerate(labels[:_OFFERED], 1):
        typer.echo(f"  {i}  {label}", err=True)
    while True:
        try:
            reply = str(typer.prompt(f"{question} Number or name", err=True)).strip()
        except typer.Abort as error:  # its exit code would read as a breach
            raise SpecError("init: no answer; give --decision, --favourable and --protected instead") from error
        if reply in answers:
            return reply
        if reply.isdecimal() and 1 <= int(reply) <= min(len(answers), _OFFERED):
            return answers[int(reply) - 1]
        typer.echo(f"{reply}: expected 1 to {min(len(answers), _OFFERED)}, or a name as in the table", err=True)
