"""A lake of two runs without an audit: they share a table, and another one has other columns in each."""

import json
from pathlib import Path

import pyarrow as pa

from schemas.artifact import Partition
from tasks.lake.store import Lake

MEASURES = pa.table({"measure": ["approval_rate", "k0"], "value": [0.5, float("nan")]})
APPLICANTS = {
    "first": pa.table({"row_id": ["a", "b"], "debt.to.income": [1, 2], "run": ["fast", "slow"]}),
    "second": pa.table({"row_id": ["c"], "debt.to.income": ["high"], "größe": [1.5]}),
}


def small_lake(place: Path) -> Lake:
    """Make it in a directory."""
    lake = Lake(place)
    shared = _partition(lake, "measure", "0" * 32, measures=MEASURES)
    for run, table in APPLICANTS.items():
        partitions = [shared, _partition(lake, "ingest", f"{run:0<32}", applicants=table)]
        manifest = {"partitions": [partition.model_dump(mode="json") for partition in partitions]}
        lake.write_file(f"runs/{run}/manifest.json", json.dumps(manifest).encode())
    return lake


def _partition(lake: Lake, stage: str, key: str, **tables: pa.Table) -> Partition:
    return lake.publish(stage, key, tables, {}, {})
