"""No other user of the machine can read what lies in a lake, whoever made it: commands, Prefect's server, workers."""

import json
import os
import shutil
import stat
import subprocess
import sys

import in_process
import pytest
from conftest import REPOSITORY, SPEC, environment, loans
from loans_by_year import ABSENT, write_years

from flows.supervision.file_modes import fix, open_to_others
from schemas.terms import ExitCode
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec

FAST = (
    "methods.adjusted=null",
    "methods.fgce=null",
    "methods.cst=null",
    "causal_graph={edges: []}",
    "model.kind=none",
    "bootstrap.draws=100",
)


def run(words, **settings):
    """A process whose shell lets everybody read what it writes."""
    given = {**environment(None), **settings}
    return subprocess.run(
        [sys.executable, *words], env=given, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, umask=0o022
    )


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """A lake with one audit on the embedded Prefect."""
    place = tmp_path_factory.mktemp("modes")
    loans().to_csv(place / "loans.csv", index=False)
    (place / "loans.yaml").write_text(SPEC.replace("path: loans.csv", f"path: {place / 'loans.csv'}"))
    words = [word for pair in FAST for word in ("--set", pair)]
    done = run(["-m", "flows.cli", "audit", str(place / "loans.yaml"), "--lake", str(place / "lake"), *words])
    assert done.returncode in (0, 1, 3), done.stderr
    assert "Traceback" not in done.stderr
    (made,) = (place / "lake" / "runs").iterdir()
    assert made.name in done.stdout
    return place / "lake"


def modes(root):
    found = {path: stat.S_IMODE(path.lstat().st_mode) for path in (root, *root.rglob("*"))}
    assert len(found) > 1
    return found


def doctor(root, *words, server="http://127.0.0.1:9/api", **settings):
    """What it says of file modes; no server is waited for unless one is named."""
    given = ("doctor", "--lake", str(root), "--json", *words)
    done = in_process.run(given, {**environment(server), **settings}, REPOSITORY)
    (check,) = [c for c in json.loads(done.stdout) if c["check"] == "file modes"]
    return check, done


@pytest.mark.slow
def test_after_an_audit_nothing_in_the_lake_is_open_to_others(audited):
    names = {path.relative_to(audited).parts[0] for path in modes(audited) if path != audited}
    assert {"stages", "runs", "reports", "prefect", "locks", "tmp"} <= names
    assert {path: oct(mode) for path, mode in modes(audited).items() if mode & 0o077} == {}
    assert doctor(audited)[0]["ok"]


@pytest.mark.slow
def test_doctor_counts_open_files_and_closes_them(audited, server):
    page = next((audited / "reports").glob("*/report.html"))
    page.chmod(0o644)
    page.parent.chmod(0o755)
    check, done = doctor(audited, server=server)
    assert (check["found"], check["ok"], done.returncode) == ("2 open to others", False, 5)
    assert "--fix-modes" in check["next_step"]
    check, done = doctor(audited, "--fix-modes")
    assert check["ok"]
    assert "2 files and directories" in done.stderr
    assert set(modes(audited).values()) == {0o600, 0o700}


@pytest.mark.slow
def test_a_group_may_read_on_request_but_not_reviewers_packs(audited):
    pack = audited / "restricted" / "run" / "pack.csv"
    pack.parent.mkdir(parents=True)
    pack.write_bytes(b"")
    check, _ = doctor(audited, "--fix-modes", EVENHAND_GROUP_READ="1")
    assert check["ok"]
    for path, mode in modes(audited).items():
        own = audited / "restricted" in (path, *path.parents)
        wanted = {True: (0o700, 0o600), False: (0o750, 0o640)}[own]
        assert mode == wanted[path.is_file()], path
    assert not doctor(audited)[0]["ok"], "without the setting a group that may read is one too many"
    assert fix(Lake(audited)) > 0
    assert open_to_others(Lake(audited).storage.local) == []


def test_a_symbolic_link_is_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"")
    outside.chmod(0o644)
    lake = Lake(tmp_path / "lake")
    (lake.root / "link").symlink_to(outside)
    fix(lake)
    assert stat.S_IMODE(outside.stat().st_mode) == 0o644


@pytest.mark.parametrize("name", ["flow", pytest.param("year", marks=pytest.mark.slow)])
def test_work_that_another_process_than_the_command_was_given_sets_the_umask(tmp_path, name):
    """A deployed flow run of a worker, and a year on a worker of Dask, both with the umask of their shell."""
    spec = read_spec(write_years(tmp_path).read_text(), "yearly.yaml").spec.model_dump(mode="json")
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    code = {
        "flow": "from flows.outcome.run_state import announced\nannounced(lambda lake: None)(lake=lake)",
        "year": "from flows.backfill import audit_in_sub_flow as sub\nsub.fn(json.load(open(spec)), year, lake, False)",
    }[name]
    head = f"import json\nlake, spec, year = {str(tmp_path / 'lake')!r}, {str(tmp_path / 'spec.json')!r}, {ABSENT}\n"
    done = run(["-c", head + code])
    assert (done.returncode == 0) == (name == "flow"), done.stderr
    assert {path: oct(mode) for path, mode in modes(tmp_path / "lake").items() if mode & 0o077} == {}


@pytest.mark.slow
@pytest.mark.parametrize("words", [["runs"], ["sql", "SHOW TABLES"], ["note", "RUN", "a text", "--as", "Ann Lee"]])
def test_another_users_lake_is_refused_in_words(tmp_path, words):
    """The superuser without the right to pass over file modes is another user to a file of someone else."""
    caps = "-dac_override,-dac_read_search,-fowner,-chown"
    prefix = ["setpriv", f"--bounding-set={caps}", f"--inh-caps={caps}", "--"]
    if os.geteuid() or shutil.which("setpriv") is None or subprocess.run([*prefix, "true"], check=False).returncode:
        pytest.skip("no other user can be made here")
    lake = Lake(tmp_path / "lake").root
    (lake / "stages" / "one").mkdir()
    for place in (*lake.rglob("*"), lake):
        os.chown(place, 1234, 1234)
    lake.chmod(0o700)
    command = [*prefix, sys.executable, "-m", "flows.cli", *words, "--lake", str(lake)]
    done = subprocess.run(command, env=environment(None), cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.INFRASTRUCTURE
    assert f"the lake {lake} cannot be " in done.stderr
    assert "fault of ours" not in done.stderr
