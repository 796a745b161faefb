"""Progress of a long stage: a bar on a terminal, elsewhere a line of the log for each step.

Both go to the log of the command; where the command logs nothing, as with ``--json``, there is no output.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from rich.console import Console
from rich.logging import RichHandler
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tasks.pipeline.stop_request import raise_if_stopped

log = logging.getLogger("evenhand")

Tell = Callable[[str], None]
"""Called after each step, with what there is to say of it. The work stops there if that was requested."""


@contextmanager
def progress(total: int, of: str) -> Iterator[Tell]:
    """Show how many of ``total`` steps are done.

    Args:
        total: steps.
        of: what they are, in a word or two.
    """
    console = _terminal()
    if console is None:
        number = count(1)
        yield _stopping(lambda said: log.info("%s %d of %d: %s", of, next(number), total, said))
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(of, total=total)
        yield _stopping(lambda said: bar.update(task, advance=1, description=said))


def _stopping(tell: Tell) -> Tell:
    def told(said: str) -> None:
        tell(said)
        raise_if_stopped()

    return told


def _terminal() -> Console | None:
    """The terminal that the log is written to; a second one would write into the bar."""
    consoles = (handler.console for handler in log.handlers if isinstance(handler, RichHandler))
    return next((console for console in consoles if console.is_terminal), None)
