"""The deployment as processes: database, server, registration, workers; a back-fill killed half-way and resumed.

Some two minutes on a quiet machine, most of them for processes to start and load libraries.
"""

import hashlib
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from deployed import HAVE_POSTGRES, Deployment, family, image_words, kill, served, working
from lint import words_of_containers

from flows.partitions.year_audit import audit_year
from flows.runs.index import runs_of
from schemas.audit.spec import AuditSpec
from tasks.ingest.synthetic.algorithm.twin import TwinSettings
from tasks.ingest.synthetic.twin_files import write
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not HAVE_POSTGRES, reason="PostgreSQL is not installed here: apt-get install postgresql, as .ci/run does"
    ),
]
YEARS = (2016, 2017, 2018, 2019)
"""Two layouts of HMDA; between them lies the year in which it changed."""
ROWS = 400
"""Of a year, drawn: enough that its audit does not end early with too little evidence."""

HISTORY = """\
name: history
year: 2019
source: {kind: hmda, path: 'INCOMING/hmda-{year}.csv'}
decision: {column: action_taken, favourable: [1, 2, 8], unfavourable: [3, 7]}
protected:
  - name: race
    columns: [derived_race]
    groups: {White: [White], Black: [Black or African American]}
    reference: White
    unlisted: not available
columns:
  income_usd: {type: continuous, constraint: up}
  loan_amount_usd: {type: continuous, constraint: down}
  loan_purpose: {type: nominal, constraint: immutable}
causal_graph: {edges: [[race, income_usd], [income_usd, loan_amount_usd]]}
model: {kind: logistic_regression, folds: 3}
methods:
  fgce: null
  cst: {ks: [5], k: 5, null_permutations: 1, null_complainants: 5, sensitivity: false}
thresholds:
  - {measure: approval_rate_ratio, decision_maker: lender, minimum: 0.9}
disclosure: {profile: public}
bootstrap: {draws: 100}
"""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A directory that PostgreSQL's user may enter, with four years of HMDA and the spec of their audit."""
    place = Path(tempfile.mkdtemp(prefix="evenhand-deployed-"))
    place.chmod(0o755)
    for name in ("incoming", "specs"):
        (place / name).mkdir()
    for year in YEARS:
        drawn = write(place / "drawn", TwinSettings(rows=ROWS, year=year, discrimination="direct"), seed=year)
        shutil.copyfile(drawn.rows, place / "incoming" / f"hmda-{year}.csv")
    (place / "specs" / "history.yaml").write_text(HISTORY.replace("INCOMING", str(place / "incoming")))
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="module")
def deployment(home: Path) -> Iterator[Deployment]:
    with served(home) as deployment:
        yield deployment


@pytest.fixture(scope="module")
def spec(home: Path) -> AuditSpec:
    return read_spec((home / "specs" / "history.yaml").read_text(), "history.yaml").spec


