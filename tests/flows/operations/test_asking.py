"""What answers at PREFECT_API_URL and is no Prefect server, or none that takes us, is told with the next step."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import evenhand
from lake_of_runs import lake_of_runs

from flows.operations import schedules
from schemas.terms import ExitCode

HINT = "no Prefect server answers there: PREFECT_API_URL ends with /api"


@pytest.fixture
def site() -> Iterator[tuple[str, dict[str, Any]]]:
    """A server that gives one answer to everything."""
    said: dict[str, Any] = {"code": 200, "body": b"<html>a page</html>"}

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(said["code"])
            self.send_header("Content-Length", str(len(said["body"])))
            self.end_headers()
            self.wfile.write(said["body"])

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            """Be silent."""

    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", said
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("code", "body", "words"),
    [
        (200, b"<html>a page</html>", HINT),
        (200, b'{"a": 1}', HINT),
        (404, b"", f"answers 404: {HINT}"),
        (301, b"", HINT),
        (401, b"", "refuses the password (401): set PREFECT_API_AUTH_STRING"),
        (400, b"", "answers 400: look whether its database is full, or away"),
    ],
)
def test_what_answers_is_told_and_is_no_fault_of_ours(
    site: tuple[str, dict[str, Any]], tmp_path: Path, code: int, body: bytes, words: str
) -> None:
    address, said = site
    said.update(code=code, body=body)
    done = evenhand("schedules", server=address)
    assert (done.returncode, done.stdout) == (ExitCode.INFRASTRUCTURE, ""), done.stderr
    assert words in done.stderr
    lake = lake_of_runs(tmp_path / "lake").location
    told = evenhand("status", "--lake", lake, "--json", server=address)
    assert told.returncode == 0, told.stderr
    assert words in json.loads(told.stdout)["server"]
    assert evenhand("status", "--lake", lake, "--strict", server=address).returncode == ExitCode.INFRASTRUCTURE
    for printed in (done, told):
        assert "fault of ours" not in printed.stderr
        assert "Traceback" not in printed.stderr


def test_all_deployments_are_read_page_by_page(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Client:
        """As many deployments as a server has, without schedules."""

        def __init__(self, count: int) -> None:
            self.all = [SimpleNamespace(number=number, schedules=()) for number in range(count)]

        def read_deployments(self, limit: int, offset: int) -> list[Any]:
            return self.all[offset : offset + limit]

    assert [each.number for each in schedules._deployments(Client(437))] == list(range(437))  # type: ignore[arg-type]
    assert len(schedules._deployments(Client(400))) == 400  # type: ignore[arg-type]
    assert caplog.text == ""
    monkeypatch.setattr(schedules, "_PAGES", 2)
    assert len(schedules._deployments(Client(437))) == 400  # type: ignore[arg-type]
    assert "more than 400 deployments" in caplog.text
