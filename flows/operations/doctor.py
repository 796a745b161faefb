"""Command `doctor`: checks the environment and the roles of a deployment."""

import logging
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, requires, version
from ipaddress import ip_address
from math import ceil
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import psutil
from packaging.requirements import Requirement

from flows.operations.environment_variables import misspelt
from flows.operations.schedules import LIMIT_SECONDS, finding_of, seconds_to_first_run
from flows.outcome.conclusion import REPORTS_URL, reports_site
from flows.runs.given import placed
from flows.supervision.file_modes import denied_bits, open_to_others
from flows.supervision.kernels import compiled_kernels
from flows.supervision.prefect_server import fault_at, shown_address
from schemas.errors import EvenhandError, SpecError, nearest
from tasks.lake.storage import storage_at
from tasks.pipeline.registry import read_spec

# --------------------------------------------------------------------------------------------------------------------
# Checks the environment of an audit: each requirement, whether it is met, and how to fix it.


log = logging.getLogger("evenhand")
_GB = 2**30


def examine(root: str) -> list[dict[str, Any]]:
    """All checks: result, whether it is sufficient, and the next step if not."""
    lake_checks = [_lake(root), _modes(root)]
    # The disk of the lake, or the one that its drafts lie on where the lake is at a URI.
    disk = shutil.disk_usage(_nearest(storage_at(root).local)).free
    memory = psutil.virtual_memory().available
    return [
        *libraries(),
        settings_known(),
        *lake_checks,
        check("free disk", f"{disk / _GB:.1f} GB", disk > 2 * _GB, "free 2 GB, or give another --lake"),
        check("free memory", f"{memory / _GB:.1f} GB", memory > 3 * _GB, "3 GB are needed for 50,000 rows"),
        _kernels(),
        _server(),
        _schedules(),
    ]


_EXTRAS = ("pipeline", "torch", "serve", "lake")
"""Extras whose libraries are checked; commands need the first."""


