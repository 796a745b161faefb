"""Tells people of runs whose process died: whoever finds one marks it on the server, and alerts go out.

What is done with the run: ``flows.supervision.zombies``.
"""

import logging

from flows.outcome.alerts.sending import tell
from flows.outcome.conclusion import run_of_tags
from flows.outcome.ending import Ending, Name
from flows.outcome.subject import subject_of
from flows.supervision.failures import Ended, note_failure
from flows.supervision.zombies import Burial, Marked, mark_dead
from tasks.lake.store import Lake

log = logging.getLogger("evenhand")


def see_to_dead(lake: Lake, burial: Burial | None = None) -> list[Marked]:
    """Mark the runs on a lake whose process is gone, and tell of each; returns what was marked.

    One that left because it was asked to is no fault. Of one that had ended its process may have told; the same state
    is told once. Of an audit that died the lake keeps a record for metrics; the years of a back-fill have their own.
    """
    found = mark_dead(lake, burial)
    for marked in found:
        ending = None if marked.stopped else ending_of(marked)
        if ending is None:
            continue
        if marked.flow == "audit" and not marked.mended:
            subject = subject_of(marked.parameters)
            note_failure(lake, subject.name, subject.year, Ended.INTERRUPTED, ending.name)
        tell(lake, ending)
    return found


def ending_of(marked: Marked) -> Ending | None:
    """How a run ended whose process is gone: as it said itself, crashed, or given up after it died too often.

    None where it ended in a state that says nothing to people.
    """
    if marked.mended:
        return _own_ending(marked, *marked.mended)
    name = Name.INFRASTRUCTURE if marked.given_up else Name.CRASHED
    again = "; it is taken up again" if marked.resumed else ""
    return Ending(name, marked.run, f"{marked.why}{again}", flow_run=marked.flow_run)


def _own_ending(marked: Marked, _: str, name: str, message: str) -> Ending | None:
    if name not in {each.value for each in Name}:
        return None
    return Ending(Name(name), marked.run, message, run=run_of_tags(marked.tags), flow_run=marked.flow_run)
