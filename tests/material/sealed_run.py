"""A lake with one run whose tables were never computed: enough to make its report anew."""

import json
import shutil
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from conftest import loans, spec_of
from exported_run import material

from flows.runs.index import digest, record_of
from tasks.lake import log
from tasks.lake.store import Lake, sha256_of
from tasks.plan import STAGES

RUN = "loans-2024-0123456789"


def sealed_run(place: Path) -> Lake:
    """Make it in a directory that has the table of loans."""
    lake, stage = Lake(place / "lake"), STAGES["report"]
    first, *others = stage.reads
    rows = [asdict(m) for m in material().measures]
    measures = first.build(**{column.name: [row[column.name] for row in rows] for column in first.columns})
    made = lake.publish("measure", "0" * 32, {first.name: measures, **{t.name: t.empty() for t in others}}, {}, {})
    report = lake.publish("report", "1" * 32, {t.name: t.empty() for t in (*stage.writes, *others)}, {}, {})
    content = {
        "run": RUN,
        "dataset": "loans",
        "year": 2024,
        "state": "no_limit",
        "finished": "2026-01-01T00:00:00Z",
        "spec": spec_of(place).model_dump(mode="json"),
        "source_sha256": "ab" * 32,
        "code": "cd" * 32,
        "versions": {},
        "exported": {},
        "records": {record_of(each): sha256_of(lake.root / record_of(each)) for each in (made, report)},
        "partitions": [each.model_dump(mode="json", exclude={"reused"}) for each in (made, report)],
        "lineage": [{"rows": {"in": 1}, "seconds": 1.0}] * 2,
    }
    lake.write_file(f"runs/{RUN}/manifest.json", json.dumps({**content, "sha256": digest(content)}, indent=1).encode())
    return lake


def run_among_keys(place: Path, trusted: Iterable[str], stranger: str) -> Lake:
    """Make the table, new keys, of which all but the stranger's lie in the folder ``trusted``, and the lake."""
    loans().to_csv(place / "loans.csv", index=False)
    (place / "trusted").mkdir()
    log.new_key(place / stranger)
    for name in trusted:
        log.new_key(place / name)
        shutil.copy(place / f"{name}.pub", place / "trusted")
    return sealed_run(place)
