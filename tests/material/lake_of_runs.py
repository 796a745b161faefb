"""A lake of three finished runs of two audits, with reports and published tables, none of which was computed."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from decide_runs import boston
from exported_run import material

from flows.runs.index import digest
from schemas.tables.verdicts import PUBLISHED_MEASURES, PUBLISHED_VERDICTS
from tasks.lake.store import Lake
from tasks.reporting.exports.report_json import document
from tasks.reporting.first_page.page import decide

OLD, NEW, OTHER = "loans-2023-0123456789", "loans-2023-0987654321", "cards-2024-5555555555"
RUNS = {OTHER: "2026-01-02T10:00:00Z", NEW: "2026-01-03T10:00:00Z", OLD: "2026-01-01T10:00:00Z"}
"""Runs and when they were finished."""
STATES = {OLD: "within", NEW: "outside", OTHER: "no_limit"}


def lake_of_runs(
    place: Path,
    former: bytes | None = None,
    spec: Mapping[str, Any] | None = None,
    rows: Sequence[Mapping[str, Any]] = (),
) -> Lake:
    """Make it in a directory.

    Args:
        place: the directory.
        former: what every report.json holds, as of another version.
        spec: further keys of every run's spec.
        rows: further verdicts, each what differs from the last one.
    """
    lake, told = Lake(place), material()
    said = json.loads(document(told, decide(boston()), ("report.html",)))
    kept = [asdict(m) for m in told.measures]
    kept += [row | {"measure": "burden", "method": "fgce", "state": "information"} for row in kept[:2]]
    kept += [row | {"measure": "burden", "parameters": '{"k": 5}', "method": "fgce"} for row in kept[:2]]
    measures = PUBLISHED_MEASURES.build(**{c.name: [row[c.name] for row in kept] for c in PUBLISHED_MEASURES.columns})
    verdicts = list(told.tables[PUBLISHED_VERDICTS.name])
    verdicts += [verdicts[-1] | row for row in rows]
    judged = PUBLISHED_VERDICTS.build(**{c.name: [row[c.name] for row in verdicts] for c in PUBLISHED_VERDICTS.columns})
    tables = {PUBLISHED_MEASURES.name: measures, PUBLISHED_VERDICTS.name: judged}
    made = lake.publish("publish", "0" * 32, tables, {}, {}).model_dump(mode="json", exclude={"reused"})
    for run in RUNS:
        _finished(lake, run, said, {"partitions": [made]}, {"source": {}, **(spec or {})}, former)
    return lake


def _finished(
    lake: Lake, run: str, said: dict[str, Any], more: dict[str, Any], spec: Mapping[str, Any], former: bytes | None
) -> None:
    audit, year, _ = run.split("-")
    report = (
        former or json.dumps({**said, "run": run, "audit": audit, "year": int(year), "state": STATES[run]}).encode()
    )
    lake.write_file(f"reports/{run}/report.json", report)
    content = {
        **{"run": run, "dataset": audit, "year": int(year), "state": STATES[run], "finished": RUNS[run]},
        **{"spec": {**spec, "name": audit}, "source_sha256": "ab" * 32, "code": "cd" * 32, "versions": {}},
        "exported": {"report.json": hashlib.sha256(report).hexdigest()},
        "records": {},
        **more,
        "lineage": [{"rows": {"in": 500}, "seconds": 1.0}],
    }
    lake.write_file(f"runs/{run}/manifest.json", json.dumps({**content, "sha256": digest(content)}, indent=1).encode())
