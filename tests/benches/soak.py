"""A soak: services that are killed and started again, dates, and what came of them."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import httpx
import psutil

from flows.outcome.alerts import Outcome, alerts
from flows.outcome.ending import Name
from flows.partitions.year_audit import audit_year
from flows.runs.index import Run, runs_of
from flows.supervision.dead_runs import MOST_RESUMED
from flows.supervision.parentage import ended_with
from flows.supervision.prepare import seed_database
from flows.supervision.presence import Presence, alive
from research.benchmark import answer
from schemas.audit.spec import AuditSpec
from schemas.errors import InfrastructureError
from tasks.ingest.synthetic.algorithm.twin import TwinSettings
from tasks.ingest.synthetic.twin_files import write
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun


# --------------------------------------------------------------------------------------------------------------------
# Server and worker of a soak, which can be killed and started again at the same address, and a receiver of alerts.


POOL = "evenhand"
_START_SECONDS = 180.0
_LEAVE_SECONDS = 150.0
_OWN = ("PREFECT_", "EVENHAND_")
_RULES = """\
rules:
  - {when: [within, outside, inconclusive, spec, data_quality, infrastructure, integrity, crashed], tell: desk}
"""


@dataclass
class Services:
    """A server on SQLite, and a worker as the operator starts it."""

    home: Path
    alerts: Path
    port: int = 0
    server: "subprocess.Popen[bytes] | None" = None
    worker: "subprocess.Popen[bytes] | None" = None

    def __post_init__(self) -> None:
        """Take a free port, and a database that is migrated."""
        self.port = free_port()
        self.prefect.mkdir(parents=True, exist_ok=True)
        seed_database(self.prefect)

    @property
    def api(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def lake(self) -> Path:
        """Where the audits go."""
        return self.home / "lake"

    @property
    def prefect(self) -> Path:
        """Prefect's home, with the database and the leases."""
        return self.home / "prefect"

    def environment(self) -> dict[str, str]:
        """Of both: no setting of the operator's own server."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
        return {
            **variables,
            "PREFECT_HOME": str(self.prefect),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            "PREFECT_UI_ENABLED": "false",
            "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
        }

    def start_server(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            InfrastructureError: it did not.
        """
        app = ["--factory", "prefect.server.api.server:create_app", "--lifespan", "on", "--log-level", "error"]
        words = [*ended_with("uvicorn"), *app, "--app-dir", sys.prefix, "--host", "127.0.0.1", "--port", str(self.port)]
        self.server = self._started(words, self.environment(), "server.log")
        until = time.monotonic() + _START_SECONDS
        while not self._ready():
            if time.monotonic() > until or self.server.poll() is not None:
                raise InfrastructureError(
                    f"the server of the soak did not start; the reason is in {self.prefect / 'server.log'}"
                )
            time.sleep(0.3)

    def start_worker(self) -> None:
        """Start it; it takes runs some seconds later."""
        variables = {"PREFECT_API_URL": self.api, "EVENHAND_ALERTS": str(self.alerts), "EVENHAND_JOBS": "1"}
        variables["PREFECT_WORKER_WEBSERVER_PORT"] = str(free_port())
        words = [sys.executable, "-m", "flows.cli", "worker", "--pool", POOL, "--lake", str(self.lake)]
        self.worker = self._started(words, {**self.environment(), **variables}, "worker.log")

    def kill_server(self) -> None:
        """Kill it as a machine that stops."""
        if self.server is not None:
            self.server.kill()
            self.server.wait()

    def kill_worker(self) -> None:
        """Kill it alone: what it started has to end by itself."""
        if self.worker is not None:
            self.worker.kill()
            self.worker.wait()

    def leave(self) -> int:
        """Ask the worker to end; gives its exit code, and -9 where it had to be killed."""
        if self.worker is None:
            return 0
        with suppress(subprocess.TimeoutExpired):
            self.worker.send_signal(signal.SIGTERM)
            return self.worker.wait(timeout=_LEAVE_SECONDS)
        self.kill_worker()
        return -signal.SIGKILL

    def close(self) -> None:
        """End both in any case."""
        for process in (self.worker, self.server):
            if process is not None and process.poll() is None:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=20)
                process.kill()
                process.wait()

    def memory_mb(self) -> dict[str, float]:
        """Of the server, and of the worker with Prefect's; runs that they started do not count."""
        memory_by_process = {}
        with suppress(psutil.Error, AttributeError):
            memory_by_process["server"] = psutil.Process(self.server.pid).memory_info().rss / 1e6  # type: ignore[union-attr]
            ours = psutil.Process(self.worker.pid)  # type: ignore[union-attr]
            members = [ours, *(child for child in ours.children() if "prefect" in " ".join(child.cmdline()))]
            memory_by_process["worker"] = sum(process.memory_info().rss for process in members) / 1e6
        return memory_by_process

    def left(self) -> list[str]:
        """Processes that have to do with this soak and live."""
        processes = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                about = " ".join(process.cmdline()) + process.environ().get("PREFECT_HOME", "")
                if str(self.home) in about and process.status() != psutil.STATUS_ZOMBIE:
                    processes.append(f"{process.pid} {process.name()}")
        return processes

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.api}/ready", timeout=5).is_success
        except httpx.TransportError:
            return False

    def _started(self, words: list[str], environment: dict[str, str], log: str) -> "subprocess.Popen[bytes]":
        with (self.prefect / log).open("ab") as output:
            return subprocess.Popen(words, env=environment, stdout=output, stderr=output, start_new_session=True)


