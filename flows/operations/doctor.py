"""Command `doctor`: checks the environment and the roles of a deployment."""

import logging
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, requires, version
from ipaddress import ip_address
from math import ceil
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import psutil
from packaging.requirements import Requirement
from packaging.version import Version

from flows.operations.environment_variables import misspelt
from flows.operations.schedules import LIMIT_SECONDS, finding_of, seconds_to_first_run
from flows.outcome.conclusion import REPORTS_URL, reports_site
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
_FIRST_WITHOUT_SCHEDULES = Version("2.1")
"""The SQLAlchemy with which Prefect 3.8's scheduler fails each time that it runs."""


def examine(root: str) -> list[dict[str, Any]]:
    """All checks: result, whether it is sufficient, and the next step if not."""
    machine_checks = [_lake(root), _modes(root), _disk(root), _memory(), _kernels(), _server(), _schedules()]
    return [*libraries(), settings_known(), *machine_checks]


def libraries() -> list[dict[str, Any]]:
    """Checks of Python and of every library."""
    requirements = [Requirement(line) for line in requires("evenhand") or []]
    packages = [_package(r) for r in requirements if r.marker is None or r.marker.evaluate({"extra": ""})]
    python = check("python", sys.version.split()[0], sys.version_info[:2] >= (3, 11), "use Python 3.11 or later")
    return [python, *packages]


def settings_known() -> dict[str, Any]:
    """Whether each variable that begins as ours is one of ours: a misspelt one would do nothing, in silence."""
    wrong = misspelt(os.environ)
    return check("settings", "; ".join(wrong) or "every EVENHAND_ variable is known", not wrong, "docs/settings.md")


def check(name: str, state: str, ok: bool, step: str) -> dict[str, Any]:
    """A finding, whether it will do, and the next step if not."""
    return {"check": name, "found": state, "ok": ok, "next_step": "" if ok else step}


def _package(requirement: Requirement) -> dict[str, Any]:
    """Whether a library is installed in a tested version; docs/decisions/0029 lists which change together."""
    try:
        installed_version = version(requirement.name)
    except PackageNotFoundError:
        installed_version = "missing"
    ok = installed_version != "missing" and requirement.specifier.contains(installed_version, prereleases=True)
    return check(requirement.name, installed_version, ok, f"{requirement} is needed: pip install -r requirements.lock")


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
    state = f"{compiled} of {recorded} compiled" if recorded else "not compiled by the set-up"
    return check("kernels", state, 0 < recorded == compiled, "evenhand doctor --prepare")


def _server() -> dict[str, Any]:
    """Whether what is sent to the server that is named, and the server itself, are closed to others."""
    api_url = urlsplit(os.environ.get("PREFECT_API_URL", ""))
    if not api_url.hostname:
        return check("server", "none named; an audit starts its own, with a password", True, "")
    if api_url.scheme != "https" and not _is_loopback(api_url.hostname):
        step = "serve it by https, or reach it through a tunnel to this machine"
        return check("server", f"{api_url.hostname} is reached without https", False, step)
    if not (os.environ.get("PREFECT_API_AUTH_STRING") or os.environ.get("PREFECT_API_KEY")):
        step = "set PREFECT_SERVER_API_AUTH_STRING where it runs and PREFECT_API_AUTH_STRING here"
        return check("server", f"{api_url.hostname} is asked without a password", False, step)
    return check("server", api_url.hostname, True, "")


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
    """Finding and next step if no server could be reached."""
    why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    if named:
        return f"the server of PREFECT_API_URL cannot be asked ({why})", False, finding_of(error)[1]
    return f"no server could be started ({why})", False, "pip install -r requirements.lock"


def _no_run(sqlalchemy: str, *, named: bool) -> tuple[str, bool, str]:
    """Finding and next step where a server makes no runs; a server that is named may have other libraries than we."""
    state = "the server makes no runs by itself"
    if Version(sqlalchemy) >= _FIRST_WITHOUT_SCHEDULES:
        state += f" (SQLAlchemy {sqlalchemy}; below {_FIRST_WITHOUT_SCHEDULES} is needed)"
    where = " where the server runs, and start it again; its log says why" if named else ""
    return state, False, f"pip install -r requirements.lock{where}"


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
    return _CHECKS[role](root)


def _roles_server(_: str) -> list[Check]:
    host = os.environ.get("PREFECT_SERVER_API_HOST", "127.0.0.1")
    port = os.environ.get("PREFECT_SERVER_API_PORT", "4200")
    reachable_host = "127.0.0.1" if host == "0.0.0.0" else host  # noqa: S104 asked for, and not listened at
    return [
        *libraries(),
        settings_known(),
        _database(),
        _password(),
        _leases(),
        _ready(f"http://{reachable_host}:{port}/api"),
    ]


def _worker(root: str) -> list[Check]:
    named = os.environ.get("PREFECT_API_URL", "").rstrip("/")
    step = "set PREFECT_API_URL, such as http://127.0.0.1:4200/api"
    ready = _ready(named) if named else check("ready", "no server is named", False, step)
    return [*examine(root), ready, _specs(), *_reports_site(), *_private()]


