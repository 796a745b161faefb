"""Checks the environment of an audit: each requirement, whether it is met, and how to fix it."""

import logging
import os
import shutil
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from ipaddress import ip_address
from math import ceil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
from packaging.requirements import Requirement
from packaging.version import Version

from flows.operations.doctor.settings import misspelt
from flows.operations.schedules.asking import finding_of
from flows.operations.schedules.scheduler_check import LIMIT_SECONDS, seconds_to_first_run
from flows.supervision.file_modes import open_to_others
from flows.supervision.kernels import compiled_kernels
from schemas.errors import EvenhandError
from tasks.lake.storage import storage_at

log = logging.getLogger("evenhand")
_GB = 2**30
_FIRST_WITHOUT_SCHEDULES = Version("2.1")
"""The SQLAlchemy with which Prefect 3.8's scheduler fails each time that it runs."""


def examine(root: str) -> list[dict[str, Any]]:
    """All checks: result, whether it is sufficient, and the next step if not."""
    here = [_lake(root), _modes(root), _disk(root), _memory(), _kernels(), _server(), _schedules()]
    return [*libraries(), settings_known(), *here]


def libraries() -> list[dict[str, Any]]:
    """Checks of Python and of every library."""
    needed = [Requirement(line) for line in requires("evenhand") or []]
    packages = [_package(r) for r in needed if r.marker is None or r.marker.evaluate({"extra": ""})]
    python = check("python", sys.version.split()[0], sys.version_info[:2] >= (3, 11), "use Python 3.11 or later")
    return [python, *packages]


def settings_known() -> dict[str, Any]:
    """Whether each variable that begins as ours is one of ours: a misspelt one would do nothing, in silence."""
    wrong = misspelt(os.environ)
    return check("settings", "; ".join(wrong) or "every EVENHAND_ variable is known", not wrong, "docs/settings.md")


def check(name: str, found: str, ok: bool, step: str) -> dict[str, Any]:
    """A finding, whether it will do, and the next step if not."""
    return {"check": name, "found": found, "ok": ok, "next_step": "" if ok else step}


def _package(wanted: Requirement) -> dict[str, Any]:
    """Whether a library is there in a version that we were tried with; docs/decisions/0029 says which move together."""
    try:
        found = version(wanted.name)
    except PackageNotFoundError:
        found = "missing"
    ok = found != "missing" and wanted.specifier.contains(found, prereleases=True)
    return check(wanted.name, found, ok, f"{wanted} is needed: pip install -r requirements.lock")


def _lake(root: str) -> dict[str, Any]:
    """Whether the lake can be read and written; nothing is made there."""
    try:
        storage = storage_at(root)
        runs = len(storage.glob("runs/*/manifest.json"))
    except EvenhandError as error:
        return check("lake", "cannot be read", False, str(error))
    if storage.location != str(storage.local):  # of a URI only a file that is written would tell more
        return check("lake", f"{storage.location}, {runs} runs", True, "")
    there = _nearest(storage.local)
    if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        step = f"give a directory that this user may write with --lake; {there} is none"
        return check("lake", f"{storage.location}, not writable", False, step)
    found = f"{runs} runs" if there == storage.local else "not there yet; the first audit makes it"
    return check("lake", f"{storage.location}, {found}", True, "")


def _modes(root: str) -> dict[str, Any]:
    """Whether other users of this machine can read what the lake keeps on it."""
    try:
        local = storage_at(root).local
    except EvenhandError:
        return check("file modes", "unknown", True, "")  # the check of the lake says why
    found = len(open_to_others(local)) if local.is_dir() else 0
    return check("file modes", f"{found} open to others", found == 0, "evenhand doctor --fix-modes --lake LAKE")


def _nearest(place: Path) -> Path:
    """The place, or the nearest directory above it that is there."""
    return next(p for p in (place, *place.parents) if p.exists())


def _disk(root: str) -> dict[str, Any]:
    """The disk of the lake, or the one that its drafts lie on where it is at a URI."""
    free = shutil.disk_usage(_nearest(storage_at(root).local)).free
    return check("free disk", f"{free / _GB:.1f} GB", free > 2 * _GB, "free 2 GB, or give another --lake")


def _memory() -> dict[str, Any]:
    free = psutil.virtual_memory().available
    return check("free memory", f"{free / _GB:.1f} GB", free > 3 * _GB, "3 GB are needed for 50,000 rows")


def _kernels() -> dict[str, Any]:
    """Whether the kernels of the set-up are compiled; what is not, the next audit compiles, which takes a minute."""
    compiled, recorded = compiled_kernels()
    found = f"{compiled} of {recorded} compiled" if recorded else "not compiled by the set-up"
    return check("kernels", found, 0 < recorded == compiled, "evenhand doctor --prepare")


def _server() -> dict[str, Any]:
    """Whether what is sent to the server that is named, and the server itself, are closed to others."""
    said = urlsplit(os.environ.get("PREFECT_API_URL", ""))
    if not said.hostname:
        return check("server", "none named; an audit starts its own, with a password", True, "")
    if said.scheme != "https" and not _is_loopback(said.hostname):
        step = "serve it by https, or reach it through a tunnel to this machine"
        return check("server", f"{said.hostname} is reached without https", False, step)
    if not (os.environ.get("PREFECT_API_AUTH_STRING") or os.environ.get("PREFECT_API_KEY")):
        step = "set PREFECT_SERVER_API_AUTH_STRING where it runs and PREFECT_API_AUTH_STRING here"
        return check("server", f"{said.hostname} is asked without a password", False, step)
    return check("server", said.hostname, True, "")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _schedules() -> dict[str, Any]:
    """Whether a server plans runs of schedules; runs that are started by hand work where it does not."""
    named = bool(os.environ.get("PREFECT_API_URL"))
    server = "the server of PREFECT_API_URL" if named else "a temporary server"
    log.info("schedules: waiting for a run that %s makes by itself, up to %d s", server, LIMIT_SECONDS)
    try:
        after = seconds_to_first_run()
    except Exception as error:  # whatever a server, or a Prefect that does not fit, does wrong is a finding here
        return check("schedules", *_not_asked(error, named=named))
    if after is not None:
        return check("schedules", f"the server made a run by itself after {ceil(after)} s", True, "")
    return check("schedules", *_no_run(version("sqlalchemy"), named=named))


def _not_asked(error: Exception, *, named: bool) -> tuple[str, bool, str]:
    """Finding and next step where no server could be asked."""
    why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    if named:
        return f"the server of PREFECT_API_URL cannot be asked ({why})", False, finding_of(error)[1]
    return f"no server could be started ({why})", False, "pip install -r requirements.lock"


def _no_run(sqlalchemy: str, *, named: bool) -> tuple[str, bool, str]:
    """Finding and next step where a server makes no runs; a server that is named may have other libraries than we."""
    found = "the server makes no runs by itself"
    if Version(sqlalchemy) >= _FIRST_WITHOUT_SCHEDULES:
        found += f" (SQLAlchemy {sqlalchemy}; below {_FIRST_WITHOUT_SCHEDULES} is needed)"
    where = " where the server runs, and start it again; its log says why" if named else ""
    return found, False, f"pip install -r requirements.lock{where}"
