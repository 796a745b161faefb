"""The audit as a user runs it: commands, a real Prefect server, a real lake."""

import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import REPOSITORY, environment, evenhand, evenhand_process, loans
from loaded_modules import COMPUTING
from openpyxl import load_workbook
from told_runs import Told, told_runs

from flows.outcome.ending import about
from flows.supervision.failed_audits import paths, read_failure
from tasks.lake.log import entries
from tasks.lake.store import Lake
from tasks.metrics.publish.algorithm.profiles import POLICIES

STAGES = (
    "ingest",
    "preprocess",
    "score",
    "connect",
    "generate",
    "abandoned",
    "adjust",
    "ablate",
    "detect",
    "measure",
    "publish",
    "report",
)
PARTITIONS = tuple(
    stage for stage in STAGES for _ in range(3 if stage == "detect" else 1)
)  # the ladder, FGCE and CST detect
KILLED = [pytest.param(stage, marks=pytest.mark.slow if stage == "detect" else pytest.mark.long) for stage in STAGES]
"""Stages in which an audit is killed: three of its kinds among the slow tests, every one by night."""
RAN = (0, 1, 3)
SECRET = "zz-nobody"
"""A cell that a table should not have."""


def digests(lake: Path) -> dict[str, str]:
    """Stage and table -> sha256 of every Parquet file of a lake."""
    out = {}
    for record in lake.glob("stages/*/*/partition.json"):
        for artifact in json.loads(record.read_text())["tables"]:
            out[f"{artifact['path']}"] = artifact["sha256"]
    return out


def partitions_of(lake: Path) -> set[tuple[str, str]]:
    """Stage and key of every partition of a lake."""
    return {(path.parts[-3], path.parts[-2]) for path in lake.glob("stages/*/*/partition.json")}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, server: str) -> tuple[Path, dict[str, object]]:
    """One audit of the loans, run to its end on the server: its directory and what it printed."""
    place = tmp_path_factory.mktemp("loans")
    loans().to_csv(place / "loans.csv", index=False)
    from conftest import SPEC

    (place / "loans.yaml").write_text(SPEC.replace("path: loans.csv", f"path: {place / 'loans.csv'}"))
    done = evenhand("audit", str(place / "loans.yaml"), "--lake", str(place / "lake"), "--json", server=server)
    assert done.returncode in RAN, done.stderr
    assert "read loans.csv" not in done.stderr  # what a deployed run logs, a command prints in its summary
    return place, json.loads(done.stdout)


def test_an_audit_leaves_report_manifest_and_measures(finished: tuple[Path, dict[str, object]]) -> None:
    place, said = finished
    home = place / "lake" / "reports" / str(said["run"])
    manifest = json.loads((place / "lake" / "runs" / str(said["run"]) / "manifest.json").read_text())
    assert {p.relative_to(home).as_posix() for p in home.rglob("*") if p.is_file()} == {*manifest["exported"]}
    assert {*manifest["exported"]} > {"report.html", "pages/quality.html", "evidence/outcomes.html", "method.html"}
    assert {*manifest["exported"]} > {"report.json", "measures.xlsx", "measures.parquet"}
    assert [p["stage"] for p in manifest["partitions"]] == list(PARTITIONS)
    assert all(line["rows"]["in"] is not None and line["seconds"] >= 0 for line in manifest["lineage"])
    digest = sha256((place / "loans.csv").read_bytes()).hexdigest()[:12]
    read = {"source": "loans.csv", "sha256": digest, "rows": 500, "year": None}
    assert manifest["read"] == read
    told = json.loads((home / "report.json").read_text())
    assert told == said
    assert told["source"] == {
        "name": "loans.csv",
        "sha256": digest,
        "rows": {"value": 500, "shown": "500"},
        "year": None,
    }
    assert {*told["pages"]} <= {*manifest["exported"]}
    measures = pq.read_table(home / "measures.parquet").to_pandas()
    assert set(measures["run"]) == {said["run"]}
    rate = measures[(measures["measure"] == "approval_rate") & (measures["decision_maker"] == "lender")].set_index(
        "group"
    )
    truth = loans().assign(approved=lambda f: f["approved"] == "yes").groupby("race")["approved"].mean()
    assert rate.loc["white", "value"] == pytest.approx(truth["w"], abs=5e-3)
    assert rate.loc["Black", "value"] == pytest.approx(truth["b"], abs=5e-3)
    assert rate.loc["(missing)", "value"] == pytest.approx(truth[""], abs=5e-3)


def test_rows_in_are_rows_out_and_rows_refused(finished: tuple[Path, dict[str, object]]) -> None:
    place, said = finished
    manifest = json.loads((place / "lake" / "runs" / str(said["run"]) / "manifest.json").read_text())
    balanced = [
        line
        for line in manifest["lineage"]
        if line["stage"] not in ("adjust", "ablate", "measure", "publish", "report")
    ]
    assert all(line["rows"]["in"] == line["rows"]["out"] + line["rows"]["refused"] for line in balanced)


