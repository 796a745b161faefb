"""Times the pages of `evenhand serve` on a lake of 200 runs: first byte by route, the start, and the memory.

Milliseconds are to the first byte of the answer, over one connection, after five requests that are not counted. Targets
are for two quiet cores. Where a machine is noisy a ratio of the same run decides in their place: a page from the index
takes at most 20 times `/healthz`, one with a query 3 times that query alone, the start 3 times the bare imports.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import psutil

from flows.bench.work.served_lake import imports_alone_s, made, query_alone_ms, routes
from tasks.proof.benches import Bench, Room, Row, against

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
            taken, size = _timed(client, address)
            p50, p95 = (float(np.percentile(taken, share)) for share in (50, 95))
            health = health or p50
            base = {"index": OF_HEALTH * health, "query": OF_QUERY * query}.get(of, 0.0)
            target = f"p95 at most {most:g} ms" + (f", or p50 {base:.0f} ms ({of})" if base else "")
            met = (p95 <= most or p50 <= base) and size <= PAGE_KB
            yield _row(name, p50=p50, p95=p95, kb=size, **against(target, met))
        every = (path.split("/")[1] for path in lake.storage.glob("runs/*/manifest.json"))
        names = [name for name in every if name not in (run, other)]
        cold = [_timed(client, f"/runs/{each}", 0, 1)[0][0] for each in names[:COLD_RUNS]]
        memory = process.memory_info().rss / 2**20
    first = float(np.median(cold))
    yield _row("first view of another run", p50=first, p95=max(cold), **against(COLD_TARGET, first <= COLD_MS))
    ratio = start / bare
    target = f"at most {START_S:g} s, or {OF_IMPORTS:g} times the imports"
    met = start <= START_S or ratio <= OF_IMPORTS
    yield _row("start until the first page", seconds=start, ratio=ratio, **against(target, met))
    yield _row("resident memory", mb=memory, **against(f"below {MEMORY_MB:g} MB", memory < MEMORY_MB))
    yield _row("query alone", p50=query)


def _row(what: str, **more: object) -> Row:
    columns = ("p50", "p95", "kb", "seconds", "mb", "ratio", "target", "met")
    return {"what": what, **dict.fromkeys(columns), **more}


@contextmanager
def _server(lake: Path) -> Iterator[tuple[psutil.Process, httpx.Client]]:
    """A server of the lake, and a client that has opened its address."""
    command = [sys.executable, "-m", "flows.cli", "serve", "--lake", str(lake), "--port", str(_free_port())]
    kept = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    process = subprocess.Popen(command, env=kept, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # noqa: S603
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
    taken, size = [], 0
    for n in range(warm + requests):
        began = time.perf_counter()
        with client.stream("GET", address) as answer:
            first = time.perf_counter() - began
            answer.raise_for_status()
            size = len(answer.read())
        if n >= warm:
            taken.append(1000 * first)
    return taken, size / 1000


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


BENCH = Bench("serve", _lines, fewest=20, why="two pages of a list need as many runs", of_any_size=True)
