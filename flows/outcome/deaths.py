"""Tells people of runs whose process died: whoever finds one marks it on the server, and alerts go out.

What is done with the run: ``flows.supervision.zombies``.
"""

import logging

from flows.outcome.alerts.sending import tell
from flows.outcome.ending import Ending, Name
from flows.outcome.subject import subject_of
from flows.supervision.failures import Ended, note_failure
from flows.supervision.zombies import Burial, Marked, mark_dead
from tasks.lake.store import Lake

log = logging.getLogger("evenhand")


def see_to_dead(lake: Lake, burial: Burial | None = None) -> list[Marked]:
    """Mark the runs on a lake whose process is gone, and tell of each; returns what was marked.

    One that left because it was asked to is no fault, and one that had ended was told by its own process. Of an audit
    the lake keeps a record for metrics; the years of a back-fill have their own.
    """
    found = mark_dead(lake, burial)
    for marked in found:
        if not (marked.stopped or marked.mended):
            ending = ending_of(marked)
            if marked.flow == "audit":
                subject = subject_of(marked.parameters)
                note_failure(lake, subject.name, subject.year, Ended.INTERRUPTED, ending.name)
            tell(lake, ending)
    return found


def ending_of(marked: Marked) -> Ending:
    """How a run ended whose process is gone: crashed, or given up after it died too often."""
    name = Name.INFRASTRUCTURE if marked.given_up else Name.CRASHED
    again = "; it is taken up again" if marked.resumed else ""
    return Ending(name, marked.run, f"{marked.why}{again}", flow_run=marked.flow_run)
