"""What commands print on the terminal: tables, progress, and the summary of an audit."""

import json
import logging
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from flows.runs.control_characters import visible as visible  # the commands take it from here
from flows.supervision.parentage import PROGRESS
from schemas.questions import QUESTIONS, STATES
from schemas.terms import Note, State, Theory

if TYPE_CHECKING:
    from rich.live import Live

    from flows.runs.record import Summary  # reaches every stage, and the commands that read need none
    from tasks.pipeline.progress import Course


# --------------------------------------------------------------------------------------------------------------------
# Consoles of the commands, one for results and one for messages, and how progress is shown on them.


log = logging.getLogger("evenhand")
_shown = log.getChild("shown")
"""Lines on the progress of a run; on a server the run itself says so (``flows.outcome.run_log``)."""

BETWEEN_SECONDS = 30.0
"""Between two lines of a stage at work, where no terminal shows it."""
_REWRITE_SECONDS = 0.5
_UNBOUNDED = 1_000_000
"""Columns of a console that wraps nothing."""


_GAP = "  "
"""Between the columns of a table on a terminal."""
_LEAST_ROOM = 20
"""Columns that the last cell of a row wraps in; with less it goes below the row."""


class PlainConsole(Console):
    """A console on which no text of the data works the terminal."""

    def print(self, *objects: Any, **how: Any) -> None:
        """Print texts with their controls made visible; rich's own escapes, such as colours, come after."""
        printed: list[Any] = []
        for content in objects:
            if isinstance(content, str):
                printed.append(visible(content))
            elif isinstance(content, Text) and content.plain != visible(content.plain):
                printed.append(Text(visible(content.plain), style=content.style))
            else:
                printed.append(content)
        super().print(*printed, **how)


