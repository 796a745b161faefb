"""A real server in a process of its own: the address, what it loads, many requests, SIGTERM, two on one lake."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from conftest import REPOSITORY, environment, evenhand
from lake_of_runs import NEW, lake_of_runs

HEAVY = ("torch", "prefect", "great_expectations")
STARTED_SECONDS = 60
LOADED = """
import sys
from flows.serving.pages import years
from flows.serving.server import application
from flows.serving.server import _prepare
_prepare()
import flows.operations.status, flows.partitions.trends
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def serving(lake: Path, *options: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A server; gives its process, and the address that it printed."""
    words = ["serve", "--lake", str(lake), "--port", str(free_port()), *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "flows.cli", *words],
        env=environment(None), cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lake_of_runs(tmp_path_factory.mktemp("served") / "lake").root


def test_it_serves_many_at_once_and_ends_on_sigterm_within_two_seconds(lake: Path) -> None:
    with serving(lake) as (process, address), httpx.Client(follow_redirects=True, timeout=STARTED_SECONDS) as client:
        assert client.get(address).status_code == 200
        place = address.partition("?")[0].rstrip("/")
        with ThreadPoolExecutor(24) as pool:
            found = list(pool.map(lambda _: client.get(f"{place}/runs").status_code, range(72)))
        assert found == [200] * 72
        assert httpx.get(f"{place}/healthz", timeout=STARTED_SECONDS).text == "ok\n"
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=10)
        assert time.monotonic() - began < 2
        assert NEW not in said
        assert process.returncode in (0, 128 + signal.SIGTERM)


@pytest.mark.slow
def test_two_servers_on_one_lake_have_sessions_of_their_own(lake: Path) -> None:
    with serving(lake) as (_, one), serving(lake) as (_, other), httpx.Client(timeout=STARTED_SECONDS) as client:
        for address in (one, other):
            assert client.get(address, follow_redirects=True).status_code == 200
        for address in (one, other):
            assert client.get(address.partition("?")[0]).status_code == 200


def test_nothing_heavy_is_loaded_by_any_page() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env=environment(None),
        check=True,
    )
    assert set(done.stdout.split()).isdisjoint(HEAVY)


@pytest.mark.slow
def test_a_token_file_is_not_printed_and_lets_in(lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("s" * 40)
    file.chmod(0o600)
    with serving(lake, "--token-file", str(file)) as (_, address):
        assert "token" not in address
        found = httpx.get(f"{address}?token={'s' * 40}", timeout=STARTED_SECONDS, follow_redirects=False)
        assert found.status_code == 303


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--host", "0.0.0.0"], 2, "--behind-tls"),
        (["--sign"], 2, "--as NAME"),
        (["--token-file", os.devnull], 2, "0600"),
    ],
)
def test_misuses_end_with_their_exit_code(lake: Path, options: list[str], code: int, said: str) -> None:
    done = evenhand("serve", "--lake", str(lake), *options)
    assert done.returncode == code
    assert said in done.stderr


def test_a_port_in_use_is_exit_5(lake: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = evenhand("serve", "--lake", str(lake), "--port", str(taken.getsockname()[1]))
    assert done.returncode == 5
    assert "is free" in done.stderr
