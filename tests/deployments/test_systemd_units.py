"""The units of systemd: verified and scored by its own tool, offline, with the commands of this environment."""

import re
import shutil
import subprocess
import sys
from configparser import RawConfigParser
from pathlib import Path

import pytest
from conftest import REPOSITORY
from deployed import DEPLOYMENTS, SERVICES

UNITS = DEPLOYMENTS / "systemd"
SERVICE_FILES = sorted(UNITS.glob("*.service"))
ANALYZE = shutil.which("systemd-analyze")
MOST_EXPOSURE = 30
"""Of 100, as systemd scores it: a bare unit has 88."""
with_systemd = pytest.mark.skipif(
    ANALYZE is None, reason="systemd-analyze is not installed here: apt-get install systemd, as .ci/run does"
)


def analyzed(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(ANALYZE), *words], capture_output=True, text=True, timeout=60)


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """The units with the commands of this environment, as systemd refuses a command that is not there."""
    for file in UNITS.rglob("*"):
        if file.is_file():
            text = file.read_text().replace("/opt/evenhand/.venv/bin", str(Path(sys.executable).parent))
            copy = tmp_path / file.relative_to(UNITS)
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(text.replace("/opt/evenhand", str(REPOSITORY)))
    return tmp_path


def loaded(folder: Path) -> list[str]:
    """Words that name every unit; a template by an instance of it."""
    return [str(file).replace("@.", "@evenhand.") for file in sorted(folder.glob("*.[st]*")) if file.is_file()]


def options(file: Path) -> list[tuple[str, str]]:
    """Key and value of every line; a key may be there more than once."""
    return re.findall(r"^([A-Za-z]+)=(.*)$", file.read_text(), re.M)


@with_systemd
class TestAnalysis:
    def test_systemd_has_nothing_to_say_of_a_unit(self, copies: Path) -> None:
        done = analyzed("verify", *loaded(copies))
        assert (done.returncode, done.stdout + done.stderr) == (0, "")

    @pytest.mark.parametrize(
        ("file", "right", "wrong", "said"),
        [
            ("evenhand-gc.timer", "OnCalendar=Sun ", "OnCalendar=Someday ", "Failed to parse calendar"),
            ("evenhand-server.service", "MemoryMax=", "MemoryMaximum=", "Unknown key"),
            ("evenhand-.service.d/hardening.conf", "ProtectSystem=", "ProtectSystems=", "Unknown key"),
            ("evenhand-overdue.service", "/entrypoint.sh", "/begin.sh", "begin.sh is not executable"),
        ],
    )
    def test_a_fault_would_be_said(self, copies: Path, file: str, right: str, wrong: str, said: str) -> None:
        text = (copies / file).read_text()
        assert right in text
        (copies / file).write_text(text.replace(right, wrong))
        done = analyzed("verify", *loaded(copies))
        assert said in done.stderr

    @pytest.mark.parametrize("file", [f.name for f in SERVICE_FILES])
    def test_a_service_may_see_and_do_little(self, copies: Path, file: str) -> None:
        words = ("security", "--offline=yes", f"--threshold={MOST_EXPOSURE}", str(copies / file))
        done = analyzed(*words)
        assert done.returncode == 0, done.stdout
        (copies / "evenhand-.service.d" / "hardening.conf").unlink()
        assert analyzed(*words).returncode == 1, "what is shared is what makes the score"


def test_services_are_stopped_in_order_and_bounded() -> None:
    shared = dict(options(UNITS / "evenhand-.service.d" / "hardening.conf"))
    assert (shared["KillMode"], shared["TimeoutStopSec"], shared["ProtectSystem"]) == ("mixed", "120", "strict")
    for file in SERVICE_FILES:
        own = dict(options(file))
        assert {"MemoryMax", "TasksMax", "ExecStart"} <= set(own), file.name
        assert own["ExecStart"].startswith("/opt/evenhand/deployments/entrypoint.sh /opt/evenhand/.venv/bin/"), (
            file.name
        )
        assert file.name == "evenhand-server.service" or own["ReadWritePaths"] == "/srv/evenhand/lake"
    worker = dict(options(UNITS / "evenhand-worker@.service"))
    assert worker["OOMPolicy"] == "continue", "else systemd stops the worker with the stage that was killed"


def test_secrets_are_credentials_and_no_settings() -> None:
    for file in SERVICE_FILES:
        said = " ".join(value for key, value in options(file) if key == "Environment")
        assert not re.search(r"(PASSWORD|AUTH_STRING|SECRET|KEY|CONNECTION_URL)=", said), file.name
        for value in (value for key, value in options(file) if key == "LoadCredential"):
            assert re.fullmatch(r"[A-Z_]+:/etc/evenhand/secrets/\w+", value), value


def test_the_server_is_set_up_as_in_its_container() -> None:
    said = " ".join(value for key, value in options(UNITS / "evenhand-server.service") if key == "Environment")
    own = dict(pair.split("=", 1) for pair in said.split())
    here = {"PREFECT_SERVER_DATABASE_HOST": "127.0.0.1"}
    for name, value in {**SERVICES["server"]["environment"], **here}.items():
        assert own[name] == value, name
    start = dict(options(UNITS / "evenhand-server.service"))["ExecStart"].split()
    words = [word.replace("0.0.0.0", "127.0.0.1") for word in SERVICES["server"]["command"]]
    assert [Path(start[1]).name, *start[2:]] == words


def test_every_timer_has_its_service_and_comes_back_after_an_outage() -> None:
    timers = sorted(UNITS.glob("*.timer"))
    assert [timer.stem for timer in timers] == ["evenhand-alerts", "evenhand-gc", "evenhand-overdue"]
    for timer in timers:
        said = RawConfigParser()
        said.read(timer)
        assert timer.with_suffix(".service").is_file()
        assert said["Timer"]["persistent"] == "true"
        assert said["Install"]["wantedby"] == "timers.target"
