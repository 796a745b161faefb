"""The lake that `bench serve` serves: one audit, and copies of its run as manifests, summaries and entries of the log.

The work of a page that the bench holds it against is timed here, too: its query alone.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq

from flows.runs.index import run_of
from flows.runs.manifest import digest
from flows.runs.record import publish
from flows.runs.summary import NAMED, write_summary
from tasks.lake import log
from tasks.lake.signatures import digest_of
from tasks.lake.storage import mapping_of
from tasks.lake.store import Lake
from tasks.lake.threads import connected
from tasks.pipeline.registry import NAMES
from tasks.pipeline.specs import read_spec
from tasks.plan import plan, walk

AUDIT = "boston1990"
_SPEC = Path(__file__).parents[3] / "data" / "audits" / f"{AUDIT}.yaml"
_METHODS = ("adjusted", "cst")
_QUERY = 'SELECT * FROM measures WHERE "group" <> $group ORDER BY value DESC NULLS LAST LIMIT 100'


def made(place: Path, runs: int) -> tuple[Lake, str]:
    """A lake of so many runs, and the one that was computed."""
    off = {f"methods.{name}": "null" for name in NAMES if name not in _METHODS}
    planned = plan(read_spec(_SPEC.read_text(encoding="utf-8"), str(_SPEC), off).spec)
    lake = Lake(place)
    done = walk(planned.steps, lambda step, given: step.stage.run(lake, given, step.settings, step.modules))
    publish(lake, planned, done)
    for n in range(1, runs):
        copied(lake, planned.run, n)
    return lake, planned.run


def copied(lake: Lake, run: str, n: int) -> str:
    """A run of another year, without tables of its own: it names those of the run that was computed; returns its id."""
    manifest = mapping_of(lake.storage.read(f"runs/{run}/manifest.json"))
    audit = f"{manifest['dataset']}-{n % 10}"
    other = {**manifest, "run": f"{audit}-{1990 + n // 10}-{n:010x}", "dataset": audit, "year": 1990 + n // 10}
    content = {name: value for name, value in other.items() if name not in ("sha256", NAMED)}
    report = lake.storage.read(f"reports/{run}/report.json") or b"{}"
    lake.write_file(f"reports/{content['run']}/report.json", report)
    content[NAMED] = write_summary(lake, content)
    sealed = {**content, "sha256": digest(content)}
    lake.write_file(f"runs/{content['run']}/manifest.json", json.dumps(sealed, indent=1).encode())
    log.append(lake, "run published", run=content["run"], manifest_sha256=digest_of(content))
    return str(content["run"])


def query_alone_ms(lake: Lake, run: str, repeats: int) -> float:
    """Median milliseconds of reading the measures and of one query over them, without a page."""
    artifact = run_of(lake, run).published("measures")
    if artifact is None:
        raise RuntimeError("the run has no measures")
    connection, taken = connected(), []
    for _ in range(repeats):
        began = time.perf_counter()
        cursor = connection.cursor()
        cursor.register("measures", pq.read_table(lake.root / artifact.path, partitioning=None))
        cursor.sql(_QUERY, params={"group": ""}).to_arrow_table().to_pylist()
        cursor.close()
        taken.append(1000 * (time.perf_counter() - began))
    return median(taken)


def imports_alone_s(words: str = "fastapi, uvicorn, duckdb, jinja2, pyarrow.parquet, pydantic") -> float:
    """Seconds of a process that loads what pages are made with, and nothing of ours; the least of three."""
    taken = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {words}"], check=True)  # noqa: S603 our own
        taken.append(time.perf_counter() - began)
    return min(taken)


def routes(run: str, audit: str) -> dict[str, tuple[str, float, str]]:
    """Name of a route -> its address, milliseconds to the first byte, and what it is held against where noise is."""
    place = f"/runs/{run}"
    return {
        "healthz": ("/healthz", 20, ""),
        "audits": ("/", 100, "index"),
        "runs": ("/runs", 100, "index"),
        "runs, filtered": ("/runs?state=breach&page=2", 100, "index"),
        "search": ("/search?q=black", 200, "index"),
        "first page": (place, 100, "index"),
        "question": (f"{place}/similar", 200, "index"),
        "evidence": (f"{place}/evidence/cst", 100, "index"),
        "measures": (f"{place}/measures?sort=-value", 200, "query"),
        "compare": (f"{place}/compare/{audit}", 200, ""),
        "findings": (f"{place}/findings", 200, "query"),
        "quality": (f"{place}/quality", 200, ""),
        "lineage": (f"{place}/lineage", 200, ""),
        "files": (f"{place}/files", 100, ""),
        "review": (f"{place}/review", 100, "index"),
        "years": (f"/audits/{AUDIT}/years", 200, ""),
        "trend": (f"/audits/{AUDIT}/trend", 200, ""),
        "definitions": ("/method", 20, "index"),
        "glossary": ("/glossary", 20, "index"),
    }
