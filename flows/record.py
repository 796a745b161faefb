"""What a run leaves behind: its manifest, the exported report, the headline table and the exit code."""

import io
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from flows.plan import Plan
from schemas.artifact import Partition
from schemas.measures import MEASURES
from schemas.terms import ExitCode, State
from tasks._lineage import versions
from tasks._store import Lake

HEADLINES = (
    "approval_rate",
    "approval_rate_ratio",
    "infeasible_share",
    "infeasible_share_size_matched",
    "burden",
    "burden_size_matched",
)
"""Measures of the table that an audit prints at its end."""


@dataclass(frozen=True)
class Summary:
    """What an audit prints at its end."""

    run: str
    state: State
    headline: list[dict[str, Any]]
    checks: list[dict[str, Any]]
    report: Path
    computed: int
    """Stages that were not in the lake before."""

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the design: a breach outweighs all; without a verdict nothing reads as a pass."""
        codes = {State.WITHIN: ExitCode.WITHIN, State.BREACH: ExitCode.BREACH}
        return codes.get(self.state, ExitCode.INSUFFICIENT_EVIDENCE)


def conclude(lake: Lake, planned: Plan, done: Sequence[Partition]) -> Summary:
    """Write the manifest, export the report beside the lake, and sum up."""
    measures = _measures(lake, done)
    state = overall([row["state"] for row in measures.select(["state"]).to_pylist()])
    report = _export(lake, planned.run, done, measures)
    _manifest(lake, planned, done, state)
    checks = [row for row in measures.to_pylist() if row["state"] != State.NOT_RUN]
    computed = sum(not partition.reused for partition in done)
    return Summary(planned.run, state, headline(lake, done), checks, report, computed)


def overall(states: Sequence[str]) -> State:
    """One state for many: a breach outweighs too little evidence, which outweighs a pass; of nothing, not run."""
    for state in (State.BREACH, State.INSUFFICIENT_EVIDENCE, State.WITHIN):
        if state in states:
            return state
    return State.NOT_RUN


def headline(lake: Lake, done: Sequence[Partition]) -> list[dict[str, Any]]:
    """The headline measures of whole groups."""
    rows = _measures(lake, done).to_pylist()
    return [r for r in rows if r["measure"] in HEADLINES and r["subgroup"] == 0 and r["parameters"] == "{}"]


def read_manifest(lake: Lake, run: str) -> dict[str, Any]:
    """The manifest of a run.

    Raises:
        FileNotFoundError: the lake has no such run.
    """
    content: dict[str, Any] = json.loads((lake.root / "runs" / run / "manifest.json").read_text(encoding="utf-8"))
    return content


def _measures(lake: Lake, done: Sequence[Partition]) -> pa.Table:
    partition = next(p for p in done if p.stage == "measure")
    return lake.read(partition.table(MEASURES.name))


def _export(lake: Lake, run: str, done: Sequence[Partition], measures: pa.Table) -> Path:
    """The report's files and the measures, beside the lake; returns the path of the report."""
    home = lake.root.parent / "reports" / run
    home.mkdir(parents=True, exist_ok=True)
    partition = next(p for p in done if p.stage == "report")
    contents = {Path(p).name: lake.check(p, digest).read_bytes() for p, digest in partition.files.items()}
    contents.pop("lineage.json")
    sink = io.BytesIO()
    pq.write_table(measures.add_column(0, "run", pa.array([run] * measures.num_rows)), sink, store_schema=False)
    contents["measures.parquet"] = sink.getvalue()
    for name, content in contents.items():
        draft = home / f".{name}"
        draft.write_bytes(content)
        draft.replace(home / name)
    return home / "report.html"


def _manifest(lake: Lake, planned: Plan, done: Sequence[Partition], state: State) -> None:
    """Everything that identifies the run. A run that was found whole in the lake keeps the manifest it has."""
    path = f"runs/{planned.run}/manifest.json"
    if all(p.reused for p in done) and (lake.root / path).is_file():
        return
    content = {
        "run": planned.run,
        "dataset": planned.spec.name,
        "year": planned.spec.year,
        "state": state,
        "spec": planned.spec.model_dump(mode="json"),
        "source_sha256": planned.source_sha256,
        "code": planned.code,
        "versions": versions(),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "partitions": [p.model_dump(mode="json", exclude={"reused"}) for p in done],
        "lineage": [lake.lineage(p) for p in done],
    }
    lake.write_file(path, json.dumps(content, indent=1).encode())
