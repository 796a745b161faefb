"""Decorators of flows: announce a run, set its state and tags; notices of dead runs."""

import inspect
import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from flows.outcome.alerts import tell
from flows.outcome.conclusion import run_of_tags
from flows.outcome.ending import Ending, Name, Subject, subject_of, words_known
from flows.outcome.run_log import handed_over, tell_run
from flows.supervision.crash_files import report_crash
from flows.supervision.dead_runs import Burial, Marked, mark_dead
from flows.supervision.failed_audits import Ended, note_failure
from flows.supervision.file_modes import restrict
from flows.supervision.parentage import end_with
from flows.supervision.prefect_server import fault_at
from flows.supervision.presence import Presence, at_work, clear_leftovers, command_id, note_outcome, note_stopped
from flows.supervision.shutdown import (
    at_forced_end,
    grace_seconds,
    heeding_term,
    leaves_on_word,
    may_finish,
    of_worker,
    seconds_given,
)
from schemas.errors import EvenhandError, TooLittleEvidenceError
from schemas.terms import ExitCode
from tasks.lake.store import Lake
from tasks.pipeline.progress import stop_requested

if TYPE_CHECKING:
    from prefect.client.schemas.objects import State


# --------------------------------------------------------------------------------------------------------------------
# Reports runs of dead processes: the process that finds one marks it on the server and sends alerts.
#
# What is done with the run: ``flows.supervision.dead_runs``.


log = logging.getLogger("evenhand")


def see_to_dead(lake: Lake, burial: Burial | None = None) -> list[Marked]:
    """Mark the runs of dead processes on a lake, and send an alert of each; returns the marked runs.

    A run that left after a stop request is no fault. The process of a run that had ended may have sent its alert; each
    state is sent once. The lake keeps a record of an audit that died, for metrics; years of a back-fill have their own.
    """
    marked_runs = mark_dead(lake, burial)
    for marked in marked_runs:
        ending = None if marked.stopped else ending_of(marked)
        if ending is None:
            continue
        if marked.flow == "audit" and not marked.mended:
            subject = subject_of(marked.parameters)
            note_failure(lake, subject.name, subject.year, Ended.INTERRUPTED, ending.name)
        tell(lake, ending)
    return marked_runs


def ending_of(marked: Marked) -> Ending | None:
    """How a run of a dead process ended: as it recorded, crashed, or given up after it died too often.

    None where it ended in a state without a message for people.
    """
    if marked.mended:
        _, state, message = marked.mended
        if state not in {ending_name.value for ending_name in Name}:
            return None
        return Ending(Name(state), marked.run, message, run=run_of_tags(marked.tags), flow_run=marked.flow_run)
    name = Name.INFRASTRUCTURE if marked.given_up else Name.CRASHED
    again = "; it is taken up again" if marked.resumed else ""
    return Ending(name, marked.run, f"{marked.why}{again}", flow_run=marked.flow_run)


# --------------------------------------------------------------------------------------------------------------------
# Waits for Prefect's server before a run reports its end: what is computed is in the lake, and needs no server.
#
# EVENHAND_SERVER_PATIENCE is how long, in seconds. A run whose server does not come back in time ends all the same; a
# worker corrects its state from the lake later (``flows.supervision.dead_runs``).


PATIENCE = "EVENHAND_SERVER_PATIENCE"
PATIENCE_SECONDS = 900.0
_LOOK_SECONDS = 2.0


def patience_seconds() -> float:
    """Seconds that a run waits for its server.

    Raises:
        InfrastructureError: EVENHAND_SERVER_PATIENCE is no number of seconds.
    """
    return seconds_given(PATIENCE, PATIENCE_SECONDS)


