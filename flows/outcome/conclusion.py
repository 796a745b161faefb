"""The ending of a run: by what it published, the records of its years, an error, or its state on the server."""

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from flows.outcome.ending import Checks, Ending, Name, checks_of, one_line, without_cells
from flows.runs.index import Run, report_of, run_of
from flows.runs.record import exit_code_of
from flows.supervision.crash_files import fault_words
from schemas.errors import DataQualityError, EvenhandError
from schemas.terms import ExitCode, State
from tasks.lake.store import Lake

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun
    from prefect.client.schemas.objects import State as FlowState

REPORTS_URL = "EVENHAND_REPORTS_URL"
_PLAIN = re.compile(r"[A-Za-z0-9.\-:\[\]]+")
"""Letters of a host and its port."""
NAMES = {
    ExitCode.WITHIN: Name.WITHIN,
    ExitCode.OUTSIDE: Name.OUTSIDE,
    ExitCode.USAGE: Name.SPEC,
    ExitCode.INCONCLUSIVE: Name.INCONCLUSIVE,
    ExitCode.DATA_QUALITY: Name.DATA_QUALITY,
    ExitCode.INFRASTRUCTURE: Name.INFRASTRUCTURE,
    ExitCode.INTEGRITY: Name.INTEGRITY,
}
"""Name of the state of a run by the exit code of its command."""
_DATA_STEP = "`evenhand audit SPEC` at a terminal names the rows"


def ending_of_run(lake: Lake, run: str) -> Ending:
    """How a published run ended, by its published verdicts.

    Raises:
        SpecError: the lake holds no such run.
        IntegrityError: its manifest or its table is not the one that was written.
    """
    published_run = run_of(lake, run)
    return ending_of_checks(lake, published_run, checks_of(lake, published_run))


def ending_of_checks(lake: Lake, run: Run, checks: Checks) -> Ending:
    """The same of checks that were read already."""
    state = State(run.state)
    value = (run.spec.get("source") or {}).get("part") or {}
    subject = " ".join(filter(None, (run.audit, str(run.year), value.get("value", ""))))
    return Ending(
        NAMES[exit_code_of(state)], subject, checks.message(state), run=run.run, report=report_address(lake, run.run)
    )


def ending_of_error(error: Exception, subject: str, quotable_texts: Collection[str] = ()) -> Ending:
    """How a run ended that an error stopped: what, where and the next step, without values of rows.

    Args:
        error: what was raised.
        subject: what the run was about.
        quotable_texts: texts that a message may quote (``subject.words_known``).
    """
    code = error.exit_code if isinstance(error, EvenhandError) else ExitCode.INFRASTRUCTURE
    if isinstance(error, EvenhandError | OSError):
        message = str(error) or type(error).__name__
    else:
        message = f"{fault_words(error)}; `evenhand doctor` checks this installation"
    where = "".join(f"{note}: " for note in getattr(error, "__notes__", ()) if note.startswith("stage "))
    if isinstance(error, DataQualityError) or where:  # the message of a stage on a spec may quote cells, too
        next_step = f"; {_DATA_STEP}" if isinstance(error, DataQualityError) and "\n" in message else ""
        message = without_cells(message, quotable_texts) + next_step
    return Ending(NAMES[code], subject, one_line(where + message))


def ending_of_years(summary: Mapping[str, Any], subject: str, quotable_texts: Collection[str] = ()) -> Ending:
    """How a back-fill ended, by its summary (``attempts.record.summed_up``): counts, and the most serious year."""
    code, years = ExitCode(summary["exit_code"]), summary["years"]
    counts: dict[str, int] = {}
    for year in years:
        counts[year["state"]] = counts.get(year["state"], 0) + 1
    of = "partitions" if any(year.get("value") for year in years) else "years"
    counts_text = ", ".join(f"{count} {state}" for state, count in counts.items())
    serious = next((year for year in years if year["exit_code"] == code), None)
    worst = ""
    if serious is not None and code:
        place = " ".join(filter(None, (str(serious["year"]), serious.get("value", ""), serious.get("stage", ""))))
        message = serious["message"]
        why = without_cells(message, quotable_texts) if message else f"run {serious['run']}"
        worst = f"; {place}: {why}"
    total_text = f"{len(years)} {of if len(years) != 1 else of.removesuffix('s')}"
    return Ending(NAMES[code], subject, one_line(f"{total_text}: {counts_text}{worst}"))


def ending_of_state(flow_run: "FlowRun", state: "FlowState[Any]", lake: Lake | None) -> Ending | None:
    """How a flow run ended, by its state on the server; None of a state without a message for people.

    It is for hooks, which get no more than the state: name and message are those that the flow gave it, a crash is
    Prefect's own.
    """
    names = {name.value: name for name in Name}
    name = Name.CRASHED if state.is_crashed() else names.get(state.name or "")
    if state.is_cancelling():  # hooks of a run that somebody cancels get this one
        name = Name.CANCELLED
    if name is None and state.is_failed():
        name = Name.INFRASTRUCTURE  # of Prefect itself, such as parameters that it refuses
    if name is None:
        return None
    run = run_of_tags(flow_run.tags)
    ending = Ending(name, flow_run.name, one_line(state.message or ""), run=run, flow_run=str(flow_run.id))
    return replace(ending, report=report_address(lake, run)) if run and lake is not None else ending


def run_of_tags(tags: Iterable[str]) -> str:
    """The audit's run that a flow run is tagged with; empty without one, and of a back-fill with several."""
    runs = [tag.removeprefix("run:") for tag in tags if tag.startswith("run:")]
    return runs[0] if len(runs) == 1 else ""


def report_address(lake: Lake, run: str) -> str:
    """Where people open a run's report: below EVENHAND_REPORTS_URL, else its path or URI in the lake."""
    site = reports_site(os.environ.get(REPORTS_URL, ""))
    if site:
        return f"{site}/{run}/report.html"
    storage, folder = report_of(lake, run)
    return storage.where(f"{folder}/report.html")


def reports_site(address: str) -> str:
    """An address of http or https of the reports, in a form that is safe in a link; empty if it is none."""
    parts = urlsplit(address.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or not _PLAIN.fullmatch(parts.netloc):
        return ""
    return f"{parts.scheme}://{parts.netloc}{quote(parts.path.rstrip('/'), safe='/%~')}"