def _site(root: str) -> list[Check]:
    return [settings_known(), *_reports(Path(root))]


_CHECKS: Final[Mapping[Role, Callable[[str], list[Check]]]] = {
    Role.SERVER: _roles_server,
    Role.WORKER: _worker,
    Role.SITE: _site,
}


def _database() -> Check:
    """Whether the server is configured for PostgreSQL: SQLite locks as soon as two runs write."""
    connection_url = os.environ.get("PREFECT_SERVER_DATABASE_CONNECTION_URL") or os.environ.get(
        "PREFECT_API_DATABASE_CONNECTION_URL"
    )
    driver = connection_url or os.environ.get("PREFECT_SERVER_DATABASE_DRIVER", "")
    step = "set PREFECT_SERVER_DATABASE_DRIVER=postgresql+asyncpg, and _HOST, _PORT, _USER, _NAME and _PASSWORD"
    is_postgres = driver.startswith("postgresql+asyncpg")
    return check("database", "PostgreSQL" if is_postgres else "SQLite", is_postgres, step)


def _password() -> Check:
    user, _, password = os.environ.get("PREFECT_SERVER_API_AUTH_STRING", "").partition(":")
    step = "set PREFECT_SERVER_API_AUTH_STRING to evenhand:PASSWORD, from a file of secrets"
    return check("password", "asked for" if user and password else "none is asked for", bool(user and password), step)


def _leases() -> Check:
    """Whether leases of runs at work outlive the server: without them a restart ends these runs."""
    lease_storage = os.environ.get("PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE", "")
    if lease_storage != _ON_DISK:
        step = f"set PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE={_ON_DISK}"
        return check("leases", "in the memory of the server", False, step)
    home = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect")
    writable = home.is_dir() and os.access(home, os.W_OK | os.X_OK)
    step = "set PREFECT_HOME to a directory of a volume that this user may write"
    return check("leases", f"in {home}{'' if writable else ', not writable'}", writable, step)


def _ready(api: str) -> Check:
    """Whether a server answers, and its database behind it."""
    fault = fault_at(api)
    if fault is None:
        return check("ready", f"{shown_address(api)}/ready is 200", True, "")
    return check("ready", fault.what, False, fault.step)


def _reports_site() -> Iterator[Check]:
    """Whether the address of reports can be used in a link."""
    address = os.environ.get(REPORTS_URL)
    if address:
        step = f"set {REPORTS_URL} to an address such as https://reports.example.org/evenhand"
        yield check(
            "reports", reports_site(address) or "no address of http or https", bool(reports_site(address)), step
        )


def _specs() -> Check:
    """Whether the specs that deployments name can be read and used."""
    folder = Path(os.environ.get("EVENHAND_SPECS", ""))
    if not os.environ.get("EVENHAND_SPECS") or not folder.is_dir():
        return check("specs", "no directory", False, "set EVENHAND_SPECS to the directory of your audit specs")
    spec_files = sorted(folder.glob("*.y*ml"))
    wrong = [fault for fault in map(_fault, spec_files) if fault]
    state = f"{len(spec_files)} in {folder}" if not wrong else "; ".join(wrong)
    return check("specs", state, bool(spec_files) and not wrong, "put a spec there, or mend it: evenhand plan SPEC")


def _fault(spec: Path) -> str:
    """Why a spec cannot be used, in a line; empty if it can."""
    try:
        read_spec(spec.read_text(encoding="utf-8"), spec.name)
    except (EvenhandError, OSError, UnicodeDecodeError) as error:
        lines = str(error).splitlines()
        return lines[0] if spec.name in lines[0] else f"{spec.name}: {lines[0]}"
    return ""


def _private() -> list[Check]:
    """Files that the environment names and that only we may read."""
    return [_closed(name, Path(os.environ[name])) for name in _PRIVATE if os.environ.get(name)]


def _closed(name: str, file: Path) -> Check:
    if not os.access(file, os.R_OK):
        return check(name, f"{file} cannot be read", False, "mount it, or give it to the user of this process")
    mode = stat.S_IMODE(file.stat().st_mode)
    return check(name, f"{file}, mode {mode:04o}", not mode & denied_bits(), f"chmod 600 {file}")


def _reports(root: Path) -> list[Check]:
    """Whether the site sees the reports, and nothing else of the lake."""
    folder = storage_at(str(root)).local / "reports"
    if not os.access(folder, os.R_OK | os.X_OK):
        step = "mount the folder `reports` of the lake at this place, readable for this user"
        return [check("reports", f"{folder} cannot be read", False, step)]
    count = sum(1 for report_folder in folder.iterdir() if report_folder.is_dir())
    writable, tables = os.access(folder, os.W_OK), (folder.parent / "runs").exists()
    return [
        check("reports", f"{count} in {folder}", True, ""),
        check("read only", "writable" if writable else "not writable", not writable, "mount it read-only"),
        check("tables", "seen" if tables else "not seen", not tables, "mount `reports` alone, and not the lake"),
    ]