def await_server() -> bool:
    """Wait until the server answers, as long as patience lasts; whether it does. Without a server at once."""
    from prefect.settings import PREFECT_API_URL

    api = PREFECT_API_URL.value()
    if not api:
        return True
    until, is_logged = time.monotonic() + patience_seconds(), False
    # a server that is up and refuses the password reports that itself
    while (fault := fault_at(api)) is not None and fault.passing:
        if time.monotonic() > until:
            log.warning(
                "the server at %s did not answer for %.0f s; a worker corrects the run's state", api, patience_seconds()
            )
            return False
        if not is_logged:
            log.warning("the server at %s does not answer; the run is over, and reports when it does", api)
            is_logged = True
        time.sleep(_LOOK_SECONDS)
    return True


# --------------------------------------------------------------------------------------------------------------------
# Decorator of flows: gives a flow run the state of its ending, its tags and its log, and shows its verdict.


P = ParamSpec("P")
Result = dict[str, Any]
Conclusion = Callable[[Mapping[str, Any], Result, Subject, Collection[str]], Ending | None]
"""From the flow's parameters, its result, its subject and the texts that may be quoted; None: nothing to report."""

COMPLETED = (Name.WITHIN, Name.OUTSIDE, Name.INCONCLUSIVE)
"""A finding is no failure."""
INSUFFICIENT = "insufficient"
"""Key of the result of a run that ended for too little evidence before it had one: why."""
_OWN_TAGS = ("dataset:", "year:", "state:", "run:")


class BreachError(EvenhandError):
    """A limit is breached, and EVENHAND_BREACH_FAILS demands a failed flow run; ``summary`` is its result."""

    exit_code = ExitCode.OUTSIDE

    def __init__(self, message: str, summary: Result | None = None) -> None:
        """Keep the result."""
        super().__init__(message)
        self.summary = summary or {}


def concluded(conclusion: Conclusion) -> Callable[[Callable[P, Result]], Callable[P, Result]]:
    """Give a flow's run a state with the name and message of its ending; its result is as the function's.

    Args:
        conclusion: the ending of a run that the function ended in order. An error has an ending of its own.
    """

    def around(function: Callable[P, Result]) -> Callable[P, Result]:
        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> Result:
            parameters = inspect.signature(function).bind(*args, **kwargs).arguments
            subject, quotable_texts = subject_of(parameters), words_known(parameters)
            with handed_over(quotable_texts):
                tag(*subject.tags)
                try:
                    result = function(*args, **kwargs)
                    ending, error = conclusion(parameters, result, subject, quotable_texts), None
                except Exception as raised:
                    if stop_requested():
                        raise
                    _keep_traceback(raised, str(parameters["lake"]))
                    ending, error, result = _of_error(raised, subject, quotable_texts)
                return cast("Result", _state(ending, result, error))

        return run

    return around


def _keep_traceback(error: Exception, lake: str) -> None:
    """Write the frames of a fault of ours into a file of the lake, where no command does that."""
    from prefect.runtime import deployment

    if deployment.id and not isinstance(error, EvenhandError | OSError):
        tell_run(report_crash(error, ["--lake", lake]), logging.ERROR)


def state_of_error(parameters: Mapping[str, Any], error: EvenhandError) -> "State[Any]":
    """The state of a flow's run that could not begin, by the flow's parameters."""
    subject, quotable_texts = subject_of(parameters), words_known(parameters)
    with handed_over(quotable_texts):
        ending, raised, result = _of_error(error, subject, quotable_texts)
        return _state(ending, result, raised)


def _of_error(
    error: Exception, subject: Subject, quotable_texts: Collection[str]
) -> tuple[Ending, Exception | None, Result]:
    """The ending of an error, the error itself where the run fails of it, and what the run results in."""
    from flows.outcome.conclusion import ending_of_error, ending_of_years

    summary = getattr(error, "summary", None) or {}
    if "years" in summary:
        return ending_of_years(summary, subject.words, quotable_texts), error, summary
    ending = ending_of_error(error, subject.words, quotable_texts)
    if isinstance(error, TooLittleEvidenceError):
        return ending, None, {INSUFFICIENT: str(error)}
    return ending, error, {}


