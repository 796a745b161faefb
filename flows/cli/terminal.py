"""Consoles of the commands, one for results and one for messages, and how progress is shown on them."""

import json
import logging
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from flows.runs.trust.letters import visible as visible  # the commands take it from here

if TYPE_CHECKING:
    from rich.live import Live

    from tasks.pipeline.progress import Course

log = logging.getLogger("evenhand")
_shown = log.getChild("shown")
"""Lines on the progress of a run; on a server the run itself says so (``flows.outcome.run_log``)."""

BETWEEN_SECONDS = 30.0
"""Between two lines of a stage at work, where no terminal shows it."""
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
        super().print(*(_without_controls(each) for each in objects), **how)


def _without_controls(said: Any) -> Any:
    if isinstance(said, str):
        return visible(said)
    if isinstance(said, Text) and said.plain != visible(said.plain):
        return Text(visible(said.plain), style=said.style)
    return said


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

    No word or number is ever broken, and no line ends with blanks.

    Args:
        on: where to print.
        names: of the columns.
        rows: their cells; a line break in a cell is a blank.
    """
    cells = [[Text(name) for name in names], *([Text(" ").join(cell.split()) for cell in row] for row in rows)]
    if not on.is_terminal:
        for row in cells:
            on.file.write(visible("\t".join(cell.plain for cell in row).rstrip()) + "\n")  # rich would expand the tabs
        return
    widths = [max(cell.cell_len for cell in column) for column in zip(*cells, strict=True)][:-1]
    for row in cells:
        for line in _columns(row, widths, on.width):
            on.print(line, soft_wrap=True)


def _columns(row: Sequence[Text], widths: Sequence[int], width: int) -> Iterator[Text]:
    """The lines of a row: the cells side by side, the last one wrapped beside them, or below where it has no room."""
    start, last = sum(widths) + len(_GAP) * len(widths), row[-1]
    padded = (cell + Text(" " * (wide - cell.cell_len) + _GAP) for cell, wide in zip(row, widths, strict=False))
    before = Text().join(padded)
    if width - start < min(last.cell_len, _LEAST_ROOM):
        yield _bare(before)
        before, start = Text(_GAP), len(_GAP)
    for number, part in enumerate(_wrapped(last, max(width - start, _LEAST_ROOM))):
        yield _bare((Text(" " * start) if number else before) + part)


def _wrapped(text: Text, width: int) -> Iterator[Text]:
    """Its words in lines of a width; a longer word has a line of its own."""
    line = Text()
    for word in text.split(" "):
        if line and line.cell_len + 1 + word.cell_len > width:
            yield line
            line = Text()
        line = Text(" ").join([line, word]) if line else word
    yield line


def _bare(line: Text) -> Text:
    line.rstrip()
    return line


def print_json(said: object) -> None:
    """Print a result as JSON."""
    sys.stdout.write(json.dumps(said, indent=1, default=str) + "\n")


def show_progress(*, verbose: bool = False) -> None:
    """Tell on the error stream how far long work has come.

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


class LiveLine:
    """Shows a run as a line of a terminal for each stage at work, which is rewritten and goes when the run ends."""

    def __init__(self, on: Console) -> None:
        """Show it on a terminal; what is logged meanwhile goes above it."""
        self._console = on
        self._course: Course | None = None
        self._live: Live | None = None

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
            refresh_per_second=2,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def began(self) -> None:
        """Nothing: the line is rewritten anyway."""

    def ended(self, stage: str, said: str) -> None:
        """Log it for those who want to see more."""
        _shown.debug("%s: %s", stage, said)

    def closed(self) -> None:
        """Take the line away."""
        if self._live is not None:
            self._live.stop()
        self._live, self._course = None, None


class Lines:
    """Shows a run as lines of a file: at the start and end of each stage, and now and then between."""

    def __init__(self, seconds: float = BETWEEN_SECONDS) -> None:
        """Tell a stage at work every so many seconds."""
        self._seconds = seconds
        self._course: Course | None = None
        self._over = threading.Event()

    def opened(self, course: "Course") -> None:
        """Begin to tell."""
        self._course, self._over = course, threading.Event()
        threading.Thread(target=self._tell, args=(course, self._over), daemon=True).start()

    def _tell(self, course: "Course", over: threading.Event) -> None:
        while not over.wait(self._seconds):
            for line in course.long(self._seconds):
                _shown.info(line)

    def began(self) -> None:
        """A line at the start of a stage."""
        if self._course is not None:
            _shown.info("%s begins", self._course.stage)

    def ended(self, stage: str, said: str) -> None:
        """A line at its end."""
        _shown.info("%s: %s", stage, said)

    def closed(self) -> None:
        """Stop telling."""
        self._over.set()
        self._course = None
