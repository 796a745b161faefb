"""A run that is over waits for its server, as long as patience lasts. The server is a real one that is not ready."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.outcome.run_state import await_server, patience_seconds
from schemas.errors import InfrastructureError


class Answers(BaseHTTPRequestHandler):
    """Its database is away for the first two questions."""

    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        self.send_response(503 if type(self).asked <= 2 or self.path != "/api/ready" else 200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served() -> Iterator[str]:
    Answers.asked = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/api"
        server.shutdown()


def test_it_waits_until_the_server_and_its_database_are_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.outcome.run_state._LOOK_SECONDS", 0.1)
    with served() as api, temporary_settings({PREFECT_API_URL: api}):
        assert await_server()
    assert Answers.asked == 3


def test_its_patience_ends(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("flows.outcome.run_state._LOOK_SECONDS", 0.1)
    monkeypatch.setenv("EVENHAND_SERVER_PATIENCE", "0.3")
    began = time.monotonic()
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api"}):
        assert not await_server()
    assert 0.3 <= time.monotonic() - began < 5
    assert "a worker corrects the run's state" in caplog.text


def test_a_patience_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_SERVER_PATIENCE", "long")
    with pytest.raises(InfrastructureError, match="EVENHAND_SERVER_PATIENCE is 'long'; expected seconds, such as 900"):
        patience_seconds()
