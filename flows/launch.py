"""Launch an audit: look first what the lake holds, and start Prefect only if something is left to compute.

Without a server the flow runs on Prefect's embedded API, whose database lies in the lake; with ``PREFECT_API_URL`` set
it uses that server.
"""

import logging
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from filelock import FileLock, Timeout

from flows.plan import held, plan
from flows.prepare import TEMPLATE
from flows.presence import at_work
from flows.record import Summary, is_published, publish, summarise
from flows.years import spec_as_held
from schemas.artifact import Partition
from schemas.settings import AuditSpec
from tasks._store import Lake
from tasks._validate import prepare_engine
from tasks.measure import check_thresholds
from tasks.sections import charts
from tasks.sources.registry import check_columns

log = logging.getLogger("evenhand")


def run_audit(spec: AuditSpec, lake_root: Path | str) -> Summary:
    """Run one audit, or find that nothing is left to do.

    Raises:
        EvenhandError: as the stages say.
    """
    lake = Lake(lake_root)
    with at_work(lake, f"command-{os.getpid()}"):  # so that nothing that this run counts on is removed meanwhile
        return _audited(spec_as_held(spec, lake), lake)


def _audited(spec: AuditSpec, lake: Lake) -> Summary:
    check_columns(spec)
    check_thresholds(spec.thresholds)
    planned = plan(spec)
    done = held(lake, planned.steps)
    if len(done) < len(planned.steps):
        _announce(spec, {step.name for step in planned.steps[len(done) :]})
        return summarise(lake, spec, *_orchestrated(spec, lake))
    log.info("all %d stages are in the lake already: nothing to compute", len(done))
    if not is_published(lake, planned.run):
        publish(lake, planned, done)
    return summarise(lake, spec, planned.run, done)


def _announce(spec: AuditSpec, left: set[str]) -> None:
    """Say beforehand of a stage that it takes long, since it says nothing until its end."""
    fgce = spec.methods.fgce
    if fgce is not None and fgce.exact and "detect fgce" in left:
        log.info(
            "fgce.exact: hundreds of integer programmes, of at most %g s each; detect fgce may say nothing for minutes",
            fgce.solver_seconds,
        )


def prepare_environment(local: Path) -> None:
    """Keep Prefect's files in the lake, its telemetry off and its log quiet, unless the user has said otherwise.

    ``local`` is where the lake keeps files on this machine, wherever it lies: Prefect's database has to be locked.
    """
    home = local / "prefect"
    wanted = {
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_SERVER_LEVEL": "CRITICAL",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
        "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "true",
    }
    for name, value in wanted.items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("PREFECT_LOCAL_STORAGE_PATH", str(Path(os.environ["PREFECT_HOME"]) / "storage"))


def _seed_database(home: Path) -> None:
    """Give a new Prefect home the database that the set-up has migrated already."""
    database = home / "prefect.db"
    if TEMPLATE.is_file() and not database.exists():
        home.mkdir(parents=True, exist_ok=True)
        draft = database.with_suffix(f".{os.getpid()}")
        shutil.copyfile(TEMPLATE, draft)
        draft.replace(database)


@contextmanager
def prefect_api(lake: Lake) -> Iterator[None]:
    """Prefect at hand: the server where one is named, else the embedded API, whose database lies in the lake.

    Runs on the embedded API of one lake take turns; a server takes any number at once.
    """
    prepare_environment(lake.storage.local)
    if os.environ.get("PREFECT_API_URL"):
        yield
        return
    turn = FileLock(lake.storage.local / "locks" / "embedded-api.lock")
    try:
        turn.acquire(blocking=False)
    except Timeout:
        log.info("another audit is running on this lake: waiting for it to end")
        turn.acquire()
    try:
        _seed_database(Path(os.environ["PREFECT_HOME"]))
        yield
    finally:
        turn.release()


def _orchestrated(spec: AuditSpec, lake: Lake) -> tuple[str, list[Partition]]:
    """Run the flow; the run id is the flow's, as the source may have changed meanwhile."""
    with prefect_api(lake):
        return _flow(spec, lake)


def _load_meanwhile() -> None:
    """Load what the stages will need while the API starts, which is a process of its own: both take seconds."""
    prepare_engine()
    charts.bundle()
    import_module("skops.io")


def _flow(spec: AuditSpec, lake: Lake) -> tuple[str, list[Partition]]:
    loading = threading.Thread(target=_load_meanwhile, daemon=True)
    loading.start()
    try:
        from flows.audit import audit  # starts Prefect, and only when there is work

        found = audit(spec=spec.model_dump(mode="json"), lake=lake.location)
    finally:
        loading.join()  # an audit that fails at once would end the process in the middle of an import
    return found["run"], [Partition.model_validate(entry) for entry in found["partitions"]]
