"""What the API of a Prefect server tells of the flow runs on a lake, asked as anybody may: over HTTP alone."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx


@dataclass(frozen=True)
class Told:
    """One flow run."""

    name: str
    type: str
    state: str
    message: str
    tags: tuple[str, ...]
    tasks: dict[str, str]
    """Name -> message of the state that it ended in."""
    lines: tuple[tuple[int, str], ...]
    """Level and text of its log, in order of time."""
    of_tasks: tuple[str, ...]
    """Lines of the log that a task wrote."""
    artifacts: dict[str, Any]
    """Key or type -> what it holds."""


def told_runs(server: str, lake: Path) -> list[Told]:
    """The flow runs on a lake that are within no other, the first one first."""
    found = _asked(server, "flow_runs", sort="START_TIME_ASC", limit=200)
    return [
        _told(server, run)
        for run in found
        if run["parameters"].get("lake") == str(lake) and not run["parent_task_run_id"]
    ]


def _told(server: str, run: dict[str, Any]) -> Told:
    ours = {"flow_runs": {"id": {"any_": [run["id"]]}}}
    lines = _asked(server, "logs", logs={"flow_run_id": {"any_": [run["id"]]}}, sort="TIMESTAMP_ASC")
    return Told(
        name=run["name"],
        type=run["state_type"],
        state=run["state_name"],
        message=run["state"]["message"] or "",
        tags=tuple(run["tags"]),
        tasks={task["name"]: task["state"]["message"] or "" for task in _asked(server, "task_runs", **ours)},
        lines=tuple((line["level"], line["message"]) for line in lines),
        of_tasks=tuple(line["message"] for line in lines if line["task_run_id"]),
        artifacts={str(each["key"] or each["type"]): each["data"] for each in _asked(server, "artifacts", **ours)},
    )


def _asked(server: str, what: str, **body: object) -> list[dict[str, Any]]:
    answer = httpx.post(f"{server}/{what}/filter", json=body, timeout=30)
    answer.raise_for_status()
    found: list[dict[str, Any]] = answer.json()
    return found