def _state(ending: Ending | None, result: Result, error: Exception | None) -> "State[Any]":
    """Prefect's state of an ending; it is logged, and the run gets its tags."""
    from prefect.states import Completed, Failed

    if ending is None:
        return Completed(data=result)
    failed = error is not None or (ending.name is Name.OUTSIDE and breach_fails())
    tell_ending(ending, failed=error is not None)
    # of a back-fill one run a year, of one by partitions none, as they would be hundreds
    runs = [year["run"] for year in result.get("years", ()) if year["run"] and not year["value"]]
    run_tags = [f"run:{run}" for run in ([ending.run] if ending.run else runs)]
    tag(f"state:{ending.name.name.lower()}", *run_tags)
    if not failed:
        return Completed(name=ending.name.value, message=ending.message, data=result)
    return Failed(name=ending.name.value, message=ending.message, data=error or BreachError(ending.message, result))


def tell_ending(ending: Ending, *, failed: bool) -> None:
    """The last line of a run's log: its verdict, or why it failed, and where its report is."""
    report = f"; report {ending.report}" if ending.report else ""
    tell_run(f"{ending.name}: {ending.message}{report}", logging.ERROR if failed else logging.INFO)


def breach_fails() -> bool:
    """Whether a breach is to end a flow run as failed."""
    return os.environ.get("EVENHAND_BREACH_FAILS", "") == "1"


def tag(*tags: str) -> None:
    """Add tags to the active flow run, in place of those of their kind, since a resumed run has them already."""
    from prefect.context import FlowRunContext

    from flows.outcome.artifacts import unharmed

    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return
    kinds = {tag_text.split(":")[0] for tag_text in tags}
    fresh = "dataset" in kinds
    gone = [kind for kind in _OWN_TAGS if fresh or kind.rstrip(":") in kinds]
    remaining_tags = [tag_text for tag_text in context.flow_run.tags if not tag_text.startswith(tuple(gone))]
    context.flow_run.tags = [*remaining_tags, *tags]
    with unharmed("the tags of the run"):
        cast("Any", context.client).update_flow_run(context.flow_run.id, tags=context.flow_run.tags)


# --------------------------------------------------------------------------------------------------------------------
# Decorator of flows: announces the run as alive while it works, and first marks the runs of dead processes.
#
# The run leaves in order after a stop request, ends with the worker that started it, and notes its outcome before
# Prefect reports it, so that a worker can correct the state on a server that was away.

R = TypeVar("R")


def announced(function: Callable[P, R]) -> Callable[P, R]:
    """A flow's function that is at work on its parameter ``lake`` while it runs, and first marks those that died."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        restrict()  # a worker that was not started by `evenhand worker` has the umask of its shell
        parameters = inspect.signature(function).bind(*args, **kwargs).arguments
        with ExitStack() as stack:
            try:
                lake = Lake(parameters["lake"])
                presence = stack.enter_context(_supervised(lake))
            except EvenhandError as error:
                return cast("R", state_of_error(parameters, error))
            call = partial(function, *args, **kwargs)
            if not of_worker():
                return call()
            try:
                result = call()
            except Exception as error:
                # words of ours alone, as others may quote values of rows
                words = str(error) if isinstance(error, EvenhandError) else type(error).__name__
                note_outcome(lake, presence, ("FAILED", "Failed", words))
                await_server()
                raise
            from prefect.client.schemas.objects import State

            outcome = ("COMPLETED", "Completed", "")
            if isinstance(result, State):
                outcome = (result.type.value, result.name or result.type.value.title(), result.message or "")
            note_outcome(lake, presence, outcome)
            await_server()
            return result

    return run


@contextmanager
def _supervised(lake: Lake) -> Iterator[Presence]:
    from prefect.runtime import flow_run

    from flows.supervision.dead_runs import mark_stopped

    run = flow_run.id
    grace_seconds()  # reports a wrong value now, and not after SIGTERM
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
