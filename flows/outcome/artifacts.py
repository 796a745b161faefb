"""Artifacts of a run on Prefect's server, from published tables alone: verdict, checks, how far it is, and an event.

Whatever the server answers, the run goes on: what people are shown never decides how it ends.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast
from uuid import UUID

from prefect.artifacts import (
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.events import emit_event

from flows.outcome.ending import Checks, Ending, Row, shown
from flows.runs.index import Run
from schemas.tables.applications import read_words

log = logging.getLogger("evenhand")


@contextmanager
def unharmed(subject: str) -> Iterator[None]:
    """Continue if a call to the server fails, with a line in the log."""
    try:
        yield
    except Exception as error:
        log.warning("the server did not get %s (%s); the run goes on", subject, type(error).__name__)


def show_verdict(ending: Ending, run: Run, checks: Checks) -> None:
    """Show a published run: the verdict as text, the checks as a table, and a link to a report with an address."""
    rows = [{**shown(row), "question": checks.rephrase(str(shown(row)["question"]))} for row in checks.rows]
    with unharmed("the verdict"):
        create_markdown_artifact(key="verdict", markdown=page(ending, run, rows), description=ending.subject)
        create_table_artifact(key="checks", table=rows, description=f"limits of {run.run}, the worst first")
        if "://" in ending.report:  # no browser follows a link to a file from the page of a server
            create_link_artifact(ending.report, run.run, key="report", description=f"report of {ending.subject}")


CHANGED: Final = "evenhand.trend.changed"
"""Event of a series with a change against its group."""


def announce_changes(audit: str, of_years: Callable[[], Sequence[Mapping[str, str]]]) -> None:
    """Emit an event for each series that a schedule announces; automations of the server may wait for it.

    Args:
        audit: its name.
        of_years: returns the names of each series and its last year, without a count.
    """
    with unharmed("what changed over the years"):
        for series in of_years():
            place = ".".join((audit, *(series[name] for name in ("theory", "attribute", "group", "decision_maker"))))
            resource = {"prefect.resource.id": f"evenhand.series.{place}", "prefect.resource.name": place}
            emit_event(event=CHANGED, resource=resource, payload={"audit": audit, **series})


def page(ending: Ending, run: Run, rows: Sequence[Row]) -> str:
    """The verdict as Markdown: title, state, checks, what was read, and where the report is."""
    title = run.spec.get("title") or run.audit
    year = "" if str(run.year) in title else f", {run.year}"
    lines = [f"# {_cell(title)}{year}: {ending.name}", "", _cell(ending.message), ""]
    if rows:
        lines += ["| " + " | ".join(rows[0]) + " |", "| " + " | ".join("---" for _ in rows[0]) + " |"]
        lines += ["| " + " | ".join(map(_cell, row.values())) + " |" for row in rows]
    else:
        lines.append("No figure of this run has a limit.")
    lines += ["", f"Read: {_cell(read_words(run.source_summary))}"] if run.source_summary else []
    address = f"[{ending.report}]({ending.report})" if "://" in ending.report else f"`{ending.report}`"
    return "\n".join([*lines, "", f"Report: {address}", "", f"Run: `{run.run}`", ""])


def _cell(text: object) -> str:
    """A text of the spec or of the data in a line of Markdown, where it forms nothing but text."""
    plain = " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;").replace("\\", "\\\\")
    return "".join(f"\\{letter}" if letter in "|`*[]" else letter for letter in plain)


@dataclass
class Progress:
    """The share of a run that is done."""

    description: str
    _artifact: UUID | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        with unharmed("how far the run is"):
            artifact_id = create_progress_artifact(progress=0.0, description=self.description)
            self._artifact = cast("UUID", artifact_id)

    def reached(self, share: float) -> None:
        """Show a share between 0 and 1."""
        if self._artifact is not None:
            with unharmed("how far the run is"):
                update_progress_artifact(self._artifact, 100 * share)


class Sheet:
    """A table that is updated while the run continues."""

    def __init__(self, key: str, description: str) -> None:
        """Show nothing yet."""
        self._key, self._description = key, description
        self._artifact: UUID | None = None

    def show(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Show these rows instead of those before."""
        with unharmed(f"the table of {self._key}"):
            if self._artifact is None:
                table = [dict(row) for row in rows]
                artifact_id = create_table_artifact(key=self._key, table=table, description=self._description)
                self._artifact = cast("UUID", artifact_id)
            else:
                self._replace(rows)

    def _replace(self, rows: Sequence[Mapping[str, Any]]) -> None:
        from prefect.client.orchestration import get_client
        from prefect.client.schemas.actions import ArtifactUpdate

        with get_client(sync_client=True) as client:
            client.update_artifact(cast("UUID", self._artifact), ArtifactUpdate(data=json.dumps(list(rows))))