@pytest.fixture(scope="module")
def undisturbed(spec: AuditSpec, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The same years, audited one after the other, without Prefect."""
    lake = Lake(tmp_path_factory.mktemp("undisturbed") / "lake")
    for year in YEARS:
        audit_year(spec, year, lake)
    return lake


def tables(lake: Lake) -> dict[int, dict[str, str]]:
    """Year -> stage and table -> digest, of every table of its run; measures among them."""
    return {
        run.year: {f"{p.stage} {a.table}": a.sha256 for p in run.partitions for a in p.tables} for run in runs_of(lake)
    }


def began(deployment: Deployment, parameters: dict[str, Any]) -> str:
    """Start a back-fill by hand, as the runbook says; gives the id of its flow run."""
    pairs = [word for name, value in parameters.items() for word in ("--param", f"{name}={json.dumps(value)}")]
    deployment.run(["prefect", "deployment", "run", "backfill/by-hand", *pairs])
    by_hand = {"deployments": {"name": {"any_": ["by-hand"]}}}  # the others have runs that the server has planned
    (run,) = deployment.ask("/flow_runs/filter", {**by_hand, "sort": "EXPECTED_START_TIME_DESC", "limit": 1})
    return str(run["id"])


def state(deployment: Deployment, run: str) -> str:
    return str(deployment.ask(f"/flow_runs/{run}")["state_type"])


def until(what: str, holds: Any, deployment: Deployment, seconds: float = 300) -> None:
    limit = time.monotonic() + seconds
    while not holds():
        logs = deployment.places.home / "worker.log"
        assert time.monotonic() < limit, f"not within {seconds:.0f} s: {what}\n{logs.read_text()[-4000:]}"
        time.sleep(0.2)


def attempts(home: Path, year: int) -> list[dict[str, Any]]:
    folder = home / "lake" / "backfills" / "history" / str(year)
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def test_a_back_fill_whose_worker_is_killed_is_resumed_by_the_next_one(
    deployment: Deployment, home: Path, spec: AuditSpec, undisturbed: Lake
) -> None:
    with working(deployment) as worker:
        run = began(deployment, {"years": list(YEARS)})
        until("the second year is at work", lambda: any(a["stage"] for a in attempts(home, YEARS[1])), deployment)
        assert len(family(worker)) >= 3, "the worker, the flow and a year"
        killed = kill(worker)
    assert len(killed) >= 3
    assert [a["state"] for a in attempts(home, YEARS[1])] == ["running"], "nobody was left to say otherwise"
    assert state(deployment, run) == "RUNNING", "nor to tell the server"
    with working(deployment):
        until("the back-fill is completed", lambda: state(deployment, run) == "COMPLETED", deployment)
    told = [s["message"] or "" for s in deployment.ask(f"/flow_run_states/?flow_run_id={run}")]
    assert any("Found by evenhand: process" in message for message in told), told
    lake = Lake(home / "lake")
    assert set(tables(lake)) == set(YEARS)
    assert tables(lake) == tables(undisturbed)
    assert attempts(home, YEARS[0])[-1]["computed"] == 0, "the year that was done is found in the lake"
    assert not list((home / "lake" / "tmp").iterdir())
    assert [path for path in (home / "lake").rglob("*") if path.stat().st_mode & 0o077] == []


def test_a_year_that_cannot_be_audited_fails_the_run_on_a_worker_that_listens_here_only(
    deployment: Deployment, home: Path
) -> None:
    with working(deployment) as worker:
        open_to = {c.laddr.ip for p in family(worker) for c in p.net_connections() if c.status == psutil.CONN_LISTEN}
        assert open_to == {"127.0.0.1"}
        run = began(deployment, {"years": "1999"})
        ended = ("COMPLETED", "FAILED", "CRASHED")
        until("the back-fill is over", lambda: state(deployment, run) in ended, deployment)
    (told,) = [s for s in deployment.ask(f"/flow_run_states/?flow_run_id={run}") if s["type"] in ended]
    assert told["type"] == "FAILED"
    assert told["message"].startswith("1 year: 1 failed; 1999")
    assert [a["state"] for a in attempts(home, 1999)] == ["failed"]


def test_the_site_shows_the_reports_and_takes_nothing(deployment: Deployment, home: Path, spec: AuditSpec) -> None:
    lake = Lake(home / "lake")
    if not runs_of(lake):
        audit_year(spec, YEARS[0], lake)
    with working(deployment, "site"):
        site = f"http://127.0.0.1:{deployment.places.site}"
        run = runs_of(lake)[0].run
        with urllib.request.urlopen(f"{site}/{run}/report.html", timeout=10) as answer:
            shown = hashlib.sha256(answer.read()).hexdigest()
        assert shown == hashlib.sha256((home / "lake" / "reports" / run / "report.html").read_bytes()).hexdigest()
        for method in ("PUT", "DELETE", "POST"):
            request = urllib.request.Request(f"{site}/{run}/report.html", b"", method=method)
            with pytest.raises(urllib.error.HTTPError, match="501"):
                urllib.request.urlopen(request, timeout=10)
        for outside in ("../runs/", "../../lake/runs/", "runs/"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"{site}/{outside}", timeout=10)


def examined(deployment: Deployment, role: str) -> dict[str, dict[str, Any]]:
    """The checks of a role by doctor, as the runbook has it."""
    words = ["evenhand", "doctor", "--role", role, "--json"]
    done = subprocess.run(
        words, env=deployment.environment(role), cwd=deployment.places.home, capture_output=True, timeout=180
    )
    return {check["check"]: check for check in json.loads(done.stdout)}


def test_doctor_finds_each_role_set_up(deployment: Deployment) -> None:
    """What it finds of this machine, its memory and its kernels, is no matter here."""
    server = examined(deployment, "server")
    assert {name for name in ("database", "password", "leases", "ready") if not server[name]["ok"]} == set()
    worker = examined(deployment, "worker")
    assert {name for name in ("server", "ready", "specs", "settings", "schedules") if not worker[name]["ok"]} == set()
    assert worker["schedules"]["found"].startswith("the server made a run by itself after"), worker
    site = examined(deployment, "site")
    assert {name for name, check in site.items() if not check["ok"]} == {"read only", "tables"}, "without its mount"


def test_without_its_password_nobody_is_answered(deployment: Deployment) -> None:
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"http://127.0.0.1:{deployment.places.server}/api/flow_runs/count", timeout=10)


def test_every_command_of_the_containers_was_run_here(deployment: Deployment) -> None:
    """Last of all: what compose.yaml and the Dockerfile start and check is what the tests above have run."""
    ran = {words for _, words in deployment.ran}
    assert tuple(image_words("CMD")) in ran
    assert words_of_containers() <= ran
