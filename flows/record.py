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
from tasks.algorithms.verdicts import overall
from tasks.methods import METHODS

HEADLINES = {"approval_rate": "approved"} | {
    name: title for m in METHODS.values() for name, title in m.headline.items()
}
"""Measures of the table that an audit prints at its end, with their titles."""


@dataclass(frozen=True)
class Summary:
    """What an audit prints at its end."""

    run: str
    state: State
    headline: list[dict[str, Any]]
    titles: dict[str, str]
    """Measure -> its title, in the order of the columns."""
    checks: list[dict[str, Any]]
    report: Path
    computed: int
    """Stages that were not in the lake before."""

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the design: a breach outweighs all; without a verdict nothing reads as a pass."""
        codes = {State.WITHIN: ExitCode.WITHIN, State.BREACH: ExitCode.BREACH}
        return codes.get(self.state, ExitCode.INSUFFICIENT_EVIDENCE)


def publish(lake: Lake, planned: Plan, done: Sequence[Partition]) -> None:
    """Export the report beside the lake, then write the manifest: a run with a manifest has its report."""
    measures = _measures(lake, done)
    _export(lake, planned.run, done, measures)
    _manifest(lake, planned, done, _state(measures))


def summarise(lake: Lake, planned: Plan, done: Sequence[Partition]) -> Summary:
    """What the audit has to say."""
    measures = _measures(lake, done)
    checks = [row for row in measures.to_pylist() if row["state"] != State.NOT_RUN]
    computed = sum(not partition.reused for partition in done)
    report = reports_of(lake, planned.run) / "report.html"
    return Summary(planned.run, _state(measures), headline(lake, done), HEADLINES, checks, report, computed)


def is_published(lake: Lake, run: str) -> bool:
    """Whether the manifest and the report of a run are there."""
    return (lake.root / "runs" / run / "manifest.json").is_file() and (reports_of(lake, run) / "report.html").is_file()


def reports_of(lake: Lake, run: str) -> Path:
    """Where the report of a run is exported to."""
    return lake.root.parent / "reports" / run


def _state(measures: pa.Table) -> State:
    return overall([row["state"] for row in measures.select(["state"]).to_pylist()])


def headline(lake: Lake, done: Sequence[Partition]) -> list[dict[str, Any]]:
    """The headline measures of whole groups."""
    rows = _measures(lake, done).to_pylist()
    return [r for r in rows if r["measure"] in HEADLINES and r["subgroup"] == 0 and r["parameters"] == "{}"]


def _measures(lake: Lake, done: Sequence[Partition]) -> pa.Table:
    partition = next(p for p in done if p.stage == "measure")
    return lake.read(partition.table(MEASURES.name))


def _export(lake: Lake, run: str, done: Sequence[Partition], measures: pa.Table) -> None:
    """The report's files and the measures, beside the lake."""
    home = reports_of(lake, run)
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


def _manifest(lake: Lake, planned: Plan, done: Sequence[Partition], state: State) -> None:
    """Everything that identifies the run."""
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
    lake.write_file(f"runs/{planned.run}/manifest.json", json.dumps(content, indent=1).encode())
