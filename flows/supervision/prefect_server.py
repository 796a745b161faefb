"""Prefect's server: embedded or as a child process, its readiness, and the flow runs of one lake."""

import http
import http.client
import json
import logging
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

import psutil
from filelock import FileLock, Timeout

import flows
from flows.supervision.parentage import Forked, ended_with, forked, may_fork
from flows.supervision.prepare import is_migrated, seed_database
from flows.supervision.shutdown import shielded_children
from schemas.errors import EvenhandError, InfrastructureError
from tasks.lake.storage import storage_at
from tasks.lake.store import Lake

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.client.schemas.objects import FlowRun


# --------------------------------------------------------------------------------------------------------------------
# Asks Prefect's server whether it is ready, in words that say what to do, before a run ends in Prefect's own words.
#
# `/api/ready` asks the database; `/api/health` answers always. A password in the address is in no message.


_ANSWER_SECONDS: Final = 10
_TRIES: Final = 4
_PAUSE_SECONDS: Final = 1.0
"""Between two tries: a server that is started again answers within seconds."""
_AUTH: Final = "PREFECT_API_AUTH_STRING"
WANTS_PASSWORD: Final = (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN)
START: Final = f"start it, or mend PREFECT_API_URL and {_AUTH}"
NO_PREFECT: Final = "PREFECT_API_URL ends with /api, such as http://127.0.0.1:4200/api"
GIVE_PASSWORD: Final = f"set {_AUTH} to evenhand:PASSWORD"
LOOK_AT_DATABASE: Final = "look whether its database is full, or away; its log says which"


def require_server(api: str) -> None:
    """Return if the server at ``api`` is ready, or is Prefect Cloud, which does not say so.

    Raises:
        InfrastructureError: nothing answers there, or something that is no Prefect server, or one without its database.
    """
    if os.environ.get("PREFECT_API_KEY"):
        return
    fault = fault_at(api)
    for _ in range(_TRIES - 1):
        if fault is None or not fault.passing:
            break
        time.sleep(_PAUSE_SECONDS)
        fault = fault_at(api)
    if fault is not None:
        raise InfrastructureError(f"{fault.what}: {fault.step}; without PREFECT_API_URL a command starts a server")


class Fault(NamedTuple):
    """Why runs cannot go to a server, and the next step."""

    what: str
    step: str
    passing: bool = False
    """Whether it may pass by itself: the server is away, or its database."""


def fault_at(api: str) -> Fault | None:
    """Why runs cannot go to the server at ``api``; None if they can."""
    import httpx  # loads click, and an audit with nothing left to compute asks no server

    visible_address = shown_address(api)
    user, colon, password = os.environ.get(_AUTH, "").partition(":")
    auth = (user, password) if colon else None
    try:
        answer = httpx.get(f"{api.rstrip('/')}/ready", timeout=_ANSWER_SECONDS, auth=auth)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Fault(f"no server answers at {visible_address} ({type(error).__name__})", START, passing=True)
    if answer.is_server_error:  # also a proxy's page, while the server behind it is started again
        what = f"the server at {visible_address} is not ready ({answer.status_code})"
        return Fault(what, LOOK_AT_DATABASE, passing=True)
    if answer.status_code in WANTS_PASSWORD:
        return Fault(f"the server at {visible_address} refuses the password ({answer.status_code})", GIVE_PASSWORD)
    if not (answer.is_success and "json" in answer.headers.get("content-type", "")):
        return Fault(f"what answers at {visible_address} is no Prefect server ({answer.status_code})", NO_PREFECT)
    return None


def shown_address(api: str) -> str:
    """An address without name and password."""
    parts = urlsplit(api)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


# --------------------------------------------------------------------------------------------------------------------
# Prefect's API for a command: the configured server, else an embedded one with its database in the lake.
#
# The embedded API is a server on the loopback interface that Prefect starts. Runs take turns to use it. The run in turn
# owns the server: it passes address and password to its child processes, which would otherwise each start a server, and
# stops it. The password is for the server's life, in the environment of these processes alone.
# The next run stops the server of a killed process.


log = logging.getLogger("evenhand")
_FULL_BYTES: Final = 2**20
"""With less than that free, SQLite cannot write."""


class InUseError(InfrastructureError):
    """Another run is using the embedded API of a lake."""