def test_an_unchanged_audit_computes_nothing_and_loads_nothing_that_does(
    finished: tuple[Path, dict[str, object]],
) -> None:
    place, said = finished
    code = (
        "import sys; sys.argv = ['evenhand', *sys.argv[1:]]\n"
        "from flows.cli.main import main\n"
        f"try:\n    main()\nfinally:\n    assert sys.modules.keys().isdisjoint({COMPUTING!r}), sys.modules.keys()\n"
    )
    arguments = ["audit", str(place / "loans.yaml"), "--lake", str(place / "lake"), "--json"]
    again = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment(None), cwd=REPOSITORY, capture_output=True, text=True
    )
    assert again.returncode in RAN, again.stderr
    assert json.loads(again.stdout) == said


def test_what_an_audit_prints_is_short_and_the_rest_goes_to_standard_error(
    finished: tuple[Path, dict[str, object]], server: str
) -> None:
    place, said = finished
    arguments = ("audit", str(place / "loans.yaml"), "--lake", str(place / "lake"))
    done = evenhand(*arguments, server=server)
    lines = done.stdout.splitlines()
    headline = said["headline"]
    assert isinstance(headline, dict)
    assert " ".join(lines[2:5]).startswith(headline["words"])
    assert len(lines) <= 24
    wrapped = [line for line in lines[:-1] if not line.lstrip().startswith("evenhand ")]
    assert max(map(len, wrapped)) <= 100, "but for the path of the report, and commands, which are copied whole"
    assert all(line == line.rstrip() for line in lines)
    assert any("Not run: cec, gcfn, raguel (not in `methods` of the spec)." in line for line in lines)
    assert f"exit code {done.returncode}: " in lines[-2]
    assert lines[-1] == f"report  {place}/lake/reports/{said['run']}/report.html"
    assert "all 14 stages are in the lake already: nothing to compute" in done.stderr
    quiet = evenhand(*arguments, "--quiet", server=server).stdout.splitlines()
    assert [line.split()[0] for line in quiet] == ["run", "state", "report"]
    whole = evenhand(*arguments, "--verbose", server=server).stdout.splitlines()
    assert whole[: len(lines)] == lines
    assert "decision maker\tgroup\tn\tapproved" in whole


def test_an_audit_of_too_few_ends_after_its_first_stage(tmp_path: Path, server: str) -> None:
    from conftest import SPEC

    loans(60).to_csv(tmp_path / "loans.csv", index=False)
    (tmp_path / "loans.yaml").write_text(SPEC.replace("path: loans.csv", f"path: {tmp_path / 'loans.csv'}"))
    lake = tmp_path / "lake"
    done = evenhand("audit", str(tmp_path / "loans.yaml"), "--lake", str(lake), "--set", "thresholds=[]", server=server)
    assert (done.returncode, done.stdout) == (3, "")
    assert "inconclusive in 2024: too few are 'Black'" in done.stderr
    assert {stage for stage, _ in partitions_of(lake)} == {"ingest"}
    again = evenhand("audit", str(tmp_path / "loans.yaml"), "--lake", str(lake), "--set", "thresholds=[]")
    assert (again.returncode, "begins" in again.stderr) == (3, False), "told from the lake, and no Prefect is started"


@pytest.fixture(scope="module")
def endings(
    finished: tuple[Path, dict[str, object]], tmp_path_factory: pytest.TempPathFactory, server: str
) -> tuple[dict[str, Told], str]:
    """Runs that end in every way, as a worker has them: what the server tells of each, and what was printed."""
    from conftest import SPEC

    place, home = finished[0], tmp_path_factory.mktemp("endings")
    text = (place / "loans.yaml").read_text()
    loans(60).to_csv(home / "few.csv", index=False)
    loans(200).assign(purpose=lambda f: f["purpose"].mask(f["id"] < "L0050", SECRET)).to_csv(home / "data.csv")
    specs = {
        "outside the limit": text,
        "integrity": text,
        "data quality": SPEC.replace("loans.csv", str(home / "data.csv")).replace(
            "purpose: {type: nominal", "purpose: {type: binary"
        ),
        "inconclusive": SPEC.replace("loans.csv", str(home / "few.csv")).replace(
            "  - {measure: approval_rate_ratio, decision_maker: lender, minimum: 0.9}\n", "  []\n"
        ),
        "infrastructure": SPEC.replace("loans.csv", str(home / "absent.csv")),
        "spec": SPEC.replace("name: loans", "name: 'no name'"),
    }
    shutil.copytree(place / "lake", home / "integrity")
    (altered,) = (home / "integrity").glob("stages/publish/*/published_verdicts.parquet")
    altered.chmod(0o600)
    altered.write_bytes(altered.read_bytes()[:-1] + b"x")
    calls = []
    for name, spec in specs.items():
        (home / f"{name}.yaml").write_text(spec)
        lake = place / "lake" if name == "outside the limit" else home / name.replace(" ", "-")
        calls.append({"spec": str(home / f"{name}.yaml"), "lake": str(lake)})
    as_a_worker_does = (
        "import json, sys\nfrom flows.audit import audit\n"
        "for call in json.load(sys.stdin):\n    try:\n        audit(**call)\n    except Exception as error:\n"
        "        print(type(error).__name__)\n"
    )
    own = {
        "PREFECT_LOGGING_LEVEL": "INFO",
        "EVENHAND_BREACH_FAILS": "1",
        "EVENHAND_REPORTS_URL": "https://audits.example/r/",
    }
    done = subprocess.run(
        [sys.executable, "-c", as_a_worker_does],
        env={**environment(server), **own},
        cwd=REPOSITORY,
        input=json.dumps(calls),
        capture_output=True,
        text=True,
    )
    raised = ["BreachError", "IntegrityError", "DataQualityError", "InfrastructureError", "SpecError"]
    assert done.stdout.split() == raised, done.stderr
    lakes = {name: Lake(call["lake"]) for name, call in zip(specs, calls, strict=True)}
    noted = {name: [read_failure(lake, path).name for path in paths(lake)] for name, lake in lakes.items()}
    assert noted == {
        name: [] if name in ("outside the limit", "inconclusive") else [name.capitalize()] for name in specs
    }
    ended = {name: told_runs(server, lake.root)[-1] for name, lake in lakes.items()}
    return ended, " ".join(done.stderr.split())


