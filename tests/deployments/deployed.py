"""The deployment as processes: what compose.yaml starts in containers, started here by the very words of that file.

Only places are put in for those that exist inside containers: addresses, ports and directories (``Places``).
"""

import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml
from conftest import REPOSITORY

DEPLOYMENTS = REPOSITORY / "deployments"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOYMENTS / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
POSTGRES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), reverse=True)), Path()).parent
"""Where Debian's package puts PostgreSQL's programs; the current directory where it is not installed."""
HAVE_POSTGRES = (POSTGRES / "initdb").is_file()
ENTRYPOINT = DEPLOYMENTS / "entrypoint.sh"
_SECRETS = {"database_password": "a @secret:/of%the database", "server_auth": "evenhand:serversecret"}
"""What the files of compose.yaml's secrets hold: a password of an address has characters that an address has not."""


@dataclass(frozen=True)
class Places:
    """What stands for the addresses and directories of the containers."""

    home: Path
    database: int
    server: int
    health: int
    site: int

    @classmethod
    def free(cls, home: Path) -> "Places":
        """Free loopback ports, and directories below one of our own."""
        for name in ("lake", "specs", "incoming", "prefect"):
            (home / name).mkdir(exist_ok=True)
        with ExitStack() as stack:
            probes = [stack.enter_context(socket.socket()) for _ in range(4)]
            for probe in probes:
                probe.bind(("127.0.0.1", 0))
            return cls(home, *(probe.getsockname()[1] for probe in probes))

    def put(self, word: str, service: str) -> str:
        """A word of compose.yaml as it is said outside of containers."""
        eighty = self.site if service == "site" else self.health
        ports = {"5432": self.database, "4200": self.server, "8080": eighty}
        word = re.sub(r"\b(5432|4200|8080)\b", lambda found: str(ports[found[0]]), word)
        word = re.sub(r"(?<=//)server\b|^database$|^0\.0\.0\.0$", "127.0.0.1", word)
        return word.replace("/srv/evenhand", str(self.home)).replace("/opt/evenhand", str(REPOSITORY))