@contextmanager
def prefect_api(lake: Lake, *, wait: bool = True, meanwhile: Callable[[], object] = bool) -> Iterator[None]:
    """Provide a Prefect API: the server that is configured, else the embedded one.

    Runs on the embedded API of one lake take turns; a server takes any number at once.

    Args:
        lake: whose API it is.
        wait: for another run that has its turn.
        meanwhile: called once the server has been started; it may start threads, which ``may_fork`` would refuse.

    Raises:
        InUseError: another run has its turn, and ``wait`` is false.
        InfrastructureError: the server that is named is not ready.
    """
    prepare_environment(lake.storage.local)
    if api := os.environ.get("PREFECT_API_URL"):
        require_server(api)
        meanwhile()
        yield
        return
    turn = FileLock(lake.storage.local / "locks" / "embedded-api.lock")
    try:
        turn.acquire(blocking=False)
    except Timeout:
        if not wait:
            raise InUseError(
                f"a run uses the embedded Prefect of the lake {lake.location}; try again when it has ended"
            ) from None
        log.info("another audit is running on this lake: waiting for it to end")
        turn.acquire()
    try:
        seed_database(Path(os.environ["PREFECT_HOME"]))
        record = lake.storage.local / "locks" / "embedded-api.json"
        with _explaining_full_disk(lake.storage.local), _server(record, meanwhile):
            yield
    finally:
        Path(turn.lock_file).unlink(missing_ok=True)  # while it is held: who has it open sees that it is another's
        turn.release()


@contextmanager
def _explaining_full_disk(local: Path) -> Iterator[None]:
    """Name the disk where the server could not write its database: its answer is an error without that reason.

    Raises:
        InfrastructureError: the disk is full.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, EvenhandError) or shutil.disk_usage(local).free >= _FULL_BYTES:
            raise
        raise InfrastructureError(
            f"the disk of {local} is full, and Prefect keeps its database there; free some space and run again: "
            "finished stages are kept"
        ) from error


def prepare_environment(local: Path) -> None:
    """Keep Prefect's files in the lake, its telemetry off and its log quiet, unless the user has configured otherwise.

    ``local`` is where the lake keeps files on this machine, wherever it lies: Prefect's database has to be locked.
    """
    home = local / "prefect"
    variables = {
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_SERVER_LEVEL": "CRITICAL",
        # after each sub-flow Prefect warns, outside of its own loggers, that events are on their way
        "PREFECT_LOGGING_ROOT_LEVEL": "ERROR",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
        "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "true",
    }
    for name, value in variables.items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("PREFECT_LOCAL_STORAGE_PATH", str(Path(os.environ["PREFECT_HOME"]) / "storage"))


@contextmanager
def _server(record: Path, meanwhile: Callable[[], object]) -> Iterator[None]:
    """Start the server and configure it for this process and its children; ``record`` keeps its process id."""
    _end_orphan(record)
    server, password = None, f"evenhand:{secrets.token_urlsafe(32)}"
    try:
        with shielded_children():  # an audit that is stopped has to tell Prefect so
            server, api = embedded_server(password)
        record.write_text(json.dumps({"pid": server.pid, "began": psutil.Process(server.pid).create_time()}))
        meanwhile()
        from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

        wait_for(server, api)
        with temporary_settings({PREFECT_API_URL: api, PREFECT_API_AUTH_STRING: password}):
            yield
    finally:
        if server is not None:
            end(server)
        record.unlink(missing_ok=True)


def _end_orphan(record: Path) -> None:
    """End the server of a killed process; the run in turn has exclusive use of the embedded API."""
    try:
        process_record = json.loads(record.read_text())
        process = psutil.Process(process_record["pid"])
        if process.create_time() == process_record["began"]:  # else its number was given to another process
            process.terminate()
    except (OSError, ValueError, KeyError, psutil.Error):
        return


# --------------------------------------------------------------------------------------------------------------------
# Prefect's server as a process of its own: the embedded API of a lake, or a complete one for the length of a check.
#
# Prefect starts the embedded API of a lake without the services that create scheduled runs. Prefect's own class for it
# imports the whole server into the process that starts one, which takes longer than most stages. A command forks it, as
# a flow and the server have half of their modules in common.


Server = subprocess.Popen[bytes] | Forked
_SHARED: Final = ("prefect.flow_engine", "prefect.task_engine", "fastapi.encoders", "pydantic.v1")
"""What both a flow and the server load."""
_APP: Final = "prefect.server.api.server:create_app"
_START_SECONDS = 120
_STOP_SECONDS = 10
_PLAN_SECONDS = 2
"""How often the server looks for schedules without a run; Prefect's own default is a minute."""
_EMBEDDED: Final = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}
"""What Prefect gives the server that it starts for one process."""
_PLACES: Final = ("_HOME", "_PATH")
"""Ends of the names of Prefect's settings that are files or folders."""
_DATABASE: Final = "_DATABASE_"
_PROFILES: Final = "_PROFILES_"
"""In names of settings by which a user may name another database, which may have to be migrated. So may a profile."""
LIGHT: Final[Mapping[str, str]] = {
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "false",
    "PREFECT_SERVER_EVENTS_STREAM_OUT_ENABLED": "false",
    "PREFECT_SERVER_REGISTER_BLOCKS_ON_START": "false",
    "PREFECT_SERVER_MEMOIZE_BLOCK_AUTO_REGISTRATION": "false",
    "PY_KEY_VALUE_DISABLE_BEARTYPE": "true",
}
"""Settings that leave out what does nothing for one command: no automation runs there, no client watches its events,
``gc`` removes old runs, a run uses no block, and a library of Prefect's need not check the types of its own calls. The
environment may set each otherwise. The recorder of task runs stays."""