OF_PREFECT = ("Finished in state ", "Running hook ", "Hook ")
"""What Prefect itself says of a run in its log, after our last line."""


@pytest.mark.slow
def test_every_ending_has_its_state_and_message(endings: tuple[dict[str, Told], str]) -> None:
    ended, printed = endings
    said = {name: (run.type, run.state) for name, run in ended.items()}
    assert said.pop("inconclusive") == ("COMPLETED", "Inconclusive")
    assert said == {name: ("FAILED", name.capitalize()) for name in said}, "a breach fails where that is asked for"
    told = {name: run.message for name, run in ended.items()}
    assert "outside the limit; " in told["outside the limit"]
    assert "too few are 'Black'" in told["inconclusive"]
    assert told["data quality"].startswith("stage preprocess: column 'purpose' is declared binary and has 3 values")
    assert "published_verdicts.parquet is missing or is not the file that was written" in told["integrity"]
    assert "absent.csv" in told["infrastructure"]
    assert "name" in told["spec"]
    assert {run.name for name, run in ended.items() if name != "spec"} == {"loans 2024"}
    for name, run in ended.items():
        assert "\n" not in run.message
        assert f"state:{name.removesuffix(' the limit').replace(' ', '_')}" in run.tags
        level, last = [line for line in run.lines if not line[1].startswith(OF_PREFECT)][-1]
        assert last.startswith(f"{name.capitalize()}: {run.message}")
        assert level == (logging.INFO if name in ("outside the limit", "inconclusive") else logging.ERROR)
    assert SECRET not in json.dumps([asdict(run) for run in ended.values()]), "a cell of the table"
    assert printed.count("stage preprocess: < 100 rows") == 0


@pytest.mark.slow
def test_a_breach_is_read_from_the_server_alone(
    finished: tuple[Path, dict[str, object]], endings: tuple[dict[str, Told], str], server: str
) -> None:
    place, said = finished
    run = told_runs(server, place / "lake")[0]
    assert (run.name, run.type, run.state) == ("loans 2024", "COMPLETED", "Outside the limit")
    assert re.match(r"\d of \d outside the limit; [\w' ]+, race: Black ", run.message)
    assert {*run.tags} == {"dataset:loans", "year:2024", "state:outside", f"run:{said['run']}"}
    assert {f"loans 2024 {stage}" for stage in ("ingest", "connect", "detect fgce", "report")} <= {*run.tasks}
    text = [line for _, line in run.lines]
    assert len([line for line in text if re.match(r"stage [a-z ]+: .* rows, .* refused, [0-9.]+ s", line)]) == 14
    assert len([line for line in text if line.startswith("read loans.csv, sha256 ")]) == 1
    assert (logging.WARNING, "Outside the limit: " + run.message.split("; ", 1)[1]) in run.lines
    assert text[-1] == f"Outside the limit: {run.message}; report {place}/lake/reports/{said['run']}/report.html"
    checks = json.loads(run.artifacts["checks"])
    assert checks[0]["state"] == "Outside the limit"
    assert all(row["limit"] for row in checks)
    page = run.artifacts["verdict"]
    assert page.startswith("# Synthetic loans, 2024: Outside the limit\n")
    assert page.index("| Outside the limit | ") < page.index("| Inconclusive | ")
    assert f"Report: `{place}/lake/reports/{said['run']}/report.html`" in page
    assert run.artifacts["progress"] == 100
    assert not [row_id for row_id in loans()["id"] if row_id in json.dumps(asdict(run))]
    again = endings[0]["outside the limit"].artifacts["verdict"]
    assert f"(https://audits.example/r/{said['run']}/report.html)" in again
    assert again.split("Report: ")[0] == page.split("Report: ")[0]


@pytest.mark.slow
def test_a_deployed_run_logs_what_was_read(
    finished: tuple[Path, dict[str, object]], endings: tuple[dict[str, Told], str]
) -> None:
    read = finished[1]["source"]
    assert isinstance(read, dict)
    words = f"loans.csv, sha256 {read['sha256']}, 500 rows, year not in the rows"
    assert endings[1].count(f"read {words}") == 1
    published = [entry for entry in entries(Lake(finished[0] / "lake")) if entry.run == finished[1]["run"]]
    assert [entry.event for entry in published] == ["run published"], "what was published is not written again"


