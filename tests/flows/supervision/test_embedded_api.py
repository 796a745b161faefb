"""Without a server: the embedded API of a lake ends with its run, however that ends, and the next run goes on."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest
from conftest import REPOSITORY, environment, evenhand, evenhand_process
from few_loans import few_loans
from filelock import FileLock
from loans_by_year import WITHIN, write_years
from stopping import LIMIT, MESSAGE, heed_signals, session

from flows.supervision.prepare import TEMPLATE, is_migrated, seed_database
from schemas.terms import ExitCode


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """An audit of one year into ``lake``."""
    spec = write_years(tmp_path)
    file = tmp_path / f"loans_{WITHIN}.csv"
    return ["audit", str(spec), "--set", f"source.path={file}", "--lake", str(tmp_path / "lake")]


SECRET = "drawn-by-the-test-and-longer-than-forty-characters"
WITH_SECRET = f"""\
import secrets
secrets.token_urlsafe = lambda _: {SECRET!r}
from flows.cli.__main__ import run
run()
"""


@contextmanager
def begun(
    words: list[str], lake: Path, stage: str, program: Sequence[str] = ("-m", "flows.cli")
) -> Iterator["subprocess.Popen[str]"]:
    """A command in a session of its own, as a terminal gives it, once it has published a stage."""
    process = subprocess.Popen(
        [sys.executable, *program, *words],
        env=environment(None),
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=heed_signals,
    )
    until = time.monotonic() + 600
    try:
        while not list(lake.glob(f"stages/{stage}/*/partition.json")):
            assert process.poll() is None, "the audit ended before it could be disturbed"
            assert time.monotonic() < until
            time.sleep(0.01)
        yield process
    finally:
        for each in session(process.pid):
            each.kill()
        assert process.stdout is not None
        process.stdout.close()
        process.wait()


@pytest.mark.long  # its usual form is test_stopped_while_starting
def test_ctrl_c_ends_an_audit_at_once_and_not_as_a_breach(words: list[str], tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with begun(words, lake, "ingest") as process:
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the embedded server, too
        assert process.wait(LIMIT) == 130
        assert process.stdout is not None
        assert process.stdout.read().count(MESSAGE) == 1
        assert psutil.wait_procs(session(process.pid), timeout=10)[1] == []


@pytest.mark.long
def test_the_server_of_a_killed_audit_ends_by_itself_and_the_next_one_goes_on(words: list[str], tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with begun(words, lake, "ingest") as process:
        known = json.loads((lake / "locks" / "embedded-api.json").read_text())
        (left,) = [each for each in session(process.pid) if each.pid == known["pid"]]
        assert left.create_time() == known["began"]
        assert {c.laddr.ip for c in left.net_connections() if c.status == psutil.CONN_LISTEN} == {"127.0.0.1"}
        process.kill()
        process.wait()
        assert psutil.wait_procs(session(process.pid), timeout=10)[1] == [], "nobody is left to end it"
        again = evenhand_process(*words)
        assert again.returncode == ExitCode.WITHIN, again.stderr
    assert not (lake / "locks" / "embedded-api.json").exists()


@pytest.mark.long
def test_another_account_gets_nothing_from_the_server_of_an_audit(words: list[str], tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with begun(words, lake, "ingest", ("-c", WITH_SECRET)) as process:
        server = psutil.Process(json.loads((lake / "locks" / "embedded-api.json").read_text())["pid"])
        (port,) = {c.laddr.port for c in server.net_connections() if c.status == psutil.CONN_LISTEN}
        api = f"http://127.0.0.1:{port}/api"
        assert httpx.post(f"{api}/flow_runs/filter", json={}).status_code == 401
        assert httpx.post(f"{api}/deployments/", json={}, auth=("evenhand", "guessed")).status_code == 401
        assert "PREFECT_SERVER_API_AUTH_STRING" not in server.environ(), "the command has forked it"
        secret = f"evenhand:{SECRET}"
        assert httpx.post(f"{api}/flow_runs/filter", json={}, auth=("evenhand", SECRET)).status_code == 200
        said = [" ".join(each.cmdline()) for each in session(process.pid)]
        assert said
        assert not any(secret in words for words in said)
        assert not [path for path in lake.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
        assert process.wait(LIMIT) == ExitCode.WITHIN


def test_a_list_of_what_would_go_does_not_wait_for_a_run(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for part in ("stages", "runs", "locks", "prefect"):
        (lake / part).mkdir(parents=True)
    with FileLock(lake / "locks" / "embedded-api.lock"):
        listed = evenhand("gc", "--keep", "1", "--lake", str(lake))
        assert listed.returncode == 0, listed.stderr
        assert "were not looked at; --yes sees to them" in listed.stdout


TRAPS = ("prefect", "uvicorn", "numpy", "pandas", "tasks", "flows", "sqlite3", "selectors", "asyncio")
DATABASE = '[{table}]\nconnection_url = "sqlite+aiosqlite:///{place}/theirs.db"\n'
PROFILE = (
    'active = "mine"\n[profiles.mine]\nPREFECT_API_DATABASE_CONNECTION_URL = "sqlite+aiosqlite:///{place}/mine.db"\n'
)


@pytest.mark.skipif(not TEMPLATE.is_file(), reason="no database was prepared")
def test_a_database_of_another_version_is_migrated(tmp_path: Path) -> None:
    assert not is_migrated(tmp_path)
    seed_database(tmp_path)
    assert is_migrated(tmp_path)
    with sqlite3.connect(tmp_path / "prefect.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'before'")
    assert not is_migrated(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["prefect.db"]


@pytest.mark.slow
def test_no_file_of_the_working_directory_is_a_module_or_a_setting_of_the_server(tmp_path: Path) -> None:
    """The embedded server and the fork server of an audit in a folder full of such names; the user's profile holds."""
    spec = few_loans(tmp_path)
    for name in TRAPS:
        text = f"open({str(tmp_path / 'imported')!r}, 'a').write('{name} ')\nraise SystemExit('{name}')\n"
        (tmp_path / f"{name}.py").write_text(text)
    for file, table in (("prefect.toml", "server.database"), ("pyproject.toml", "tool.prefect.server.database")):
        (tmp_path / file).write_text(DATABASE.format(table=table, place=tmp_path))
    seed_database(tmp_path / "home")
    (tmp_path / "home" / "prefect.db").rename(tmp_path / "mine.db")
    (tmp_path / "home" / "profiles.toml").write_text(PROFILE.format(place=tmp_path))
    words = [str(Path(sys.executable).with_name("evenhand")), "audit", spec.name, "--lake", "lake", "--jobs", "2"]
    words += ["--until", "ingest"]
    variables = environment(None) | {"PREFECT_HOME": "home"}
    audited = subprocess.run(words, env=variables, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert not (tmp_path / "imported").exists(), (tmp_path / "imported").read_text()
    assert audited.returncode == 0, audited.stderr
    assert not (tmp_path / "theirs.db").exists()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["home", "lake"]
    assert not (tmp_path / "home" / "home").exists()
    with sqlite3.connect(tmp_path / "mine.db") as connection:
        assert connection.execute("SELECT count(*) FROM flow_run").fetchone()[0] > 0
