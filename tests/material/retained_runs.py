"""Lakes with runs that were never computed: sealed manifests, reports and small partitions, for tests of retention."""

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from flows.runs.index import digest
from flows.runs.signatures import certify, protect
from schemas.artifact import Partition
from tasks.lake.store import Lake


@dataclass(frozen=True)
class Drawn:
    """A run to be made: which partitions it names."""

    audit: str
    year: int
    partitions: frozenset[int]
    protected: bool


def partition(lake: Lake, number: int) -> Partition:
    table = pa.table({"row_id": [f"L{number}"]})
    return lake.publish(f"stage{number % 2}", f"key{number}", {"applications": table}, {"page": b"x" * number}, {})


def make(lake: Lake, run: str, drawn: Drawn, finished: int) -> None:
    """The manifest of a run, sealed as the real one is, with its report."""
    lake.write_file(f"reports/{run}/report.html", run.encode())
    content = {
        "run": run,
        "dataset": drawn.audit,
        "year": drawn.year,
        "state": "within",
        "finished": f"2026-01-01T00:00:{finished:02d}Z",
        "source_sha256": "0" * 64,
        "code": "0" * 64,
        "versions": {},
        "spec": {"source": {"kind": "csv", "path": "loans.csv"}},
        "partitions": [
            partition(lake, n).model_dump(mode="json", exclude={"reused"}) for n in sorted(drawn.partitions)
        ],
        "lineage": [],
        "exported": {"report.html": sha256(run.encode()).hexdigest()},
    }
    lake.write_file(f"runs/{run}/manifest.json", json.dumps({**content, "sha256": digest(content)}, indent=1).encode())
    certify(lake, run)
    if drawn.protected:
        protect(lake, run, True)


@contextmanager
def lake_of(runs: Sequence[Drawn]) -> Iterator[Lake]:
    """A lake with these runs, the first one the oldest, named run0, run1 and so on."""
    with tempfile.TemporaryDirectory() as place:
        lake = Lake(Path(place) / "lake")
        for i, drawn in enumerate(runs):
            make(lake, f"run{i}", drawn, i)
        yield lake


ONE = Drawn("loans", 2020, frozenset({1}), False)