def embedded_server(password: str) -> tuple[Server, str]:
    """Start a server on a free loopback port with the environment of this process; its process and the URL of its API.

    It works in PREFECT_HOME, and finds modules in the folders of the code alone: neither a ``prefect.py`` nor a
    ``prefect.toml`` of the user's working directory is part of it. Relative paths in the environment are those of this
    process. What it logs goes where this process logs. Whoever asks it for anything has to give ``password``, since
    every account of the machine reaches its port: a deployment that is made there is code that runs as this user.
    """
    port = _free_port()
    settings = {**_EMBEDDED, "PREFECT_SERVER_API_AUTH_STRING": password}
    environment = {**LIGHT, **os.environ, **settings}
    for name, value in os.environ.items():
        if name.startswith("PREFECT_") and name.endswith(_PLACES) and value and not value.startswith("~"):
            environment[name] = os.path.abspath(value)  # noqa: PTH100 links stay as the user has them
    modules = [os.path.abspath(path) for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]  # noqa: PTH100
    environment["PYTHONPATH"] = os.pathsep.join(modules)
    home = Path(environment["PREFECT_HOME"]).expanduser()
    home.mkdir(parents=True, exist_ok=True)
    names_another = any(part in name for name in os.environ for part in (_DATABASE, _PROFILES))
    names_another = names_another or any(home.glob("*.toml"))
    if not names_another and is_migrated(home):
        environment[f"PREFECT_SERVER{_DATABASE}MIGRATE_ON_START"] = "false"
    api = f"http://127.0.0.1:{port}/api"
    if not may_fork():
        return _started(port, environment, cwd=home), api
    for module in _SHARED:
        import_module(module)
    return forked(lambda: _serve(port, environment, home)), api


def _serve(port: int, environment: Mapping[str, str], home: Path) -> None:
    """Be the server, in a process that was forked from a command."""
    os.environ.clear()
    os.environ.update(environment)
    folder = os.getcwd()  # noqa: PTH109 as sys.path has it
    sys.path[:] = [
        path for path in sys.path if path not in ("", folder) or path in environment["PYTHONPATH"].split(":")
    ]
    os.chdir(home)
    import uvicorn
    from prefect.context import refresh_global_settings_context

    refresh_global_settings_context()
    uvicorn.run(_APP, factory=True, lifespan="on", log_level="error", host="127.0.0.1", port=port)


def wait_for(server: Server, api: str) -> None:
    """Wait until it answers.

    Raises:
        InfrastructureError: it ended by itself, or did not answer in time.
    """
    _wait(f"{api}/ready", server, float(os.environ["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"]))