def _holds(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is not None and requirement.marker.evaluate({"extra": extra})


def libraries() -> list[dict[str, Any]]:
    """Checks of Python and of every library; docs/decisions/0029 lists which libraries change together."""
    checks = [check("python", sys.version.split()[0], sys.version_info[:2] >= (3, 11), "use Python 3.11 or later")]
    for requirement in map(Requirement, requires("evenhand") or []):
        extras = [extra for extra in ("", *_EXTRAS) if requirement.marker is None or _holds(requirement, extra)]
        if extras:
            try:
                installed = version(requirement.name)
            except PackageNotFoundError:
                if not {"", "pipeline"} & set(extras):
                    continue  # an extra that this installation has no use for
                installed = "missing"
            ok = installed != "missing" and requirement.specifier.contains(installed, prereleases=True)
            step = f"{requirement} is needed: pip install -r requirements.lock"
            checks.append(check(requirement.name, installed, ok, step))
    return checks


def settings_known() -> dict[str, Any]:
    """Whether each variable that begins as ours is one of ours: a misspelt one would do nothing, in silence."""
    wrong = misspelt(os.environ)
    return check("settings", "; ".join(wrong) or "every EVENHAND_ variable is known", not wrong, "docs/settings.md")


def check(name: str, state: str, ok: bool, step: str) -> dict[str, Any]:
    """A finding, whether it will do, and the next step if not."""
    return {"check": name, "found": state, "ok": ok, "next_step": "" if ok else step}


def _lake(root: str) -> dict[str, Any]:
    """Whether the lake can be read and written; nothing is made there."""
    try:
        storage = storage_at(root)
        runs = len(storage.glob("runs/*/manifest.json"))
    except EvenhandError as error:
        return check("lake", "cannot be read", False, str(error))
    if storage.location != str(storage.local):  # of a URI only a file that is written would tell more
        return check("lake", f"{storage.location}, {runs} runs", True, "")
    nearest_directory = _nearest(storage.local)
    if not (nearest_directory.is_dir() and os.access(nearest_directory, os.W_OK | os.X_OK)):
        step = f"give a directory that this user may write with --lake; {nearest_directory} is none"
        return check("lake", f"{storage.location}, not writable", False, step)
    state = f"{runs} runs" if nearest_directory == storage.local else "not there yet; the first audit makes it"
    return check("lake", f"{storage.location}, {state}", True, "")


def _modes(root: str) -> dict[str, Any]:
    """Whether other users of this machine can read what the lake keeps on it."""
    try:
        local = storage_at(root).local
    except EvenhandError:
        return check("file modes", "unknown", True, "")  # the check of the lake says why
    open_files = len(open_to_others(local)) if local.is_dir() else 0
    return check(
        "file modes", f"{open_files} open to others", open_files == 0, "evenhand doctor --fix-modes --lake LAKE"
    )


def _nearest(place: Path) -> Path:
    """The place, or the nearest existing directory above it."""
    return next(p for p in (place, *place.parents) if p.exists())


def _kernels() -> dict[str, Any]:
    """Whether the kernels of the set-up are compiled; what is not, the next audit compiles, which takes a minute."""
    compiled, recorded = compiled_kernels()
    state = f"{compiled} of {recorded} compiled" if recorded else "not compiled by the set-up"
    return check("kernels", state, 0 < recorded == compiled, "evenhand doctor --prepare")


def _server() -> dict[str, Any]:
    """Whether what is sent to the server that is named, and the server itself, are closed to others."""
    api_url = urlsplit(os.environ.get("PREFECT_API_URL", ""))
    if not api_url.hostname:
        return check("server", "none named; an audit starts its own, with a password", True, "")
    try:
        is_loopback = ip_address(api_url.hostname).is_loopback
    except ValueError:
        is_loopback = api_url.hostname == "localhost"
    if api_url.scheme != "https" and not is_loopback:
        step = "serve it by https, or reach it through a tunnel to this machine"
        return check("server", f"{api_url.hostname} is reached without https", False, step)
    if not (os.environ.get("PREFECT_API_AUTH_STRING") or os.environ.get("PREFECT_API_KEY")):
        step = "set PREFECT_SERVER_API_AUTH_STRING where it runs and PREFECT_API_AUTH_STRING here"
        return check("server", f"{api_url.hostname} is asked without a password", False, step)
    return check("server", api_url.hostname, True, "")


def _schedules() -> dict[str, Any]:
    """Whether a server plans runs of schedules; runs that are started by hand work where it does not."""
    named = bool(os.environ.get("PREFECT_API_URL"))
    server = "the server of PREFECT_API_URL" if named else "a temporary server"
    log.info("schedules: waiting for a run that %s makes by itself, up to %d s", server, LIMIT_SECONDS)
    try:
        after = seconds_to_first_run()
    except Exception as error:  # whatever a server, or a Prefect that does not fit, does wrong is a finding here
        why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        if named:
            state, step = f"the server of PREFECT_API_URL cannot be asked ({why})", finding_of(error)[1]
        else:
            state, step = f"no server could be started ({why})", "pip install -r requirements.lock"
        return check("schedules", state, False, step)
    if after is not None:
        return check("schedules", f"the server made a run by itself after {ceil(after)} s", True, "")
    # a server that is named may have other libraries than we
    where = " where the server runs, and start it again; its log says why" if named else ""
    return check("schedules", "the server makes no runs by itself", False, f"pip install -r requirements.lock{where}")


# --------------------------------------------------------------------------------------------------------------------
# Checks of one role of a deployment: server, worker or site, from inside its container or unit.


_ON_DISK: Final = "prefect.server.concurrency.lease_storage.filesystem"
_PRIVATE: Final = ("EVENHAND_SIGNING_KEY", "EVENHAND_ALERTS")
"""Variables with the path of a file that is closed to others."""
Check = dict[str, Any]


class Role(StrEnum):
    """Roles of a deployment."""

    SERVER = "server"
    WORKER = "worker"
    SITE = "site"


def role_of(name: str) -> Role:
    """The role of that name.

    Raises:
        SpecError: there is none.
    """
    names = [role.value for role in Role]
    if name not in names:
        raise SpecError(f"--role {name}: no such role; {nearest(name, names)}")
    return Role(name)


def examine_role(role: Role, root: str) -> list[Check]:
    """All checks of a role; ``root`` is the lake."""
    if role is Role.SITE:
        # The site has to see the reports, and nothing else of the lake.
        folder = storage_at(root).local / "reports"
        if not os.access(folder, os.R_OK | os.X_OK):
            step = "mount the folder `reports` of the lake at this place, readable for this user"
            return [settings_known(), check("reports", f"{folder} cannot be read", False, step)]
        count = sum(1 for report_folder in folder.iterdir() if report_folder.is_dir())
        writable, tables = os.access(folder, os.W_OK), (folder.parent / "runs").exists()
        return [
            settings_known(),
            check("reports", f"{count} in {folder}", True, ""),
            check("read only", "writable" if writable else "not writable", not writable, "mount it read-only"),
            check("tables", "seen" if tables else "not seen", not tables, "mount `reports` alone, and not the lake"),
        ]
    if role is Role.SERVER:
        host = os.environ.get("PREFECT_SERVER_API_HOST", "127.0.0.1")
        port = os.environ.get("PREFECT_SERVER_API_PORT", "4200")
        reachable_host = "127.0.0.1" if host == "0.0.0.0" else host  # noqa: S104 asked for, and not listened at
        return [*libraries(), settings_known(), *_server_settings(), _ready(f"http://{reachable_host}:{port}/api")]
    named = os.environ.get("PREFECT_API_URL", "").rstrip("/")
    step = "set PREFECT_API_URL, such as http://127.0.0.1:4200/api"
    ready = _ready(named) if named else check("ready", "no server is named", False, step)
    return [*examine(root), ready, *_worker_settings()]


def _server_settings() -> Iterator[Check]:
    """Whether the server has PostgreSQL, a password, and leases that outlive it."""
    connection_url = os.environ.get("PREFECT_SERVER_DATABASE_CONNECTION_URL") or os.environ.get(
        "PREFECT_API_DATABASE_CONNECTION_URL"
    )
    driver = connection_url or os.environ.get("PREFECT_SERVER_DATABASE_DRIVER", "")
    step = "set PREFECT_SERVER_DATABASE_DRIVER=postgresql+asyncpg, and _HOST, _PORT, _USER, _NAME and _PASSWORD"
    is_postgres = driver.startswith("postgresql+asyncpg")  # SQLite locks as soon as two runs write
    yield check("database", "PostgreSQL" if is_postgres else "SQLite", is_postgres, step)

    user, _, password = os.environ.get("PREFECT_SERVER_API_AUTH_STRING", "").partition(":")
    step = "set PREFECT_SERVER_API_AUTH_STRING to evenhand:PASSWORD, from a file of secrets"
    yield check("password", "asked for" if user and password else "none is asked for", bool(user and password), step)

    # Without leases that outlive the server, a restart ends the runs at work.
    if os.environ.get("PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE", "") != _ON_DISK:
        step = f"set PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE={_ON_DISK}"
        yield check("leases", "in the memory of the server", False, step)
        return
    home = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect")
    writable = home.is_dir() and os.access(home, os.W_OK | os.X_OK)
    step = "set PREFECT_HOME to a directory of a volume that this user may write"
    yield check("leases", f"in {home}{'' if writable else ', not writable'}", writable, step)


def _ready(api: str) -> Check:
    """Whether a server answers, and its database behind it."""
    fault = fault_at(api)
    if fault is None:
        return check("ready", f"{shown_address(api)}/ready is 200", True, "")
    return check("ready", fault.what, False, fault.step)


def _worker_settings() -> Iterator[Check]:
    """Whether specs can be used, the address of reports is one, and others cannot read the private files."""
    folder = Path(os.environ.get("EVENHAND_SPECS", ""))
    if os.environ.get("EVENHAND_SPECS") and folder.is_dir():
        spec_files = sorted(folder.glob("*.y*ml"))
        wrong = []
        for spec in spec_files:
            try:
                placed(read_spec(spec.read_text(encoding="utf-8"), spec.name), folder)
            except (EvenhandError, OSError, UnicodeDecodeError) as error:
                fault = str(error).splitlines()[0]
                wrong.append(fault if spec.name in fault else f"{spec.name}: {fault}")
        state = "; ".join(wrong) or f"{len(spec_files)} in {folder}"
        yield check("specs", state, bool(spec_files) and not wrong, "put a spec there, or mend it: evenhand plan SPEC")
    else:
        yield check("specs", "no directory", False, "set EVENHAND_SPECS to the directory of your audit specs")
    if address := os.environ.get(REPORTS_URL):
        site = reports_site(address)
        step = f"set {REPORTS_URL} to an address such as https://reports.example.org/evenhand"
        yield check("reports", site or "no address of http or https", bool(site), step)
    for name in _PRIVATE:
        if file := os.environ.get(name):
            path = Path(file)
            if os.access(path, os.R_OK):
                mode = stat.S_IMODE(path.stat().st_mode)
                yield check(name, f"{path}, mode {mode:04o}", not mode & denied_bits(), f"chmod 600 {path}")
            else:
                step = "mount it, or give it to the user of this process"
                yield check(name, f"{path} cannot be read", False, step)
