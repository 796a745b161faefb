"""Checks of one role of a deployment: server, worker or site, from inside its container or unit."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from flows.operations.doctor.environment import check, examine, libraries, settings_known
from flows.outcome.conclusion import REPORTS_URL, reports_site
from flows.supervision.file_modes import denied_bits
from flows.supervision.processes.server_check import fault_at, shown_address
from schemas.errors import EvenhandError, SpecError, nearest
from tasks.lake.storage import storage_at
from tasks.pipeline.specs import read_spec

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


def _server(_: str) -> list[Check]:
    host = os.environ.get("PREFECT_SERVER_API_HOST", "127.0.0.1")
    port = os.environ.get("PREFECT_SERVER_API_PORT", "4200")
    here = "127.0.0.1" if host == "0.0.0.0" else host  # noqa: S104 asked for, and not listened at
    return [*libraries(), settings_known(), _database(), _password(), _leases(), _ready(f"http://{here}:{port}/api")]


def _worker(root: str) -> list[Check]:
    named = os.environ.get("PREFECT_API_URL", "").rstrip("/")
    step = "set PREFECT_API_URL, such as http://127.0.0.1:4200/api"
    ready = _ready(named) if named else check("ready", "no server is named", False, step)
    return [*examine(root), ready, _specs(), *_reports_site(), *_private()]


def _site(root: str) -> list[Check]:
    return [settings_known(), *_reports(Path(root))]


_CHECKS: Final[Mapping[Role, Callable[[str], list[Check]]]] = {
    Role.SERVER: _server,
    Role.WORKER: _worker,
    Role.SITE: _site,
}


def _database() -> Check:
    """Whether the server is told of PostgreSQL: SQLite locks as soon as two runs write."""
    said = os.environ.get("PREFECT_SERVER_DATABASE_CONNECTION_URL") or os.environ.get(
        "PREFECT_API_DATABASE_CONNECTION_URL"
    )
    driver = said or os.environ.get("PREFECT_SERVER_DATABASE_DRIVER", "")
    step = "set PREFECT_SERVER_DATABASE_DRIVER=postgresql+asyncpg, and _HOST, _PORT, _USER, _NAME and _PASSWORD"
    is_postgres = driver.startswith("postgresql+asyncpg")
    return check("database", "PostgreSQL" if is_postgres else "SQLite", is_postgres, step)


def _password() -> Check:
    user, _, password = os.environ.get("PREFECT_SERVER_API_AUTH_STRING", "").partition(":")
    step = "set PREFECT_SERVER_API_AUTH_STRING to evenhand:PASSWORD, from a file of secrets"
    return check("password", "asked for" if user and password else "none is asked for", bool(user and password), step)


def _leases() -> Check:
    """Whether leases of runs at work outlive the server: without them a restart ends these runs."""
    kept = os.environ.get("PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE", "")
    if kept != _ON_DISK:
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
    """Whether the address that reports are told with may stand in a link."""
    said = os.environ.get(REPORTS_URL)
    if said:
        step = f"set {REPORTS_URL} to an address such as https://reports.example.org/evenhand"
        yield check("reports", reports_site(said) or "no address of http or https", bool(reports_site(said)), step)


def _specs() -> Check:
    """Whether the specs that deployments name can be read and used."""
    folder = Path(os.environ.get("EVENHAND_SPECS", ""))
    if not os.environ.get("EVENHAND_SPECS") or not folder.is_dir():
        return check("specs", "no directory", False, "set EVENHAND_SPECS to the directory of your audit specs")
    found = sorted(folder.glob("*.y*ml"))
    wrong = [fault for fault in map(_fault, found) if fault]
    said = f"{len(found)} in {folder}" if not wrong else "; ".join(wrong)
    return check("specs", said, bool(found) and not wrong, "put a spec there, or mend it: evenhand plan SPEC")


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
    count = sum(1 for each in folder.iterdir() if each.is_dir())
    writable, tables = os.access(folder, os.W_OK), (folder.parent / "runs").exists()
    return [
        check("reports", f"{count} in {folder}", True, ""),
        check("read only", "writable" if writable else "not writable", not writable, "mount it read-only"),
        check("tables", "seen" if tables else "not seen", not tables, "mount `reports` alone, and not the lake"),
    ]