@dataclass
class Received:
    """What a receiver of alerts was sent."""

    port: int = 0
    bodies: list[bytes] = field(default_factory=list)


@contextmanager
def receiver(file: Path) -> Iterator[Received]:
    """A web server on loopback that takes alerts, and the file that names it, for EVENHAND_ALERTS."""
    received = Received()

    class Post(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.bodies.append(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Post)
    received.port = server.server_address[1]
    file.write_text(f"to:\n  desk: json://127.0.0.1:{received.port}/soak\n{_RULES}")
    file.chmod(0o600)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield received
    finally:
        server.shutdown()
        server.server_close()


def free_port() -> int:
    """A port of loopback that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# --------------------------------------------------------------------------------------------------------------------
# What is done to a soak at random: the server, the worker and runs at work are killed, and the worker is asked to end.
#
# In the first half of the dates all of it; then runs alone, so that server and worker live long enough for their memory
# to be watched. A run is killed twice at most: a third death is told, and the run is not taken up again.


SERVER, WORKER, TERM, RUN = "server killed", "worker killed", "SIGTERM to the worker", "run killed"
_AWAY_SECONDS = 8.0
_BETWEEN_SECONDS = (50.0, 110.0)
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Act:
    """Something that was done."""

    what: str
    time: datetime
    run: str = ""
    """Id of the flow run at work."""
    code: int | None = None
    """With which the worker left."""


@dataclass
class Shaking:
    """Acts, as they come."""

    services: Services
    seed: int
    done: list[Act] = field(default_factory=list)
    memory: list[tuple[float, dict[str, float]]] = field(default_factory=list)
    """Monotonic time -> MB of server and worker, while only runs are killed."""
    deaths: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Seed the choice."""
        self._random = random.Random(self.seed)

    def until(self, calm: datetime, end: datetime, tell: Callable[[], object]) -> None:
        """Shake until ``end``, from ``calm`` on runs alone.

        Args:
            calm: from then on server and worker live.
            end: no act after it.
            tell: called twice a second.
        """
        while (now := datetime.now(UTC)) < end:
            pause = self._random.uniform(*_BETWEEN_SECONDS)
            self._wait(min(pause, (end - now).total_seconds()), tell, watched=now > calm)
            remaining = (end - datetime.now(UTC)).total_seconds()
            if remaining > 0:
                quiet = datetime.now(UTC) > calm
                self._act(
                    RUN if quiet else self._random.choice((SERVER, WORKER, TERM, RUN)), min(remaining, pause), tell
                )

    def _wait(self, seconds: float, tell: Callable[[], object], *, watched: bool) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            tell()
            if watched:
                self.memory.append((time.monotonic(), self.services.memory_mb()))
            time.sleep(_LOOK_SECONDS)

    def _act(self, what: str, patience: float, tell: Callable[[], object]) -> None:
        """Do it to a run at work if there is one within the time; nothing where the run has died twice."""
        victim = self._at_work(patience, tell)
        if victim is None and what == RUN:
            return
        if victim is not None and what in (RUN, WORKER) and self.deaths[victim.run] >= MOST_RESUMED:
            return
        run, code = victim.run if victim else "", None
        self.deaths[run] += what in (RUN, WORKER)
        if what == RUN and victim is not None:
            with suppress(ProcessLookupError):
                os.kill(victim.pid, signal.SIGKILL)
        elif what == SERVER:
            self.services.kill_server()
            time.sleep(_AWAY_SECONDS)
            self.services.start_server()
        else:
            code = self.services.leave() if what == TERM else None
            if what == WORKER:
                self.services.kill_worker()
            self.services.start_worker()
        self.done.append(Act(what, datetime.now(UTC), run, code))

    def _at_work(self, seconds: float, tell: Callable[[], object]) -> Presence | None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for presence in alive(Lake(self.services.lake)):
                if presence.stage and presence.outcome is None:
                    return presence
            tell()
            time.sleep(_LOOK_SECONDS)
        return None


# --------------------------------------------------------------------------------------------------------------------
# The dates of a soak: a deployment for each of some specs in turn, whose data are drawn anew before its next date.


EVERY = timedelta(minutes=2)
SLOTS = 10
"""Specs that take turns: the file of one is drawn anew while the others have theirs."""
YEAR, ROWS = 2022, 400
FLOW = "audit"
SPEC = """\
name: soak-SLOT
year: 2022
source: {kind: hmda, path: 'FOLDER/soak-SLOT-{year}.csv'}
decision: {column: action_taken, favourable: [1, 2, 8], unfavourable: [3, 7]}
protected:
  - name: race
    columns: [derived_race]
    groups: {White: [White], Black: [Black or African American]}
    reference: White
    unlisted: not available
columns:
  income_usd: {type: continuous, constraint: up}
  loan_amount_usd: {type: continuous, constraint: down}
  loan_purpose: {type: nominal, constraint: immutable}
causal_graph: {edges: [[race, income_usd], [income_usd, loan_amount_usd]]}
model: {kind: logistic_regression, folds: 3}
methods:
  fgce: null
  cst: {ks: [5], k: 5, null_permutations: 1, null_complainants: 5, sensitivity: false}
thresholds:
  - {measure: approval_rate_ratio, decision_maker: lender, minimum: 0.9}
disclosure: {profile: public}
bootstrap: {draws: 100}
"""


@dataclass(frozen=True)
class Dates:
    """So many dates, two minutes apart, and where their files are."""

    place: Path
    count: int
    first: datetime

    def at(self, number: int) -> datetime:
        """When a date is due."""
        return self.first + number * EVERY

    @property
    def every(self) -> list[datetime]:
        """All of them."""
        return [self.at(number) for number in range(self.count)]

    def draw(self, number: int) -> None:
        """Write the rows of a date into the file of its slot, in one step: a run may just begin."""
        slot = number % SLOTS
        written = write(self.place / "drawn", TwinSettings(rows=ROWS, year=YEAR, discrimination="direct"), seed=number)
        written.rows.replace(self.place / f"soak-{slot}-{YEAR}.csv")

    def spec(self, number: int) -> Path:
        """The file of the spec of a date's slot; written if it is not there."""
        slot = number % SLOTS
        file = self.place / f"soak-{slot}.yaml"
        if not file.exists():
            file.write_text(SPEC.replace("SLOT", str(slot)).replace("FOLDER", str(self.place)))
        return file

    def register(self, client: "SyncPrefectClient", lake: Path) -> None:
        """A deployment a slot on the server, each with its dates alone."""
        from prefect.client.schemas.actions import DeploymentScheduleCreate, WorkPoolCreate
        from prefect.client.schemas.schedules import RRuleSchedule

        client.create_work_pool(WorkPoolCreate(name=POOL, type="process"))
        flow = client.create_flow_from_name(FLOW)
        for slot in range(min(SLOTS, self.count)):
            self.draw(slot)
            turns = len(range(slot, self.count, SLOTS))
            begin = f"DTSTART:{self.at(slot):%Y%m%dT%H%M%S}"
            step = int(EVERY.total_seconds() // 60) * SLOTS
            rule = f"{begin}\nRRULE:FREQ=MINUTELY;INTERVAL={step};COUNT={turns}"
            client.create_deployment(
                flow,
                f"soak-{slot}",
                schedules=[DeploymentScheduleCreate(schedule=RRuleSchedule(rrule=rule, timezone="UTC"))],
                parameters={"spec": str(self.spec(slot)), "lake": str(lake)},
                entrypoint="flows.audit.audit",
                work_pool_name=POOL,
                pull_steps=[],
                concurrency_limit=1,
            )

    def number_of(self, run: "FlowRun") -> int | None:
        """Which date a run is of; None of one that no schedule made."""
        if run.expected_start_time is None or not run.auto_scheduled:
            return None
        return round((run.expected_start_time.timestamp() - self.first.timestamp()) / EVERY.total_seconds())

    def left_alone(self, number: int, lake: Lake) -> Run:
        """The run of a date that nothing disturbs, on another lake; the date's rows are drawn again."""
        self.draw(number)
        audit_spec: AuditSpec = read_spec(self.spec(number).read_text(), self.spec(number).name).spec
        record = audit_year(audit_spec, YEAR, lake)
        return next(run for run in runs_of(lake) if run.run == record.run)


def digests(run: Run) -> dict[str, str]:
    """Stage and table -> sha256 of every table of a run."""
    return {f"{part.stage} {table.table}": table.sha256 for part in run.partitions for table in part.tables}


# --------------------------------------------------------------------------------------------------------------------
# What came of the dates of a soak: runs on the server and in the lake, alerts, and how soon things happened.


_PAGE = 200
_BEFORE = timedelta(seconds=60)
"""An act so long before a date may delay its run: server and worker come back."""
_WARM_SHARE = 0.2
"""Of the time that memory is watched, in which it still settles."""


@dataclass(frozen=True)
class Dated:
    """A run of a date."""

    number: int
    id: str
    state: str
    name: str
    due: datetime
    states: tuple[tuple[str, datetime], ...]
    """Type and time of each, the earliest first."""

    @property
    def begun(self) -> datetime | None:
        """When it first ran."""
        return next((time for kind, time in self.states if kind == "RUNNING"), None)

    @property
    def ended(self) -> datetime | None:
        """When it came to its end."""
        return self.states[-1][1] if self.over else None

    @property
    def over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state in ("COMPLETED", "FAILED", "CANCELLED")


def dated(client: "SyncPrefectClient", dates: Dates) -> list[Dated]:
    """The runs of the schedule, by date."""
    numbered_runs = [(dates.number_of(run), run) for run in _runs(client)]
    return sorted(
        (_of(client, number, run) for number, run in numbered_runs if number is not None), key=lambda r: r.number
    )


def all_over(client: "SyncPrefectClient", dates: Dates) -> bool:
    """Whether the run of each date has ended; runs that no schedule made do not count."""
    over = {dates.number_of(run) for run in _runs(client) if _over(run)}
    return len(over - {None}) >= dates.count


def _over(run: "FlowRun") -> bool:
    """Whether the run is over. A crashed run is not over: a worker resumes it."""
    return run.state is not None and run.state.is_final() and not run.state.is_crashed()


def _runs(client: "SyncPrefectClient") -> Iterator["FlowRun"]:
    offset = 0
    while page := client.read_flow_runs(limit=_PAGE, offset=offset):
        yield from page
        offset += len(page)


def _of(client: "SyncPrefectClient", number: int, run: "FlowRun") -> Dated:
    states = sorted(client.read_flow_run_states(run.id), key=lambda state: state.timestamp)
    assert run.state is not None
    assert run.expected_start_time is not None
    state_times = tuple((state.type.value, state.timestamp) for state in states)
    kind, name = run.state.type.value, run.state.name or ""
    return Dated(number, str(run.id), kind, name, run.expected_start_time, state_times)


def begun_after(runs: Sequence[Dated], acts: Sequence[Act]) -> list[float]:
    """Seconds from each date to its run, where the worker was idle and nothing had been done to it."""
    delays = []
    for run in runs:
        begun = run.begun
        if begun is None or any(_at_work(other, run.due) for other in runs if other is not run):
            continue
        if not any(run.due - _BEFORE < act.time < begun for act in acts):
            delays.append((begun - run.due).total_seconds())
    return delays


def _at_work(run: Dated, when: datetime) -> bool:
    return run.begun is not None and run.begun < when and (run.ended is None or run.ended > when)


def resumed_after(runs: Sequence[Dated], acts: Sequence[Act]) -> list[float]:
    """Seconds from each death of a run at work until it ran again."""
    by_id = {run.id: run for run in runs}
    delays = []
    for act in (act for act in acts if act.what in (RUN, WORKER) and act.run in by_id):
        again = next((time for kind, time in by_id[act.run].states if kind == "RUNNING" and time > act.time), None)
        if again is not None:
            delays.append((again - act.time).total_seconds())
    return delays


def told_after(lake: Lake, runs: Sequence[Dated]) -> list[float]:
    """Seconds from the end of each run until its alert was delivered; records say whole seconds."""
    ends = {run.id: run.ended for run in runs}
    delays = []
    for alert in alerts(lake):
        end = ends.get(alert.ending.flow_run)
        if end is not None and alert.sent and alert.ending.name is not Name.CRASHED:
            delays.append(max(0.0, (datetime.fromisoformat(alert.sent) - end).total_seconds()))
    return delays


def alerts_of_ends(lake: Lake) -> tuple[int, int]:
    """Alerts about ends, and about deaths, that were delivered."""
    sent = [alert for alert in alerts(lake) if alert.outcome is Outcome.SENT]
    deaths = sum(alert.ending.name is Name.CRASHED for alert in sent)
    return len(sent) - deaths, deaths


def growth(memory: Sequence[tuple[float, Mapping[str, float]]]) -> dict[str, tuple[float, float]]:
    """Of server and worker: MB at the beginning and at the end of the time that was watched, after it has settled."""
    memory_by_process: dict[str, list[float]] = defaultdict(list)
    for _, sample in memory[int(len(memory) * _WARM_SHARE) :]:
        for name, mb in sample.items():
            memory_by_process[name].append(mb)
    quarter = {name: max(1, len(values) // 4) for name, values in memory_by_process.items()}
    return {
        name: (median(v[: quarter[name]]), median(v[-quarter[name] :])) for name, v in memory_by_process.items() if v
    }


def seconds_words(values: Sequence[float]) -> Mapping[str, Any]:
    """The largest of some seconds for a row, and how many there are."""
    if not values:
        return {"found": "none was measured"}
    return {"seconds": max(values), "found": f"median {median(values):.1f} s of {len(values)}"}


# --------------------------------------------------------------------------------------------------------------------
# What it costs to tell of a run: the same audit, all of it in the lake, with alerts, log and artifacts, and without.
#
# Each run is a process of its own. Its CPU seconds count, and those of the server, which is given time to write. The
# lake holds every stage, so that what is measured is not lost in what stages take; as many lines are told as ever.


WITH, WITHOUT = "with", "without"
_REPETITIONS = 4
_SETTLE_SECONDS = 4.0
_UNTOLD: Mapping[str, Any] = {
    "flows.audit:show_verdict": lambda *_: None,
    "flows.audit:tell_run": lambda *_: None,
    "flows.outcome.run_state:tell_run": lambda *_: None,
    "flows.outcome.run_state:handed_over": lambda *_: nullcontext(),
    "flows.outcome.artifacts:create_progress_artifact": lambda *_, **__: None,
}
"""``module:name`` -> what stands there where nothing is told."""


def added_seconds(services: Services, spec: Path) -> Mapping[str, float]:
    """Median CPU seconds of a run, with and without alerts, log and artifacts.

    Args:
        services: with the server at work.
        spec: of the audit.
    """
    lake = services.home / "told"
    _run(services, spec, lake, WITHOUT)  # computes every stage
    took: dict[str, list[float]] = {WITH: [], WITHOUT: []}
    for _ in range(_REPETITIONS):
        for how, seconds in took.items():
            shutil.rmtree(lake / "alerts", ignore_errors=True)  # else it is told once
            seconds.append(_run(services, spec, lake, how))
    return {how: median(seconds) for how, seconds in took.items()}


def _run(services: Services, spec: Path, lake: Path, how: str) -> float:
    """CPU seconds of one run, of its process and of the server."""
    before = _used(services)
    variables = {"PREFECT_API_URL": services.api, "EVENHAND_JOBS": "1"}
    variables |= {"EVENHAND_ALERTS": str(services.alerts)} if how == WITH else {}
    words = [sys.executable, "-m", "benches.soak", "audited", str(spec), str(lake), how]
    done = subprocess.run(
        words,
        env={**services.environment(), **variables, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the audit ended with {done.returncode}:\n{done.stderr.decode()[-2000:]}")
    time.sleep(_SETTLE_SECONDS)
    own_seconds: float = json.loads(done.stdout.decode().splitlines()[-1])["cpu_s"]
    return own_seconds + _used(services) - before


def _used(services: Services) -> float:
    times = psutil.Process(services.server.pid if services.server else os.getpid()).cpu_times()
    return float(times.user + times.system)


def audited(spec: str, lake: str, how: str) -> Mapping[str, Any]:
    """CPU seconds of this process for an audit, with or without reporting; run as a program."""
    from flows.audit import audit

    with ExitStack() as stack:
        for place, nothing in _UNTOLD.items() if how == WITHOUT else ():
            module, name = place.split(":")
            stack.enter_context(patch.object(import_module(module), name, nothing))
        audit(spec=spec, lake=lake, jobs=1)
    return {"cpu_s": time.process_time()}


if __name__ == "__main__":
    answer(audited)
