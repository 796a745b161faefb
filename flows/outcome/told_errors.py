"""What Prefect is told of a task's error: it logs and keeps an error's words, and these may hold cells of a table."""

from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from flows.outcome.conclusion import ending_of_error
from flows.outcome.run_log import texts_known

T = TypeVar("T")

_PASSING = (OSError, BrokenExecutor, MemoryError)
"""A fault of a network drive may pass; a stage that died or had no memory may find more, beside others or none."""


class ToldError(Exception):
    """An error in words that a server may have."""

    def __init__(self, message: str, error: Exception | None = None, *, passing: bool = False) -> None:
        """Keep the error itself for the flow, None where nobody asks for it, and whether another try may help."""
        super().__init__(message)
        self.error = error
        self.passing = passing


def may_pass(error: object) -> bool:
    """Whether another try of a task may help, by its error."""
    if isinstance(error, ToldError):
        return error.passing
    return isinstance(error, _PASSING) or isinstance(getattr(error, "__cause__", None), _PASSING)


@contextmanager
def in_plain_words(*, kept: bool = True) -> Iterator[None]:
    """Inside a task: replace an error by one without values of rows. Those of the operating system stay as they are.

    Args:
        kept: whether the error goes along; it would have to be pickled to leave its process.

    Raises:
        ToldError: the block raised an error.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) or isinstance(error.__cause__, OSError):
            raise  # a retry may help, and its words name files
        told = ToldError(
            ending_of_error(error, "", texts_known()).message, error if kept else None, passing=may_pass(error)
        )
    else:
        return
    raise told from None


def in_own_words(task: Callable[[], T]) -> T:
    """What a task gives; its error is the error itself again, as commands print it.

    Raises:
        Exception: what the task raised.
    """
    try:
        return task()
    except ToldError as told:
        error = told.error or told
    raise error  # not inside of the handler, whose own error it would be told to follow from


class InOwnWords:
    """A task that runs in a thread; its result raises the error itself."""

    def __init__(self, future: Any) -> None:
        """Stand for Prefect's future."""
        self._future = future

    def add_done_callback(self, fn: Callable[[Any], object], /) -> None:
        """Call when it ends."""
        self._future.add_done_callback(fn)

    def result(self) -> Any:
        """Its result.

        Raises:
            Exception: what the task raised.
        """
        return in_own_words(self._future.result)
