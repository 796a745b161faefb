"""The work of the benchmark of scale: a year drawn as a file, commands as a user runs them, what the lake then holds.

Every command runs in processes of its own, whose CPU seconds and memory are watched.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import yaml

from flows.bench.work.estimate import Partition
from flows.bench.work.watching import Watch, watched
from schemas.errors import InfrastructureError
from schemas.terms import ExitCode
from tasks.ingest.hmda.canonical.cells import literal
from tasks.ingest.synthetic.twin.nation import write_nation
from tasks.proof.specs import shipped
from tasks.proof.work import answer, peak_mb, timed

YEAR, SEED = 2022, 23
SPEC, LENDER = "spec.yaml", "lender_id"
QUICK = 100_000
"""Below so many rows the methods that search are left out, and lenders with fewer rows are audited."""
USABLE = 0.74
"""Share of the drawn rows with a decision."""
_GROUPS = {"White": ["White"], "Black": ["Black or African American"], "Asian": ["Asian"]}
_READ = (
    *(LENDER, "action_taken", "derived_race", "income_usd", "property_value_usd", "loan_amount_usd"),
    *("debt_to_income_ratio", "ltv_ratio", "loan_purpose"),
)
"""Columns that the spec names."""
_LEFT_OUT = ("fgce", "cst", "gcfn", "raguel")
ENDED = (ExitCode.WITHIN, ExitCode.BREACH, ExitCode.INSUFFICIENT_EVIDENCE)
_SAID = 2_000
"""Letters of what a command that failed wrote."""


@dataclass(frozen=True)
class Told:
    """What a command wrote and used."""

    out: str
    seconds: float
    cpu_s: float
    peak_mb: float


@dataclass(frozen=True)
class Kill:
    """When a worker is killed in the middle."""

    lake: Path
    after: int
    """Partitions that are measured."""

    def due(self) -> bool:
        """Whether as many are."""
        return sum(1 for _ in self.lake.glob("stages/measure/*/partition.json")) >= self.after


def draw(place: str, rows: str) -> dict[str, Any]:
    """Draws the year in the layout in which it is delivered."""
    with timed() as times:
        file = write_nation(Path(place) / "year.txt", int(rows), YEAR, SEED)
    return {"rows": int(rows), **times, "peak_mb": peak_mb(), "file_mb": file.stat().st_size / 1e6}


def read(applications: str, lender: str) -> dict[str, Any]:
    """Reads a lender's rows from the year in the lake, in the columns of the spec; the least of three times counts."""
    files = str(Path(applications) / "**" / "*.parquet") if Path(applications).is_dir() else applications
    source = f"read_parquet({literal(files)}, hive_partitioning = false)"
    asked = f"SELECT {', '.join(_READ)} FROM {source} WHERE {LENDER} = ?"  # noqa: S608 ours and quoted
    best: dict[str, float] = {}
    with duckdb.connect(config={"threads": 1}) as connection:
        for _ in range(3):
            with timed() as times:
                found: pa.Table = connection.sql(asked, params=[lender]).to_arrow_table()
            best = min(best or times, times, key=lambda told: told["cpu_s"])
    return {"rows": found.num_rows, **best, "peak_mb": peak_mb()}


def write_spec(place: Path, rows: int, *, gcfn: bool) -> tuple[Path, int]:
    """Writes the audit spec of the year, one audit a lender; gives its place and the least rows of a lender."""
    spec = yaml.safe_load(shipped("audits/hmda-twin.yaml").read_text(encoding="utf-8"))
    minimum = 500 if rows >= QUICK else 100
    spec |= {"name": "national", "title": "National year, drawn", "year": YEAR}
    spec |= {"source": {"kind": "hmda", "vintage": {}}, "by": {"column": LENDER, "minimum": minimum}}
    spec["verdicts"]["columns_complete"] = False
    spec["protected"][0]["groups"] = _GROUPS
    methods = {"fgce": {}, "cst": {}, "cec": {}, "raguel": {}, "gcfn": {"batch": 64} if gcfn else None}
    spec["methods"] |= methods
    if rows < QUICK:
        spec["methods"] |= dict.fromkeys(_LEFT_OUT)
        spec["bootstrap"] = {"draws": 200}
    file = place / SPEC
    file.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    return file, minimum


