"""What a command says of a server that is away, of another program at its address, and of a wrong password."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from flows.supervision import prefect_server
from flows.supervision.prefect_server import fault_at, require_server
from schemas.errors import InfrastructureError

NOBODY = "http://evenhand:hushhush@127.0.0.1:1/api"


@contextmanager
def answering(code: int, kind: str = "application/json", wants: str = "") -> Iterator[str]:
    """A program at the address of a server."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            refused = wants and self.headers.get("Authorization") != wants
            self.send_response(401 if refused else code)
            self.send_header("Content-Type", kind)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/api"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PREFECT_API_KEY", "PREFECT_API_AUTH_STRING"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(prefect_server, "_PAUSE_SECONDS", 0.01)


def said(api: str) -> str:
    fault = fault_at(api)
    return f"{fault.what}: {fault.step}" if fault else ""


def test_a_server_that_is_away_is_named_without_its_password() -> None:
    with pytest.raises(InfrastructureError, match="no server answers at http") as told:
        require_server(NOBODY)
    assert "hushhush" not in str(told.value)
    assert "start it, or mend PREFECT_API_URL" in str(told.value)


@pytest.mark.parametrize(("code", "kind"), [(404, "application/json"), (200, "text/html")])
def test_another_program_is_no_prefect_server(code: int, kind: str) -> None:
    with answering(code, kind) as api:
        assert said(api).endswith(f"is no Prefect server ({code}): {prefect_server.NO_PREFECT}")


@pytest.mark.parametrize("kind", ["application/json", "text/html"], ids=["itself", "a proxy"])
def test_a_server_without_its_database_says_so(kind: str) -> None:
    with answering(503, kind) as api:
        assert "is not ready (503): look whether its database is full, or away" in said(api)


def test_a_password_is_given_and_a_wrong_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(200, wants="Basic ZXZlbmhhbmQ6c2VjcmV0") as api:  # evenhand:secret
        assert "refuses the password (401): set PREFECT_API_AUTH_STRING" in said(api)
        monkeypatch.setenv("PREFECT_API_AUTH_STRING", "evenhand:secret")
        assert fault_at(api) is None


def test_a_server_that_is_started_again_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    away, other = prefect_server.Fault("away", "start it", passing=True), prefect_server.Fault("other", "mend it")
    answers = iter([away, away, None, other])
    monkeypatch.setattr(prefect_server, "fault_at", lambda _: next(answers))
    require_server("http://127.0.0.1:4200/api")
    with pytest.raises(InfrastructureError, match="other: mend it"):
        require_server("http://127.0.0.1:4200/api")
    assert next(answers, "asked once") == "asked once"


def test_the_cloud_says_nothing_of_being_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_KEY", "key")
    require_server(NOBODY)


@pytest.mark.slow
def test_an_audit_says_it_and_exits_with_5(tmp_path) -> None:
    from conftest import evenhand_process

    done = evenhand_process("audit", "--lake", str(tmp_path / "lake"), server="http://127.0.0.1:1/api")
    assert done.returncode == 5
    assert "no server answers at http://127.0.0.1:1/api" in done.stderr
    assert "fault of ours" not in done.stderr
