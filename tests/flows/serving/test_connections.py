"""A real server under connections that stall, idle or ask for other protocols; and its end while a page is computed."""

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import psutil
import pytest
from conftest import REPOSITORY, environment
from lake_of_runs import NEW, lake_of_runs
from test_server import STARTED_SECONDS, free_port, serving

from flows.serving.guard import MOST_CONNECTIONS

STALLED = {"Content-Type": "application/x-www-form-urlencoded", "Content-Length": "100"}
"""Of a form of which nothing follows."""
PATIENCE_S = 5.0
"""Below the time after which a stalled form is given up."""
AT_WORK = """
import sys, threading
from flows.serving.site import Site
def computed(site, run):
    print("at work", file=sys.stderr, flush=True)
    while True:
        pass
Site.summary = computed
from flows.cli.__main__ import main
sys.argv = ["evenhand", *sys.argv[1:]]
main()
"""
"""A server of which each page of a run computes without end."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lake_of_runs(tmp_path_factory.mktemp("connected") / "lake").root


@pytest.fixture(scope="module")
def client(lake: Path) -> Iterator[httpx.Client]:
    """Somebody who has opened the address of a server."""
    with (
        serving(lake, "--as", "Ann Lee", "--sign") as (_, address),
        httpx.Client(base_url=address.partition("?")[0], timeout=STARTED_SECONDS, follow_redirects=True) as opened,
    ):
        assert opened.get(address).status_code == 200
        yield opened


def connected(client: httpx.Client) -> socket.socket:
    made = socket.create_connection((client.base_url.host, client.base_url.port))
    made.settimeout(PATIENCE_S)
    return made


def head(client: httpx.Client, method: str, path: str, **more: str) -> bytes:
    """The head of a request, as somebody sends it by hand."""
    place = f"{client.base_url.host}:{client.base_url.port}"
    cookie = "; ".join(f"{each.name}={each.value}" for each in client.cookies.jar)
    given = {"Host": place, "Origin": f"http://{place}", "Cookie": cookie, **more}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
    return "\r\n".join(lines).encode()


def test_stalled_forms_stop_no_page(client: httpx.Client) -> None:
    stalled = head(client, "POST", f"/runs/{NEW}/notes", **STALLED)
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(connected(client)).sendall(stalled)
        began = time.monotonic()
        time.sleep(0.5)  # until they are read
        assert [client.get("/runs").status_code for _ in range(3)] == [200] * 3
        assert time.monotonic() - began < PATIENCE_S


def test_idle_connections_and_half_heads_stop_nobody(client: httpx.Client) -> None:
    with ExitStack() as stack:
        held = [stack.enter_context(connected(client)) for _ in range(2 * MOST_CONNECTIONS)]
        for each in held[::2]:
            try:
                each.sendall(b"GET / HT")
            except OSError:  # it had to make room already
                continue
        began = time.monotonic()
        with httpx.Client(base_url=client.base_url, cookies=client.cookies, timeout=STARTED_SECONDS) as new:
            assert new.get("/healthz").text == "ok\n"
            assert new.get("/runs").status_code == 200
        assert time.monotonic() - began < PATIENCE_S


def unread(client: httpx.Client, stack: ExitStack, connections: int) -> None:
    """Open connections that ask for many pages at once, and read nothing."""
    asked = head(client, "GET", "/glossary") * 40
    for _ in range(connections):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.settimeout(PATIENCE_S)
        one.connect((client.base_url.host, client.base_url.port))
        stack.enter_context(one).sendall(asked)


def test_answers_that_nobody_reads_stop_nobody(client: httpx.Client) -> None:
    with ExitStack() as stack:
        unread(client, stack, 140)
        for cookies in (client.cookies, None):
            with httpx.Client(base_url=client.base_url, cookies=cookies, timeout=STARTED_SECONDS) as new:
                until, code = time.monotonic() + STARTED_SECONDS, 503
                while code == 503:  # or without a connection, while pages for the others are made
                    assert time.monotonic() < until
                    with suppress(httpx.NetworkError):
                        code = new.get("/runs").status_code
                    time.sleep(0.2)
                assert code == (200 if cookies else 401)


@pytest.mark.slow
def test_answers_that_nobody_reads_are_ended(lake: Path) -> None:
    with serving(lake) as (process, address), ExitStack() as stack:
        client = stack.enter_context(httpx.Client(base_url=address.partition("?")[0], follow_redirects=True))
        assert client.get(address).status_code == 200
        before = psutil.Process(process.pid).num_fds()
        unread(client, stack, 20)
        until = time.monotonic() + 120
        while psutil.Process(process.pid).num_fds() < before + 20:  # all are open
            assert time.monotonic() < until
            time.sleep(0.05)
        while psutil.Process(process.pid).num_fds() > before:
            assert time.monotonic() < until
            time.sleep(0.2)


@pytest.mark.slow
def test_a_connection_without_a_request_and_a_stalled_form_are_ended(client: httpx.Client) -> None:
    with connected(client) as idle, connected(client) as stalled:
        for each in (idle, stalled):
            each.settimeout(30)
        stalled.sendall(head(client, "POST", f"/runs/{NEW}/notes", **STALLED))
        assert idle.recv(1000) == b""
        assert stalled.recv(1000).startswith(b"HTTP/1.1 408 ")


def test_a_websocket_is_refused_and_the_server_goes_on(client: httpx.Client) -> None:
    more = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    with connected(client) as one:
        one.sendall(head(client, "GET", "/", **more, **{"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}))
        assert one.recv(1000).startswith(b"HTTP/1.1 400 ")
    assert client.get("/").status_code == 200


def test_head_over_a_real_connection(client: httpx.Client) -> None:
    answer = client.head("/runs")
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) == len(client.get("/runs").content)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_within_two_seconds_while_a_page_is_computed(lake: Path, sent: signal.Signals) -> None:
    words = ["serve", "--lake", str(lake), "--port", str(free_port())]
    process = subprocess.Popen(
        [sys.executable, "-c", AT_WORK, *words],
        env=environment(None), cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        address = process.stdout.readline().strip()
        with httpx.Client(base_url=address.partition("?")[0], follow_redirects=True, timeout=STARTED_SECONDS) as client:
            assert client.get(address).status_code == 200
            with connected(client) as one:
                one.sendall(head(client, "GET", f"/runs/{NEW}"))
                while "at work" not in process.stderr.readline():
                    assert process.poll() is None
                began = time.monotonic()
                process.send_signal(sent)
                _, said = process.communicate(timeout=10)
                assert time.monotonic() - began < 2
        assert process.returncode == 128 + sent
        assert not re.search("what was finished|goes on", said)
    finally:
        process.kill()
        process.wait()


def test_its_last_word_is_that_it_stopped(lake: Path) -> None:
    with serving(lake) as (process, _):
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=10)
        assert said.splitlines()[-1] == "evenhand: stopped"
        assert process.returncode == 128 + signal.SIGTERM
