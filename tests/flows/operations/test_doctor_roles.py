"""``evenhand doctor --role``: what it finds amiss in a server's, a worker's and a site's surroundings."""

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from conftest import SPEC, evenhand

from flows.operations import doctor
from flows.operations.environment_variables import SETTINGS
from schemas.errors import SpecError
from schemas.terms import ExitCode

Examine = Callable[..., dict[str, dict[str, Any]]]
_PAGE = 203
"""The code by which the server below answers with a page."""
LEASES = "prefect.server.concurrency.lease_storage.filesystem"


@pytest.fixture
def examine(monkeypatch: pytest.MonkeyPatch) -> Examine:
    """The checks of a role in an environment that has these settings alone; libraries and schedules stand apart."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(doctor, "libraries", list)
    monkeypatch.setattr(doctor, "examine", lambda _: [])

    def examined(role: str, lake: Path, **settings: str) -> dict[str, dict[str, Any]]:
        with monkeypatch.context() as patch:
            for name, value in settings.items():
                patch.setenv(name, value)
            return {check["check"]: check for check in doctor.examine_role(doctor.role_of(role), str(lake))}

    return examined


@pytest.fixture
def api() -> Iterator[tuple[str, list[int]]]:
    """A server that answers `ready` with the last of some codes, as Prefect's does."""
    codes = [200]

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(codes[-1] if self.path == "/api/ready" else 404)
            self.send_header("Content-Type", "text/html" if codes[-1] == _PAGE else "application/json")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Be silent."""

    server = HTTPServer(("127.0.0.1", 0), Answers)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/api", codes
    server.shutdown()
    server.server_close()


def amiss(checks: dict[str, dict[str, Any]]) -> set[str]:
    assert all(check["ok"] or check["next_step"] for check in checks.values())
    return {name for name, check in checks.items() if not check["ok"]}


class TestServer:
    def test_one_that_is_not_set_up(self, examine: Examine, tmp_path: Path) -> None:
        found = examine("server", tmp_path, PREFECT_SERVER_API_PORT="1")
        assert amiss(found) == {"database", "password", "leases", "ready"}
        assert found["database"]["found"] == "SQLite"
        assert "no server answers at http://127.0.0.1:1/api" in found["ready"]["found"]

    def test_one_that_is_set_up(self, examine: Examine, tmp_path: Path, api: tuple[str, list[int]]) -> None:
        settings = {
            "PREFECT_SERVER_API_PORT": api[0].split(":")[-1].removesuffix("/api"),
            "PREFECT_SERVER_DATABASE_DRIVER": "postgresql+asyncpg",
            "PREFECT_SERVER_API_AUTH_STRING": "evenhand:secret",
            "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": LEASES,
            "PREFECT_HOME": str(tmp_path),
        }
        found = examine("server", tmp_path, **settings)
        assert amiss(found) == set()
        assert "secret" not in str(found)
        api[1].append(503)
        assert amiss(examine("server", tmp_path, **settings, EVENHAND_LAKES="x")) == {"ready", "settings"}
        assert amiss(examine("server", tmp_path, **settings | {"PREFECT_HOME": str(tmp_path / "no")})) == {
            "ready",
            "leases",
        }


class TestReady:
    @pytest.mark.parametrize(("code", "path"), [(404, "/api"), (_PAGE, "/api"), (200, "")])
    def test_what_is_no_prefect_server_is_not_said_to_have_a_full_database(
        self, examine: Examine, tmp_path: Path, api: tuple[str, list[int]], code: int, path: str
    ) -> None:
        api[1].append(code)
        found = examine("worker", tmp_path, PREFECT_API_URL=api[0].removesuffix("/api") + path)["ready"]
        assert (found["ok"], "PREFECT_API_URL ends with /api" in found["next_step"]) == (False, True)

    @pytest.mark.parametrize(("code", "words"), [(503, "database is full"), (401, "PREFECT_API_AUTH_STRING")])
    def test_what_a_prefect_server_lacks_is_told(
        self, examine: Examine, tmp_path: Path, api: tuple[str, list[int]], code: int, words: str
    ) -> None:
        api[1].append(code)
        found = examine("worker", tmp_path, PREFECT_API_URL=api[0])["ready"]
        assert (found["ok"], words in found["next_step"]) == (False, True)


class TestWorker:
    def test_it_needs_a_server_and_specs(self, examine: Examine, tmp_path: Path) -> None:
        assert amiss(examine("worker", tmp_path)) == {"ready", "specs"}

    def test_specs_and_files_that_are_closed_to_others(
        self, examine: Examine, tmp_path: Path, api: tuple[str, list[int]]
    ) -> None:
        specs, key = tmp_path / "specs", tmp_path / "key.pem"
        specs.mkdir()
        (specs / "loans.yaml").write_text(SPEC)
        key.write_text("a key")
        key.chmod(0o640)
        settings = {"PREFECT_API_URL": api[0], "EVENHAND_SPECS": str(specs), "EVENHAND_SIGNING_KEY": str(key)}
        assert amiss(examine("worker", tmp_path, **settings)) == {"EVENHAND_SIGNING_KEY"}
        key.chmod(0o600)
        assert amiss(examine("worker", tmp_path, **settings)) == set()
        assert amiss(examine("worker", tmp_path, **settings, EVENHAND_REPORTS_URL="javascript:alert(1)")) == {"reports"}
        (specs / "odd.yaml").write_text(SPEC.replace("methods:", "method:"))
        found = examine("worker", tmp_path, **settings, EVENHAND_ALERTS=str(tmp_path / "gone"))
        assert amiss(found) == {"specs", "EVENHAND_ALERTS"}
        assert "odd.yaml" in found["specs"]["found"]


class TestSite:
    def test_it_sees_reports_and_nothing_else(self, examine: Examine, tmp_path: Path) -> None:
        lake = tmp_path / "lake"
        assert amiss(examine("site", lake)) == {"reports"}
        (lake / "reports" / "loans-2024-0").mkdir(parents=True)
        found = examine("site", lake)
        assert found["reports"]["found"].startswith("1 in ")
        assert amiss(found) == {"read only"}
        (lake / "runs").mkdir()
        assert amiss(examine("site", lake)) == {"read only", "tables"}


def test_a_role_that_is_none_is_refused_with_the_nearest() -> None:
    with pytest.raises(SpecError, match="did you mean 'worker'"):
        doctor.role_of("workers")


def test_the_command_tells_of_a_role(tmp_path: Path) -> None:
    done = evenhand("doctor", "--role", "site", "--lake", str(tmp_path), "--json")
    assert done.returncode == ExitCode.INFRASTRUCTURE
    assert [check["check"] for check in json.loads(done.stdout)] == ["settings", "reports"]
