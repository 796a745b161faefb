"""The exported report of a run: every file in its folder, with its digest."""

import hashlib
from pathlib import Path

import pyarrow as pa

from flows.runs.record import _export
from tasks.lake.store import Lake

FILES = {
    "report.html": b"first",
    "pages/approval-rates.html": b"gap",
    "evidence/gap.html": b"evidence",
    "measures.xlsx": b"PK",
}


def test_a_report_is_exported_with_its_folders(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    table = pa.table({"measure": ["approval_rate"], "value": [0.5]})
    partition = lake.publish("report", "k", {"t": table}, FILES, {})
    exported = _export(lake, "run", [partition], table, "public")
    kept = {path: lake.storage.read(f"reports/run/{path}") or b"" for path in exported}
    assert {path: content for path, content in kept.items() if path != "measures.parquet"} == FILES
    assert exported == {path: hashlib.sha256(content).hexdigest() for path, content in kept.items()}
    assert lake.storage.below("reports/run") == sorted(f"reports/run/{path}" for path in exported)
    assert lake.storage.below("tmp") == []