def test_a_changed_setting_recomputes_only_what_depends_on_it(
    finished: tuple[Path, dict[str, object]], server: str
) -> None:
    place, _ = finished
    before = partitions_of(place / "lake")
    arguments = ("audit", str(place / "loans.yaml"), "--lake", str(place / "lake"))
    done = evenhand(*arguments, "--set", "bootstrap.draws=250", server=server)
    assert done.returncode in RAN, done.stderr
    computed = Counter(stage for stage, _ in partitions_of(place / "lake") - before)
    # detect, by three methods, of which two resample what they find
    assert computed == {"detect": 3, "measure": 1, "publish": 1, "report": 1}
    assert done.stderr.count(", from the lake") == 14 - 6


def test_results_are_read_back_by_the_commands(finished: tuple[Path, dict[str, object]]) -> None:
    place, said = finished
    lake = ("--lake", str(place / "lake"))
    run = ("--run", str(said["run"]))
    rates = json.loads(evenhand("measures", *lake, *run, "--measure", "approval_rate", "--json").stdout)
    assert {row["group"] for row in rates} == {"white", "Black", "(missing)"}
    counted = json.loads(evenhand("findings", *lake, *run, "--json").stdout)
    assert {row["verdict"] for row in counted if row["method"] == "fgce"} <= {"feasible", "infeasible", "withheld"}
    assert {row["verdict"] for row in counted if row["method"] == "cst"} <= {
        "detected",
        "not_detected",
        "not_tested",
        "withheld",
    }
    query = f"SELECT count(*) AS n FROM applications WHERE run = '{said['run']}'"
    assert json.loads(evenhand("sql", query, *lake, "--json").stdout) == [{"n": 500}]
    bad = evenhand("sql", "SELECT * FROM applicatons", *lake)
    assert bad.returncode == 2
    assert "applications" in bad.stderr
    assert evenhand("sql", f"COPY (SELECT 1) TO '{place / 'lake' / 'x.csv'}'", *lake).returncode == 2
    assert not (place / "lake" / "x.csv").exists()
    unknown = evenhand("measures", *lake, "--run", "nonsense")
    assert unknown.returncode == 2
    misspelt = evenhand("measures", *lake, *run, "--measure", "aproval_rate")
    assert (misspelt.returncode, "did you mean 'approval_rate'?" in misspelt.stderr) == (2, True)
    outside = evenhand("sql", f"SELECT * FROM '{place / 'loans.csv'}'", *lake)
    assert outside.returncode == 2


def test_a_file_pack_holds_the_whole_file_of_the_strongest_complainants(
    finished: tuple[Path, dict[str, object]], tmp_path: Path
) -> None:
    place, said = finished
    copy = tmp_path / "lake"
    shutil.copytree(place / "lake", copy)
    done = evenhand(
        "findings", "--file-pack", "2", "--decision-maker", "model", "--run", str(said["run"]), "--lake", str(copy)
    )
    assert done.returncode == 0, done.stderr
    workbook, complainants, files = (Path(line) for line in done.stdout.split())
    assert "Restricted" in done.stderr
    assert {path.parent for path in (workbook, complainants, files)} == {copy / "restricted" / str(said["run"])}
    assert {path.stat().st_mode & 0o077 for path in (workbook.parent, workbook, complainants, files)} == {0}
    sheets = load_workbook(workbook)
    assert sheets.sheetnames == ["complainants", "files"]
    assert str(sheets["files"]["A1"].value).startswith("Restricted")
    chosen, rows = pd.read_csv(complainants), pd.read_csv(files)
    assert len(chosen) == 2
    for row_id in chosen["row_id"]:
        one = rows[rows["pack: complainant"] == row_id]
        assert one["pack: role"].value_counts().to_dict() == {
            "complainant": 1,
            "counterfactual": 1,
            "control": 5,
            "test": 5,
        }
        refused = 1 - one["pack: decided favourably"].astype(bool).groupby(one["pack: role"]).mean()
        told = chosen.set_index("row_id").loc[row_id]
        assert refused["control"] == pytest.approx(told["refused_in_control_group"])
        assert refused["test"] == pytest.approx(told["refused_in_test_group"])
    of = ("--attribute", "race", "--group", "Black", "--denied", "--decision-maker", "lender")
    asked = evenhand("findings", "--file-pack", "20", *of, "--lake", str(copy))
    assert asked.returncode == 0, asked.stderr
    _, complainants, files = (Path(line) for line in asked.stdout.split())
    chosen, rows = pd.read_csv(complainants), pd.read_csv(files)
    own = rows[rows["pack: role"] == "complainant"]
    assert len(chosen) == len(own) == 20
    assert set(chosen["group"]) == {"Black"}
    assert not own["pack: decided favourably"].astype(bool).any()
    unknown = evenhand("findings", "--file-pack", "2", "--attribute", "height", "--lake", str(copy))
    assert (unknown.returncode, "no findings of CST by height" in unknown.stderr) == (2, True)


