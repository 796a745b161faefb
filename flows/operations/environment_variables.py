"""Environment variables: name, default, roles that read it, secret or not. Writes docs/settings.md (``make docs``).

Variables of libraries are here if the code sets them, reads them, or a deployment file does.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from schemas.errors import nearest

COMMAND, SERVER, WORKER, SITE, CHORES, IMAGE = "command", "server", "worker", "site", "chores", "image"
"""Who reads a variable: any command, a role of a deployment, its timers (`overdue`, `gc`, `alerts`), or its set-up."""
_RUNS: Final = (COMMAND, WORKER)
_CLIENTS: Final = (COMMAND, WORKER, CHORES)


@dataclass(frozen=True)
class Setting:
    """One environment variable."""

    name: str
    default: str
    """As it is written; in words where it is computed."""
    roles: tuple[str, ...]
    meaning: str
    secret: bool = False
    """Its value has to be a file of secrets, which entrypoint.sh reads."""

    def row(self) -> str:
        """Its row of the page."""
        words = (f"`{self.name}`", self.default or "none", ", ".join(self.roles), "yes" if self.secret else "no")
        return f"| {' | '.join((*words, self.meaning))} |\n"


LAKE_AND_RUNS: Final = (
    Setting("EVENHAND_LAKE", "`data/lake`", _CLIENTS, "directory of the lake, or its URI"),
    Setting("EVENHAND_SPECS", "none", (WORKER, IMAGE), "directory of the specs that deployments name"),
    Setting("EVENHAND_JOBS", "cores, at most 4", _RUNS, "stages of an audit at a time, each in a process of its own"),
    Setting("EVENHAND_MEMORY", "four fifths of what is free", _RUNS, "memory that an audit may take, such as `6GB`"),
    Setting("EVENHAND_RUNNER", "`processes`", _RUNS, "where years of a back-fill run: `processes`, `threads`, `dask`"),
    Setting("EVENHAND_DASK_ADDRESS", "none", _RUNS, "of the Dask scheduler, such as `tcp://127.0.0.1:8786`"),
    Setting(
        "EVENHAND_SUB_FLOW_ROWS",
        "`10000`",
        _RUNS,
        "rows from which on the stages of a partition are task runs; ten times as many spread them",
    ),
    Setting("EVENHAND_GROUP_READ", "`0`", _CLIENTS, "`1`: files of the lake are readable by their group (0640, 0750)"),
    Setting("EVENHAND_BREACH_FAILS", "`0`", _RUNS, "`1`: a breach ends a flow run as FAILED, not as COMPLETED"),
    Setting("EVENHAND_REPORTS_URL", "none", _RUNS, "where people open reports; without it the path is told"),
)
OPERATION: Final = (
    Setting("EVENHAND_ALERTS", "none", _CLIENTS, "file of alerts, closed to others; without it nobody is told"),
    Setting(
        "EVENHAND_HEARTBEAT_URL", "none", (CHORES,), "asked for by `evenhand overdue` when all is well", secret=True
    ),
    Setting("EVENHAND_METRICS", "none", (WORKER,), "address at which metrics are served, such as `127.0.0.1:9464`"),
    Setting("EVENHAND_GRACE", "`90`", _RUNS, "seconds that the stage at work has to end after SIGTERM"),
    Setting("EVENHAND_SERVER_PATIENCE", "`900`", _RUNS, "seconds that a run waits for a server that is away"),
)
SIGNING: Final = (
    Setting("EVENHAND_SIGNING_KEY", "none", _CLIENTS, "file of the private key that signs runs and entries of the log"),
    Setting("EVENHAND_SIGNING_COMMAND", "none", _CLIENTS, "command that signs in place of a key's file"),
    Setting("EVENHAND_SIGNING_PUBLIC", "none", _CLIENTS, "file of the public key of that command"),
    Setting(
        "EVENHAND_TRUSTED_KEYS", "none", _CLIENTS, "files or directories of public keys; entries that count need one"
    ),
)
PREFECT_CLIENT: Final = (
    Setting("PREFECT_API_URL", "none: an audit starts its own server", _CLIENTS, "the server, with `/api` at its end"),
    Setting("PREFECT_API_AUTH_STRING", "none", _CLIENTS, "`evenhand:PASSWORD` of the server", secret=True),
    Setting("PREFECT_API_KEY", "none", _CLIENTS, "key of Prefect Cloud in its place", secret=True),
    Setting("PREFECT_HOME", "`LAKE/prefect`", (*_CLIENTS, SERVER), "Prefect's files; of a server on a volume: leases"),
    Setting("PREFECT_LOCAL_STORAGE_PATH", "`PREFECT_HOME/storage`", _RUNS, "handles of tables between tasks"),
    Setting("PREFECT_RESULTS_PERSIST_BY_DEFAULT", "`true`", _RUNS, "that these are kept, for runs that are resumed"),
    Setting("PREFECT_LOGGING_LEVEL", "`CRITICAL`; a worker's `INFO`", _RUNS, "what Prefect logs"),
    Setting("PREFECT_LOGGING_SERVER_LEVEL", "`CRITICAL`; a worker's `INFO`", _RUNS, "what its server logs"),
    Setting("PREFECT_LOGGING_ROOT_LEVEL", "`ERROR`", _RUNS, "what other libraries log"),
    Setting("PREFECT_WORKER_WEBSERVER_HOST", "`127.0.0.1`", (WORKER,), "where the worker tells of its health"),
    Setting("PREFECT_WORKER_WEBSERVER_PORT", "`8080`", (WORKER,), "its port; another for each worker of a machine"),
    Setting("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "`120`", (COMMAND,), "wait for the embedded server"),
    Setting("PREFECT_SERVER_ANALYTICS_ENABLED", "`false`", (*_RUNS, SERVER), "Prefect's telemetry"),
    Setting("DO_NOT_TRACK", "`1`", (*_RUNS, SERVER), "the same, of other libraries"),
)
PREFECT_SERVER: Final = (
    Setting("PREFECT_SERVER_API_AUTH_STRING", "none", (SERVER,), "`evenhand:PASSWORD` that clients give", secret=True),
    Setting("PREFECT_SERVER_API_HOST", "`127.0.0.1`", (SERVER,), "address that `doctor --role server` asks"),
    Setting("PREFECT_SERVER_API_PORT", "`4200`", (SERVER,), "its port"),
    Setting("PREFECT_SERVER_DATABASE_DRIVER", "SQLite", (SERVER,), "`postgresql+asyncpg`"),
    Setting("PREFECT_SERVER_DATABASE_HOST", "none", (SERVER,), "of PostgreSQL, 14 to 17"),
    Setting("PREFECT_SERVER_DATABASE_PORT", "none", (SERVER,), "`5432`"),
    Setting("PREFECT_SERVER_DATABASE_USER", "none", (SERVER,), "`evenhand`"),
    Setting("PREFECT_SERVER_DATABASE_NAME", "none", (SERVER,), "`prefect`"),
    Setting("PREFECT_SERVER_DATABASE_PASSWORD", "none", (SERVER,), "of that user", secret=True),
    Setting("PREFECT_SERVER_DATABASE_CONNECTION_URL", "none", (SERVER,), "in place of these six", secret=True),
    Setting("PREFECT_SERVER_DATABASE_SQLALCHEMY_POOL_SIZE", "`5`", (SERVER,), "connections kept; 10 more at need"),
    Setting(
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE",
        "memory",
        (SERVER,),
        "`prefect.server.concurrency.lease_storage.filesystem`, or a restart of the server ends runs at work",
    ),
    Setting(
        "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED", "`events`", (SERVER,), "`events,orphans`: logs of runs gone, too"
    ),
    Setting("PREFECT_SERVER_UI_API_URL", "none", (SERVER,), "where a browser reaches the API"),
)
TRACES: Final = (
    Setting("OTEL_TRACES_EXPORTER", "`otlp` where an endpoint is named", _RUNS, "exporter of spans; `none` sends none"),
    Setting("OTEL_EXPORTER_OTLP_ENDPOINT", "none: nothing is sent", _RUNS, "of the receiver, for Prefect's own, too"),
    Setting("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "none", _RUNS, "of the receiver of spans alone"),
    Setting("OTEL_EXPORTER_OTLP_PROTOCOL", "that of the exporter installed", _RUNS, "`http/protobuf` or `grpc`"),
    Setting("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "none", _RUNS, "the same, of spans alone"),
    Setting("OTEL_EXPORTER_OTLP_HEADERS", "none", _RUNS, "`key=value` pairs by which a receiver knows us", secret=True),
    Setting("OTEL_SDK_DISABLED", "`false`", _RUNS, "`true`: no span is made"),
)
LINEAGE: Final = (
    Setting("OPENLINEAGE_URL", "none: nothing is sent", _RUNS, "of the receiver of events, with or without its path"),
    Setting("OPENLINEAGE_ENDPOINT", "`api/v1/lineage`", _RUNS, "path of a receiver whose URL has none"),
    Setting(
        "OPENLINEAGE_API_KEY",
        "none",
        _RUNS,
        "key that the receiver of these variables is given: by TLS, or on this machine",
        secret=True,
    ),
    Setting("OPENLINEAGE_CONFIG", "none", _RUNS, "file of OpenLineage's client: transport `http`, `file` or `console`"),
    Setting("OPENLINEAGE_DISABLED", "`false`", _RUNS, "`true`: no event is made"),
)
LIBRARIES: Final = (
    Setting("NUMBA_CACHE_DIR", "beside the code", (*_RUNS, IMAGE), "compiled kernels; has to be writable"),
    Setting("NUMBA_NUM_THREADS", "cores", _RUNS, "threads of compiled kernels, and the most that a stage takes"),
    Setting("OMP_NUM_THREADS", "cores, shared by stages", _RUNS, "threads of numerical libraries"),
    Setting("OPENBLAS_NUM_THREADS", "`1`", _RUNS, "threads of one of them"),
    Setting("AWS_ACCESS_KEY_ID", "none", _CLIENTS, "of a lake in S3", secret=True),
    Setting("AWS_SECRET_ACCESS_KEY", "none", _CLIENTS, "of a lake in S3", secret=True),
    Setting("AWS_REGION", "none", _CLIENTS, "of a lake in S3"),
    Setting("AWS_ENDPOINT_URL", "none", _CLIENTS, "of a store that speaks S3"),
    Setting("XDG_STATE_HOME", "`~/.local/state`", _CLIENTS, "locks and copies of a lake at a URI lie below it"),
)
SET_UP: Final = (
    Setting(
        "EVENHAND_KERNELS",
        "`/opt/kernels`",
        (IMAGE,),
        "compiled kernels that entrypoint.sh copies to `NUMBA_CACHE_DIR`",
    ),
    Setting("EVENHAND_SECRETS", "none", (IMAGE,), "directory of the secrets' files (`compose.yaml`)"),
    Setting("EVENHAND_INCOMING", "none", (IMAGE,), "directory of the files to audit (`compose.yaml`)"),
    Setting("EVENHAND_WORKER_MEMORY", "`8g`", (IMAGE,), "what the worker's container may take (`compose.yaml`)"),
    Setting(
        "PREFECT_INTEGRATIONS_KUBERNETES_WORKER_API_AUTH_STRING_SECRET_NAME",
        "none",
        (IMAGE,),
        "of a dispatcher of jobs: the secret that they name in place of the server's password",
    ),
    Setting("PREFECT_INTEGRATIONS_KUBERNETES_WORKER_API_AUTH_STRING_SECRET_KEY", "none", (IMAGE,), "its key"),
    Setting("PREFECT_INTEGRATIONS_KUBERNETES_OBSERVER_NAMESPACES", "all", (IMAGE,), "of a dispatcher: where jobs are"),
    Setting(
        "PIP_EXTRA_INDEX_URL", "none", (IMAGE,), "index of PyTorch's builds for processors, when the image is built"
    ),
    Setting("PIP_FIND_LINKS", "none", (IMAGE,), "folder of wheels in its place"),
)
GROUPS: Final[Mapping[str, tuple[Setting, ...]]] = {
    "Lake and runs": LAKE_AND_RUNS,
    "Operation": OPERATION,
    "Keys": SIGNING,
    "Prefect, for whoever asks a server": PREFECT_CLIENT,
    "Prefect's server": PREFECT_SERVER,
    "Traces": TRACES,
    "Lineage": LINEAGE,
    "Libraries": LIBRARIES,
    "Image and containers": SET_UP,
}
SETTINGS: Final = {setting.name: setting for group in GROUPS.values() for setting in group}
_HEAD: Final = """\
# Settings

