"""Decorator of flows: announces the run as alive while it works, and first marks the runs of dead processes.

The run leaves in order where it is asked to, ends with the worker that started it, and notes its outcome before Prefect
reports it, so that a worker can mend what a server that was away was not told.
"""

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, cast

from flows.outcome.deaths import see_to_dead
from flows.outcome.patience import await_server
from flows.outcome.state import state_of_error
from flows.supervision.file_modes import restrict
from flows.supervision.interruption import at_forced_end, heeding_term
from flows.supervision.leftovers import clear_leftovers
from flows.supervision.presence import Presence, at_work, command_id, note_outcome, note_stopped
from flows.supervision.processes.leaving import grace_seconds, leaves_on_word, may_finish
from flows.supervision.processes.parentage import end_with
from flows.supervision.processes.shortage import of_worker
from schemas.errors import EvenhandError
from tasks.lake.store import Lake

P = ParamSpec("P")
R = TypeVar("R")


def announced(function: Callable[P, R]) -> Callable[P, R]:
    """A flow's function that is at work on its parameter ``lake`` while it runs, and first marks those that died."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        restrict()  # a worker that was not started by `evenhand worker` has the umask of its shell
        given = inspect.signature(function).bind(*args, **kwargs).arguments
        with ExitStack() as stack:
            try:
                lake = Lake(given["lake"])
                presence = stack.enter_context(_supervised(lake))
            except EvenhandError as error:
                return cast("R", state_of_error(given, error))
            return _noting_outcome(partial(function, *args, **kwargs), lake, presence)

    return run


@contextmanager
def _supervised(lake: Lake) -> Iterator[Presence]:
    from prefect.runtime import flow_run

    from flows.supervision.zombies import mark_stopped

    run = flow_run.id
    grace_seconds()  # a word that is none is told now, and not when SIGTERM comes
    if of_worker():
        end_with(os.getppid())
    with ExitStack() as stack:
        stack.enter_context(leaves_on_word(lambda: note_stopped(lake)))
        stack.enter_context(heeding_term())
        presence = stack.enter_context(at_work(lake, str(run or command_id())))
        stack.enter_context(at_forced_end(lambda: mark_stopped(run)))
        stack.enter_context(may_finish())
        see_to_dead(lake)
        clear_leftovers(lake)
        yield presence


def _noting_outcome(call: Callable[[], R], lake: Lake, presence: Presence) -> R:
    """Call; of a worker's run the outcome is noted in the lake before the server is waited for."""
    if not of_worker():
        return call()
    try:
        result = call()
    except Exception as error:
        note_outcome(lake, presence, _failed(error))
        await_server()
        raise
    note_outcome(lake, presence, _ended(result))
    await_server()
    return result


def _ended(result: Any) -> tuple[str, str, str]:
    """Type, name and message of the state that a flow returned, or that Prefect makes of what it returned."""
    from prefect.client.schemas.objects import State

    if isinstance(result, State):
        return result.type.value, result.name or result.type.value.title(), result.message or ""
    return "COMPLETED", "Completed", ""


def _failed(error: Exception) -> tuple[str, str, str]:
    """The same of an error; words of ours alone, as others may quote values of rows."""
    return "FAILED", "Failed", str(error) if isinstance(error, EvenhandError) else type(error).__name__
