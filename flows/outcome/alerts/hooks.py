"""Hook of flows: sends the alerts of an ended flow run, by its state on the server."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from flows.outcome.alerts.settings import VARIABLE

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.client.schemas.objects import FlowRun, State

    from flows.outcome.run_log import RunLog
    from tasks.lake.store import Lake

log = logging.getLogger("evenhand")


def send_alerts(flow: "Flow[Any, Any]", flow_run: "FlowRun", state: "State[Any]") -> None:
    """Tell how a flow run ended; nothing where EVENHAND_ALERTS is not set. It raises nothing.

    Prefect calls it in the process of the run, and for a crash or a cancellation in the worker that ends that process
    or sees it end: so does that of a run that left because its worker was asked to, which is told to nobody.
    """
    if not os.environ.get(VARIABLE):
        return
    from flows.outcome.alerts.sending import tell, tell_unrecorded
    from flows.outcome.conclusion import ending_of_state
    from flows.outcome.subject import subject_of
    from flows.supervision.presence import was_stopped

    with _on_server(flow, flow_run):
        try:
            lake = _opened(flow_run)
            if lake is not None and state.is_crashed() and was_stopped(lake, str(flow_run.id)):
                return
            ending = ending_of_state(flow_run, state, lake)
            if ending is not None:  # a run that died early has not its own name yet
                ending = replace(ending, subject=subject_of(flow_run.parameters).words)
                tell_unrecorded(ending) if lake is None else tell(lake, ending)
        except Exception as error:
            log.warning("alert not delivered: the ending of %s is not known (%s)", flow_run.name, type(error).__name__)


def _opened(flow_run: "FlowRun") -> "Lake | None":
    """The lake of a run; None of one that cannot be opened: then nothing records that its ending was told."""
    from schemas.errors import EvenhandError
    from tasks.lake.store import Lake

    try:
        return Lake(flow_run.parameters["lake"])
    except (EvenhandError, OSError):
        return None


_ENDINGS: Final = ("on_completion", "on_failure", "on_crashed", "on_cancellation")
ALERTED: Final[dict[str, Any]] = {key: [send_alerts] for key in _ENDINGS}
"""Settings of a flow whose endings are told."""


class _Lines(logging.Handler):
    """Hands lines of the program to the log of a run that has ended."""

    def __init__(self, run: "RunLog") -> None:
        super().__init__(logging.INFO)
        self._run = run

    def emit(self, record: logging.LogRecord) -> None:
        """Hand over a line."""
        self._run.tell(record.levelno, record.getMessage())


@contextmanager
def _on_server(flow: "Flow[Any, Any]", flow_run: "FlowRun") -> Iterator[None]:
    """Lines of this block are in the run's log on the server, too."""
    from prefect.logging.loggers import flow_run_logger

    from flows.outcome.run_log import RunLog

    run = RunLog(flow_run_logger(flow_run, flow), (), logging.CRITICAL)
    lines = _Lines(run)
    log.addHandler(lines)
    try:
        yield
    finally:
        log.removeHandler(lines)
        run.send()