@dataclass
class Deployment:
    """A running deployment; every word of compose.yaml that was run is kept in ``ran``."""

    places: Places
    ran: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def environment(self, service: str) -> dict[str, str]:
        """What a command of the service sees: the container's settings, and its secrets by the entry point."""
        files = Path(self.container(service)["CREDENTIALS_DIRECTORY"]).iterdir()
        return {**self.container(service), **{file.name: file.read_text() for file in files}}

    def container(self, service: str) -> dict[str, str]:
        """The settings of a container: of the image, then of the service, and the folder of its secrets."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "EVENHAND_"))}
        image = dict(re.findall(r"^(?:ENV|    ) *([A-Z_]+)=(\S+)", (DEPLOYMENTS / "Dockerfile").read_text(), re.M))
        own = SERVICES[service].get("environment", {})
        said = {name: self.places.put(str(value), service) for name, value in {**image, **own}.items()}
        said.pop("NUMBA_CACHE_DIR", None)  # here the kernels are beside the code
        return {
            **kept,
            **said,
            "CREDENTIALS_DIRECTORY": str(self._secrets(service)),
            "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}",
            "PYTHONPATH": str(REPOSITORY),
            "PREFECT_WORKER_WEBSERVER_PORT": str(self.places.health),
            **({"PREFECT_SERVER_API_PORT": str(self.places.server)} if service == "server" else {}),
        }

    def _secrets(self, service: str) -> Path:
        """Files of the secrets of a service, under the names that it gives them."""
        folder = self.places.home / "secrets" / service
        folder.mkdir(parents=True, exist_ok=True)
        for each in SERVICES[service].get("secrets", ()):
            source, target = (each["source"], each["target"]) if isinstance(each, dict) else (each, each)
            if not (folder / target).exists():  # written once, and whole: an entry point may be reading it
                draft = folder.with_name(f"{service}-{target}")
                draft.write_text(_SECRETS[source])
                draft.replace(folder / target)
        return folder

    def words(self, service: str, said: Sequence[str]) -> list[str]:
        """Words of compose.yaml, noted as run, with our places put in."""
        self.ran.append((service, tuple(said)))
        return [self.places.put(word, service) for word in said]

    def start(self, service: str) -> "subprocess.Popen[bytes]":
        """Start a service in a session of its own."""
        with (self.places.home / f"{service}.log").open("ab") as log:
            return subprocess.Popen(
                [ENTRYPOINT, *self.words(service, SERVICES[service]["command"])],
                env=self.container(service),
                cwd=self.places.home,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def once(self, service: str) -> str:
        """Run a service that ends by itself."""
        words = self.words(service, SERVICES[service]["command"])
        return self.run(words, service)

    def run(self, words: Sequence[str], service: str = "worker") -> str:
        """Run a command in the environment of a service; gives what it printed."""
        done = subprocess.run(
            [ENTRYPOINT, *words],
            env=self.container(service),
            cwd=self.places.home,
            capture_output=True,
            text=True,
            timeout=180,
        )
        assert done.returncode == 0, f"{words} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout

    def healthy(self, service: str, process: "subprocess.Popen[bytes]", seconds: float = 120) -> None:
        """Wait until the health check of a service succeeds."""
        said = SERVICES[service].get("healthcheck", {}).get("test") or image_words("HEALTHCHECK")
        check = [word for word in self.words(service, said) if word != "CMD"]
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            log = self.places.home / f"{service}.log"
            assert process.poll() is None, f"{service} ended: {log.read_text()[-3000:]}"
            if subprocess.run(check, env=self.container(service), capture_output=True, timeout=30).returncode == 0:
                return
            time.sleep(0.3)
        raise AssertionError(f"{service} was not healthy within {seconds:.0f} s")

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Ask the server's API, as the worker would: with the password."""
        address = f"http://127.0.0.1:{self.places.server}/api{path}"
        data = None if body is None else json.dumps(body).encode()
        secret = base64.b64encode(_SECRETS["server_auth"].encode()).decode()
        headers = {"Content-Type": "application/json", "Authorization": f"Basic {secret}"}
        request = urllib.request.Request(address, data, headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


def image_words(instruction: str) -> list[str]:
    """The words of CMD or of the HEALTHCHECK's CMD in the Dockerfile."""
    text = (DEPLOYMENTS / "Dockerfile").read_text()
    found = re.search(rf"^{instruction}\b(?:[^\n]*\\\n\s+CMD)? (\[.*\])$", text, re.M)
    assert found is not None, instruction
    words: list[str] = json.loads(found[1])
    return words


@contextmanager
def database(deployment: Deployment) -> Iterator[None]:
    """PostgreSQL on a loopback port with a password; by another user where we are root, which it refuses to be."""
    home = deployment.places.home / "database"
    home.mkdir()
    user = "postgres" if os.geteuid() == 0 else None
    if user:
        shutil.chown(home, user)
    secret = home / "password"
    secret.write_text(_SECRETS["database_password"])
    if user:
        shutil.chown(secret, user)
    own = {"cwd": home, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}, **({"user": user} if user else {})}
    said = SERVICES["database"]["environment"]
    data = ["--pgdata", str(home / "data")]
    make = ["--username", said["POSTGRES_USER"], "--pwfile", str(secret), "--auth", "scram-sha-256", "--no-sync"]
    subprocess.run([POSTGRES / "initdb", *data, *make], check=True, capture_output=True, **own)
    listen = ["-c", "listen_addresses=127.0.0.1", "-p", str(deployment.places.database), "-k", str(home)]
    with (deployment.places.home / "database.log").open("wb") as log:
        process = subprocess.Popen([POSTGRES / "postgres", "-D", home / "data", *listen], stdout=log, stderr=log, **own)
    try:
        deployment.healthy("database", process)
        create = ["createdb", "--host", "127.0.0.1", "--port", str(deployment.places.database)]
        password = {"PGPASSWORD": _SECRETS["database_password"]}
        asked = {**own, "env": {**own["env"], **password}}
        subprocess.run(
            [POSTGRES / create[0], *create[1:], "--username", said["POSTGRES_USER"], said["POSTGRES_DB"]],
            check=True,
            **asked,
        )
        yield
    finally:
        process.send_signal(signal.SIGINT)  # a fast shutdown
        process.wait(timeout=30)


@contextmanager
def served(home: Path) -> Iterator[Deployment]:
    """Database and server, with the pool made and the deployments registered."""
    deployment = Deployment(Places.free(home))
    with database(deployment):
        server = deployment.start("server")
        try:
            deployment.healthy("server", server)
            deployment.once("pool")
            deployment.once("register")
            yield deployment
        finally:
            end(server)


@contextmanager
def working(deployment: Deployment, service: str = "worker") -> Iterator["subprocess.Popen[bytes]"]:
    """A service that is running and healthy."""
    process = deployment.start(service)
    try:
        deployment.healthy(service, process)
        yield process
    finally:
        end(process)


def family(process: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    """A process and everything that it started."""
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(process.pid)
        return [parent, *parent.children(recursive=True)]
    return []


def kill(process: "subprocess.Popen[bytes]") -> list[int]:
    """Kill a process and everything that it started with SIGKILL; gives their ids."""
    members = family(process)
    for member in members:
        with suppress(psutil.NoSuchProcess):
            member.kill()
    psutil.wait_procs(members, timeout=30)
    process.wait(timeout=30)
    return [member.pid for member in members]


def end(process: "subprocess.Popen[bytes]") -> None:
    """Ask a process to end, and kill what is left of it."""
    members = family(process)
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=20)
    for member in members:
        with suppress(psutil.NoSuchProcess):
            member.kill()
    process.wait(timeout=30)