class _Visible(logging.Formatter):
    """Log lines with their controls made visible."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def console_of(stream: str) -> Console:
    """A console on ``stdout`` or ``stderr``: coloured and wrapped on a terminal, and on nothing else."""
    terminal = bool(getattr(sys, stream).isatty())
    return PlainConsole(
        stderr=stream == "stderr",
        highlight=False,
        force_terminal=terminal,  # FORCE_COLOR would colour what a program reads
        width=None if terminal else _UNBOUNDED,
        soft_wrap=not terminal,
    )


console = console_of("stdout")
errors = console_of("stderr")


def print_table(on: Console, names: Sequence[str], rows: Sequence[Sequence[Text]]) -> None:
    """Print a table: in columns on a terminal, where the last one wraps; else a row a line, tabs between cells.

    No word or number is ever broken. No line of a terminal ends with blanks; in a pipe every row has every tab.

    Args:
        on: where to print.
        names: of the columns.
        rows: their cells; a line break in a cell is a blank.
    """
    cells = [[Text(name) for name in names], *([Text(" ").join(cell.split()) for cell in row] for row in rows)]
    if not on.is_terminal:
        for row in cells:
            on.file.write(visible("\t".join(cell.plain.rstrip() for cell in row)) + "\n")  # rich would expand the tabs
        return
    widths = [max(cell.cell_len for cell in column) for column in zip(*cells, strict=True)][:-1]
    for row in cells:
        for line in _columns(row, widths, on.width):
            on.print(line, soft_wrap=True)


def _columns(row: Sequence[Text], widths: Sequence[int], width: int) -> Iterator[Text]:
    """The lines of a row: the cells side by side, the last one wrapped, or below the others where it has no room."""
    start, last = sum(widths) + len(_GAP) * len(widths), row[-1]
    padded = (cell + Text(" " * (wide - cell.cell_len) + _GAP) for cell, wide in zip(row, widths, strict=False))
    before = Text().join(padded)
    if width - start < min(last.cell_len, _LEAST_ROOM):
        yield _bare(before)
        before, start = Text(_GAP), len(_GAP)
    # The words of the last cell in lines of a width; a longer word has a line for itself.
    room, lines = max(width - start, _LEAST_ROOM), [Text()]
    for word in last.split(" "):
        if lines[-1] and lines[-1].cell_len + 1 + word.cell_len > room:
            lines.append(word)
        else:
            lines[-1] = Text(" ").join([lines[-1], word]) if lines[-1] else word
    for number, line in enumerate(lines):
        yield _bare((Text(" " * start) if number else before) + line)


def _bare(line: Text) -> Text:
    line.rstrip()
    return line


def print_json(document: object) -> None:
    """Print a result as JSON."""
    sys.stdout.write(json.dumps(document, indent=1, default=str) + "\n")


def show_progress(*, verbose: bool = False) -> None:
    """Show on the error stream the progress of long work.

    Args:
        verbose: whether steps tell more of themselves, such as losses.
    """
    from rich.highlighter import NullHighlighter
    from rich.logging import RichHandler

    from tasks.pipeline import progress

    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    if errors.is_terminal:
        handler = RichHandler(
            console=errors, show_time=False, show_level=False, show_path=False, highlighter=NullHighlighter()
        )
    handler.setFormatter(_Visible())
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.DEBUG if verbose else logging.INFO)
    rewritten = errors.is_terminal and not errors.is_dumb_terminal
    progress.show_on(LiveLine(errors) if rewritten else Lines())


def show_progress_in(path: Path) -> None:
    """Write the progress of long work into a file."""
    from tasks.pipeline import progress

    progress.show_on(ProgressFile(path))


class LiveLine:
    """Shows a run as a line of a terminal for each stage at work, which is rewritten and goes when the run ends."""

    def __init__(self, on: Console) -> None:
        """Show it on a terminal; what is logged meanwhile goes above it."""
        self._console = on
        self._course: Course | None = None
        self._live: Live | None = None
        self._over = threading.Event()

    def __rich__(self) -> Text:
        """The lines as they are now; never longer than the terminal is wide."""
        return Text(self._course.words() if self._course else "", no_wrap=True, overflow="ellipsis")

    def opened(self, course: "Course") -> None:
        """Show the line, and rewrite it twice a second."""
        from rich.live import Live

        self._course = course
        self._live = Live(
            self,
            console=self._console,
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start(refresh=True)
        self._over = threading.Event()  # rich's own thread has no name that ``may_fork`` could know
        threading.Thread(target=self._rewrite, args=(self._live, self._over), name=PROGRESS, daemon=True).start()

    def _rewrite(self, live: "Live", over: threading.Event) -> None:
        while not over.wait(_REWRITE_SECONDS):
            live.refresh()

    def began(self) -> None:
        """Nothing: the line is rewritten anyway."""

    def ended(self, stage: str, message: str) -> None:
        """Log it for those who want to see more."""
        _shown.debug("%s: %s", stage, message)

    def closed(self) -> None:
        """Take the line away."""
        self._over.set()
        if self._live is not None:
            self._live.stop()
        self._live, self._course = None, None


class Lines:
    """Shows a run as lines of a file: at the start and end of each stage, and now and then between."""

    def __init__(self, seconds: float = BETWEEN_SECONDS) -> None:
        """Print the stage at work at fixed intervals."""
        self._seconds = seconds
        self._course: Course | None = None
        self._over = threading.Event()

    def opened(self, course: "Course") -> None:
        """Begin to print."""
        self._course, self._over = course, threading.Event()
        threading.Thread(target=self._tell, args=(course, self._over), name=PROGRESS, daemon=True).start()

    def _tell(self, course: "Course", over: threading.Event) -> None:
        while not over.wait(self._seconds):
            for line in course.long(self._seconds):
                _shown.info(line)

    def began(self) -> None:
        """A line at the start of a stage."""
        if self._course is not None:
            _shown.info("%s begins", self._course.stage)

    def ended(self, stage: str, message: str) -> None:
        """A line at its end."""
        _shown.info("%s: %s", stage, message)

    def closed(self) -> None:
        """Stop printing."""
        self._over.set()
        self._course = None


class ProgressFile:
    """Writes the progress of a run into a file as JSON, for a page that shows it: ``flows.serving.starts`` reads it."""

    def __init__(self, path: Path, seconds: float = 1.0) -> None:
        """Write it at fixed intervals while a run is shown."""
        self._path, self._seconds = path, seconds
        self._course: Course | None = None
        self._over = threading.Event()

    def opened(self, course: "Course") -> None:
        """Begin to write."""
        self._course, self._over = course, threading.Event()
        threading.Thread(target=self._repeat, args=(course, self._over), name=PROGRESS, daemon=True).start()

    def _repeat(self, course: "Course", over: threading.Event) -> None:
        """Replace the file by another one, whole; where the disk is full the old one stays."""
        while not over.is_set():
            ending = not course.at_work and len(course.begun) == len(course.stages)
            document = {
                "stage": max(course.begun, default=0),
                "stages": len(course.stages),
                "lines": ["the run is published"] if ending else course.lines(),
                "left": None if ending else course.remaining(),
                "passed": course.passed(),
                "forecast": course.forecast(),
                "by_table": course.by_table,
            }
            draft = self._path.with_name(f"{self._path.name}.new")
            with suppress(OSError):
                draft.write_text(json.dumps(document), encoding="utf-8")
                draft.replace(self._path)
            over.wait(self._seconds)

    def began(self) -> None:
        """Nothing: the file is written anyway."""

    def ended(self, stage: str, message: str) -> None:
        """Nothing: so it is here."""

    def closed(self) -> None:
        """Stop writing."""
        self._over.set()
        self._course = None


# --------------------------------------------------------------------------------------------------------------------
# What an audit prints at its end: its first page, and on request a table for each method.


_STYLE = {State.OUTSIDE: "bold red", State.WITHIN: "green", State.INCONCLUSIVE: "yellow", State.UNRELIABLE: "yellow"}


def print_audit(
    console: Console, report: Mapping[str, Any], left_out: str, summary: "Summary", *, verbose: bool = False
) -> None:
    """Print the first page of an audit: at most 24 lines, the headline on the third.

    Args:
        console: where to print.
        report: the content of report.json.
        left_out: applications that no figure counts, in words.
        summary: of the audit; its state decides the exit code, whatever is withheld from the report.
        verbose: print the tables of all groups and methods, too.
    """
    from flows.runs import first_page as decision
    from schemas.questions import STATES  # loads pyarrow, and other commands print rows
    from schemas.tables.applications import read_words

    width = min(console.width, decision.MOST_COLUMNS)
    shown_report = {**report, "state": summary.state}
    for line in decision.summary(shown_report, summary.report, left_out=left_out, notes=_more(summary), width=width):
        text = Text(line)
        for state, style in _STYLE.items():  # which a pipe does not get
            text.highlight_regex(rf"(?<=  ){STATES[state].words}(?=  )", style=style)
        console.print(text, soft_wrap=True)
    if not verbose:
        return
    # Theories, rows that are not within, groups by method, and what was read. Text is never read as markup.
    console.print()
    print_rows(console, "questions", _theories(summary.verdicts))
    print_rows(console, "groups that are not within", _open_rows(summary.verdicts))
    console.print("value [interval] or (range of draws) by group; n = those whom it is about", markup=False)
    for title, rows in _groups(summary):
        print_rows(console, title, rows)
    for sentence in (*_more(summary), summary.withheld):
        console.print(sentence.strip(), markup=False, soft_wrap=True)
    console.print(f"read    {read_words(summary.source_summary)}", markup=False)


def _more(summary: "Summary") -> list[str]:
    """What an audit did not do, and what it does not show."""
    return [*summary.not_run, *([summary.unchecked] if summary.unchecked else []), *summary.withheld_groups]


def print_run(console: Console, summary: "Summary") -> None:
    """Print run, state and report alone."""
    state = Text(STATES[summary.state].words, style=_STYLE.get(summary.state, ""))
    for name, text in (("run", Text(summary.run)), ("state", state), ("report", Text(summary.report))):
        console.print(Text(f"{name:<8}").append_text(text), soft_wrap=True)


def print_rows(console: Console, title: str, rows: list[dict[str, Any]], *, alone: bool = False) -> None:
    """Print rows as a table, and its title above it; nothing of a table without rows but the title.

    Args:
        console: where to print.
        title: of the table; empty without one.
        rows: cells by column.
        alone: whether it is the one table of a command, of which a pipe gets rows and no title.
    """
    if title and alone:
        print_words(console, title, style="italic")
    elif title:
        console.print(title, markup=False, style="italic")
    if rows:
        cells = []
        for row in rows:
            texts = [f"{v:.4f}" if isinstance(v, float) else "" if v is None else v for v in row.values()]
            cells.append([text if isinstance(text, Text) else Text(str(text)) for text in texts])
        print_table(console, list(rows[0]), cells)


def print_words(console: Console, words: str, style: str = "") -> None:
    """Print words about the one table of a command: next to it on a terminal, else as an error, as a pipe gets rows."""
    (console if console.is_terminal else errors).print(words, markup=False, style=style, soft_wrap=True)


def robustness_words(rv: float, strongest: str, of_denial: float | None, of_group: float | None) -> str:
    """What an unseen column has to explain to bring a difference to zero, and what the strongest control explains.

    Args:
        rv: robustness value.
        strongest: control that explains most of what is left of denial, in words; empty without any.
        of_denial: share of what is left of denial that it explains.
        of_group: share of what is left of group membership.
    """
    unseen = f"that explains {_percent(rv)} of what is left of denial and of group membership"
    text = f"It would take a column {unseen} to bring this to zero"
    if not strongest or of_denial is None or of_group is None:
        return f"{text}."
    shares = f"{_percent(of_denial)} and {_percent(of_group)}"
    return f"{text}; the strongest one in the data, {strongest}, explains {shares}."


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def _groups(summary: "Summary") -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Rows for the decisions and for each method, of the groups that it has something to say of."""
    from schemas.tables.verdicts import measure_in_approval

    rows_read = map(measure_in_approval, summary.headline)
    by = {(r["decision_maker"], r["protected_attribute"], r["group"], r["measure"]): r for r in rows_read}
    groups = sorted({key[:3] for key in by})
    for table, measures in summary.titles.items():
        rows = []
        for maker, attribute, group in groups:
            measured = {title: by.get((maker, attribute, group, measure)) for measure, title in measures.items()}
            first = next((row for row in measured.values() if row), None)
            if first is None:
                continue
            n = "" if first["n"] is None else f"{first['n']:,}"
            cells = {"decision maker": maker, "group": f"{attribute}: {group}", "n": n}
            for title, row in measured.items():
                if row is None:
                    cells[title] = ""
                elif row["value"] is None:
                    is_few = Note.FEW in row["note"].split("; ")
                    cells[title] = row["reason"] if is_few else "withheld" if row["n"] is None else "undefined"
                elif row["low"] is None or row["high"] is None:
                    spread = Note.NO_SPREAD if Note.NO_SPREAD in row["note"].split("; ") else "no interval"
                    cells[title] = f"{row['value']:.4f} ({spread})"
                else:
                    is_range = Note.RANGE in row["note"].split("; ")
                    low, high = f"{row['low']:.3f}", f"{row['high']:.3f}"
                    cells[title] = f"{row['value']:.4f} " + (f"({low} to {high})" if is_range else f"[{low}, {high}]")
            rows.append(cells)
        yield table, rows


