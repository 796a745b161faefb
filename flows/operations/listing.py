"""The runs of a lake, newest first, each with its state by question: what ``evenhand runs`` lists.

Scope: manifests and report.json as they are, unverified: a list is no proof. ``evenhand verify`` checks digests.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from schemas.terms import State, Theory
from tasks.lake import log
from tasks.lake.storage import mapping_of
from tasks.lake.store import Lake

warnings = logging.getLogger("evenhand")

QUESTIONS = (Theory.OUTCOME, Theory.DIRECT, Theory.TOTAL, Theory.RECOURSE, Theory.REASONS, Theory.OWN)
"""In the order of the first page."""


@dataclass(frozen=True)
class Listed:
    """A run as the list has it."""

    run: str
    audit: str
    year: int
    state: str
    """The state that decides the exit code."""
    theories: Mapping[str, str]
    """Theory -> its state, in the order of the questions; empty where no report.json tells them."""
    finished: str
    protected: bool
    partition: Mapping[str, str] | None = None
    """Column and value of the rows that it is about; None of an audit without ``by``."""


def listed(
    lake: Lake, audit: str | None = None, year: int | None = None, state: State | None = None, limit: int | None = None
) -> list[Listed]:
    """The runs that fit, at most ``limit``, the last published first: by the lake's log, as clocks are set back.

    A manifest that cannot be read is left out, and named by a warning.
    """
    found = [
        (told, written)
        for told, written in _manifests(lake)
        if audit in (None, told["dataset"]) and year in (None, told["year"]) and state in (None, told["state"])
    ]
    numbers = log.published(lake)
    found.sort(key=lambda each: (numbers.get(each[0]["run"], 0), each[0]["finished"], each[1]), reverse=True)
    return [_listed(lake, told) for told, _ in found[:limit]]


def _manifests(lake: Lake) -> Iterator[tuple[dict[str, Any], int]]:
    """Each manifest with the time of its file, which orders runs of one second that no log has."""
    for path in lake.storage.glob("runs/*/manifest.json"):
        try:
            told = mapping_of(lake.storage.read(path))
            kept = {name: told[name] for name in ("run", "dataset", "year", "state", "finished")}
            kept["partition"] = told.get("partition")  # an earlier version had none
        except (OSError, ValueError, KeyError) as error:
            where, why = lake.storage.where(path), type(error).__name__
            warnings.warning("%s cannot be read (%s), and its run is left out: evenhand status", where, why)
            continue
        yield kept, lake.storage.modified(path)


def _listed(lake: Lake, told: Mapping[str, Any]) -> Listed:
    run = told["run"]
    protected = lake.storage.exists(f"runs/{run}/protected")
    theories = _theories(lake.storage.read(f"reports/{run}/report.json") or b"{}")
    words = (run, told["dataset"], told["year"], told["state"], theories, told["finished"], protected)
    return Listed(*words, told["partition"])


def _theories(report: bytes) -> dict[str, str]:
    """The states of the questions by report.json, of this version or an earlier one."""
    try:
        table = json.loads(report)["theories"]
        rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
        wholes = {row["theory"]: row["state"] for row in rows if row["role"] == "theory"}
    except (ValueError, KeyError, TypeError):
        return {}
    return {theory.value: wholes[theory] for theory in QUESTIONS if theory in wholes}