def test_verify_names_every_altered_file(finished: tuple[Path, dict[str, object]], tmp_path: Path) -> None:
    place, said = finished
    copy = tmp_path / "lake"
    shutil.copytree(place / "lake", copy)
    assert evenhand("verify", str(said["run"]), "--lake", str(copy)).returncode == 0
    victims = [
        next(copy.glob(f"stages/{stage}/*/{name}"))
        for stage, name in (("score", "models.parquet"), ("ingest", "applications.parquet"))
    ]
    report = copy / "reports" / str(said["run"]) / "report.html"
    assert "outside" in report.read_text()
    report.write_text(report.read_text().replace("outside", "within"))
    manifest = copy / "runs" / str(said["run"]) / "manifest.json"
    told = evenhand("verify", str(said["run"]), "--lake", str(copy))
    assert told.returncode == 6
    assert "report.html" in told.stderr
    every = evenhand("verify", "--all", "--lake", str(copy))
    assert every.returncode == 6
    assert "report.html" in every.stdout.replace("\n", "")
    assert "runs are whole" in every.stdout
    evenhand("audit", str(place / "loans.yaml"), "--lake", str(copy))  # written anew from the lake
    assert evenhand("verify", "--all", "--lake", str(copy)).returncode == 0
    assert evenhand("verify", "--lake", str(copy)).returncode == 2
    assert evenhand("verify", str(said["run"]), "--lake", str(copy)).returncode == 0
    sealed = manifest.read_text()
    manifest.write_text(sealed.replace('"state": "', '"state": "not '))
    assert evenhand("verify", str(said["run"]), "--lake", str(copy)).returncode == 6
    manifest.write_text(sealed)
    victims[0].write_bytes(b"altered")
    victims[1].write_bytes(victims[1].read_bytes()[:100])
    told = evenhand("verify", str(said["run"]), "--lake", str(copy))
    assert told.returncode == 6
    assert all(str(victim) in told.stderr.replace("\n", "") for victim in victims)
    again = evenhand("audit", str(place / "loans.yaml"), "--lake", str(copy))
    assert again.returncode == 6
    assert "run the audit again" in again.stderr.replace("\n", " ")


def start(place: Path, lake: Path, server: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "flows.cli", "audit", str(place / "loans.yaml"), "--lake", str(lake), "--json"],
        env=environment(server),
        cwd=REPOSITORY,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("stage", KILLED)
def test_kill_9_during_any_stage_is_resumed_byte_for_byte(
    stage: str, finished: tuple[Path, dict[str, object]], tmp_path: Path, server: str
) -> None:
    """The stages before are copied into a fresh lake, so that the audit soon comes to the stage; then it is killed."""
    place, _ = finished
    lake = tmp_path / "lake"
    reference = digests(place / "lake")
    before = STAGES[: STAGES.index(stage)]
    for name in before:
        shutil.copytree(place / "lake" / "stages" / name, lake / "stages" / name)
    (lake / "settings.yaml").write_text("lineage: {transport: file, path: lineage.ndjson}\n")
    process = start(place, lake, server)
    until = time.monotonic() + 120
    while not (list(lake.glob(f"locks/{stage}-*.lock")) and told(lake, "START", stage)):  # the stage has begun
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = {path: (lake / path).stat().st_mtime_ns for path in digests(lake)}
    done = evenhand("audit", str(place / "loans.yaml"), "--lake", str(lake), "--json", server=server)
    assert done.returncode in RAN, done.stderr
    assert {path: (lake / path).stat().st_mtime_ns for path in kept} == kept  # finished stages were not repeated
    assert all(reference[path] == digest for path, digest in digests(lake).items())
    assert {Path(path).parts[1] for path in digests(lake)} == set(STAGES)
    [killed, *_], [resumed] = told(lake, "START", ""), told(lake, "COMPLETE", "")
    assert killed != resumed, "what was killed has its own id, and never ends"
    assert told(lake, "START", stage).count(killed) > told(lake, "COMPLETE", stage).count(killed)
    assert all(resumed in told(lake, "COMPLETE", name) for name in STAGES)


def told(lake: Path, kind: str, stage: str) -> list[str]:
    """The runs that have an event of a stage, or of the whole run, in the order of the events."""
    file = lake / "lineage.ndjson"
    lines = file.read_text().splitlines() if file.is_file() else []
    events = [event for event in map(json.loads, lines) if event["eventType"] == kind]
    if not stage:
        return [event["run"]["runId"] for event in events if "parent" not in event["run"]["facets"]]
    of_stage = [event for event in events if event["job"]["name"].split(".")[1:2] == [stage]]
    return [event["run"]["facets"]["parent"]["run"]["runId"] for event in of_stage]


@pytest.mark.long
def test_two_runs_of_the_same_audit_at_once(
    finished: tuple[Path, dict[str, object]], tmp_path: Path, server: str
) -> None:
    place, said = finished
    lake = tmp_path / "lake"
    both = [start(place, lake, server) for _ in range(2)]
    assert {process.wait(timeout=240) for process in both} <= set(RAN)
    assert evenhand("verify", str(said["run"]), "--lake", str(lake)).returncode == 0
    reference = digests(place / "lake")
    assert all(reference[path] == digest for path, digest in digests(lake).items())