def end(server: Server) -> None:
    """End it, and do not leave before it has ended."""
    server.terminate()
    try:
        server.wait(timeout=_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


@contextmanager
def scratch_server(home: Path) -> Iterator[str]:
    """A server on a free loopback port with its files in ``home``; gives the URL of its API, and ends it.

    Raises:
        InfrastructureError: the server ended by itself, or did not answer within two minutes.
    """
    seed_database(home)
    port, log = _free_port(), home / "server.log"
    with log.open("w") as output:
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        environment = {
            **variables,
            "PREFECT_HOME": str(home),
            "PREFECT_UI_ENABLED": "false",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            "PREFECT_LOGGING_SERVER_LEVEL": "ERROR",
            "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": str(_PLAN_SECONDS),
        }
        process = _started(port, environment, cwd=home, stdout=output, stderr=output)
        try:
            _wait(f"http://127.0.0.1:{port}/api/ready", process, _START_SECONDS, log)
            yield f"http://127.0.0.1:{port}/api"
        finally:
            end(process)


def _started(port: int, environment: Mapping[str, str], **places: Any) -> Server:
    app = ["--factory", _APP, "--lifespan", "on", "--log-level", "error"]
    code = str(Path(flows.__file__).parents[1])  # else uvicorn looks for modules in the working directory first
    words = [*ended_with("uvicorn"), *app, "--app-dir", code, "--host", "127.0.0.1", "--port", str(port)]
    return subprocess.Popen(words, env=environment, **places)  # noqa: S603 our own words


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(url: str, process: Server, seconds: float, log: Path | None = None) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if process.poll() is not None:
            raise InfrastructureError(f"it ended with exit code {process.returncode}: {_last_line(log)}")
        if _answers(url):
            return
        time.sleep(0.1)
    raise InfrastructureError(f"it did not answer within {seconds:g} s: {_last_line(log)}")


def _answers(url: str) -> bool:
    """Whether a server of this machine is ready; by the standard library, as httpx prepares TLS at each call."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=5)
    try:
        connection.request("GET", address.path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):  # it does not listen yet
        return False
    finally:
        connection.close()


def _last_line(log: Path | None) -> str:
    if log is None:
        return "what it said is above"
    lines = log.read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


# --------------------------------------------------------------------------------------------------------------------
# Finds and deletes the Prefect flow runs of one lake.
#
# Prefect keeps every run for ever. The results of an audit are in the lake; a flow run is only its log.


_PAGE = 200
"""As many as the server gives at once."""


def of_lake(client: "SyncPrefectClient", lake: Lake, states: list[str]) -> Iterator["FlowRun"]:
    """The flow runs on a lake that are in one of these states, such as PENDING, the newest first."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterState, FlowRunFilterStateType
    from prefect.client.schemas.objects import StateType

    states_filter = FlowRunFilterStateType(any_=[StateType(state) for state in states])
    for run in _pages(client, FlowRunFilter(state=FlowRunFilterState(type=states_filter))):
        # the location in the form that the lake has itself; nothing is opened
        address = str(run.parameters.get("lake", ""))
        scheme, separator, _ = address.partition("://")
        location = address if separator and scheme != "file" else storage_at(address).location
        if location == lake.location:
            yield run


def crash_sub_flows(client: "SyncPrefectClient", flow_run: UUID, why: str) -> None:
    """Set the sub-flow runs of a flow run to CRASHED that have not ended; their processes have."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterParentFlowRunId
    from prefect.states import Crashed

    within = FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[flow_run]))
    for run in list(_pages(client, within)):
        if run.state is None or not run.state.is_final():
            client.set_flow_run_state(run.id, Crashed(message=f"Found by evenhand: {why}."), force=True)


def outdated(client: "SyncPrefectClient", lake: Lake, newest: int) -> list["FlowRun"]:
    """The flow runs on a lake that are over, without the newest so many of every flow, audit, year and partition."""
    alike: dict[tuple[str, ...], list[FlowRun]] = defaultdict(list)
    for run in of_lake(client, lake, ["COMPLETED", "FAILED", "CRASHED", "CANCELLED"]):
        spec: Any = run.parameters.get("spec")
        name, year = (spec.get("name"), spec.get("year")) if isinstance(spec, dict) else (spec, None)
        span = str(run.parameters.get("years") or run.parameters.get("year") or year)
        partition = str((run.parameters.get("listed") or {}).get("value"))
        subject = str(run.flow_id), str(name), span, partition
        alike[subject].append(run)
    return [run for group in alike.values() for run in group[newest:]]


def remove_outdated(client: "SyncPrefectClient", lake: Lake, newest: int) -> int:
    """Remove them, with their task runs; gives their number."""
    gone = outdated(client, lake, newest)
    for run in gone:
        client.delete_flow_run(run.id)
    return len(gone)


def _pages(client: "SyncPrefectClient", flow_run_filter: "FlowRunFilter") -> Iterator["FlowRun"]:
    from prefect.client.schemas.sorting import FlowRunSort

    offset = 0
    while True:
        page = client.read_flow_runs(
            flow_run_filter=flow_run_filter, sort=FlowRunSort.EXPECTED_START_TIME_DESC, limit=_PAGE, offset=offset
        )
        yield from page
        offset += len(page)
        if len(page) < _PAGE:
            return