def evenhand(
    words: Sequence[str], workers: Sequence[int] = (), kill: Kill | None = None, ended: Sequence[int] = ENDED
) -> Told:
    """Runs a command as a user runs it.

    Args:
        words: of the command.
        workers: processes elsewhere that work for it.
        kill: when one of the processes that work is killed with SIGKILL; the command itself never is.
        ended: exit codes with which it has done what was asked for.

    Raises:
        InfrastructureError: it ended in another way; the message has its own words.
    """
    command = [sys.executable, "-m", "flows.cli", *words]
    told = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"} | told
    clock, before = time.perf_counter(), _children()
    process = subprocess.Popen(  # noqa: S603 our own
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with watched(workers) as elsewhere, watched([process.pid]) as here:
        out, err = _communicated(process, (elsewhere, here), kill)
    seconds = time.perf_counter() - clock
    if process.returncode not in ended:
        raise InfrastructureError(
            f"evenhand {words[0]} ended with {process.returncode}: {(err.strip() or out.strip())[-_SAID:]}"
        )
    return Told(out, seconds, _children() - before + elsewhere.cpu_s, max(here.peak_mb, elsewhere.peak_mb))


def _children() -> float:
    """CPU seconds of the processes that this one started, of those that they started, and so on, that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _communicated(process: "subprocess.Popen[str]", watches: Sequence[Watch], kill: Kill | None) -> tuple[str, str]:
    while True:
        try:
            return process.communicate(timeout=0.2 if kill else None)
        except subprocess.TimeoutExpired:
            found = [watch.working() for watch in watches] if kill and kill.due() else []
            worker = next((each for each in found if each is not None), None)
            if worker is not None:
                worker.send_signal(signal.SIGKILL)
                kill = None


def partitions(lake: Path) -> list[Partition]:
    """What every audited partition of a lake took, by the records of its stages."""
    manifests = [json.loads(file.read_bytes()) for file in sorted(lake.glob("runs/*/manifest.json"))]
    return [_partition(each) for each in manifests if each.get("partition")]


def _partition(manifest: Mapping[str, Any]) -> Partition:
    stages: dict[str, float] = {}
    for partition, record in zip(manifest["partitions"], manifest["lineage"], strict=True):
        stages[partition["stage"]] = stages.get(partition["stage"], 0.0) + record["cpu_seconds"]
    return Partition(
        value=manifest["partition"]["value"],
        run=manifest["run"],
        rows=manifest["lineage"][0]["rows"]["in"],
        cpu_s=sum(stages.values()),
        seconds=sum(record["seconds"] for record in manifest["lineage"]),
        peak_mb=max(record["peak_memory_mb"] for record in manifest["lineage"]),
        ingest_mb=manifest["lineage"][0]["peak_memory_mb"],
        stages=stages,
    )


def applications(lake: Path) -> Path:
    """Where the rows of the year are."""
    [found] = [each for each in lake.glob("vintages/**/applications*") if "state=" not in str(each)]
    return found


def share_vintages(lake: Path, other: Path) -> None:
    """Give another lake the year as well, without its bytes."""
    shutil.copytree(lake / "vintages", other / "vintages", copy_function=os.link)


def disturbed(lake: Path) -> list[str]:
    """Values of the partitions that were begun more than once."""
    records = [json.loads(file.read_bytes()) for file in lake.glob("backfills/**/*.json")]
    return sorted({each["value"] for each in records if each.get("value") and each["attempt"] > 1})


def digests(lake: Path) -> dict[str, str]:
    """Value of each partition -> digest of its measures as they were measured, before anything is withheld."""
    found = {}
    for file in lake.glob("runs/*/manifest.json"):
        manifest = json.loads(file.read_bytes())
        tables = [table for each in manifest["partitions"] for table in each["tables"] if each["stage"] == "measure"]
        [measures] = [table["sha256"] for table in tables if table["table"] == "measures"]
        if manifest.get("partition"):
            found[manifest["partition"]["value"]] = measures
    return found


if __name__ == "__main__":
    answer(draw, read)