@pytest.mark.long  # its usual form is the audit of test_file_modes
def test_without_a_server_the_embedded_api_serves(finished: tuple[Path, dict[str, object]], tmp_path: Path) -> None:
    place, said = finished
    lake = tmp_path / "lake"
    for name in STAGES[:-2]:
        shutil.copytree(place / "lake" / "stages" / name, lake / "stages" / name)
    done = evenhand_process("audit", str(place / "loans.yaml"), "--lake", str(lake))
    assert done.returncode in RAN, done.stderr
    assert str(said["run"]) in done.stdout
    assert "Traceback" not in done.stderr
    assert (lake / "prefect").is_dir()


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (("set", "columns.incme.type=continuous"), 2, "the source has no column 'incme'; did you mean 'income'?"),
        (("set", "protected.0.groups.Asian=[a]"), 2, "no row belongs to group 'Asian'"),
        (("set", "protected.0.reference=whte"), 2, "did you mean 'white'?"),
        (("set", "source.path=nowhere.csv"), 5, "no file at source.path 'nowhere.csv'"),
        (("set", "thresholds.0.measure=aproval_rate"), 2, "did you mean 'approval_rate'?"),
        (("set", "decision.favourable=['Yes']"), 2, "holds any of ['Yes']; did you mean 'yes'?"),
        (("set", "columns.approved.type=nominal"), 2, "is the decision or its outcome, and so no feature"),
        (
            ("set", "columns.history={type: ordinal, order: [bad, fair, good], transitions: {bad: [fiar]}}"),
            2,
            "'fair'?",
        ),
        (("set", "methods.fgce.kk=3"), 2, "unknown key; did you mean 'k'?"),
        (("method", "fgcee"), 2, "no such method; did you mean 'fgce'?"),
    ],
)
def test_mistakes_end_with_a_code_and_a_sentence(
    finished: tuple[Path, dict[str, object]], server: str, change: tuple[str, str], code: int, message: str
) -> None:
    place, _ = finished
    flag, value = change
    done = evenhand(
        "audit", str(place / "loans.yaml"), "--lake", str(place / "lake"), f"--{flag}", value, server=server
    )
    told = " ".join(done.stderr.split())
    assert done.returncode == code, told
    assert message in told
    assert "Traceback" not in told


def test_a_spec_error_found_in_the_data_names_the_line(
    finished: tuple[Path, dict[str, object]], tmp_path: Path, server: str
) -> None:
    place, _ = finished
    text = (place / "loans.yaml").read_text().replace("Black: [b]", "Black: [b], Asian: [a]")
    (tmp_path / "x.yaml").write_text(text)
    done = evenhand("audit", str(tmp_path / "x.yaml"), "--lake", str(tmp_path / "lake"), server=server)
    line = next(i for i, row in enumerate(text.splitlines(), 1) if "Asian" in row)
    assert f"line {line}: protected.0.groups.Asian: no row belongs to group 'Asian'" in " ".join(done.stderr.split())


def test_bad_data_and_bad_lake_have_their_codes(
    finished: tuple[Path, dict[str, object]], tmp_path: Path, server: str
) -> None:
    place, _ = finished
    loans().assign(approved="yes").to_csv(tmp_path / "same.csv", index=False)
    path = f"source.path={tmp_path / 'same.csv'}"
    done = evenhand("audit", str(place / "loans.yaml"), "--lake", str(tmp_path / "lake"), "--set", path, server=server)
    assert done.returncode == 4
    assert "all 500 usable decisions are favourable" in " ".join(done.stderr.split())
    (tmp_path / "file").write_text("")
    done = evenhand("audit", str(place / "loans.yaml"), "--lake", str(tmp_path / "file" / "lake"), server=server)
    assert done.returncode == 5
    assert "--lake" in done.stderr


HOSTILE = ("<script>alert(1)</script>", "'; DROP TABLE measures; --", "../../x")


@pytest.mark.slow
def test_hostile_names_are_escaped_quoted_and_confined(tmp_path: Path, server: str) -> None:
    frame = loans()
    frame["race"] = frame["race"].replace({"b": HOSTILE[0], "": HOSTILE[1]}).mask(frame.index % 7 == 0, HOSTILE[2])
    frame = frame.rename(columns={"income": HOSTILE[0], "amount": HOSTILE[1], "history": HOSTILE[2]})
    frame.to_csv(tmp_path / "loans.csv", index=False)
    quoted = {name: json.dumps(name) for name in HOSTILE}
    (tmp_path / "loans.yaml").write_text(
        "name: hostile\nyear: 2024\n"
        f"source: {{kind: csv, path: {tmp_path / 'loans.csv'}}}\nrow_id: id\n"
        "decision: {column: approved, favourable: ['yes'], unfavourable: ['no']}\n"
        "protected: [{name: " + quoted[HOSTILE[0]] + ", columns: [race], reference: w}]\n"
        "columns:\n"
        f"  {quoted[HOSTILE[0]]}: {{type: continuous, constraint: up}}\n"
        f"  {quoted[HOSTILE[1]]}: {{type: continuous, constraint: down}}\n"
        f"  {quoted[HOSTILE[2]]}: {{type: nominal}}\n"
        "methods: {fgce: {size_matched_draws: 3, k: 3}}\nbootstrap: {draws: 100}\n"
        "thresholds: [{measure: approval_rate_ratio, minimum: 0.9}]\n"
    )
    lake = tmp_path / "home" / "lake"
    done = evenhand("audit", str(tmp_path / "loans.yaml"), "--lake", str(lake), "--json", server=server)
    assert done.returncode in RAN, done.stderr
    said = json.loads(done.stdout)
    pages = {path: path.read_text() for path in (lake / "reports" / said["run"]).rglob("*.html")}
    assert [path for path, page in pages.items() if "<script" in page] == []
    assert any("&lt;script&gt;alert(1)" in page for page in pages.values())
    assert {p.name for p in tmp_path.iterdir()} == {"loans.csv", "loans.yaml", "home"}
    assert {p.name for p in (tmp_path / "home").iterdir()} == {"lake"}
    groups = json.loads(evenhand("measures", "--lake", str(lake), "--measure", "approval_rate", "--json").stdout)
    assert {row["group"] for row in groups} == {"w", *HOSTILE}


