"""``evenhand doctor``: what it finds, and whether a server makes runs by itself."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, environment, evenhand

from flows.operations.doctor import _lake, _modes, _schedules, _server
from schemas.terms import ExitCode

GROUP = "scheduler"
"""Of tests for one worker: test_schedules_fire plans runs on the same server."""

_A_RUN = re.compile(r"the server made a run by itself after \d+ s")


def schedules(printed: str) -> dict[str, Any]:
    (check,) = [check for check in json.loads(printed) if check["check"] == "schedules"]
    return check


@pytest.mark.slow
def test_without_a_server_one_is_started_that_leaves_nothing(tmp_path: Path) -> None:
    """The database of the server in use, which an operator's shell may name, is not touched."""
    empty = {name: tmp_path / name for name in ("HOME", "TMPDIR", "XDG_STATE_HOME")}
    for folder in empty.values():
        folder.mkdir()
    elsewhere = {"PREFECT_API_DATABASE_CONNECTION_URL": "postgresql+asyncpg://nobody@127.0.0.1:9/none"}
    places = {name: str(folder) for name, folder in empty.items()}
    lake = tmp_path / "lake"
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", "doctor", "--json", "--lake", str(lake)],
        env={**environment(None), **places, **elsewhere},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert {"python", "prefect", "fastapi", "lake", "free disk", "free memory"} <= {
        check["check"] for check in json.loads(done.stdout)
    }
    found = schedules(done.stdout)
    assert _A_RUN.fullmatch(found["found"]), found
    assert (found["ok"], found["next_step"]) == (True, "")
    assert "schedules: waiting for a run that a temporary server makes by itself" in done.stderr
    left = [path for folder in (*empty.values(), lake) for path in folder.rglob("*") if path.is_file()]
    assert left == []
    assert not lake.exists(), "a check makes no lake"


def test_the_server_that_is_named_is_asked_and_keeps_nothing_of_it(server: str, tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    api = {PREFECT_API_URL: server}
    with temporary_settings(api), get_client(sync_client=True) as client:
        before = {run.id for run in client.read_flow_runs() if run.auto_scheduled}
    done = evenhand("doctor", "--json", "--lake", str(tmp_path / "lake"), server=server)
    assert _A_RUN.fullmatch(schedules(done.stdout)["found"]), done.stdout + done.stderr
    assert "the server of PREFECT_API_URL" in done.stderr
    with temporary_settings(api), get_client(sync_client=True) as client:
        kept = [*client.read_flows(), *client.read_deployments()]
        assert not [each.name for each in kept if each.name.startswith("evenhand-doctor")]
        assert {run.id for run in client.read_flow_runs() if run.auto_scheduled} <= before


def test_a_server_that_cannot_be_reached_is_a_check_that_failed(tmp_path: Path) -> None:
    done = evenhand("doctor", "--json", "--lake", str(tmp_path / "lake"), server="http://127.0.0.1:9/api")
    assert done.returncode == ExitCode.INFRASTRUCTURE
    found = schedules(done.stdout)
    assert found["found"].startswith("the server of PREFECT_API_URL cannot be asked (ConnectError")
    assert (found["ok"], found["next_step"]) == (
        False,
        "start it, or mend PREFECT_API_URL and PREFECT_API_AUTH_STRING",
    )
    assert "Traceback" not in done.stderr


_WITHOUT_SCHEDULER = """\
import json, os, sys
from flows.operations import schedules as scheduler_check
from flows.operations.doctor import examine
from flows.supervision.prefect_server import prefect_api
from tasks.lake.store import Lake

scheduler_check.LIMIT_SECONDS = 3
with prefect_api(Lake(sys.argv[1])):
    from prefect.settings import PREFECT_API_URL

    os.environ["PREFECT_API_URL"] = PREFECT_API_URL.value()
    print(json.dumps(examine(sys.argv[1])))
"""


@pytest.mark.slow
def test_a_server_without_a_scheduler_is_found_out(tmp_path: Path) -> None:
    """The embedded API of a lake is one: Prefect starts it without the services that make runs."""
    words = [sys.executable, "-c", _WITHOUT_SCHEDULER, str(tmp_path / "lake")]
    done = subprocess.run(
        words, env=environment(None), cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=True
    )
    found = schedules(done.stdout)
    assert (found["found"], found["ok"]) == ("the server makes no runs by itself", False)
    assert "where the server runs" in found["next_step"]


@pytest.mark.parametrize(
    ("url", "password", "found", "ok"),
    [
        ("", "", "none named; an audit starts its own, with a password", True),
        ("http://127.0.0.1:4200/api", "a:b", "127.0.0.1", True),
        ("http://[::1]:4200/api", "a:b", "::1", True),
        ("https://prefect.example/api", "a:b", "prefect.example", True),
        ("http://127.0.0.1:4200/api", "", "127.0.0.1 is asked without a password", False),
        ("http://prefect.example/api", "a:b", "prefect.example is reached without https", False),
        ("http://localhost.example/api", "a:b", "localhost.example is reached without https", False),
    ],
)
def test_a_server_that_others_can_read_or_ask_is_told(
    url: str, password: str, found: str, ok: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", url)
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", password)
    monkeypatch.delenv("PREFECT_API_KEY", raising=False)
    check = _server()
    assert (check["found"], check["ok"], bool(check["next_step"])) == (found, ok, not ok)


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:4200/api"])
def test_a_server_that_makes_no_runs_is_told_with_the_next_step(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", url)
    monkeypatch.setattr("flows.operations.doctor.seconds_to_first_run", lambda: None)
    check = _schedules()
    where = " where the server runs, and start it again; its log says why" if url else ""
    assert (check["found"], check["ok"]) == ("the server makes no runs by itself", False)
    assert check["next_step"] == f"pip install -r requirements.lock{where}"


CHECKS = [
    {"check": "python", "found": "3.11.9", "ok": True, "next_step": ""},
    {"check": "free disk", "found": "0.5 GB", "ok": False, "next_step": "free 2 GB, or give another --lake"},
]


@pytest.mark.parametrize(
    ("checks", "words", "code", "printed"),
    [
        (CHECKS[:1], (), 0, ["all 1 checks are met"]),
        (CHECKS[:1], ("--all",), 0, ["python: 3.11.9", "all 1 checks are met"]),
        (
            CHECKS,
            (),
            5,
            ["free disk: 0.5 GB; free 2 GB, or give another --lake", "1 of 2 checks found something amiss"],
        ),
    ],
)
def test_only_what_is_amiss_is_printed(
    checks: list[dict[str, Any]], words: tuple[str, ...], code: int, printed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.operations.doctor.examine", lambda _: checks)
    done = evenhand("doctor", *words)
    assert (done.returncode, done.stdout.splitlines()) == (code, printed)


def test_a_lake_is_examined_and_nothing_is_made_in_it(tmp_path: Path) -> None:
    missing = tmp_path / "lake"
    assert _lake(str(missing)) == {
        **{"check": "lake", "found": f"{missing}, not there yet; the first audit makes it"},
        **{"ok": True, "next_step": ""},
    }
    (missing / "runs" / "one").mkdir(parents=True)
    (missing / "runs" / "one" / "manifest.json").touch()
    before = sorted(tmp_path.rglob("*"))
    assert _lake(str(missing))["found"] == f"{missing}, 1 runs"
    assert _modes(str(missing))["check"] == "file modes"
    assert sorted(tmp_path.rglob("*")) == before
    file = tmp_path / "file"
    file.touch()
    assert (_lake(str(file))["ok"], _lake(str(file))["found"]) == (False, f"{file}, not writable")
