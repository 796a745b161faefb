"""Decorator of flows: gives a flow run the state of its ending, its tags and its log, and shows its verdict."""

import inspect
import logging
import os
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, cast

from flows.outcome.ending import Ending, Name
from flows.outcome.run_log import handed_over, tell_run
from flows.outcome.subject import Subject, subject_of, words_known
from flows.supervision.crash import report_crash
from schemas.errors import EvenhandError, TooLittleEvidenceError
from schemas.terms import ExitCode
from tasks.pipeline.stop_request import stop_requested

if TYPE_CHECKING:
    from prefect.client.schemas.objects import State

P = ParamSpec("P")
Result = dict[str, Any]
Conclusion = Callable[[Mapping[str, Any], Result, Subject, Collection[str]], Ending | None]
"""From the flow's parameters, its result, its subject and the texts that may be quoted; None: nothing to tell."""

COMPLETED = (Name.WITHIN, Name.BREACH, Name.INSUFFICIENT)
"""A finding is no failure."""
INSUFFICIENT = "insufficient"
"""Key of the result of a run that ended for too little evidence before it had one: why."""
_OWN_TAGS = ("dataset:", "year:", "state:", "run:")


class BreachError(EvenhandError):
    """A limit is breached, and EVENHAND_BREACH_FAILS asks for a failed flow run; ``summary`` is its result."""

    exit_code = ExitCode.BREACH

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
            given = inspect.signature(function).bind(*args, **kwargs).arguments
            subject, known = subject_of(given), words_known(given)
            with handed_over(known):
                tag(*subject.tags)
                try:
                    result = function(*args, **kwargs)
                    ending, error = conclusion(given, result, subject, known), None
                except Exception as raised:
                    if stop_requested():
                        raise
                    _keep_traceback(raised, str(given["lake"]))
                    ending, error, result = _of_error(raised, subject, known)
                return cast("Result", _state(ending, result, error))

        return run

    return around


def _keep_traceback(error: Exception, lake: str) -> None:
    """Write the frames of a fault of ours into a file of the lake, where no command does that."""
    from prefect.runtime import deployment

    if deployment.id and not isinstance(error, EvenhandError | OSError):
        tell_run(report_crash(error, ["--lake", lake]), logging.ERROR)


def state_of_error(given: Mapping[str, Any], error: EvenhandError) -> "State[Any]":
    """The state of a flow's run that could not begin, by the flow's parameters."""
    subject, known = subject_of(given), words_known(given)
    with handed_over(known):
        ending, raised, result = _of_error(error, subject, known)
        return _state(ending, result, raised)


def _of_error(error: Exception, subject: Subject, known: Collection[str]) -> tuple[Ending, Exception | None, Result]:
    """The ending of an error, the error itself where the run fails of it, and what the run results in."""
    from flows.outcome.conclusion import ending_of_error, ending_of_years

    summary = getattr(error, "summary", None) or {}
    if "years" in summary:
        return ending_of_years(summary, subject.words, known), error, summary
    ending = ending_of_error(error, subject.words, known)
    if isinstance(error, TooLittleEvidenceError):
        return ending, None, {INSUFFICIENT: str(error)}
    return ending, error, {}


def _state(ending: Ending | None, result: Result, error: Exception | None) -> "State[Any]":
    """Prefect's state of an ending; it is logged, and the run gets its tags."""
    from prefect.states import Completed, Failed

    if ending is None:
        return Completed(data=result)
    failed = error is not None or (ending.name is Name.BREACH and breach_fails())
    tell_ending(ending, failed=error is not None)
    tag(f"state:{ending.name.value.lower().replace(' ', '_')}", *(f"run:{run}" for run in _runs(ending, result)))
    if not failed:
        return Completed(name=ending.name.value, message=ending.message, data=result)
    return Failed(name=ending.name.value, message=ending.message, data=error or BreachError(ending.message, result))


def _runs(ending: Ending, result: Result) -> list[str]:
    """The audits of a flow run: of a back-fill one a year, of one by partitions none, as they would be hundreds."""
    if ending.run:
        return [ending.run]
    return [year["run"] for year in result.get("years", ()) if year["run"] and not year["value"]]


def tell_ending(ending: Ending, *, failed: bool) -> None:
    """The last line of a run's log: its verdict, or why it failed, and where its report is."""
    report = f"; report {ending.report}" if ending.report else ""
    tell_run(f"{ending.name}: {ending.message}{report}", logging.ERROR if failed else logging.INFO)


def breach_fails() -> bool:
    """Whether a breach is to end a flow run as failed."""
    return os.environ.get("EVENHAND_BREACH_FAILS", "") == "1"


def tag(*tags: str) -> None:
    """Add tags to the flow run at work, in place of those of their kind, as a run that is taken up again has them."""
    from prefect.context import FlowRunContext

    from flows.outcome.artifacts import unharmed

    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return
    kinds = {each.split(":")[0] for each in tags}
    fresh = "dataset" in kinds
    gone = [kind for kind in _OWN_TAGS if fresh or kind.rstrip(":") in kinds]
    kept = [each for each in context.flow_run.tags if not each.startswith(tuple(gone))]
    context.flow_run.tags = [*kept, *tags]
    with unharmed("the tags of the run"):
        cast("Any", context.client).update_flow_run(context.flow_run.id, tags=context.flow_run.tags)
