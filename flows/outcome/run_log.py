"""Hands lines of the logger ``evenhand`` to the run that is at work, so that they are on the server.

Prefect's own logger of the run has a level of its own: a command keeps it quiet, and a worker prints it. Lines go to
the server in either case, and to the console of a worker.
"""

import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from flows.outcome.words.plain import without_cells

log = logging.getLogger("evenhand")
shown = logging.getLogger("evenhand.shown")
"""Lines that only say on a terminal what the run's own lines say on the server."""


class RunLog(logging.Handler):
    """Hands lines to one run."""

    def __init__(self, run: Any, known: Collection[str], quiet_below: int) -> None:
        """Hand lines to the logger of a run.

        Args:
            run: Prefect's logger of the run, with its id.
            known: texts that a line may quote.
            quiet_below: level below which lines are for the server alone.
        """
        super().__init__(logging.INFO)
        self._run, self.known, self._quiet_below = run, known, quiet_below

    def emit(self, record: logging.LogRecord) -> None:
        """Hand over a line of the program; it may hold the words of an error."""
        if record.name != shown.name and (_current.get() or _open[0]) is self:
            self.tell(record.levelno, without_cells(record.getMessage(), self.known))
        if record.levelno >= self._quiet_below and not self._run.isEnabledFor(record.levelno):
            logging.getLogger().callHandlers(record)  # where it went before

    def tell(self, level: int, text: str) -> None:
        """Hand over a line as it is."""
        logger: logging.Logger = self._run.logger
        line = logger.makeRecord(logger.name, level, "", 0, text, (), None, extra=dict(self._run.extra))
        if logger.isEnabledFor(level):
            logger.handle(line)
        else:
            for handler in logger.handlers:
                handler.handle(line)

    def send(self) -> None:
        """Send what waits to be sent: the server of a command ends with it."""
        for handler in self._run.logger.handlers:
            handler.flush()


_current: ContextVar[RunLog | None] = ContextVar("run_log", default=None)
_open: list[RunLog] = []
"""Of this process, the outermost first: threads without a context write to that one."""
_SILENT = logging.CRITICAL + 1


@contextmanager
def handed_over(known: Collection[str] = ()) -> Iterator[None]:
    """Hand lines of this program to the flow run or task run at work while the block lasts; nothing without one.

    Args:
        known: texts that a line may quote (``subject.words_known``).
    """
    from prefect import get_run_logger
    from prefect.exceptions import MissingContextError

    run: Any = None
    with suppress(MissingContextError):  # of a task's function that is called as a function
        run = get_run_logger()
    if not isinstance(run, logging.LoggerAdapter):
        yield
        return
    level, propagate, effective = log.level, log.propagate, log.getEffectiveLevel()
    widened = effective > logging.INFO
    run_log = RunLog(run, known, effective if widened and propagate else _SILENT)
    if widened:
        log.propagate = False
        log.setLevel(logging.INFO)
    log.addHandler(run_log)
    _open.append(run_log)
    before = _current.set(run_log)
    try:
        yield
    finally:
        _current.reset(before)
        log.removeHandler(run_log)
        if widened:
            log.propagate = propagate
            log.setLevel(level)
        run_log.send()
        _open.remove(run_log)


def texts_known() -> Collection[str]:
    """The texts that an error of the run at work may quote."""
    found = _current.get() or next(iter(_open), None)
    return found.known if found is not None else ()


def tell_run(text: str, level: int = logging.INFO) -> None:
    """Write a line of published figures into the log of the run at work; nothing without one."""
    found = _current.get() or next(iter(_open), None)
    if found is not None:
        found.tell(level, text)
