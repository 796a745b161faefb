"""First page of a run as plain text, from its report.json."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from flows.runs.disclosure import withheld_groups
from flows.runs.index import read_manifest, report_named
from flows.runs.run_names import run_ids
from schemas.artifact import Artifact
from schemas.errors import IntegrityError, SpecError
from schemas.questions import QUESTIONS, STATES
from schemas.report import report_now
from schemas.sentences import filled, sentences
from schemas.tables.verdicts import PREFIX, PUBLICATION
from schemas.terms import EVERYBODY, ExitCode, Refusal, State, Theory
from tasks.lake.store import Lake, open_lake
from tasks.lake.views import newest_stages

# --------------------------------------------------------------------------------------------------------------------
# The first page of a run as plain lines of text, from its report.json; the commands audit and show print the same.


MOST_LINES = 24
MOST_COLUMNS = 100
_HEAD = 3
"""Lines to the headline, of which the second is always blank."""
_CODES = {State.WITHIN: ExitCode.WITHIN, State.OUTSIDE: ExitCode.OUTSIDE}
_PLAIN = str.maketrans({"\N{MINUS SIGN}": "-", "\N{NO-BREAK SPACE}": " ", "\N{NARROW NO-BREAK SPACE}": " "})
LACKING = (Refusal.MISSING_COVARIATE, Refusal.EXEMPT_COVARIATE)
"""Reasons for which applications without every feature are refused."""
Said = Mapping[str, Any]


def summary(
    report: Said, place: str, *, left_out: str = "", notes: Sequence[str] = (), width: int | None = MOST_COLUMNS
) -> list[str]:
    """The first page as lines: headline on the third, at most 24 of them unless groups have very long names.

    Args:
        report: the content of report.json.
        place: path or URI of the first page.
        left_out: rows that a stage refused, in words, such as ``11 applications``; empty where unknown.
        notes: further sentences, a line each, such as methods that did not run and why.
        width: columns of a terminal; None wraps nothing.
    """
    for steps, note_count, blank in _rooms(len(report["next"]), len(notes)):
        shown_notes = [
            *notes[:note_count],
            *([f"{len(notes) - note_count} more with --verbose."] if note_count < len(notes) else []),
        ]
        lines = list(_lines(report, place, left_out, shown_notes, steps, width))
        if not blank:  # drop only as many blank lines as needed: that above the steps first, that above the run next
            blanks = [number for number, line in enumerate(lines) if not line and number >= _HEAD]
            dropped = [*blanks[1:], *blanks[:1]][: max(len(lines) - MOST_LINES, 0)]
            lines = [line for number, line in enumerate(lines) if number not in dropped]
        if len(lines) <= MOST_LINES:
            break
    return [line.translate(_PLAIN).rstrip() for line in lines]


def _rooms(steps: int, notes: int) -> Iterator[tuple[int, int, bool]]:
    """What is tried until all lines fit: how many steps and further sentences, and whether with lines left blank.

    Steps give way first, then blank lines, then sentences.
    """
    yield from ((n, notes, True) for n in range(steps, min(steps, 1) - 1, -1))
    yield from ((min(steps, 1), n, False) for n in range(notes, -1, -1))
    yield 0, 0, False


def exit_words(state: str) -> str:
    """The exit code of a state of an audit, and its meaning."""
    code = _CODES.get(State(state), ExitCode.INCONCLUSIVE)
    return f"exit code {code.value}: {sentences('messages')['exit'][code.name.lower()]}"


def _lines(
    report: Said, place: str, left_out: str, notes: Sequence[str], steps: int, width: int | None
) -> Iterator[str]:
    title, year = report["title"] or report["audit"], str(report["year"])
    part = report.get("partition")  # an earlier version had none
    partition = f", {part['column']} {part['value']}" if part else ""
    count = report["source"]["rows"]["shown"]
    people = f"{count} rows read" if count[:1].isdigit() else "number of rows withheld"
    yield f"{title}{'' if year in title else f', {year}'}{partition} ({people})"
    yield ""
    yield from _wrapped(report["headline"]["words"], "", width)
    yield ""
    rows = [
        (
            QUESTIONS[Theory(row["theory"])].short,
            STATES[State(row["state"])].words,
            str(row["sentence"]).removesuffix("."),
        )
        for row in report["questions"]
    ]
    first, second = (max((len(row[i]) for row in rows), default=0) for i in (0, 1))
    for question, state, answer in rows:
        yield from _wrapped(answer, f"  {question:<{first}}  {state:<{second}}  ", width)
    yield ""
    for number, step in enumerate(report["next"][:steps], start=1):
        words, command = step["words"], step["command"]
        text = f"{words.removesuffix('.')}:" if command else words
        yield from _wrapped(text, f"  {'Next' if number == 1 else '    '}  {number} ", width)
        if command:  # whole on a line of its own, to be copied
            yield f"{' ' * 10}{command}"
    limits = " ".join(line["words"] for line in report["cannot"])
    limits = limits[:1].lower() + limits[1:]
    left = f" Left out: {left_out}." if left_out else ""
    yield from _wrapped(f"Cannot show: {limits}{left}", "  ", width)
    for sentence in notes:
        yield from _wrapped(sentence, "  ", width)
    yield ""
    yield f"run     {report['run']}     {exit_words(report['state'])}"
    yield f"report  {place}"


def _wrapped(text: str, head: str, width: int | None) -> list[str]:
    """The text after its head, and below it in the same column; no word and no number is broken."""
    if width is None:
        return [head + text]
    room = max(width - len(head), 20)
    return [
        (head if at == 0 else " " * len(head)) + line
        for at, line in enumerate(wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""])
    ]


# --------------------------------------------------------------------------------------------------------------------
# Reads report.json of a finished run, and what was left out of it, for the first page in the terminal.


_FILE = "report.json"


def first_page(lake: Lake, run: str) -> tuple[Said, str]:
    """The content of a run's report.json, and where its first page is.

    Raises:
        SpecError: the lake holds no such run, or its report is of an earlier version.
        IntegrityError: the file is missing, or not the one that was written.
    """
    manifest = read_manifest(lake, run)
    storage, folder = report_named(lake, run, manifest)
    content = storage.read(f"{folder}/{_FILE}")
    if content is None or hashlib.sha256(content).hexdigest() != manifest["exported"].get(_FILE):
        was = "missing" if content is None else "not the one that was written"
        raise IntegrityError(f"{storage.where(f'{folder}/{_FILE}')} is {was}; run that audit again to rewrite it")
    report: Said = json.loads(content)
    if "headline" not in report:
        raise SpecError(f"run {run} was made by an earlier version without a first page; run that audit again")
    return report_now(report), storage.where(f"{folder}/report.html")


def left_out(lake: Lake, run: str) -> str:
    """Rows that a stage refused as published, in words; empty where that is withheld, or not known.

    Raises:
        IntegrityError: the table is not the one that was written.
    """
    for partition in read_manifest(lake, run)["partitions"]:
        for table in partition["tables"]:
            if table["table"] == f"{PREFIX}waterfall":
                of = [
                    row
                    for row in lake.read(Artifact.model_validate(table)).to_pylist()
                    if row["group"] == EVERYBODY and row["kind"] == "refused"
                ]
                return left_out_words(of)
    return ""


def left_out_words(refused: Sequence[Mapping[str, Any]]) -> str:
    """Refused rows in words: those that no figure counts, and those that count in approval rates alone.

    Args:
        refused: rows of the waterfall on refusals of everybody, for each protected attribute the same ones.
    """
    rows = [row for row in refused if row["protected_attribute"] == refused[0]["protected_attribute"]]
    if any(row["n"] is None for row in rows):
        return ""
    gaps = sum(row["n"] for row in rows if row["reason"] in LACKING)
    unread = sum(row["n"] for row in rows) - gaps
    parts = ((unread, "left_out"), (gaps, "left_out_gaps"))
    return "; ".join(filled("messages", name, n=f"{n:,}") for n, name in parts if n)


def remarks(lake: Lake, run: str) -> list[str]:
    """Sentences on what did not run, and on which groups are withheld, as its audit printed them.

    Raises:
        IntegrityError: a table is not the one that was written.
    """
    manifest = read_manifest(lake, run)
    spec, sentences = manifest["spec"], []
    if off := [name for name, settings in spec.get("methods", {}).items() if settings is None]:
        graph = "" if spec["causal_graph"]["edges"] else ", or without a `causal_graph`"
        sentences.append(f"Not run: {', '.join(off)} (not in `methods` of the spec{graph}).")
    tables = {table["table"]: table for partition in manifest["partitions"] for table in partition["tables"]}
    if PUBLICATION.name in tables:
        rows = lake.read(Artifact.model_validate(tables[PUBLICATION.name])).to_pylist()
        sentences += withheld_groups(rows, spec["disclosure"]["profile"])
    return sentences


def unfinished(root: str) -> list[str]:
    """Lines about the stages of a lake without any run; none if it has a run.

    Raises:
        SpecError: there is no lake at that place, or nothing is in it.
    """
    lake = open_lake(root)
    if run_ids(lake):
        return []
    lines = [f"no run yet in {lake.location}: an audit was stopped, or was run with --until. It holds:"]
    for partition in newest_stages(lake):
        tables = ", ".join(
            f"{table['table']} ({table['rows']:,} rows)" for table in partition["tables"] if table["rows"]
        )
        lines.append(f"  {partition['stage']}: {tables or 'no row'}")
    return [*lines, "`evenhand sql` reads these tables; the same `evenhand audit` goes on from them"]
