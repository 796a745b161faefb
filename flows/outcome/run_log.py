"""Lines of the log that reach the server, and errors as the server may keep them."""

import logging
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from flows.outcome.conclusion import ending_of_error
from flows.outcome.ending import without_cells

# --------------------------------------------------------------------------------------------------------------------
# Hands lines of the logger ``evenhand`` to the run that is at work, so that they are on the server.
#
# Prefect's own logger of the run has a level of its own: a command keeps it quiet, and a worker prints it. Lines go to
# the server in either case, and to the console of a worker.


log = logging.getLogger("evenhand")
shown = logging.getLogger("evenhand.shown")
"""Lines that only say on a terminal what the run's own lines say on the server."""


class RunLog(logging.Handler):
    """Hands lines to one run."""

    def __init__(self, run: Any, quotable_texts: Collection[str], quiet_below: int) -> None:
        """Hand lines to the logger of a run.

        Args:
            run: Prefect's logger of the run, with its id.
            quotable_texts: texts that a line may quote.
            quiet_below: level below which lines are for the server alone.
        """
        super().__init__(logging.INFO)
        self._run, self.known, self._quiet_below = run, quotable_texts, quiet_below

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
def handed_over(quotable_texts: Collection[str] = ()) -> Iterator[None]:
    """Hand lines of this program to the flow run or task run at work while the block lasts; nothing without one.

    Args:
        quotable_texts: texts that a line may quote (``subject.words_known``).
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
    run_log = RunLog(run, quotable_texts, effective if widened and propagate else _SILENT)
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
    run_log = _current.get() or next(iter(_open), None)
    return run_log.known if run_log is not None else ()


def tell_run(text: str, level: int = logging.INFO) -> None:
    """Write a line of published figures into the log of the run at work; nothing without one."""
    run_log = _current.get() or next(iter(_open), None)
    if run_log is not None:
        run_log.tell(level, text)


# --------------------------------------------------------------------------------------------------------------------
# Errors of tasks as Prefect gets them: it logs and keeps an error's words, and these may hold cells of a table.


T = TypeVar("T")

_PASSING = (OSError, BrokenExecutor, MemoryError)
"""A fault of a network drive may pass; a stage that died or had no memory may find more next time."""


class PlainError(Exception):
    """An error in words that a server may have."""

    def __init__(self, message: str, error: Exception | None = None, *, passing: bool = False) -> None:
        """Keep the error for the flow, None where it is not needed, and whether another try may help."""
        super().__init__(message)
        self.error = error
        self.passing = passing


def may_pass(error: object) -> bool:
    """Whether another try of a task may help, by its error."""
    if isinstance(error, PlainError):
        return error.passing
    return isinstance(error, _PASSING) or isinstance(getattr(error, "__cause__", None), _PASSING)


@contextmanager
def in_plain_words(*, keep_error: bool = True) -> Iterator[None]:
    """Inside a task: replace an error by one without values of rows. Those of the operating system stay as they are.

    Args:
        keep_error: whether the error goes along; it would have to be pickled to leave its process.

    Raises:
        PlainError: the block raised an error.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) or isinstance(error.__cause__, OSError):
            raise  # a retry may help, and its words name files
        plain_error = PlainError(
            ending_of_error(error, "", texts_known()).message, error if keep_error else None, passing=may_pass(error)
        )
    else:
        return
    raise plain_error from None


def in_own_words(task: Callable[[], T]) -> T:
    """What a task gives; its error is the error itself again, as commands print it.

    Raises:
        Exception: what the task raised.
    """
    try:
        return task()
    except PlainError as plain_error:
        error = plain_error.error or plain_error
    raise error  # outside of the handler, as its error would be the context