def _theories(verdicts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each theory: its question, its state, and the groups behind it."""
    from schemas.tables.verdicts import PRICES, effect_words, limit_words  # loads pyarrow, as below

    verdict_rows, rows = list(verdicts), []
    for theory_row in (row for row in verdict_rows if row["role"] == "theory"):
        state = State(theory_row["state"])
        effects = []
        for row in verdict_rows if theory_row["theory"] != Theory.OWN_LIMITS else ():
            is_dear = row["measure"] in PRICES and row["state"] == State.OUTSIDE
            is_shown = row["theory"] == theory_row["theory"] and (row["role"] == "primary" or is_dear)
            if is_shown and (words := effect_words(row)):
                limit, price = limit_words(row), "price " if is_dear else ""
                effects.append(f"{row['group']} {price}{words}" + (f" ({limit})" if limit else ""))
        why = "" if effects and state is State.WITHIN else theory_row["reason"]
        rows.append(
            {
                "question": QUESTIONS[Theory(theory_row["theory"])].short,
                "state": Text(STATES[state].words, style=_STYLE.get(state, "")),
                "effect [verdict interval] and why": "; ".join(part for part in (why, *effects) if part),
            }
        )
    return rows


def _open_rows(verdicts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that are not within, each with its reason."""
    from schemas.tables.verdicts import effect_words, limit_words

    rows = []
    for row in verdicts:
        if row["role"] not in ("theory", "watch") and (row["withheld"] or row["state"] != State.WITHIN):
            state = State.INCONCLUSIVE if row["withheld"] else State(row["state"])
            rows.append(
                {
                    "question": QUESTIONS[Theory(row["theory"])].short,
                    "group": f"{row['protected_attribute']}: {row['group']}",
                    "measure": f"{row['measure']} {effect_words(row)}".rstrip(),
                    "limit": limit_words(row),
                    "state": Text(STATES[state].words + " (withheld)" * row["withheld"], style=_STYLE.get(state, "")),
                    "why": row["reason"],
                }
            )
    return rows
