"""Times the pages of `evenhand serve` on a lake of 200 runs, and makes that lake."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import httpx
import numpy as np
import psutil
import pyarrow.parquet as pq

from flows.runs.index import digest, run_of
from flows.runs.record import publish
from flows.runs.summary import NAMED, write_summary
from research.benchmark import Bench, Room, Row, against
from tasks.lake import log
from tasks.lake.log import digest_of
from tasks.lake.storage import connected, mapping_of
from tasks.lake.store import Lake
from tasks.pipeline.registry import NAMES, read_spec
from tasks.plan import plan, walk

# --------------------------------------------------------------------------------------------------------------------
# The lake that `bench serve` serves: one audit, and copies of its run as manifests, summaries and entries of the log.
#
# The work of a page that the bench holds it against is timed here, too: its query alone.


AUDIT = "boston1990"
_SPEC = Path(__file__).parents[2] / "data" / "audits" / f"{AUDIT}.yaml"
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
    """Writes a run of another year that names the tables of the computed run; returns its id."""
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
    connection, milliseconds = connected(), []
    for _ in range(repeats):
        began = time.perf_counter()
        cursor = connection.cursor()
        cursor.register("measures", pq.read_table(lake.root / artifact.path, partitioning=None))
        cursor.sql(_QUERY, params={"group": ""}).to_arrow_table().to_pylist()
        cursor.close()
        milliseconds.append(1000 * (time.perf_counter() - began))
    return median(milliseconds)


def imports_alone_s(words: str = "fastapi, uvicorn, duckdb, jinja2, pyarrow.parquet, pydantic") -> float:
    """Seconds of a process that loads what pages are made with, and nothing of ours; the least of three."""
    durations = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {words}"], check=True)
        durations.append(time.perf_counter() - began)
    return min(durations)


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
        "question": (f"{place}/similar-applicants", 200, "index"),
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


# --------------------------------------------------------------------------------------------------------------------
# Times the pages of `evenhand serve` on a lake of 200 runs: first byte by route, the start, and the memory.
#
# Milliseconds are to the first byte of the answer, over one connection, after five requests that are not counted.
# Targets are for two quiet cores. Where a machine is noisy a ratio of the same run decides in their place: a page from
# the index takes at most 20 times `/healthz`, one with a query 3 times that query alone, the start 3 times the bare
# imports.


RUNS, REQUESTS, WARM = 200, 50, 5
START_S, MEMORY_MB, PAGE_KB = 3.0, 300.0, 150.0
OF_HEALTH, OF_QUERY, OF_IMPORTS = 20.0, 3.0, 3.0
COLD_RUNS, COLD_MS = 12, 1000.0
COLD_TARGET = "p50 at most 1000 ms (informative)"
"""Of pages that are made for the first time, each of another run; the memory is taken after them."""
_PATIENCE_S = 120


def _lines(room: Room) -> Iterator[Row]:
    lake, run = made(room.place / "lake", min(room.limit, RUNS))
    other = next(path.split("/")[1] for path in lake.storage.glob("runs/*/manifest.json") if run not in path)
    bare, query = imports_alone_s(), query_alone_ms(lake, run, REQUESTS)
    began = time.perf_counter()
    with _server(room.place / "lake") as (process, client):
        start = time.perf_counter() - began
        health = 0.0
        for name, (address, most, of) in routes(run, other).items():
            milliseconds, size = _timed(client, address)
            p50, p95 = (float(np.percentile(milliseconds, share)) for share in (50, 95))
            health = health or p50
            base = {"index": OF_HEALTH * health, "query": OF_QUERY * query}.get(of, 0.0)
            target = f"p95 at most {most:g} ms" + (f", or p50 {base:.0f} ms ({of})" if base else "")
            met = (p95 <= most or p50 <= base) and size <= PAGE_KB
            yield _row(name, p50=p50, p95=p95, kb=size, **against(target, met))
        every = (path.split("/")[1] for path in lake.storage.glob("runs/*/manifest.json"))
        names = [name for name in every if name not in (run, other)]
        cold = [_timed(client, f"/runs/{run}", 0, 1)[0][0] for run in names[:COLD_RUNS]]
        memory = process.memory_info().rss / 2**20
    first = float(np.median(cold))
    yield _row("first view of another run", p50=first, p95=max(cold), **against(COLD_TARGET, first <= COLD_MS))
    ratio = start / bare
    target = f"at most {START_S:g} s, or {OF_IMPORTS:g} times the imports"
    met = start <= START_S or ratio <= OF_IMPORTS
    yield _row("start until the first page", seconds=start, ratio=ratio, **against(target, met))
    yield _row("resident memory", mb=memory, **against(f"below {MEMORY_MB:g} MB", memory < MEMORY_MB))
    yield _row("query alone", p50=query)


def _row(what: str, **figures: object) -> Row:
    columns = ("p50", "p95", "kb", "seconds", "mb", "ratio", "target", "met")
    return {"what": what, **dict.fromkeys(columns), **figures}


@contextmanager
def _server(lake: Path) -> Iterator[tuple[psutil.Process, httpx.Client]]:
    """A server of the lake, and a client that has opened its address."""
    command = [sys.executable, "-m", "flows.cli", "serve", "--lake", str(lake), "--port", str(_free_port())]
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        if process.stdout is None:
            raise RuntimeError("the server has no output")
        address = process.stdout.readline().strip()
        with httpx.Client(base_url=address.partition("?")[0], timeout=_PATIENCE_S, follow_redirects=True) as client:
            client.get(address).raise_for_status()
            yield psutil.Process(process.pid), client
    finally:
        process.terminate()
        process.wait(timeout=_PATIENCE_S)


def _timed(
    client: httpx.Client, address: str, warm: int = WARM, requests: int = REQUESTS
) -> tuple[Sequence[float], float]:
    """Milliseconds to the first byte of each request, and the size of the page in kB."""
    milliseconds, size = [], 0
    for n in range(warm + requests):
        began = time.perf_counter()
        with client.stream("GET", address) as answer:
            first = time.perf_counter() - began
            answer.raise_for_status()
            size = len(answer.read())
        if n >= warm:
            milliseconds.append(1000 * first)
    return milliseconds, size / 1000


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


BENCH = Bench("serve", _lines, fewest=20, why="two pages of a list need as many runs", of_any_size=True)