Written by `make docs`; do not edit. Every environment variable that Evenhand, its image or its deployment files read,
with the default where nothing is set. Options of a command win over variables.

Roles: `command` is any command of a shell. `server`, `worker` and `site` are processes of a deployment,
`chores` its timers (`evenhand overdue`, `evenhand alerts send`, `evenhand gc`). `image` is what builds or starts
containers.
`evenhand doctor --role server|worker|site` checks the settings of a role, and names a variable that is misspelt.

A secret is a file, not a variable of a container: `deployments/entrypoint.sh` reads the files of `/run/secrets` and of
`CREDENTIALS_DIRECTORY` and sets the variables for the command that it starts.
"""
_TABLE: Final = "| variable | default | read by | secret | what it is |\n| --- | --- | --- | --- | --- |\n"


def page() -> str:
    """The page of all settings, as Markdown."""
    sections = (
        f"\n## {name}\n\n{_TABLE}{''.join(setting.row() for setting in group)}" for name, group in GROUPS.items()
    )
    return _HEAD + "".join(sections)


def misspelt(environment: Mapping[str, str]) -> list[str]:
    """Variables that begin as ours do and are none, with the nearest names."""
    ours = [name for name in SETTINGS if name.startswith("EVENHAND_")]
    unknown = [name for name in sorted(environment) if name.startswith("EVENHAND_") and name not in SETTINGS]
    return [f"{name} is no setting; {nearest(name, ours)}" for name in unknown]


if __name__ == "__main__":
    sys.stdout.write(page())