@pytest.mark.long
def test_init_drafts_a_spec_that_runs(tmp_path: Path, server: str) -> None:
    loans().to_csv(tmp_path / "loans.csv", index=False)
    drafted = evenhand("init", "loans.csv", "--decision", "approved", "-o", "drafted.yaml", cwd=tmp_path)
    assert drafted.returncode == 0, drafted.stderr
    text = (tmp_path / "drafted.yaml").read_text()
    (tmp_path / "drafted.yaml").write_text("\n".join(line for line in text.splitlines() if "'purpose':" not in line))
    done = evenhand(
        "audit", str(tmp_path / "drafted.yaml"), "--lake", str(tmp_path / "lake"), "--json",
        "--set", "bootstrap.draws=100", "--year", "2023", server=server,
    )  # fmt: skip
    assert done.returncode in RAN, done.stderr
    assert "1 column of the table is not in the spec: purpose" in done.stderr
    assert (
        "the spec has 5 keys marked CHECK (decision.favourable, protected.0, verdicts.columns_complete" in done.stderr
    )
    home = tmp_path / "lake" / "reports" / json.loads(done.stdout)["run"]
    first = (home / "report.html").read_text()
    assert "5 guesses of the spec not confirmed" in first
    assert set(pq.read_table(home / "measures.parquet")["group"].to_pylist()) == {"w", "b", "(missing)"}


def test_the_help_of_a_command_has_an_example() -> None:
    for command in ("audit", "init", "measures", "findings", "sql", "verify", "doctor", "bench"):
        told = evenhand(command, "--help")
        assert told.returncode == 0
        example = told.stdout.split("Example: evenhand ")[1].split("\n\n")[0]
        options = [word for word in example.split() if word.startswith("--")]
        assert all(told.stdout.count(option) >= 2 for option in options), example


@pytest.mark.long
def test_a_boundary_check_sees_a_group_of_three(tmp_path: Path, server: str) -> None:
    frame = loans()
    frame["race"] = frame["race"].replace({"": "w"})
    frame.loc[:2, "race"] = "a"
    frame["constant"] = 1.0
    frame.to_csv(tmp_path / "loans.csv", index=False)
    from conftest import SPEC

    (tmp_path / "loans.yaml").write_text(
        SPEC.replace("path: loans.csv", f"path: {tmp_path / 'loans.csv'}")
        .replace("Black: [b]}", "Black: [b], Asian: [a]}")
        .replace("  purpose:", "  constant: {type: continuous}\n  purpose:")
    )
    done = evenhand("audit", str(tmp_path / "loans.yaml"), "--lake", str(tmp_path / "lake"), "--json", server=server)
    assert done.returncode in (1, 3), done.stderr
    rows = json.loads(evenhand("measures", "--lake", str(tmp_path / "lake"), "--all", "--json").stdout)
    asian = [row for row in rows if row["group"] == "Asian" and row["state"] != "not_run"]
    assert asian
    assert {row["state"] for row in asian} <= {"inconclusive", "no_limit", "information"}
    judged = json.loads(evenhand("verdicts", "--lake", str(tmp_path / "lake"), "--json").stdout)
    said = [dict(zip(judged["columns"], row, strict=True)) for row in judged["rows"]]
    states = {row["state"].split(" ")[0] for row in said if row["group"] == "Asian" and row["limit"] is not None}
    assert states == {"inconclusive"}
    with duckdb.connect() as connection:
        encodings = next((tmp_path / "lake").glob("stages/preprocess/*/encodings.parquet"))
        low, high = connection.execute(
            f"SELECT low, high FROM '{encodings}' WHERE feature = 'constant'"
        ).fetchone() or (0, 1)
    assert low == high
    assert isinstance(rows, list)
    assert pd.DataFrame(rows)["run"].nunique() == 1


