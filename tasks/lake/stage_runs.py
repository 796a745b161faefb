"""Stage runs of a finished audit, by its manifest: rows, time and memory of each, and whether it was computed then.

Scope: the rows of `evenhand stages` and of the view ``stage_runs``. What is measured: ``tasks.pipeline.lineage.cost``.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

VIEW: Final = "stage_runs"
SCHEMA: Final = pa.schema(
    [
        ("stage", pa.string()),
        ("partition", pa.string()),
        ("rows_in", pa.int64()),
        ("rows_out", pa.int64()),
        ("refused", pa.int64()),
        ("seconds", pa.float64()),
        ("cpu_seconds", pa.float64()),
        ("peak_memory_mb", pa.float64()),
        ("threads", pa.int64()),
        ("source", pa.string()),
        ("partition_column", pa.string()),
        ("partition_value", pa.string()),
    ]
)
LAKE, COMPUTED = "lake", "computed"
OF_PARTITION: Final = ("partition_column", "partition_value")
"""Columns that name the partition of an audit with ``by``: a lender, or ``all``."""


def stage_runs(manifest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One row for each step of a run, in the order of its plan; what an earlier version did not keep is None.

    ``stage`` is the step's name, such as "detect cst", and ``partition`` the key of its folder below ``stages``;
    ``OF_PARTITION`` name the lender, or other value, that the run is about.
    """
    partitions = manifest["partitions"]
    lineage, steps = (manifest.get(name) or [{}] * len(partitions) for name in ("lineage", "steps"))
    of = dict(zip(OF_PARTITION, partition_of(manifest), strict=True))
    for partition, record, step in zip(partitions, lineage, steps, strict=True):
        yield of_record(step.get("name", partition["stage"]), partition["key"], record, step.get("reused")) | of


def partition_of(manifest: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Column and value of the partition that a run is about; None of an audit without ``by``."""
    part = manifest.get("partition") or {}  # an earlier version had none
    return part.get("column"), part.get("value")


def of_record(stage: str, key: str, record: Mapping[str, Any], reused: bool | None) -> dict[str, Any]:
    """The row of a step: its name, key and lineage record, and whether the lake held it before."""
    rows = record.get("rows", {})
    costs = {name: record.get(name) for name in ("seconds", "cpu_seconds", "peak_memory_mb", "threads")}
    source = None if reused is None else LAKE if reused else COMPUTED
    counted = {"rows_in": rows.get("in"), "rows_out": rows.get("out"), "refused": rows.get("refused")}
    return {"stage": stage, "partition": key, **counted, **costs, "source": source}


def as_table(manifests: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    """The stage runs of several runs, each row with its run."""
    rows = [{"run": run, **row} for run, manifest in manifests.items() for row in stage_runs(manifest)]
    return pa.Table.from_pylist(rows, schema=pa.schema([("run", pa.string()), *SCHEMA]))
