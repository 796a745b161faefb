"""Decorator of flows: announces the run as alive while it works, and first marks the runs of dead processes."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from flows.supervision.file_modes import restrict
from flows.supervision.interruption import at_forced_end
from flows.supervision.presence import at_work, command_id
from tasks.lake.store import Lake

P = ParamSpec("P")
R = TypeVar("R")


def announced(function: Callable[P, R]) -> Callable[P, R]:
    """A flow's function that is at work on its parameter ``lake`` while it runs, and first marks those that died."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        from prefect.runtime import flow_run

        from flows.supervision.zombies import clear_leftovers, mark_dead, mark_stopped

        restrict()  # a worker that was not started by `evenhand worker` has the umask of its shell
        lake, run = Lake(inspect.signature(function).bind(*args, **kwargs).arguments["lake"]), flow_run.id
        with at_work(lake, str(run or command_id())), at_forced_end(lambda: mark_stopped(run)):
            mark_dead(lake)
            clear_leftovers(lake)
            return function(*args, **kwargs)

    return run