@pytest.mark.long
def test_two_runs_without_a_server_take_turns(finished: tuple[Path, dict[str, object]], tmp_path: Path) -> None:
    place, said = finished
    lake = tmp_path / "lake"
    for name in STAGES[:-1]:
        shutil.copytree(place / "lake" / "stages" / name, lake / "stages" / name)
    both = [start(place, lake, None) for _ in range(2)]
    assert {process.wait(timeout=240) for process in both} <= set(RAN)
    assert evenhand("verify", str(said["run"]), "--lake", str(lake)).returncode == 0


def test_small_counts_of_findings_are_withheld(finished: tuple[Path, dict[str, object]], server: str) -> None:
    place, said = finished
    lake = ("--lake", str(place / "lake"), "--run", str(said["run"]))
    rows = pd.DataFrame(json.loads(evenhand("findings", *lake, "--json").stdout))
    exact = pd.DataFrame(json.loads(evenhand("findings", *lake, "--rows", "--limit", "10000", "--json").stdout))
    assert set(exact["method"]) == {"fgce", "cst"}
    small = exact.groupby(["method", "decision_maker", "group", "verdict"]).size()
    for of, cells in small.groupby(level=[0, 1, 2]):
        shown = rows.set_index(["method", "decision_maker", "group"]).loc[[of]]
        if cells.min() < 5:
            assert (list(shown["verdict"]), shown["findings"].isna().all()) == (["withheld"], True)
        if (shown["verdict"] != "withheld").all():
            assert shown["findings"].sum() == pytest.approx(cells.sum(), abs=10)
    assert (rows["verdict"] == "withheld").any()
    assert (rows["verdict"] != "withheld").any()


def test_a_fault_of_ours_does_not_end_like_a_breach(tmp_path: Path) -> None:
    code = (
        "import sys, flows.cli.main as cli\n"
        "def fault(*_):\n    raise ZeroDivisionError('a bug')\n"
        "cli.options.load_spec = fault\nsys.argv = ['evenhand', 'audit', '--lake', sys.argv[1]]\ncli.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env=environment(None),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 5
    assert "this is a fault of ours: ZeroDivisionError" in done.stderr
    assert "a bug" not in done.stderr, "a message may hold values of rows"
    assert len(list(tmp_path.glob("tmp/crash-*.txt"))) == 1


@pytest.mark.slow
def test_exchanged_decisions_are_one_warning_in_the_terminal_and_in_the_json(
    finished: tuple[Path, dict[str, object]], tmp_path: Path, server: str
) -> None:
    place, _ = finished
    exchanged = ("decision.favourable=['no']", "decision.unfavourable=['yes']", "methods.fgce=null", "methods.cst=null")
    words = [word for pair in exchanged for word in ("--set", pair)]
    audit = ("audit", str(place / "loans.yaml"), "--lake", str(tmp_path / "lake"), "--json")
    done = evenhand(*audit, *words, server=server)
    assert done.returncode in RAN, done.stderr
    assert done.stderr.count("columns_swapped: ") == 1
    report = tmp_path / "lake" / "reports" / json.loads(done.stdout)["run"] / "report.html"
    [warning] = json.loads(report.with_name("report.json").read_text())["warnings"]
    assert warning.startswith("columns_swapped: ")
    assert "income +, amount -, history +" in warning
    copied = shutil.copytree(place / "lake", tmp_path / "copied")  # with the stages before those of methods
    honest = evenhand(*audit[:2], "--lake", str(copied), "--json", *words[4:], server=server)
    assert "swapped" not in honest.stderr + honest.stdout
    assert "not checked" not in honest.stderr + honest.stdout
    for name in ("income", "amount", "history"):
        words += ["--set", f"verdicts.direction.{name}=none"]
    unchecked = evenhand(*audit[:-1], *words, server=server)
    assert "swapped" not in unchecked.stderr + unchecked.stdout
    assert "Decision column not checked" in unchecked.stdout


def test_altered_results_are_not_read(finished: tuple[Path, dict[str, object]], tmp_path: Path) -> None:
    place, said = finished
    copy = tmp_path / "lake"
    shutil.copytree(place / "lake", copy)
    for file in copy.glob("stages/measure/*/measures.parquet"):
        table = pq.read_table(file)
        pq.write_table(
            table.set_column(table.schema.get_field_index("value"), "value", pa.array([0.99] * len(table))), file
        )
    for arguments in (("measures", "--run", str(said["run"])), ("sql", "SELECT * FROM measures")):
        told = evenhand(*arguments, "--lake", str(copy))
        assert told.returncode == 6
        assert "measures.parquet" in told.stderr


def test_reading_makes_no_lake(tmp_path: Path) -> None:
    told = evenhand("measures", "--lake", str(tmp_path / "nowhere"))
    assert (told.returncode, "no lake at" in told.stderr) == (2, True)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("rows", "said"), [(0, "0"), (5, "< 100"), (99, "< 100"), (147, "100"), (1989, "2,000"), (1984, "2,000")]
)
def test_a_log_does_not_tell_how_few_were_refused(rows: int, said: str) -> None:
    assert about(rows) == said


def test_a_log_tells_no_count_of_rows_more_closely_than_a_profile_does() -> None:
    alike = Counter(about(rows) for rows in range(1, 20_000))
    widest = max(policy.wanted for policy in POLICIES.values())
    assert min(alike.values()) > 4 * widest
